package aggregator

import (
	"fmt"
	"slices"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// Mode is a face of the program: what tools/list shows (contract 3).
type Mode string

const (
	ModeCode      Mode = "code"      // tool_search_code; the default
	ModeTools     Mode = "tools"     // tool_search, tool_describe, tool_call
	ModeDirectory Mode = "directory" // the three, with the directory text and pinned tools
	ModeOff       Mode = "off"       // every allowed tool, as the upstream defined it
)

// ParseMode reads a mode; "" is ModeCode.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "":
		return ModeCode, nil
	case ModeCode, ModeTools, ModeDirectory, ModeOff:
		return m, nil
	}
	return "", fmt.Errorf("mode %q: want code, tools, directory or off", s)
}

// Settings is the toolSearch section of the configuration. Zero values mean
// the defaults named in the comments.
type Settings struct {
	Mode               string            `yaml:"mode"`               // "": code
	CodeTimeoutMs      int               `yaml:"codeTimeoutMs"`      // 0: DefaultCodeTimeoutMs
	SearchDefaultLimit int               `yaml:"searchDefaultLimit"` // 0: DefaultSearchLimit
	MaxSearchLimit     int               `yaml:"maxSearchLimit"`     // 0: DefaultMaxSearchLimit
	MaxNameLength      int               `yaml:"maxNameLength"`      // of full names; 0: DefaultMaxNameLength
	MaxAnswerChars     int               `yaml:"maxAnswerChars"`     // 0: DefaultMaxAnswerChars
	Directory          DirectorySettings `yaml:"directory"`
}

// DirectorySettings concern directory mode alone.
type DirectorySettings struct {
	MaxChars int      `yaml:"maxChars"` // of the resource; 0: DefaultDirectoryChars
	Pinned   []string `yaml:"pinned"`   // ids or patterns of tools that are listed with their schema
}

const (
	DefaultCodeTimeoutMs  = 10_000
	DefaultSearchLimit    = 8
	DefaultMaxSearchLimit = 20
	DefaultMaxNameLength  = upstreams.DefaultMaxNameLength
	DefaultMaxAnswerChars = 8_000
	DefaultDirectoryChars = 1_900
)

// MaxPinned is how many tools directory mode lists with their schema at most.
const MaxPinned = 12

// Clamp returns the settings with defaults filled in and every number inside
// its limits, and a sentence for each number that was moved.
func (s Settings) Clamp() (Settings, []string) {
	var warnings []string
	clamp := func(name string, v *int, def, low, high int) {
		if *v == 0 {
			*v = min(max(def, low), high)
			return
		}
		if moved := min(max(*v, low), high); moved != *v {
			warnings = append(warnings, fmt.Sprintf("toolSearch.%s: %d is outside %d to %d, using %d", name, *v, low, high, moved))
			*v = moved
		}
	}
	if s.Mode == "" {
		s.Mode = string(ModeCode)
	}
	clamp("codeTimeoutMs", &s.CodeTimeoutMs, DefaultCodeTimeoutMs, 1000, 60_000)
	clamp("maxSearchLimit", &s.MaxSearchLimit, DefaultMaxSearchLimit, 1, 50)
	clamp("searchDefaultLimit", &s.SearchDefaultLimit, DefaultSearchLimit, 1, s.MaxSearchLimit)
	clamp("maxNameLength", &s.MaxNameLength, DefaultMaxNameLength, 32, 64)
	clamp("maxAnswerChars", &s.MaxAnswerChars, DefaultMaxAnswerChars, 4000, 40_000)
	clamp("directory.maxChars", &s.Directory.MaxChars, DefaultDirectoryChars, 768, 18_000)
	s.Directory.Pinned = slices.Clone(s.Directory.Pinned)
	return s, warnings
}
