package upstreams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// older is a server of the transport of 2024-11-05.
type older struct {
	endpoint string       // named in the endpoint event; "": it serves itself
	refuse   atomic.Int32 // status of posts after initialize; 0: 202
	events   chan string
}

func (s *older) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/mcp" && r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "text/event-stream")
		to := s.endpoint
		if to == "" {
			to = "messages?sessionId=1"
		}
		fmt.Fprintf(w, "event: endpoint\ndata: %s\n\n", to)
		for {
			http.NewResponseController(w).Flush()
			select {
			case e := <-s.events:
				if e == "" {
					return
				}
				fmt.Fprintf(w, "event: message\ndata: %s\n\n", e)
			case <-r.Context().Done():
				return
			}
		}
	case r.URL.Path == "/messages" && r.Method == http.MethodPost:
		var m struct {
			ID     json.RawMessage
			Method string
		}
		json.NewDecoder(r.Body).Decode(&m)
		switch {
		case m.Method == "initialize":
			s.events <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}`, m.ID)
		case m.ID != nil && s.refuse.Load() != 0:
			w.WriteHeader(int(s.refuse.Load()))
			io.WriteString(w, "no")
			return
		case m.ID != nil:
			s.events <- `{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`
			s.events <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"old":true}}`, m.ID)
		}
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func TestHTTP_OlderTransport(t *testing.T) {
	for _, transport := range []string{"", "sse"} {
		srv := &older{events: make(chan string, 10)}
		cfg := listen(t, srv)
		cfg.Transport = transport
		progress := 0
		_, s := openLink(t, cfg, linkEvents{Progress: func(json.RawMessage) { progress++ }})
		res, err := callTool(t, s, "x")
		if err != nil || string(res) != `{"old":true}` || progress != 1 {
			t.Errorf("call = %s, %v after %d progress notifications", res, err, progress)
		}
		srv.refuse.Store(503)
		if _, err := callTool(t, s, "x"); !errors.Is(callError(err), ErrUnavailable) {
			t.Errorf("refused call = %v, want ErrUnavailable", err)
		}
		srv.refuse.Store(0)
		if _, err := callTool(t, s, "x"); err != nil {
			t.Errorf("the call after it: %v", err)
		}
		srv.events <- "" // the stream ends
		if err := callError(s.Wait()); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "closed the event stream") {
			t.Errorf("Wait() = %v, want ErrLost and why", err)
		}
	}
}

func TestHTTP_OlderTransportKeepsToItsOrigin(t *testing.T) {
	cfg := listen(t, &older{endpoint: "http://127.0.0.1:1/take", events: make(chan string, 10)})
	l := dialTest(t, cfg, linkEvents{})
	_, err := testClient().Connect(t.Context(), l.transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err == nil || !strings.Contains(err.Error(), "another origin, http://127.0.0.1:1") {
		t.Errorf("Connect() = %v, want a refusal that names the origin", err)
	}
}

// TestHTTP_SDKServers speaks to the SDK's own servers.
func TestHTTP_SDKServers(t *testing.T) {
	newServer := func() *mcp.Server {
		s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
		s.AddTool(&mcp.Tool{Name: "steps", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for i := range 20 {
				// It fails where there is no stream to send it on.
				_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
		})
		return s
	}
	for name, handler := range map[string]func(*mcp.Server) http.Handler{
		"stream": func(s *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
		},
		"stateless JSON": func(s *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
		},
		"older": func(s *mcp.Server) http.Handler {
			return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer()
			cfg := listen(t, handler(server))
			progress := 0
			changed := make(chan struct{}, 1)
			l := dialTest(t, cfg, linkEvents{Progress: func(json.RawMessage) { progress++ }})
			c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
					select {
					case changed <- struct{}{}:
					default:
					}
				},
			})
			wire.RegisterRaw(c, "tools/call")
			s, err := c.Connect(t.Context(), l.transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			res, err := callTool(t, s, "steps")
			if err != nil || !strings.Contains(string(res), "9007199254740993") {
				t.Errorf("call = %s, %v", res, err)
			}
			if progress != 20 && name != "stateless JSON" { // which has nowhere to send it
				t.Errorf("%d progress notifications before the answer, want 20", progress)
			}
			if _, err := callTool(t, s, "none"); err == nil {
				t.Error("no error for an unknown tool")
			}
			if name == "stateless JSON" {
				return
			}
			server.AddTool(&mcp.Tool{Name: "late", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, errors.New("never called")
			})
			select {
			case <-changed:
			case <-time.After(20 * time.Second):
				t.Error("no list_changed")
			}
		})
	}
}
