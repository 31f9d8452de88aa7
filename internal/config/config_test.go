package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/secret"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// environment looks variables up in a map.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// load parses text as the file conf.yaml of a new folder.
func load(t *testing.T, text string, vars map[string]string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "conf.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(Options{Path: path, LookupEnv: environment(vars)})
}

func mustLoad(t *testing.T, text string, vars map[string]string) *Config {
	t.Helper()
	c, err := load(t, text, vars)
	if err != nil {
		t.Fatalf("Load(%q) = %v, want no error", text, err)
	}
	return c
}

// wantProblem checks that the file is refused in this line with these words.
func wantProblem(t *testing.T, text string, line int, words ...string) {
	t.Helper()
	c, err := load(t, text, nil)
	var bad *Error
	if !errors.As(err, &bad) {
		t.Errorf("Load(%q) = %+v, %v, want an *Error", text, c, err)
		return
	}
	for _, p := range bad.Problems {
		all := p.Line == line
		for _, w := range words {
			all = all && strings.Contains(p.Text, w)
		}
		if all {
			return
		}
	}
	t.Errorf("Load(%q) = %v, want line %d with %q", text, err, line, words)
}

func TestLoad_DefaultsAreThoseOfTheContract(t *testing.T) {
	c := mustLoad(t, "mcpServers: {a: {command: x}}", nil)
	s := c.ToolSearch
	got := []any{s.Mode, s.CodeTimeoutMs, s.SearchDefaultLimit, s.MaxSearchLimit, s.MaxNameLength, s.MaxAnswerChars, s.Directory.MaxChars, len(s.Directory.Pinned), c.CodeBridge.TimeoutMs}
	want := []any{"code", 10000, 8, 20, 42, 8000, 1900, 0, 10000}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if c.Policy.Allow != nil || c.Policy.Deny != nil || c.Telemetry.Log != "" || len(c.Warnings) != 0 {
		t.Errorf("policy, telemetry, warnings = %+v, %+v, %q, want none", c.Policy, c.Telemetry, c.Warnings)
	}
}

func TestLoad_ToolSearchSwitch(t *testing.T) {
	for text, want := range map[string]string{
		"toolSearch: true":                 "code",
		"toolSearch: false":                "off",
		"toolSearch: {}":                   "code",
		"toolSearch: {maxSearchLimit: 9}":  "code",
		"toolSearch: {mode: tools}":        "tools",
		"toolSearch: {mode: off}":          "off",
		"toolSearch: {mode: directory}":    "directory",
		"tools: {toolSearch: false}":       "off",
		"tools: {toolSearch: {mode: off}}": "off",
		"{}":                               "code",
	} {
		if got := mustLoad(t, text, nil).ToolSearch.Mode; got != want {
			t.Errorf("Load(%q): mode = %q, want %q", text, got, want)
		}
	}
}

func TestLoad_ClampsWithAWarning(t *testing.T) {
	c := mustLoad(t, `
toolSearch: {codeTimeoutMs: 0, searchDefaultLimit: 30, maxSearchLimit: 90, maxNameLength: 5, maxAnswerChars: 1, directory: {maxChars: 99999}}
codeBridge: {maxOutputBytes: 1, memoryBytes: 999999999999}
mcpServers: {a: {command: x}}
`, nil)
	s := c.ToolSearch
	got := []int{s.CodeTimeoutMs, s.SearchDefaultLimit, s.MaxSearchLimit, s.MaxNameLength, s.MaxAnswerChars, s.Directory.MaxChars, c.CodeBridge.MaxOutputBytes, c.CodeBridge.MemoryBytes}
	want := []int{1000, 30, 50, 32, 4000, 18000, 1 << 10, 512 << 20}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("clamped values (-want +got):\n%s", diff)
	}
	all := strings.Join(c.Warnings, "\n")
	for _, w := range []string{"codeTimeoutMs: 0 is outside", "maxSearchLimit: 90 is", "maxNameLength: 5 is", "maxAnswerChars: 1 is", "maxChars: 99999 is", "maxOutputBytes: 1 is", "memoryBytes: 999999999999 is"} {
		if !strings.Contains(all, w) {
			t.Errorf("warnings = %s\nwant one with %q", all, w)
		}
	}
}

func TestLoad_RefusesWithLineAndNearestKey(t *testing.T) {
	tests := []struct {
		text  string
		line  int
		words []string
	}{
		{"polcy: {deny: [x]}", 1, []string{`unknown key "polcy"`, `did you mean "policy"?`}},
		{"mcpServers:\n  a:\n    comand: x", 3, []string{`"mcpServers.a.comand"`, `did you mean "command"?`}},
		{"mcpServers: {a: {command: x, call_timeout_ms: 3}}", 1, []string{`did you mean "callTimeoutMs"?`}},
		{"policy:\n  aprovals: []", 2, []string{`unknown key "policy.aprovals"`}},
		{"zzz: 1", 1, []string{"known here are codeBridge, mcpServers"}},
		{"http: {listen: x}", 1, []string{"does not have it yet"}},
		{"audit: {file: x}", 1, []string{"does not have it yet"}},
		{"policy: {approve: []}", 1, []string{"does not have it yet"}},
		{"mcpServers: {a: {command: x, lazy: true}}", 1, []string{"does not have it yet"}},
		{"files: {command: npx}", 1, []string{`under "mcpServers"`}},
		{"policy:\n  deny: [a]\n  deny: [b]", 3, []string{`"deny" is there already in line 2`}},
		{"mcpServers:\n  a: {command: x}\n  a: {command: y}", 3, []string{`"a" is there already`}},
		{"mcpServers:\n  Files: {command: x}\n  files: {command: y}", 3, []string{"differ only by case"}},
		{"mcpServers: {a: {command: x}}\nservers: {b: {command: x}}", 2, []string{"the same section"}},
		{"toolSearch: true\ntools: {toolSearch: true}", 2, []string{"the same section"}},
		{"toolSearch: on", 1, []string{"true, false or a mapping"}},
		{"toolSearch:", 1, []string{"true, false or a mapping"}},
		{"toolSearch: {mode: tool}", 1, []string{`did you mean "tools"?`}},
		{`toolSearch: {codeTimeoutMs: "5000"}`, 1, []string{"a whole number", `the text "5000"`}},
		{"toolSearch: {codeTimeoutMs: 1e3}", 1, []string{"a whole number"}},
		{"toolSearch: {codeTimeoutMs: -5}", 1, []string{"at least 0"}},
		{"mcpServers: [a]", 1, []string{"must be a mapping", "not a list"}},
		{"mcpServers: {a: npx}", 1, []string{"mcpServers.a must be a mapping"}},
		{"mcpServers: {a: }", 1, []string{"mcpServers.a has no value"}},
		{"mcpServers: {a: {command: 7}}", 1, []string{"command must be a text, not the number 7"}},
		{"mcpServers: {a: {command: [npx, -y]}}", 1, []string{"the rest of the list under args"}},
		{"mcpServers: {a: {command: x, args: -y}}", 1, []string{"args must be a list"}},
		{"mcpServers: {a: {command: x, enabled: yes}}", 1, []string{`must be true or false, not the text "yes"`}},
		{"mcpServers: {a: {command: x, env: {NONE: null}}}", 1, []string{"mcpServers.a.env.NONE has no value", `write ""`}},
		{"mcpServers: {a: {command: x, env: {L: [1]}}}", 1, []string{"env.L must be a text or a number, not a list"}},
		{"mcpServers: {a: {command: x, env: {'A=B': 1}}}", 1, []string{"cannot be the name of a variable"}},
		{"mcpServers: {a: {}}", 1, []string{"neither command nor url"}},
		{"mcpServers: {a: {command: x, url: 'http://h'}}", 1, []string{"both command and url"}},
		{"mcpServers: {a: {command: x, headers: {A: b}}}", 1, []string{"headers belong to url"}},
		{"mcpServers: {a: {url: 'http://h', args: [b]}}", 1, []string{"belong to command"}},
		{"mcpServers: {a: {url: 'http://h', headers: {'A b': c}}}", 1, []string{"cannot be the name of a header"}},
		{"mcpServers: {a: {url: 'http://h', transport: ws}}", 1, []string{"want http or sse"}},
		{"mcpServers: {a: {command: x, trust: true}}", 1, []string{"none, schema or full"}},
		{"mcpServers: {a: {command: x, trust: ful}}", 1, []string{`did you mean "full"?`}},
		{"mcpServers: {a: {url: 'http://h', headersHelper: x}}", 1, []string{"headers: {Authorization:"}},
		{"mcpServers: {a: {url: 'http://h', auth: {CLIENT_ID: x}}}", 1, []string{"this version has no login", "headers: {Authorization:"}},
		{"numStartups: 3\nmcpServers: {}\nuserID: x\ntipsHistory: {}", 1, []string{`unknown key "numStartups": paste only the mcpServers block`}},
		{"mcpServers: {a: {command: x, environment: {}}}", 1, []string{`write "env"`}},
		{"inputs: []\nservers: {}", 1, []string{"${NAME} in place of ${input:"}},
		{"mcpServers: {a: {command: x, env: {K: '${input:key}'}}}", 1, []string{"${input:key}", "set NAME in the environment"}},
		{"mcpServers: {a: {command: x, args: ['${workspaceFolder}/x']}}", 1, []string{"write the path itself"}},
		{"mcpServers: {a: {command: x, args: ['${}']}}", 1, []string{"is no variable", "$${"}},
		{"mcpServers: {a: {command: x, args: ['${A']}}", 1, []string{`has no "}"`}},
		{"mcpServers: {a: {command: x, args: ['${A:-${B}}']}}", 1, []string{"is no variable"}},
		{"policy: {allow: }", 1, []string{"policy.allow has no value", "write [] for nothing"}},
		{"policy: {deny: mcp:a:*}", 1, []string{"policy.deny must be a list"}},
		{"policy: {deny: ['']}", 1, []string{"is empty or has blanks"}},
		{"policy: {profiles: [a]}", 1, []string{"must be a mapping of profile names"}},
		{"policy: {profiles: {p: {mode: fast}}}", 1, []string{"want one of code, tools"}},
		{"policy: {deny: ['${MISSING}']}", 1, []string{"policy.deny[0]", "${MISSING} is not set"}},
		{"telemetry: {log: '${MISSING}'}", 1, []string{"telemetry.log", "${MISSING} is not set"}},
		{"mcpServers:\n\ta:\n\t\tcommand: x", 2, []string{"indented with a tab"}},
		{"a: [1", 1, []string{"is not valid YAML"}},
		{"a: 1\n---\nb: 2", 2, []string{"second document"}},
		{"", 0, []string{"is empty"}},
		{"# only a comment\n", 0, []string{"is empty"}},
		{"- a", 1, []string{"must be a mapping"}},
		{"mcpServers: {a: {command: !!binary aGk=}}", 1, []string{"tags are not used"}},
		{"mcpServers: {a: {command: !x y}}", 1, []string{"tags are not used"}},
		{"? [a]\n: b", 1, []string{"a key that is no text"}},
		{"{ // mine\n \"mcpServers\": {}}", 1, []string{`comments begin with "#"`}},
		{"{\n \"mcpServers\": {\"a\": {\"url\": \"http://h/x\"}} /* end */}", 2, []string{`comments begin with "#"`}},
		{"\xff\xfem\x00c\x00", 0, []string{"UTF-16"}},
		{"m\x00c\x00p\x00", 0, []string{"UTF-16"}},
		{"mcpServers: {}\n\x00", 2, []string{"NUL"}},
		{"mcpServers: {}\n# caf\xe9", 2, []string{"not UTF-8"}},
		{"mcpServers: {}\n# \x1b[0m", 2, []string{"U+001B"}},
		{"mcpServers:\n  a: {url: x, headers: {A: ${X}}}", 2, []string{"put quotes around a value"}},
		{"mcpServers:\n  a: b: c", 2, []string{"is not valid YAML"}},
	}
	for _, tt := range tests {
		wantProblem(t, tt.text, tt.line, tt.words...)
	}
}

func TestLoad_ReportsEveryProblemInOrder(t *testing.T) {
	_, err := load(t, "zzz: 1\nmcpServers: {a: {comand: x}}\npolicy: {deny: 3}", nil)
	var bad *Error
	if !errors.As(err, &bad) {
		t.Fatalf("Load = %v, want an *Error", err)
	}
	var lines []int
	for _, p := range bad.Problems {
		lines = append(lines, p.Line)
	}
	if diff := cmp.Diff([]int{1, 2, 3}, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s\n%v", diff, err)
	}
	if !strings.Contains(err.Error(), bad.Path+":2: ") {
		t.Errorf("Error() = %q, want file:line before each problem", err)
	}
}

func TestLoad_BoundsAliases(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		prev := string(rune('0' + i - 1))
		bomb += "a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " [" + strings.Repeat("*a"+prev+", ", 9) + "*a" + prev + "]\n"
	}
	_, err := load(t, bomb, nil)
	if err == nil || !strings.Contains(err.Error(), "grows too large") {
		t.Errorf("Load(alias bomb) = %v, want that it grows too large", err)
	}
	_, err = load(t, "a: &a [*a]", nil)
	if err == nil || !strings.Contains(err.Error(), "grows too large") {
		t.Errorf("Load(alias of itself) = %v, want that it grows too large", err)
	}
}

func TestLoad_AnchorsAndMergeKeysWork(t *testing.T) {
	c := mustLoad(t, `
mcpServers:
  a: &base
    command: x
    env: &env {A: 1, B: 2}
  b:
    <<: *base
    args: [y]
    env: {<<: *env, B: 3}
`, nil)
	b := c.Servers[1]
	if b.Command != "x" || b.Env["A"].Reveal() != "1" || b.Env["B"].Reveal() != "3" || c.Servers[0].Env["B"].Reveal() != "2" {
		t.Errorf("merged server = %q with A=%q B=%q", b.Command, b.Env["A"].Reveal(), b.Env["B"].Reveal())
	}
}

func TestLoad_ScalarsStayAsWritten(t *testing.T) {
	c := mustLoad(t, `
mcpServers:
  a:
    command: x
    args: [--depth, 3, 1e3, true]
    env: {PORT: 8080, DEBUG: true, RATE: 1e3, ZIP: 01234, COUNTRY: NO, PIN: 0o17, DAY: 2026-11-29, EMPTY: ""}
`, nil)
	got := map[string]string{}
	for k, v := range c.Servers[0].Env {
		got[k] = v.Reveal()
	}
	want := map[string]string{"PORT": "8080", "DEBUG": "true", "RATE": "1e3", "ZIP": "01234", "COUNTRY": "NO", "PIN": "0o17", "DAY": "2026-11-29", "EMPTY": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"--depth", "3", "1e3", "true"}, reveal(c.Servers[0].Args)); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
}

func reveal(list []secret.String) []string {
	var out []string
	for _, s := range list {
		out = append(out, s.Reveal())
	}
	return out
}

func TestLoad_AcceptsWhatOtherProgramsWrite(t *testing.T) {
	c := mustLoad(t, "\ufeff{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\"command\": \"x\", \"args\": [\"\\ud83d\\ude00 \\\\ud83d \\u00e9 \\/\"]}}}\r\n", nil)
	if got := c.Servers[0].Args[0].Reveal(); got != "😀 \\ud83d é /" {
		t.Errorf("args[0] = %q, want the characters of the escapes", got)
	}
	c = mustLoad(t, `{"mcpServers": {"a": {"command": "x", "args": ["y",],},},}`, nil)
	if got := c.Servers[0]; got.Command != "x" || len(got.Args) != 1 {
		t.Errorf("trailing commas: server = %q %q, want x y", got.Command, reveal(got.Args))
	}
	c = mustLoad(t, "mcpServers:\r\n  a:\r\n    command: x # c\r\n    args:\r\n      - y\r\n", nil)
	if got := c.Servers[0]; got.Command != "x" || got.Args[0].Reveal() != "y" {
		t.Errorf("CRLF: server = %q %q, want x y", got.Command, reveal(got.Args))
	}
}

func TestFind_NeverLooksAtTheWorkingFolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"config.yaml", "toolsearch-mcp.yaml", ".toolsearch-mcp/config.yaml", "toolsearch-mcp/config.yaml"} {
		writeFile(t, filepath.Join(dir, name), "mcpServers: {evil: {command: evil}}")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "cfg"))
	t.Setenv("AppData", filepath.Join(home, "cfg"))
	userDir, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	user := filepath.Join(userDir, "toolsearch-mcp", "config.yaml")
	other := filepath.Join(dir, "other.yaml")

	var missing *NotFoundError
	if got, err := Find(Options{LookupEnv: environment(nil)}); !errors.As(err, &missing) || !slices.Contains(missing.Looked, user) {
		t.Errorf("Find() = %q, %v, want a *NotFoundError that names %s", got, err, user)
	}
	writeFile(t, user, "mcpServers: {}")
	if got, err := Find(Options{LookupEnv: environment(nil)}); err != nil || got != user {
		t.Errorf("Find() = %q, %v, want %q", got, err, user)
	}
	env := environment(map[string]string{EnvPath: other})
	if got, err := Find(Options{LookupEnv: env}); !errors.As(err, &missing) {
		t.Errorf("Find($%s is missing) = %q, %v, want a *NotFoundError and not the user's file", EnvPath, got, err)
	}
	writeFile(t, other, "mcpServers: {}")
	if got, err := Find(Options{LookupEnv: env}); err != nil || got != other {
		t.Errorf("Find($%s) = %q, %v, want %q", EnvPath, got, err, other)
	}
	if got, err := Find(Options{Path: "config.yaml", LookupEnv: env}); err != nil || got != filepath.Join(dir, "config.yaml") {
		t.Errorf("Find(--config config.yaml) = %q, %v, want it in the working folder", got, err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLoad_PathsAreRelativeToTheFile(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	c := mustLoad(t, `
telemetry: {log: logs/calls.jsonl}
mcpServers:
  a: {command: ./bin/x, cwd: data, args: [./stays]}
  b: {command: npx, cwd: ~/b}
  c: {command: ~/bin/c, cwd: "~"}
`, nil)
	dir := filepath.Dir(c.Path)
	got := []string{c.Telemetry.Log, c.Servers[0].Command, c.Servers[0].Cwd, c.Servers[0].Args[0].Reveal(), c.Servers[1].Command, c.Servers[1].Cwd, c.Servers[2].Command, c.Servers[2].Cwd}
	want := []string{
		filepath.Join(dir, "logs", "calls.jsonl"), filepath.Join(dir, "bin", "x"), filepath.Join(dir, "data"), "./stays",
		"npx", filepath.Join(home, "b"), filepath.Join(home, "bin", "c"), home,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestLoad_Policy(t *testing.T) {
	c := mustLoad(t, `
policy:
  allow: []
  deny: ["mcp:files:write_*"]
  profiles:
    zeta: {clients: ["cursor*"], deny: ["mcp:*:create_*"], mode: tools}
    alpha: {allow: []}
`, nil)
	want := policy.Rules{
		Allow: []string{}, Deny: []string{"mcp:files:write_*"},
		Profiles: []policy.Profile{
			{Name: "zeta", Clients: []string{"cursor*"}, Deny: []string{"mcp:*:create_*"}, Mode: "tools"},
			{Name: "alpha", Allow: []string{}},
		},
	}
	if diff := cmp.Diff(want, c.Policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
}

func TestLoad_EveryServerKey(t *testing.T) {
	c := mustLoad(t, `
mcpServers:
  a:
    url: https://h/mcp
    transport: sse
    headers: {X-Team: t}
    enabled: false
    description: one line
    trust: full
    catalogMode: direct-only
    tools: {shot: {catalogMode: search}}
    toolFilter: {include: ["*"], exclude: ["admin_*"]}
    validateArguments: warn
    supportsParallelToolCalls: true
    maxConcurrentCalls: 2
    maxResultBytes: 1000
    startTimeoutMs: 3
    callTimeoutMs: 0
`, nil)
	no, zero := false, 0
	want := upstreams.Config{
		Name: "a", URL: "https://h/mcp", Transport: "sse", Headers: map[string]secret.String{"X-Team": "t"},
		Enabled: &no, Description: "one line", Trust: upstreams.TrustFull, CatalogMode: "direct-only",
		Tools:             map[string]upstreams.ToolConfig{"shot": {CatalogMode: "search"}},
		ToolFilter:        upstreams.ToolFilter{Include: []string{"*"}, Exclude: []string{"admin_*"}},
		ValidateArguments: "warn", SupportsParallelToolCalls: true, MaxConcurrentCalls: 2,
		MaxResultBytes: 1000, StartTimeoutMs: 3, CallTimeoutMs: &zero,
	}
	if diff := cmp.Diff(want, c.Servers[0]); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
}
