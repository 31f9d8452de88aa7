package upstreams

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/secret"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// rpc is a server over HTTP for one test: it answers initialize, and on says
// what becomes of a tools/call and of other requests to the server.
type rpc struct {
	call func(w http.ResponseWriter, r *http.Request, id json.RawMessage) // tools/call
	get  func(w http.ResponseWriter, r *http.Request)                     // nil: 405

	mu   sync.Mutex
	seen []*http.Request
}

func (s *rpc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, r)
	s.mu.Unlock()
	if r.Method == http.MethodGet && s.get != nil {
		s.get(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
	}
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch {
	case m.Method == "initialize":
		w.Header().Set(sessionHeader, "S1")
		reply(w, m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		s.call(w, r, m.ID)
	}
}

func (s *rpc) requests(method string) (found []*http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.seen {
		if r.Method == method {
			found = append(found, r)
		}
	}
	return found
}

func reply(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// listen serves h on 127.0.0.1 until the test and its links have ended.
func listen(t *testing.T, h http.Handler) Config {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return Config{Name: "web", URL: secret.String(srv.URL + "/mcp")}
}

const fine = `{"content":[]}`

func TestHTTP_FailedCallsLeaveTheSessionAlive(t *testing.T) {
	status := func(code int, contentType, body string) func(http.ResponseWriter, *http.Request, json.RawMessage) {
		return func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(code)
			io.WriteString(w, strings.ReplaceAll(body, "ID", string(id)))
		}
	}
	for _, tc := range []struct {
		name string
		call func(http.ResponseWriter, *http.Request, json.RawMessage)
		want error  // in the chain; nil: an *RPCError
		text string // in the error
	}{
		{"503", status(503, "text/plain", "come back later"), ErrUnavailable, "HTTP 503 Service Unavailable: come back later"},
		{"429", status(429, "text/html", "<html>slow</html>"), ErrUnavailable, "HTTP 429 Too Many Requests"},
		{"400 text", status(400, "text/plain", "bad\n thing"), nil, "HTTP 400 Bad Request: bad thing"},
		{"406", status(406, "text/plain", ""), nil, "HTTP 406 Not Acceptable"},
		{"400 error without id", status(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"m","data":{"n":9007199254740993}}}`), nil, "m (code -32005)"},
		{"400 error with id", status(400, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32003,"message":"pay"}}`), nil, "pay (code -32003)"},
		{"200 error without id", status(200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"none"}}`), nil, "none (code -32601)"},
		{"401", status(401, "text/plain", "who?"), ErrNeedsAuth, "HTTP 401 Unauthorized: who?"},
		{"403", status(403, "text/plain", "not you"), ErrNeedsAuth, "HTTP 403 Forbidden: not you"},
		{"html", status(200, "text/html", "<html>"), nil, "text/html"},
		{"empty 202", status(202, "", ""), nil, "HTTP 202 Accepted"},
		{"not JSON", status(200, "application/json", "{"), ErrLost, "not one to the request"},
		{"another id", status(200, "application/json", `{"jsonrpc":"2.0","id":99,"result":{}}`), ErrLost, "not one to the request"},
		{"stream without answer", status(200, "text/event-stream", "data: {\"level\":1}\n\n: comment\n\n"), ErrLost, "without an answer"},
		{"oversize JSON", status(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{"a":"`+strings.Repeat("x", 30_000)+`"}}`), ErrTooLarge, ""},
		{"oversize event", status(200, "text/event-stream", `data: {"jsonrpc":"2.0","id":ID,"result":{"a":"`+strings.Repeat("x", 30_000)+`"}}`), ErrTooLarge, ""},
		{"cut", func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			w.Header().Set("Content-Length", "1000")
			w.Write([]byte("{"))
			panic(http.ErrAbortHandler)
		}, ErrLost, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var good atomic.Bool
			cfg := listen(t, &rpc{call: func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
				if good.Load() {
					reply(w, id, fine)
					return
				}
				tc.call(w, r, id)
			}})
			cfg.MaxResultBytes = 20_000
			_, s := openLink(t, cfg, linkEvents{})
			_, err := callTool(t, s, "x")
			err = callError(err)
			var answered *RPCError
			switch {
			case err == nil:
				t.Fatal("no error")
			case errors.Is(err, errNotExecuted):
				t.Errorf("error %v says that the call was not executed", err)
			case tc.want == nil && !errors.As(err, &answered), tc.want != nil && !errors.Is(err, tc.want):
				t.Errorf("callError() = %v (%T), want %v", err, err, tc.want)
			}
			if !strings.Contains(err.Error(), tc.text) {
				t.Errorf("callError() = %v, want %q in it", err, tc.text)
			}
			good.Store(true)
			if _, err := callTool(t, s, "x"); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

func TestHTTP_ForgottenSessionEndsTheSession(t *testing.T) {
	for _, tc := range []struct {
		code int
		body string
	}{
		{404, ""},
		{404, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}`},
		{400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`},
	} {
		srv := &rpc{call: func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			w.WriteHeader(tc.code)
			io.WriteString(w, strings.ReplaceAll(tc.body, "ID", string(id)))
		}}
		_, s := openLink(t, listen(t, srv), linkEvents{})
		_, err := callTool(t, s, "x")
		if err := callError(err); !errors.Is(err, errNotExecuted) || !errors.Is(err, mcp.ErrSessionMissing) {
			t.Errorf("%d %s: callError() = %v, want mcp.ErrSessionMissing and errNotExecuted", tc.code, tc.body, err)
		}
		if err := s.Wait(); !errors.Is(err, mcp.ErrSessionMissing) {
			t.Errorf("Wait() = %v, want mcp.ErrSessionMissing", err)
		}
		s.Close()
		if n := len(srv.requests(http.MethodDelete)); n != 0 {
			t.Errorf("%d DELETE requests for a session that is gone", n)
		}
	}
}

func TestHTTP_Headers(t *testing.T) {
	t.Setenv(DepthEnv, "1")
	srv := &rpc{call: func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) { reply(w, id, fine) }}
	cfg := listen(t, srv)
	cfg.Headers = map[string]secret.String{"Accept": "*/*", "content-type": "text/plain", "X-Team": "a", "Authorization": "Bearer t", "Host": "virtual.test"}
	_, s := openLink(t, cfg, linkEvents{})
	if _, err := callTool(t, s, "x"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	posts := srv.requests(http.MethodPost)
	r := posts[len(posts)-1]
	got := map[string]string{"Host": r.Host}
	for _, name := range []string{"Accept", "Content-Type", "X-Team", "Authorization", sessionHeader, protocolHeader, DepthHeader} {
		got[name] = strings.Join(r.Header.Values(name), "|")
	}
	want := map[string]string{
		"Host": "virtual.test", "Accept": "application/json, text/event-stream", "Content-Type": "application/json", "X-Team": "a",
		"Authorization": "Bearer t", sessionHeader: "S1", protocolHeader: "2025-11-25", DepthHeader: "2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers of a call (-want +got):\n%s", diff)
	}
	if d := srv.requests(http.MethodDelete); len(d) != 1 || d[0].Header.Get(sessionHeader) != "S1" {
		t.Errorf("%d DELETE requests, want one with the session", len(d))
	}
}

func TestHTTP_LargeEventAndProgressOrder(t *testing.T) {
	const size = 2 << 20
	srv := &rpc{call: func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: other\ndata: x\n\nid: 1\r\ndata:\r\n\r\nnonsense line\n: ping\n\n")
		for i := range 100 {
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\ndata:\"params\":{\"progress\":%d}}\n\n", i)
		}
		// A string for the id, raw bytes that are no UTF-8, no blank line at the end.
		fmt.Fprintf(w, `data: {"jsonrpc":"2.0","id":"%s","result":{"t":"%s","n":9007199254740993,"x":"`+"\xff"+`"}}`, id, strings.Repeat("y", size))
	}}
	n := 0
	_, s := openLink(t, listen(t, srv), linkEvents{Progress: func(json.RawMessage) { n++ }})
	res, err := callTool(t, s, "x")
	if err != nil {
		t.Fatal(err)
	}
	if n != 100 {
		t.Errorf("%d progress notifications before the answer, want 100", n)
	}
	if got := string(res[len(res)-40:]); !strings.HasSuffix(got, `"n":9007199254740993,"x":"`+"\uFFFD"+`"}`) || len(res) < size {
		t.Errorf("%d bytes that end in %s", len(res), got)
	}
}

// TestHTTP_MessagesBeforeTheAnswer has the server ask the client something, and
// tell it of a change, on the stream of a call.
func TestHTTP_MessagesBeforeTheAnswer(t *testing.T) {
	large := `"` + strings.Repeat("x", 30_000) + `"`
	for _, tc := range []struct {
		name, end string
		want      error // in the chain; nil: see text
		text      string
	}{
		{"result", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"n\":9007199254740993}}\n\n", nil, `{"n":9007199254740993}`},
		{"error", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"error\":{\"code\":-32003,\"message\":\"pay\"}}\n\n", nil, "pay (code -32003)"},
		{"too large", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":" + large + "}\n\n", ErrTooLarge, ""},
		{"cut", "", ErrLost, "without an answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pong, changed := make(chan struct{}), make(chan struct{}, 1)
			srv := &rpc{call: func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1e999,\"method\":\"ping\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n")
				http.NewResponseController(w).Flush()
				<-pong
				fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
				io.WriteString(w, strings.ReplaceAll(tc.end, "ID", string(id)))
			}}
			cfg := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if bytes.Contains(body, []byte(`"id":"p"`)) {
					close(pong)
					w.WriteHeader(http.StatusAccepted)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				srv.ServeHTTP(w, r)
			}))
			cfg.MaxResultBytes = 20_000
			l := dialTest(t, cfg, linkEvents{})
			c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
			})
			wire.RegisterRaw(c, "tools/call")
			s, err := c.Connect(t.Context(), l.transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			if err != nil {
				t.Fatal(err)
			}
			res, err := callTool(t, s, "x")
			err = callError(err)
			got := string(res)
			if err != nil {
				got = err.Error()
			}
			if tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(got, tc.text) {
				t.Errorf("call = %.100s, %v; want %q, %v", res, err, tc.text, tc.want)
			}
			select {
			case <-changed:
			case <-time.After(20 * time.Second):
				t.Error("no list_changed")
			}
		})
	}
}

// TestHTTP_ForgottenSessionAndCallsInFlight: only the call that was refused may
// be repeated.
func TestHTTP_ForgottenSessionAndCallsInFlight(t *testing.T) {
	var calls atomic.Int32
	running := make(chan struct{})
	srv := &rpc{call: func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
		if calls.Add(1) == 1 {
			close(running)
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}}
	l, s := openLink(t, listen(t, srv), linkEvents{})
	first := make(chan error, 1)
	go func() {
		_, err := callTool(t, s, "x")
		first <- callError(err)
	}()
	<-running
	if _, err := callTool(t, s, "x"); !errors.Is(callError(err), errNotExecuted) {
		t.Errorf("refused call: %v, want errNotExecuted", callError(err))
	}
	l.close(t.Context())
	if err := <-first; !errors.Is(err, ErrLost) || errors.Is(err, errNotExecuted) {
		t.Errorf("call in flight: %v, want ErrLost, not errNotExecuted", err)
	}
}

func TestHTTP_StreamIsResumed(t *testing.T) {
	var call json.RawMessage
	srv := &rpc{
		call: func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			call = id
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: e1\nretry: 1\ndata:\n\n")
		},
		get: func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(lastEventID) != "e1" {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resumed\":1}}\n\n", call)
		},
	}
	_, s := openLink(t, listen(t, srv), linkEvents{})
	res, err := callTool(t, s, "x")
	if err != nil || string(res) != `{"resumed":1}` {
		t.Errorf("call = %s, %v", res, err)
	}
}

func TestHTTP_GETNeverHoldsUpCalls(t *testing.T) {
	for name, get := range map[string]func(http.ResponseWriter, *http.Request){
		"never answers": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"404":           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"405":           nil,
		"html":          func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
		"500":           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"cut":           func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{}, 10)
			srv := &rpc{
				call: func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) { reply(w, id, fine) },
				get: func(w http.ResponseWriter, r *http.Request) {
					asked <- struct{}{}
					if get == nil {
						w.WriteHeader(http.StatusMethodNotAllowed)
						return
					}
					get(w, r)
				},
			}
			l, s := openLink(t, listen(t, srv), linkEvents{})
			<-asked
			if _, err := callTool(t, s, "x"); err != nil {
				t.Error(err)
			}
			if err := l.close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHTTP_BrokenGETIsOpenedAgain(t *testing.T) {
	opened := 0
	changed := make(chan struct{}, 10)
	srv := &rpc{
		call: func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) { reply(w, id, fine) },
		get: func(w http.ResponseWriter, r *http.Request) {
			opened++
			w.Header().Set("Content-Type", "text/event-stream")
			if opened == 1 {
				fmt.Fprint(w, "id: 7\nretry: 1\ndata:\n\n")
				return
			}
			if got := r.Header.Get(lastEventID); got != "7" {
				t.Errorf("Last-Event-Id = %q, want 7", got)
			}
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	}
	l := dialTest(t, listen(t, srv), linkEvents{})
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	if _, err := c.Connect(t.Context(), l.transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	case <-time.After(20 * time.Second):
		t.Fatal("no list_changed over the second stream")
	}
}

func TestHTTP_Redirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the other origin got %s with Authorization %q", r.Method, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	for _, tc := range []struct {
		code int
		to   string // as Location
		ok   bool
	}{
		{307, "/mcp/", true}, {308, "mcp/", true}, {301, "/mcp/", true}, {302, "?x=1", false},
		{307, other.URL + "/mcp?token=s3cr3t-NINE", false},
		{307, "https://127.0.0.1:1/", false},
		{303, "/mcp/", false},
		{307, "http://[", false},
	} {
		srv := &rpc{call: func(w http.ResponseWriter, r *http.Request, id json.RawMessage) { reply(w, id, fine) }}
		cfg := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/mcp" {
				w.Header().Set("Location", tc.to)
				w.WriteHeader(tc.code)
				return
			}
			srv.ServeHTTP(w, r)
		}))
		cfg.Headers = map[string]secret.String{"Authorization": "Bearer s3cr3t-ONE", "X-Api-Key": "s3cr3t-TWO"}
		cfg.URL += "?key=s3cr3t-THREE"
		if tc.ok {
			_, s := openLink(t, cfg, linkEvents{})
			if _, err := callTool(t, s, "x"); err != nil {
				t.Errorf("redirect to %s: %v", tc.to, err)
			}
			continue
		}
		l := dialTest(t, cfg, linkEvents{})
		_, err := testClient().Connect(t.Context(), l.transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("redirect to %s: %v, want an error without secrets", tc.to, err)
		}
		if strings.HasPrefix(tc.to, other.URL) && !strings.Contains(err.Error(), "another origin, "+other.URL) {
			t.Errorf("redirect to %s: %v, want the origin named", tc.to, err)
		}
	}
}

func TestHTTP_UnreachableWasNotExecuted(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	cfg := Config{Name: "web", URL: secret.String(strings.Replace(srv.URL, "http://", "http://me:s3cr3t-SIX@", 1) + "/s3cr3t-SEVEN?key=s3cr3t-THREE")}
	srv.Close()
	l := dialTest(t, cfg, linkEvents{})
	_, err := testClient().Connect(t.Context(), l.transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	err = callError(err)
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, errNotExecuted) || strings.Contains(err.Error(), "s3cr3t") || !strings.Contains(err.Error(), srv.URL) {
		t.Errorf("callError() = %v, want ErrUnavailable and errNotExecuted, the origin and no secret", err)
	}
}

func TestHTTP_TrueNotFoundIsClear(t *testing.T) {
	l := dialTest(t, listen(t, http.NotFoundHandler()), linkEvents{})
	_, err := testClient().Connect(t.Context(), l.transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err == nil || errors.Is(err, mcp.ErrSessionMissing) || !strings.Contains(err.Error(), "HTTP 404 Not Found") || !strings.Contains(err.Error(), "is url right?") {
		t.Errorf("Connect() = %v, want a 404 that asks about the url", err)
	}
}

func TestHTTP_CancelEndsTheRequest(t *testing.T) {
	ended := make(chan struct{})
	srv := &rpc{call: func(_ http.ResponseWriter, r *http.Request, _ json.RawMessage) {
		<-r.Context().Done()
		close(ended)
	}}
	_, s := openLink(t, listen(t, srv), linkEvents{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.ListTools(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ListTools() = %v, want the deadline", err)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the request still runs")
	}
}

func TestHTTP_ScriptedServer(t *testing.T) {
	for _, asJSON := range []bool{true, false} {
		srv := mcptest.New(mcptest.Script{
			Tools: []json.RawMessage{mcptest.Tool("echo", "", `{"type":"object"}`)}, HTTPJSON: asJSON, HTTPBearer: "s3cr3t-TEN",
		})
		cfg := Config{Name: "web", URL: secret.String(srv.Listen(t)), Headers: map[string]secret.String{"Authorization": "Bearer wrong"}}
		l := dialTest(t, cfg, linkEvents{})
		_, err := testClient().Connect(t.Context(), l.transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if !errors.Is(callError(err), ErrNeedsAuth) {
			t.Errorf("Connect() with a wrong token = %v, want ErrNeedsAuth", err)
		}
		cfg.Headers["Authorization"] = "Bearer s3cr3t-TEN"
		_, s := openLink(t, cfg, linkEvents{})
		if res, err := callTool(t, s, "echo"); err != nil || !strings.Contains(string(res), "9007199254740993") {
			t.Errorf("call = %s, %v", res, err)
		}
	}
}

func TestDialHTTP_BadURL(t *testing.T) {
	for _, u := range []string{"ftp://x/s3cr3t", "x/s3cr3t", "http://", "http://%zz/s3cr3t", ":s3cr3t"} {
		_, err := dial(t.Context(), Config{URL: secret.String(u)}, linkEvents{}, nil)
		if err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("dial(%q) = %v, want an error without the URL", u, err)
		}
	}
}

func TestHTTP_LeavesNothingBehind(t *testing.T) {
	mcptest.NoLeaks(t)
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	srv := &rpc{
		call: func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) { hang(w, r) },
		get:  hang,
	}
	l, s := openLink(t, listen(t, srv), linkEvents{})
	ended := make(chan error)
	go func() {
		_, err := callTool(t, s, "x")
		ended <- err
	}()
	if err := l.close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a call without an answer came back without error")
	}
}

func FuzzReadEvents(f *testing.F) {
	f.Add([]byte("event: a\nid: 1\nretry: 5\ndata: x\ndata: y\n\n: c\n\ndata"), 10)
	f.Fuzz(func(t *testing.T, in []byte, max int) {
		max &= 1<<10 - 1
		// An event has at most as many bytes as its lines.
		err := readEvents(strings.NewReader(string(in)), max, func(e event) bool {
			if len(e.data) > max {
				t.Fatalf("event of %d bytes, limit %d", len(e.data), max)
			}
			return true
		})
		if err != nil && !errors.Is(err, ErrTooLarge) {
			t.Fatal(err)
		}
	})
}
