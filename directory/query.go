package directory

import (
	"math"
	"slices"
	"unicode/utf8"
)

// Queries are read up to these sizes (contract 4: any text is a query).
const (
	maxQueryBytes = 4096
	maxQueryWords = 64 // different ones
)

// What an alternative counts beside the word of the query itself. How these
// and the other constants of the formula were found, and what else was tried,
// is in docs/rationale.md.
const (
	sameShare    = .9  // another name of the same thing
	nearShare    = .35 // a word close to it, while tools have the word itself
	absentShare  = .8  // the same, when no tool has the word itself
	phraseShare  = .9  // what two words mean together
	literalShare = .5  // the word itself, where it means another with its neighbour
	joinedShare  = .8  // two words written as one
	longerShare  = .3  // a word that begins with it
	slipShare    = .6  // a word that it may be a slip of
	meaningShare = .3  // a word near in meaning, times the cosine
	saidShare    = .5  // what says the word rather than something like it

	longerLetters, longerMost = 4, 5 // of a word; alternatives
	slipLetters, slipMost     = 4, 3
	meaningLeast, meaningMost = .4, 10 // cosine; alternatives
)

// query is a text as the index is asked.
type query struct {
	groups   []group
	mean     vector
	tools    int  // how many there are
	destroys bool // asks for something to be deleted or stopped
	acts     bool // says what is to be done
}

// group is one word of the query with all that stands for it. A tool gets the
// best of a group, not the sum: it is one word.
type group struct {
	weight float64 // how often and how seriously the word is asked
	idf    float64 // of the word itself
	alts   []alternative
}

// alternative is a word of the index that stands for a word of the query.
type alternative struct {
	term  string
	share float64 // 1 for the word itself
	idf   float64
}

// parse makes a query of a text.
func (r *ranker) parse(text string) query {
	words := appendWords(nil, text)
	p := parser{r: r, times: make(map[string]int)}
	p.q.tools = r.n
	words, extra := p.pairs(words)
	var terms []*word
	for _, w := range words {
		if w.stop {
			continue
		}
		if p.times[w.term]++; p.times[w.term] == 1 && len(terms) < maxQueryWords {
			terms = append(terms, w)
		}
	}
	for _, w := range terms {
		p.q.destroys = p.q.destroys || destructive()[w.term]
		p.q.acts = p.q.acts || harmless()[w.term]
		p.word(w, extra[w.term])
	}
	p.q.mean.normalize()
	return p.q
}

// cutText returns at most max bytes of s, whole characters.
func cutText(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

type parser struct {
	r     *ranker
	q     query
	times map[string]int // how often the query has a term
}

// word adds the group of one word of the query.
func (p *parser) word(w *word, extra []alternative) {
	v := p.r.vocab
	df := v.count(w.term)
	g := group{weight: 1 + math.Log(float64(p.times[w.term]))}
	idf := p.r.idf(df)
	add := func(term string, share float64) {
		if term == w.term {
			return
		}
		if n := v.count(term); n > 0 {
			g.alts = append(g.alts, alternative{term, share, p.r.idf(n)})
		}
	}
	if w.row >= 0 {
		p.q.mean.addWord(&vectors().rows[w.row], float32(g.weight*idf))
	}
	if df > 0 {
		share := 1.0
		if len(extra) > 0 {
			share = literalShare
		}
		g.alts = append(g.alts, alternative{w.term, share, idf})
	}
	for _, e := range extra {
		add(e.term, e.share)
	}
	for _, s := range theThesaurus().synonyms[w.term] {
		if p.times[s.term] > 0 {
			continue // counts for itself
		}
		switch {
		case s.same:
			add(s.term, sameShare)
		case df == 0:
			add(s.term, absentShare)
		default:
			add(s.term, nearShare)
		}
	}
	if len(w.term) >= longerLetters {
		for _, term := range v.longer(w.term, longerMost) {
			add(term, longerShare)
		}
	}
	switch {
	case df > 0:
	case w.row >= 0:
		for _, n := range v.near(w.term, meaningMost, meaningLeast) {
			if p.times[n.term] == 0 {
				add(n.term, meaningShare*n.cos)
			}
		}
	case len(w.term) >= slipLetters:
		for _, term := range v.repair(w.term, slipMost) {
			add(term, slipShare)
		}
	}
	g.idf = idf
	p.q.groups = append(p.q.groups, g)
}

// pairs finds what neighbouring words of the query mean together: for each of
// their terms what else stands for it, and words to add where both say nothing
// alone (how much: price).
func (p *parser) pairs(words []*word) ([]*word, map[string][]alternative) {
	extra := make(map[string][]alternative)
	more := slices.Clip(words)
	for i := range max(0, len(words)-1) {
		a, b := words[i], words[i+1]
		if to, ok := theThesaurus().phrases[[2]string{a.text, b.text}]; ok {
			at := a
			if a.stop {
				at = b
			}
			for _, w := range to {
				p.q.destroys = p.q.destroys || destructive()[w.term]
				if at.stop {
					more = append(more, w)
				} else {
					extra[at.term] = append(extra[at.term], alternative{term: w.term, share: phraseShare})
				}
			}
		}
		if !a.stop && !b.stop && len(a.text)+len(b.text) < maxWord-8 {
			joined := newWord(a.text + b.text).term
			if p.r.vocab.count(joined) > 0 {
				for _, w := range []*word{a, b} {
					extra[w.term] = append(extra[w.term], alternative{term: joined, share: joinedShare})
				}
			}
		}
	}
	return more, extra
}
