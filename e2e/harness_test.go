// Package e2e tests the whole binary: real transports, real clients, fake and
// real servers, and the rules of the source tree. It has tests only.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
)

func TestMain(m *testing.M) {
	mcptest.MaybeServe()
	code := m.Run()
	if buildDir != "" {
		_ = os.RemoveAll(buildDir)
	}
	os.Exit(code)
}

// need skips a test for which something is missing, and fails it where all
// must be there: under TOOLSEARCH_E2E, which .ci/run sets.
func need(t testing.TB, there bool, format string, args ...any) {
	t.Helper()
	switch {
	case there:
	case os.Getenv("TOOLSEARCH_E2E") != "":
		t.Fatalf("missing: "+format, args...)
	default:
		t.Skipf("skipped: "+format, args...)
	}
}

// needNode skips without the npm packages of this folder and returns their
// folder of commands.
func needNode(t testing.TB) (bin string) {
	t.Helper()
	bin, err := filepath.Abs("node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	_, missing := os.Stat("node_modules/.package-lock.json") // npm writes it last
	need(t, missing == nil, "npm packages; run npm ci in the folder e2e")
	_, missing = exec.LookPath("node")
	need(t, missing == nil, "node is not in PATH")
	return bin
}

// needData returns the folder of data that is not the project's own.
func needData(t testing.TB, sub string) string {
	t.Helper()
	dir := os.Getenv("TOOLSEARCH_DATA")
	if dir == "" {
		// Absent data is allowed even in CI: the data is not public.
		t.Skipf("skipped: set TOOLSEARCH_DATA to a folder that has %s", sub)
	}
	return filepath.Join(dir, sub)
}

var (
	buildDir string
	build    = sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "toolsearch-mcp-e2e-")
		if err != nil {
			return "", err
		}
		buildDir = dir
		exe := filepath.Join(dir, "toolsearch-mcp")
		if runtime.GOOS == "windows" {
			exe += ".exe"
		}
		cmd := exec.Command("go", "build", "-o", exe, "../cmd/toolsearch-mcp")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build: %w\n%s", err, out)
		}
		return exe, nil
	})
)

// binary builds the program once and returns its path.
func binary(t testing.TB) string {
	t.Helper()
	exe, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// object is a JSON object.
type object = map[string]any

// fake is the configuration of a server that plays a script in a child process.
func fake(t testing.TB, script mcptest.Script) object {
	t.Helper()
	command, env := mcptest.Command(t, script)
	return object{"command": command, "env": env}
}

// with returns a copy of a server's configuration with one more key.
func with(server object, key string, value any) object {
	out := object{key: value}
	for k, v := range server {
		if k != key {
			out[k] = v
		}
	}
	return out
}

// home is a user's own folders: a configuration, a cache, nothing else.
type home struct {
	t      testing.TB
	dir    string
	Config string // path of the configuration file
}

// newHome writes a configuration: its mcpServers and, if not nil, the rest.
func newHome(t testing.TB, servers object, rest object) *home {
	t.Helper()
	h := &home{t: t, dir: t.TempDir()}
	h.Config = filepath.Join(h.dir, "config.yaml")
	config := object{"mcpServers": servers}
	maps.Copy(config, rest)
	h.write(config)
	return h
}

func (h *home) write(config object) {
	h.t.Helper()
	b, err := json.MarshalIndent(config, "", "  ") // JSON is YAML
	if err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(h.Config, b, 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// env is an environment of its own on every system, with PATH for servers.
func (h *home) env() []string {
	env := []string{
		"HOME=" + h.dir, "USERPROFILE=" + h.dir, "LocalAppData=" + h.dir, "AppData=" + h.dir,
		"XDG_CONFIG_HOME=" + filepath.Join(h.dir, ".config"), "XDG_CACHE_HOME=" + filepath.Join(h.dir, ".cache"),
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(),
	}
	if root := os.Getenv("SystemRoot"); root != "" {
		env = append(env, "SystemRoot="+root)
	}
	return env
}

// command returns the program with these arguments, and what it will write to
// stderr.
func (h *home) command(args ...string) (*exec.Cmd, *output) {
	h.t.Helper()
	cmd := exec.Command(binary(h.t), args...)
	cmd.Env = h.env()
	stderr := &output{}
	cmd.Stderr = stderr
	return cmd, stderr
}

// run runs a command to its end and returns its output and exit code.
func (h *home) run(args ...string) (stdout, stderr string, code int) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(h.t), append(args, "--config", h.Config)...)
	cmd.Env = h.env()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	if ctx.Err() != nil {
		h.t.Fatalf("%v did not end; stderr:\n%s", args, problems.String())
	}
	if err != nil && cmd.ProcessState == nil {
		h.t.Fatal(err)
	}
	return out.String(), problems.String(), cmd.ProcessState.ExitCode()
}

// proxy is a running `serve`, seen by a raw client.
type proxy struct {
	*mcptest.Client
	cmd    *exec.Cmd
	stderr *output
}

// serve starts the program and a client that has not initialized yet.
func (h *home) serve(args ...string) *proxy {
	h.t.Helper()
	cmd, stderr := h.command(append([]string{"serve", "--config", h.Config}, args...)...)
	h.t.Cleanup(func() {
		if h.t.Failed() {
			h.t.Logf("stderr of the program:\n%s", stderr.String())
		}
	})
	c := mcptest.Start(h.t, cmd)
	c.Timeout = 2 * time.Minute
	return &proxy{Client: c, cmd: cmd, stderr: stderr}
}

// connect is serve with the handshake done.
func (h *home) connect(args ...string) *proxy {
	h.t.Helper()
	p := h.serve(args...)
	p.Initialize("e2e")
	return p
}

// sandboxTries is how often a test of code mode is begun: on a busy machine
// the sandbox process may take longer than initialize waits for it, and the
// mode is then tools, as promised.
const sandboxTries = 20

// connectCode is connect in code mode.
func (h *home) connectCode(args ...string) *proxy {
	h.t.Helper()
	for range sandboxTries {
		p := h.connect(args...)
		if names, _ := listed(h.t, p.Client); slices.Contains(names, "tool_search_code") {
			return p
		}
		_ = p.Close()
		p.AwaitEnd()
	}
	h.t.Fatalf("code mode fell back to tools mode %d times", sandboxTries)
	return nil
}

// output is a buffer that a process writes while a test reads.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// toolResult is a result of tools/call.
type toolResult struct {
	Content []struct {
		Type, Text, Data, MimeType string
	}
	StructuredContent json.RawMessage
	IsError           bool
	Meta              struct {
		Call struct{ ID, Name, Source, Status, Note string } `json:"toolsearch/call"`
	} `json:"_meta"`

	raw json.RawMessage
}

// text is the text of the first block.
func (r *toolResult) text() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// callTool calls a listed tool; a JSON-RPC error fails the test. The arguments
// are JSON, or a value that is encoded.
func callTool(t testing.TB, c *mcptest.Client, name string, args any) *toolResult {
	t.Helper()
	return parseResult(t, c.Result("tools/call", callParams(t, name, args)))
}

func callParams(t testing.TB, name string, args any) string {
	t.Helper()
	if s, ok := args.(string); ok {
		args = json.RawMessage(s)
	}
	b, err := json.Marshal(object{"name": name, "arguments": args})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func parseResult(t testing.TB, raw json.RawMessage) *toolResult {
	t.Helper()
	r := &toolResult{raw: raw}
	if err := json.Unmarshal(raw, r); err != nil {
		t.Fatalf("result %.300s: %v", raw, err)
	}
	return r
}

// hit is one answer of tool_search.
type hit struct {
	ID, Source, SourceName, Name, Label, Description, Input, Output string
}

// search calls tool_search and returns the hits and the note.
func search(t testing.TB, c *mcptest.Client, query string, limit int) (hits []hit, note string) {
	t.Helper()
	r := callTool(t, c, "tool_search", object{"query": query, "limit": limit})
	if r.IsError {
		t.Fatalf("tool_search %q: %s", query, r.text())
	}
	if err := json.Unmarshal([]byte(r.text()), &hits); err != nil {
		t.Fatalf("tool_search %q = %.300s: %v", query, r.text(), err)
	}
	if len(r.Content) > 1 {
		note = r.Content[1].Text
	}
	return hits, note
}

// script runs a program with tool_search_code.
func script(t testing.TB, c *mcptest.Client, code string) *codeResult {
	t.Helper()
	r := callTool(t, c, "tool_search_code", object{"code": code})
	out := &codeResult{}
	if err := json.Unmarshal([]byte(r.text()), out); err != nil {
		t.Fatalf("tool_search_code = %.500s: %v", r.text(), err)
	}
	return out
}

type codeResult struct {
	OK    bool
	Value json.RawMessage
	Logs  []string
	Error struct{ Kind, Message string }
	Calls []struct{ ID, Status string }

	Telemetry struct {
		CatalogSize, SearchCount, DescribeCount, CallCount int
		Sources                                            map[string]int
	}
}

// listed returns the tools of tools/list and its size in bytes.
func listed(t testing.TB, c *mcptest.Client) (names []string, size int) {
	t.Helper()
	raw := c.Result("tools/list", "")
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, len(raw)
}

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// contains fails the test unless text holds every one of the parts.
func contains(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s = %.600q, want one that holds %q", what, text, p)
		}
	}
}
