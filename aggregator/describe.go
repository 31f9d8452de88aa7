package aggregator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
		return errorResult(fmt.Sprintf("tool_describe needs the id of a tool, got %s; %s", memberNames(o), want)), nil
	}
	path, ok := o.Text("path")
	if v := o.Get("path"); !rawjson.IsNull(v) && !ok {
		return errorResult(fmt.Sprintf("tool_describe: path must be a string such as /parameters/properties/filter, got %s", kindOf(v))), nil
	}
	text, f := s.describe(ctx, call.session, selector, path, s.current().MaxAnswerChars, phrasesFor(call.session.face().mode))
	if f != nil {
		return errorResult(f.text), nil
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
	schemas := schemasOf(t)
	return fitTree(budget, schemas, func(v json.RawMessage, cut []string) json.RawMessage {
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
	schemas := schemasOf(t)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	value, err := pointTo(schemas, path)
	if err != nil {
		return nil, &failure{status: statusInvalid, text: fmt.Sprintf("tool_describe: path %q: %v", directory.OneLine(path, 120), err)}
	}
	o := rawjson.Object{{Name: "id", Value: quote(t.ID)}, {Name: "path", Value: quote(path)}}
	wrap := func(v json.RawMessage, cut []string) json.RawMessage {
		return truncated(append(slices.Clone(o), rawjson.Member{Name: "value", Value: v}), cut)
	}
	answer := fitTree(budget, value, wrap, path)
	if kindOf(value) != "an object" || !bytes.Equal(answer, wrap(json.RawMessage("{}"), []string{path})) {
		return answer, nil
	}
	// Too many members even for their pointers: their names, as many as fit,
	// say what to fetch.
	var names []string
	each(value, func(name string, _ json.RawMessage) { names = append(names, name) })
	with := func(n int) json.RawMessage {
		return append(answer[:len(answer)-1:len(answer)-1], fmt.Appendf(nil, `,"keys":%s}`, encode(names[:n]))...)
	}
	return with(sort.Search(len(names), func(n int) bool { return chars(content(string(with(n+1)))) > budget })), nil
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

// node is one object or array of a schema.
type node struct {
	pointer string
	depth   int
	size    int // encoded bytes
}

// fitTree encodes a value by wrap, cutting at the deepest levels what does not
// fit into budget characters: an object or array that is cut becomes {}, and
// its pointer is told.
func fitTree(budget int, value json.RawMessage, wrap func(json.RawMessage, []string) json.RawMessage, at string) json.RawMessage {
	fits := func(answer json.RawMessage) bool { return chars(content(string(answer))) <= budget }
	answer := wrap(value, nil)
	if fits(answer) {
		return answer
	}
	levels := make(map[int][]node)
	deepest := 0
	walk(value, "", 0, func(n node) {
		levels[n.depth] = append(levels[n.depth], n)
		deepest = max(deepest, n.depth)
	})
	gone := make(map[string]bool)
	for depth := deepest; depth > 0; depth-- {
		level := levels[depth]
		slices.SortStableFunc(level, func(a, b node) int { return cmp.Compare(b.size, a.size) })
		// with cuts the n largest subtrees of this level, and all deeper ones.
		with := func(n int) json.RawMessage {
			cuts := maps.Clone(gone)
			for _, l := range level[:n] {
				if l.size > len(l.pointer)+8 { // else its pointer would take more
					cuts[l.pointer] = true
				}
			}
			if n == len(level) {
				gone = cuts
			}
			return wrap(prune(value, cuts, at))
		}
		if all := with(len(level)); !fits(all) {
			continue
		}
		n := sort.Search(len(level), func(n int) bool { return fits(with(n)) })
		if answer := with(n); fits(answer) {
			return answer
		}
		return with(len(level))
	}
	return wrap(beginning(value, budget-chars(content(string(wrap(json.RawMessage(`""`), []string{at}))))), []string{at})
}

// beginning returns what max characters of encoded content hold of a value
// that cannot be cut any smaller: the beginning of a string, the first items
// of an array. Of an object, each member of which has a pointer of its own, it
// returns {}.
func beginning(value json.RawMessage, max int) json.RawMessage {
	if text, ok := textOf(value); ok {
		return quote(cutEncoded(text, max))
	}
	items, err := rawjson.Array(value)
	if err != nil {
		return json.RawMessage("{}")
	}
	n := sort.Search(len(items), func(n int) bool {
		return chars(content(string(jsonArray(items[:n+1])))) > max
	})
	return jsonArray(items[:n])
}

// walk visits all objects and arrays that hold something.
func walk(v json.RawMessage, pointer string, depth int, visit func(node)) {
	each(v, func(name string, item json.RawMessage) {
		walk(item, pointer+"/"+escape(name), depth+1, visit)
	})
	if k := kindOf(v); (k == "an object" || k == "an array") && len(v) > 2 && depth > 0 {
		visit(node{pointer, depth, len(v)})
	}
}

// prune returns a value without the subtrees that are gone, and their pointers
// seen from at; one inside of another is not told.
func prune(v json.RawMessage, gone map[string]bool, at string) (json.RawMessage, []string) {
	var pointers []string
	var cut func(v json.RawMessage, pointer string) json.RawMessage
	cut = func(v json.RawMessage, pointer string) json.RawMessage {
		if gone[pointer] {
			pointers = append(pointers, at+pointer)
			return json.RawMessage("{}")
		}
		switch kindOf(v) {
		case "an object":
			o, err := rawjson.Parse(v)
			if err != nil {
				return v
			}
			out := make(rawjson.Object, len(o))
			for i, m := range o {
				out[i] = rawjson.Member{Name: m.Name, Value: cut(m.Value, pointer+"/"+escape(m.Name))}
			}
			return out.Bytes()
		case "an array":
			items, err := rawjson.Array(v)
			if err != nil {
				return v
			}
			for i := range items {
				items[i] = cut(items[i], pointer+"/"+strconv.Itoa(i))
			}
			return jsonArray(items)
		}
		return v
	}
	return cut(v, ""), pointers
}

// each visits the members of an object or the items of an array.
func each(v json.RawMessage, visit func(name string, item json.RawMessage)) {
	switch kindOf(v) {
	case "an object":
		o, err := rawjson.Parse(v)
		if err != nil {
			return
		}
		for _, m := range o {
			visit(m.Name, m.Value)
		}
	case "an array":
		items, err := rawjson.Array(v)
		if err != nil {
			return
		}
		for i, item := range items {
			visit(strconv.Itoa(i), item)
		}
	}
}

// escape writes a name as a reference token of RFC 6901.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// pointTo follows a JSON pointer (RFC 6901).
func pointTo(v json.RawMessage, pointer string) (json.RawMessage, error) {
	if pointer == "" {
		return v, nil
	}
	at := ""
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		var next json.RawMessage
		var names []string
		each(v, func(n string, item json.RawMessage) {
			if n == name {
				next = item
			}
			names = append(names, directory.OneLine(n, 40))
		})
		if next == nil {
			where := at
			if where == "" {
				where = "the root"
			}
			if len(names) == 0 {
				return nil, fmt.Errorf("nothing is below %s", where)
			}
			return nil, fmt.Errorf("%s has no %q; it has %s", where, directory.OneLine(name, 40), nameList(names, 300))
		}
		at, v = at+"/"+token, next
	}
	return v, nil
}
