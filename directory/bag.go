package directory

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// field is the part of a tool in which a word stands.
type field int

const (
	inName   field = iota // name and title
	inServer              // the server's name
	inText                // the tool's description
	inParam               // names of parameters
	inNotes               // descriptions of parameters
	inAbout               // what the server says of itself
	inEnum                // values a parameter may have
	fields
)

// counts tells how often a word stands in each field of a tool, packed into
// the one number that the index keeps a word and tool. Full fields stay full.
type counts uint32

// fieldBits is where each field's count begins; 30 bits in all, so that it
// fits bluge's int on every system.
var fieldBits = [fields + 1]int{0, 3, 5, 11, 16, 22, 26, 30}

func (c counts) in(f field) int {
	return int(c>>fieldBits[f]) & (1<<(fieldBits[f+1]-fieldBits[f]) - 1)
}

func (c counts) add(f field) counts {
	if c.in(f) == 1<<(fieldBits[f+1]-fieldBits[f])-1 {
		return c
	}
	return c + 1<<fieldBits[f]
}

// docTerm is a word of a tool and how often it has it.
type docTerm struct {
	word *word
	n    counts
}

// Texts are read up to these sizes; a longer one is a manual, not a name.
const (
	maxText   = 8 << 10  // bytes of a description
	maxAbout  = 600      // bytes of a server's instructions
	maxDepth  = 5        // levels of a schema
	maxSchema = 64 << 10 // bytes of all texts of a schema; the longest seen in the wild has 5 KB
)

// analyzer reads the words of tools. It is for one goroutine.
type analyzer struct {
	words []*word
	terms []docTerm
	place map[string]int // of a term in terms
	left  int            // bytes that may still be read of the tool's schema
}

// read returns the words of t, each once, in the order of their appearance.
// They are good until the next call.
func (a *analyzer) read(t *upstreams.Tool, s upstreams.ServerInfo) []docTerm {
	if a.place == nil {
		a.place = make(map[string]int)
	}
	clear(a.place)
	a.terms = a.terms[:0]
	a.add(inName, t.Name)
	if t.Title != "" && t.Title != t.Name {
		a.addNew(inName, t.Title)
	}
	a.add(inServer, t.Server)
	if s.Title != "" && s.Title != t.Server {
		a.addNew(inServer, s.Title)
	}
	a.add(inText, cut(t.Description, maxText))
	a.add(inAbout, cut(s.Description, maxAbout))
	a.add(inAbout, cut(s.Instructions, maxAbout))
	if t.Trust != upstreams.TrustNone && len(t.InputSchema) > 0 {
		var node schemaNode
		// What does not fit is left out: a broken schema must not hide a tool.
		_ = json.Unmarshal(t.InputSchema, &node)
		a.left = maxSchema
		a.addSchema(&node, 0)
	}
	return a.terms
}

func (a *analyzer) split(text string) []*word {
	a.words = appendWords(a.words[:0], text)
	return a.words
}

// at returns the place of a word among the terms of the tool.
func (a *analyzer) at(w *word) *docTerm {
	i, ok := a.place[w.term]
	if !ok {
		i = len(a.terms)
		a.place[w.term] = i
		a.terms = append(a.terms, docTerm{word: w})
	}
	return &a.terms[i]
}

func (a *analyzer) add(f field, text string) {
	for _, w := range a.split(text) {
		if !w.stop {
			t := a.at(w)
			t.n = t.n.add(f)
		}
	}
}

// addNew is add, but for words that the field has already.
func (a *analyzer) addNew(f field, text string) {
	for _, w := range a.split(text) {
		if w.stop {
			continue
		}
		if t := a.at(w); t.n.in(f) == 0 {
			t.n = t.n.add(f)
		}
	}
}

// schemaNode is what search reads of a JSON schema.
type schemaNode struct {
	Description string                 `json:"description"`
	Properties  map[string]*schemaNode `json:"properties"`
	Items       *schemaNode            `json:"items"`
	Enum        []any                  `json:"enum"`
	AnyOf       []*schemaNode          `json:"anyOf"`
	OneOf       []*schemaNode          `json:"oneOf"`
	Defs        map[string]*schemaNode `json:"$defs"`
}

// addOfSchema is add, as long as the schema's texts are not too long together.
func (a *analyzer) addOfSchema(f field, text string) {
	text = cut(text, a.left)
	a.left -= len(text)
	a.add(f, text)
}

func (a *analyzer) addSchema(n *schemaNode, depth int) {
	if n == nil || depth > maxDepth || a.left == 0 {
		return
	}
	for _, v := range n.Enum {
		if s, ok := v.(string); ok {
			a.addOfSchema(inEnum, cut(s, maxWord))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		a.addOfSchema(inParam, name)
		if p := n.Properties[name]; p != nil {
			a.addOfSchema(inNotes, cut(p.Description, maxText))
			a.addSchema(p, depth+1)
		}
	}
	for _, sub := range slices.Concat([]*schemaNode{n.Items}, n.AnyOf, n.OneOf) {
		a.addSchema(sub, depth+1)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Defs)) {
		a.addSchema(n.Defs[name], depth+1)
	}
}

// cut returns at most max bytes of s.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return s[:max]
}
