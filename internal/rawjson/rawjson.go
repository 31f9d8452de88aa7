// Package rawjson reads and edits JSON objects without touching the bytes of
// their values: numbers keep their digits, members their order, unknown
// members stay.
//
// It judges strictly, because policy is decided on the same bytes that are
// sent on: keys are compared byte for byte after unescaping, and duplicate
// keys are an error. It does not validate against schemas.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// ErrNotObject is returned by Parse for valid JSON that is not an object.
var ErrNotObject = errors.New("not a JSON object")

// Member is one name/value pair. Value holds the bytes as they were read.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Object is a JSON object in the order it was written. The zero value is the
// empty object. Values alias the parsed input.
type Object []Member

// Parse reads one JSON object. Errors: invalid JSON, [ErrNotObject], and
// duplicate member names at the top level.
func Parse(b []byte) (Object, error) {
	if !json.Valid(b) {
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			return nil, fmt.Errorf("invalid JSON: %w", err)
		}
		return nil, errors.New("invalid JSON")
	}
	if b[skipSpace(b, 0)] != '{' {
		return nil, ErrNotObject
	}
	var o Object
	for name, value := range Members(b) {
		if o.index(name) >= 0 {
			return nil, fmt.Errorf("duplicate key %q", name)
		}
		o = append(o, Member{name, value})
	}
	return o, nil
}

// Members yields the members of an object as they were written, duplicate
// ones too. It is for those who cannot afford to check b again: b must be an
// object that [json.Valid] accepts.
func Members(b []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		i := skipSpace(b, skipSpace(b, 0)+1)
		for b[i] != '}' {
			end := skipString(b, i)
			name := Unquote(b[i:end])
			i = skipSpace(b, skipSpace(b, end)+1) // past the colon
			end = skipValue(b, i)
			if !yield(name, b[i:end:end]) {
				return
			}
			if i = skipSpace(b, end); b[i] == ',' {
				i = skipSpace(b, i+1)
			}
		}
	}
}

// CheckDuplicates reports the first duplicate key at any depth, with the path
// of its object. It reads the value once, whatever its depth.
func CheckDuplicates(b []byte) error {
	if !json.Valid(b) {
		_, err := Parse(b)
		return err
	}
	_, err := checkDuplicates(b, skipSpace(b, 0), nil)
	return err
}

// checkDuplicates walks the value at i, which stands at path, and returns
// where it ends.
func checkDuplicates(b []byte, i int, path []string) (end int, err error) {
	if b[i] != '{' && b[i] != '[' {
		return skipValue(b, i), nil
	}
	object := b[i] == '{'
	var seen map[string]bool
	i = skipSpace(b, i+1)
	for n := 0; b[i] != '}' && b[i] != ']'; n++ {
		name := strconv.Itoa(n)
		if object {
			end := skipString(b, i)
			name = Unquote(b[i:end])
			switch {
			case !seen[name] && seen == nil:
				seen = map[string]bool{name: true}
			case !seen[name]:
				seen[name] = true
			case len(path) == 0:
				return 0, fmt.Errorf("duplicate key %q", name)
			default:
				return 0, fmt.Errorf("duplicate key %q in /%s", name, strings.Join(path, "/"))
			}
			i = skipSpace(b, skipSpace(b, end)+1) // past the colon
		}
		if i, err = checkDuplicates(b, i, append(path, name)); err != nil {
			return 0, err
		}
		if i = skipSpace(b, i); b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	return i + 1, nil
}

// Array returns the items of a JSON array, each as the bytes that were read.
func Array(b []byte) ([]json.RawMessage, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(b, &items); err != nil {
		return nil, err
	}
	return items, nil
}

// List encodes a JSON array of values, the bytes of which stay.
func List(items ...json.RawMessage) json.RawMessage {
	n := 2
	for _, it := range items {
		n += len(it) + 1
	}
	b := append(make([]byte, 0, n), '[')
	for i, it := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, it...)
	}
	return append(b, ']')
}

// Kind names the type of a value, by its first byte, as a sentence does: "an
// object"; "nothing" for no bytes.
func Kind(v json.RawMessage) string {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return "nothing"
	}
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func (o Object) index(name string) int {
	for i := range o {
		if o[i].Name == name {
			return i
		}
	}
	return -1
}

// Has tells whether the member is there, null included.
func (o Object) Has(name string) bool { return o.index(name) >= 0 }

// Get returns the value of a member, nil when it is absent.
func (o Object) Get(name string) json.RawMessage {
	if i := o.index(name); i >= 0 {
		return o[i].Value
	}
	return nil
}

// Text returns the value of a member that is a string, and whether it is one.
func (o Object) Text(name string) (string, bool) {
	v := bytes.TrimSpace(o.Get(name))
	if len(v) == 0 || v[0] != '"' {
		return "", false
	}
	s, err := unquote(v)
	return s, err == nil
}

// With returns a copy in which the member has this value; a new member goes last.
func (o Object) With(name string, value json.RawMessage) Object {
	out := append(make(Object, 0, len(o)+1), o...)
	if i := out.index(name); i >= 0 {
		out[i].Value = value
		return out
	}
	return append(out, Member{name, value})
}

// Without returns a copy that lacks the member.
func (o Object) Without(name string) Object {
	out := make(Object, 0, len(o))
	for _, m := range o {
		if m.Name != name {
			out = append(out, m)
		}
	}
	return out
}

// Bytes encodes the object: the values' bytes as they are, no added blanks.
func (o Object) Bytes() json.RawMessage {
	n := 2
	for _, m := range o {
		n += len(m.Name) + len(m.Value) + 4
	}
	b := append(make([]byte, 0, n), '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, Quote(m.Name)...)
		b = append(b, ':')
		if len(m.Value) == 0 {
			b = append(b, "null"...)
		} else {
			b = append(b, m.Value...)
		}
	}
	return append(b, '}')
}

// MarshalJSON implements [json.Marshaler].
func (o Object) MarshalJSON() ([]byte, error) { return o.Bytes(), nil }

// Quote encodes a JSON string without HTML escaping.
func Quote(s string) json.RawMessage {
	if isPlain(s) {
		b := append(make([]byte, 0, len(s)+2), '"')
		return append(append(b, s...), '"')
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return bytes.TrimRight(buf.Bytes(), "\n")
}

// IsNull tells whether a value is absent or the JSON null.
func IsNull(v json.RawMessage) bool {
	v = bytes.TrimSpace(v)
	return len(v) == 0 || string(v) == "null"
}

// Unquote decodes a JSON string that [json.Valid] accepts.
func Unquote(b []byte) string {
	s, err := unquote(b)
	if err != nil {
		panic(err)
	}
	return s
}

func unquote(b []byte) (string, error) {
	if n := len(b); n >= 2 && b[0] == '"' && b[n-1] == '"' && isPlain(b[1:n-1]) {
		return string(b[1 : n-1]), nil
	}
	var s string
	err := json.Unmarshal(b, &s)
	return s, err
}

// isPlain tells whether a text is the same inside of a JSON string.
func isPlain[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// The skippers walk JSON that json.Valid has accepted.

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func skipValue(b []byte, i int) int {
	depth := 0
	for {
		switch c := b[i]; c {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		default:
			i++
			if depth == 0 { // a number or a literal: up to its end
				for i < len(b) && strings.IndexByte(" \t\r\n,}]", b[i]) < 0 {
					i++
				}
			}
		}
		if depth == 0 {
			return i
		}
	}
}
