package aggregator

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
)

// tree is a JSON value taken apart once, so that walking it costs its size and
// not its size times its depth: schemas are what servers make of them. Scalars
// and keys keep their bytes.
type tree struct {
	kind  byte   // '{', '[', or 0 for a scalar
	raw   []byte // the whole value
	names []string
	keys  [][]byte // the names as they were written, quoted
	items []*tree
}

// parseTree returns nil for what is no JSON.
func parseTree(v json.RawMessage) *tree {
	if !json.Valid(v) {
		return nil
	}
	p := &treeParser{b: v}
	return p.value()
}

// treeParser reads what json.Valid has accepted.
type treeParser struct {
	b []byte
	i int
}

func (p *treeParser) value() *tree {
	p.space()
	begin := p.i
	t := &tree{}
	switch c := p.b[p.i]; c {
	case '{', '[':
		t.kind = c
		p.i++
		for p.space(); p.b[p.i] != c+2; p.space() { // '}' and ']' are two after theirs
			if p.b[p.i] == ',' {
				p.i++
				continue
			}
			if c == '{' {
				key := p.text()
				name, _ := textOf(key)
				t.keys, t.names = append(t.keys, key), append(t.names, name)
				p.space()
				p.i++ // the colon
			}
			t.items = append(t.items, p.value())
		}
		p.i++
	case '"':
		p.text()
	default:
		for p.i < len(p.b) && strings.IndexByte(" \t\r\n,]}", p.b[p.i]) < 0 {
			p.i++
		}
	}
	t.raw = p.b[begin:p.i:p.i]
	return t
}

func (p *treeParser) space() {
	for p.i < len(p.b) && strings.IndexByte(" \t\r\n", p.b[p.i]) >= 0 {
		p.i++
	}
}

func (p *treeParser) text() []byte {
	begin := p.i
	for p.i++; p.b[p.i] != '"'; p.i++ {
		if p.b[p.i] == '\\' {
			p.i++
		}
	}
	p.i++
	return p.b[begin:p.i:p.i]
}

// encode writes the value with {} in place of the subtrees in cuts.
func (t *tree) encode(cuts map[*tree]bool) json.RawMessage {
	return t.append(make([]byte, 0, len(t.raw)), cuts)
}

func (t *tree) append(b []byte, cuts map[*tree]bool) []byte {
	switch {
	case cuts[t]:
		return append(b, "{}"...)
	case t.kind == 0:
		return append(b, t.raw...)
	}
	b = append(b, t.kind)
	for i, item := range t.items {
		if i > 0 {
			b = append(b, ',')
		}
		if t.kind == '{' {
			b = append(append(b, t.keys[i]...), ':')
		}
		b = item.append(b, cuts)
	}
	return append(b, t.kind+2)
}

// get returns the member of an object, nil if it has none of that name.
func (t *tree) get(name string) *tree {
	for i, n := range t.names {
		if n == name {
			return t.items[i]
		}
	}
	return nil
}

// name is what a pointer calls item i.
func (t *tree) name(i int) string {
	if t.kind == '{' {
		return t.names[i]
	}
	return strconv.Itoa(i)
}

// at follows a JSON pointer (RFC 6901).
func (t *tree) at(pointer string) (*tree, error) {
	if pointer == "" {
		return t, nil
	}
	where := ""
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		next := t.get(name)
		if i, err := strconv.Atoi(name); err == nil && t.kind == '[' && i >= 0 && i < len(t.items) {
			next = t.items[i]
		}
		if next == nil {
			return nil, t.missing(where, name)
		}
		where, t = where+"/"+token, next
	}
	return t, nil
}

// missing says that a pointer leads nowhere, and where it could lead.
func (t *tree) missing(where, name string) error {
	if where == "" {
		where = "the root"
	}
	if len(t.items) == 0 {
		return fmt.Errorf("nothing is below %s", where)
	}
	var names []string
	for i := range t.items {
		names = append(names, directory.OneLine(t.name(i), 40))
	}
	return fmt.Errorf("%s has no %q; it has %s", where, directory.OneLine(name, 40), directory.JoinNames(names, 300))
}

// escape writes a name as a reference token of RFC 6901.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
