package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// maxScriptAnswer is the budget of search and describe inside a script, where
// the answer goes to a program and not to a model.
const maxScriptAnswer = codebridge.MaxResultBytes / 2

// controlCode answers tool_search_code.
func (s *Server) controlCode(ctx context.Context, call *controlCall) (json.RawMessage, error) {
	const want = `send {"code":"return await openclaw.tools.search(\"…\")"}`
	o, err := readObject(call.args)
	if err != nil {
		return errorResult(fmt.Sprintf("tool_search_code: %v; %s", err, want)), nil
	}
	source, ok := o.Text("code")
	switch {
	case !ok && o.Has("code"):
		return errorResult(fmt.Sprintf("tool_search_code: code must be a string, got %s; %s", rawjson.Kind(o.Get("code")), want)), nil
	case strings.TrimSpace(source) == "":
		return errorResult("tool_search_code: code is missing or blank; " + want), nil
	case len(source) > codebridge.MaxSourceBytes:
		return errorResult(fmt.Sprintf("tool_search_code: code has %d bytes, at most %d are possible; let the script fetch its data by tools", len(source), codebridge.MaxSourceBytes)), nil
	}
	caller := call.session.caller()
	h := &host{
		s: s, session: call.session, view: s.settledView(ctx, caller.Profile),
		id: s.nextCallID(), meta: passedMeta(call.meta),
	}
	stop := newProgress(ctx, call.session, call.meta).beat(func() int { return int(h.calls.Load()) })
	res, err := s.engine.Run(ctx, codebridge.Program{Source: source, Client: caller.Session}, h)
	stop()
	if err != nil {
		s.log.Error("running a script", "call", h.id, "err", err)
		return errorResult("the script was not run: toolsearch-mcp is shutting down"), nil
	}
	answer := codeResult(res, h.telemetry())
	record := telemetry.Code{MS: res.Took.Milliseconds(), Calls: len(res.Calls), Bytes: len(answer)}
	if res.Error != nil {
		record.ErrorKind = string(res.Error.Kind)
	}
	s.records.Code(origin(caller), record)
	return answer, nil
}

// codeResult encodes a run: one text block, then the content blocks that the
// value refers to.
func codeResult(res *codebridge.Result, counts json.RawMessage) json.RawMessage {
	o := rawjson.Object{{Name: "ok", Value: json.RawMessage("true")}}
	if res.Error != nil {
		o = rawjson.Object{{Name: "ok", Value: json.RawMessage("false")}, {Name: "error", Value: encode(res.Error)}}
	}
	if value := res.Value; value != nil || res.Error == nil {
		if len(value) == 0 {
			value = json.RawMessage("null")
		}
		o = append(o, rawjson.Member{Name: "value", Value: value})
	}
	logs := res.Logs
	if logs == nil {
		logs = []string{}
	}
	o = append(o, rawjson.Member{Name: "logs", Value: encode(logs)})
	if res.Error != nil {
		calls := res.Calls
		if calls == nil {
			calls = []codebridge.CallRecord{}
		}
		o = append(o, rawjson.Member{Name: "calls", Value: encode(calls)})
	}
	o = append(o, rawjson.Member{Name: "telemetry", Value: counts})
	blocks := append([]json.RawMessage{textBlock(string(o.Bytes()))}, res.Blocks...)
	result := rawjson.Object{{Name: "content", Value: rawjson.List(blocks...)}}
	if res.Error != nil {
		result = append(result, rawjson.Member{Name: "isError", Value: json.RawMessage("true")})
	}
	return result.Bytes()
}

// host is what one script can reach: the view of its start, and the same chain
// of Requesters as every other call.
type host struct {
	// fixed at creation
	s       *Server
	session *session
	view    *directory.View
	id      string // of the script's own call: Parent of those it makes
	meta    json.RawMessage

	searches, describes, calls atomic.Int64
}

// telemetry is the object of contract 10 in the script's answer.
func (h *host) telemetry() json.RawMessage {
	return encode(struct {
		CatalogSize   int            `json:"catalogSize"`
		Sources       map[string]int `json:"sources"`
		SearchCount   int64          `json:"searchCount"`
		DescribeCount int64          `json:"describeCount"`
		CallCount     int64          `json:"callCount"`
	}{len(h.view.Tools()), sources(len(h.view.Tools())), h.searches.Load(), h.describes.Load(), h.calls.Load()})
}

// Lane implements codebridge.Host: calls to one server run one after the
// other, unless its configuration allows them side by side.
func (h *host) Lane(fn string, args json.RawMessage) string {
	if fn != "call" {
		return ""
	}
	o, err := rawjson.Parse(callInput(args))
	if err != nil {
		return ""
	}
	selector, rest := takeSelector(o)
	if selector == "" {
		if inner, err := unwrap(rest); err == nil && inner != nil {
			selector, _ = takeSelector(inner)
		}
	}
	t, err := h.view.Resolve(selector)
	switch {
	case err != nil:
		// The server may still come up: what it can do is not known yet.
		if rest, ok := strings.CutPrefix(strings.TrimSpace(selector), "mcp:"); ok {
			server, _, _ := strings.Cut(rest, ":")
			return server
		}
		return ""
	case t.ParallelCalls:
		return ""
	}
	return t.Safe
}

// Call implements codebridge.Host.
func (h *host) Call(ctx context.Context, c *codebridge.Call) (json.RawMessage, error) {
	args, err := rawjson.Array(c.Args)
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	switch c.Fn {
	case "search":
		h.searches.Add(1)
		return h.search(ctx, args)
	case "describe":
		h.describes.Add(1)
		return h.describe(ctx, args)
	case "call":
		h.calls.Add(1)
		return h.call(ctx, c)
	}
	return nil, fmt.Errorf("unknown function %q", c.Fn)
}

// search is openclaw.tools.search(query, {limit}?): it returns the hits.
func (h *host) search(ctx context.Context, args []json.RawMessage) (json.RawMessage, error) {
	input := rawjson.Object{}
	if len(args) > 0 {
		if rawjson.Kind(args[0]) == "an object" {
			input, _ = rawjson.Parse(args[0])
		} else {
			input = input.With("query", args[0])
		}
	}
	if len(args) > 1 && !input.Has("limit") {
		limit := args[1]
		if options, err := rawjson.Parse(limit); err == nil {
			limit = options.Get("limit")
		}
		if !rawjson.IsNull(limit) {
			input = input.With("limit", limit)
		}
	}
	queries, batch, err := readQueries(input.Bytes(), h.s.current())
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "tool_search: ")
		return nil, &codebridge.ToolError{Code: statusInvalid, Message: `openclaw.tools.search("what the tool should do", {limit: 5}): ` + text}
	}
	groups, err := h.s.search(ctx, h.session, h.view, queries)
	if err != nil {
		return nil, err
	}
	text, _ := fitHits(groups, batch, maxScriptAnswer, func(int) string { return "" })
	return json.RawMessage(text), nil
}

// describe is openclaw.tools.describe(id).
func (h *host) describe(ctx context.Context, args []json.RawMessage) (json.RawMessage, error) {
	var selector, path string
	if len(args) > 0 {
		selector, _ = textOf(args[0])
		if o, err := rawjson.Parse(args[0]); err == nil { // a hit, or {id, path}
			selector, _ = takeSelector(o)
			path, _ = o.Text("path")
		}
	}
	if len(args) > 1 {
		if o, err := rawjson.Parse(args[1]); err == nil {
			path, _ = o.Text("path")
		} else if p, ok := textOf(args[1]); ok {
			path = p
		}
	}
	if selector == "" {
		return nil, &codebridge.ToolError{Code: statusInvalid, Message: "openclaw.tools.describe(id) needs the id of a hit as a string"}
	}
	text, f := h.s.describe(ctx, h.session, selector, path, maxScriptAnswer, phrasesScript)
	if f != nil {
		return nil, f.toolError(nil)
	}
	return text, nil
}

// call is openclaw.tools.call(id, args).
func (h *host) call(ctx context.Context, c *codebridge.Call) (json.RawMessage, error) {
	p := phrasesScript
	profile := h.session.caller().Profile
	fixed, f := repairCall(callInput(c.Args), p, func(selector string) (*upstreams.Tool, *failure) {
		return h.find(ctx, selector)
	}, func(name string) *upstreams.Tool {
		return h.s.exact(profile, name)
	})
	if f != nil {
		return nil, f.toolError(nil)
	}
	rest := &restful{rest: c.Rest}
	defer rest.end()
	res, f := h.s.do(ctx, upstreams.Call{
		ID: h.s.nextCallID(), Parent: h.id, From: h.session.caller(), Via: upstreams.ViaCode,
		Tool: fixed.tool, Args: fixed.args, Meta: h.meta, Client: rest,
	}, p)
	if f != nil {
		return nil, f.toolError(nil)
	}
	raw, failed := shape(fixed.tool, res, upstreams.ViaCode)
	if failed {
		return nil, (&failure{status: statusFailed, tool: fixed.tool, text: errorText(fixed.tool, raw)}).toolError(raw)
	}
	return rawjson.Object{{Name: "tool", Value: toolRef(fixed.tool)}, {Name: "result", Value: raw}}.Bytes(), nil
}

// find resolves a selector in the view of the script's start. A tool of it
// that is gone by now is unavailable; one of a server that comes up only now
// is found as in any other call.
func (h *host) find(ctx context.Context, selector string) (*upstreams.Tool, *failure) {
	t, err := h.view.Resolve(selector)
	if err != nil {
		return h.s.find(ctx, h.session.caller(), selector, phrasesScript)
	}
	now, f := h.s.find(ctx, h.session.caller(), t.ID, phrasesScript)
	if f != nil && f.status == statusUnknown {
		f = &failure{status: statusUnavailable, tool: t, text: shownID(t) + " is gone since the script started; search again in a new script"}
	}
	return now, f
}

// restful lets the clock of a script rest while a call reports progress:
// until restTime has passed without any.
type restful struct {
	rest func() (resume func()) // fixed at creation

	// mu guards the following
	mu     sync.Mutex
	ended  bool
	timer  *time.Timer
	resume func()
}

// restTime is how long a report of progress is believed.
const restTime = 10 * time.Second

// Progress implements upstreams.Client.
func (r *restful) Progress(json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
	case r.resume == nil:
		r.resume = r.rest()
		r.timer = time.AfterFunc(restTime, r.wake)
	default:
		r.timer.Reset(restTime)
	}
}

func (r *restful) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resume != nil {
		r.resume()
		r.resume = nil
	}
}

func (r *restful) end() {
	r.mu.Lock()
	r.ended = true
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	r.wake()
}

// callInput puts the arguments of openclaw.tools.call into the shape of
// tool_call's input: (id, args), (hit, args) or ({id, args}).
func callInput(args json.RawMessage) json.RawMessage {
	items, err := rawjson.Array(args)
	if err != nil || len(items) == 0 {
		return json.RawMessage("{}")
	}
	first := items[0]
	var o rawjson.Object
	if hit, err := rawjson.Parse(first); err == nil {
		o = hit
		if hit.Has("id") && hit.Has("sourceName") { // a hit or a description
			o = rawjson.Object{{Name: "id", Value: hit.Get("id")}}
		}
	} else {
		o = rawjson.Object{{Name: "id", Value: first}}
	}
	if len(items) > 1 && !rawjson.IsNull(items[1]) {
		o = o.With("args", items[1])
	}
	return o.Bytes()
}

// toolRef is {id, name, source} of a tool, as scripts see it.
func toolRef(t *upstreams.Tool) json.RawMessage {
	return rawjson.Object{
		{Name: "id", Value: quote(t.ID)},
		{Name: "name", Value: quote(t.FullName)},
		{Name: "source", Value: quote(sourceMCP)},
	}.Bytes()
}

// toolError is the failure as a script sees it.
func (f *failure) toolError(result json.RawMessage) *codebridge.ToolError {
	e := &codebridge.ToolError{Code: f.status, Message: f.text, Result: result}
	if f.tool != nil {
		e.Tool = toolRef(f.tool)
	}
	return e
}

// errorText is what a failed result says: its text blocks.
func errorText(t *upstreams.Tool, raw json.RawMessage) string {
	o, err := rawjson.Parse(raw)
	if err != nil {
		return shownID(t) + " failed"
	}
	items, err := rawjson.Array(o.Get("content"))
	if err != nil {
		return shownID(t) + " failed"
	}
	var texts []string
	for _, item := range items {
		if block, err := rawjson.Parse(item); err == nil {
			if text, ok := block.Text("text"); ok && text != "" {
				texts = append(texts, text)
			}
		}
	}
	if len(texts) == 0 {
		return shownID(t) + " failed"
	}
	return strings.Join(texts, "\n")
}
