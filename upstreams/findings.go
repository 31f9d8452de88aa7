package upstreams

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

const (
	maxFindings = 8  // told of one value
	maxShown    = 12 // names or enum values in one finding
)

// findings says in sentences for a model what of a value does not fit a
// schema, the most useful first. It is empty if everything fits. Values are
// not repeated: the sentences may reach a log.
func findings(s *jsonschema.Schema, v any) []string {
	failure := validate(s, v)
	if failure == nil {
		return nil
	}
	r := report{schema: s, value: v}
	r.walk(failure)
	slices.SortStableFunc(r.found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.text, b.text))
	})
	var texts []string
	for _, f := range slices.Compact(r.found) {
		texts = append(texts, f.text)
	}
	if more := len(texts) - maxFindings; more > 0 {
		texts = append(texts[:maxFindings], fmt.Sprintf("and %d more", more))
	}
	return texts
}

type finding struct {
	rank int // what is missing, then what is too much, then what is wrong
	text string
}

type report struct {
	schema *jsonschema.Schema
	value  any
	found  []finding
}

func (r *report) add(rank int, format string, args ...any) {
	r.found = append(r.found, finding{rank, fmt.Sprintf(format, args...)})
}

func (r *report) walk(e *jsonschema.ValidationError) {
	at := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		r.alternatives(e)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			r.add(2, "%s fits several alternatives that exclude each other", place(at))
			return
		}
		r.alternatives(e)
	case *kind.Required:
		r.missing(at, k.Missing)
	case *kind.Dependency:
		r.add(0, "%s is required beside %s", quoteAll(k.Missing, " and "), strconv.Quote(k.Prop))
	case *kind.DependentRequired:
		r.add(0, "%s is required beside %s", quoteAll(k.Missing, " and "), strconv.Quote(k.Prop))
	case *kind.AdditionalProperties:
		for _, p := range k.Properties {
			r.undeclared(at, p)
		}
	case *kind.FalseSchema:
		if n := len(at); n > 0 && !slices.Contains(declaredAt(r.schema, at[:n-1]), at[n-1]) {
			r.undeclared(at[:n-1], at[n-1])
			return
		}
		r.add(1, "%s is not allowed", place(at))
	case *kind.Type:
		r.add(2, "%s must be %s, not %s", place(at), strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		r.add(2, "%s must be %s", place(at), oneOfValues(k.Want))
	case *kind.Const:
		r.add(2, "%s must be %s", place(at), oneOfValues([]any{k.Want}))
	case *kind.Pattern:
		r.add(2, "%s does not match the pattern %s", place(at), strconv.Quote(k.Want))
	case *kind.Not:
		r.add(2, "%s is what the schema excludes", place(at))
	case *kind.PropertyNames:
		r.add(1, "%s is not allowed as a name in %s", strconv.Quote(k.Property), place(at))
	default:
		if len(e.Causes) == 0 {
			r.add(2, "%s: %s", place(at), inWords(e))
			return
		}
		for _, c := range e.Causes {
			r.walk(c)
		}
	}
}

// inWords returns the validator's own text for a failure that has no causes,
// less the place that it begins with.
func inWords(e *jsonschema.ValidationError) string {
	alone := &jsonschema.ValidationError{SchemaURL: e.SchemaURL, ErrorKind: e.ErrorKind}
	return strings.TrimPrefix(alone.Error(), "at '': ")
}

// alternatives reports that none of several schemas fits. Those that do not
// even have the value's type say nothing if others do.
func (r *report) alternatives(e *jsonschema.ValidationError) {
	var want []string // types
	got := ""
	var near [][]finding
	for _, c := range e.Causes {
		if t := typeFailure(c, e.InstanceLocation); t != nil {
			want, got = append(want, t.Want...), t.Got
			continue
		}
		sub := report{schema: r.schema, value: r.value}
		sub.walk(c)
		near = append(near, sub.found)
	}
	switch len(near) {
	case 0:
		slices.Sort(want)
		r.add(2, "%s must be %s, not %s", place(e.InstanceLocation), strings.Join(slices.Compact(want), " or "), got)
	case 1:
		r.found = append(r.found, near[0]...)
	default:
		var texts []string
		for _, found := range near[:min(len(near), 3)] {
			var one []string
			for _, f := range found {
				one = append(one, f.text)
			}
			slices.Sort(one)
			texts = append(texts, "("+strings.Join(one[:min(len(one), 3)], ", ")+")")
		}
		more := ""
		if n := len(near) - len(texts); n > 0 {
			more = fmt.Sprintf(" or %d more", n)
		}
		r.add(2, "%s fits none of the alternatives: %s%s", place(e.InstanceLocation), strings.Join(texts, " or "), more)
	}
}

// typeFailure returns the failure of an alternative that is about the type of
// the value itself, else nil.
func typeFailure(e *jsonschema.ValidationError, at []string) *kind.Type {
	for {
		if t, ok := e.ErrorKind.(*kind.Type); ok && slices.Equal(e.InstanceLocation, at) {
			return t
		}
		if len(e.Causes) != 1 {
			return nil
		}
		e = e.Causes[0]
	}
}

// missing reports required members, each with what may have been sent for it.
func (r *report) missing(at, names []string) {
	given, _ := valueAt(r.value, at).(map[string]any)
	declared := declaredAt(r.schema, at)
	for _, name := range names {
		var meant []string
		for _, k := range slices.Sorted(maps.Keys(given)) {
			if _, near := distance(k, name); near && !slices.Contains(declared, k) {
				meant = append(meant, k)
			}
		}
		inside := ""
		if len(at) > 0 {
			inside = " in " + place(at)
		}
		if len(meant) > 0 {
			r.add(0, "%s is required%s; rename %s", strconv.Quote(name), inside, quoteAll(meant, " or "))
		} else {
			r.add(0, "%s is required%s", strconv.Quote(name), inside)
		}
	}
}

// undeclared reports a member that the schema does not take.
func (r *report) undeclared(at []string, name string) {
	given, _ := valueAt(r.value, at).(map[string]any)
	declared := declaredAt(r.schema, at)
	inside := ""
	if len(at) > 0 {
		inside = " in " + place(at)
	}
	switch near := nearNames(name, declared, given); {
	case len(near) > 0:
		r.add(1, "%s is not declared%s; did you mean %s?", strconv.Quote(name), inside, quoteAll(near, " or "))
	case len(declared) == 0:
		r.add(1, "%s is not declared%s; nothing is", strconv.Quote(name), inside)
	default:
		r.add(1, "%s is not declared%s; declared: %s", strconv.Quote(name), inside, shown(declared))
	}
}

// declaredAt returns the names declared for the object at a place of the value.
func declaredAt(s *jsonschema.Schema, at []string) []string {
	here := []*jsonschema.Schema{s}
	for _, step := range at {
		var next []*jsonschema.Schema
		for _, h := range here {
			collect(h, func(s *jsonschema.Schema) {
				if p := s.Properties[step]; p != nil {
					next = append(next, p)
				}
				if s.Items2020 != nil {
					next = append(next, s.Items2020)
				}
				if items, ok := s.Items.(*jsonschema.Schema); ok {
					next = append(next, items)
				}
				if a, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
					next = append(next, a)
				}
			})
		}
		here = next
	}
	var names []string
	for _, h := range here {
		names = append(names, propertyNames(h)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func valueAt(v any, at []string) any {
	for _, step := range at {
		switch o := v.(type) {
		case map[string]any:
			v = o[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(o) {
				return nil
			}
			v = o[i]
		default:
			return nil
		}
	}
	return v
}

// place names a part of the value: "filter.tags.0".
func place(at []string) string {
	if len(at) == 0 {
		return "the whole value"
	}
	return strconv.Quote(strings.Join(at, "."))
}

func oneOfValues(values []any) string {
	texts := make([]string, 0, len(values))
	for _, v := range values[:min(len(values), maxShown)] {
		b, err := json.Marshal(v)
		if err != nil {
			b = []byte("?")
		}
		texts = append(texts, string(b))
	}
	if more := len(values) - maxShown; more > 0 {
		texts = append(texts, fmt.Sprintf("or %d others", more))
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "one of " + strings.Join(texts, ", ")
}

func shown(names []string) string {
	s := quoteAll(names[:min(len(names), maxShown)], ", ")
	if more := len(names) - maxShown; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}
