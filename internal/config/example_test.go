package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/toolsearch-mcp/toolsearch-mcp/aggregator"
	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

const (
	examplePath = "../../config.example.yaml"
	docsPath    = "../../docs/configuration.md"
)

// everyVariable pretends that every variable is set.
func everyVariable(name string) (string, bool) { return "value-of-" + name, true }

// keysOf lists the keys of a settings struct and of those inside it, by their
// yaml tags.
func keysOf(t reflect.Type, at string, keys map[string]bool) {
	for f := range t.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key == "-" || key == "" {
			continue
		}
		keys[at+key] = true
		switch elem := f.Type; {
		case elem.Kind() == reflect.Struct:
			keysOf(elem, at+key+".", keys)
		case elem.Kind() == reflect.Map && elem.Elem().Kind() == reflect.Struct:
			keysOf(elem.Elem(), at+key+".*.", keys)
		}
	}
}

// everyKey is what the packages' settings can say.
func everyKey() map[string]bool {
	keys := map[string]bool{"policy.profiles": true}
	for at, settings := range map[string]any{
		"toolSearch.": aggregator.Settings{}, "codeBridge.": codebridge.Config{},
		"mcpServers.*.": upstreams.Config{}, "policy.": policy.Rules{},
		"policy.profiles.*.": policy.Profile{}, "telemetry.": Telemetry{},
	} {
		keysOf(reflect.TypeOf(settings), at, keys)
	}
	return keys
}

func TestExampleConfig_HasEveryKeyAndTrueDefaults(t *testing.T) {
	c, err := Load(Options{Path: examplePath, LookupEnv: everyVariable})
	if err != nil {
		t.Fatalf("Load(config.example.yaml) = %v, want no error", err)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("warnings = %q, want none", c.Warnings)
	}

	data, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{"mcpServers.*.tools.*.catalogMode": true} // in a comment: the default is no tool
	walkKeys(root.Content[0], "", there)
	for key := range everyKey() {
		if !there[key] {
			t.Errorf("config.example.yaml does not show %s", key)
		}
	}

	defaults := mustLoad(t, "mcpServers: {}", nil)
	if diff := cmp.Diff(defaults.ToolSearch, c.ToolSearch, cmp.Transformer("len", func(s []string) int { return len(s) })); diff != "" {
		t.Errorf("toolSearch differs from its defaults (-default +example):\n%s", diff)
	}
	if diff := cmp.Diff(defaults.CodeBridge, c.CodeBridge); diff != "" {
		t.Errorf("codeBridge differs from its defaults (-default +example):\n%s", diff)
	}
	if c.Telemetry != defaults.Telemetry {
		t.Errorf("telemetry = %+v, want the default %+v", c.Telemetry, defaults.Telemetry)
	}
	s := c.Servers[1]
	got := []any{*s.Enabled, s.Description, s.Trust, s.CatalogMode, s.ValidateArguments, s.SupportsParallelToolCalls, s.MaxConcurrentCalls, s.MaxResultBytes, s.StartTimeoutMs, *s.CallTimeoutMs}
	want := []any{true, "", upstreams.TrustSchema, "search", "error", false, 0, upstreams.DefaultMaxResultBytes, upstreams.DefaultStartTimeoutMs, upstreams.DefaultCallTimeoutMs}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("server keys differ from their defaults (-default +example):\n%s", diff)
	}
}

// walkKeys collects the key paths of a file; names of servers and profiles
// become "*".
func walkKeys(n *yaml.Node, at string, keys map[string]bool) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if at == "mcpServers." || at == "policy.profiles." {
			key = "*"
		}
		keys[at+key] = true
		walkKeys(n.Content[i+1], at+key+".", keys)
	}
}

func TestDocs_NameEveryKey(t *testing.T) {
	data, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	for key := range everyKey() {
		last := key[strings.LastIndex(key, ".")+1:]
		if !strings.Contains(string(data), "`"+last+"`") && !strings.Contains(string(data), "."+last+"`") {
			t.Errorf("docs/configuration.md does not name %s", key)
		}
	}
}

func TestExamples_Load(t *testing.T) {
	files, err := filepath.Glob("../../examples/*")
	if err != nil || len(files) < 5 {
		t.Fatalf("examples = %q, %v, want at least five", files, err)
	}
	for _, file := range files {
		c, err := Load(Options{Path: file, LookupEnv: everyVariable})
		if err != nil {
			t.Errorf("Load(%s) = %v, want no error", file, err)
			continue
		}
		if len(c.Servers) == 0 {
			t.Errorf("%s has no server", file)
		}
		for _, s := range c.Servers {
			if s.Broken != nil {
				t.Errorf("%s: %v", file, s.Broken)
			}
		}
		for _, w := range c.Warnings {
			if !strings.Contains(w, "of another program") || !strings.HasSuffix(file, ".json") {
				t.Errorf("%s: warning %q, want none", file, w)
			}
		}
	}
}
