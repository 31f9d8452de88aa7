package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// controlCall is one call of a control tool.
type controlCall struct {
	session *session
	args    json.RawMessage
	meta    rawjson.Object // the client's _meta
}

// callTool answers tools/call: a control tool, or a tool of a server by any
// selector. It is the beginning of the path of every call:
// callTool → find → do → head.
func (s *Server) callTool(ctx context.Context, r *request) (json.RawMessage, error) {
	params, err := rawjson.Parse(r.params)
	if err != nil {
		return nil, invalidParams("tools/call: params: %v", err)
	}
	name, ok := params.Text("name")
	if !ok {
		return nil, invalidParams("tools/call: name must be a string")
	}
	var meta rawjson.Object
	if m := params.Get("_meta"); !rawjson.IsNull(m) {
		if meta, err = rawjson.Parse(m); err != nil {
			return nil, invalidParams("tools/call: _meta: %v", err)
		}
	}
	call := &controlCall{session: r.session, args: params.Get("arguments"), meta: meta}
	if c := controlNamed(name); c != nil && s.offers(r.session, c) {
		return c.handle(s, ctx, call)
	}
	return s.callListed(ctx, call, name)
}

// offers tells whether a session may call a control tool: it is listed now, or
// was before a reload that the client may not have noticed.
func (s *Server) offers(c *session, tool *control) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.local && (tool.name != nameCode || s.engine != nil) || tool.listedIn(c.mode) || c.offered[tool.name]
}

// callListed calls a tool of a server by its own name: one that was listed, or
// one of the catalog that was not (hydration).
func (s *Server) callListed(ctx context.Context, call *controlCall, name string) (json.RawMessage, error) {
	p := phrasesFor(call.session)
	if controlNamed(strings.TrimSpace(name)) != nil {
		return nil, invalidParams("%s is not offered in this mode; %s", strings.TrimSpace(name), p.instead())
	}
	t, f := s.find(ctx, call.session.caller(), name, p)
	if f != nil {
		if f.status == statusUnknown {
			return nil, invalidParams("%s", f.text)
		}
		return f.result(), nil
	}
	args, err := directArguments(call.args)
	if err != nil {
		return (&failure{status: statusInvalid, tool: t, text: err.Error() + "; expected: " + directory.InputSignature(t.InputSchema)}).result(), nil
	}
	via := upstreams.ViaHydrated
	if s.isListed(call.session.face(), t) {
		via = upstreams.ViaDirect
	}
	progress := newProgress(ctx, call.session, call.meta)
	defer progress.close()
	res, f := s.do(ctx, upstreams.Call{
		ID: s.nextCallID(), From: call.session.caller(), Via: via, Tool: t,
		Args: args, Meta: passedMeta(call.meta), Client: client(progress),
	}, p)
	if f != nil {
		if err := f.passthrough(true); err != nil {
			return nil, err
		}
		return f.result(), nil
	}
	raw, _ := shape(t, res, via)
	return raw, nil
}

// controlCall answers tool_call.
func (s *Server) controlCall(ctx context.Context, call *controlCall) (json.RawMessage, error) {
	p := phrasesFor(call.session)
	fixed, f := s.repair(ctx, call.session.caller(), call.args, p)
	if f != nil {
		return f.result(), nil
	}
	progress := newProgress(ctx, call.session, call.meta)
	defer progress.close()
	res, f := s.do(ctx, upstreams.Call{
		ID: s.nextCallID(), From: call.session.caller(), Via: upstreams.ViaToolCall, Tool: fixed.tool,
		Args: fixed.args, Meta: passedMeta(call.meta), Client: client(progress),
	}, p)
	if f != nil {
		if err := f.passthrough(false); err != nil {
			return nil, err
		}
		return f.result(), nil
	}
	res.Note = upstreams.JoinNotes(fixed.note, res.Note)
	raw, _ := shape(fixed.tool, res, upstreams.ViaToolCall)
	return raw, nil
}

// do sends a call down the chain and puts its errors into words.
func (s *Server) do(ctx context.Context, call upstreams.Call, p phrases) (*upstreams.Result, *failure) {
	res, err := s.head.Do(ctx, call)
	if err != nil {
		f := translate(ctx, err, call.Tool, p)
		s.log.Debug("call failed", "tool", call.Tool.ID, "call", call.ID, "status", f.status, "err", loggable(err))
		return nil, f
	}
	own := *res
	return &own, nil
}

// loggable is an error without the words of the upstream, which may repeat
// arguments or be a result.
func loggable(err error) error {
	if rpc, ok := errors.AsType[*upstreams.RPCError](err); ok {
		return fmt.Errorf("the server answered with error %d", rpc.Code)
	}
	return err
}

// find resolves a selector to a tool of a server that is live: a server that
// is not is connected first, and the name resolved again in what it lists now.
func (s *Server) find(ctx context.Context, from upstreams.Caller, selector string, p phrases) (*upstreams.Tool, *failure) {
	view := s.dir.View(from.Profile)
	t, err := view.Resolve(selector)
	if err != nil {
		waited := s.awaitOwner(ctx, from.Profile, view, selector)
		if waited == nil {
			s.recordHidden(from, selector)
			return nil, unknownTool(err, selector, p)
		}
		if waited.tool == nil {
			return nil, waited.failure
		}
		t = waited.tool
	}
	if s.isLive(t.Server) {
		return t, nil
	}
	if err := s.servers.Live(ctx, t.Server); err != nil {
		return nil, notLive(ctx, err, t.Server, t.ID, t)
	}
	now, err := s.dir.View(from.Profile).Resolve(t.ID)
	if err != nil {
		return nil, translate(ctx, upstreams.ErrUnknownTool, t, p)
	}
	return now, nil
}

func (s *Server) isLive(server string) bool {
	for _, info := range s.servers.Snapshot().Servers {
		if info.Name == server {
			return info.Live
		}
	}
	return false
}

// found is what waiting for servers brought: a tool, or why there is none.
type found struct {
	tool    *upstreams.Tool
	failure *failure
}

// awaitOwner waits for the servers that may own a selector and whose tools are
// not known, and resolves it as soon as one of them has it. It returns nil if
// there is no such server, or all are there and none has it.
func (s *Server) awaitOwner(ctx context.Context, profile string, view *directory.View, selector string) *found {
	owners := s.ownersOf(view.Servers(), selector)
	if len(owners) == 0 {
		return nil
	}
	waitCtx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	ends := make(chan error, len(owners))
	for _, name := range owners {
		waiting.Go(func() { ends <- s.servers.Live(waitCtx, name) })
	}
	var down error
	for range owners {
		if err := <-ends; err != nil {
			down = err
			continue
		}
		if t, err := s.dir.View(profile).Resolve(selector); err == nil {
			return &found{tool: t}
		}
	}
	if down == nil {
		return nil
	}
	return &found{failure: notLive(ctx, down, owners[0], selector, nil)}
}

// ownersOf names the servers that may own a selector that resolves to nothing:
// the one that it speaks of, unless that is live; with a bare tool name, those
// that are still starting and of which nothing is known.
func (s *Server) ownersOf(servers []upstreams.ServerInfo, selector string) []string {
	selector = strings.TrimSpace(selector)
	starting := make(map[string]bool)
	for _, st := range s.servers.Status() {
		starting[st.Name] = st.State == upstreams.Starting || st.State == upstreams.Idle
	}
	var named, unknown []string
	bare := !strings.HasPrefix(selector, "mcp:") && !strings.Contains(selector, "__")
	for _, info := range servers {
		switch {
		case bare && !info.Known && starting[info.Name]:
			unknown = append(unknown, info.Name)
		case !bare && !info.Live && upstreams.NamesServer(selector, info.Safe):
			named = append(named, info.Name)
		}
	}
	if bare {
		return unknown
	}
	return named
}

// directArguments checks the arguments of a call by name: an object, or
// nothing, which is {}.
func directArguments(args json.RawMessage) (json.RawMessage, error) {
	if rawjson.IsNull(args) {
		return json.RawMessage("{}"), nil
	}
	if o, ok := objectText(args); ok {
		args = o
	}
	if err := checkObject(args); err != nil {
		return nil, err
	}
	return args, nil
}

// passedMeta is the client's _meta without what is ours to fill in.
func passedMeta(meta rawjson.Object) json.RawMessage {
	var passed rawjson.Object
	for _, m := range meta {
		// The second kind describes the client's own connection to us.
		if m.Name != "progressToken" && !strings.HasPrefix(m.Name, "io.modelcontextprotocol/") {
			passed = append(passed, m)
		}
	}
	if len(passed) == 0 {
		return nil
	}
	return passed.Bytes()
}

// client avoids an interface that holds a nil pointer.
func client(p *progress) upstreams.Client {
	if p == nil {
		return nil
	}
	return p
}

// shape makes the answer of a call out of the upstream's result: the same
// bytes, but for our _meta and, unless a script reads it, content where a
// client that reads text alone would see nothing. failed tells whether the
// result is an error.
func shape(t *upstreams.Tool, res *upstreams.Result, via upstreams.Via) (raw json.RawMessage, failed bool) {
	o, err := rawjson.Parse(res.Raw)
	if err != nil {
		f := &failure{status: statusFailed, tool: t, text: shownID(t) + " has run, but its server answered with something that is not a result object; check what it did before you call it again"}
		return f.result(), true
	}
	status, note := "", res.Note
	if failed = string(o.Get("isError")) == "true"; failed {
		status = statusFailed
	}
	o, changed := withoutOurs(o)
	if via != upstreams.ViaCode && empty(o.Get("content")) {
		if structured := o.Get("structuredContent"); !rawjson.IsNull(structured) {
			o, changed = o.With("content", content(string(structured))), true
		} else if rawjson.IsNull(o.Get("content")) && !o.Has("resultType") {
			o, changed = o.With("content", content("(empty result)")), true
		}
	}
	if via == upstreams.ViaToolCall || status != "" || note != "" {
		o, changed = o.With("_meta", metaMember(o.Get("_meta"), callMeta(t, status, note))), true
	}
	if !changed {
		return res.Raw, failed
	}
	return o.Bytes(), failed
}

// empty tells whether a list is absent, null or [].
func empty(list json.RawMessage) bool {
	if rawjson.IsNull(list) {
		return true
	}
	items, err := rawjson.Array(list)
	return err == nil && len(items) == 0
}
