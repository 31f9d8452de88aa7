package upstreams

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxSchemaBytes = 4 << 20 // the largest of 3,307 real ones has 77 KB
	maxSchemaSteps = 20_000  // schemas tried for one value, see cost
	// Levels of a schema or of arguments; real ones have 8. Validators and
	// our own strict readers take time proportional to size times depth.
	maxNesting = 256
)

var (
	errUnknownDialect = errors.New("unknown $schema")
	errTooCostly      = errors.New("too many alternatives to check")
)

// schema is a JSON Schema that is compiled at its first use. Strangers write
// schemas: compiling and validating never load anything, never panic, and
// never take more than a bounded time. One that does not compile checks
// nothing.
type schema struct {
	raw json.RawMessage

	once     sync.Once
	compiled *jsonschema.Schema
	err      error // why compiled is nil
}

// compile returns nil for a nil schema and for one that cannot be used.
func (s *schema) compile() *jsonschema.Schema {
	if s == nil {
		return nil
	}
	s.once.Do(func() { s.compiled, s.err = compileSchema(s.raw) })
	return s.compiled
}

func compileSchema(raw json.RawMessage) (compiled *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			compiled, err = nil, fmt.Errorf("the schema breaks the compiler: %v", r)
		}
	}()
	if len(raw) > maxSchemaBytes {
		return nil, fmt.Errorf("the schema has %d bytes, more than %d", len(raw), maxSchemaBytes)
	}
	if nesting(raw) > maxNesting {
		return nil, fmt.Errorf("the schema is nested deeper than %d levels", maxNesting)
	}
	doc, err := decode(raw)
	if err != nil {
		return nil, err
	}
	if o, ok := doc.(map[string]any); ok && o["$schema"] != nil && !knownDialect(o["$schema"]) {
		return nil, fmt.Errorf("%w %v", errUnknownDialect, o["$schema"])
	}
	const at = "schema:///tool" // no loader knows this scheme
	unread := map[string]bool{}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020) // MCP 2025-11-25: "defaults to 2020-12 when no $schema"
	c.UseLoader(refuser{})
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) { return readPattern(s, unread) })
	for _, f := range formats {
		c.RegisterFormat(&jsonschema.Format{Name: f, Validate: func(any) error { return nil }})
	}
	if err := c.AddResource(at, doc); err != nil {
		return nil, err
	}
	compiled, err = c.Compile(at)
	if err != nil {
		return nil, err
	}
	if len(unread) > 0 && keysByPattern(doc, unread) {
		return nil, errors.New("patternProperties has a pattern that cannot be read")
	}
	if steps := cost(compiled); steps > maxSchemaSteps {
		return nil, errTooCostly
	}
	return compiled, nil
}

// nesting returns how deep the objects and arrays of a JSON text go.
func nesting(b []byte) (deepest int) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// refuser loads nothing: a schema must not make us read files or call hosts.
type refuser struct{}

func (refuser) Load(url string) (any, error) {
	return nil, fmt.Errorf("a reference outside of the schema (%s) is not followed", url)
}

// knownDialect tells whether $schema names a draft that the validator knows.
// For another one only the server can say what its keywords mean.
func knownDialect(v any) bool {
	s, ok := v.(string)
	if !ok {
		return false
	}
	s = strings.TrimSuffix(s, "#")
	_, s, ok = strings.Cut(s, "://json-schema.org/")
	return ok && slices.Contains([]string{
		"schema", "draft-04/schema", "draft-06/schema", "draft-07/schema",
		"draft/2019-09/schema", "draft/2020-12/schema",
	}, s)
}

// formats are hints here: drafts before 2019-09 assert them, but servers and
// their own validators often do not agree with ours on what an email is.
var formats = []string{
	"date", "time", "date-time", "duration", "period", "email", "idn-email", "hostname", "idn-hostname",
	"ipv4", "ipv6", "uri", "uri-reference", "uri-template", "iri", "iri-reference",
	"json-pointer", "relative-json-pointer", "uuid", "semver",
}

// readPattern compiles an ECMA pattern with Go's engine, which is linear in
// time. One that Go cannot read (lookahead, backreference) matches everything
// and is noted: the rest of the schema is still worth checking.
func readPattern(s string, unread map[string]bool) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(s)
	if err != nil {
		unread[s] = true
		return anyText(s), nil //nolint:nilerr // noted in unread
	}
	return re, nil
}

type anyText string

func (anyText) MatchString(string) bool { return true }
func (p anyText) String() string        { return string(p) }

// keysByPattern tells whether one of the patterns chooses schemas by key: then
// matching everything would refuse what the server takes.
func keysByPattern(doc any, patterns map[string]bool) bool {
	switch doc := doc.(type) {
	case map[string]any:
		if by, ok := doc["patternProperties"].(map[string]any); ok {
			for k := range by {
				if patterns[k] {
					return true
				}
			}
		}
		for _, v := range doc {
			if keysByPattern(v, patterns) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(doc, func(v any) bool { return keysByPattern(v, patterns) })
	}
	return false
}

// inPlace returns the schemas that are applied to the same value as s.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat([]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf)
	if s.DynamicRef != nil {
		all = append(all, s.DynamicRef.Ref)
	}
	for _, d := range s.DependentSchemas {
		all = append(all, d)
	}
	for _, d := range s.Dependencies {
		if d, ok := d.(*jsonschema.Schema); ok {
			all = append(all, d)
		}
	}
	return slices.DeleteFunc(all, func(s *jsonschema.Schema) bool { return s == nil })
}

// below returns the schemas that s applies to parts of its value.
func below(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems}
	all = append(all, s.PrefixItems...)
	all = slices.AppendSeq(all, maps.Values(s.Properties))
	all = slices.AppendSeq(all, maps.Values(s.PatternProperties))
	for _, v := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch v := v.(type) {
		case *jsonschema.Schema:
			all = append(all, v)
		case []*jsonschema.Schema:
			all = append(all, v...)
		}
	}
	return slices.DeleteFunc(all, func(s *jsonschema.Schema) bool { return s == nil })
}

// cost returns how many schemas are tried at most for one value, over all
// schemas reachable from s: 2^n for n references that fork, which a few lines
// of schema can hold. A schema that leads to itself at the same value costs
// more than any limit.
func cost(s *jsonschema.Schema) int {
	const endless = maxSchemaSteps + 1
	here := map[*jsonschema.Schema]int{} // 0 while being counted
	var count func(s *jsonschema.Schema) int
	count = func(s *jsonschema.Schema) int {
		if n, ok := here[s]; ok {
			if n == 0 {
				return endless
			}
			return n
		}
		here[s] = 0
		n := 1
		for _, next := range inPlace(s) {
			n = min(n+count(next), endless)
		}
		here[s] = n
		return n
	}
	worst, todo, seen := 0, []*jsonschema.Schema{s}, map[*jsonschema.Schema]bool{s: true}
	for len(todo) > 0 {
		s, todo = todo[0], todo[1:]
		worst = max(worst, count(s))
		for _, next := range append(inPlace(s), below(s)...) {
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return worst
}

// The following read what a compiled schema says of an object's members,
// through references and combinations. Depth ends recursion.

const maxSchemaDepth = 16

// collect calls visit for s and all schemas applied at the same value.
func collect(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	seen := map[*jsonschema.Schema]bool{}
	var walk func(*jsonschema.Schema)
	walk = func(s *jsonschema.Schema) {
		if seen[s] {
			return
		}
		seen[s] = true
		visit(s)
		for _, next := range inPlace(s) {
			if next != s.Not {
				walk(next)
			}
		}
	}
	walk(s)
}

// propertySchemas returns all that is declared for one member.
func propertySchemas(s *jsonschema.Schema, name string) (found []*jsonschema.Schema) {
	collect(s, func(s *jsonschema.Schema) {
		if p := s.Properties[name]; p != nil {
			found = append(found, p)
		}
	})
	return found
}

// propertyNames returns the names of all declared members, sorted.
func propertyNames(s *jsonschema.Schema) []string {
	names := map[string]bool{}
	collect(s, func(s *jsonschema.Schema) {
		for n := range s.Properties {
			names[n] = true
		}
	})
	return slices.Sorted(maps.Keys(names))
}

// requires tells whether a member is required by s or by any alternative.
func requires(s *jsonschema.Schema, name string) bool {
	found := false
	collect(s, func(s *jsonschema.Schema) {
		found = found || slices.Contains(s.Required, name)
		for _, names := range s.DependentRequired {
			found = found || slices.Contains(names, name)
		}
	})
	return found
}

// open tells whether a schema says nothing of undeclared members. One that
// speaks of them either refuses or wants them.
func open(s *jsonschema.Schema) bool {
	silent := true
	collect(s, func(s *jsonschema.Schema) {
		if s.AdditionalProperties != nil || len(s.PatternProperties) > 0 || s.UnevaluatedProperties != nil || s.PropertyNames != nil {
			silent = false
		}
	})
	return silent
}

// allReject tells whether each of the schemas refuses a value.
func allReject(schemas []*jsonschema.Schema, v any) bool {
	for _, s := range schemas {
		if validate(s, v) == nil {
			return false
		}
	}
	return true
}

// types is a set of JSON types.
type types uint8

const (
	typeNull types = 1 << iota
	typeBoolean
	typeNumber
	typeString
	typeArray
	typeObject
	allTypes = typeNull | typeBoolean | typeNumber | typeString | typeArray | typeObject
)

// typesOf returns the types that a schema may take; too many rather than too few.
func typesOf(s *jsonschema.Schema, depth int) types {
	if depth > maxSchemaDepth {
		return allTypes
	}
	fit := allTypes
	switch {
	case s.Bool != nil && !*s.Bool:
		return 0
	case s.Types != nil && !s.Types.IsEmpty():
		fit = 0
		for _, name := range s.Types.ToStrings() {
			fit |= map[string]types{
				"null": typeNull, "boolean": typeBoolean, "number": typeNumber, "integer": typeNumber,
				"string": typeString, "array": typeArray, "object": typeObject,
			}[name]
		}
	}
	if s.Enum != nil {
		values := types(0)
		for _, v := range s.Enum.Values {
			values |= typeOf(v)
		}
		fit &= values
	}
	if s.Const != nil {
		fit &= typeOf(*s.Const)
	}
	if s.Ref != nil {
		fit &= typesOf(s.Ref, depth+1)
	}
	for _, a := range s.AllOf {
		fit &= typesOf(a, depth+1)
	}
	for _, alternatives := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if len(alternatives) == 0 {
			continue
		}
		union := types(0)
		for _, a := range alternatives {
			union |= typesOf(a, depth+1)
		}
		fit &= union
	}
	return fit
}

func typeOf(v any) types {
	switch v.(type) {
	case nil:
		return typeNull
	case bool:
		return typeBoolean
	case string:
		return typeString
	case []any:
		return typeArray
	case map[string]any:
		return typeObject
	}
	return typeNumber
}

// validate returns nil also when the validator itself fails: then nobody can
// say that the value is wrong.
func validate(s *jsonschema.Schema, v any) (failure *jsonschema.ValidationError) {
	defer func() {
		if r := recover(); r != nil {
			failure = nil
		}
	}()
	_ = errors.As(s.Validate(v), &failure)
	return failure
}
