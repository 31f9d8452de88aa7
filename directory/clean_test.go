package directory

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestOneLine(t *testing.T) {
	long := strings.Repeat("word ", 40)
	for _, c := range []struct {
		text string
		max  int
		want string
	}{
		{"plain text", 0, "plain text"},
		{"", 10, ""},
		{"  a \t b\r\nc\u2028d\u2029e\u0085f\u00a0g\u3000h  ", 0, "a b c d e f g h"},
		{"red \x1b[31m\x00alert\x7f", 0, "red [31m alert"},
		{"pay\u202eload\u200b\u2060\ufeff \u00ad!\u061c", 0, "payload !"},
		{"flag\U0001F3F4\U000E0067\U000E0062\U000E007F end", 0, "flag\U0001F3F4 end"},
		{"heart\u2764\ufe0f\U000E0101 \u180b\u3164x", 0, "heart\u2764 x"},
		{"braille\u2800blank", 0, "braille blank"},
		{"bad \xff\xfe utf8", 0, "bad \ufffd\ufffd utf8"},
		{"日本語 text é", 0, "日本語 text é"},
		{"one two three", 13, "one two three"},
		{"one two three", 12, "one two"},
		{"one two three", 7, "one two"},
		{"one two, three", 10, "one two"},
		{"onetwothree", 6, "onetwo"},
		{"a bcdefghijklmnop", 10, "a bcdefghi"},
		{"日本語日本語", 4, "日本語日"},
		{"éé éé éé", 5, "éé éé"},
		{long, 180, strings.TrimSpace(long[:180])},
		{"a\u200b\u200b\u200bb c", 3, "ab"},
		{"\u200b\u200b", 1, ""},
	} {
		if got := OneLine(c.text, c.max); got != c.want {
			t.Errorf("OneLine(%q, %d) = %q, want %q", c.text, c.max, got, c.want)
		}
	}
}

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		text string
		max  int
		want string
	}{
		{"Reads a file. Writes none.", 40, "Reads a file. Writes none."},
		{"Reads a file. Writes none at all.", 18, "Reads a file."},
		{"Reads. Then goes on and on about it.", 30, "Reads. Then goes on and on"},
		{"Reads some files, e.g. those of the user and others.", 30, "Reads some files, e.g. those"},
		{"Reads 日本語 files! そして more words follow", 22, "Reads 日本語 files!"},
	} {
		if got := summary(c.text, c.max); got != c.want {
			t.Errorf("summary(%q, %d) = %q, want %q", c.text, c.max, got, c.want)
		}
	}
}

func TestClean(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"one\n  two  three\n", "one\n  two  three\n"},
		{"one\r\ntwo\rthree\u2028four\u0085five", "one\ntwo\nthree\nfour\nfive"},
		{"tab\there \x1b[0m\u202e\U000E0041!", "tab here  [0m!"},
		{"ok é", "ok é"},
		{"\xff", "\ufffd"},
	} {
		if got := Clean(c.text); got != c.want {
			t.Errorf("Clean(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func FuzzOneLine(f *testing.F) {
	f.Add("a b\u202e c. D", 3)
	f.Add("\xff\U000E0041 \u2029x", 0)
	f.Fuzz(func(t *testing.T, s string, max int) {
		if max < 0 || max > 1000 {
			t.Skip()
		}
		for name, got := range map[string]string{"OneLine": OneLine(s, max), "summary": summary(s, max)} {
			if max > 0 && utf8.RuneCountInString(got) > max {
				t.Errorf("%s(%q, %d) = %q, too long", name, s, max, got)
			}
			if !utf8.ValidString(got) || strings.ContainsFunc(got, isHidden) || strings.Contains(got, "\n") {
				t.Errorf("%s(%q, %d) = %q, want one visible line", name, s, max, got)
			}
			if again := OneLine(got, max); again != got {
				t.Errorf("OneLine(%q) = %q, want it unchanged", got, again)
			}
		}
		if got := Clean(s); !utf8.ValidString(got) || strings.ContainsFunc(strings.ReplaceAll(got, "\n", ""), isHidden) {
			t.Errorf("Clean(%q) = %q", s, got)
		}
	})
}

func isHidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) || r == '\u2028' || r == '\u2029'
}

func BenchmarkOneLine(b *testing.B) {
	for name, text := range map[string]string{
		"ascii":   "List the issues of a repository, newest first.",
		"long":    strings.Repeat("Long descriptions are cut. ", 800),
		"foreign": strings.Repeat("日本語の説明。 ", 20),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				OneLine(text, 180)
			}
		})
	}
}
