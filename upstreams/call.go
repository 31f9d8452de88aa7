package upstreams

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// epitaphGrace is how long the error of a call waits to learn how the server
// ended.
const epitaphGrace = 500 * time.Millisecond

// callTable finds the call in flight that a progress notification belongs to.
// Tokens are ours and are never used again, so no two clients can meet. The
// zero value is ready.
type callTable struct {
	last atomic.Int64

	mu    sync.Mutex // guards the following
	calls map[string]*flight
}

// flight is one call that was sent and not answered.
type flight struct {
	token  string
	client Client
	alive  func() // told of each sign of life

	mu    sync.Mutex // guards the following
	ended bool
}

func (t *callTable) add(client Client, alive func()) *flight {
	f := &flight{token: strconv.FormatInt(t.last.Add(1), 10), client: client, alive: alive}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = map[string]*flight{}
	}
	t.calls[f.token] = f
	return f
}

// remove ends a flight: when it returns, its client hears nothing any more.
func (t *callTable) remove(f *flight) {
	t.mu.Lock()
	delete(t.calls, f.token)
	t.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
}

// progress hands on the params of a notifications/progress. Those of calls
// that have ended, and with tokens we never gave, are dropped.
func (t *callTable) progress(params json.RawMessage) {
	o, err := rawjson.Parse(params)
	if err != nil {
		return
	}
	// Some servers give numbers back as strings.
	token := bytes.Trim(o.Get("progressToken"), `"`)
	t.mu.Lock()
	f := t.calls[string(token)]
	t.mu.Unlock()
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	f.alive()
	if f.client != nil {
		f.client.Progress(params)
	}
}

// do carries out one call of one of the server's tools. It is repeated once,
// and only if the server certainly did not execute it.
func (s *server) do(ctx context.Context, call Call) (*Result, error) {
	if call.Tool.Hidden != "" {
		return nil, s.wrap(fmt.Errorf("%w %q: %s", ErrUnknownTool, call.Tool.Name, call.Tool.Hidden))
	}
	ctx, alive, stop := s.limitIdle(ctx)
	defer stop()
	if s.slots != nil {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, ErrTimedOut) {
				return nil, cause
			}
			return nil, s.wrap(fmt.Errorf("%w: %d calls (maxConcurrentCalls) are running and none of them ended in time", ErrUnavailable, cap(s.slots)))
		}
	}
	for again := false; ; again = true {
		ss, err := s.liveSession(ctx)
		if err != nil {
			return nil, err
		}
		if !s.has(call.Tool.Name) {
			return nil, s.wrap(fmt.Errorf("%w %q: the server does not list it any more", ErrUnknownTool, call.Tool.Name))
		}
		alive()
		raw, err := s.send(ctx, ss, call, alive)
		if errors.Is(err, errNotExecuted) && !again && ctx.Err() == nil {
			s.log.Info("call is repeated on a new session", "tool", call.Tool.Name, "err", err)
			s.drop(ss, err)
			continue
		}
		if err != nil {
			return nil, s.wrap(err)
		}
		if n, limit := len(raw), s.cfg.maxResultBytes(); n > limit {
			return nil, s.wrap(fmt.Errorf("%w: %d bytes, more than maxResultBytes (%d)", ErrTooLarge, n, limit))
		}
		if looksUnknown(firstText(raw)) || !ss.listChanges {
			s.listMayHaveChanged()
		}
		return normalize(raw), nil
	}
}

// limitIdle ends the context when the call has been without a sign of life
// for callTimeoutMs; alive is to be called at each sign.
func (s *server) limitIdle(ctx context.Context) (limited context.Context, alive, stop func()) {
	limit := s.cfg.callTimeout()
	if limit == 0 {
		return ctx, func() {}, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() {
		cancel(fmt.Errorf("%w: nothing was heard for %v (callTimeoutMs); it was cancelled and may have acted", ErrTimedOut, limit))
	})
	return ctx, func() { timer.Reset(limit) }, func() { timer.Stop(); cancel(nil) }
}

func (s *server) has(tool string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.byName[tool] != nil
}

// send makes one attempt at a call on one session. Its errors name neither
// the server nor the session.
func (s *server) send(ctx context.Context, ss *session, call Call, alive func()) (json.RawMessage, error) {
	f := s.calls.add(call.Client, alive)
	defer s.calls.remove(f)
	params, err := callParams(call, f.token)
	if err != nil {
		return nil, err
	}
	sending, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ss.ctx, func() {
		if cause := context.Cause(ss.ctx); !errors.Is(cause, errGone) { // then the true error is on its way
			cancel(cause)
		}
	})()

	// Cancelling sends notifications/cancelled with the request's own id (SDK).
	raw, err := wire.CallRaw(sending, ss.cs, "tools/call", params)
	if err == nil {
		return raw, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, ctx.Err()) || errors.Is(cause, ErrTimedOut) {
			return nil, cause
		}
		return nil, fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	if sending.Err() != nil {
		return nil, s.lost(ss, context.Cause(ss.ctx))
	}
	if errors.Is(err, rawjson.ErrNotObject) {
		return nil, &RPCError{Code: jsonrpc.CodeInternalError, Message: "the server answered, but not with a result object"}
	}
	err = s.withoutSecrets(callError(err))
	var rpc *RPCError
	switch {
	case errors.As(err, &rpc):
		if looksUnknown(rpc.Message) || rpc.Code == jsonrpc.CodeMethodNotFound {
			s.listMayHaveChanged()
		}
	case errors.Is(err, ErrNeedsAuth):
		s.drop(ss, err)
	case errors.Is(err, ErrLost):
		return nil, s.lost(ss, err)
	}
	return nil, err
}

// lost makes the error of a call whose session ended under it.
func (s *server) lost(ss *session, cause error) error {
	err := fmt.Errorf("%w; whether it ran is not known", ErrLost)
	if errors.Is(context.Cause(ss.ctx), ErrClosed) {
		return fmt.Errorf("%w: %w", err, ErrClosed)
	}
	within(epitaphGrace, ss.over)
	select {
	case <-ss.over:
		if ss.epitaph != "" {
			return fmt.Errorf("%w (%s)", err, ss.epitaph)
		}
	default:
	}
	if cause == nil {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.TrimPrefix(cause.Error(), ErrLost.Error()+": "))
}

// callParams makes the params of tools/call: the arguments byte for byte, the
// client's _meta with our own progress token in it.
func callParams(call Call, token string) (json.RawMessage, error) {
	args := call.Args
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	var meta rawjson.Object
	if !rawjson.IsNull(call.Meta) {
		var err error
		if meta, err = rawjson.Parse(call.Meta); err != nil {
			return nil, fmt.Errorf("_meta of the call: %w", err)
		}
	}
	return rawjson.Object{
		{Name: "name", Value: rawjson.Quote(call.Tool.Name)},
		{Name: "arguments", Value: args},
		{Name: "_meta", Value: meta.With("progressToken", json.RawMessage(token)).Bytes()},
	}.Bytes(), nil
}

// normalize brings results that break the protocol into a form that clients
// can read. All others, and all members of those, keep their bytes.
func normalize(raw json.RawMessage) *Result {
	o, err := rawjson.Parse(raw)
	if err != nil {
		return &Result{Raw: raw} // duplicate keys: the client sees what we saw
	}
	// The revision of 2024-10-07 put the result into toolResult.
	if inner := o.Get("toolResult"); inner != nil && !o.Has("content") {
		if r, err := rawjson.Parse(inner); err == nil && r.Has("content") {
			for _, m := range o {
				if m.Name != "toolResult" && !r.Has(m.Name) {
					r = append(r, m)
				}
			}
			return normalize(r.Bytes())
		}
		return &Result{Raw: o.With("content", textContent(inner)).Bytes()}
	}
	content := o.Get("content")
	switch {
	case content == nil:
		return &Result{Raw: raw}
	case rawjson.IsNull(content):
		return &Result{Raw: o.With("content", json.RawMessage("[]")).Bytes()}
	case content[0] == '{':
		return &Result{Raw: o.With("content", rawjson.List(content)).Bytes()}
	case content[0] != '[':
		return &Result{Raw: o.With("content", textContent(content)).Bytes()}
	case !bytes.Contains(content, []byte("null")):
		return &Result{Raw: raw}
	}
	items, err := rawjson.Array(content)
	if err != nil {
		return &Result{Raw: raw}
	}
	var blocks []json.RawMessage
	for _, item := range items {
		if !rawjson.IsNull(item) {
			blocks = append(blocks, item)
		}
	}
	if len(blocks) == len(items) {
		return &Result{Raw: raw}
	}
	return &Result{
		Raw:  o.With("content", rawjson.List(blocks...)).Bytes(),
		Note: fmt.Sprintf("%d content blocks were null and were left out", len(items)-len(blocks)),
	}
}

// textContent makes the content that shows a bare value.
func textContent(v json.RawMessage) json.RawMessage {
	text := v
	if v[0] != '"' {
		text = rawjson.Quote(string(v))
	}
	return rawjson.List(rawjson.Object{{Name: "type", Value: json.RawMessage(`"text"`)}, {Name: "text", Value: text}}.Bytes())
}

// firstText returns the text of a result that has one short text block, in
// any of the places where servers put an error; else "".
func firstText(raw json.RawMessage) string {
	const short = 2000
	if len(raw) > short || !bytes.Contains(raw, []byte("ool")) {
		return ""
	}
	var r struct {
		Content    []struct{ Text string }
		ToolResult struct{ Content []struct{ Text string } }
	}
	if json.Unmarshal(raw, &r) != nil {
		return ""
	}
	for _, content := range [][]struct{ Text string }{r.Content, r.ToolResult.Content} {
		if len(content) == 1 {
			return content[0].Text
		}
	}
	return ""
}

// unknownTool matches what servers say of a tool they do not have: there are
// six shapes of it, as JSON-RPC errors of four codes, as isError results and
// as plain successes. To be wrong costs one reading of the list.
var unknownTool = regexp.MustCompile(`(?i)(unknown|no such|invalid) tool|tool\b.{0,120}\b(not found|unknown|(does not|doesn't) exist|not (available|registered|enabled|supported)|disabled)|(not find|not found).{0,20} tool`)

func looksUnknown(text string) bool { return text != "" && unknownTool.MatchString(text) }
