package directory

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// synonymText is the lists of words that stand for one another.
//
//go:embed synonyms.txt
var synonymText string

// synonym is one word that stands for another.
type synonym struct {
	term string
	same bool // another name of the same thing, not only close to it
}

// thesaurus is synonymText as queries need it.
type thesaurus struct {
	synonyms map[string][]synonym  // by term
	phrases  map[[2]string][]*word // by the texts of two neighbouring words
}

var theThesaurus = sync.OnceValue(func() *thesaurus {
	t := &thesaurus{synonyms: make(map[string][]synonym), phrases: make(map[[2]string][]*word)}
	section := ""
	for line := range strings.Lines(synonymText) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			section, _, _ = strings.Cut(line[1:], "]")
			continue
		}
		left, right, _ := strings.Cut(line, ":")
		switch section {
		case "same", "near":
			all := appendWords(nil, left)
			t.add(all, all, section == "same")
		case "kinds":
			t.add(appendWords(nil, left), appendWords(nil, right), false)
		case "phrases":
			pair := appendWords(nil, left)
			t.phrases[[2]string{pair[0].text, pair[1].text}] = appendWords(nil, right)
		}
	}
	return t
})

// add makes each of to stand for each of from.
func (t *thesaurus) add(from, to []*word, same bool) {
	for _, f := range from {
		for _, w := range to {
			if f.term != w.term && !t.has(f.term, w.term) {
				t.synonyms[f.term] = append(t.synonyms[f.term], synonym{w.term, same})
			}
		}
	}
}

// has tells whether to stands for from.
func (t *thesaurus) has(from, to string) bool {
	return slices.ContainsFunc(t.synonyms[from], func(s synonym) bool { return s.term == to })
}

// destructive are the verbs of tools that destroy things.
var destructive = sync.OnceValue(func() map[string]bool {
	return termSet(`delete remove erase clear drop destroy purge trash wipe flush kill terminate
		uninstall revoke discard forget unlink cancel void clean empty rid reset`)
})

// harmless are the verbs of tools that do not.
var harmless = sync.OnceValue(func() map[string]bool {
	return termSet(`add create make insert generate build new get fetch retrieve read view display list enumerate browse
		search find query lookup update edit modify change rename send post reply forward upload download copy move
		export import save open close start launch run execute pause resume restart finish complete resolve schedule book
		buy pay translate convert summarize calculate compare count check test validate merge assign comment share invite`)
})

func termSet(list string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range appendWords(nil, list) {
		set[w.term] = true
	}
	return set
}
