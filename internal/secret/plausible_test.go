package secret

import (
	"path/filepath"
	"testing"
)

func TestPlausible(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		variable, value string
		want            bool
	}{
		{"API_KEY", "s3cr3t-ONE", true},
		{"", "Bearer s3cr3t-ONE", true},
		{"", "", false},
		{"PATH", "/opt/bin:/bin", false},
		{"LOG_LEVEL", "DEBUG", false},
		{"PORT", "8080", false},
		{"ROOT", dir, false},
		{"ROOT", filepath.Join(dir, "none"), true},
	} {
		if got := Plausible(tc.variable, tc.value); got != tc.want {
			t.Errorf("Plausible(%q, %q) = %v, want %v", tc.variable, tc.value, got, tc.want)
		}
	}
}
