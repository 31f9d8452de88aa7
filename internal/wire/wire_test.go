package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pair connects a client session with a server whose raw methods answer does.
func pair(t *testing.T, answer func(ctx context.Context, method string, p *RawParams) (*RawResult, error)) *mcp.ClientSession {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "0"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if p, ok := r.GetParams().(*RawParams); ok {
				res, err := answer(ctx, strings.TrimSuffix(method, RawSuffix), p)
				if err != nil {
					return nil, err
				}
				return res, nil
			}
			return next(ctx, method, r)
		}
	})
	ReceiveRaw(server, "tools/list", "tools/call")
	ct, st := Pipe()
	ss, err := server.Connect(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "0"}, nil)
	RegisterRaw(client, "tools/list", "tools/call")
	cs, err := client.Connect(t.Context(), ct, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close(); ss.Wait() })
	return cs
}

func TestCallRaw_KeepsBytes(t *testing.T) {
	var got string
	cs := pair(t, func(_ context.Context, method string, p *RawParams) (*RawResult, error) {
		got = method + " " + string(p.Raw)
		return &RawResult{Raw: json.RawMessage(`{"z":10000000000000001,"isError":false,"content":[{"type":"hologram","n":1.0}],"_meta":{"b":9007199254740993,"a":1e400}}`)}, nil
	})
	params := `{"name":"x","task":{"ttl":1},"arguments":{"id":9007199254740993,"r":0.10},"_meta":{"progressToken":9007199254740993}}`
	res, err := CallRaw(t.Context(), cs, "tools/call", json.RawMessage(params))
	if err != nil {
		t.Fatal(err)
	}
	if want := "tools/call " + params; got != want {
		t.Errorf("server got %s, want %s", got, want)
	}
	if want := `{"z":10000000000000001,"isError":false,"content":[{"type":"hologram","n":1.0}],"_meta":{"b":9007199254740993,"a":1e400}}`; string(res) != want {
		t.Errorf("CallRaw() = %s, want %s", res, want)
	}
}

func TestCallRaw_KeepsErrors(t *testing.T) {
	for _, want := range []*jsonrpc.Error{
		{Code: -32042, Message: "log in", Data: json.RawMessage(`{"url":"https://a","n":9007199254740993}`)},
		{Code: -32003, Message: "payment required"}, // the SDK's own "client is closing"
		{Code: -32601, Message: "no such method", Data: json.RawMessage(`[1]`)},
	} {
		cs := pair(t, func(context.Context, string, *RawParams) (*RawResult, error) {
			return nil, &Error{Code: want.Code, Message: want.Message, Data: want.Data}
		})
		_, err := CallRaw(t.Context(), cs, "tools/call", nil)
		var rpc *jsonrpc.Error
		if !errors.As(err, &rpc) {
			t.Fatalf("CallRaw() = %v, want a *jsonrpc.Error", err)
		}
		if diff := cmp.Diff(want, rpc); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
		if err.Error() != want.Message {
			t.Errorf("Error() = %q, want %q", err, want.Message)
		}
	}
}

func TestReceiveRaw_RefusesUnanswered(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "0"}, nil)
	ReceiveRaw(server, "tools/call")
	ct, st := Pipe()
	if _, err := server.Connect(t.Context(), st, nil); err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "0"}, nil)
	RegisterRaw(client, "tools/call")
	cs, err := client.Connect(t.Context(), ct, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	_, err = CallRaw(t.Context(), cs, "tools/call", nil)
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeMethodNotFound || strings.Contains(err.Error(), RawSuffix) {
		t.Errorf("CallRaw() = %v, want method not found", err)
	}
}

func TestCallRaw_Cancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan struct{})
		cs := pair(t, func(ctx context.Context, _ string, _ *RawParams) (*RawResult, error) {
			<-ctx.Done()
			close(seen)
			return nil, ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			cancel()
		}()
		if _, err := CallRaw(ctx, cs, "tools/call", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("CallRaw() = %v, want context.Canceled", err)
		}
		<-seen
	})
}

func TestRawParams_Meta(t *testing.T) {
	for _, tc := range []struct{ raw, set, want string }{
		{`{"a":1}`, `{}`, `{"a":1}`},
		{``, `{"k":1}`, `{"_meta":{"k":1}}`},
		{`{"_meta":{"z":9007199254740993,"a":1.0},"x":2}`, `{"z":9007199254740993,"a":1.0}`, `{"_meta":{"z":9007199254740993,"a":1.0},"x":2}`},
		{`{"_meta":{"z":9007199254740993,"a":1.0},"x":2}`, `{"z":9007199254740993,"a":"<b>","n":2,"m":3}`, `{"_meta":{"z":9007199254740993,"a":"<b>","m":3,"n":2},"x":2}`},
		{`{"_meta":{"z":1,"a":2}}`, `{"a":2}`, `{"_meta":{"a":2}}`},
		{`{"\u005fmeta":{"z":1}}`, `{"z":2}`, `{"_meta":{"z":2}}`},
	} {
		p := &RawParams{Raw: json.RawMessage(tc.raw)}
		m, err := decode([]byte(tc.set))
		if err != nil {
			t.Fatal(err)
		}
		p.GetMeta()
		p.SetMeta(m.(map[string]any))
		got, err := p.MarshalJSON()
		if err != nil || string(got) != tc.want {
			t.Errorf("%s with _meta %s = %s, %v, want %s", tc.raw, tc.set, got, err, tc.want)
		}
	}
}

func TestRawParams_MetaOfMap(t *testing.T) {
	p := &RawParams{Raw: json.RawMessage(`{"_meta":{"progressToken":9007199254740993},"x":{"_meta":1}}`)}
	p.GetMeta()["k"] = "v"
	got, err := json.Marshal(p)
	if want := `{"_meta":{"progressToken":9007199254740993,"k":"v"},"x":{"_meta":1}}`; err != nil || string(got) != want {
		t.Errorf("MarshalJSON() = %s, %v, want %s", got, err, want)
	}
	if m := (&RawResult{Raw: json.RawMessage(`{"a":1}`)}).GetMeta(); m != nil {
		t.Errorf("GetMeta() = %v, want nil", m)
	}
}

func BenchmarkCallRaw(b *testing.B) {
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "0"}, nil)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if p, ok := r.GetParams().(*RawParams); ok {
				return &RawResult{Raw: p.Raw}, nil
			}
			return next(ctx, method, r)
		}
	})
	ReceiveRaw(server, "tools/call")
	ct, st := Pipe()
	if _, err := server.Connect(b.Context(), st, nil); err != nil {
		b.Fatal(err)
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "0"}, nil)
	RegisterRaw(c, "tools/call")
	cs, err := c.Connect(b.Context(), ct, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		b.Fatal(err)
	}
	defer cs.Close()
	for _, size := range []int{100, 1 << 20} {
		params := json.RawMessage(`{"name":"x","arguments":{"t":"` + strings.Repeat("y", size) + `"}}`)
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := CallRaw(b.Context(), cs, "tools/call", params); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
