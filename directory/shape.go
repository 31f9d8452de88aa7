package directory

import (
	"bytes"
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// schemaReader turns a schema into a shape. It looks at a referenced schema
// once a depth and at so many subschemas in all, so that a hostile schema
// costs no more than a large honest one.
type schemaReader struct {
	root          any
	maxProperties int
	maxDepth      int
	nodes         int
	refs          map[refKey]*shape
}

type refKey struct {
	ref   string
	depth int
}

// parseSchema reads a schema; ok is false if nothing can be said about it.
func parseSchema(schema json.RawMessage, maxProperties, maxDepth int) (n *shape, ok bool) {
	if len(schema) == 0 || len(schema) > maxSchemaBytes {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	var root any
	if err := dec.Decode(&root); err != nil {
		return nil, false
	}
	r := schemaReader{root: root, maxProperties: maxProperties, maxDepth: maxDepth, refs: make(map[refKey]*shape)}
	n = r.read(root, 0)
	return n, n.object || n.word != unknown
}

func unknownShape() *shape { return &shape{word: unknown} }

func (r *schemaReader) read(schema any, depth int) *shape {
	r.nodes++
	s, _ := schema.(map[string]any)
	if len(s) == 0 || depth > r.maxDepth || r.nodes > maxSchemaNodes {
		return unknownShape()
	}
	if ref, ok := s["$ref"].(string); ok {
		return withNull(r.readRef(ref, depth), isNullable(s))
	}
	if all, ok := s["allOf"].([]any); ok && len(all) == 1 && !hasAny(s, "type", "properties", "enum", "const", "anyOf", "oneOf") {
		return withNull(r.read(all[0], depth), isNullable(s))
	}
	n := r.readTypes(s, depth)
	if hasAny(s, "allOf", "not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies",
		"contains", "$dynamicRef", "$recursiveRef") {
		restricted := *n
		restricted.complete = false
		restricted.open = restricted.object
		n = &restricted
	}
	return withNull(n, isNullable(s))
}

func (r *schemaReader) readRef(ref string, depth int) *shape {
	key := refKey{ref, depth}
	if n := r.refs[key]; n != nil {
		return n
	}
	r.refs[key] = unknownShape() // what it is to itself, without a property between
	n := r.read(r.resolve(ref), depth)
	r.refs[key] = n
	return n
}

// resolve follows a JSON pointer of this document, nil if there is nothing.
func (r *schemaReader) resolve(ref string) any {
	pointer, ok := strings.CutPrefix(ref, "#")
	if unescaped, err := url.PathUnescape(pointer); err == nil {
		pointer = unescaped
	}
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil
	}
	at := r.root
	for pointer != "" {
		var key string
		key, pointer = pointer[1:], ""
		if i := strings.IndexByte(key, '/'); i >= 0 {
			key, pointer = key[:i], key[i:]
		}
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		switch v := at.(type) {
		case map[string]any:
			at = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}

// readTypes reads a schema that is no alias.
func (r *schemaReader) readTypes(s map[string]any, depth int) *shape {
	if v, ok := s["const"]; ok {
		return literals([]any{v})
	}
	if values, ok := s["enum"].([]any); ok {
		return literals(values)
	}
	anyOf, isAny := s["anyOf"].([]any)
	oneOf, isOne := s["oneOf"].([]any)
	if isAny || isOne {
		if _, ok := s["properties"].(map[string]any); ok {
			n := r.readObject(s, depth) // the alternatives only restrict it further
			n.open, n.complete = true, false
			return n
		}
		switch s["type"] {
		case "string", "number", "integer", "boolean":
			n := r.readTypes(map[string]any{"type": s["type"]}, depth)
			n.complete = false // the alternatives only restrict it further
			return n
		}
		if isAny && isOne {
			return unknownShape()
		}
		return r.readUnion(append(anyOf, oneOf...), depth)
	}
	switch t := s["type"].(type) {
	case string:
		return r.readType(s, t, depth)
	case []any:
		var variants []*shape
		for _, t := range t {
			name, _ := t.(string)
			variants = append(variants, r.readType(s, name, depth))
		}
		return union(variants)
	}
	switch {
	case hasAny(s, "properties", "additionalProperties", "required"):
		return r.readType(s, "object", depth)
	case hasAny(s, "items", "prefixItems"):
		return r.readType(s, "array", depth)
	}
	return unknownShape()
}

func (r *schemaReader) readUnion(variants []any, depth int) *shape {
	if len(variants) > maxUnion+1 { // one of them may be null
		return unknownShape()
	}
	var shapes []*shape
	for _, v := range variants {
		shapes = append(shapes, r.read(v, depth))
	}
	return union(shapes)
}

// union joins alternatives. One type or null is that type, whatever it is;
// a real union says something only if each of its types is complete.
func union(variants []*shape) *shape {
	var types []*shape
	var texts []string
	null := false
	for _, v := range variants {
		for _, v := range v.alternatives() {
			text := v.text(outputDepth, true)
			switch {
			case v.word == "null":
				null = true
			case !slices.Contains(texts, text):
				types, texts = append(types, v), append(texts, text)
			}
		}
	}
	switch {
	case len(types) == 0 && null:
		return &shape{word: "null", complete: true}
	case len(types) == 1:
		return withNull(types[0], null)
	case len(types) == 0 || len(types) > maxUnion:
		return unknownShape()
	}
	for _, t := range types {
		if !t.complete {
			return unknownShape()
		}
	}
	return withNull(&shape{union: types, complete: true}, null)
}

func (n *shape) alternatives() []*shape {
	if n.union != nil {
		return n.union
	}
	return []*shape{n}
}

func withNull(n *shape, null bool) *shape {
	if !null || n.word == unknown || n.word == "null" {
		return n
	}
	types := n.alternatives()
	if types[len(types)-1].word == "null" {
		return n
	}
	types = append(slices.Clip(types), &shape{word: "null", complete: true})
	return &shape{union: types, complete: n.complete}
}

// isNullable: OpenAPI's keyword, or a default that is null.
func isNullable(s map[string]any) bool {
	if v, ok := s["default"]; ok && v == nil {
		return true
	}
	return s["nullable"] == true
}

func (r *schemaReader) readType(s map[string]any, name string, depth int) *shape {
	switch name {
	case "string", "boolean", "null":
		return &shape{word: name, complete: true}
	case "number", "integer":
		return &shape{word: "number", bounds: bounds(s, name == "integer"), complete: true}
	case "array":
		if _, tuple := s["items"].([]any); tuple || hasAny(s, "prefixItems") {
			return unknownShape()
		}
		items := r.read(s["items"], depth+1)
		return &shape{items: items, complete: items.complete}
	case "object":
		return r.readObject(s, depth)
	}
	return unknownShape()
}

func (r *schemaReader) readObject(s map[string]any, depth int) *shape {
	n := &shape{object: true}
	declared, isMap := s["properties"].(map[string]any)
	closed := s["additionalProperties"] == false || s["unevaluatedProperties"] == false
	_, opened := s["additionalProperties"]
	// A schema that lists properties and is silent about others is shown as if
	// closed, as in the original; but it promises nothing, so it is not complete.
	n.complete = closed
	n.open = !closed && (opened || !isMap)
	if hasAny(s, "patternProperties") {
		n.open = true
	}

	var required []string
	if list, ok := s["required"].([]any); ok {
		for _, v := range list[:min(len(list), maxSchemaNodes)] {
			if name, ok := v.(string); ok {
				required = append(required, name)
			}
		}
	}
	slices.Sort(required)
	required = slices.Compact(required)
	var optional []string
	for name := range declared {
		if _, isRequired := slices.BinarySearch(required, name); !isRequired {
			optional = append(optional, name)
		}
	}
	slices.Sort(optional)

	for i, name := range append(required, optional...) {
		if len(n.properties) == r.maxProperties || isLonger(name, maxPropertyName) {
			n.open = true
			continue
		}
		p := property{name: propertyName(name), required: i < len(required), shape: r.read(declared[name], depth+1)}
		n.properties = append(n.properties, p)
		n.complete = n.complete && p.shape.complete
	}
	n.complete = n.complete && !n.open
	return n
}

// literals renders the values of an enum or const.
func literals(values []any) *shape {
	if len(values) == 0 || len(values) > maxEnum {
		return unknownShape()
	}
	var words []string
	null, chars := false, 0
	for _, v := range values {
		word := ""
		switch v := v.(type) {
		case nil:
			null = true
			continue
		case bool:
			word = strconv.FormatBool(v)
		case json.Number:
			word = v.String()
		case string:
			if isLonger(v, maxEnumChars) {
				return unknownShape()
			}
			word = quote(v)
		default:
			return unknownShape()
		}
		if chars += utf8.RuneCountInString(word); chars > maxEnumChars {
			return unknownShape()
		}
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return &shape{word: "null", complete: true}
	}
	return withNull(&shape{word: strings.Join(words, " | "), complete: true}, null)
}

// bounds describes what numbers are allowed, "" if all.
func bounds(s map[string]any, integer bool) string {
	var parts []string
	if integer {
		parts = append(parts, "integer")
	}
	for _, side := range []struct{ sign, inclusive, exclusive string }{
		{">", "minimum", "exclusiveMinimum"}, {"<", "maximum", "exclusiveMaximum"},
	} {
		limit, isLimit := bound(s[side.inclusive])
		strict, isStrict := bound(s[side.exclusive])
		switch {
		case isStrict:
			parts = append(parts, side.sign+" "+strict)
		case isLimit && s[side.exclusive] == true: // draft-04
			parts = append(parts, side.sign+" "+limit)
		case isLimit:
			parts = append(parts, side.sign+"= "+limit)
		}
	}
	return strings.Join(parts, ", ")
}

// bound reads a limit of a number. One that every integer of JavaScript
// obeys is written by generators, not meant by people.
func bound(v any) (string, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 24 {
		return "", false
	}
	f, err := n.Float64()
	if err != nil || math.Abs(f) >= 1<<53-1 {
		return "", false
	}
	return n.String(), true
}

// isLonger tells whether s has more than max characters, without counting
// them all.
func isLonger(s string, max int) bool {
	return len(s) > max && (len(s) > utf8.UTFMax*max || utf8.RuneCountInString(s) > max)
}

func hasAny(s map[string]any, keys ...string) bool {
	for _, k := range keys {
		if _, ok := s[k]; ok {
			return true
		}
	}
	return false
}
