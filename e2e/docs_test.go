package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)
	sourcePath   = regexp.MustCompile("`((?:[a-z0-9_-]+/)+[a-z0-9_*.-]+\\.(?:go|js|md|yaml))`")
)

// TestDocs: what the documents point at is there, and they hold no place of
// the machine on which they were written.
func TestDocs(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../*.md", "../docs/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 8 {
		t.Fatalf("documents = %v, want at least 8", files)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			if target := filepath.Join(filepath.Dir(file), m[1]); !strings.Contains(m[1], "://") {
				if _, err := os.Stat(target); err != nil {
					t.Errorf("%s links to %s, which is not there", file, m[1])
				}
			}
		}
		for _, m := range sourcePath.FindAllStringSubmatch(text, -1) {
			top, _, _ := strings.Cut(m[1], "/")
			if _, err := os.Stat(filepath.Join("..", top)); err != nil {
				continue // a user's path, not ours
			}
			if found, err := filepath.Glob(filepath.Join("..", m[1])); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which is not there", file, m[1])
			}
		}
		for _, local := range []string{"/" + "work/", "/" + "tmp/", "/" + "root/", "TODO", "MEASURED"} {
			if strings.Contains(text, local) {
				t.Errorf("%s holds %q", file, local)
			}
		}
	}
	architecture, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(architecture), "\n"); n > 200 {
		t.Errorf("ARCHITECTURE.md has %d lines, want at most 200", n)
	}
}
