package directory

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine makes untrusted text fit to be shown in one line: control,
// bidirectional, zero-width and tag characters and variation selectors are
// taken out, white space is folded to one blank, bytes that are not UTF-8
// become U+FFFD. The result has at most max characters (0: not cut), cut at a
// word where there is one.
func OneLine(s string, max int) string {
	line, more := fold(s, max)
	if !more {
		return line
	}
	return cutAtWord(line, max)
}

// summary is OneLine cut at the end of a sentence, if one ends in the last
// third of what fits.
func summary(s string, max int) string {
	line, more := fold(s, max)
	if !more {
		return line
	}
	end, n := 0, 0
	for i, r := range line {
		if n > max {
			break
		}
		if r == ' ' && n*3 > max*2 && endsSentence(line[:i], line[i+1:]) {
			end = i
		}
		n++
	}
	if end > 0 {
		return line[:end]
	}
	return cutAtWord(line, max)
}

// endsSentence tells whether a sentence ends between two parts of a line:
// "e.g. files" does not.
func endsSentence(before, after string) bool {
	if before == "" || strings.IndexByte(".!?", before[len(before)-1]) < 0 {
		return false
	}
	next, _ := utf8.DecodeRuneInString(after)
	return !unicode.IsLower(next)
}

// Clean is OneLine for text of several lines: line breaks stay, and so do
// the blanks that indent.
func Clean(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || c < ' ' && c != '\n' || c == 0x7f {
			return cleanFrom(s, i)
		}
	}
	return s
}

func cleanFrom(s string, i int) string {
	b := strings.Builder{}
	b.Grow(len(s))
	b.WriteString(s[:i])
	for _, r := range s[i:] {
		switch r {
		case '\n', '\r', '\u0085', '\u2028', '\u2029':
			b.WriteByte('\n')
		default:
			if r = shown(r); r >= 0 {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// fold cleans s into one line. It stops soon after max characters: more then
// tells that line holds one character too many.
func fold(s string, max int) (line string, more bool) {
	if (max <= 0 || len(s) <= max) && isPlain(s) {
		return s, false
	}
	b := strings.Builder{}
	if max > 0 {
		b.Grow(min(len(s), max+1))
	} else {
		b.Grow(len(s))
	}
	n, gap := 0, false
	for _, r := range s {
		if r = shown(r); r == ' ' {
			gap = n > 0
			continue
		}
		if r < 0 {
			continue
		}
		if gap {
			b.WriteByte(' ')
			n++
			gap = false
		}
		if max > 0 && n >= max {
			b.WriteRune(r)
			return b.String(), true
		}
		b.WriteRune(r)
		n++
	}
	return b.String(), false
}

// isPlain tells whether s is printable ASCII with single blanks inside: the
// common case, which needs no copy.
func isPlain(s string) bool {
	last := byte(' ')
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < ' ' || c >= 0x7f || c == ' ' && last == ' ' {
			return false
		}
		last = c
	}
	return last != ' ' || s == ""
}

// shown maps a character of untrusted text to what a reader may see of it: a
// blank for white space and control characters, -1 for what is invisible.
func shown(r rune) rune {
	switch {
	case r < ' ' || r == 0x7f:
		return ' '
	case r < 0x7f:
		return r
	case r < 0xa0: // C1 controls
		return ' '
	case unicode.IsSpace(r) || r == '\u2800' || unicode.Is(unicode.Z, r):
		return ' '
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return -1
	}
	return r
}

// cutAtWord cuts a line to max characters: at the last blank, or inside a
// word if that would lose more than half (languages without blanks).
func cutAtWord(line string, max int) string {
	end, space, n := len(line), 0, 0
	for i, r := range line {
		if r == ' ' {
			space = i
		}
		if n == max {
			end = i
			break
		}
		n++
	}
	if end == len(line) {
		return line
	}
	if space > end/2 {
		end = space
	}
	return strings.TrimRight(line[:end], " ,;:-(")
}
