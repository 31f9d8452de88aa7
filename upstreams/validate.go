package upstreams

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
)

// checker holds a tool's schemas, which equal tools share.
type checker struct {
	in, out *schema // nil: the tool has none
}

func (t *Tool) checks() *checker {
	if t.checker != nil {
		return t.checker
	}
	// A tool that was not made by a toolParser: nothing to share with.
	c := &checker{}
	if t.InputSchema != nil {
		c.in = &schema{raw: t.InputSchema}
	}
	if t.OutputSchema != nil {
		c.out = &schema{raw: t.OutputSchema}
	}
	return c
}

// CheckArguments compares arguments with the input schema, if it compiles.
// It returns the arguments to send (null members that the schema does not
// want dropped, JSON strings parsed where only an object or array fits), a
// note for the model ("" if none), and an *ArgumentsError in mode "error".
// Whatever the mode, what is not one JSON object with unique keys is refused:
// nobody could say what it means.
func (t *Tool) CheckArguments(args json.RawMessage) (fixed json.RawMessage, note string, err error) {
	args, err = argumentObject(args)
	if err != nil {
		return nil, "", &ArgumentsError{Tool: t, Problems: []string{err.Error()}}
	}
	if t.Validate == validateOff {
		return args, "", nil
	}
	s := t.checks().in.compile()
	if s != nil {
		args = repair(s, args)
	}
	problems, hints := examine(s, args)
	if len(problems) == 0 {
		return args, strings.Join(hints, "; "), nil
	}
	if t.Validate == validateWarn {
		return args, "the arguments may be wrong: " + strings.Join(append(problems, hints...), "; "), nil
	}
	return nil, "", &ArgumentsError{Tool: t, Problems: problems}
}

// argumentObject returns the one JSON object that arguments are: absent ones
// and null are {}, a string that holds an object is that object.
func argumentObject(args json.RawMessage) (json.RawMessage, error) {
	args = bytes.TrimSpace(args)
	if len(args) > 0 && args[0] == '"' {
		var s string
		if json.Unmarshal(args, &s) == nil {
			if s = strings.TrimSpace(s); s == "" || s[0] == '{' && json.Valid([]byte(s)) {
				args = json.RawMessage(s)
			}
		}
	}
	if rawjson.IsNull(args) {
		return json.RawMessage("{}"), nil
	}
	if nesting(args) > maxNesting {
		return nil, fmt.Errorf("the arguments are nested deeper than %d levels", maxNesting)
	}
	err := rawjson.CheckDuplicates(args)
	if err == nil {
		_, err = rawjson.Parse(args)
	}
	switch {
	case errors.Is(err, rawjson.ErrNotObject):
		return nil, errors.New("the arguments must be one JSON object")
	case err != nil:
		return nil, fmt.Errorf("the arguments are not usable: %w", err)
	}
	return args, nil
}

// examine returns what is wrong with arguments, and what only looks so.
func examine(s *jsonschema.Schema, args json.RawMessage) (problems, hints []string) {
	v, err := decode(args)
	if err != nil {
		return []string{"the arguments are not usable: " + err.Error()}, nil
	}
	problems = unrepresentable(v, nil)
	if s == nil {
		return problems, nil
	}
	problems = append(problems, findings(s, v)...)
	if o, ok := v.(map[string]any); ok && len(problems) == 0 {
		hints = misspelt(s, o)
	}
	return problems, hints
}

// CheckOutputSchema reports, for a TrustFull tool, an output schema that does
// not compile. It is asked before the call is made.
func (t *Tool) CheckOutputSchema() error {
	out := t.checks().out
	if t.Trust != TrustFull || out == nil {
		return nil
	}
	if out.compile() == nil && !errors.Is(out.err, errUnknownDialect) {
		return fmt.Errorf("outputSchema of %s cannot be used: %w", t.ID, out.err)
	}
	return nil
}

// CheckResult compares a TrustFull tool's structuredContent with its output
// schema: an *OutputError, or nil. Other tools: nil.
func (t *Tool) CheckResult(raw json.RawMessage) error {
	out := t.checks().out
	if t.Trust != TrustFull || out == nil {
		return nil
	}
	s := out.compile()
	result, err := rawjson.Parse(raw)
	if s == nil || err == nil && string(result.Get("isError")) == "true" {
		return nil // "servers MUST provide structured results" binds successful calls only (2025-11-25)
	}
	structured := result.Get("structuredContent")
	if nesting(structured) > maxNesting {
		return &OutputError{Tool: t, Problems: []string{fmt.Sprintf("structuredContent is nested deeper than %d levels", maxNesting)}}
	}
	if structured == nil {
		return &OutputError{Tool: t, Problems: []string{"structuredContent is missing"}}
	}
	v, err := decode(structured)
	if err != nil {
		return &OutputError{Tool: t, Problems: []string{err.Error()}}
	}
	if problems := findings(s, v); len(problems) > 0 {
		return &OutputError{Tool: t, Problems: problems}
	}
	return nil
}

func decode(b json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// unrepresentable finds numbers that no common JSON reader can hold, as 1e400.
func unrepresentable(v any, at []string) (problems []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			problems = append(problems, unrepresentable(v[k], append(at, k))...)
		}
	case []any:
		for i, item := range v {
			problems = append(problems, unrepresentable(item, append(at, strconv.Itoa(i)))...)
		}
	case json.Number:
		if _, err := strconv.ParseFloat(v.String(), 64); err != nil {
			problems = append(problems, fmt.Sprintf("%s is a number out of range", place(at)))
		}
	}
	return problems
}

// repair undoes what models commonly do to optional and nested arguments. The
// bytes of everything else stay as they are.
func repair(s *jsonschema.Schema, args json.RawMessage) json.RawMessage {
	o, err := rawjson.Parse(args)
	if err != nil {
		return args
	}
	changed := false
	out := make(rawjson.Object, 0, len(o))
	for _, m := range o {
		declared := propertySchemas(s, m.Name)
		switch {
		case len(declared) == 0:
		case rawjson.IsNull(m.Value):
			if !requires(s, m.Name) && allReject(declared, nil) {
				changed = true
				continue
			}
		case m.Value[0] == '"':
			if v := unquoted(declared, m.Value); v != nil {
				m.Value, changed = v, true
			}
		case m.Value[0] == '{' && len(declared) == 1:
			if v := repair(declared[0], m.Value); !bytes.Equal(v, m.Value) {
				m.Value, changed = v, true
			}
		}
		out = append(out, m)
	}
	if !changed {
		return args
	}
	return out.Bytes()
}

// unquoted returns the object or array that a string holds, if the schemas
// take such a value and no string; else nil.
func unquoted(declared []*jsonschema.Schema, quoted json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return nil
	}
	s = strings.TrimSpace(s)
	var kind types
	switch {
	case strings.HasPrefix(s, "{"):
		kind = typeObject
	case strings.HasPrefix(s, "["):
		kind = typeArray
	default:
		return nil
	}
	for _, d := range declared {
		if fit := typesOf(d, 0); fit&typeString != 0 || fit&kind == 0 {
			return nil
		}
	}
	if nesting([]byte(s)) > maxNesting || !json.Valid([]byte(s)) || rawjson.CheckDuplicates([]byte(s)) != nil {
		return nil
	}
	return json.RawMessage(s)
}

// misspelt finds undeclared arguments that are near to a declared one. Where
// the schema is open, servers ignore them without a word and answer with the
// default; it may also be that they are meant, so it is no error.
func misspelt(s *jsonschema.Schema, args map[string]any) (hints []string) {
	if !open(s) {
		return nil
	}
	known := propertyNames(s)
	for _, k := range slices.Sorted(maps.Keys(args)) {
		if slices.Contains(known, k) {
			continue
		}
		if near := nearNames(k, known, args); len(near) > 0 {
			hints = append(hints, fmt.Sprintf("%s is not declared by the tool and may have been ignored; did you mean %s?", strconv.Quote(k), quoteAll(near, " or ")))
		}
	}
	return hints
}

// nearNames returns at most three declared names that a key may be meant for,
// nearest first; those that were given themselves are not meant.
func nearNames(key string, known []string, given map[string]any) []string {
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	for _, name := range known {
		if _, taken := given[name]; taken {
			continue
		}
		if far, near := distance(key, name); near {
			found = append(found, candidate{name, far})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.far, b.far) })
	var names []string
	for _, c := range found[:min(len(found), 3)] {
		names = append(names, c.name)
	}
	return names
}

// distance tells how far two argument names are from each other, and whether
// one may be a slip for the other: they differ by spelling alone, by a word
// more or less, or by few letters.
func distance(a, b string) (int, bool) {
	wa, wb := words(a), words(b)
	ja, jb := strings.Join(wa, ""), strings.Join(wb, "")
	if ja == jb {
		return 0, true
	}
	edits := editDistance(ja, jb)
	if edits <= 1+min(len(ja), len(jb))/5 && min(len(ja), len(jb)) > 2 {
		return edits, true
	}
	if len(wa) > len(wb) {
		wa, wb = wb, wa
	}
	if len(wa) == 0 {
		return 0, false
	}
	for _, w := range wa {
		if !slices.Contains(wb, w) {
			return 0, false
		}
	}
	return 10 + len(wb) - len(wa), true // "days" for "maxDays"
}

// words splits a name at separators and at humps, in lower case.
func words(s string) (out []string) {
	var w []rune
	flush := func() {
		if len(w) > 0 {
			out = append(out, strings.ToLower(string(w)))
			w = nil
		}
	}
	lower := false
	for _, r := range s {
		switch {
		case r == '_' || r == '-' || r == '.' || r == ' ':
			flush()
			continue
		case lower && 'A' <= r && r <= 'Z':
			flush()
		}
		lower = 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
		w = append(w, r)
	}
	flush()
	return out
}

// editDistance counts insertions, deletions, replacements and swaps of
// neighbours between two short texts.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	var rows [3][65]int // before last, last, current
	for j := range len(b) + 1 {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		rows[2][0] = i
		for j := 1; j <= len(b); j++ {
			d := min(rows[1][j], rows[2][j-1]) + 1
			replaced := rows[1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			d = min(d, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[0][j-2]+1)
			}
			rows[2][j] = d
		}
		rows[0], rows[1] = rows[1], rows[2]
	}
	return rows[1][len(b)]
}

func quoteAll(names []string, separator string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	return strings.Join(quoted, separator)
}
