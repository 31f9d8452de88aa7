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

// bag is the words of one tool.
type bag map[string]counts

// Texts are read up to these sizes; a longer one is a manual, not a name.
const (
	maxText  = 8 << 10 // bytes of a description
	maxAbout = 600     // bytes of a server's instructions
	maxDepth = 5       // levels of a schema
)

// analyzer fills bags. It is for one goroutine.
type analyzer struct {
	words []*word
}

// fill replaces the content of b by the words of t.
func (a *analyzer) fill(b bag, t *upstreams.Tool, s upstreams.ServerInfo) {
	clear(b)
	a.add(b, inName, t.Name)
	if t.Title != "" && t.Title != t.Name {
		a.addNew(b, inName, t.Title)
	}
	a.add(b, inServer, t.Server)
	a.add(b, inText, cut(t.Description, maxText))
	if s.Title != "" && s.Title != t.Server {
		a.addNew(b, inServer, s.Title)
	}
	a.add(b, inAbout, cut(s.Description, maxAbout))
	a.add(b, inAbout, cut(s.Instructions, maxAbout))
	if t.Trust != upstreams.TrustNone && len(t.InputSchema) > 0 {
		var node schemaNode
		// What does not fit is left out: a broken schema must not hide a tool.
		_ = json.Unmarshal(t.InputSchema, &node)
		a.addSchema(b, &node, 0)
	}
}

func (a *analyzer) split(text string) []*word {
	a.words = appendWords(a.words[:0], text)
	return a.words
}

func (a *analyzer) add(b bag, f field, text string) {
	for _, w := range a.split(text) {
		if !w.stop {
			b[w.term] = b[w.term].add(f)
		}
	}
}

// addNew is add, but for words that the field has already.
func (a *analyzer) addNew(b bag, f field, text string) {
	for _, w := range a.split(text) {
		if !w.stop && b[w.term].in(f) == 0 {
			b[w.term] = b[w.term].add(f)
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

func (a *analyzer) addSchema(b bag, n *schemaNode, depth int) {
	if n == nil || depth > maxDepth {
		return
	}
	for _, v := range n.Enum {
		if s, ok := v.(string); ok {
			a.add(b, inEnum, cut(s, maxWord))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		a.add(b, inParam, name)
		if p := n.Properties[name]; p != nil {
			a.add(b, inNotes, cut(p.Description, maxText))
			a.addSchema(b, p, depth+1)
		}
	}
	for _, sub := range slices.Concat([]*schemaNode{n.Items}, n.AnyOf, n.OneOf) {
		a.addSchema(b, sub, depth+1)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Defs)) {
		a.addSchema(b, n.Defs[name], depth+1)
	}
}

// cut returns at most max bytes of s.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return s[:max]
}
