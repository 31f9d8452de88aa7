package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
)

// face runs a server connection over the whole input and returns what it
// wrote. Requests are answered with their own method and params as result.
func face(t *testing.T, input string, o Options) string {
	t.Helper()
	var out syncBuffer
	tr := NewServerTransport(io.NopCloser(strings.NewReader(input)), &out, o)
	c, err := tr.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for {
		m, err := c.Read(t.Context())
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("Read() = %v, want io.EOF", err)
			}
			return out.String()
		}
		if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
			params := r.Params
			if x, ok := r.Extra.(*mcp.RequestExtra); ok {
				params = json.RawMessage(x.Header[paramsKey][0])
			}
			echo, _ := json.Marshal(map[string]any{"m": r.Method, "p": params})
			go c.Write(t.Context(), &jsonrpc.Response{ID: r.ID, Result: echo})
		}
	}
}

func lines(s string) []string {
	out := strings.Split(strings.TrimSpace(s), "\n")
	slices.Sort(out)
	return out
}

func TestServer_BadLinesAreAnswered(t *testing.T) {
	const after = "\n" + `{"jsonrpc":"2.0","id":7,"method":"ping"}` + "\n"
	const pong = `{"jsonrpc":"2.0","id":7,"result":{"m":"ping","p":null}}`
	refused := func(id string, code int, why string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, rawjson.Quote(why))
	}
	rpc := ErrNotRPC.Error() + ": "
	for _, tc := range []struct{ in, want string }{
		{`{not json`, refused("null", -32700, "not JSON")},
		{`hello`, refused("null", -32700, "not JSON")},
		{`5`, refused("null", -32600, rpc+"a number")},
		{`null`, refused("null", -32600, rpc+"null")},
		{`[]`, refused("null", -32600, rpc+"an array (batches are not supported)")},
		{`{"jsonrpc":"2.0"}`, refused("null", -32600, rpc+`none of "method", "result" and "error" is there`)},
		{`{"jsonrpc":"1.0","id":3,"method":"ping"}`, refused("3", -32600, rpc+`"jsonrpc" is not "2.0"`)},
		{`{"jsonrpc":"2.0","id":3,"METHOD":"ping"}`, refused("3", -32600, rpc+`none of "method", "result" and "error" is there`)},
		{`{"jsonrpc":"2.0","id":3,"method":"ping","method":"x"}`, refused("null", -32600, rpc+`the key "method" is there twice`)},
		{`{"jsonrpc":"2.0","id":3,"\u0069d":4,"method":"ping"}`, refused("null", -32600, rpc+`the key "id" is there twice`)},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, refused("null", -32600, rpc+`"id" is neither a string nor a number`)},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, refused("null", -32600, rpc+`"id" is neither a string nor a number`)},
		{`{"jsonrpc":"2.0","id":3,"method":4}`, refused("3", -32600, rpc+`"method" is not a string`)},
		{"\xEF\xBB\xBF" + `{"jsonrpc":"2.0","id":3,"method":"x"}`, `{"jsonrpc":"2.0","id":3,"result":{"m":"x","p":null}}`},
		{`{"jsonrpc":"2.0","id":3,"method":"x"}` + "\r", `{"jsonrpc":"2.0","id":3,"result":{"m":"x","p":null}}`},
		{`{"jsonrpc":"2.0","id":3,"method":"x"} {"jsonrpc":"2.0","method":"y"}`, `{"jsonrpc":"2.0","id":3,"result":{"m":"x","p":null}}`},
		{`{"jsonrpc":"2.0","method":"y"}{"jsonrpc":"2.0","id":3,"method":"x"}`, `{"jsonrpc":"2.0","id":3,"result":{"m":"x","p":null}}`},
		{`{"jsonrpc":"2.0","method":"y"} trailing`, refused("null", -32700, "not JSON")},
		{"\r\n \n", ""},
		{`{"jsonrpc":"2.0","id":99,"result":{}}`, ""}, // an answer to nothing
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, ""},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":3}`, ""},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, ""},
		{"Content-Length: nonsense", refused("null", -32700, "Content-Length is not a number of bytes")},
	} {
		want := lines(tc.want + "\n" + pong)
		if got := lines(face(t, tc.in+after, Options{})); !cmp.Equal(got, want) {
			t.Errorf("after %s (-want +got):\n%s", tc.in, cmp.Diff(want, got))
		}
	}
}

func TestServer_IDsComeBackAsTheyWere(t *testing.T) {
	for _, id := range []string{`"abc"`, `"7"`, `7`, `0`, `9007199254740993`, `""`, `-1`, `1.5`, `"a\"\u00e9"`} {
		in := `{"method":"x","params":{"id":3},"jsonrpc":"2.0","id":` + id + "}\n"
		want := `{"jsonrpc":"2.0","id":` + id + `,"result":{"m":"x","p":{"id":3}}}` + "\n"
		if got := face(t, in, Options{}); got != want {
			t.Errorf("face(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestServer_AddsRawSuffix(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"
	want := `{"jsonrpc":"2.0","id":1,"result":{"m":"tools/list!raw","p":{}}}` + "\n"
	if got := face(t, in, Options{RawMethods: []string{"tools/list"}}); got != want {
		t.Errorf("face(%s) = %s, want %s", in, got, want)
	}
}

func TestServer_ContentLengthFrames(t *testing.T) {
	frame := func(s string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(s), s) }
	in := frame(`{"jsonrpc":"2.0","id":1,"method":"é"}`) + "Content-Type: x\r\n" + frame("{\n \"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"b\"}")
	got := face(t, in, Options{})
	for _, want := range []string{frame(`{"jsonrpc":"2.0","id":1,"result":{"m":"é","p":null}}`), frame(`{"jsonrpc":"2.0","id":2,"result":{"m":"b","p":null}}`)} {
		if !strings.Contains(got, want) {
			t.Errorf("face(%q) = %q, want %q in it", in, got, want)
		}
	}
	// The framing of the first message is kept.
	in = `{"jsonrpc":"2.0","id":1,"method":"a"}` + "\n" + frame(`{"jsonrpc":"2.0","id":2,"method":"b"}`)
	if got := face(t, in, Options{}); strings.Contains(got, "Content-Length") {
		t.Errorf("face(%q) = %q, want lines", in, got)
	}
}

func TestServer_TooLongMessageIsRefused(t *testing.T) {
	long := `{"jsonrpc":"2.0","params":{"id":"no","s":"` + strings.Repeat(`\"}{`, 4000) + `"},"id":"late","method":"x"}`
	ok := "\n" + `{"jsonrpc":"2.0","id":2,"method":"b"}` + "\n"
	o := Options{MaxLine: 8000}
	for _, in := range []string{long + ok, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(long), long) + ok} {
		got := face(t, in, o)
		for _, want := range []string{
			`{"jsonrpc":"2.0","id":"late","error":{"code":-32600,"message":"message is larger than 8000 bytes"}}`,
			`{"jsonrpc":"2.0","id":2,"result":{"m":"b","p":null}}`,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("got %s, want %s in it", got, want)
			}
		}
	}
}

func TestServer_AnswersAreWrittenAfterEOF(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out syncBuffer
		in := `{"jsonrpc":"2.0","id":1,"method":"slow"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"never"}`
		c, err := NewServerTransport(io.NopCloser(strings.NewReader(in)), &out, Options{}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 2 {
			m, err := c.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r := m.(*jsonrpc.Request); r.Method == "slow" {
				time.AfterFunc(200*time.Millisecond, func() {
					c.Write(context.Background(), &jsonrpc.Response{ID: r.ID, Result: json.RawMessage(`{}`)})
				})
			}
		}
		if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("Read() = %v, want io.EOF", err)
		}
		if took := time.Since(began); took != DefaultDrain {
			t.Errorf("EOF after %v, want %v: one request is never answered", took, DefaultDrain)
		}
		if want := `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"; out.String() != want {
			t.Errorf("wrote %s, want %s", &out, want)
		}
	})
}

func TestServer_CancelledRequestIsNotAnswered(t *testing.T) {
	var out syncBuffer
	in, feed := io.Pipe()
	c, err := NewServerTransport(in, &out, Options{}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := func() *jsonrpc.Request {
		m, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return m.(*jsonrpc.Request)
	}
	cancel := func(id string) {
		fmt.Fprintf(feed, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"r"}}`+"\n", id)
	}
	answer := func(r *jsonrpc.Request) {
		if err := c.Write(t.Context(), &jsonrpc.Response{ID: r.ID, Result: json.RawMessage(`{}`)}); err != nil {
			t.Error(err)
		}
	}
	fmt.Fprintln(feed, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	first := read()
	fmt.Fprintln(feed, `{"jsonrpc":"2.0","id":"1","method":"a"}`)
	second := read()
	cancel(`9`)   // never asked
	cancel(`1`)   // initialize
	cancel(`"1"`) // the one
	if n := read(); n.Method != "notifications/cancelled" || string(n.Params) != `{"requestId":"\"1\"","reason":"r"}` {
		t.Errorf("got %s %s, want the cancellation of %q", n.Method, n.Params, "1")
	}
	answer(first)
	answer(second)
	cancel(`1`) // finished
	fmt.Fprintln(feed, `{"jsonrpc":"2.0","id":3,"method":"b"}`)
	third := read()
	if third.Method != "b" {
		t.Errorf("got %s, want b: a finished request was cancelled", third.Method)
	}
	answer(third)
	feed.Close()
	if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("Read() = %v, want io.EOF", err)
	}
	want := `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":3,"result":{}}` + "\n"
	if out.String() != want {
		t.Errorf("wrote %s, want %s", &out, want)
	}
}

func TestServer_IDInUseIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := `{"jsonrpc":"2.0","id":1,"method":"a"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"b"}` + "\n"
		var out syncBuffer
		c, err := NewServerTransport(io.NopCloser(strings.NewReader(in)), &out, Options{}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for ; err == nil; n++ {
			_, err = c.Read(t.Context())
		}
		if n != 2 || !errors.Is(err, io.EOF) {
			t.Errorf("%d messages, then %v, want one and io.EOF", n-1, err)
		}
		if !strings.Contains(out.String(), `"id":null,"error":{"code":-32600`) {
			t.Errorf("wrote %q, want an error without id", &out)
		}
	})
}

func TestServer_BlockedOutputEndsWithInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked, w := io.Pipe() // nobody reads
		defer blocked.Close()
		in := `{"jsonrpc":"2.0","id":1,"method":"a"}` + "\n"
		c, err := NewServerTransport(io.NopCloser(strings.NewReader(in)), w, Options{}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wrote := make(chan error)
		go func() {
			wrote <- c.Write(context.Background(), &jsonrpc.Response{ID: m.(*jsonrpc.Request).ID, Result: json.RawMessage(`{}`)})
		}()
		if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("Read() = %v, want io.EOF", err)
		}
		if err := <-wrote; err == nil {
			t.Error("Write() = nil, want an error: nobody read it")
		}
	})
}
