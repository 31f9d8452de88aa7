package directory

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of the original (contract 5).
const (
	inputChars, inputProperties, inputDepth    = 300, 16, 4
	outputChars, outputProperties, outputDepth = 800, 22, 6

	maxPropertyName = 128 // characters
	maxUnion        = 5   // types
	maxEnum         = 8   // values
	maxEnumChars    = 96  // characters of all values together

	maxSchemaBytes = 1 << 20 // larger schemas are not read for a signature
	maxSchemaNodes = 20000   // subschemas looked at
	maxSignature   = 4 * outputChars
)

const (
	unknown   = "unknown"
	cutObject = "{ ... }"
)

// InputSignature renders an input schema as TypeScript-like text of at most
// 300 characters (contract 5), "unknown" if it cannot. Structure alone is
// shown: names, types, enums, bounds of numbers, never descriptions. What does
// not fit is left out from the inside and from the end.
func InputSignature(schema json.RawMessage) string {
	n, ok := parseSchema(schema, inputProperties, inputDepth)
	if !ok {
		return unknown
	}
	for depth := inputDepth; depth >= 0; depth-- {
		if sig := n.text(depth, true); utf8.RuneCountInString(sig) <= inputChars {
			return sig
		}
	}
	return n.fit(inputChars)
}

// OutputSignature renders an output schema of which nothing is left open or
// out, in at most 800 characters; else ok is false.
func OutputSignature(schema json.RawMessage) (sig string, ok bool) {
	n, ok := parseSchema(schema, outputProperties, outputDepth)
	if !ok || !n.complete {
		return "", false
	}
	sig = n.text(outputDepth, false)
	if utf8.RuneCountInString(sig) > outputChars {
		return "", false
	}
	return sig, true
}

// shape is a schema brought down to what a signature can say.
type shape struct {
	word       string     // a type or literal, or "" for the kinds below
	bounds     string     // comment behind a number
	items      *shape     // an array
	union      []*shape   // alternatives
	properties []property // an object, if object is set
	object     bool
	open       bool // an object that may have other properties than these
	complete   bool // everything the schema says is in the shape
}

type property struct {
	name     string // as it is shown
	required bool
	shape    *shape
}

// text renders a shape; objects below depth are cut. Text that is too long
// for any signature is not finished.
func (n *shape) text(depth int, notes bool) string {
	var b strings.Builder
	n.write(&b, depth, notes)
	return b.String()
}

func (n *shape) write(b *strings.Builder, depth int, notes bool) {
	switch {
	case b.Len() > maxSignature: // shapes that refer to themselves grow without end
	case n.items != nil:
		b.WriteString("Array<")
		n.items.write(b, depth-1, notes)
		b.WriteByte('>')
	case n.union != nil:
		for i, u := range n.union {
			if i > 0 {
				b.WriteString(" | ")
			}
			u.write(b, depth, notes)
		}
	case !n.object:
		b.WriteString(n.word)
		if notes && n.bounds != "" {
			b.WriteString(" /* " + n.bounds + " */")
		}
	case len(n.properties) == 0 && !n.open:
		b.WriteString("{}")
	case len(n.properties) == 0 || depth < 0:
		b.WriteString(cutObject)
	default:
		b.WriteString("{ ")
		for i, p := range n.properties {
			if i > 0 {
				b.WriteString("; ")
			}
			b.WriteString(p.key())
			p.shape.write(b, depth-1, notes)
		}
		if n.open {
			b.WriteString("; ...")
		}
		b.WriteString(" }")
	}
}

func (p property) key() string {
	if p.required {
		return p.name + ": "
	}
	return p.name + "?: "
}

// fit renders as many properties of an object as max characters hold, in
// their order, with their inner objects and notes cut.
func (n *shape) fit(max int) string {
	if !n.object {
		return unknown
	}
	const tail = "; ... }"
	var b strings.Builder
	used := len("{ ") + len(tail)
	for _, p := range n.properties {
		part := p.key() + p.shape.text(-1, false)
		size := utf8.RuneCountInString(part) + len("; ")
		if used+size > max {
			part = p.key() + unknown
			size = utf8.RuneCountInString(part) + len("; ")
		}
		if used+size > max {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(part)
		used += size
	}
	if b.Len() == 0 {
		return cutObject
	}
	return "{ " + b.String() + tail
}

func propertyName(s string) string {
	for i, c := range []byte(s) {
		letter := c == '_' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

// quote writes a JSON string in which everything that a reader cannot see is
// escaped: the value stays exact, and nothing hides in it.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == ' ' || r == shown(r) && unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16Pair(r)
			b.WriteString(`\u` + hex4(hi) + `\u` + hex4(lo))
		default:
			b.WriteString(`\u` + hex4(r))
		}
	}
	b.WriteByte('"')
	return b.String()
}

func hex4(r rune) string { return strconv.FormatInt(int64(r)|0x10000, 16)[1:] }

func utf16Pair(r rune) (hi, lo rune) {
	r -= 0x10000
	return 0xd800 + r>>10, 0xdc00 + r&0x3ff
}
