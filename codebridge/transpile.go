package codebridge

import (
	"encoding/json"
	"slices"

	"github.com/evanw/esbuild/pkg/api"
)

// transpiled is a body that esbuild has rewritten: types removed, and async
// functions turned into ones that use Promise openly, so that the prelude
// sees rejections that nobody handles.
type transpiled struct {
	text string
	rows [][]mapping // per line of text, sorted by column
}

// mapping is one entry of a source map: from a column of the text to a place
// in the body, all from 0.
type mapping struct {
	column           int
	toLine, toColumn int
}

// syntaxProblem is where and why a text is no program.
type syntaxProblem struct {
	message      string
	line, column int // from 1; 0: unknown
}

// transpile rewrites a body. loader is api.LoaderJS or api.LoaderTS.
func transpile(text string, loader api.Loader) (*transpiled, *syntaxProblem) {
	r := api.Transform(text, api.TransformOptions{
		Loader:    loader,
		Target:    api.ESNext,
		Supported: map[string]bool{"async-await": false, "async-generator": false, "for-await": false, "using": false, "decorators": false},
		Sourcemap: api.SourceMapExternal,
		LogLevel:  api.LogLevelSilent,
	})
	if len(r.Errors) > 0 {
		p := &syntaxProblem{message: r.Errors[0].Text}
		if l := r.Errors[0].Location; l != nil {
			p.line, p.column = l.Line, l.Column+1
		}
		return nil, p
	}
	return &transpiled{text: string(r.Code), rows: parseMappings(r.Map)}, nil
}

// position is the place in the body that a place in the text came from, both
// from 1.
func (t *transpiled) position(line, column int) (int, int) {
	if line < 1 || line > len(t.rows) {
		return line, column
	}
	row := t.rows[line-1]
	i, exact := slices.BinarySearchFunc(row, column-1, func(m mapping, c int) int { return m.column - c })
	if !exact {
		i--
	}
	if i < 0 {
		if len(row) == 0 {
			return line, column
		}
		i = 0
	}
	return row[i].toLine + 1, row[i].toColumn + 1
}

// parseMappings reads the mappings of a source map, version 3, that has one
// source. What it cannot read it leaves out.
func parseMappings(sourceMap []byte) [][]mapping {
	var m struct {
		Mappings string `json:"mappings"`
	}
	if json.Unmarshal(sourceMap, &m) != nil {
		return nil
	}
	rows := [][]mapping{nil}
	var column, line, toColumn int
	s := m.Mappings
	for len(s) > 0 {
		switch s[0] {
		case ';':
			rows = append(rows, nil)
			column = 0
			s = s[1:]
			continue
		case ',':
			s = s[1:]
			continue
		}
		var fields [5]int
		n := 0
		for len(s) > 0 && s[0] != ',' && s[0] != ';' {
			v, rest, ok := vlq(s)
			if !ok {
				return rows
			}
			if n < len(fields) {
				fields[n] = v
			}
			n++
			s = rest
		}
		column += fields[0]
		if n >= 4 {
			line += fields[2]
			toColumn += fields[3]
			rows[len(rows)-1] = append(rows[len(rows)-1], mapping{column, line, toColumn})
		}
	}
	return rows
}

// vlq reads one number in the base64 code of source maps.
func vlq(s string) (v int, rest string, ok bool) {
	for shift := 0; len(s) > 0 && shift < 30; shift += 5 {
		var d int
		switch c := s[0]; {
		case c >= 'A' && c <= 'Z':
			d = int(c - 'A')
		case c >= 'a' && c <= 'z':
			d = int(c-'a') + 26
		case c >= '0' && c <= '9':
			d = int(c-'0') + 52
		case c == '+':
			d = 62
		case c == '/':
			d = 63
		default:
			return 0, "", false
		}
		s = s[1:]
		v |= (d & 31) << shift
		if d&32 == 0 {
			if v&1 == 1 {
				return -(v >> 1), s, true
			}
			return v >> 1, s, true
		}
	}
	return 0, "", false
}
