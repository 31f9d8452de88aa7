package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// listTools answers tools/list. It never announces a change: a client that
// lists again at each announcement would do so for ever.
func (s *Server) listTools(ctx context.Context, r *request) (json.RawMessage, error) {
	if err := noCursor(r.params); err != nil {
		return nil, err
	}
	c := r.session
	if c.face().mode == ModeOff {
		s.awaitKnown(ctx)
	}
	tools := s.toolsFor(c)
	c.mu.Lock()
	first := c.listed == nil
	c.listed = tools
	if c.offered == nil {
		c.offered = make(map[string]bool)
	}
	for _, t := range controls {
		if t.listedIn(c.mode) {
			c.offered[t.name] = true
		}
	}
	c.mu.Unlock()
	if first {
		k := c.face()
		n := len(s.listedTools(k))
		s.log.Info("tools listed", "session", c.id, "client", c.caller().Client, "mode", k.mode, "upstream_tools", n, "bytes", len(tools))
		if n > ManyTools && k.mode != ModeOff {
			s.log.Warn("many direct-only tools are listed: some clients take 128 in all, their own included", "tools", n)
		}
	}
	s.recordSession(c, tools)
	return tools, nil
}

// ManyTools is how many listed tools are worth a warning: VS Code and others
// refuse a request with more than 128, their own included.
const ManyTools = 40

// noCursor refuses a cursor: our lists have one page, so we gave none out.
func noCursor(params json.RawMessage) error {
	if rawjson.IsNull(params) {
		return nil
	}
	o, err := rawjson.Parse(params)
	if err != nil {
		return invalidParams("params: %v", err)
	}
	if cursor, ok := o.Text("cursor"); ok && cursor != "" {
		return invalidParams("unknown cursor; the list has one page")
	}
	return nil
}

// awaitKnown waits in off mode for the servers that have no cache, so that the
// first list is whole, at most listTime. One that fails is not waited for.
func (s *Server) awaitKnown(ctx context.Context) {
	if !s.started.Load() {
		s.Start() // a list may be a client's first request
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	for _, st := range s.servers.Status() {
		if st.Tools == 0 && (st.State == upstreams.Idle || st.State == upstreams.Starting) {
			waiting.Go(func() { _ = s.servers.Live(ctx, st.Name) }) // its status tells why it is not there
		}
	}
}

// toolsFor returns the tools/list result of a session now: the control tools,
// then those of servers, each group sorted by name.
func (s *Server) toolsFor(c *session) json.RawMessage {
	k := c.face()
	f := s.faceFor(k)
	return listResult(append(slices.Clone(f.definitions), f.publish(s.listedTools(k))...))
}

// publish returns the definitions of tools. It keeps them until the next list:
// in off mode there may be megabytes, of which a change touches few.
func (f *face) publish(tools []*upstreams.Tool) []json.RawMessage {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := make(map[*upstreams.Tool]json.RawMessage, len(tools))
	defs := make([]json.RawMessage, len(tools))
	for i, t := range tools {
		def, ok := f.published[t]
		if !ok {
			def = publish(t)
		}
		kept[t], defs[i] = def, def
	}
	f.published = kept
	return defs
}

// listedTools returns the tools of servers that a face lists, sorted by full name.
func (s *Server) listedTools(k faceKey) []*upstreams.Tool {
	v := s.dir.View(k.profile)
	tools := slices.Clone(v.Direct())
	switch k.mode {
	case ModeOff:
		tools = append(tools, v.Tools()...)
	case ModeDirectory:
		s.mu.Lock()
		pinned := s.settings.Directory.Pinned
		s.mu.Unlock()
		n := 0
		for _, t := range v.Tools() {
			if n < MaxPinned && isPinned(pinned, t) {
				tools = append(tools, t)
				n++
			}
		}
	}
	slices.SortFunc(tools, func(a, b *upstreams.Tool) int { return strings.Compare(a.FullName, b.FullName) })
	return tools
}

// isListed tells whether a face lists a tool of a server.
func (s *Server) isListed(k faceKey, t *upstreams.Tool) bool {
	if t.DirectOnly || k.mode == ModeOff {
		return true
	}
	return k.mode == ModeDirectory && slices.ContainsFunc(s.listedTools(k), func(l *upstreams.Tool) bool { return l.ID == t.ID })
}

func isPinned(patterns []string, t *upstreams.Tool) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		p = strings.TrimSpace(p)
		return p == t.FullName || upstreams.MatchPattern(p, t.ID)
	})
}

// publish returns a tool's definition as a client sees it: the upstream's own
// bytes under our name, but for what costs some clients the whole list.
// Calls are checked against the original, never against this copy.
func publish(t *upstreams.Tool) json.RawMessage {
	o, err := rawjson.Parse(t.Raw)
	if err != nil {
		o = nil // a tool is an object with a name; upstreams kept it
	}
	o = o.With("name", quote(t.FullName)).With("inputSchema", publishedSchema(o.Get("inputSchema")))
	if out := o.Get("outputSchema"); out != nil && !soundOutput(out) {
		o = o.Without("outputSchema")
	}
	o = readable(o, fieldKinds)
	if a, err := rawjson.Parse(o.Get("annotations")); err == nil && o.Has("annotations") {
		if sound := readable(a, annotationKinds); len(sound) < len(a) {
			o = o.With("annotations", sound.Bytes())
		}
	}
	return o.Bytes()
}

// What clients expect under the names they know. One value of another kind
// costs many of them the whole list.
var (
	fieldKinds = map[string]string{
		"title": "a string", "description": "a string", "annotations": "an object",
		"icons": "an array", "execution": "an object", "_meta": "an object",
	}
	annotationKinds = map[string]string{
		"title": "a string", "readOnlyHint": "a boolean", "destructiveHint": "a boolean",
		"idempotentHint": "a boolean", "openWorldHint": "a boolean",
	}
)

// readable leaves out the members that are not of the kind expected.
func readable(o rawjson.Object, kinds map[string]string) rawjson.Object {
	for name, kind := range kinds {
		if o.Has(name) && rawjson.Kind(o.Get(name)) != kind {
			o = o.Without(name)
		}
	}
	return o
}

// publishedSchema makes an input schema one that clients take.
func publishedSchema(schema json.RawMessage) json.RawMessage {
	o, err := rawjson.Parse(schema)
	if err != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`) // absent, true, or no schema at all
	}
	changed := false
	if merged, ok := mergeCombinators(o); ok {
		o, changed = merged, true
	}
	switch kind, _ := o.Text("type"); {
	case !o.Has("type"):
		o, changed = append(rawjson.Object{{Name: "type", Value: json.RawMessage(`"object"`)}}, o...), true
	case kind != "object":
		o, changed = o.With("type", json.RawMessage(`"object"`)), true
	case rawjson.IsNull(o.Get("properties")):
		o, changed = o.With("properties", json.RawMessage(`{}`)), true
	}
	if o.Has("properties") {
		sound := objectProperties(o.Get("properties"))
		if sound != nil {
			o, changed = o.With("properties", sound), true
		}
	}
	if required := o.Get("required"); required != nil && (rawjson.IsNull(required) || json.Unmarshal(required, &[]string{}) != nil) {
		o, changed = o.Without("required"), true
	}
	if changed {
		schema = o.Bytes()
	}
	if bytes.Contains(schema, []byte("true")) {
		schema = withoutTrue(schema)
	}
	return schema
}

// objectProperties returns the properties of a schema's root as clients demand
// them: an object of objects. It returns nil if they are so already; true is
// for withoutTrue.
func objectProperties(properties json.RawMessage) json.RawMessage {
	o, err := rawjson.Parse(properties)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	changed := false
	for i, m := range o {
		switch rawjson.Kind(m.Value) {
		case "an object":
			continue
		case "a boolean":
			if string(m.Value) == "true" {
				continue
			}
			o[i].Value = json.RawMessage(`{"not":{}}`)
		default:
			o[i].Value = json.RawMessage(`{}`)
		}
		changed = true
	}
	if !changed {
		return nil
	}
	return o.Bytes()
}

// withoutTrue replaces subschemas that are the boolean true by {}, which means
// the same. additionalProperties and its like stay: there every client knows
// booleans.
func withoutTrue(schema json.RawMessage) json.RawMessage {
	t := parseTree(schema)
	if t == nil {
		return schema
	}
	found := make(map[*tree]bool)
	findTrue(t, found)
	if len(found) == 0 {
		return schema
	}
	return t.encode(found)
}

// findTrue adds the subschemas of a schema that are true.
func findTrue(schema *tree, found map[*tree]bool) {
	subschema := func(t *tree) {
		if string(t.raw) == "true" {
			found[t] = true
		}
		findTrue(t, found)
	}
	for i, name := range schema.names {
		item := schema.items[i]
		switch name {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			for _, sub := range item.items {
				subschema(sub)
			}
		case "items", "prefixItems", "anyOf", "oneOf", "allOf":
			if item.kind != '[' {
				subschema(item)
				continue
			}
			for _, sub := range item.items {
				subschema(sub)
			}
		case "not", "if", "then", "else", "contains", "propertyNames":
			subschema(item)
		case "additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems":
			findTrue(item, found)
		}
	}
}

// mergeCombinators rewrites a schema with anyOf, oneOf or allOf at its root,
// which model APIs refuse, into one object that lists all parameters. It
// reports whether there was one. The rewrite is looser: it is for showing.
func mergeCombinators(o rawjson.Object) (rawjson.Object, bool) {
	var branches []rawjson.Object
	var all []string // required in every case
	found := false
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		items, err := rawjson.Array(o.Get(name))
		if err != nil || !o.Has(name) {
			continue
		}
		found = true
		var common []string
		for i, item := range items {
			branch := resolveLocal(o, item)
			branches = append(branches, branch)
			required := textsOf(branch.Get("required"))
			switch {
			case name == "allOf" || i == 0:
				common = append(common, required...)
			default:
				common = slices.DeleteFunc(common, func(r string) bool { return !slices.Contains(required, r) })
			}
		}
		all = append(all, common...)
	}
	if !found {
		return o, false
	}
	properties, err := rawjson.Parse(o.Get("properties"))
	if err != nil {
		properties = nil
	}
	for _, branch := range branches {
		more, err := rawjson.Parse(branch.Get("properties"))
		if err != nil {
			continue
		}
		for _, m := range more {
			if !properties.Has(m.Name) {
				properties = properties.With(m.Name, m.Value)
			}
		}
	}
	required := textsOf(o.Get("required"))
	for _, r := range all {
		if !slices.Contains(required, r) && properties.Has(r) {
			required = append(required, r)
		}
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf", "if", "then", "else", "not"} {
		o = o.Without(name)
	}
	o = o.With("properties", properties.Bytes())
	if len(required) > 0 {
		o = o.With("required", encode(required))
	}
	return o, true
}

// resolveLocal reads a branch, following one $ref into the same schema.
func resolveLocal(root rawjson.Object, branch json.RawMessage) rawjson.Object {
	o, err := rawjson.Parse(branch)
	if err != nil {
		return nil
	}
	ref, ok := o.Text("$ref")
	if !ok {
		return o
	}
	target, err := parseTree(root.Bytes()).at(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return nil
	}
	o, err = rawjson.Parse(target.raw)
	if err != nil {
		return nil
	}
	return o
}

// soundOutput tells whether clients can compile an output schema: they refuse
// the tool, or all tools, over one that is no object schema or refers to what
// is not there.
func soundOutput(schema json.RawMessage) bool {
	o, err := rawjson.Parse(schema)
	if err != nil {
		return false
	}
	if kind, _ := o.Text("type"); kind != "object" {
		return false
	}
	root := parseTree(schema)
	return refsResolve(root, root)
}

func refsResolve(root, t *tree) bool {
	for i, item := range t.items {
		if t.kind == '{' && t.names[i] == "$ref" && item.kind == 0 {
			ref, ok := textOf(item.raw)
			if !ok || ref != "#" && !strings.HasPrefix(ref, "#/") {
				return false
			}
			if _, err := root.at(ref[1:]); err != nil {
				return false
			}
		} else if !refsResolve(root, item) {
			return false
		}
	}
	return true
}
