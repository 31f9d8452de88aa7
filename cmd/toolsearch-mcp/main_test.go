package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolsearch-mcp/toolsearch-mcp/aggregator"
	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/config"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
)

// TestMain is also every process that the tests start: the program, its
// workers and guardians, and the fake servers.
func TestMain(m *testing.M) {
	codebridge.MaybeWorker()
	mcptest.MaybeServe()
	// The fake servers are the same executable as the program here.
	executable = func() (string, error) { return "", errors.New("not compared in tests") }
	testscript.Main(m, map[string]func(){"toolsearch-mcp": main})
}

// TestScripts plays the command lines of testdata/script. In them ${FAKE} is
// the command of a fake server, which plays the script that MCPTEST_SCRIPT
// names.
func TestScripts(t *testing.T) {
	fake, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("FAKE", fake)
			for name, dir := range map[string]string{
				"HOME": "home", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache",
				"USERPROFILE": "home", "AppData": "config", "LocalAppData": "cache",
			} {
				env.Setenv(name, filepath.Join(env.WorkDir, dir))
			}
			return os.MkdirAll(filepath.Join(env.WorkDir, "home"), 0o700)
		},
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
	})
}

// command runs one command line in this process.
func command(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestRun_ExitCodes(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for file, text := range map[string]string{good: "toolSearch: {mode: tools}\n", bad: "mcpServers: {a: {comand: x}}\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		args   string
		want   int
		stderr string
	}{
		{"version", 0, ""},
		{"--version", 0, ""},
		{"--help", 0, ""},
		{"help check", 0, ""},
		{"serch x", 2, "or search?"},
		{"frobnicate", 2, "unknown command"},
		{"--frobnicate", 2, "unknown flag"},
		{"serve --http", 2, "unknown flag"},
		{"serve extra", 2, `unexpected argument "extra"`},
		{"search", 2, "QUERY is missing"},
		{"describe", 2, "ID is missing"},
		{"call", 2, "ID is missing"},
		{"call a {} b", 2, `unexpected argument "b"`},
		{"call a [1] --config " + good, 2, "must be a JSON object"},
		{"serve --mode fast --config " + good, 2, `mode "fast"`},
		{"serve --log-level loud --config " + good, 2, "loud"},
		{"check --log-format xml --config " + good, 2, "xml"},
		{"serve --profile nobody --config " + good, 1, `no profile is called "nobody"`},
		{"serve --config " + bad, 1, `did you mean "command"?`},
		{"check --config " + bad, 1, `did you mean "command"?`},
		{"search x --config " + filepath.Join(dir, "none.yaml"), 1, "toolsearch-mcp demo"},
		{"code " + filepath.Join(dir, "none.js") + " --config " + good, 1, "none.js"},
		{"check --config " + good, 0, ""},
		{"serve --config " + good, 0, ""},
	}
	for _, tt := range tests {
		code, _, stderr := command(t, "", strings.Fields(tt.args)...)
		if code != tt.want || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("toolsearch-mcp %s = %d, %q, want %d and %q", tt.args, code, stderr, tt.want, tt.stderr)
		}
	}
}

func TestServe_EndsAtOnceAsAServerOfItself(t *testing.T) {
	t.Setenv("TOOLSEARCH_MCP_DEPTH", "1")
	code, stdout, stderr := command(t, "", "serve", "--config", filepath.Join(t.TempDir(), "none.yaml"))
	if code != 1 || stdout != "" || !strings.Contains(stderr, "started by another one") {
		t.Errorf("serve inside of serve = %d, %q, %q, want 1 and why", code, stdout, stderr)
	}
}

func TestServe_EndsWithItsContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("mcpServers: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	client, in, out := mcptest.Pipe(t)
	ended := make(chan int)
	go func() { ended <- run(ctx, []string{"--config", file}, in, out, new(bytes.Buffer)) }()
	client.Initialize("test")
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("serve ended by a signal = %d, want 0", code)
	}
}

func TestChooser_FlagsBeforeProfilesBeforeTheConfiguration(t *testing.T) {
	rules := policy.Rules{Profiles: []policy.Profile{
		{Name: "reviewer", Clients: []string{"cursor*"}, Mode: "tools"},
		{Name: "plain", Clients: []string{"codex*"}},
	}}
	pol, err := policy.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{ToolSearch: aggregator.Settings{Mode: "directory"}, Policy: rules}
	tests := []struct{ profileFlag, modeFlag, client, profile, mode string }{
		{"", "", "claude", "", "directory"},
		{"", "", "cursor-vscode", "reviewer", "tools"},
		{"", "", "codex-mcp-client", "plain", "directory"},
		{"", "off", "cursor-vscode", "reviewer", "off"},
		{"plain", "", "cursor-vscode", "plain", "directory"},
	}
	for _, tt := range tests {
		a := &app{profile: tt.profileFlag, mode: tt.modeFlag}
		profile, mode, err := a.chooser(cfg, pol)(tt.client)
		if err != nil || profile != tt.profile || mode != tt.mode {
			t.Errorf("--profile %q --mode %q, client %q = %q, %q, %v, want %q, %q", tt.profileFlag, tt.modeFlag, tt.client, profile, mode, err, tt.profile, tt.mode)
		}
	}
	if _, _, err := (&app{profile: "gone"}).chooser(cfg, pol)("x"); err == nil {
		t.Error("--profile gone = nil, want an error")
	}
}
