package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestExampleConfigs: the program itself takes every example as it is. That
// they are complete and true is tested beside the loader.
func TestExampleConfigs(t *testing.T) {
	files, err := filepath.Glob("../examples/*")
	if err != nil || len(files) < 3 {
		t.Fatalf("examples = %v, %v, want at least 3", files, err)
	}
	h := newHome(t, object{}, nil)
	for _, file := range append(files, "../config.example.yaml") {
		cmd := exec.Command(binary(t), "search", "read a file", "--json", "--config", file)
		cmd.Env = append(h.env(), "LINEAR_TOKEN=x", "WIKI_KEY=x") // search starts no server
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("search with %s: %v\n%s", file, err, out)
		}
	}
}
