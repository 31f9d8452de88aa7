package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// Models send tool_call in many shapes. This file puts right what has one
// meaning, refuses what has two, and drops nothing (contract 4).

// repaired is the one call that an input means.
type repaired struct {
	tool *upstreams.Tool
	args json.RawMessage
	note string // what was put right, for the model
}

var (
	selectorNames  = []string{"id", "toolId", "name"}
	containerNames = []string{"args", "input", "arguments", "parameters"}
)

// repair reads the input of tool_call and finds its tool.
func (s *Server) repair(ctx context.Context, from upstreams.Caller, input json.RawMessage, p phrases) (*repaired, *failure) {
	return repairCall(input, p, func(selector string) (*upstreams.Tool, *failure) {
		return s.find(ctx, from, selector, p)
	}, func(name string) *upstreams.Tool {
		return s.exact(from.Profile, name)
	})
}

// exact returns the tool with exactly this id or full name, or nil.
func (s *Server) exact(profile, name string) *upstreams.Tool {
	t, err := s.dir.View(profile).Resolve(name)
	if err != nil || t.ID != name && t.FullName != name {
		return nil
	}
	return t
}

// repairCall is repair with its look-ups: find resolves a selector, exact
// knows exact ids and full names.
func repairCall(input json.RawMessage, p phrases, find func(string) (*upstreams.Tool, *failure), exact func(string) *upstreams.Tool) (*repaired, *failure) {
	refuse := func(t *upstreams.Tool, format string, a ...any) (*repaired, *failure) {
		id, signature := "the id of a search hit", "the object that the hit's input shows"
		if t != nil {
			id, signature = t.ID, directory.InputSignature(t.InputSchema)
		}
		return nil, &failure{status: statusInvalid, tool: t, text: fmt.Sprintf(format, a...) + "; send " + p.example(id, signature)}
	}
	note := ""
	if o, ok := objectText(input); ok {
		input, note = o, noteString
	}
	if rawjson.IsNull(input) {
		return refuse(nil, "%s got no input", p.call)
	}
	if err := checkObject(input); err != nil {
		return refuse(nil, "the input of %s: %v", p.call, err)
	}
	members, _ := rawjson.Parse(input) // checked
	selector, rest := takeSelector(members)
	control := func() string {
		name := controlName(selector)
		if name != "" && exact(selector) != nil {
			return "" // a server has a tool with such a full name
		}
		return name
	}
	if selector == "" || control() == nameCall {
		// The whole call stands one level too deep, or is sent to tool_call itself.
		inner, err := unwrap(rest)
		if err != nil {
			return refuse(nil, "%v", err)
		}
		if inner == nil {
			return refuse(nil, "%s needs the id of a tool, got %s", p.call, gotInstead(members))
		}
		note = upstreams.JoinNotes(note, noteDeep)
		if selector, rest = takeSelector(inner); selector == "" {
			return refuse(nil, "%s needs the id of a tool, got %s", p.call, gotInstead(inner))
		}
	}
	if name := control(); name != "" {
		return refuse(nil, "%s is not called through %s, use %s itself", name, p.call, p.name(name))
	}
	t, f := find(selector)
	if f != nil {
		return nil, f
	}
	if t.DirectOnly {
		return nil, directOnly(t)
	}
	fix := &fixing{tool: t, params: parametersOf(t.InputSchema), exact: exact}
	args, err := fix.arguments(rest, true)
	if err != nil {
		return refuse(t, "%v", err)
	}
	if err := checkObject(args); err != nil {
		return refuse(t, "%v", err)
	}
	return &repaired{t, args, upstreams.JoinNotes(note, fix.note)}, nil
}

const (
	noteString = "the arguments came as a JSON string and were parsed"
	noteDeep   = "the call was nested one level too deep and was unwrapped"
	noteBlank  = "the arguments were a blank string and were taken as {}"
	noteFlat   = "the arguments stood beside the id and were moved into args"
)

// takeSelector splits off the first of the selector's names that is a string.
func takeSelector(o rawjson.Object) (selector string, rest rawjson.Object) {
	for _, name := range selectorNames {
		if v, ok := o.Text(name); ok && strings.TrimSpace(v) != "" {
			return v, o.Without(name)
		}
	}
	return "", o
}

// gotInstead says what an input has in place of a selector.
func gotInstead(o rawjson.Object) string {
	for _, name := range selectorNames {
		switch v := o.Get(name); {
		case rawjson.IsNull(v):
		case blank(v):
			return "a blank " + name
		case rawjson.Kind(v) == "a string":
			return "its own name as " + name // a control tool that is called through itself
		default:
			return rawjson.Kind(v) + " as " + name
		}
	}
	return memberNames(o)
}

// controlName returns the control tool that a selector names, also with a
// client's prefix such as mcp__toolsearch__; "" if none.
func controlName(selector string) string {
	selector = strings.TrimSpace(selector)
	if strings.HasPrefix(selector, "mcp__") {
		selector = selector[strings.LastIndex(selector, "__")+2:]
	}
	if slices.Contains(controlNames, selector) {
		return selector
	}
	return ""
}

// unwrap returns the call inside the one container that holds it, with what
// stands beside the container; nil if there is none.
func unwrap(o rawjson.Object) (rawjson.Object, error) {
	var inner rawjson.Object
	rest := o
	for _, name := range containerNames {
		body, ok := asObject(o.Get(name))
		if !ok {
			continue
		}
		if selector, _ := takeSelector(body); selector == "" {
			continue
		}
		if inner != nil {
			return nil, errors.New("two calls in one")
		}
		inner, rest = body, o.Without(name)
	}
	if inner == nil {
		return nil, nil
	}
	return merge(inner, rest)
}

// fixing is the state of reading one call's arguments.
type fixing struct {
	tool   *upstreams.Tool
	params parameters
	exact  func(string) *upstreams.Tool
	note   string
}

// arguments finds the arguments among the members that are left beside the
// selector. Where the schema declares a member, it is an argument. outer is
// false inside of a container, where another container is a doubled envelope.
func (f *fixing) arguments(o rawjson.Object, outer bool) (json.RawMessage, error) {
	var base, beside, dotted rawjson.Object
	container := "" // the name of the one that holds base
	blanks := false // a container is a blank string
	for _, m := range o {
		declared := f.params.declares(m.Name)
		switch {
		case slices.Contains(selectorNames, m.Name) && !declared:
			if rawjson.IsNull(m.Value) {
				continue
			}
			if v, ok := o.Text(m.Name); ok {
				other := f.exact(v)
				if other != nil && other.ID != f.tool.ID {
					return nil, fmt.Errorf("%s names another tool, %s", m.Name, other.ID)
				}
				if !outer && (other != nil || strings.TrimSpace(v) == f.tool.Name) {
					continue // the selector of the doubled envelope
				}
			}
			beside = append(beside, m)
		case slices.Contains(containerNames, m.Name):
			body, isObject := asObject(m.Value)
			switch {
			case rawjson.IsNull(m.Value) && !declared:
			case declared && (!isObject || !f.fits(m.Name, body)):
				beside = append(beside, m)
			case blank(m.Value):
				blanks = true
			case !isObject:
				return nil, fmt.Errorf("%s must be an object, got %s", m.Name, rawjson.Kind(m.Value))
			case len(body) == 0: // beside a full one it is ignored
			case container != "" && bytes.Equal(base.Bytes(), body.Bytes()):
			case container != "":
				return nil, fmt.Errorf("arguments stand in both %s and %s", container, m.Name)
			default:
				base, container = body, m.Name
				if rawjson.Kind(m.Value) == "a string" {
					f.note = upstreams.JoinNotes(f.note, noteString)
				}
			}
		default:
			if prefix, key, ok := strings.Cut(m.Name, "."); ok && key != "" && !declared && slices.Contains(containerNames, prefix) {
				dotted = append(dotted, rawjson.Member{Name: key, Value: m.Value})
				continue
			}
			beside = append(beside, m)
		}
	}
	if outer && f.doubled(base) {
		inner, err := f.arguments(base, false)
		if err != nil {
			return nil, err
		}
		base, _ = rawjson.Parse(inner) // encoded by us
		f.note = upstreams.JoinNotes(f.note, noteDeep)
	}
	if outer && len(beside)+len(dotted) > 0 {
		f.note = upstreams.JoinNotes(f.note, noteFlat)
	}
	args, err := merge(base, append(dotted, beside...))
	if err != nil {
		return nil, err
	}
	if blanks && len(args) == 0 {
		f.note = upstreams.JoinNotes(f.note, noteBlank)
	}
	return args.Bytes(), nil
}

// fits tells whether an object under a container's name that the schema also
// declares as a parameter is rather the container: all it holds is declared.
func (f *fixing) fits(name string, body rawjson.Object) bool {
	if len(body) == 0 {
		return !f.params.requires(name)
	}
	for _, m := range body {
		if !f.params.declares(m.Name) {
			return false
		}
	}
	return true
}

// doubled tells whether the arguments are themselves an envelope: they hold a
// container that the schema does not know. Of a tool that declares nothing,
// only a whole call, with its selector, can be told from arguments.
func (f *fixing) doubled(base rawjson.Object) bool {
	selector, _ := takeSelector(base)
	for _, name := range containerNames {
		if f.params.declares(name) {
			continue
		}
		if body, ok := asObject(base.Get(name)); ok && (len(body) > 0 || selector != "" || len(base) == 1) {
			return len(f.params.names) > 0 || selector != ""
		}
	}
	return false
}

// merge adds members to an object; two values for one name are refused.
func merge(base, more rawjson.Object) (rawjson.Object, error) {
	for _, m := range more {
		if have := base.Get(m.Name); have != nil {
			if !sameJSON(have, m.Value) {
				return nil, fmt.Errorf("%q is given twice, with different values", directory.OneLine(m.Name, 60))
			}
			continue
		}
		base = base.With(m.Name, m.Value)
	}
	return base, nil
}

func sameJSON(a, b json.RawMessage) bool {
	var ca, cb bytes.Buffer
	return json.Compact(&ca, a) == nil && json.Compact(&cb, b) == nil && bytes.Equal(ca.Bytes(), cb.Bytes())
}

// asObject reads a value that is an object, or a string that holds one.
func asObject(v json.RawMessage) (rawjson.Object, bool) {
	if v == nil {
		return nil, false
	}
	if inner, ok := objectText(v); ok {
		v = inner
	}
	o, err := rawjson.Parse(v)
	return o, err == nil
}

// objectText returns the object that a JSON string holds.
func objectText(v json.RawMessage) (json.RawMessage, bool) {
	v = bytes.TrimSpace(v)
	if len(v) == 0 || v[0] != '"' {
		return nil, false
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		return nil, false
	}
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "{") || !json.Valid([]byte(s)) {
		return nil, false
	}
	return json.RawMessage(s), true
}

// blank tells whether a value is a string of nothing but blanks.
func blank(v json.RawMessage) bool {
	var s string
	return json.Unmarshal(v, &s) == nil && strings.TrimSpace(s) == ""
}

// checkObject says what is wrong with a value that should be a JSON object
// without duplicate keys.
func checkObject(v json.RawMessage) error {
	if rawjson.Kind(v) != "an object" || !json.Valid(v) {
		return fmt.Errorf("the arguments must be a JSON object, got %s", rawjson.Kind(v))
	}
	return rawjson.CheckDuplicates(v)
}

func memberNames(o rawjson.Object) string {
	if len(o) == 0 {
		return "an empty object"
	}
	var names []string
	for _, m := range o {
		names = append(names, directory.OneLine(m.Name, 40))
	}
	return "only " + directory.JoinNames(names, 200)
}

// parameters are what an input schema declares at its root, also in the
// branches of a combinator there.
type parameters struct {
	names    map[string]bool
	required map[string]bool
}

func (p parameters) declares(name string) bool { return p.names[name] }
func (p parameters) requires(name string) bool { return p.required[name] }

func parametersOf(schema json.RawMessage) parameters {
	p := parameters{map[string]bool{}, map[string]bool{}}
	o, err := rawjson.Parse(schema)
	if err != nil {
		return p
	}
	for _, name := range textsOf(o.Get("required")) {
		p.required[name] = true
	}
	merged, _ := mergeCombinators(o)
	properties, err := rawjson.Parse(merged.Get("properties"))
	if err != nil {
		return p
	}
	for _, m := range properties {
		p.names[m.Name] = true
	}
	return p
}

// textsOf reads an array of strings, or nothing.
func textsOf(v json.RawMessage) []string {
	var out []string
	if json.Unmarshal(v, &out) != nil {
		return nil
	}
	return out
}
