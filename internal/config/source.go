package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Limits on what aliases may blow up to.
const (
	maxNodes = 100_000
	maxDepth = 64
)

// read turns the file's bytes into one tree without aliases and merge keys.
// It returns nil after it has reported a problem.
func (d *decoder) read(data []byte) *yaml.Node {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")),
		len(data) > 1 && (data[0] == 0) != (data[1] == 0):
		d.problem(0, "is UTF-16 text; save it as UTF-8")
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if i, what := unreadable(data); what != "" {
		d.problem(lineAt(data, i), "holds "+what+"; save the file as plain UTF-8 text")
		return nil
	}
	if json.Valid(data) {
		data = plainJSON(data)
	}

	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && isNull(doc.Content[0]) {
		d.problem(0, `is empty; write at least "mcpServers:" with one server`)
		return nil
	}
	if err != nil {
		d.syntax(err, data)
		return nil
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		d.problem(second.Line, `begins a second document ("---"); a configuration is one document`)
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(err, data)
		return nil
	}
	d.nodes = maxNodes
	root := d.flatten(doc.Content[0], 0)
	if root != nil && root.Kind != yaml.MappingNode {
		d.problem(root.Line, `must be a mapping such as "mcpServers:", not `+kindOf(root))
		return nil
	}
	return root
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntax reports what the YAML parser says, with its usual causes named.
func (d *decoder) syntax(err error, data []byte) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	if strings.HasPrefix(text, "did not find expected") {
		line++ // the parser counts from 0 where its scanner counts from 1
	}
	lines := strings.Split(string(data), "\n")
	line = min(max(line, 1), len(lines))
	for i, l := range lines {
		indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if strings.Contains(indent, "\t") && !jsonStyle(data) {
			d.problem(i+1, "is indented with a tab; YAML wants spaces")
			return
		}
	}
	text = "is not valid YAML: " + text
	if rest := lines[line-1:]; strings.Contains(strings.Join(rest, "\n"), "${") {
		text += "; inside {…} and […] put quotes around a value that holds ${…}"
	}
	d.problem(line, text)
}

// flatten returns a copy of the tree in which aliases are replaced by what
// they stand for and merge keys are merged, so that the rest of the package
// meets only mappings, lists and scalars. Line numbers stay.
func (d *decoder) flatten(n *yaml.Node, depth int) *yaml.Node {
	if d.nodes--; d.nodes < 0 || depth > maxDepth {
		if len(d.problems) == 0 {
			d.problem(n.Line, fmt.Sprintf("grows too large: more than %d values or %d levels (aliases counted as what they stand for)", maxNodes, maxDepth))
		}
		return nil
	}
	if n.Kind == yaml.AliasNode {
		return d.flatten(n.Alias, depth+1)
	}
	switch n.ShortTag() {
	case "!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp":
	default:
		d.problem(n.Line, fmt.Sprintf("has the tag %s; tags are not used here", n.Tag))
		return nil
	}
	out := *n
	out.Content = nil
	if n.Kind != yaml.MappingNode {
		for _, c := range n.Content {
			if f := d.flatten(c, depth+1); f != nil {
				out.Content = append(out.Content, f)
			}
		}
		return &out
	}

	lines := map[string]int{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind == yaml.ScalarNode && key.Tag == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if key.Kind != yaml.ScalarNode || isNull(key) {
			d.problem(key.Line, "has a key that is no text")
			continue
		}
		if first, ok := lines[key.Value]; ok {
			d.problem(key.Line, fmt.Sprintf("key %q is there already in line %d", key.Value, first))
			continue
		}
		lines[key.Value] = key.Line
		if v := d.flatten(value, depth+1); v != nil {
			out.Content = append(out.Content, key, v)
		}
	}
	for _, m := range merged {
		from := d.flatten(m, depth+1)
		if from == nil {
			continue
		}
		list := []*yaml.Node{from}
		if from.Kind == yaml.SequenceNode {
			list = from.Content
		}
		for _, src := range list {
			if src.Kind != yaml.MappingNode {
				d.problem(m.Line, `"<<" merges mappings, not `+kindOf(src))
				continue
			}
			for i := 0; i+1 < len(src.Content); i += 2 {
				if _, ok := lines[src.Content[i].Value]; !ok {
					lines[src.Content[i].Value] = src.Content[i].Line
					out.Content = append(out.Content, src.Content[i], src.Content[i+1])
				}
			}
		}
	}
	return &out
}

func lineAt(data []byte, i int) int { return 1 + bytes.Count(data[:i], []byte("\n")) }

// unreadable finds what YAML does not allow in a file at all.
func unreadable(data []byte) (at int, what string) {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return i, "bytes that are not UTF-8"
		case r == 0:
			return i, "a NUL character"
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0 && r != 0x85, r == '\ufeff', r == '\ufffe', r == '\uffff':
			return i, fmt.Sprintf("the control character %U", r)
		}
		i += size
	}
	return 0, ""
}

// plainJSON writes two escapes that JSON has and our YAML parser has not as
// the characters themselves: "\/", and the pairs of \uXXXX for characters
// beyond U+FFFF.
func plainJSON(data []byte) []byte {
	unit := func(b []byte) (rune, bool) {
		if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
			return 0, false
		}
		v, err := strconv.ParseUint(string(b[2:6]), 16, 16)
		return rune(v), err == nil
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		if data[i] != '\\' {
			out = append(out, data[i])
			i++
			continue
		}
		hi, ok1 := unit(data[i:])
		lo, ok2 := unit(data[min(i+6, len(data)):])
		if r := utf16.DecodeRune(hi, lo); ok1 && ok2 && r != utf8.RuneError {
			out = utf8.AppendRune(out, r)
			i += 12
			continue
		}
		if data[i+1] != '/' {
			out = append(out, '\\')
		}
		out = append(out, data[i+1])
		i += 2
	}
	return out
}

// jsonComment returns the line of the first "//" or "/*" comment in a file in
// JSON style, 0 if there is none.
func jsonComment(data []byte) int {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !jsonStyle(data) {
		return 0
	}
	inString := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && c == '/' && i+1 < len(data) && (data[i+1] == '/' || data[i+1] == '*'):
			if i == 0 || strings.IndexByte(" \t\r\n,:{}[]\"", data[i-1]) >= 0 {
				return lineAt(data, i)
			}
		}
	}
	return 0
}

// jsonStyle tells whether a file is written like JSON, valid or not.
func jsonStyle(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && (data[0] == '{' || data[0] == '/')
}
