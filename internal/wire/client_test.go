package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// client makes a client connection over what a server printed, and collects
// its noise.
func client(t *testing.T, printed string, o Options) (mcp.Connection, *[]string) {
	t.Helper()
	var noise []string
	o.Noise = func(line string) { noise = append(noise, line) }
	c, err := NewClientTransport(io.NopCloser(strings.NewReader(printed)), &syncBuffer{}, o).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c, &noise
}

func TestClient_SkipsNoise(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`
	for _, tc := range []struct {
		noise string
		want  int // reports
	}{
		{"Booting v3...", 1}, {"\n\r\n  ", 0}, {`{"level":"info"}`, 1}, {"42", 1}, {"[1,2]", 1}, {"null", 1},
		{`{"jsonrpc":"2.0","id":"x","result":{}}`, 1}, {`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`, 1},
		{"Content-Length: 3", 1}, {"\x1b[32mready\x1b[0m {", 1}, {strings.Repeat("x", 200_000), 1}, {strings.Repeat("a\n", 500), maxNoise},
	} {
		c, noise := client(t, tc.noise+"\n"+answer+"\n"+tc.noise+"\n"+answer, Options{})
		for range 2 {
			m, err := c.Read(t.Context())
			if err != nil {
				t.Fatalf("after %.20q: %v", tc.noise, err)
			}
			if r, ok := m.(*jsonrpc.Response); !ok || string(r.Result) != `{"a":1}` || r.ID.Raw() != int64(1) {
				t.Errorf("after %.20q: got %v", tc.noise, m)
			}
		}
		if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("Read() = %v, want io.EOF", err)
		}
		if want := min(2*tc.want, maxNoise); len(*noise) != want {
			t.Errorf("%.20q: %d reports, want %d", tc.noise, len(*noise), want)
		}
		for _, line := range *noise {
			if len(line) > maxNoiseBytes+200 {
				t.Errorf("report of %d bytes: %.50q", len(line), line)
			}
		}
	}
}

func TestClient_MessageAfterTextWithoutLineBreak(t *testing.T) {
	c, noise := client(t, `Starting... {"jsonrpc":"2.0","id":1,"result":{}}`, Options{})
	if _, err := c.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(*noise) != 1 || (*noise)[0] != "Starting... " {
		t.Errorf("noise = %q", *noise)
	}
}

func TestClient_LenientAnswers(t *testing.T) {
	for _, tc := range []struct {
		in     string
		result string
		err    *Error
	}{
		{`{"result":{"a":[1]},"jsonrpc":"2.0","id":"1"}`, `{"a":[1]}`, nil},
		{`{"jsonrpc":"2.0","id":1.0,"result":{},"error":null}`, `{}`, nil},
		{`{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":5,"message":"m","data":{"n":9007199254740993}}}`, "", &Error{Code: 5, Message: "m", Data: json.RawMessage(`{"n":9007199254740993}`)}},
		{`{"jsonrpc":"2.0","id":1,"error":"broken"}`, "", &Error{Code: -32603, Message: "broken"}},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":"E_X"}}`, "", &Error{Code: -32603, Message: `{"code":"E_X"}`}},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"t\":\"\xb0\xa1 \\ud83d \\u0000\"}}", `{"t":"` + "\uFFFD" + ` \ud83d \u0000"}`, nil},
	} {
		c, _ := client(t, tc.in, Options{})
		m, err := c.Read(t.Context())
		if err != nil {
			t.Errorf("%s: %v", tc.in, err)
			continue
		}
		r := m.(*jsonrpc.Response)
		if r.ID.Raw() != int64(1) || string(r.Result) != tc.result {
			t.Errorf("%s: got id %v, result %s, want %s", tc.in, r.ID.Raw(), r.Result, tc.result)
		}
		if tc.err != nil {
			if diff := cmp.Diff(error(tc.err), r.Error); diff != "" {
				t.Errorf("%s: error (-want +got):\n%s", tc.in, diff)
			}
		} else if r.Error != nil {
			t.Errorf("%s: error %v", tc.in, r.Error)
		}
	}
}

func TestClient_TooLongAnswerFailsThatCall(t *testing.T) {
	long := `{"result":{"id":5,"text":"` + strings.Repeat(`x\\\"`, 50_000) + `"},"jsonrpc":"2.0","id":1}`
	c, _ := client(t, long+"\n"+`{"jsonrpc":"2.0","id":2,"result":{}}`, Options{MaxLine: 100_000})
	m, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r := m.(*jsonrpc.Response); r.ID.Raw() != int64(1) || !errors.Is(r.Error, ErrTooLarge) {
		t.Errorf("got id %v, error %v, want 1 and ErrTooLarge", r.ID.Raw(), r.Error)
	}
	if m, err = c.Read(t.Context()); err != nil || m.(*jsonrpc.Response).ID.Raw() != int64(2) {
		t.Errorf("Read() = %v, %v, want the answer to 2", m, err)
	}
}

func TestClient_LargeLine(t *testing.T) {
	for _, size := range []int{70 << 10, 2 << 20, 20 << 20} {
		body := strings.Repeat("é", size/2)
		c, _ := client(t, `{"jsonrpc":"2.0","id":1,"result":{"t":"`+body+`"}}`+"\n", Options{})
		m, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r := m.(*jsonrpc.Response); len(r.Result) != size+len(`{"t":""}`) {
			t.Errorf("result of %d bytes, want %d", len(r.Result), size+8)
		}
	}
}

func TestClient_ProgressComesBeforeTheAnswer(t *testing.T) {
	var got []string
	var printed strings.Builder
	for i := range 100 {
		fmt.Fprintf(&printed, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d}}`+"\n", i)
	}
	printed.WriteString(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	c, _ := client(t, printed.String(), Options{Progress: func(p json.RawMessage) { got = append(got, string(p)) }})
	if _, err := c.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(got) != 100 || got[99] != `{"progress":99}` {
		t.Errorf("%d progress notifications, want 100 in order", len(got))
	}
}

func TestClient_ServerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stdout, _ := io.Pipe()
		_, stdin := io.Pipe()
		c, err := NewClientTransport(stdout, stdin, Options{}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		request := func(n float64) *jsonrpc.Request {
			id, err := jsonrpc.MakeID(n)
			if err != nil {
				t.Fatal(err)
			}
			return &jsonrpc.Request{ID: id, Method: "m"}
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Write(ctx, request(1)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrNotSent) {
			t.Errorf("Write() = %v, want the deadline and no ErrNotSent: it was begun", err)
		}
		if err := c.Write(ctx, request(2)); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNotSent) {
			t.Errorf("Write() = %v, want the deadline and ErrNotSent", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("two writes took %v, want the 1s of their ctx", took)
		}
		if _, err := c.Read(t.Context()); !errors.Is(err, ErrStalled) {
			t.Errorf("Read() = %v, want ErrStalled", err)
		}
		if took := time.Since(began); took != DefaultStall {
			t.Errorf("closed after %v, want %v", took, DefaultStall)
		}
		if err := c.Write(t.Context(), request(3)); !errors.Is(err, ErrStalled) || !errors.Is(err, ErrNotSent) {
			t.Errorf("Write() = %v, want ErrStalled and ErrNotSent", err)
		}
	})
}

func TestConn_CloseUnblocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := io.Pipe()
		_, w := io.Pipe()
		c, err := NewClientTransport(r, w, Options{}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 2)
		go func() { _, err := c.Read(context.Background()); ended <- err }()
		go func() { ended <- c.Write(context.Background(), &jsonrpc.Request{Method: "m"}) }()
		synctest.Wait()
		c.Close()
		c.Close()
		for range 2 {
			if err := <-ended; err == nil {
				t.Error("no error after Close")
			}
		}
	})
}

func TestWrap_StripsSuffixAndTakesProgress(t *testing.T) {
	ct, st := mcp.NewInMemoryTransports()
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "0"}, nil)
	server.AddTool(&mcp.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 10 {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)}); err != nil {
				return nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hi"}}}, nil
	})
	ss, err := server.Connect(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "0"}, nil)
	RegisterRaw(c, "tools/call")
	n := 0
	cs, err := c.Connect(t.Context(), Wrap(ct, func(json.RawMessage) { n++ }), &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := CallRaw(t.Context(), cs, "tools/call", json.RawMessage(`{"name":"t","_meta":{"progressToken":"p"}}`))
	if err != nil || !bytes.Contains(res, []byte(`"hi"`)) || n != 10 {
		t.Errorf("CallRaw() = %s, %v with %d progress notifications, want 10", res, err, n)
	}
	cs.Close()
	ss.Wait()
}
