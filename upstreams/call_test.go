package upstreams

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/secret"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// listener is the client of a call.
type listener struct {
	mu    sync.Mutex // guards the following
	heard []string
}

func (l *listener) Progress(params json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, string(params))
}

func TestDo_Progress(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Tools: tools("slow", "silent"), Answers: map[string]mcptest.Answer{
		"slow": {Delay: 150 * time.Second, Progress: 30}, "silent": {Delay: 150 * time.Second},
	}})
	synctest.Test(t, func(t *testing.T) {
		s := NewSet(Options{})
		cfg := fake("x", srv)
		cfg.CallTimeoutMs = new(60_000)
		apply(t, s, cfg)
		live(t, s, "x")
		var one, two listener
		var wg sync.WaitGroup
		for _, l := range []*listener{&one, &two} {
			c := call(s, "x", "slow", `{}`)
			c.Client = l
			wg.Go(func() {
				if _, err := s.Do(t.Context(), c); err != nil {
					t.Errorf("a call that reports progress: %v", err)
				}
			})
		}
		wg.Go(func() { // nobody listens, the token is sent all the same
			if _, err := s.Do(t.Context(), call(s, "x", "slow", `{}`)); err != nil {
				t.Errorf("a call that reports progress to nobody: %v", err)
			}
		})
		wg.Wait()
		tokens := map[string]bool{}
		for _, l := range []*listener{&one, &two} {
			if len(l.heard) != 30 {
				t.Errorf("%d notifications of 30 arrived", len(l.heard))
			}
			for _, h := range l.heard {
				var p struct{ ProgressToken json.RawMessage }
				if err := json.Unmarshal([]byte(h), &p); err != nil || string(p.ProgressToken) == "" {
					t.Fatalf("progress = %s", h)
				}
				tokens[string(p.ProgressToken)] = true
			}
		}
		if len(tokens) != 2 {
			t.Errorf("two calls heard the tokens %v", tokens)
		}

		began := time.Now()
		_, err := s.Do(t.Context(), call(s, "x", "silent", `{}`))
		if !errors.Is(err, ErrTimedOut) || !strings.Contains(err.Error(), "callTimeoutMs") {
			t.Errorf("a silent call = %v, want ErrTimedOut that names the limit", err)
		}
		if d := time.Since(began); d != time.Minute {
			t.Errorf("it ended after %v, want a minute", d)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestDo_ForeignProgress(t *testing.T) {
	var table callTable
	var l listener
	f := table.add(&l, func() {})
	for _, params := range []string{`{"progressToken":99}`, `{"progressToken":"p-7"}`, `{}`, `null`, `[`} {
		table.progress(json.RawMessage(params))
	}
	if len(l.heard) > 0 {
		t.Errorf("heard %v of others", l.heard)
	}
	table.progress(json.RawMessage(`{"progressToken":"` + f.token + `"}`)) // given back as a string
	table.remove(f)
	table.progress(json.RawMessage(`{"progressToken":` + f.token + `}`))
	if len(l.heard) != 1 {
		t.Errorf("heard %v, want one", l.heard)
	}
}

func TestDo_Cancel(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Tools: tools("never", "echo"), Answers: map[string]mcptest.Answer{"never": {Never: true}}})
	bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
		live(t, s, "x")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := s.Do(ctx, call(s, "x", "never", `{}`))
			done <- err
		}()
		calls, _ := srv.Await(t.Context(), "tools/call", 1)
		if _, err := do(t, s, "x", "echo", `{}`); err != nil {
			t.Errorf("a call beside one that hangs: %v", err)
		}
		cancel(errors.New("the client gave up"))
		if err := <-done; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the client gave up") {
			t.Errorf("cancelled call = %v", err)
		}
		cancelled, err := srv.Await(t.Context(), "notifications/cancelled", 1)
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ RequestID json.RawMessage }
		if err := json.Unmarshal(cancelled[0].Params, &p); err != nil || string(p.RequestID) != string(calls[0].ID) {
			t.Errorf("cancelled %s, want the request %s", cancelled[0].Params, calls[0].ID)
		}
	})
}

// An answer after we gave up harms nobody.
func TestDo_LateAnswer(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Tools: tools("late", "echo"), Answers: map[string]mcptest.Answer{"late": {Delay: 10 * time.Second, Late: true, Text: "late"}}})
	bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
		live(t, s, "x")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Do(ctx, call(s, "x", "late", `{}`)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("call with a limit of its own = %v", err)
		}
		time.Sleep(20 * time.Second)
		if res, err := do(t, s, "x", "echo", `{}`); err != nil || strings.Contains(res, "late") {
			t.Errorf("the next call = %s, %v", res, err)
		}
	})
}

func TestDo_MaxConcurrentCalls(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Tools: tools("slow"), Answers: map[string]mcptest.Answer{"slow": {Delay: time.Second}}})
	synctest.Test(t, func(t *testing.T) {
		s := NewSet(Options{})
		cfg := fake("x", srv)
		cfg.MaxConcurrentCalls, cfg.CallTimeoutMs = 2, new(2500)
		apply(t, s, cfg)
		live(t, s, "x")
		began := time.Now()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := do(t, s, "x", "slow", `{}`); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := s.Do(ctx, call(s, "x", "slow", `{}`)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that gave up in the queue = %v", err)
		}
		wg.Wait()
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("four calls of a second, two at a time, took %v", d)
		}
		for range 8 {
			wg.Go(func() {
				if _, err := do(t, s, "x", "slow", `{}`); err != nil && (!errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "maxConcurrentCalls")) {
					t.Errorf("a call that waited too long = %v", err)
				}
			})
		}
		wg.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestDo_RemovedAndHiddenTools(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Tools: tools("a", "admin_x")})
	synctest.Test(t, func(t *testing.T) {
		s := NewSet(Options{})
		cfg := fake("x", srv)
		cfg.ToolFilter.Exclude = []string{"admin_*"}
		apply(t, s, cfg)
		live(t, s, "x")
		old := call(s, "x", "a", `{}`)
		if _, err := do(t, s, "x", "admin_x", `{}`); !errors.Is(err, ErrUnknownTool) || !strings.Contains(err.Error(), "toolFilter") {
			t.Errorf("call of a filtered tool = %v", err)
		}
		srv.SetTools(tools("b"), true)
		time.Sleep(time.Second)
		if _, err := s.Do(t.Context(), old); !errors.Is(err, ErrUnknownTool) {
			t.Errorf("call of a tool that is gone = %v", err)
		}
		calls := 0
		for _, m := range srv.Received() {
			if m.Method == "tools/call" {
				calls++
			}
		}
		if calls > 0 {
			t.Errorf("%d calls were sent", calls)
		}
		apply(t, s)
		if _, err := s.Do(t.Context(), old); !errors.Is(err, ErrClosed) {
			t.Errorf("call of a server that left the configuration = %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A session that the server forgot (HTTP 404) refused the call: it is made
// again on a new one, and nobody sees an error.
func TestDo_RepeatsWhatWasNotExecuted(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Tools: tools("order")})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // no stream that could notice the end first
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		srv.ServeHTTP(w, r)
	}))
	defer web.Close()
	s := NewSet(Options{})
	apply(t, s, Config{Name: "shop", URL: secret.String(web.URL)})
	defer s.Close()
	live(t, s, "shop")
	for sessions := range 3 {
		if _, err := do(t, s, "shop", "order", `{}`); err != nil {
			t.Errorf("call after the session was forgotten: %v", err)
		}
		if n := count(srv, "initialize"); n != sessions+1 {
			t.Errorf("%d sessions, want %d", n, sessions+1)
		}
		srv.Drop() // the server forgets all sessions: 404 from now on
	}
}

// A server that forgets every session at once is asked twice and no more.
func TestDo_RepeatsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := mcptest.New(mcptest.Script{Tools: tools("order")})
		var writes atomic.Int32
		s := NewSet(Options{})
		apply(t, s, Config{Name: "shop", Dial: func(ctx context.Context) (mcp.Transport, error) {
			tr, err := srv.Dial(ctx)
			return forgetful{tr, &writes}, err
		}})
		live(t, s, "shop")
		if _, err := do(t, s, "shop", "order", `{}`); !errors.Is(err, ErrUnavailable) {
			t.Errorf("call = %v, want ErrUnavailable", err)
		}
		if n := writes.Load(); n != 2 {
			t.Errorf("the call was tried %d times, want 2", n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// forgetful refuses to send calls.
type forgetful struct {
	mcp.Transport
	writes *atomic.Int32
}

func (f forgetful) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := f.Transport.Connect(ctx)
	return &forgetfulConn{c, f.writes}, err
}

type forgetfulConn struct {
	mcp.Connection
	writes *atomic.Int32
}

func (c *forgetfulConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok && r.Method == "tools/call" {
		c.writes.Add(1)
		return wire.ErrNotSent
	}
	return c.Connection.Write(ctx, m)
}

func TestDo_NeedsAuth(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Tools: tools("a"), HTTPBearer: "right"})
	cfg := Config{Name: "x", URL: secret.String(srv.Listen(t))}
	s := NewSet(Options{})
	apply(t, s, cfg)
	defer s.Close()
	s.Start()
	<-s.Settled()
	st := status(s, "x")
	if st.State != NeedsAuth || !errors.Is(st.Err, ErrNeedsAuth) || !strings.Contains(st.Hint, "headers") {
		t.Errorf("Status = %+v", st)
	}
	if err := s.Live(t.Context(), "x"); !errors.Is(err, ErrNeedsAuth) {
		t.Errorf("Live() = %v, want ErrNeedsAuth", err)
	}
	cfg.Headers = map[string]secret.String{"Authorization": "Bearer right"}
	apply(t, s, cfg)
	if _, err := do(t, s, "x", "a", `{}`); err != nil {
		t.Errorf("with the right credentials: %v", err)
	}
}

func TestNormalize(t *testing.T) {
	for _, c := range []struct{ in, want, note string }{
		{`{"content":[{"type":"text","text":"x"}],"_meta":{"n":1e2}}`, `{"content":[{"type":"text","text":"x"}],"_meta":{"n":1e2}}`, ""},
		{`{}`, `{}`, ""},
		{`{"structuredContent":{}}`, `{"structuredContent":{}}`, ""},
		{`{"content":null,"structuredContent":{"rows":[1,2]}}`, `{"content":[],"structuredContent":{"rows":[1,2]}}`, ""},
		{`{"content":[null]}`, `{"content":[]}`, "1 content blocks were null and were left out"},
		{`{"content":[null,{"type":"text","text":"null"}],"x":1.50}`, `{"content":[{"type":"text","text":"null"}],"x":1.50}`, "1 content blocks were null and were left out"},
		{`{"content":[{"type":"text","text":"null"}]}`, `{"content":[{"type":"text","text":"null"}]}`, ""},
		{`{"content":"ok"}`, `{"content":[{"type":"text","text":"ok"}]}`, ""},
		{`{"content":7}`, `{"content":[{"type":"text","text":"7"}]}`, ""},
		{`{"content":{"type":"text","text":"x"}}`, `{"content":[{"type":"text","text":"x"}]}`, ""},
		{`{"toolResult":{"content":[{"type":"text","text":"x"}],"isError":true},"_meta":{"a":1}}`, `{"content":[{"type":"text","text":"x"}],"isError":true,"_meta":{"a":1}}`, ""},
		{`{"toolResult":{"rows":[1]}}`, `{"toolResult":{"rows":[1]},"content":[{"type":"text","text":"{\"rows\":[1]}"}]}`, ""},
		{`{"toolResult":"done"}`, `{"toolResult":"done","content":[{"type":"text","text":"done"}]}`, ""},
		{`{"content":[],"toolResult":1}`, `{"content":[],"toolResult":1}`, ""},
		{`{"content":null,"content":[]}`, `{"content":null,"content":[]}`, ""},
	} {
		got := normalize(json.RawMessage(c.in))
		if string(got.Raw) != c.want || got.Note != c.note {
			t.Errorf("normalize(%s) = %s, %q, want %s, %q", c.in, got.Raw, got.Note, c.want, c.note)
		}
	}
}

func FuzzNormalize(f *testing.F) {
	f.Add(`{"content":[null,1],"toolResult":{"content":null}}`)
	f.Add(`{"toolResult":{"toolResult":{"content":[]},"content":"x"}}`)
	f.Fuzz(func(t *testing.T, in string) {
		if !json.Valid([]byte(in)) {
			return
		}
		if got := normalize(json.RawMessage(in)); !json.Valid(got.Raw) {
			t.Fatalf("normalize(%s) = %s", in, got.Raw)
		}
	})
}

func TestLooksUnknown(t *testing.T) {
	for text, want := range map[string]bool{
		"Unknown tool: x":                    true,
		"MCP error -32602: Tool x not found": true,
		"tool 'x' does not exist":            true,
		"No such tool":                       true,
		`{"error":"Unknown tool: slack_x"}`:  true,
		"Could not find tool x":              true,
		"Tool x disabled":                    true,
		"file not found":                     false,
		"The tool did its work":              false,
		"":                                   false,
		"Toolbox opened, the customer was not here": false,
	} {
		if got := looksUnknown(text); got != want {
			t.Errorf("looksUnknown(%q) = %v", text, got)
		}
	}
}

func BenchmarkDo(b *testing.B) {
	srv := mcptest.New(mcptest.Script{Tools: tools("echo"), Answers: map[string]mcptest.Answer{"echo": {Text: "hello"}}})
	args := json.RawMessage(`{"message":"hello"}`)
	b.Run("direct", func(b *testing.B) {
		t, err := srv.Dial(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		cs, err := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil).Connect(b.Context(), t, &mcp.ClientSessionOptions{ProtocolVersion: protocolVersion})
		if err != nil {
			b.Fatal(err)
		}
		defer cs.Close()
		for b.Loop() {
			if _, err := cs.CallTool(b.Context(), &mcp.CallToolParams{Name: "echo", Arguments: args}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("set", func(b *testing.B) {
		s := NewSet(Options{})
		if err := s.Apply([]Config{fake("x", srv)}); err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		if err := s.Live(b.Context(), "x"); err != nil {
			b.Fatal(err)
		}
		c := call(s, "x", "echo", string(args))
		for b.Loop() {
			if _, err := s.Do(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		}
	})
}
