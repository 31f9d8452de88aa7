package aggregator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// controlDescribe answers tool_describe.
func (s *Server) controlDescribe(ctx context.Context, call *controlCall) (json.RawMessage, error) {
	const want = `send {"id":"the id of a tool_search hit"}`
	o, err := readObject(call.args)
	if err != nil {
		return errorResult(fmt.Sprintf("tool_describe: %v; %s", err, want)), nil
	}
	// A doubled envelope is the only other shape that models send.
	if selector, _ := takeSelector(o); selector == "" {
		if inner, err := unwrap(o); err == nil && inner != nil {
			o = inner
		}
	}
	selector, _ := takeSelector(o)
	if selector == "" {
		return errorResult(fmt.Sprintf("tool_describe needs the id of a tool, got %s; %s", gotInstead(o), want)), nil
	}
	path, ok := o.Text("path")
	if v := o.Get("path"); !rawjson.IsNull(v) && !ok {
		return errorResult(fmt.Sprintf("tool_describe: path must be a string such as /parameters/properties/filter, got %s", rawjson.Kind(v))), nil
	}
	text, f := s.describe(ctx, call.session, selector, path, s.current().MaxAnswerChars, phrasesFor(call.session))
	if f != nil {
		return f.result(), nil
	}
	return textResult(string(text)), nil
}

// describe returns the description of a tool, or of the part of its schemas
// that path points to, within budget characters of encoded content.
func (s *Server) describe(ctx context.Context, c *session, selector, path string, budget int, p phrases) (json.RawMessage, *failure) {
	begin := time.Now()
	record := telemetry.Describe{}
	t, f := s.known(ctx, c, selector, p)
	var text json.RawMessage
	if f == nil {
		record.ID = t.ID
		if path == "" {
			text = description(s.dir.View(c.caller().Profile).Hit(t), budget)
		} else if text, f = part(t, path, budget); f != nil {
			f.tool = t
		}
	}
	record.MS, record.Bytes = time.Since(begin).Milliseconds(), len(text)
	s.records.Describe(origin(c.caller()), record)
	return text, f
}

// known resolves a selector in what is known, which may be the catalog of the
// last start; for a server of which nothing is known it waits a little, and in
// a command of our own as long as the server takes.
func (s *Server) known(ctx context.Context, c *session, selector string, p phrases) (*upstreams.Tool, *failure) {
	from := c.caller()
	view := s.dir.View(from.Profile)
	t, err := view.Resolve(selector)
	if err != nil {
		wait := ctx
		if !c.local {
			var cancel context.CancelFunc
			wait, cancel = context.WithTimeout(ctx, settleTime)
			defer cancel()
		}
		found := s.awaitOwner(wait, from.Profile, view, selector)
		switch {
		case found == nil:
			s.recordHidden(from, selector)
			return nil, unknownTool(err, selector, p)
		case found.tool == nil:
			return nil, found.failure
		}
		t = found.tool
	}
	if t.DirectOnly {
		return nil, directOnly(t)
	}
	return t, nil
}

// description encodes what tool_describe says of a tool.
func description(h directory.Hit, budget int) json.RawMessage {
	t := h.Tool
	o := rawjson.Object{
		{Name: "id", Value: quote(h.ID)},
		{Name: "source", Value: quote(h.Source)},
		{Name: "sourceName", Value: quote(h.SourceName)},
		{Name: "name", Value: quote(h.Name)},
	}
	if h.Label != "" {
		o = append(o, rawjson.Member{Name: "label", Value: quote(h.Label)})
	}
	o = append(o, rawjson.Member{Name: "description", Value: quote(cutEncoded(directory.Clean(t.Description), budget/4))})
	if a := annotationsOf(t.Annotations); a != nil {
		o = append(o, rawjson.Member{Name: "annotations", Value: a})
	}
	return fitTree(budget, parseTree(schemasOf(t)), func(v json.RawMessage, cut []string) json.RawMessage {
		out := slices.Clone(o)
		shown, _ := rawjson.Parse(v) // encoded by us
		out = append(out, shown...)
		if shown.Has("outputSchema") {
			out = append(out, rawjson.Member{Name: "outputSchemaTrusted", Value: strconv.AppendBool(nil, t.Trust == upstreams.TrustFull)})
		}
		return truncated(out, cut)
	}, "")
}

// part encodes the part of the schemas that path points to.
func part(t *upstreams.Tool, path string, budget int) (json.RawMessage, *failure) {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	value, err := parseTree(schemasOf(t)).at(path)
	if err != nil {
		return nil, &failure{status: statusInvalid, text: fmt.Sprintf("tool_describe: path %q: %v", directory.OneLine(path, 120), err)}
	}
	o := rawjson.Object{{Name: "id", Value: quote(t.ID)}, {Name: "path", Value: quote(path)}}
	wrap := func(v json.RawMessage, cut []string) json.RawMessage {
		return truncated(append(slices.Clone(o), rawjson.Member{Name: "value", Value: v}), cut)
	}
	answer := fitTree(budget, value, wrap, path)
	if value.kind != '{' || !bytes.Equal(answer, wrap(json.RawMessage("{}"), []string{path})) {
		return answer, nil
	}
	// Too many members even for their pointers: their names, as many as fit,
	// say what to fetch.
	with := func(n int) json.RawMessage {
		return append(answer[:len(answer)-1:len(answer)-1], fmt.Appendf(nil, `,"keys":%s}`, encode(value.names[:n]))...)
	}
	return with(sort.Search(len(value.names), func(n int) bool { return chars(content(string(with(n+1)))) > budget })), nil
}

func truncated(o rawjson.Object, cut []string) json.RawMessage {
	if len(cut) > 0 {
		o = append(o, rawjson.Member{Name: "truncated", Value: encode(cut)})
	}
	return o.Bytes()
}

// schemasOf is the object that path points into.
func schemasOf(t *upstreams.Tool) json.RawMessage {
	parameters := t.InputSchema
	if rawjson.IsNull(parameters) {
		parameters = json.RawMessage("{}")
	}
	o := rawjson.Object{{Name: "parameters", Value: compact(parameters)}}
	if t.Trust != upstreams.TrustNone && !rawjson.IsNull(t.OutputSchema) {
		o = append(o, rawjson.Member{Name: "outputSchema", Value: compact(t.OutputSchema)})
	}
	return o.Bytes()
}

func compact(v json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return json.RawMessage("{}")
	}
	return b.Bytes()
}

func annotationsOf(a upstreams.Annotations) json.RawMessage {
	var o rawjson.Object
	for _, hint := range []struct {
		name  string
		value *bool
	}{{"readOnlyHint", a.ReadOnly}, {"destructiveHint", a.Destructive}, {"idempotentHint", a.Idempotent}, {"openWorldHint", a.OpenWorld}} {
		if hint.value != nil {
			o = append(o, rawjson.Member{Name: hint.name, Value: strconv.AppendBool(nil, *hint.value)})
		}
	}
	if o == nil {
		return nil
	}
	return o.Bytes()
}

// cutEncoded cuts a text so that it takes at most max characters inside of an
// answer, where it is encoded twice: in our JSON, and that in a text block.
func cutEncoded(s string, max int) string {
	for size := utf8.RuneCountInString(s); ; {
		over := chars(content(string(quote(s)))) - chars(content(" ")) - max
		if over <= 0 || size == 0 {
			return s
		}
		size = min(size-1, size-over/12)
		s = cut(s, size)
	}
}

// node is an object or array of a schema, and where it stands.
type node struct {
	tree    *tree
	parent  *node
	name    string // in its parent
	pointer int    // length of its pointer
}

// path is the pointer to a node from the root.
func (n *node) path() string {
	if n.parent == nil {
		return ""
	}
	return n.parent.path() + "/" + escape(n.name)
}

// deepestCut is the deepest level at which cutting is tried: few schemas go
// that deep, and in those that do nobody misses what is deeper.
const deepestCut = 40

// levelsOf sorts the nodes by depth, the root being the only one of depth 0,
// and within one depth the largest first.
func levelsOf(root *tree) [][]*node {
	levels := [][]*node{{{tree: root}}}
	for len(levels) <= deepestCut {
		var next []*node
		for _, n := range levels[len(levels)-1] {
			for i, item := range n.tree.items {
				if len(item.items) > 0 {
					name := n.tree.name(i)
					next = append(next, &node{item, n, name, n.pointer + 1 + len(escape(name))})
				}
			}
		}
		if next == nil {
			break
		}
		levels = append(levels, next)
	}
	for _, level := range levels {
		slices.SortStableFunc(level, func(a, b *node) int { return cmp.Compare(len(b.tree.raw), len(a.tree.raw)) })
	}
	return levels
}

// fitTree encodes a value by wrap, cutting at the deepest levels what does not
// fit into budget characters: an object or array that is cut becomes {}, and
// its pointer is told. The value stands at the pointer at.
func fitTree(budget int, value *tree, wrap func(json.RawMessage, []string) json.RawMessage, at string) json.RawMessage {
	fits := func(answer json.RawMessage) bool { return chars(content(string(answer))) <= budget }
	if answer := wrap(value.encode(nil), nil); fits(answer) {
		return answer
	}
	for _, level := range slices.Backward(levelsOf(value)[1:]) {
		// with cuts the n largest nodes of the level.
		with := func(n int) json.RawMessage {
			cuts, pointers := make(map[*tree]bool), []string{}
			for _, l := range level[:n] {
				if len(l.tree.raw) > l.pointer+8 { // else its pointer would take more
					cuts[l.tree] = true
					pointers = append(pointers, at+l.path())
				}
			}
			slices.Sort(pointers)
			return wrap(value.encode(cuts), pointers)
		}
		if !fits(with(len(level))) {
			continue
		}
		n := sort.Search(len(level), func(n int) bool { return fits(with(n)) })
		return with(n)
	}
	return wrap(beginning(value, budget-chars(content(string(wrap(json.RawMessage(`""`), []string{at}))))), []string{at})
}

// beginning returns what max characters of encoded content hold of a value
// that cannot be cut any smaller: the beginning of a string, the first items
// of an array. Of an object, each member of which has a pointer of its own, it
// returns {}.
func beginning(value *tree, max int) json.RawMessage {
	if text, ok := textOf(value.raw); ok {
		return quote(cutEncoded(text, max))
	}
	if value.kind != '[' {
		return json.RawMessage("{}")
	}
	first := func(n int) json.RawMessage { return (&tree{kind: '[', items: value.items[:n]}).encode(nil) }
	return first(sort.Search(len(value.items), func(n int) bool { return chars(content(string(first(n+1)))) > max }))
}
