package wire

import (
	"bufio"
	"bytes"
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
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, quote(why))
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

func FuzzClientReader(f *testing.F) {
	for _, s := range []string{"", "x", "{", `{"jsonrpc":"2.0","id":1,"result":{}`, "\xEF\xBB\xBF{}", `[{"a":"\`, "Content-Length: 5\r\n\r\n{}", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, junk []byte) {
		in := io.MultiReader(bytes.NewReader(junk), strings.NewReader("\n"+`{"jsonrpc":"2.0","id":424242,"result":{}}`))
		c, err := NewClientTransport(io.NopCloser(in), &syncBuffer{}, Options{MaxLine: 1000}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for {
			m, err := c.Read(t.Context())
			if err != nil {
				t.Fatalf("after %q: %v, want the answer", junk, err)
			}
			if r, ok := m.(*jsonrpc.Response); ok && r.ID.Raw() == int64(424242) {
				return
			}
		}
	})
}

func FuzzServerReader(f *testing.F) {
	for _, s := range []string{"", "x", "{", "[]", `{"jsonrpc":"2.0","id":1,"method":"a"}{`, "Content-Length: 2\r\n\r\n{}", "content-type:\n\n", "\xEF\xBB\xBF\r\n5"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out syncBuffer
		c, err := NewServerTransport(io.NopCloser(bytes.NewReader(in)), &out, Options{MaxLine: 1000}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for {
			m, err := c.Read(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("Read() = %v, want messages and io.EOF", err)
			}
			if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
				go c.Write(t.Context(), &jsonrpc.Response{ID: r.ID})
			}
		}
		if strings.HasPrefix(out.String(), "Content-Length") {
			return
		}
		for s := bufio.NewScanner(strings.NewReader(out.String())); s.Scan(); {
			if _, err := ParseEnvelope(s.Bytes()); err != nil {
				t.Fatalf("for %q we wrote %s: %v", in, s.Text(), err)
			}
		}
	})
}

func FuzzParseEnvelope(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":[1]}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"\n"}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		e, err := ParseEnvelope(in)
		if err != nil {
			return
		}
		again, err := ParseEnvelope(e.Bytes())
		if err != nil {
			t.Fatalf("ParseEnvelope(Bytes()) of %q: %v", in, err)
		}
		if !e.Request && e.Error != nil {
			e.Result = nil // an error wins
		}
		if !bytes.Contains(in, []byte("\n")) && !cmp.Equal(e, again) {
			t.Fatalf("round trip of %q (-want +got):\n%s", in, cmp.Diff(e, again))
		}
	})
}

func BenchmarkParseEnvelope(b *testing.B) {
	for _, size := range []int{100, 1 << 20} {
		in := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("lorem ipsum ", size/12) + `"}]}}`)
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseEnvelope(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
