package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// The upstream's result comes back as it is, with ours in _meta alone.
func TestCall_ResultPassesThrough(t *testing.T) {
	meta := `"toolsearch/call":{"id":"mcp:s:t","name":"s__t","source":"mcp"`
	tests := []struct{ name, upstream, viaCall, direct string }{
		{"blocks", `{"content":[{"type":"text","text":"a","annotations":{"x":1.50}},{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"hologram","z":1e3}],"isError":false}`,
			`{"content":[{"type":"text","text":"a","annotations":{"x":1.50}},{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"hologram","z":1e3}],"isError":false,"_meta":{` + meta + `}}}`, ""},
		{"meta and unknown fields", `{"_meta":{"a":9007199254740993,"b":{}},"structuredContent":{"n":-6200000000000000017},"content":[{"type":"text","text":"x"}],"new":null}`,
			`{"_meta":{"a":9007199254740993,"b":{},` + meta + `}},"structuredContent":{"n":-6200000000000000017},"content":[{"type":"text","text":"x"}],"new":null}`, ""},
		{"structured only", `{"content":[],"structuredContent":{"rows":[1,2.0]}}`,
			`{"content":[{"type":"text","text":"{\"rows\":[1,2.0]}"}],"structuredContent":{"rows":[1,2.0]},"_meta":{` + meta + `}}}`,
			`{"content":[{"type":"text","text":"{\"rows\":[1,2.0]}"}],"structuredContent":{"rows":[1,2.0]}}`},
		{"structured beside null", `{"content":null,"structuredContent":{}}`,
			`{"content":[{"type":"text","text":"{}"}],"structuredContent":{},"_meta":{` + meta + `}}}`,
			`{"content":[{"type":"text","text":"{}"}],"structuredContent":{}}`},
		{"empty content", `{"content":[]}`, `{"content":[],"_meta":{` + meta + `}}}`, ""},
		{"nothing", `{}`, `{"content":[{"type":"text","text":"(empty result)"}],"_meta":{` + meta + `}}}`, `{"content":[{"type":"text","text":"(empty result)"}]}`},
		{"bad meta", `{"content":[{"type":"text","text":"x"}],"_meta":7}`, `{"content":[{"type":"text","text":"x"}],"_meta":{` + meta + `}}}`, ""},
		{"ours in theirs", `{"content":[],"_meta":{"toolsearch/call":{"status":"blocked"},"a":1}}`,
			`{"content":[],"_meta":{"a":1,` + meta + `}}}`, `{"content":[],"_meta":{"a":1}}`},
		{"only ours in theirs", `{"content":[],"_meta":{"toolsearch/call":{"status":"blocked"}}}`,
			`{"content":[],"_meta":{` + meta + `}}}`, `{"content":[]}`},
		{"null block", `{"content":[null]}`, `{"content":[null],"_meta":{` + meta + `}}}`, ""},
		{"error", `{"isError":true,"content":[{"type":"text","text":"refused"}],"structuredContent":{"code":"DOOR"}}`,
			`{"isError":true,"content":[{"type":"text","text":"refused"}],"structuredContent":{"code":"DOOR"},"_meta":{` + meta + `,"status":"failed"}}}`,
			`{"isError":true,"content":[{"type":"text","text":"refused"}],"structuredContent":{"code":"DOOR"},"_meta":{` + meta + `,"status":"failed"}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", "")},
				Answers: map[string]fakeOutcome{"t": {Result: json.RawMessage(tt.upstream)}}}), rigOptions{})
			if got := string(r.local(t, nameCall, `{"id":"t","args":{}}`)); got != tt.viaCall {
				t.Errorf("tool_call = %s\nwant %s", got, tt.viaCall)
			}
			want := tt.direct
			if want == "" {
				want = tt.upstream
			}
			if got := string(r.local(t, "s__t", `{}`)); got != want {
				t.Errorf("hydrated = %s\nwant %s", got, want)
			}
		})
	}
}

func TestCall_NoteOfTheGate(t *testing.T) {
	r := newRig(t, newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", "")},
		Answers: map[string]fakeOutcome{"t": {Result: json.RawMessage(`{"content":[]}`), Note: "mind the gap"}}}), rigOptions{})
	for _, name := range []string{nameCall, "s__t"} {
		args := `{}`
		if name == nameCall {
			args = `{"id":"t"}`
		}
		if got := decode(t, r.local(t, name, args)).Meta[callMetaKey].Note; got != "mind the gap" {
			t.Errorf("note of %s = %q", name, got)
		}
	}
}

// Every way to fail has its status, in tool_call and by name, and no text
// shows a cause with an address or a secret.
func TestCall_Statuses(t *testing.T) {
	tests := []struct {
		outcome fakeOutcome
		status  string
		text    string
	}{
		{fakeOutcome{Fail: "unknown"}, statusUnknown, "no longer has the tool"},
		{fakeOutcome{Fail: "unavailable"}, statusUnavailable, `server "s" cannot be reached now; nothing was called`},
		{fakeOutcome{Fail: "auth"}, statusUnavailable, "needs credentials or a login"},
		{fakeOutcome{Fail: "timeout"}, statusTimedOut, "may have acted already"},
		{fakeOutcome{Fail: "lost"}, statusUnavailable, "may have acted already"},
		{fakeOutcome{Fail: "large"}, statusFailed, "larger than maxResultBytes"},
		{fakeOutcome{Fail: "closed"}, statusUnavailable, "closed"},
		{fakeOutcome{Fail: "other"}, statusFailed, "its log has the cause"},
		{fakeOutcome{Result: json.RawMessage(`"ok"`)}, statusFailed, "not a result object"},
		{fakeOutcome{Result: json.RawMessage(`null`)}, statusFailed, "not a result object"},
		{fakeOutcome{Result: json.RawMessage(`{"isError":true,"content":[{"type":"text","text":"its own words"}]}`)}, statusFailed, "its own words"},
	}
	for _, tt := range tests {
		r := newRig(t, newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", "")}, Answers: map[string]fakeOutcome{"t": tt.outcome}}), rigOptions{})
		for name, args := range map[string]string{nameCall: `{"id":"t"}`, "mcp:s:t": `{}`} {
			raw := r.local(t, name, args)
			a := decode(t, raw)
			if !a.IsError || a.status() != tt.status || !strings.Contains(a.text(), tt.text) {
				t.Errorf("%+v by %s = %s, want status %s and %q", tt.outcome, name, raw, tt.status, tt.text)
			}
			if strings.Contains(string(raw), "hunter2") {
				t.Errorf("%+v by %s shows a secret: %s", tt.outcome, name, raw)
			}
		}
	}
}

// An upstream's JSON-RPC error is a result of tool_call, unless only the
// client can act on it, and passes unchanged where the client called by name.
func TestCall_RPCErrors(t *testing.T) {
	r := newRig(t, newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", ""), tool("url", "", "")}, Answers: map[string]fakeOutcome{
		"t":   {Error: json.RawMessage(`{"code":-32601,"message":"no\u202e way","data":{"n":9007199254740993}}`)},
		"url": {Error: json.RawMessage(`{"code":-32042,"message":"open this","data":{"elicitations":[{"url":"x"}]}}`)},
	}}), rigOptions{})
	a := decode(t, r.local(t, nameCall, `{"id":"t"}`))
	if want := `server "s" answered with an error: no way (code -32601); data: {"n":9007199254740993}`; a.status() != statusFailed || !strings.Contains(strings.ReplaceAll(a.text(), "\u202e", ""), want) {
		t.Errorf("tool_call = %+v, want %q", a, want)
	}
	if strings.Contains(a.text(), "\u202e") {
		t.Errorf("text %q shows a bidirectional control", a.text())
	}
	for _, call := range []struct{ name, args string }{{"s__t", "{}"}, {"s__url", "{}"}, {nameCall, `{"id":"url"}`}} {
		_, err := r.Local("").Call(context.Background(), call.name, json.RawMessage(call.args))
		var rpc *jsonrpc.Error
		if !errors.As(err, &rpc) {
			t.Fatalf("%s %s = %v, want the upstream's error", call.name, call.args, err)
		}
		if call.name == "s__t" && (rpc.Code != -32601 || rpc.Message != "no\u202e way" || string(rpc.Data) != `{"n":9007199254740993}`) {
			t.Errorf("s__t = %+v, want it unchanged", rpc)
		}
	}
}

// What an upstream says of a failure may repeat the arguments: the log has the
// code alone.
func TestCall_LogHoldsNoAnswers(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", "")}, Answers: map[string]fakeOutcome{
		"t": {Error: json.RawMessage(`{"code":-32077,"message":"no user s3cr3t-SIX"}`)},
	}}), rigOptions{log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	r.local(t, nameCall, `{"id":"t"}`)
	if got := log.String(); strings.Contains(got, "s3cr3t") || !strings.Contains(got, "-32077") {
		t.Errorf("log = %s, want the code of the error and not its words", got)
	}
}

func TestCall_InvalidArguments(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}})
	r := newRig(t, f, rigOptions{})
	for name, args := range map[string]string{nameCall: `{"id":"t","args":{"town":"Oslo"}}`, "s__t": `{"town":"Oslo"}`} {
		a := decode(t, r.local(t, name, args))
		if !a.IsError || a.status() != statusInvalid || !strings.Contains(a.text(), "city") || !strings.Contains(a.text(), "expected: { city: string") {
			t.Errorf("%s %s = %+v", name, args, a)
		}
	}
	for _, args := range []string{`[]`, `5`, `"x"`, `{"city":"a","city":"b"}`, `{"city":{"x":1,"x":2}}`} {
		if a := decode(t, r.local(t, "s__t", args)); !a.IsError || a.status() != statusInvalid {
			t.Errorf("s__t %s = %+v, want invalid_arguments", args, a)
		}
	}
	if n := len(f.called()); n != 0 {
		t.Errorf("%d calls reached the server, want none", n)
	}
	for _, args := range []string{`{"city":"Oslo"}`, `"{\"city\":\"Oslo\"}"`} {
		if a := decode(t, r.local(t, "s__t", args)); a.IsError || a.text() != `{"city":"Oslo"}` {
			t.Errorf("s__t %s = %+v", args, a)
		}
	}
}

// Policy: what is denied is an unknown tool everywhere, and is not suggested.
func TestCall_Denied(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "depot", Tools: []json.RawMessage{tool("wipe", "Wipe the depot.", ""), tool("list", "List the depot.", "")}})
	r := newRig(t, f, rigOptions{rules: policy.Rules{Deny: []string{"mcp:depot:wipe"}}})
	for _, selector := range []string{"mcp:depot:wipe", "depot__wipe", "wipe", " wipe ", "mcp:depot:depot__wipe", "Wipe"} {
		a := decode(t, r.local(t, nameCall, fmt.Sprintf(`{"id":%q}`, selector)))
		if !a.IsError || a.status() != statusUnknown || strings.Contains(a.text(), "did you mean mcp:depot:wipe") {
			t.Errorf("tool_call %q = %+v, want unknown_tool", selector, a)
		}
		_, err := r.Local("").Call(context.Background(), selector, nil)
		var rpc *jsonrpc.Error
		if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("call by name %q = %v, want -32602", selector, err)
		}
	}
	if n := len(f.called()); n != 0 {
		t.Errorf("%d calls reached the server, want none", n)
	}
}

// A race: the view still has the tool when the gate already denies it.
func TestCall_DeniedByTheGate(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "depot", Tools: []json.RawMessage{tool("wipe", "", "")}})
	r := newRig(t, f, rigOptions{})
	none, err := policy.Compile(policy.Rules{Allow: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	r.gate.Swap(none)
	if a := decode(t, r.local(t, nameCall, `{"id":"wipe"}`)); a.status() != statusUnknown || !strings.Contains(a.text(), `there is no tool "mcp:depot:wipe"`) {
		t.Errorf("tool_call = %+v, want the text of an unknown tool", a)
	}
}

func TestCall_Selectors(t *testing.T) {
	f := newFakeServers(
		fakeServer{Name: "postoffice", Tools: []json.RawMessage{tool("send_item", "", ""), tool("stamp", "", ""), tool("repos/delete", "", ""), tool("tool_search", "", "")}},
		fakeServer{Name: "parcelshop", State: upstreams.Backoff, Tools: []json.RawMessage{tool("send_item", "", "")}},
	)
	r := newRig(t, f, rigOptions{})
	for _, selector := range []string{"mcp:postoffice:stamp", "postoffice__stamp", "stamp", "mcp:postoffice:postoffice__stamp", " stamp ", "repos/delete", "mcp:postoffice:repos/delete", "mcp:postoffice:tool_search", "postoffice__tool_search"} {
		if a := decode(t, r.local(t, nameCall, fmt.Sprintf(`{"id":%q}`, selector))); a.IsError {
			t.Errorf("tool_call %q = %+v", selector, a)
		}
		if a := decode(t, r.local(t, selector, `{}`)); a.IsError {
			t.Errorf("hydrated %q = %+v", selector, a)
		}
	}
	a := decode(t, r.local(t, nameCall, `{"id":"send_item"}`))
	if a.status() != statusUnknown || !strings.Contains(a.text(), "mcp:parcelshop:send_item, mcp:postoffice:send_item") {
		t.Errorf("tool_call of a name that two servers have = %+v, want both ids", a)
	}
	if a := decode(t, r.local(t, nameCall, `{"id":"stmp"}`)); a.status() != statusUnknown || !strings.Contains(a.text(), `find it first: toolsearch-mcp search "stmp"`) {
		t.Errorf("tool_call of an unknown name = %+v, want the next step", a)
	}
}

// A call is decided on the live definition: a cached server is connected first.
func TestCall_CachedServer(t *testing.T) {
	cached := fakeServer{Name: "s", State: upstreams.Cached, Comes: true, Tools: []json.RawMessage{tool("t", "", ""), tool("old", "", "")}}
	f := newFakeServers(cached)
	f.live = func(context.Context, string) error {
		f.mu.Lock()
		f.servers[0].Tools = f.servers[0].Tools[:1]
		f.mu.Unlock()
		return nil
	}
	r := newRig(t, f, rigOptions{})
	if a := decode(t, r.local(t, nameCall, `{"id":"t"}`)); a.IsError {
		t.Errorf("tool_call = %+v", a)
	}
	if d := cmp.Diff([]string{"s"}, f.lived); d != "" {
		t.Errorf("servers connected (-want +got):\n%s", d)
	}
	f.set(cached)
	if a := decode(t, r.local(t, nameCall, `{"id":"old"}`)); a.status() != statusUnknown || !strings.Contains(a.text(), "no longer has the tool") {
		t.Errorf("tool_call of a tool that went = %+v", a)
	}

	for state, want := range map[upstreams.State]string{upstreams.Backoff: "is not ready; nothing was called", upstreams.NeedsAuth: "needs credentials or a login"} {
		down := cached
		down.State, down.Comes = state, false
		f.live = nil
		f.set(down)
		raw := r.local(t, nameCall, `{"id":"mcp:s:t"}`)
		if a := decode(t, raw); a.status() != statusUnavailable || !strings.Contains(a.text(), want) || strings.Contains(string(raw), "hunter2") {
			t.Errorf("tool_call while %s = %s, want %q", state, raw, want)
		}
	}
}

// A selector of a server that is still starting waits for it within the
// call's time, then is unavailable, never unknown_tool.
func TestCall_StartingServer(t *testing.T) {
	for _, selector := range []string{"mcp:slow:t", "slow__t", "t"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeServers(fakeServer{Name: "slow", State: upstreams.Starting, Comes: true, Tools: []json.RawMessage{tool("t", "", "")}},
				fakeServer{Name: "stuck", State: upstreams.Starting})
			f.live = func(ctx context.Context, name string) error {
				wait := 20 * time.Second
				if name == "stuck" {
					wait = time.Hour
				}
				select {
				case <-time.After(wait):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			r := newRig(t, f, rigOptions{})
			begin := time.Now()
			a := decode(t, r.local(t, nameCall, fmt.Sprintf(`{"id":%q}`, selector)))
			if a.IsError || time.Since(begin) != 20*time.Second {
				t.Errorf("tool_call %q = %+v after %v", selector, a, time.Since(begin))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			raw, err := r.Local("").Call(ctx, nameCall, json.RawMessage(`{"id":"mcp:stuck:x"}`))
			if err != nil {
				t.Fatal(err)
			}
			if a := decode(t, raw); a.status() != statusUnavailable {
				t.Errorf("tool_call of a server that does not come = %+v", a)
			}
		})
	}
}

func TestCall_Cancelled(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", "")}})
	ctx, cancel := context.WithCancel(context.Background())
	f.do = func(ctx context.Context, _ upstreams.Call) (*upstreams.Result, error) {
		cancel()
		<-ctx.Done()
		return nil, fmt.Errorf("%w: %w", upstreams.ErrUnavailable, ctx.Err())
	}
	r := newRig(t, f, rigOptions{})
	raw, err := r.Local("").Call(ctx, nameCall, json.RawMessage(`{"id":"t"}`))
	if err != nil {
		t.Fatal(err)
	}
	if a := decode(t, raw); a.status() != statusCancelled {
		t.Errorf("tool_call = %+v, want cancelled", a)
	}
}

// What goes down the chain.
func TestCall_CallOfTheChain(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", ""), tool("d", "", "")}, DirectOnly: []string{"d"}})
	r := newRig(t, f, rigOptions{profile: func(client string) (string, string, error) { return "", "tools", nil }})
	c := r.client(t)
	c.Initialize("somebody")
	c.Result("tools/call", `{"name":"tool_call","arguments":{"id":"t","args":{"n":9007199254740993}},"_meta":{"progressToken":9007199254740993,"trace":1.0}}`)
	c.Result("tools/call", `{"name":"s__t"}`)
	c.Result("tools/call", `{"name":"s__d","arguments":null,"task":{}}`)
	var got []string
	for _, call := range f.called() {
		got = append(got, fmt.Sprintf("%s %s %s %s client=%v from=%s", call.Tool.ID, call.Via, call.Args, call.Meta, call.Client != nil, call.From.Client))
	}
	want := []string{
		`mcp:s:t tool_call {"n":9007199254740993} {"trace":1.0} client=true from=somebody`,
		`mcp:s:t hydrated {}  client=false from=somebody`,
		`mcp:s:d direct {}  client=false from=somebody`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	ids := map[string]bool{}
	for _, call := range f.called() {
		ids[call.ID] = true
	}
	if len(ids) != 3 {
		t.Errorf("call ids = %v, want three", ids)
	}
}

func TestRouter_PanicCostsOneRequest(t *testing.T) {
	f := newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("t", "", "")}})
	f.do = func(context.Context, upstreams.Call) (*upstreams.Result, error) { panic("boom") }
	r := newRig(t, f, rigOptions{})
	_, err := r.Local("").Call(context.Background(), "s__t", nil)
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternalError {
		t.Errorf("Call = %v, want an internal error", err)
	}
}
