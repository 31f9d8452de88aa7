package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// fakeServer is one server of fakeServers.
type fakeServer struct {
	Name         string                 `json:"name"`
	Tools        []json.RawMessage      `json:"tools"` // definitions, as an upstream writes them
	State        upstreams.State        `json:"state"` // "": ready; cached: known but not live
	Comes        bool                   `json:"comes"` // it is live after Live or Start
	DirectOnly   []string               `json:"directOnly"`
	Trust        upstreams.Trust        `json:"trust"`
	Parallel     bool                   `json:"parallel"`
	Description  string                 `json:"description"`
	Instructions string                 `json:"instructions"`
	Answers      map[string]fakeOutcome `json:"answers"`
}

// fakeOutcome is what a tool answers; without any, its arguments as text.
type fakeOutcome struct {
	Result json.RawMessage `json:"result"`
	Note   string          `json:"note"`
	Error  json.RawMessage `json:"error"` // a JSON-RPC error
	Fail   string          `json:"fail"`  // a sentinel of package upstreams
}

// fakeServers implements Servers, and Requester as the end of the chain.
type fakeServers struct {
	mu       sync.Mutex
	servers  []fakeServer
	snapshot *upstreams.Snapshot
	looked   *upstreams.Snapshot // the one that Snapshot returned last
	lived    []string            // servers that Live was asked for
	calls    []upstreams.Call

	changed chan struct{}
	settled chan struct{}
	started chan struct{} // closed by Start
	// do answers a call in place of the outcomes; nil: they do.
	do func(context.Context, upstreams.Call) (*upstreams.Result, error)
	// live blocks Live; nil: it returns at once.
	live func(context.Context, string) error
}

func newFakeServers(servers ...fakeServer) *fakeServers {
	f := &fakeServers{changed: make(chan struct{}, 1), settled: make(chan struct{}), started: make(chan struct{})}
	f.set(servers...)
	return f
}

// set replaces the servers and signals the change.
func (f *fakeServers) set(servers ...fakeServer) {
	f.mu.Lock()
	f.servers = slices.Clone(servers)
	f.rebuildLocked()
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *fakeServers) rebuildLocked() {
	s := &upstreams.Snapshot{}
	for _, srv := range f.servers {
		live := srv.State == "" || srv.State == upstreams.Ready
		known := live || srv.State == upstreams.Cached || srv.State == upstreams.Backoff && len(srv.Tools) > 0
		safe := upstreams.SafeName(srv.Name)
		s.Servers = append(s.Servers, upstreams.ServerInfo{
			Name: srv.Name, Safe: safe, Live: live, Known: known,
			Description: srv.Description, Instructions: srv.Instructions,
		})
		if !known {
			continue
		}
		for _, raw := range srv.Tools {
			s.Tools = append(s.Tools, srv.tool(raw))
		}
	}
	slices.SortFunc(s.Tools, func(a, b *upstreams.Tool) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Servers, func(a, b upstreams.ServerInfo) int { return strings.Compare(a.Name, b.Name) })
	f.snapshot = s
}

func (srv fakeServer) tool(raw json.RawMessage) *upstreams.Tool {
	o, err := rawjson.Parse(raw)
	if err != nil {
		panic(err)
	}
	t := &upstreams.Tool{
		Server: srv.Name, Safe: upstreams.SafeName(srv.Name), Raw: raw,
		InputSchema: o.Get("inputSchema"), OutputSchema: o.Get("outputSchema"),
		Trust: srv.Trust, ParallelCalls: srv.Parallel, Validate: "error",
	}
	if t.Trust == "" {
		t.Trust = upstreams.TrustSchema
	}
	t.Name, _ = o.Text("name")
	t.Title, _ = o.Text("title")
	t.Description, _ = o.Text("description")
	t.ID = upstreams.ToolID(t.Safe, t.Name)
	t.FullName = upstreams.FullName(t.Safe, t.Name, upstreams.DefaultMaxNameLength)
	t.DirectOnly = slices.Contains(srv.DirectOnly, t.Name)
	if a, err := rawjson.Parse(o.Get("annotations")); err == nil {
		flag := func(name string) *bool {
			if v := a.Get(name); v != nil {
				b := string(v) == "true"
				return &b
			}
			return nil
		}
		t.Annotations = upstreams.Annotations{ReadOnly: flag("readOnlyHint"), Destructive: flag("destructiveHint"), Idempotent: flag("idempotentHint"), OpenWorld: flag("openWorldHint")}
	}
	return t
}

func (f *fakeServers) Snapshot() *upstreams.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked = f.snapshot
	return f.snapshot
}

func (f *fakeServers) Status() []upstreams.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []upstreams.Status
	for _, srv := range f.servers {
		st := upstreams.Status{Name: srv.Name, Safe: upstreams.SafeName(srv.Name), State: srv.State, Tools: len(srv.Tools)}
		if st.State == upstreams.Starting || st.State == upstreams.Idle {
			st.Tools = 0
		}
		if st.State == "" {
			st.State = upstreams.Ready
		}
		all = append(all, st)
	}
	return all
}

func (f *fakeServers) Settled() <-chan struct{} { return f.settled }
func (f *fakeServers) Changed() <-chan struct{} { return f.changed }

func (f *fakeServers) Start() { close(f.started) } // once, or it panics

func (f *fakeServers) wasStarted() bool {
	select {
	case <-f.started:
		return true
	default:
		return false
	}
}

// comeUp makes a server live.
func (f *fakeServers) comeUp(name string) {
	f.mu.Lock()
	for i := range f.servers {
		if f.servers[i].Name == name {
			f.servers[i].State = upstreams.Ready
		}
	}
	f.rebuildLocked()
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *fakeServers) Live(ctx context.Context, name string) error {
	f.mu.Lock()
	f.lived = append(f.lived, name)
	live := f.live
	i := slices.IndexFunc(f.servers, func(s fakeServer) bool { return s.Name == name })
	srv := f.servers[i]
	f.mu.Unlock()
	if live != nil {
		if err := live(ctx, name); err != nil {
			return err
		}
	}
	switch {
	case srv.Comes:
		f.comeUp(name)
		return nil
	case srv.State == upstreams.NeedsAuth:
		return fmt.Errorf("%s: %w", name, upstreams.ErrNeedsAuth)
	}
	return fmt.Errorf("%s: %w: dial https://user:hunter2@example.test: refused", name, upstreams.ErrUnavailable)
}

func (f *fakeServers) Do(ctx context.Context, call upstreams.Call) (*upstreams.Result, error) {
	f.mu.Lock()
	f.calls = append(f.calls, call)
	do := f.do
	var outcome fakeOutcome
	for _, srv := range f.servers {
		if srv.Name == call.Tool.Server {
			outcome = srv.Answers[call.Tool.Name]
		}
	}
	f.mu.Unlock()
	if do != nil {
		return do(ctx, call)
	}
	switch {
	case outcome.Fail != "":
		return nil, map[string]error{
			"unknown": upstreams.ErrUnknownTool, "unavailable": upstreams.ErrUnavailable, "auth": upstreams.ErrNeedsAuth,
			"timeout": upstreams.ErrTimedOut, "lost": upstreams.ErrLost, "large": upstreams.ErrTooLarge, "closed": upstreams.ErrClosed,
			"other": errors.New("dial https://user:hunter2@example.test: refused"),
		}[outcome.Fail]
	case outcome.Error != nil:
		var e struct {
			Code    int64
			Message string
			Data    json.RawMessage
		}
		if err := json.Unmarshal(outcome.Error, &e); err != nil {
			panic(err)
		}
		return nil, &upstreams.RPCError{Code: e.Code, Message: e.Message, Data: e.Data}
	case outcome.Result != nil:
		return &upstreams.Result{Raw: outcome.Result, Note: outcome.Note}, nil
	}
	return &upstreams.Result{Raw: textResult(string(call.Args)), Note: outcome.Note}, nil
}

// called returns the calls that reached the end of the chain.
func (f *fakeServers) called() []upstreams.Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// fakeEngine runs programs that are JSON: [[fn, arg…], …]. The value is the
// array of what the calls returned, or of {"error": ToolError}.
type fakeEngine struct{}

func (fakeEngine) Run(ctx context.Context, p codebridge.Program, h codebridge.Host) (*codebridge.Result, error) {
	var steps [][]json.RawMessage
	if err := json.Unmarshal([]byte(p.Source), &steps); err != nil {
		return &codebridge.Result{Error: &codebridge.Error{Kind: codebridge.Syntax, Message: err.Error(), Line: 1}}, nil //nolint:nilerr // told in the result
	}
	res := &codebridge.Result{}
	values := []json.RawMessage{}
	for _, step := range steps {
		fn, _ := textOf(step[0])
		v, err := h.Call(ctx, &codebridge.Call{Fn: fn, Args: rawjson.List(step[1:]...)})
		var toolErr *codebridge.ToolError
		switch {
		case errors.As(err, &toolErr):
			v = encode(map[string]any{"error": map[string]any{"code": toolErr.Code, "message": toolErr.Message, "tool": toolErr.Tool, "result": toolErr.Result}})
		case err != nil:
			return nil, err
		}
		values = append(values, v)
	}
	res.Value = rawjson.List(values...)
	return res, nil
}

// rig is a Server on fakes.
type rig struct {
	*Server
	servers *fakeServers
	gate    *policy.Gate
}

type rigOptions struct {
	settings Settings
	rules    policy.Rules
	records  *telemetry.Log
	engine   CodeRunner // nil: fakeEngine
	noEngine bool
	profile  ChooseProfile
	log      *slog.Logger
}

func newRig(t testing.TB, f *fakeServers, o rigOptions) *rig {
	t.Helper()
	rules, err := policy.Compile(o.rules)
	if err != nil {
		t.Fatal(err)
	}
	dir := directory.New(directory.Options{Source: f.Snapshot, Rules: rules})
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	gate := policy.NewGate(rules, f)
	if o.engine == nil && !o.noEngine {
		o.engine = fakeEngine{}
	}
	return &rig{New(Options{
		Directory: dir, Servers: f, Head: NewRecorder(gate, o.records), Engine: o.engine,
		Settings: o.settings, Profile: o.profile, Telemetry: o.records, Logger: o.log, Version: "test",
	}), f, gate}
}

// client connects a raw client to the rig over our stdio transport.
func (r *rig) client(t testing.TB) *mcptest.Client {
	t.Helper()
	c, in, out := mcptest.Pipe(t)
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		_ = r.Run(ctx, wire.NewServerTransport(in, out, wire.Options{RawMethods: RawMethods()}))
	}()
	t.Cleanup(func() {
		_ = c.Close()
		cancel()
		<-done
	})
	return c
}

// local calls a tool in process; it fails the test on a JSON-RPC error.
func (r *rig) local(t testing.TB, name, args string) json.RawMessage {
	t.Helper()
	res, err := r.Local("").Call(context.Background(), name, json.RawMessage(args))
	if err != nil {
		t.Fatalf("Call(%s, %s): %v", name, args, err)
	}
	return res
}

// answer is a decoded result of a control tool.
type answer struct {
	Content []struct {
		Type string
		Text string
	}
	IsError bool
	Meta    map[string]struct{ ID, Name, Source, Status, Note string } `json:"_meta"`
}

func decode(t testing.TB, raw json.RawMessage) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatalf("result %s: %v", raw, err)
	}
	return a
}

// text returns the first block.
func (a answer) text() string {
	if len(a.Content) == 0 {
		return ""
	}
	return a.Content[0].Text
}

func (a answer) status() string { return a.Meta[callMetaKey].Status }

func tool(name, description, schema string) json.RawMessage {
	o := rawjson.Object{{Name: "name", Value: quote(name)}, {Name: "description", Value: quote(description)}}
	if schema != "" {
		o = append(o, rawjson.Member{Name: "inputSchema", Value: json.RawMessage(schema)})
	}
	return o.Bytes()
}
