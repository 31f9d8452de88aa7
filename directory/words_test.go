package directory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAppendWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"  .,;  ":                 "",
		"Send an e-mail":          "send an e mail",
		"list_pull_requests":      "list pull requests",
		"list-pull-requests":      "list pull requests",
		"GitHub":                  "git hub github",
		"getURLs":                 "get urls geturls",
		"OAuth2":                  "oauth oauth2",
		"GMail":                   "gmail",
		"parseHTMLPage":           "parse html page parsehtmlpage",
		"k8s":                     "k8s",
		"sha256sum":               "sha 256 sum sha256sum",
		"HTTPServer URLs":         "http server httpserver urls",
		"issues.list/v2":          "issues list v2",
		"Café Müller, Straße":     "cafe muller strasse",
		"e\u0301te\u0301":         "ete",
		"ŁÓDŹ Ærø":                "lodz aero",
		"ＡＰＩ　ｋｅｙ":                 "api key",
		"日本語":                     "日本 本語",
		"図":                       "図",
		"使用bing搜索":                "使用 bing 搜索",
		"Привет, мир":             "привет мир",
		"مرحبا":                   "مرحبا",
		"한국어":                     "한국 국어",
		"don't":                   "don t",
		"\xff\xfe":                "",
		"x\u200by":                "x y",
		strings.Repeat("z", 1000): strings.Repeat("z", maxWord-7),
	} {
		var got []string
		for _, w := range appendWords(nil, text) {
			got = append(got, w.text)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("appendWords(%.40q) = %q, want %q", text, s, want)
		}
	}
}

func TestAppendWords_Stems(t *testing.T) {
	for _, same := range []string{"issue issues", "create creating created creates", "invoice invoices invoiced", "repository repositories"} {
		words := appendWords(nil, same)
		for _, w := range words {
			if w.term != words[0].term {
				t.Errorf("stem of %q = %q, want that of %q: %q", w.text, w.term, words[0].text, words[0].term)
			}
		}
	}
	for text, want := range map[string]bool{"the": true, "please": true, "list": false, "get": false, "show": false, "mail": false} {
		if w := appendWords(nil, text)[0]; w.stop != want {
			t.Errorf("%q is a stop word: %v, want %v", text, w.stop, want)
		}
	}
}

func FuzzAppendWords(f *testing.F) {
	for _, text := range hostileQueries() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := appendWords(nil, text)
		for _, w := range words {
			if w.text == "" || w.term == "" || len(w.text) > maxWord || !utf8.ValidString(w.text) {
				t.Errorf("appendWords(%q) has the word %q with the stem %q", text, w.text, w.term)
			}
		}
		if again := appendWords(nil, text); !slices.Equal(words, again) {
			t.Errorf("appendWords(%q) differs from one time to the next", text)
		}
	})
}

func TestCounts(t *testing.T) {
	for f := range fields {
		var n counts
		most := 1<<(fieldBits[f+1]-fieldBits[f]) - 1
		for range most + 5 {
			n = n.add(f)
		}
		for other := range fields {
			want := 0
			if other == f {
				want = most
			}
			if got := n.in(other); got != want {
				t.Errorf("field %d filled: field %d has %d, want %d", f, other, got, want)
			}
		}
	}
}

// TestSynonyms: the tables are sound, and never make an opposite of a word.
func TestSynonyms(t *testing.T) {
	for from, list := range theThesaurus().synonyms {
		for _, to := range list {
			if from == "" || to.term == "" || from == to.term {
				t.Errorf("synonym %q of %q", to.term, from)
			}
		}
	}
	for _, pair := range [][2]string{
		{"delete", "create"}, {"delete", "insert"}, {"remove", "add"}, {"approve", "reject"}, {"start", "stop"}, {"open", "close"},
		{"upload", "download"}, {"import", "export"}, {"push", "pull"}, {"lock", "unlock"}, {"enable", "disable"}, {"buy", "sell"},
		{"encrypt", "decrypt"}, {"merge", "split"}, {"compress", "extract"}, {"subscribe", "unsubscribe"}, {"read", "write"}, {"get", "set"},
		{"get", "delete"}, {"list", "delete"}, {"accept", "decline"}, {"archive", "restore"}, {"deposit", "withdraw"},
	} {
		a, b := newWord(pair[0]).term, newWord(pair[1]).term
		if theThesaurus().has(a, b) || theThesaurus().has(b, a) {
			t.Errorf("%q stands for %q", pair[0], pair[1])
		}
	}
	if n := len(theThesaurus().phrases); n < 50 {
		t.Errorf("%d phrases, want the whole list", n)
	}
}

func TestVectors(t *testing.T) {
	table := vectors()
	if len(table.terms) != vectorStems || !slices.IsSorted(table.terms) {
		t.Fatalf("%d words of vectors, sorted: %v; want %d", len(table.terms), slices.IsSorted(table.terms), vectorStems)
	}
	cos := func(a, b string) float32 {
		i, j := table.row(newWord(a).term), table.row(newWord(b).term)
		if i < 0 || j < 0 {
			t.Fatalf("no vector of %q or %q", a, b)
		}
		return table.rows[i].cosine(&table.rows[j])
	}
	for _, c := range []struct{ word, near, far string }{
		{"doctor", "physician", "database"}, {"flight", "airline", "poem"}, {"salary", "wage", "river"},
	} {
		if cos(c.word, c.near) < cos(c.word, c.far)+.2 {
			t.Errorf("%q is %.2f from %q and %.2f from %q", c.word, cos(c.word, c.near), c.near, cos(c.word, c.far), c.far)
		}
	}
	if table.row("xyzzy") != -1 {
		t.Error("xyzzy has a vector")
	}
}

func TestVocabulary(t *testing.T) {
	v := &vocabulary{}
	v = v.apply(map[string]int{"invoice": 2, "invoicing": 1, "issu": 3, "日本": 1, "voice": 1, "kubernetes": 1, "doctor": 4})
	v = v.apply(map[string]int{"issu": -1, "voice": -1, "zip": 1})
	want := []string{"doctor", "invoice", "invoicing", "issu", "kubernetes", "zip", "日本"}
	if !slices.Equal(v.terms, want) {
		t.Errorf("words = %q, want %q", v.terms, want)
	}
	for term, n := range map[string]int{"issu": 2, "voice": 0, "zip": 1, "nothing": 0} {
		if got := v.count(term); got != n {
			t.Errorf("count(%q) = %d, want %d", term, got, n)
		}
	}
	for term, want := range map[string]string{
		"invioce": "[invoice]", "invoic": "[invoice]", "kubernetess": "[kubernetes]", "kubrenetse": "[kubernetes]", "xssu": "[]", "zop": "[zip]", "quite": "[]",
	} {
		if got := fmt.Sprint(v.repair(term, 3)); got != want {
			t.Errorf("repair(%q) = %s, want %s", term, got, want)
		}
	}
	if got, want := v.longer("invoic", 5), []string{"invoice", "invoicing"}; !slices.Equal(got, want) {
		t.Errorf("longer(invoic) = %q, want %q", got, want)
	}
	if got := v.near("physician", 3, .4); len(got) != 1 || got[0].term != "doctor" {
		t.Errorf("near(physician) = %v, want doctor alone", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"ab", "ba", 1}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"invioce", "invoice", 1}, {"same", "same", 0}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
