package directory

import (
	"strings"
	"sync"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

// word is one word of a text in the forms that ranking needs. Words are shared
// and must not be changed.
type word struct {
	text  string // folded: lower case, without accents
	term  string // its stem: what the index knows it by
	stop  bool   // carries no meaning of its own in a query
	bytes []byte // of term, as bluge wants it
	row   int32  // of term in the table of word vectors, -1 for none
}

// appendWords appends the words of text to dst: runs of letters and digits,
// lower-cased and without accents. An identifier gives its parts and, as one
// more word, the whole (GitHub: git, hub, github), because people write both.
// Scripts without blanks between words give pairs of neighbouring characters.
func appendWords(dst []*word, text string) []*word {
	s := splitter{dst: dst}
	for _, r := range text {
		s.next(r)
	}
	s.flush()
	return s.dst
}

// splitter cuts a text into words, a character at a time.
type splitter struct {
	dst  []*word
	run  []rune // letters and digits seen since the last separator
	pair []rune // the same for scripts without blanks
}

func (s *splitter) next(r rune) {
	if r < 0x80 {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			s.flushPairs()
			s.run = append(s.run, r)
			return
		}
		s.flush()
		return
	}
	if 0xff01 <= r && r <= 0xff5e { // full-width forms of ASCII
		s.next(r - 0xff01 + '!')
		return
	}
	switch {
	case withoutBlanks(r):
		s.flushRun()
		s.pair = append(s.pair, r)
	case 0x300 <= r && r <= 0x36f: // combining accents: folded away
	case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
		s.flushPairs()
		s.run = append(s.run, r)
	default:
		s.flush()
	}
}

// withoutBlanks tells whether r is of a script that puts no blanks between
// words, or glues particles to them.
func withoutBlanks(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai) || r == 'ー'
}

func (s *splitter) flush() {
	s.flushRun()
	s.flushPairs()
}

func (s *splitter) flushPairs() {
	switch n := len(s.pair); n {
	case 0:
		return
	case 1:
		s.dst = append(s.dst, intern(s.pair))
	default:
		for i := range n - 1 {
			s.dst = append(s.dst, intern(s.pair[i:i+2]))
		}
	}
	s.pair = s.pair[:0]
}

func (s *splitter) flushRun() {
	if len(s.run) == 0 {
		return
	}
	start := 0
	for i := 1; i < len(s.run); i++ {
		if cutBefore(s.run, i) {
			s.part(s.run[start:i])
			start = i
		}
	}
	if start > 0 {
		s.part(s.run[start:])
	}
	s.dst = append(s.dst, intern(s.run))
	s.run = s.run[:0]
}

// part adds a part of an identifier. A single letter or digit says nothing
// away from its neighbours (k8s, s3).
func (s *splitter) part(run []rune) {
	if len(run) > 1 {
		s.dst = append(s.dst, intern(run))
	}
}

// cutBefore tells whether a part of an identifier begins at run[i], i > 0.
func cutBefore(run []rune, i int) bool {
	before, r := run[i-1], run[i]
	if unicode.IsDigit(before) != unicode.IsDigit(r) {
		return true
	}
	if !unicode.IsUpper(r) {
		return false
	}
	if unicode.IsLower(before) {
		// A lone "s" after capitals is a plural: URLs|List.
		return true
	}
	if i+1 == len(run) || !unicode.IsLower(run[i+1]) || !unicode.IsUpper(before) {
		return false
	}
	// The last capital of a row begins the next word (HTML|Page), but not
	// where it is the row's plural (getURLs), nor after one capital at the
	// beginning (OAuth, GMail).
	if run[i+1] == 's' && (i+2 == len(run) || !unicode.IsLower(run[i+2])) {
		return false
	}
	return i > 1
}

// lexicon keeps every word seen by this process in its final form: stemming is
// by far the dearest step of building an index.
var lexicon = struct {
	sync.RWMutex
	words map[string]*word
}{words: make(map[string]*word)}

// maxLexicon bounds the lexicon: catalogs stay far below, and queries of
// nonsense must not fill the memory.
const maxLexicon = 1 << 17

// maxWord is the longest word in bytes that is looked at: longer ones are data.
const maxWord = 64

// intern returns the word that run spells.
func intern(run []rune) *word {
	var buf [maxWord]byte
	b := buf[:0]
	for _, r := range run {
		if b = appendFolded(b, r); len(b) > maxWord-8 {
			break
		}
	}
	lexicon.RLock()
	w := lexicon.words[string(b)]
	lexicon.RUnlock()
	if w != nil {
		return w
	}
	w = newWord(string(b))
	lexicon.Lock()
	defer lexicon.Unlock()
	if len(lexicon.words) < maxLexicon {
		if have := lexicon.words[w.text]; have != nil {
			return have
		}
		lexicon.words[w.text] = w
	}
	return w
}

func newWord(text string) *word {
	w := &word{text: text, term: text, stop: stopWords[text]}
	if isLatin(text) {
		env := snowballstem.NewEnv(text)
		english.Stem(env)
		if stem := env.Current(); stem != text {
			w.term = strings.Clone(stem)
		}
	}
	w.bytes = []byte(w.term)
	w.row = vectors().row(w.term)
	return w
}

func isLatin(s string) bool {
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return false
		}
	}
	return len(s) > 2
}

// appendFolded appends r in lower case and without its accent.
func appendFolded(b []byte, r rune) []byte {
	if r < 0x80 {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(b, byte(r))
	}
	r = unicode.ToLower(r)
	if 0xc0 <= r && r < 0x180 {
		if plain := latinFold[r-0xc0]; plain != '.' {
			return append(b, plain)
		}
		switch r {
		case 'ß':
			return append(b, "ss"...)
		case 'æ':
			return append(b, "ae"...)
		case 'œ':
			return append(b, "oe"...)
		case 'þ':
			return append(b, "th"...)
		}
	}
	return append(b, string(r)...)
}

// latinFold gives the plain letter for U+00C0 to U+017F, '.' for none.
const latinFold = "" +
	"aaaaaa.ceeeeiiiidnooooo.ouuuuy.." + // U+00C0
	"aaaaaa.ceeeeiiiidnooooo.ouuuuy.y" + // U+00E0
	"aaaaaaccccccccddddeeeeeeeeeegggg" + // U+0100
	"gggghhhhiiiiiiiiii..jjkkkllllllll" + // U+0120
	"lllnnnnnnnnnoooooo..rrrrrrssssss" + // U+0140
	"ssttttttuuuuuuuuuuuuwwyyyzzzzzzs" // U+0160

// stopWords say nothing about which tool is wanted: function words, and the
// phrases by which a person asks for something. "get", "list" and "show" are
// not among them: they are what tools do.
var stopWords = wordSet(`
a about above after again all also am an and any anyone anything are aren around as at away
be became because been before being below between both but by
came can cannot cant could couldn couldnt
did didn do does doesn doing don done dont down during
each either else ever every everything few for from further
gonna got had hadn has hasn have haven having he hello help her here hers herself hey hi him himself his hoping how
i id if im in into is isn it its itself ive just kindly know
let lets like ll looking m may maybe me might mine more most much must my myself
need needed needs neither no nor not now
of off oh ok okay on once one only onto or other others ought our ours ourselves out over own
per please possible quite rather re really right
s same she should shouldn so some somehow someone something somewhere soon still such sure
t than thank thanks that the their theirs them themselves then there these they thing things this those though through thus to too
under until up upon us use used using usually
ve very via want wanted wants was wasn way we were weren what whatever when where whether which while who whom whose why will wish with within without won wonder wondering would wouldn
yes yet you your yours yourself yourselves d
`)

func wordSet(list string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}
