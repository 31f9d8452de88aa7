package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

func TestVariables_OneSyntaxInEveryField(t *testing.T) {
	vars := map[string]string{"TOKEN": "t0k3n-value", "OTHER": "${TOKEN}", "EMPTY": "", "N": "1234"}
	tests := []struct{ in, want string }{
		{"${TOKEN}", "t0k3n-value"},
		{"${env:TOKEN}", "t0k3n-value"},
		{"a${TOKEN}b${N}c", "at0k3n-valueb1234c"},
		{"${MISSING:-none}", "none"},
		{"${MISSING:-}", ""},
		{"${EMPTY:-none}", "none"},
		{"${TOKEN:-none}", "t0k3n-value"},
		{"${OTHER}", "${TOKEN}"}, // once
		{"$TOKEN", "$TOKEN"},
		{"$$", "$$"},
		{"a$b", "a$b"},
		{"$${TOKEN}", "${TOKEN}"},
		{"x $${A:-b} ${N}", "x ${A:-b} 1234"},
		{"%TOKEN%", "%TOKEN%"},
	}
	for _, tt := range tests {
		c := mustLoad(t, `{"mcpServers": {"a": {"command": "c`+tt.in+`", "args": ["`+tt.in+`"], "env": {"K": "`+tt.in+`"}, "cwd": "/w/`+tt.in+`"},
			"b": {"url": "http://h/?`+tt.in+`", "headers": {"X": "`+tt.in+`"}}}}`, vars)
		a, b := c.Servers[0], c.Servers[1]
		if a.Broken != nil || b.Broken != nil {
			t.Errorf("%q: Broken = %v, %v, want none", tt.in, a.Broken, b.Broken)
		}
		got := []string{a.Command, a.Args[0].Reveal(), a.Env["K"].Reveal(), a.Cwd, b.Headers["X"].Reveal()}
		want := []string{"c" + tt.want, tt.want, tt.want, filepath.Clean("/w/" + tt.want), tt.want}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q in every field (-want +got):\n%s", tt.in, diff)
		}
		if got := b.URL.Reveal(); got != "http://h/?"+tt.want {
			t.Errorf("%q in url = %q, want %q", tt.in, got, "http://h/?"+tt.want)
		}
	}
}

func TestVariables_AMissingOneCostsItsServerAlone(t *testing.T) {
	c := mustLoad(t, `
mcpServers:
  good: {command: x}
  bad:
    url: https://h/mcp
    headers:
      Authorization: Bearer ${NOT_THERE}
  empty: {command: "${EMPTY}"}
  number: {command: x, callTimeoutMs: "${NOT_THERE}"}
`, map[string]string{"EMPTY": ""})
	if c.Servers[0].Broken != nil {
		t.Errorf("good: Broken = %v, want none", c.Servers[0].Broken)
	}
	for i, words := range map[int][]string{
		1: {":7: ", "mcpServers.bad.headers.Authorization", "${NOT_THERE}", "set NOT_THERE"},
		2: {":8: ", "mcpServers.empty.command", "${EMPTY}"},
		3: {":9: ", "callTimeoutMs", "${NOT_THERE}"},
	} {
		err := c.Servers[i].Broken
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: Broken = %v, want it to hold %q", c.Servers[i].Name, err, w)
			}
		}
	}
}

func TestVariables_MakeNumbersAndSwitches(t *testing.T) {
	c := mustLoad(t, `
toolSearch: {codeTimeoutMs: "${T:-5000}"}
mcpServers: {a: {command: x, enabled: "${ON:-false}", maxConcurrentCalls: "${N}"}}
`, map[string]string{"N": "3"})
	a := c.Servers[0]
	if c.ToolSearch.CodeTimeoutMs != 5000 || a.Enabled == nil || *a.Enabled || a.MaxConcurrentCalls != 3 {
		t.Errorf("codeTimeoutMs, enabled, maxConcurrentCalls = %d, %v, %d, want 5000, false, 3", c.ToolSearch.CodeTimeoutMs, a.Enabled, a.MaxConcurrentCalls)
	}
}

func TestServer_ValuesThatCannotWorkCostItAlone(t *testing.T) {
	for text, want := range map[string]string{
		"{url: 'https://h', headers: {Authorization: 'Bearer '}}":          "no credentials",
		"{url: 'https://h', headers: {authorization: ''}}":                 "no credentials",
		"{url: 'https://h', headers: {Authorization: 'Bearer ${GONE:-}'}}": "no credentials",
		"{url: 'ftp://h'}":                                                    "http:// or https://",
		"{url: 'https://'}":                                                   "names no host",
		"{url: 'http://h:x/'}":                                                "cannot be read",
		"{url: 'http://h', headers: {X: \"a\\nb\"}}":                          "line break",
		"{command: toolsearch-mcp}":                                           "start itself for ever",
		"{command: /opt/x/toolsearch-mcp.exe}":                                "start itself for ever",
		"{command: go, args: [run, ./cmd/toolsearch-mcp]}":                    "start itself for ever",
		"{command: go, args: [run, example.org/x/cmd/toolsearch-mcp@latest]}": "start itself for ever",
		"{command: go, args: [run, .], cwd: /src/cmd/toolsearch-mcp}":         "start itself for ever",
		"{command: x, env: {TOOLSEARCH_MCP_DEPTH: 0}}":                        "start itself for ever",
		"{url: 'http://h', headers: {Toolsearch-Mcp-Depth: 0}}":               "is ours",
		"{command: x, envFile: gone.env}":                                     "gone.env",
	} {
		c := mustLoad(t, "mcpServers: {a: "+text+", b: {command: x}}", nil)
		if err := c.Servers[0].Broken; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "mcpServers.a") {
			t.Errorf("%s: Broken = %v, want it to name the server and hold %q", text, err, want)
		}
		if err := c.Servers[1].Broken; err != nil {
			t.Errorf("%s: Broken of the other server = %v, want none", text, err)
		}
	}
	for _, text := range []string{
		"{command: npx, args: [-y, server-filesystem, /src/toolsearch-mcp]}",
		"{command: go, args: [run, ./cmd/other]}",
		"{command: go, args: [version]}",
		"{url: 'http://h', headers: {Authorization: 'sometoken'}}",
	} {
		if err := mustLoad(t, "mcpServers: {a: "+text+"}", nil).Servers[0].Broken; err != nil {
			t.Errorf("%s: Broken = %v, want none", text, err)
		}
	}
}

func TestServer_RefusesThisProgramUnderAnotherName(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(exe, filepath.Join(dir, "innocent")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	path := filepath.Join(t.TempDir(), "conf.yaml")
	writeFile(t, path, "mcpServers: {abs: {command: "+filepath.Join(dir, "innocent")+"}, path: {command: innocent, env: {PATH: "+dir+"}}, other: {command: innocent}}")
	c, err := Load(Options{Path: path, Executable: exe})
	if err != nil {
		t.Fatal(err)
	}
	for i, broken := range []bool{true, true, false} {
		if got := c.Servers[i].Broken; (got != nil) != broken {
			t.Errorf("%s: Broken = %v, want one: %v", c.Servers[i].Name, got, broken)
		}
	}
}

func TestServer_OtherProgramsKeys(t *testing.T) {
	yes, no, ms := true, false, func(n int) *int { return &n }
	tests := []struct {
		text string
		want upstreams.Config
	}{
		{"{type: stdio, command: x}", upstreams.Config{Command: "x"}},
		{"{type: local, command: x}", upstreams.Config{Command: "x"}},
		{"{transport: stdio, command: x}", upstreams.Config{Command: "x"}},
		{"{type: http, url: 'http://h'}", upstreams.Config{URL: "http://h", Transport: "http"}},
		{"{type: streamable-http, url: 'http://h'}", upstreams.Config{URL: "http://h", Transport: "http"}},
		{"{type: streamableHttp, url: 'http://h'}", upstreams.Config{URL: "http://h", Transport: "http"}},
		{"{type: STREAMABLE_HTTP, url: 'http://h'}", upstreams.Config{URL: "http://h", Transport: "http"}},
		{"{type: http, transport: streamable-http, url: 'http://h'}", upstreams.Config{URL: "http://h", Transport: "http"}},
		{"{type: sse, url: 'http://h'}", upstreams.Config{URL: "http://h", Transport: "sse"}},
		{"{type: remote, url: 'http://h'}", upstreams.Config{URL: "http://h"}},
		{"{httpUrl: 'http://h'}", upstreams.Config{URL: "http://h"}},
		{"{serverUrl: 'http://h'}", upstreams.Config{URL: "http://h"}},
		{"{command: x, disabled: true}", upstreams.Config{Command: "x", Enabled: &no}},
		{"{command: x, disabled: false}", upstreams.Config{Command: "x", Enabled: &yes}},
		{"{command: x, timeout: 30}", upstreams.Config{Command: "x", CallTimeoutMs: ms(30000)}},
		{"{command: x, timeout: 999}", upstreams.Config{Command: "x", CallTimeoutMs: ms(999000)}},
		{"{command: x, timeout: 1000}", upstreams.Config{Command: "x", CallTimeoutMs: ms(1000)}},
		{"{command: x, includeTools: [a], excludeTools: [b]}", upstreams.Config{Command: "x", ToolFilter: upstreams.ToolFilter{Include: []string{"a"}, Exclude: []string{"b"}}}},
		{"{command: x, args: null, env: null}", upstreams.Config{Command: "x"}},
	}
	for _, tt := range tests {
		c := mustLoad(t, "mcpServers: {a: "+tt.text+"}", nil)
		tt.want.Name = "a"
		if diff := cmp.Diff(tt.want, c.Servers[0]); diff != "" || len(c.Warnings) > 0 {
			t.Errorf("%s (-want +got):\n%swarnings: %q", tt.text, diff, c.Warnings)
		}
	}
	for text, word := range map[string]string{
		"{command: x, enabled: true, disabled: true}":                 "enabled and disabled",
		"{url: 'http://a', httpUrl: 'http://b'}":                      "url and httpUrl",
		"{command: x, includeTools: [a], toolFilter: {include: [b]}}": "toolFilter and includeTools",
		"{command: x, timeout: 5, callTimeoutMs: 6}":                  "callTimeoutMs and timeout",
		"{url: 'http://h', type: sse, transport: http}":               "transport and type",
		"{url: 'http://h', type: stdio}":                              "has no command",
		"{command: x, type: http}":                                    "has a command",
	} {
		wantProblem(t, "mcpServers: {a: "+text+"}", 1, word)
	}
}

func TestServer_IgnoredKeysGiveOneWarning(t *testing.T) {
	c := mustLoad(t, `{"mcpServers": {"a": {"command": "x", "alwaysAllow": ["t"], "autoApprove": [], "gallery": true, "version": "1", "dev": {}, "icon": "i", "alwaysLoad": true}}}`, nil)
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "alwaysAllow, alwaysLoad, autoApprove, dev, gallery, icon, version") {
		t.Errorf("warnings = %q, want one that names the seven keys", c.Warnings)
	}
}

func TestServer_EnvFile(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "x.env"), "\ufeff# comment\r\n\r\nA=1\r\nexport B = two words \r\nC=\"quo ted\" \nD='${NOT}'\nE=plain # comment\nF=\nG=a#b=c\n")
	path := filepath.Join(dir, "conf.yaml")
	writeFile(t, path, "mcpServers: {a: {command: x, envFile: x.env, env: {A: mine}}}")
	c, err := Load(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for k, v := range c.Servers[0].Env {
		got[k] = v.Reveal()
	}
	want := map[string]string{"A": "mine", "B": "two words", "C": "quo ted", "D": "${NOT}", "E": "plain", "F": "", "G": "a#b=c"}
	if diff := cmp.Diff(want, got); diff != "" || c.Servers[0].Broken != nil {
		t.Errorf("env (-want +got):\n%sBroken: %v", diff, c.Servers[0].Broken)
	}

	writeFile(t, filepath.Join(dir, "x.env"), "A=1\ns3cr3t-line without an equals sign")
	if c, err = Load(Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	if got := c.Servers[0].Broken; got == nil || !strings.Contains(got.Error(), "line 2") || strings.Contains(got.Error(), "s3cr3t") {
		t.Errorf("Broken = %v, want line 2 named and not shown", got)
	}
}

func TestServer_NamesOfAnyScript(t *testing.T) {
	c := mustLoad(t, "mcpServers: {Harbour Tools: {command: x}, 仓库: {command: x}, Zoë: {command: x}, Zoé: {command: x}}", nil)
	safe := map[string]bool{}
	for _, s := range c.Servers {
		safe[upstreams.SafeName(s.Name)] = true
	}
	if len(safe) != 4 {
		t.Errorf("safe names = %v, want four different ones", slices.Collect(maps.Keys(safe)))
	}
}

func TestSecrets_HoldEveryConfiguredCredential(t *testing.T) {
	c := mustLoad(t, `
mcpServers:
  a:
    command: x
    args: [-y, "@scope/package", --token=s3cr3t-FOUR, --key, s3cr3t-FIVE, --dir, /data, "${SIX}"]
    env: {HARBOR_KEY: s3cr3t-ONE, PATH: /usr/bin}
    cwd: ${HOME}/x
    inheritEnv: ["${DIR}"]
  b:
    url: https://user:s3cr3t-NINE@h/mcp?key=s3cr3t-THREE&enc=s3cr3t%2FTEN
    headers: {X-Team: s3cr3t-TWO, Authorization: Bearer s3cr3t-SEVEN}
  c: {url: "https://h/${EIGHT}", headers: {A: "${MISSING}"}}
`, map[string]string{"SIX": "s3cr3t-SIX", "EIGHT": "s3cr3t-EIGHT", "HOME": "/home/me", "DIR": t.TempDir()})
	for _, want := range []string{"s3cr3t-ONE", "s3cr3t-TWO", "s3cr3t-THREE", "s3cr3t-FOUR", "s3cr3t-FIVE", "s3cr3t-SIX", "Bearer s3cr3t-SEVEN", "s3cr3t-EIGHT", "s3cr3t-NINE", "s3cr3t/TEN", "s3cr3t%2FTEN"} {
		if !slices.Contains(c.Secrets, want) {
			t.Errorf("Secrets = %q, want %q among them", c.Secrets, want)
		}
	}
	for _, not := range []string{"/data", "@scope/package", "/usr/bin", "/home/me", "-y"} {
		if slices.Contains(c.Secrets, not) {
			t.Errorf("Secrets hold %q, which messages need", not)
		}
	}
	if dir := c.Servers[0].InheritEnv[0]; slices.Contains(c.Secrets, dir) {
		t.Errorf("Secrets hold the folder %q, which messages need", dir)
	}
}

// FuzzLoad: no file makes the loader panic or hang, and an error tells where.
func FuzzLoad(f *testing.F) {
	f.Add("mcpServers: {a: {command: x, env: {A: ${B}}}}")
	f.Add("{\"mcpServers\": {\"a\": {\"url\": \"http://h\"}}}")
	f.Add("a: &a [*a]\n<<: *a\n? [x]\n: y")
	f.Add("policy: {profiles: {p: {allow: [a]}}, allow: ~}\ntoolSearch: {mode: x}")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parse("/c.yaml", []byte(text), Options{LookupEnv: environment(nil)})
		if (c == nil) == (err == nil) {
			t.Fatalf("parse = %v, %v, want exactly one", c, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "/c.yaml") {
			t.Fatalf("error %q does not begin with the file", err)
		}
	})
}
