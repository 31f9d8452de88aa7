package codebridge

import (
	"slices"
	"strings"
	"testing"
)

func TestLexKnowsCode(t *testing.T) {
	for source, want := range map[string]string{
		`a / b / c`:                        "a|/|b|/|c",
		`x = /[/]\/"/g.test(y)`:            `x|=|/[/]\/"/g|.|test|(|y|)`,
		`return /a/.exec(b) / 2`:           "return|/a/|.|exec|(|b|)|/|2",
		"`a${b + `c${d}`}e` + f":           "`a${|b|+|`c${|d|}`|}e`|+|f",
		"'it''s' // c\n\"x\\\"y\" /* d */": `'it'|'s'|"x\"y"`,
		`1.5e3.toFixed(.5)`:                "1.5e3.toFixed|(|.5|)",
		"a?.b ?? c => d++":                 "a|?.|b|?|?|c|=>|d|++",
		"'open":                            "'open",
		"/* open":                          "",
	} {
		tokens, _ := lex(source)
		var got []string
		for _, x := range tokens {
			got = append(got, source[x.start:x.end])
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("lex(%q) = %s, want %s", source, s, want)
		}
	}
}

// FuzzSource: whatever the text, it is wrapped without losing a character or
// a line, and every place in the wrapping leads back to where it came from.
func FuzzSource(f *testing.F) {
	for _, s := range []string{
		"return 1", "const a = 1\na", "```js\nreturn 1\n```", "`${`${", "}); evil(); (async () => {", "a\n/b/c\n.d()",
		"if (a) return b\nelse {const c = 1; for (;;) {}}\nc", "export default async () => {}", "import('x')", "/* \n */ let\u00a0x = 1;\n\nx",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := parseSource(text)
		lines := strings.Count(s.text, "\n")
		for _, form := range s.forms() {
			b := s.body(form)
			if got := strings.Count(b.text, "\n"); got != lines+1 {
				t.Fatalf("%q in form %+v has %d lines, want %d", text, form, got, lines+1)
			}
			// Take the insertions out again, from the back.
			back := strings.TrimSuffix(b.text, bodyClose)
			for _, e := range slices.Backward(b.edits) {
				at := offset(back, e.line, e.column)
				back = back[:at] + back[at+e.length:]
			}
			if back != s.text {
				t.Fatalf("%q in form %+v loses its text: %q", s.text, form, b.text)
			}
			for at := 0; at < len(s.text); at += 1 + len(s.text)/50 {
				in := b.text[len(bodyOpen):]
				if form.marked || form.implicit || !strings.HasPrefix(in, s.text) {
					break // only the plain form keeps offsets
				}
				line, column := place(b.text, at+len(bodyOpen))
				wantLine, wantColumn := place(s.text, at)
				if l, c := s.position(b, line, column); l != wantLine+s.line || c != wantColumn {
					t.Fatalf("offset %d of %q is at %d:%d, want %d:%d", at, s.text, l, c, wantLine+s.line, wantColumn)
				}
			}
		}
		head, _ := s.headBody()
		_ = head
	})
}

// place is the line and column of an offset, from 1.
func place(s string, at int) (line, column int) {
	return 1 + strings.Count(s[:at], "\n"), at - strings.LastIndexByte(s[:at], '\n')
}

func offset(s string, line, column int) int {
	at := 0
	for range line - 1 {
		at += strings.IndexByte(s[at:], '\n') + 1
	}
	return at + column - 1
}
