package upstreams

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/secret"
)

func TestConfig_Validate(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want string // part of the error; "": none
	}{
		{"command", Config{Name: "x", Command: "npx"}, ""},
		{"url", Config{Name: "x", URL: "https://example.com/mcp", Transport: "sse"}, ""},
		{"broken", Config{Name: "x", Broken: errors.New("variable TOKEN is empty")}, ""},
		{"everything set", Config{Name: "x", Command: "a", Trust: TrustFull, CatalogMode: "direct-only", ValidateArguments: "off", CallTimeoutMs: new(0), Tools: map[string]ToolConfig{"t": {CatalogMode: "search"}}}, ""},

		{"no name", Config{Command: "npx"}, `server "": a server needs a name`},
		{"no way", Config{Name: "x"}, `server "x": it has neither command nor url, write one of them`},
		{"two ways", Config{Name: "x", Command: "a", URL: "http://b"}, "it has both command and url"},
		{"not http", Config{Name: "x", URL: "ftp://user:hunter2@b/"}, "url must begin with http:// or https://"},
		{"no host", Config{Name: "x", URL: "https:///mcp"}, "name a host"},
		{"transport", Config{Name: "x", URL: "http://b", Transport: "websocket"}, `transport is "websocket", want http or sse`},
		{"transport of a command", Config{Name: "x", Command: "a", Transport: "http"}, "transport belongs to url"},
		{"headers of a command", Config{Name: "x", Command: "a", Headers: map[string]secret.String{"A": "b"}}, "headers belong to url"},
		{"args of a url", Config{Name: "x", URL: "http://b", Args: []secret.String{"a"}}, "belong to command"},
		{"trust", Config{Name: "x", Command: "a", Trust: "yes"}, `trust is "yes", want none or schema or full`},
		{"catalogMode", Config{Name: "x", Command: "a", CatalogMode: "hidden"}, `catalogMode is "hidden", want search or direct-only`},
		{"catalogMode of a tool", Config{Name: "x", Command: "a", Tools: map[string]ToolConfig{"t": {CatalogMode: "?"}}}, `tools.t.catalogMode is "?"`},
		{"validateArguments", Config{Name: "x", Command: "a", ValidateArguments: "yes"}, `validateArguments is "yes", want error or warn or off`},
		{"negative", Config{Name: "x", Command: "a", StartTimeoutMs: -1}, "startTimeoutMs is -1, want 0 or more"},
		{"negative limit", Config{Name: "x", Command: "a", CallTimeoutMs: new(-5)}, "callTimeoutMs is -5"},
	} {
		err := c.cfg.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Validate() = %v, want %q", c.name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: Validate() tells a secret: %v", c.name, err)
		}
	}
	if err := (&Config{Trust: "x", MaxResultBytes: -1}).Validate(); strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("Validate() of an entry with four mistakes = %v", err)
	}
}

func TestValidateAll(t *testing.T) {
	entry := func(name string) Config { return Config{Name: name, Command: "a"} }
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"a", "b", "A b"}, ""},
		{[]string{"git", "Git"}, `servers "git" and "Git" differ only by case`},
		{[]string{"git", "git"}, `server "git" is configured twice`},
		{[]string{"my server", SafeName("my server")}, "have the same safe name"},
	} {
		var configs []Config
		for _, n := range c.names {
			configs = append(configs, entry(n))
		}
		err := validateAll(configs)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("validateAll(%q) = %v, want %q", c.names, err, c.want)
		}
	}
}

// Every field counts when configurations are compared and hashed, secrets too.
func TestConfig_Fingerprint(t *testing.T) {
	base := Config{Name: "x"}
	v := reflect.ValueOf(&base).Elem()
	for i := range v.NumField() {
		changed := base
		f := reflect.ValueOf(&changed).Elem().Field(i)
		name := v.Type().Field(i).Name
		switch f.Kind() {
		case reflect.String:
			f.SetString("changed")
		case reflect.Int:
			f.SetInt(7)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			f.Index(0).SetString("changed")
		case reflect.Map:
			m := reflect.MakeMap(f.Type())
			m.SetMapIndex(reflect.ValueOf("changed"), reflect.New(f.Type().Elem()).Elem())
			f.Set(m)
		case reflect.Struct:
			changed.ToolFilter.Include = []string{}
		case reflect.Interface:
			changed.Broken = errors.New("changed")
		case reflect.Func:
			changed.Dial = base.Dial
			continue
		default:
			t.Fatalf("no rule for field %s of kind %s", name, f.Kind())
		}
		if changed.equal(&base) {
			t.Errorf("a change of %s is not seen", name)
		}
	}
	a, b := base, base
	a.Env, b.Env = map[string]secret.String{"T": "one"}, map[string]secret.String{"T": "two"}
	if a.equal(&b) {
		t.Error("two secrets are taken for equal")
	}
	b.Env = map[string]secret.String{"T": "one"}
	if !a.equal(&b) {
		t.Error("equal configurations are taken for different")
	}
}

func TestToolFilter(t *testing.T) {
	for _, c := range []struct {
		filter ToolFilter
		tool   string
		want   bool
	}{
		{ToolFilter{}, "a", true},
		{ToolFilter{Include: []string{}}, "a", false},
		{ToolFilter{Include: []string{"*"}, Exclude: []string{"admin_*"}}, "admin_x", false},
		{ToolFilter{Include: []string{"*"}, Exclude: []string{"admin_*"}}, "x_admin_", true},
		{ToolFilter{Include: []string{"get_*", "list"}}, "list", true},
		{ToolFilter{Include: []string{"get_*", "list"}}, "lists", false},
		{ToolFilter{Include: []string{"*_file"}}, "read_file", true},
		{ToolFilter{Include: []string{"a*b*c"}}, "a/xx:b\nc", true},
		{ToolFilter{Include: []string{"a*b*c"}}, "acb", false},
		{ToolFilter{Include: []string{"a*a"}}, "a", false},
		{ToolFilter{Include: []string{"A*"}}, "a", false},
		{ToolFilter{Include: []string{"[ab]?"}}, "[ab]?", true},
		{ToolFilter{Include: []string{"**"}}, "", true},
	} {
		if got := c.filter.admits(c.tool); got != c.want {
			t.Errorf("%+v admits %q = %v, want %v", c.filter, c.tool, got, c.want)
		}
	}
}

func TestMatchPattern(t *testing.T) {
	tests := []struct {
		pattern, s string
		want       bool
	}{
		{"mcp:a:b", "mcp:a:b", true}, {"mcp:a:b", "mcp:a:bc", false}, {"*", "", true},
		{"mcp:*:delete_*", "mcp:x:y:delete_all", true}, {"mcp:a:*x*", "mcp:a:axb", true},
		{"a*a", "a", false}, {"a*b*c", "acb", false}, {"A*", "ab", false},
	}
	for _, tt := range tests {
		if got := MatchPattern(tt.pattern, tt.s); got != tt.want {
			t.Errorf("MatchPattern(%q, %q) = %v, want %v", tt.pattern, tt.s, got, tt.want)
		}
	}
}
