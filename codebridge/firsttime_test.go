package codebridge

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorded is one call of a script and what the sample servers of package
// demo, behind the aggregator, answered to it.
type recorded struct {
	Fn     string          `json:"fn"`
	Args   json.RawMessage `json:"args"`
	Answer json.RawMessage `json:"answer"`
	Error  *ToolError      `json:"error"`
}

// replayHost answers calls with a recording, each entry once.
type replayHost struct {
	mu   sync.Mutex
	left []recorded
}

func (h *replayHost) Lane(string, json.RawMessage) string { return "" }

func (h *replayHost) Call(_ context.Context, c *Call) (json.RawMessage, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.left, func(r recorded) bool { return r.Fn == c.Fn && string(r.Args) == string(c.Args) })
	if i < 0 {
		return nil, &ToolError{Code: "unknown_tool", Message: "not recorded: " + c.Fn + " " + string(c.Args)}
	}
	r := h.left[i]
	h.left = slices.Delete(h.left, i, i+1)
	if r.Error != nil {
		return nil, r.Error
	}
	return r.Answer, nil
}

// TestFirstTime runs twenty tasks, three scripts each, as they were written
// from the description of tool_search_code alone, unchanged: 57 of the 60
// must do their task. The manifest names what the value must contain, and why
// a script that fails does.
func TestFirstTime(t *testing.T) {
	dir := filepath.Join("testdata", "firsttime")
	var manifest []struct {
		Task, Script string
		Want         []string
		Fails        string
	}
	var answers map[string][]recorded
	for name, v := range map[string]any{"manifest.json": &manifest, "answers.json": &answers} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if len(manifest) != 60 {
		t.Fatalf("the manifest has %d scripts, want 60", len(manifest))
	}
	good := 0
	for _, m := range manifest {
		source, err := os.ReadFile(filepath.Join(dir, m.Script))
		if err != nil {
			t.Fatal(err)
		}
		r := mustRun(t, sharedEngine(t), string(source), &replayHost{left: answers[m.Script]})
		ok := r.Error == nil
		for _, want := range m.Want {
			ok = ok && strings.Contains(strings.ToLower(string(r.Value)), strings.ToLower(want))
		}
		switch {
		case ok:
			good++
		case m.Fails == "":
			t.Errorf("%s (%s) = %.300s, want %q", m.Script, m.Task, what(r), m.Want)
		}
		if ok && m.Fails != "" {
			t.Errorf("%s works, but the manifest says that it %s", m.Script, m.Fails)
		}
	}
	t.Logf("%d of %d scripts do their task", good, len(manifest))
	if good < 57 {
		t.Errorf("%d of %d scripts do their task, want at least 57", good, len(manifest))
	}
}
