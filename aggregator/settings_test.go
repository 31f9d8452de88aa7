package aggregator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSettings_Clamp(t *testing.T) {
	defaults := Settings{
		Mode: "code", CodeTimeoutMs: 10000, SearchDefaultLimit: 8, MaxSearchLimit: 20,
		MaxNameLength: 42, MaxAnswerChars: 8000, Directory: DirectorySettings{MaxChars: 1900},
	}
	with := func(change func(*Settings)) Settings {
		s := defaults
		change(&s)
		return s
	}
	tests := []struct {
		name     string
		in, want Settings
		warnings int
	}{
		{"zero is the defaults", Settings{}, defaults, 0},
		{"below", Settings{CodeTimeoutMs: 5, MaxAnswerChars: 10, MaxNameLength: 3, Directory: DirectorySettings{MaxChars: 1}},
			with(func(s *Settings) {
				s.CodeTimeoutMs, s.MaxAnswerChars, s.MaxNameLength, s.Directory.MaxChars = 1000, 4000, 32, 768
			}), 4},
		{"above", Settings{CodeTimeoutMs: 1e6, MaxAnswerChars: 1e6, MaxNameLength: 100, MaxSearchLimit: 100, Directory: DirectorySettings{MaxChars: 1e6}},
			with(func(s *Settings) {
				s.CodeTimeoutMs, s.MaxAnswerChars, s.MaxNameLength, s.MaxSearchLimit, s.Directory.MaxChars = 60000, 40000, 64, 50, 18000
			}), 5},
		{"negative", Settings{SearchDefaultLimit: -1}, with(func(s *Settings) { s.SearchDefaultLimit = 1 }), 1},
		{"default limit over the maximum", Settings{SearchDefaultLimit: 15, MaxSearchLimit: 10},
			with(func(s *Settings) { s.SearchDefaultLimit, s.MaxSearchLimit = 10, 10 }), 1},
		{"a small maximum lowers the default silently", Settings{MaxSearchLimit: 3},
			with(func(s *Settings) { s.SearchDefaultLimit, s.MaxSearchLimit = 3, 3 }), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, warnings := tt.in.Clamp()
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("Clamp(%+v) (-want +got):\n%s", tt.in, d)
			}
			if len(warnings) != tt.warnings {
				t.Errorf("Clamp(%+v) warnings = %q, want %d", tt.in, warnings, tt.warnings)
			}
		})
	}
}
