package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsearch-mcp/toolsearch-mcp/aggregator"
	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/config"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/demo"
)

// TestFirstTimeScripts runs the scripts that package codebridge keeps, each as
// it was written from the description of tool_search_code alone, on the sample
// servers through the whole program: 57 of the 60 must do their task.
func TestFirstTimeScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: starts sixty sandboxes")
	}
	dir := filepath.Join("..", "..", "codebridge", "testdata", "firsttime")
	b, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest []struct {
		Task, Script string
		Want         []string
	}
	if err := json.Unmarshal(b, &manifest); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	settings, _ := aggregator.Settings{}.Clamp()
	bridge, _ := codebridge.Config{}.Clamp()
	good := 0
	for _, m := range manifest {
		source, err := os.ReadFile(filepath.Join(dir, m.Script))
		if err != nil {
			t.Fatal(err)
		}
		input, err := json.Marshal(map[string]string{"code": string(source)})
		if err != nil {
			t.Fatal(err)
		}
		// What one script changes, the next must not see.
		a := &app{stdout: io.Discard, stderr: io.Discard, logLevel: "error"}
		log, redactor, err := a.logger()
		if err != nil {
			t.Fatal(err)
		}
		p, err := a.build(t.Context(), &config.Config{ToolSearch: settings, CodeBridge: bridge, Servers: demo.Servers()}, redactor, log)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		raw, err := p.face.Local("").Call(t.Context(), "tool_search_code", input)
		p.close()
		if err != nil {
			t.Fatalf("%s: %v", m.Script, err)
		}
		res := toolResult{raw: raw}
		if err := json.Unmarshal(raw, &res); err != nil {
			t.Fatal(err)
		}
		ok := res.failure() == nil
		for _, want := range m.Want {
			ok = ok && strings.Contains(strings.ToLower(res.first()), strings.ToLower(want))
		}
		if ok {
			good++
		} else {
			t.Logf("%s (%s): %.300s", m.Script, m.Task, res.first())
		}
	}
	t.Logf("%d of %d scripts did their task", good, len(manifest))
	if good < 57 {
		t.Errorf("%d of %d scripts did their task, want 57", good, len(manifest))
	}
}
