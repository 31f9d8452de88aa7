package codebridge

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestSecurityPage: every test that docs/security.md names as the proof of a
// claim is there, and the number of attacks is right.
func TestSecurityPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(b)
	}
	names := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(string(page), -1)
	if len(names) < 10 {
		t.Fatalf("docs/security.md names %d tests, want one for each claim", len(names))
	}
	for _, m := range names {
		if !strings.Contains(tests.String(), "func "+m[1]+"(") {
			t.Errorf("docs/security.md names %s, which does not exist", m[1])
		}
	}
	if m := regexp.MustCompile(`(\d+) attacks`).FindStringSubmatch(string(page)); m == nil || m[1] != strconv.Itoa(len(attacks)) {
		t.Errorf("docs/security.md says %q, want %d attacks", m, len(attacks))
	}
}
