package upstreams

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	maxSafeName = 30 // characters of a safe server name
	cutSafeName = 12 // what is left of it in a full name that is too long
	// A server name and a tool name are joined by this; no safe name holds it
	// or ends in its first half, so a full name that was not altered can be
	// read in one way only.
	nameSeparator = "__"
)

// SafeName returns the safe form of a configured server name: a function of
// the name alone. It holds only [A-Za-z0-9_-], begins with a letter, never
// ends in "_", never holds "__" and has at most 30 characters. A name that is
// already so is kept; any other one ends in "-" and six hex digits of its hash.
func SafeName(name string) string {
	s := plainName(name)
	if s == "" || !isLetter(s[0]) {
		s = "mcp-" + s
	}
	for strings.Contains(s, nameSeparator) {
		s = strings.ReplaceAll(s, nameSeparator, "_")
	}
	s = strings.TrimRight(s, "_")
	if s == name && len(s) <= maxSafeName {
		return s
	}
	sum := nameHash(name)
	s = s[:min(len(s), maxSafeName-1-len(sum))]
	return strings.TrimRight(s, "_-") + "-" + sum
}

// ToolID returns mcp:<safe>:<tool>.
func ToolID(safe, tool string) string { return "mcp:" + safe + ":" + tool }

// FullName returns the flat name of a tool, <safe>__<tool>, at most limit
// characters of [A-Za-z0-9_-]: a function of server and tool name alone. A
// name that had to be altered or cut ends in "-" and six hex digits of the
// hash of its id and keeps the last words of the tool's name. The limit is
// clamped to 32–64; 0 means DefaultMaxNameLength.
func FullName(safe, tool string, limit int) string {
	limit = clampNameLength(limit)
	plain := plainName(tool)
	whole := safe + nameSeparator + plain
	if plain == tool && len(whole) <= limit {
		return whole
	}
	suffix := "-" + nameHash(ToolID(safe, tool))
	if len(whole)+len(suffix) <= limit {
		return whole + suffix
	}
	server := cutSafe(safe)
	room := limit - len(server) - len(nameSeparator) - len(suffix)
	return server + nameSeparator + lastWords(plain, room) + suffix
}

// NamesServer tells whether an id or full name can be that of a tool of the
// server with this safe name.
func NamesServer(selector, safe string) bool {
	if rest, ok := strings.CutPrefix(selector, "mcp:"); ok {
		return strings.HasPrefix(rest, safe+":")
	}
	server, _, ok := strings.Cut(selector, nameSeparator)
	return ok && (server == safe || len(safe) > cutSafeName && server == cutSafe(safe))
}

// cutSafe is what stands for a safe server name in a full name that is too long.
func cutSafe(safe string) string {
	return strings.TrimRight(safe[:min(len(safe), cutSafeName)], "_-")
}

func clampNameLength(n int) int {
	if n == 0 {
		n = DefaultMaxNameLength
	}
	return min(max(n, 32), 64)
}

// lastWords returns the end of a name, at most room characters, from the
// beginning of a word if one begins in its first half.
func lastWords(s string, room int) string {
	if len(s) <= room {
		return s
	}
	cut := len(s) - room
	for i := cut; i <= cut+room/2; i++ {
		if beginsWord(s, i) {
			return s[i:]
		}
	}
	return strings.TrimLeft(s[cut:], "_-")
}

func beginsWord(s string, i int) bool {
	if s[i] == '_' || s[i] == '-' {
		return false
	}
	before := s[i-1]
	return before == '_' || before == '-' || isLower(before) && isUpper(s[i])
}

// plainName puts "-" in the place of every character outside [A-Za-z0-9_-].
func plainName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (isLetter(byte(r)) || '0' <= r && r <= '9' || r == '_' || r == '-') {
			return r
		}
		return '-'
	}, s)
}

func isLower(c byte) bool  { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isLetter(c byte) bool { return isLower(c) || isUpper(c) }

func nameHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:3])
}
