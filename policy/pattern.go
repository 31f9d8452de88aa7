package policy

import (
	"strings"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// pattern is one configured pattern, see [upstreams.MatchPattern].
type pattern string

func (p pattern) match(s string) bool { return upstreams.MatchPattern(string(p), s) }

// covers reports whether p matches everything that q matches. A star of q
// stands for arbitrary text, so only a star of p can take it: match, with the
// star of q as a character that no literal of p equals, decides exactly that.
func (p pattern) covers(q pattern) bool {
	const anything = "\x00"
	return p.match(strings.ReplaceAll(string(q), "*", anything))
}

// within returns patterns that together match what p matches among the texts
// that begin with prefix: one for each way in which p can take the prefix.
func (p pattern) within(prefix string) []pattern {
	at := map[int]bool{0: true} // positions in p after what was read so far
	skipStars := func() {
		for i := range p {
			if at[i] && p[i] == '*' {
				at[i+1] = true
			}
		}
	}
	skipStars()
	for j := range len(prefix) {
		next := map[int]bool{}
		for i := range at {
			if i == len(p) {
				continue
			}
			switch p[i] {
			case '*':
				next[i] = true
			case prefix[j]:
				next[i+1] = true
			}
		}
		at = next
		skipStars()
	}
	var out []pattern
	for i := range len(p) + 1 {
		if at[i] {
			out = append(out, pattern(prefix)+p[i:])
		}
	}
	return out
}

func patterns(list []string) []pattern {
	out := make([]pattern, len(list))
	for i, s := range list {
		out[i] = pattern(s)
	}
	return out
}

// first returns the first pattern that matches s.
func first(list []pattern, s string) (pattern, bool) {
	for _, p := range list {
		if p.match(s) {
			return p, true
		}
	}
	return "", false
}
