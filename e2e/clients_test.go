package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
)

// readmeClients are the clients of the README, as they behave on the wire.
var readmeClients = []struct {
	heading      string
	protocol     string
	name         string
	capabilities string
	others       []string // other lists that it asks for
	cancels      bool     // sends notifications/cancelled after every finished call
	end          string   // how it ends a server
}{
	{"Claude Code", "2025-11-25", "claude-code", `{"roots":{}}`, nil, false, "stdin"},
	{"Claude Desktop", "2025-06-18", "claude-ai", `{}`, []string{"resources/list", "prompts/list"}, false, "stdin"},
	{"Cursor", "2025-06-18", "cursor-vscode", `{"elicitation":{}}`, []string{"prompts/list", "resources/list"}, false, "SIGTERM"},
	{"VS Code", "2025-11-25", "Visual Studio Code", `{"roots":{"listChanged":true},"sampling":{},"elicitation":{}}`, []string{"prompts/list"}, false, "stdin"},
	{"Codex", "2025-06-18", "codex-mcp-client", `{"elicitation":{"form":{},"url":{}},"experimental":{"codex/auth-change":{}}}`, nil, false, "SIGTERM"},
	{"Gemini CLI", "2025-06-18", "gemini-cli-mcp-client", `{"roots":{"listChanged":true}}`, []string{"prompts/list", "resources/list"}, false, "SIGTERM"},
	{"Qwen Code", "2025-11-25", "qwen-cli-mcp-client-toolsearch-mcp", `{"roots":{},"extensions":{"io.modelcontextprotocol/ui":{}}}`, []string{"prompts/list", "resources/list"}, false, "stdin"},
	{"OpenCode", "2025-11-25", "opencode", `{"roots":{}}`, nil, true, "stdin"},
	{"Cline", "2024-11-05", "@cline/core", `{}`, nil, false, "stdin"},
}

// bareCommand starts an argv as a desktop program would: almost no
// environment, in the root folder.
func (h *home) bareCommand(argv []string) *exec.Cmd {
	h.t.Helper()
	if argv[0] != "/usr/local/bin/toolsearch-mcp" {
		h.t.Fatalf("argv %v does not begin with the README's path of the program", argv)
	}
	cmd := exec.Command(binary(h.t), argv[1:]...)
	cmd.Dir = "/"
	cmd.Env = []string{"HOME=" + h.dir, "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "TERM=dumb", "TMPDIR=" + os.TempDir()}
	for _, name := range []string{"SystemRoot", "USERPROFILE", "LocalAppData", "AppData"} { // Windows cannot do without
		if v := os.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+h.dir)
		}
	}
	return cmd
}

// atDefaultPlace moves the configuration to where it is looked for.
func (h *home) atDefaultPlace() {
	h.t.Helper()
	for _, dir := range []string{".config", filepath.Join("Library", "Application Support"), "."} {
		to := filepath.Join(h.dir, dir, "toolsearch-mcp", "config.yaml")
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			h.t.Fatal(err)
		}
		b, err := os.ReadFile(h.Config)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// argvOf returns the command line in the README's entry for a client.
func argvOf(t *testing.T, heading string) []string {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n### "+heading+"\n")
	_, block, _ := strings.Cut(section, "\n```")
	language, body, _ := strings.Cut(block, "\n")
	body, _, _ = strings.Cut(body, "\n```")
	if language == "toml" {
		return argvOfTOML(t, body)
	}
	var entry map[string]map[string]struct {
		Command json.RawMessage
		Args    []string
	}
	if err := json.Unmarshal([]byte(body), &entry); err != nil {
		t.Fatalf("README entry for %s: %v", heading, err)
	}
	for _, servers := range entry {
		server := servers["toolsearch-mcp"]
		var argv []string
		if json.Unmarshal(server.Command, &argv) == nil {
			return argv // OpenCode
		}
		var command string
		if err := json.Unmarshal(server.Command, &command); err != nil {
			t.Fatalf("README entry for %s: command: %v", heading, err)
		}
		return append([]string{command}, server.Args...)
	}
	t.Fatalf("README has no entry for %s", heading)
	return nil
}

// argvOfTOML reads command and args, whose values are JSON too.
func argvOfTOML(t *testing.T, body string) []string {
	t.Helper()
	var command string
	var args []string
	for name, into := range map[string]any{"command": &command, "args": &args} {
		m := regexp.MustCompile(`(?m)^` + name + ` = (.*)$`).FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("README entry has no %s:\n%s", name, body)
		}
		if err := json.Unmarshal([]byte(m[1]), into); err != nil {
			t.Fatal(err)
		}
	}
	return append([]string{command}, args...)
}

// TestReadmeClients starts the program as each client of the README would,
// with that client's handshake, habits and way to end.
func TestReadmeClients(t *testing.T) {
	for _, c := range readmeClients {
		t.Run(c.heading, func(t *testing.T) {
			pidFile := filepath.Join(t.TempDir(), "pids")
			h := newHome(t, object{"shop": fake(t, mcptest.Script{Name: "shop", PIDFile: pidFile, Tools: []json.RawMessage{mcptest.Tool("weigh_fruit", "Weigh fruit on the scales", echoSchema)}})},
				object{"toolSearch": object{"mode": "tools"}})
			h.atDefaultPlace()
			cmd := h.bareCommand(argvOf(t, c.heading))
			p := mcptest.Start(t, cmd)
			p.Timeout = time.Minute

			init := p.Result("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":%q,"version":"1"}}`, c.protocol, c.capabilities, c.name))
			contains(t, "initialize", string(init), `"protocolVersion":"`+c.protocol+`"`)
			p.Notify("notifications/initialized", "")
			names, _ := listed(t, p)
			slices.Sort(names)
			if want := controlTools("tools"); !slices.Equal(names, want) {
				t.Errorf("tools/list = %v, want %v", names, want)
			}
			for _, method := range c.others {
				p.Call(method, "") // an error or a list, but an answer
			}
			for range 2 {
				id := p.Request("tools/call", `{"name":"tool_call","arguments":{"id":"mcp:shop:weigh_fruit","args":{"text":"pears"}},"_meta":{"progressToken":7}}`)
				contains(t, "tool_call", parseResult(t, p.Answer(id).Result).text(), `"text":"pears"`)
				if c.cancels {
					p.Notify("notifications/cancelled", `{"requestId":`+id+`,"reason":"finished"}`)
				}
			}
			pids := mcptest.PIDs(t, pidFile, 1)
			if c.end == "SIGTERM" {
				terminate(cmd.Process)
			} else {
				_ = p.Close()
			}
			p.AwaitEnd()
			mcptest.Gone(t, 10*time.Second, append(pids, cmd.Process.Pid)...)
		})
	}
}

// TestContentLength: Cline starts a server that was slow a second time and
// frames its messages as a language server's.
func TestContentLength(t *testing.T) {
	h := newHome(t, object{}, object{"toolSearch": object{"mode": "tools"}})
	cmd, _ := h.command("serve", "--config", h.Config)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	message := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"@cline/core","version":"1"}}}`
	if _, err := fmt.Fprintf(in, "Content-Length: %d\r\n\r\n%s", len(message), message); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	var n int
	if _, err := fmt.Fscanf(r, "Content-Length: %d\r\n\r\n", &n); err != nil {
		t.Fatalf("the answer has no Content-Length: %v", err)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		t.Fatal(err)
	}
	contains(t, "answer to initialize", string(body), `"id":1`, `"protocolVersion":"2024-11-05"`)
}

// TestReadmeCommands: the first command that the README names works on a
// machine with nothing but the source.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "README.md", string(readme), "\ngo run ./cmd/toolsearch-mcp demo\n", "\ngo test ./...\n")
	h := newHome(t, object{}, nil)
	cmd := exec.Command(binary(t), "demo")
	cmd.Env, cmd.Dir = h.env(), h.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("demo: %v\n%s", err, out)
	}
	contains(t, "demo", string(out), "132 tools", "tool_search", "tool_describe", "tool_call")
}
