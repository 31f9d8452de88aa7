package aggregator

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

func isListChanged(m mcptest.Message) bool { return m.Method == methodListChanged }

func countListChanged(c *mcptest.Client) int {
	n := 0
	for _, m := range c.Messages() {
		if isListChanged(m) {
			n++
		}
	}
	return n
}

// No server is started by ping or discovery, but they are for a client that
// only initializes.
func TestSession_StartsServersAfterTheFirstAnswer(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s"})
	r := newRig(t, f, rigOptions{})
	c := r.client(t)
	c.Result("ping", "")
	c.Call(methodDiscover, `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`)
	if f.wasStarted() {
		t.Error("the servers were started by ping or server/discover")
	}
	c = r.client(t)
	c.Initialize("t")
	awaitStart(t, f)
}

// Servers that start take the processor from the first list, so they wait for
// it, but not for a client that does not list.
func TestSession_StartsServersAfterTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServers(fakeServer{Name: "s"})
		c := newRig(t, f, rigOptions{}).client(t)
		c.Initialize("t")
		if synctest.Wait(); f.wasStarted() {
			t.Error("the servers were started before the first list was written")
		}
		c.Result(methodListTools, "")
		if synctest.Wait(); !f.wasStarted() {
			t.Error("the first list did not start the servers")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServers(fakeServer{Name: "s"})
		c := newRig(t, f, rigOptions{}).client(t)
		begin := time.Now()
		c.Initialize("t")
		<-f.started
		if got := time.Since(begin); got != listGrace {
			t.Errorf("without a list the servers were started after %v, want %v", got, listGrace)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServers(fakeServer{Name: "s"})
		c := newRig(t, f, rigOptions{}).client(t)
		begin := time.Now()
		c.Initialize("t")
		c.Call(methodCallTool, `{"name":"tool_search","arguments":{"query":"x"}}`)
		if <-f.started; !time.Now().Equal(begin) {
			t.Errorf("a call started the servers after %v, want at once", time.Since(begin))
		}
	})
}

func awaitStart(t *testing.T, f *fakeServers) {
	t.Helper()
	select {
	case <-f.started:
	case <-time.After(30 * time.Second):
		t.Error("the servers were not started")
	}
}

type writeSpy struct {
	mcp.Transport
	onWrite func()
}

type writeSpyConn struct {
	mcp.Connection
	onWrite func()
}

func (w writeSpy) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := w.Transport.Connect(ctx)
	return writeSpyConn{c, w.onWrite}, err
}

func (c writeSpyConn) Write(ctx context.Context, m jsonrpc.Message) error {
	c.onWrite()
	return c.Connection.Write(ctx, m)
}

func TestSession_FirstAnswerIsWrittenBeforeStart(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s"})
	r := newRig(t, f, rigOptions{})
	c, in, out := mcptest.Pipe(t)
	startedBefore := make(chan bool, 10)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Run(ctx, writeSpy{wire.NewServerTransport(in, out, wire.Options{RawMethods: RawMethods()}), func() { startedBefore <- f.wasStarted() }})
	}()
	defer func() { cancel(); <-done }()
	c.Initialize("t")
	if <-startedBefore {
		t.Error("the servers were started before the answer to initialize was written")
	}
}

// A client of revision 2026-07-28 begins with any request, and gets what that
// revision wants in results.
func TestSession_ModernClient(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", "")}})
	r := newRig(t, f, rigOptions{})
	c := r.client(t)
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"modern","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"own":1}`
	var got map[string]json.RawMessage
	if err := json.Unmarshal(c.Result(methodListTools, `{`+meta+`}`), &got); err != nil {
		t.Fatal(err)
	}
	if string(got["resultType"]) != `"complete"` || string(got["cacheScope"]) != `"private"` || string(got["ttlMs"]) != "0" {
		t.Errorf("tools/list = %s", got)
	}
	res := c.Result(methodCallTool, `{"name":"s__t","arguments":{"a":1},`+meta+`}`)
	if !strings.Contains(string(res), `"resultType":"complete"`) {
		t.Errorf("tools/call = %s, want resultType", res)
	}
	if !strings.Contains(string(res), `"io.modelcontextprotocol/serverInfo":{"name":"toolsearch-mcp"`) {
		t.Errorf("tools/call = %s, want serverInfo", res)
	}
	calls := f.called()
	if len(calls) != 1 || string(calls[0].Meta) != `{"own":1}` || calls[0].From.Client != "modern" {
		t.Errorf("calls = %+v, want one from modern, whose _meta holds nothing of its connection", calls)
	}
	awaitStart(t, f)

	// What was accepted once is not judged again, anything else is.
	for range 2 {
		if again := c.Result(methodCallTool, `{"name":"s__t","arguments":{"a":1},`+meta+`}`); string(again) != string(res) {
			t.Errorf("tools/call = %s, want the same as before: %s", again, res)
		}
	}
	for _, bad := range []string{
		strings.Replace(meta, "2026-07-28", "2126-07-28", 1),
		strings.Replace(meta, `"io.modelcontextprotocol/clientCapabilities":{},`, "", 1),
		strings.Replace(meta, `{"name":"modern","version":"1"}`, `"modern"`, 1),
		`"_meta":{"io\u002emodelcontextprotocol/protocolVersion":"2126-07-28"}`,
	} {
		if m := c.Call(methodCallTool, `{"name":"s__t","arguments":{"a":1},`+bad+`}`); m.Error == nil {
			t.Errorf("tools/call with %s = %s, want an error", bad, m.Result)
		}
		if again := c.Result(methodCallTool, `{"name":"s__t","arguments":{"a":1},`+meta+`}`); string(again) != string(res) {
			t.Errorf("tools/call after an error = %s, want the same as before: %s", again, res)
		}
	}
}

// server/discover is a greeting, too, though it starts nothing.
func TestSession_ModernClientDiscovers(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", "")}})
	c := newRig(t, f, rigOptions{}).client(t)
	c.Result(methodDiscover, `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"modern","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}`)
	if f.wasStarted() {
		t.Error("server/discover started the servers")
	}
	c.Result(methodListTools, `{}`)
	awaitStart(t, f)
}

// Encoders that escape slashes, such as PHP's, write the names in _meta so too.
func TestSession_ModernClientEscapesSlashes(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", "")}})
	c := newRig(t, f, rigOptions{}).client(t)
	params := `{"name":"s__t","arguments":{"a":1},"_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28","io.modelcontextprotocol\/clientInfo":{"name":"modern","version":"1"},"io.modelcontextprotocol\/clientCapabilities":{}}}`
	first := c.Result(methodCallTool, params)
	if again := c.Result(methodCallTool, params); string(again) != string(first) {
		t.Errorf("tools/call = %s, want the same as at first: %s", again, first)
	}
	awaitStart(t, f)
}

// The SDK's own client over its own transport, which keeps no bytes.
func TestSession_SDKClient(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "d", `{"type":"object","properties":{}}`)}})
	r := newRig(t, f, rigOptions{settings: Settings{Mode: "tools"}})
	ct, st := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Run(ctx, st)
	}()
	defer func() { cancel(); <-done }()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil).Connect(ctx, ct, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	tools, err := cs.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) != 3 {
		t.Fatalf("ListTools = %v, %v, want three", tools, err)
	}
	res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "tool_call", Arguments: map[string]any{"id": "t", "args": map[string]any{"a": 1}}})
	if err != nil || res.IsError || res.Content[0].(*mcp.TextContent).Text != `{"a":1}` {
		t.Errorf("CallTool = %+v, %v", res, err)
	}
	if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "nothing"}); err == nil || !strings.Contains(err.Error(), `there is no tool "nothing"`) {
		t.Errorf("CallTool of nothing = %v", err)
	}
}

// list_changed is sent when the published list really changed, once.
func TestSession_ListChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shot := fakeServer{Name: "s", Tools: []json.RawMessage{tool("shot", "one", ""), tool("t", "", "")}, DirectOnly: []string{"shot"}}
		f := newFakeServers(shot)
		r := newRig(t, f, rigOptions{})
		c := r.client(t)
		c.Initialize("t")
		c.Result(methodListTools, "")

		// A storm of changes behind search: nothing that is listed differs.
		for i := range 50 {
			more := shot
			more.Tools = append([]json.RawMessage{tool(fmt.Sprint("new", i), "", "")}, shot.Tools...)
			f.set(more)
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := countListChanged(c); n != 0 {
			t.Errorf("%d list_changed for changes that are not listed, want none", n)
		}

		other := shot
		other.Tools = []json.RawMessage{tool("shot", "two", "")}
		f.set(other)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := countListChanged(c); n != 1 {
			t.Errorf("%d list_changed for a changed definition, want 1", n)
		}
		if res := c.Result(methodListTools, ""); !strings.Contains(string(res), `"two"`) {
			t.Errorf("tools/list = %s", res)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := countListChanged(c); n != 1 {
			t.Errorf("%d list_changed after listing, want still 1: listing never announces", n)
		}

		// Changes without a pause are announced all the same.
		for i := range 100 {
			next := shot
			next.Tools = []json.RawMessage{tool("shot", fmt.Sprint("d", i), "")}
			f.set(next)
			time.Sleep(quietTime / 2)
		}
		synctest.Wait()
		if n := countListChanged(c); n < 2 || n > 8 {
			t.Errorf("%d list_changed in a storm, want a few", n)
		}
		_ = c.Close()
	})
}

// The index of a changed list is begun for clients that never list tools, too:
// a first search waits for servers, and should not wait for that after it.
func TestSession_IndexesWithoutAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServers(fakeServer{Name: "calendar", State: upstreams.Starting, Tools: []json.RawMessage{tool("create_event", "Create.", "")}})
		r := newRig(t, f, rigOptions{})
		c := r.client(t)
		c.Initialize("t")
		f.comeUp("calendar")
		time.Sleep(time.Second)
		synctest.Wait()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.looked != f.snapshot {
			t.Error("nobody looked at the new list")
		}
		_ = c.Close()
	})
}

func TestSession_RefusesClearly(t *testing.T) {
	for _, tc := range []struct {
		name string
		sent []string
		want string // the last answer
	}{
		{"before initialize", []string{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"this session is not initialized: send initialize first"}}`},
		{"call before initialize", []string{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool_search","arguments":{"query":"x"}}}`},
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"this session is not initialized: send initialize first"}}`},
		{"no method before initialize", []string{`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`},
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: \"server/discover\""}}`},
		{"second initialize", []string{initialize1, strings.Replace(initialize1, `"id":1`, `"id":2`, 1)},
			`{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"this session is initialized already: go on with it, or begin a new one"}}`},
		{"prompts", []string{initialize1, `{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`},
			`{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"prompts/list: not supported"}}`},
		{"a prompt", []string{initialize1, `{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"x"}}`},
			`{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"prompts/get: not supported"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFakeServers(fakeServer{Name: "s"})
			c := newRig(t, f, rigOptions{}).client(t)
			var got mcptest.Message
			for i, line := range tc.sent {
				c.Send(line)
				got = c.Answer(fmt.Sprint(i + 1))
			}
			if string(got.Raw) != tc.want {
				t.Errorf("answer = %s, want %s", got.Raw, tc.want)
			}
			if len(tc.sent) == 1 && f.wasStarted() {
				t.Error("a refused request started the servers")
			}
		})
	}
}

const initialize1 = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// A start without any cache: names alone, and one rewriting when all settled.
func TestSession_ColdStartThaws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServers(
			fakeServer{Name: "calendar", State: upstreams.Starting, Tools: []json.RawMessage{tool("create_event", "Create.", "")}},
			fakeServer{Name: "files", State: upstreams.Starting, Tools: []json.RawMessage{tool("read_file", "Read.", "")}},
		)
		r := newRig(t, f, rigOptions{})
		c := r.client(t)
		c.Initialize("t")
		if res := string(c.Result(methodListTools, "")); !strings.Contains(res, `calendar, files`) || strings.Contains(res, "tools)") {
			t.Errorf("tools/list at first = %s, want names alone", res)
		}
		f.comeUp("calendar")
		time.Sleep(time.Second)
		synctest.Wait()
		if n := countListChanged(c); n != 0 {
			t.Errorf("%d list_changed before all have settled", n)
		}
		f.comeUp("files")
		close(f.settled)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := countListChanged(c); n != 1 {
			t.Errorf("%d list_changed after all have settled, want 1", n)
		}
		if res := string(c.Result(methodListTools, "")); !strings.Contains(res, "calendar (1 tool)") {
			t.Errorf("tools/list = %s, want the whole overview", res)
		}
		_ = c.Close()
	})
}

// In off mode the first list waits up to 10 s for servers without a cache.
func TestSession_OffModeWaits(t *testing.T) {
	for _, settles := range []time.Duration{4 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeServers(
				fakeServer{Name: "slow", State: upstreams.Starting, Tools: []json.RawMessage{tool("t", "", "")}},
				fakeServer{Name: "known", State: upstreams.Cached, Tools: []json.RawMessage{tool("k", "", "")}},
				fakeServer{Name: "broken", State: upstreams.Starting},
			)
			f.live = func(ctx context.Context, name string) error {
				if name == "broken" {
					return upstreams.ErrUnavailable
				}
				select {
				case <-time.After(settles):
					f.comeUp(name)
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			r := newRig(t, f, rigOptions{settings: Settings{Mode: "off"}})
			c := r.client(t)
			c.Initialize("t")
			begin := time.Now()
			res := string(c.Result(methodListTools, ""))
			want := min(settles, listTime)
			if took := time.Since(begin); took != want || strings.Contains(res, "slow__t") != (settles < listTime) || !strings.Contains(res, "known__k") {
				t.Errorf("tools/list = %s after %v, want it after %v", res, took, want)
			}
			_ = c.Close()
		})
	}
}

func TestSession_ProfileAndMode(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("create_x", "Create.", ""), tool("list_x", "List.", "")}})
	choose := func(client string) (string, string, error) {
		if strings.HasPrefix(client, "cursor") {
			return "reviewer", "tools", nil
		}
		return "", "code", nil
	}
	rules := policy.Rules{Profiles: []policy.Profile{{Name: "reviewer", Deny: []string{"mcp:*:create_*"}}}}
	r := newRig(t, f, rigOptions{rules: rules, profile: choose})
	c := r.client(t)
	c.Initialize("cursor-vscode")
	if res := string(c.Result(methodListTools, "")); !strings.Contains(res, `"tool_call"`) || strings.Contains(res, `"tool_search_code"`) {
		t.Errorf("tools/list of cursor = %s, want tools mode", res)
	}
	if m := c.Call(methodCallTool, `{"name":"s__create_x"}`); m.Error == nil {
		t.Errorf("a denied tool was called: %s", m.Result)
	}
	if calls := f.called(); len(calls) != 0 {
		t.Errorf("calls = %v", calls)
	}
	c.Result(methodCallTool, `{"name":"s__list_x"}`)
	if calls := f.called(); len(calls) != 1 || calls[0].From.Profile != "reviewer" {
		t.Errorf("calls = %+v, want one with the profile", calls)
	}
}

func TestSession_Reload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", "")}})
		r := newRig(t, f, rigOptions{})
		c := r.client(t)
		c.Initialize("t")
		c.Result(methodListTools, "")
		r.Reload(Settings{Mode: "tools"}, nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := countListChanged(c); n != 1 {
			t.Errorf("%d list_changed after a reload that changes the mode, want 1", n)
		}
		// A client that does not list again still has the old control tool.
		if m := c.Call(methodCallTool, `{"name":"tool_search_code","arguments":{"code":"[]"}}`); m.Error != nil {
			t.Errorf("the control tool of before: %s", m.Error)
		}
		if res := string(c.Result(methodListTools, "")); !strings.Contains(res, `"tool_call"`) {
			t.Errorf("tools/list = %s, want tools mode", res)
		}
		_ = c.Close()
	})
}

func TestSession_NoEngineIsToolsMode(t *testing.T) {
	r := newRig(t, newFakeServers(), rigOptions{noEngine: true})
	if tools := string(list(t, r)); !strings.Contains(tools, `"tool_call"`) || strings.Contains(tools, `"tool_search_code"`) {
		t.Errorf("tools/list = %s, want tools mode", tools)
	}
	if _, err := r.Local("").Call(context.Background(), nameCode, json.RawMessage(`{"code":"1"}`)); err == nil {
		t.Error("tool_search_code was answered without an engine")
	}
}

// Progress goes to a client that asked for it, with its own token to the last
// digit, and never after the answer.
func TestSession_Progress(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", "")}})
	var late upstreams.Client
	f.do = func(_ context.Context, call upstreams.Call) (*upstreams.Result, error) {
		if call.Client != nil {
			late = call.Client
			call.Client.Progress(json.RawMessage(`{"progressToken":"ours","progress":0.10,"total":9007199254740993,"x":[1.0]}`))
		}
		return &upstreams.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}
	r := newRig(t, f, rigOptions{settings: Settings{Mode: "tools"}})
	c := r.client(t)
	c.Initialize("t")
	c.Result(methodCallTool, `{"name":"tool_call","arguments":{"id":"t"}}`)
	for _, token := range []string{`9007199254740993`, `"p-7"`, `1`} {
		c.Result(methodCallTool, `{"name":"tool_call","arguments":{"id":"t"},"_meta":{"progressToken":`+token+`}}`)
		c.Result(methodCallTool, `{"name":"s__t","_meta":{"progressToken":`+token+`}}`)
	}
	late.Progress(json.RawMessage(`{"progressToken":"ours","progress":2}`))
	c.Result("ping", "")
	var got []string
	for _, m := range c.Messages() {
		if m.Method == methodProgress {
			got = append(got, string(m.Params))
		}
	}
	var want []string
	for _, token := range []string{`9007199254740993`, `"p-7"`, `1`} {
		params := `{"progressToken":` + token + `,"progress":0.10,"total":9007199254740993,"x":[1.0]}`
		want = append(want, params, params)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("progress (-want +got):\n%s", d)
	}
}

// Cancellation reaches the upstream, and nobody else.
func TestSession_Cancellation(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "a", Tools: []json.RawMessage{tool("slow", "", "")}}, fakeServer{Name: "b", Tools: []json.RawMessage{tool("fast", "", "")}})
	began, cancelled := make(chan struct{}), make(chan struct{})
	f.do = func(ctx context.Context, call upstreams.Call) (*upstreams.Result, error) {
		if call.Tool.Name == "slow" {
			close(began)
			<-ctx.Done()
			close(cancelled)
			return nil, ctx.Err()
		}
		return &upstreams.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}
	r := newRig(t, f, rigOptions{})
	c := r.client(t)
	c.Initialize("t")
	id := c.Request(methodCallTool, `{"name":"a__slow"}`)
	<-began
	c.Notify("notifications/cancelled", `{"requestId":999}`)
	c.Result(methodCallTool, `{"name":"b__fast"}`)
	c.Notify("notifications/cancelled", `{"requestId":`+id+`}`)
	<-cancelled
	c.Notify("notifications/cancelled", `{"requestId":`+id+`}`)
	c.Result("ping", "")
}

func TestSession_RunEndsWithTheClient(t *testing.T) {
	r := newRig(t, newFakeServers(), rigOptions{})
	c, in, out := mcptest.Pipe(t)
	done := make(chan error, 1)
	go func() {
		done <- r.Run(context.Background(), wire.NewServerTransport(in, out, wire.Options{RawMethods: RawMethods()}))
	}()
	c.Initialize("t")
	_ = c.Close()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("Run does not end when the client is gone")
	}
}

// When we are told to end, requests under way are cancelled, not waited for.
func TestSession_RunEndsWithTheContext(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", "")}})
	began, cancelled := make(chan struct{}), make(chan struct{})
	f.do = func(ctx context.Context, _ upstreams.Call) (*upstreams.Result, error) {
		close(began)
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	}
	r := newRig(t, f, rigOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	c, in, out := mcptest.Pipe(t)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, wire.NewServerTransport(in, out, wire.Options{RawMethods: RawMethods()})) }()
	c.Initialize("t")
	c.Request(methodCallTool, `{"name":"s__t"}`)
	<-began
	cancel()
	<-cancelled
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("Run does not end")
	}
}

// A client that does not read does not hold up the upstream's progress.
func TestProgress_ClientThatDoesNotRead(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", "")}})
	reported := make(chan struct{})
	f.do = func(ctx context.Context, call upstreams.Call) (*upstreams.Result, error) {
		for range 10 * progressQueue {
			call.Client.Progress(json.RawMessage(`{"progress":1}`))
		}
		close(reported)
		return &upstreams.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}
	r := newRig(t, f, rigOptions{})
	in, w := io.Pipe()
	out, stuck := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Run(ctx, wire.NewServerTransport(in, stuck, wire.Options{RawMethods: RawMethods()}))
	}()
	fmt.Fprintln(w, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if _, err := bufio.NewReader(out).ReadBytes('\n'); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(w, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s__t","_meta":{"progressToken":1}}}`)
	select {
	case <-reported:
	case <-time.After(30 * time.Second):
		t.Error("progress waits for the client")
	}
	cancel()
	<-done
}
