package upstreams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
)

// bubble runs f in virtual time with a set of the given servers, beside one
// that always works: it must do so at the end, whatever the others did, and
// nothing may be left running (the bubble would not end).
func bubble(t *testing.T, servers map[string]*mcptest.Server, f func(t *testing.T, s *Set)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		configs := []Config{fake("healthy", mcptest.New(mcptest.Script{Tools: []json.RawMessage{mcptest.Tool("echo", "", "")}}))}
		for name, srv := range servers {
			configs = append(configs, fake(name, srv))
		}
		s := NewSet(Options{})
		if err := s.Apply(configs); err != nil {
			t.Fatal(err)
		}
		s.Start()
		f(t, s)
		if res, err := do(t, s, "healthy", "echo", `{"n":1}`); err != nil || !strings.Contains(res, `\"arguments\":{\"n\":1}`) {
			t.Errorf("the healthy neighbour answered %s, %v", res, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		for _, srv := range servers {
			srv.Drop() // a fake that never answers initialize does not see our end
		}
	})
}

func fake(name string, srv *mcptest.Server) Config { return Config{Name: name, Dial: srv.Dial} }

func do(t *testing.T, s *Set, server, tool, args string) (string, error) {
	t.Helper()
	res, err := s.Do(t.Context(), call(s, server, tool, args))
	if err != nil {
		return "", err
	}
	return string(res.Raw), nil
}

func call(s *Set, server, tool, args string) Call {
	id := ToolID(SafeName(server), tool)
	for _, t := range s.Snapshot().Tools {
		if t.ID == id {
			return Call{Tool: t, Args: json.RawMessage(args)}
		}
	}
	return Call{Tool: &Tool{Server: server, Name: tool, ID: id}, Args: json.RawMessage(args)}
}

func status(s *Set, name string) Status {
	for _, st := range s.Status() {
		if st.Name == name {
			return st
		}
	}
	return Status{}
}

func names(s *Set, server string) (out []string) {
	for _, t := range s.Snapshot().Tools {
		if t.Server == server {
			out = append(out, t.Name)
		}
	}
	return out
}

func live(t *testing.T, s *Set, server string) {
	t.Helper()
	if err := s.Live(t.Context(), server); err != nil {
		t.Fatalf("Live(%q) = %v", server, err)
	}
}

func tool(name string) json.RawMessage { return mcptest.Tool(name, "", `{"type":"object"}`) }

func tools(names ...string) (out []json.RawMessage) {
	for _, n := range names {
		out = append(out, tool(n))
	}
	return out
}

func TestSet_Lists(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Title: "The Calendar", Instructions: "Be kind.", Tools: tools("b", "a")})
	bubble(t, map[string]*mcptest.Server{"calendar": srv}, func(t *testing.T, s *Set) {
		<-s.Settled()
		snap := s.Snapshot()
		want := []ServerInfo{
			{Name: "calendar", Safe: "calendar", Title: "The Calendar", Instructions: "Be kind.", Live: true, Known: true},
			{Name: "healthy", Safe: "healthy", Title: "fake", Live: true, Known: true},
		}
		if !slices.Equal(snap.Servers, want) {
			t.Errorf("Servers = %+v, want %+v", snap.Servers, want)
		}
		if got := names(s, "calendar"); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("tools = %v, want them sorted", got)
		}
		st := status(s, "calendar")
		if st.State != Ready || st.Tools != 2 || st.Protocol != protocolVersion || st.Err != nil || st.ListBytes != len(tool("a"))+len(tool("b")) {
			t.Errorf("Status = %+v", st)
		}
		init, _ := srv.Await(t.Context(), "initialize", 1)
		if got := string(init[0].Params); !strings.Contains(got, `"capabilities":{}`) || !strings.Contains(got, `"protocolVersion":"2025-11-25"`) {
			t.Errorf("initialize had the params %s", got)
		}
	})
}

// A start that waits, fails or never ends costs its own server alone, and
// search can say why.
func TestSet_BadStarts(t *testing.T) {
	for _, c := range []struct {
		name   string
		script mcptest.Script
		err    string // part of Status.Err
	}{
		{"never answers initialize", mcptest.Script{Methods: map[string]mcptest.Answer{"initialize": {Never: true}}}, "within 1m0s (startTimeoutMs)"},
		{"never lists", mcptest.Script{Methods: map[string]mcptest.Answer{"tools/list": {Never: true}}}, "tools/list: no answer within 1m0s"},
		{"exits at once", mcptest.Script{Exit: "start"}, "initialize"},
		{"exits after initialize", mcptest.Script{Exit: "initialized"}, ""}, // in the middle of initialize, or of tools/list,
		{"refuses to list", mcptest.Script{Methods: map[string]mcptest.Answer{"tools/list": {Error: json.RawMessage(`{"code":-32603,"message":"fetch failed"}`)}}}, "tools/list: fetch failed (code -32603)"},
		{"cannot list", mcptest.Script{Methods: map[string]mcptest.Answer{"tools/list": {Error: json.RawMessage(`{"code":-32601,"message":"no such method"}`)}}}, "tools/list: no such method (code -32601)"},
		{"lists nonsense", mcptest.Script{Methods: map[string]mcptest.Answer{"tools/list": {Result: json.RawMessage(`{"tools":{"a":1}}`)}}}, "not an array"},
		{"lists nothing", mcptest.Script{Methods: map[string]mcptest.Answer{"tools/list": {Result: json.RawMessage(`{"items":[]}`)}}}, "the answer has no tools"},
		{"speaks a version nobody knows", mcptest.Script{Protocol: "1999-01-01"}, "1999-01-01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, map[string]*mcptest.Server{"bad": mcptest.New(c.script)}, func(t *testing.T, s *Set) {
				<-s.Settled()
				st := status(s, "bad")
				if st.State != Backoff || st.Err == nil || !strings.Contains(st.Err.Error(), c.err) {
					t.Errorf("Status = %s, %v, want backoff with %q", st.State, st.Err, c.err)
				}
				began := time.Now()
				err := s.Live(t.Context(), "bad")
				var rpc *RPCError
				if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrTimedOut) || errors.Is(err, ErrLost) || errors.As(err, &rpc) || !strings.Contains(err.Error(), `server "bad"`) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("Live() = %v, want ErrUnavailable and the cause", err)
				}
				if d := time.Since(began); d > 70*time.Second {
					t.Errorf("Live took %v, more than one attempt", d)
				}
			})
		})
	}
}

func TestSet_HealthyServerIsUsableWhileOthersStart(t *testing.T) {
	never := mcptest.Script{Methods: map[string]mcptest.Answer{"initialize": {Never: true}}}
	bubble(t, map[string]*mcptest.Server{"one": mcptest.New(never), "two": mcptest.New(never)}, func(t *testing.T, s *Set) {
		began := time.Now()
		if _, err := do(t, s, "healthy", "echo", `{}`); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("the call took %v beside two servers that do not start", d)
		}
		synctest.Wait()
		select {
		case <-s.Settled():
			t.Error("settled while two first attempts are under way")
		default:
		}
		if st := status(s, "one"); st.State != Starting {
			t.Errorf("state of a starting server = %s", st.State)
		}
	})
}

// A call in the backoff makes an attempt at once, and works if that does.
func TestServer_ReconnectsOnUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := mcptest.New(mcptest.Script{Tools: tools("a")})
		var up atomic.Bool
		var dials atomic.Int32
		s := NewSet(Options{})
		if err := s.Apply([]Config{{Name: "x", Dial: func(ctx context.Context) (mcp.Transport, error) {
			dials.Add(1)
			if !up.Load() {
				return nil, errors.New("connection refused")
			}
			return srv.Dial(ctx)
		}}}); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.Start()
		time.Sleep(30 * time.Minute)
		if n := dials.Load(); n < 60 {
			t.Errorf("%d attempts in 30 minutes: it has given up", n)
		}
		if _, err := do(t, s, "x", "a", `{}`); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("call while down: %v", err)
		}
		up.Store(true)
		began := time.Now()
		if _, err := do(t, s, "x", "a", `{}`); err != nil {
			t.Errorf("call when up again: %v", err)
		}
		if d := time.Since(began); d > minAttemptGap {
			t.Errorf("the call waited %v for the backoff to end", d)
		}
	})
}

// Fifty calls on a server that is down start it once, and a server that dies
// at every use is not started more often than once a second.
func TestServer_OneAttemptForManyCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		s := NewSet(Options{})
		if err := s.Apply([]Config{{Name: "x", Dial: func(context.Context) (mcp.Transport, error) {
			dials.Add(1)
			time.Sleep(100 * time.Millisecond)
			return nil, errors.New("crash")
		}}}); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := s.Live(t.Context(), "x"); !errors.Is(err, ErrUnavailable) {
					t.Errorf("Live() = %v", err)
				}
			})
		}
		wg.Wait()
		if n := dials.Load(); n != 1 {
			t.Errorf("%d attempts for 50 callers at once, want 1", n)
		}
		for began := time.Now(); time.Since(began) < time.Minute; {
			_ = s.Live(t.Context(), "x")
		}
		if n := dials.Load(); n > 62 {
			t.Errorf("%d starts in a minute", n)
		}
	})
}

func TestServer_KeepsToolsOverReconnect(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Tools: tools("a", "b")})
	bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
		live(t, s, "x")
		before := s.Snapshot()
		srv.Drop()
		synctest.Wait()
		if got := names(s, "x"); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("tools of a server that is down = %v", got)
		}
		if st := status(s, "x"); st.State != Backoff || st.Err == nil {
			t.Errorf("Status after the loss = %s, %v", st.State, st.Err)
		}
		srv.SetTools(tools("b", "c"), false)
		live(t, s, "x")
		if got := names(s, "x"); !slices.Equal(got, []string{"b", "c"}) {
			t.Errorf("tools after the reconnect = %v, want those of the new listing", got)
		}
		if find(before, "mcp:x:b") != find(s.Snapshot(), "mcp:x:b") {
			t.Error("a tool that did not change is not the same any more")
		}
	})
}

func find(s *Snapshot, id string) *Tool {
	for _, t := range s.Tools {
		if t.ID == id {
			return t
		}
	}
	return nil
}

func TestServer_DiesDuringCall(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Tools: tools("die", "echo"), Answers: map[string]mcptest.Answer{"die": {Die: true}}})
	bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
		live(t, s, "x")
		began := time.Now()
		_, err := do(t, s, "x", "die", `{}`)
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "whether it ran is not known") {
			t.Errorf("call = %v, want ErrLost", err)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("the call failed only after %v", d)
		}
		calls, _ := srv.Await(t.Context(), "tools/call", 1)
		if len(calls) != 1 {
			t.Errorf("the call was sent %d times, want 1", len(calls))
		}
		if _, err := do(t, s, "x", "echo", `{}`); err != nil {
			t.Errorf("the next call: %v", err)
		}
	})
}

func TestServer_Call(t *testing.T) {
	srv := mcptest.New(mcptest.Script{
		Tools: tools("echo", "raw", "refuse", "empty", "big"),
		Answers: map[string]mcptest.Answer{
			"raw":    {Result: json.RawMessage(`{"structuredContent":{"id":9007199254740993,"z":1.0,"a":-6200000000000000017},"content":[{"type":"hologram","x":1}],"isError":false,"new":{}}`)},
			"refuse": {Error: json.RawMessage(`{"code":-32042,"message":"go there","data":{"url":"https://example.com","n":9007199254740993}}`)},
			"empty":  {Result: json.RawMessage(`null`)},
			"big":    {Bytes: DefaultMaxResultBytes},
		},
	})
	bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
		live(t, s, "x")
		c := call(s, "x", "echo", `{"account":4611700000000000123,"ratio":0.10}`)
		c.Meta = json.RawMessage(`{"x.example/trace":"t1","n":9007199254740993}`)
		if _, err := s.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		sent, _ := srv.Await(t.Context(), "tools/call", 1)
		if got, want := string(sent[0].Params), `{"name":"echo","arguments":{"account":4611700000000000123,"ratio":0.10},"_meta":{"x.example/trace":"t1","n":9007199254740993,"progressToken":1}}`; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		if got, err := do(t, s, "x", "raw", ``); err != nil || got != `{"structuredContent":{"id":9007199254740993,"z":1.0,"a":-6200000000000000017},"content":[{"type":"hologram","x":1}],"isError":false,"new":{}}` {
			t.Errorf("raw result = %s, %v", got, err)
		}
		_, err := do(t, s, "x", "refuse", `{}`)
		var rpc *RPCError
		if !errors.As(err, &rpc) || rpc.Code != -32042 || rpc.Message != "go there" || string(rpc.Data) != `{"url":"https://example.com","n":9007199254740993}` {
			t.Errorf("JSON-RPC error = %v, %s", err, rpc.Data)
		}
		if _, err := do(t, s, "x", "empty", `{}`); !errors.As(err, &rpc) {
			t.Errorf("result null = %v, want an RPCError", err)
		}
		if _, err := do(t, s, "x", "big", `{}`); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "maxResultBytes") {
			t.Errorf("large result = %v, want ErrTooLarge", err)
		}
	})
}

// Codes that the SDK uses for its own closing mean nothing when a server sends them.
func TestServer_RPCErrorWithCodesOfTheSDK(t *testing.T) {
	for _, code := range []int64{-32003, -32004, -32005} {
		srv := mcptest.New(mcptest.Script{Tools: tools("a"), Answers: map[string]mcptest.Answer{"a": {Error: fmt.Appendf(nil, `{"code":%d,"message":"mine"}`, code)}}})
		bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
			_, err := do(t, s, "x", "a", `{}`)
			var rpc *RPCError
			if !errors.As(err, &rpc) || rpc.Code != code {
				t.Errorf("error with code %d = %v", code, err)
			}
			if sent, _ := srv.Await(t.Context(), "tools/call", 1); len(sent) != 1 {
				t.Errorf("code %d: the call was sent %d times", code, len(sent))
			}
		})
	}
}
