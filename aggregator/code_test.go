package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// engineFunc is a CodeRunner that is one function.
type engineFunc func(context.Context, codebridge.Program, codebridge.Host) (*codebridge.Result, error)

func (f engineFunc) Run(ctx context.Context, p codebridge.Program, h codebridge.Host) (*codebridge.Result, error) {
	return f(ctx, p, h)
}

// withHost runs f with the Host that a script would get.
func withHost(t *testing.T, servers *fakeServers, f func(ctx context.Context, h codebridge.Host)) {
	t.Helper()
	ran := false
	r := newRig(t, servers, rigOptions{engine: engineFunc(func(ctx context.Context, _ codebridge.Program, h codebridge.Host) (*codebridge.Result, error) {
		f(ctx, h)
		ran = true
		return &codebridge.Result{}, nil
	})})
	r.local(t, nameCode, `{"code":"x"}`)
	if !ran {
		t.Fatal("the program did not run")
	}
}

func calendar() fakeServer {
	return fakeServer{Name: "calendar", Tools: []json.RawMessage{
		tool("create_event", "Create an event in a calendar.", `{"type":"object","properties":{"title":{"type":"string"}}}`),
		tool("fail", "Always fails.", ""),
		tool("shot", "Picture.", ""),
		tool("rows", "Rows.", ""),
	}, DirectOnly: []string{"shot"}, Answers: map[string]fakeOutcome{
		"fail": {Result: json.RawMessage(`{"isError":true,"content":[{"type":"text","text":"one"},{"type":"image","data":"","mimeType":"image/png"},{"type":"text","text":"two"}],"structuredContent":{"code":"X"}}`)},
		"rows": {Result: json.RawMessage(`{"content":[],"structuredContent":{"n":9007199254740993}}`)},
	}}
}

func TestHost_Functions(t *testing.T) {
	const hit = `{"id":"mcp:calendar:create_event","source":"mcp","sourceName":"calendar","name":"calendar__create_event","description":"d","input":"{}"}`
	const called = `{"tool":{"id":"mcp:calendar:create_event","name":"calendar__create_event","source":"mcp"},"result":{"content":[{"type":"text","text":"{\"title\":\"tea\"}"}]}}`
	tests := []struct{ fn, args, want string }{ // want is a part of the answer, or "code: part of the message"
		{"search", `["create event"]`, `[{"id":"mcp:calendar:create_event"`},
		{"search", `["create event",{"limit":1}]`, `[{"id":"mcp:calendar:create_event"`},
		{"search", `["create event",1]`, `[{"id":"mcp:calendar:create_event"`},
		{"search", `["create event",null]`, `[{"id":"mcp:calendar:create_event"`},
		{"search", `[{"query":"create event","limit":1}]`, `[{"id":"mcp:calendar:create_event"`},
		{"search", `[{"queries":["create event","zzz"]}]`, `{"results":[{"query":"create event","candidates":[{"id":"mcp:calendar:create_event"`},
		{"search", `["zzzz"]`, `[]`},
		{"search", `[]`, `invalid_arguments: openclaw.tools.search(`},
		{"search", `["x",{"limit":1.5}]`, `invalid_arguments: openclaw.tools.search("what the tool should do", {limit: 5}): limit must be a whole number`},
		{"describe", `["create_event"]`, `{"id":"mcp:calendar:create_event"`},
		{"describe", `[` + hit + `]`, `{"id":"mcp:calendar:create_event"`},
		{"describe", `["create_event","/parameters/properties"]`, `{"id":"mcp:calendar:create_event","path":"/parameters/properties","value":{"title":`},
		{"describe", `["create_event",{"path":"/parameters/properties"}]`, `{"id":"mcp:calendar:create_event","path":"/parameters/properties","value":{"title":`},
		{"describe", `["nothing"]`, `unknown_tool: there is no tool "nothing"; find it first: await openclaw.tools.search("nothing")`},
		{"describe", `[]`, `invalid_arguments: openclaw.tools.describe(id) needs`},
		{"call", `["create_event",{"title":"tea"}]`, called},
		{"call", `[` + hit + `,{"title":"tea"}]`, called},
		{"call", `[{"id":"create_event","args":{"title":"tea"}}]`, called},
		{"call", `[{"id":"create_event","title":"tea"}]`, called},
		{"call", `["create_event","{\"title\":\"tea\"}"]`, called},
		{"call", `[{"id":"create_event"},{"title":"tea"}]`, called},
		{"call", `["create_event"]`, `{"tool":`},
		{"call", `["create_event",null]`, `{"tool":`},
		{"call", `["nothing",{}]`, `unknown_tool: there is no tool "nothing"`},
		{"call", `["shot",{}]`, `unknown_tool: mcp:calendar:shot is not in the catalog: it is listed as calendar__shot, call it directly`},
		{"call", `["create_event",{"title":5}]`, `invalid_arguments: the arguments do not fit mcp:calendar:create_event`},
		{"call", `["create_event",[1]]`, `invalid_arguments: args must be an object, got an array; send await openclaw.tools.call("mcp:calendar:create_event", args)`},
		{"call", `[]`, `invalid_arguments: openclaw.tools.call needs the id of a tool`},
		{"call", `["fail",{}]`, "failed: one\ntwo"},
		{"call", `["tool_search",{"query":"x"}]`, "invalid_arguments: tool_search is not called through openclaw.tools.call, use openclaw.tools.search itself"},
		{"call", `["rows",{}]`, `{"tool":{"id":"mcp:calendar:rows","name":"calendar__rows","source":"mcp"},"result":{"content":[],"structuredContent":{"n":9007199254740993}}}`},
		{"other", `[]`, `error: unknown function "other"`},
	}
	withHost(t, newFakeServers(calendar()), func(ctx context.Context, h codebridge.Host) {
		for _, tt := range tests {
			raw, err := h.Call(ctx, &codebridge.Call{Fn: tt.fn, Args: json.RawMessage(tt.args)})
			got := string(raw)
			var toolErr *codebridge.ToolError
			switch {
			case errors.As(err, &toolErr):
				got = toolErr.Code + ": " + toolErr.Message
			case err != nil:
				got = "error: " + err.Error()
			}
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s%s = %s, want %s", tt.fn, tt.args, got, tt.want)
			}
		}
		_, err := h.Call(ctx, &codebridge.Call{Fn: "call", Args: json.RawMessage(`["fail",{}]`)})
		var toolErr *codebridge.ToolError
		if !errors.As(err, &toolErr) || string(toolErr.Tool) != `{"id":"mcp:calendar:fail","name":"calendar__fail","source":"mcp"}` || !strings.Contains(string(toolErr.Result), `"structuredContent":{"code":"X"}`) {
			t.Errorf("the error of a failed tool = %+v, want its tool and result", toolErr)
		}
	})
}

// Calls of one script to one server run one after the other, unless its
// configuration allows them side by side.
func TestHost_Lane(t *testing.T) {
	parallel := fakeServer{Name: "fast", Parallel: true, Tools: []json.RawMessage{tool("go", "", "")}}
	starting := fakeServer{Name: "slow", State: upstreams.Starting}
	withHost(t, newFakeServers(calendar(), parallel, starting), func(_ context.Context, h codebridge.Host) {
		for _, tt := range []struct{ fn, args, want string }{
			{"call", `["create_event",{}]`, "calendar"},
			{"call", `["mcp:calendar:fail"]`, "calendar"},
			{"call", `[{"id":"create_event","args":{}}]`, "calendar"},
			{"call", `[{"args":{"id":"create_event","args":{}}}]`, "calendar"},
			{"call", `["go",{}]`, ""},
			{"call", `["mcp:slow:x",{}]`, "slow"},
			{"call", `["nothing",{}]`, ""},
			{"call", `[]`, ""},
			{"search", `["create_event"]`, ""},
			{"describe", `["create_event"]`, ""},
		} {
			if got := h.Lane(tt.fn, json.RawMessage(tt.args)); got != tt.want {
				t.Errorf("Lane(%s%s) = %q, want %q", tt.fn, tt.args, got, tt.want)
			}
		}
	})
}

// A run sees the view of its start.
func TestHost_ViewOfTheStart(t *testing.T) {
	f := newFakeServers(calendar())
	withHost(t, f, func(ctx context.Context, h codebridge.Host) {
		next := calendar()
		next.Tools = []json.RawMessage{tool("newcomer", "Create an event.", "")}
		f.set(next)
		raw, err := h.Call(ctx, &codebridge.Call{Fn: "search", Args: json.RawMessage(`["newcomer"]`)})
		if err != nil || strings.Contains(string(raw), "newcomer") {
			t.Errorf("search = %s, %v, want nothing that came since", raw, err)
		}
		_, err = h.Call(ctx, &codebridge.Call{Fn: "call", Args: json.RawMessage(`["create_event",{}]`)})
		var toolErr *codebridge.ToolError
		if !errors.As(err, &toolErr) || toolErr.Code != statusUnavailable {
			t.Errorf("call of a tool that went = %v, want unavailable", err)
		}
	})
}

func TestCode_Answer(t *testing.T) {
	image := json.RawMessage(`{"type":"image","data":"aGk=","mimeType":"image/png"}`)
	tests := []struct {
		name string
		res  codebridge.Result
		want string
	}{
		{"value and blocks", codebridge.Result{Value: json.RawMessage(`{"n":9007199254740993}`), Logs: []string{"<a>"}, Blocks: []json.RawMessage{image}},
			`{"content":[{"type":"text","text":"{\"ok\":true,\"value\":{\"n\":9007199254740993},\"logs\":[\"<a>\"],\"telemetry\":TELEMETRY}"},` + string(image) + `]}`},
		{"nothing", codebridge.Result{},
			`{"content":[{"type":"text","text":"{\"ok\":true,\"value\":null,\"logs\":[],\"telemetry\":TELEMETRY}"}]}`},
		{"error", codebridge.Result{Value: json.RawMessage(`1`), Calls: []codebridge.CallRecord{{ID: "mcp:a:b", Status: "ok", Ms: 3}}, Error: &codebridge.Error{Kind: codebridge.Exception, Message: "m", Line: 2}},
			`{"content":[{"type":"text","text":"{\"ok\":false,\"error\":{\"kind\":\"exception\",\"message\":\"m\",\"line\":2},\"value\":1,\"logs\":[],\"calls\":[{\"id\":\"mcp:a:b\",\"status\":\"ok\",\"ms\":3}],\"telemetry\":TELEMETRY}"}],"isError":true}`},
		{"error without a value", codebridge.Result{Error: &codebridge.Error{Kind: codebridge.Timeout, Message: "m"}},
			`{"content":[{"type":"text","text":"{\"ok\":false,\"error\":{\"kind\":\"timeout\",\"message\":\"m\"},\"logs\":[],\"calls\":[],\"telemetry\":TELEMETRY}"}],"isError":true}`},
	}
	counts := `{\"catalogSize\":3,\"sources\":{\"client\":0,\"core\":0,\"mcp\":3},\"searchCount\":0,\"describeCount\":0,\"callCount\":0}`
	for _, tt := range tests {
		r := newRig(t, newFakeServers(calendar()), rigOptions{engine: engineFunc(func(context.Context, codebridge.Program, codebridge.Host) (*codebridge.Result, error) {
			return &tt.res, nil
		})})
		if got := string(r.local(t, nameCode, `{"code":"x"}`)); got != strings.Replace(tt.want, "TELEMETRY", counts, 1) {
			t.Errorf("%s: %s\nwant %s", tt.name, got, strings.Replace(tt.want, "TELEMETRY", counts, 1))
		}
	}
}

func TestCode_Input(t *testing.T) {
	r := newRig(t, newFakeServers(), rigOptions{})
	for args, want := range map[string]string{
		`{}`:            "code is missing or blank",
		`{"code":" "}`:  "code is missing or blank",
		`{"code":null}`: "code must be a string, got null",
		`{"code":[]}`:   "code must be a string, got an array",
		`[]`:            "must be an object",
		`{"code":"` + strings.Repeat("x", codebridge.MaxSourceBytes+1) + `"}`: "at most 65536",
	} {
		if a := decode(t, r.local(t, nameCode, args)); !a.IsError || !strings.Contains(a.text(), want) {
			t.Errorf("tool_search_code %.60s = %q, want an error with %q", args, a.text(), want)
		}
	}
}

// While a script runs, a client that gave a token hears of it every 5 s.
func TestCode_Beats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFakeServers(calendar()), rigOptions{engine: engineFunc(func(ctx context.Context, _ codebridge.Program, h codebridge.Host) (*codebridge.Result, error) {
			_, err := h.Call(ctx, &codebridge.Call{Fn: "call", Args: json.RawMessage(`["create_event",{}]`)})
			time.Sleep(12 * time.Second)
			return &codebridge.Result{}, err
		})})
		c := r.client(t)
		c.Initialize("t")
		c.Result(methodCallTool, `{"name":"tool_search_code","arguments":{"code":"x"}}`)
		c.Result(methodCallTool, `{"name":"tool_search_code","arguments":{"code":"x"},"_meta":{"progressToken":"p"}}`)
		time.Sleep(time.Minute)
		synctest.Wait()
		var got []string
		for _, m := range c.Messages() {
			if m.Method == methodProgress {
				got = append(got, string(m.Params))
			}
		}
		want := []string{
			`{"progress":1,"message":"script running for 5 s, 1 tool calls","progressToken":"p"}`,
			`{"progress":2,"message":"script running for 10 s, 1 tool calls","progressToken":"p"}`,
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("progress (-want +got):\n%s", d)
		}
		_ = c.Close()
	})
}

// records returns the telemetry records written, less their times and ids.
func records(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("record %s: %v", line, err)
		}
		for _, name := range []string{"time", "session", "ms", "bytes", "client"} {
			delete(m, name)
		}
		out = append(out, string(encode(m)))
	}
	return out
}

func TestTelemetry(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log.jsonl")
	log, err := telemetry.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	secret := "s3cr3t-FIVE"
	depot := fakeServer{Name: "depot", Tools: []json.RawMessage{tool("wipe", "Wipe.", "")}}
	f := newFakeServers(calendar(), depot)
	r := newRig(t, f, rigOptions{records: log, rules: policy.Rules{Deny: []string{"mcp:depot:*"}}})
	list(t, r)
	l := r.Local("")
	for _, call := range []struct{ name, args string }{
		{nameSearch, `{"query":"create event","limit":1}`},
		{nameDescribe, `{"id":"create_event"}`},
		{nameCall, `{"id":"create_event","args":{"title":"` + secret + `"}}`},
		{nameCall, `{"id":"fail","args":{}}`},
		{nameCall, `{"id":"depot__wipe","args":{}}`},
		{"calendar__create_event", `{}`},
		{"calendar__shot", `{}`},
		{nameCode, `{"code":"[[\"call\",\"create_event\",{\"title\":\"` + secret + `\"}]]"}`},
	} {
		if _, err := l.Call(context.Background(), call.name, json.RawMessage(call.args)); err != nil {
			t.Fatalf("%s %s: %v", call.name, call.args, err)
		}
	}
	got := records(t, file)
	if all := strings.Join(got, "\n"); strings.Contains(all, secret) || strings.Contains(all, "create event") {
		t.Errorf("the log holds arguments or queries:\n%s", all)
	}
	for i, line := range got { // the only number that is our own bookkeeping
		if _, after, ok := strings.Cut(line, `"parent":"`); ok && strings.HasPrefix(after, "call-") {
			got[i] = strings.Replace(line, after[:strings.IndexByte(after, '"')], "PARENT", 1)
		}
	}
	raw := json.RawMessage(`{"content":[{"type":"text","text":"{\"title\":\"s3cr3t-FIVE\"}"}]}`)
	created := func(via string, args, result int, more string) string {
		return fmt.Sprintf(`{"argumentBytes":%d,"id":"mcp:calendar:create_event","kind":"call"%s,"resultBytes":%d,"source":"mcp","sourceName":"calendar","via":%q}`, args, more, result, via)
	}
	want := []string{
		`{"catalogSize":3,"directBytes":` + fmt.Sprint(directBytes(slices.Concat(r.dir.View("").Tools(), r.dir.View("").Direct()))) +
			`,"instructionsBytes":` + fmt.Sprint(len(r.faceFor(faceKey{"", ModeCode}).instructions)) + `,"kind":"session","mode":"code","sources":{"client":0,"core":0,"mcp":3},"toolsListBytes":` + fmt.Sprint(len(list(t, r))) + `,"toolsListed":2}`,
		`{"hits":1,"kind":"search","queryLength":12}`,
		`{"id":"mcp:calendar:create_event","kind":"describe"}`,
		created("tool_call", len(`{"title":"s3cr3t-FIVE"}`), len(raw), ""),
		`{"argumentBytes":2,"id":"mcp:calendar:fail","kind":"call","resultBytes":` + fmt.Sprint(len(calendar().Answers["fail"].Result)) + `,"source":"mcp","sourceName":"calendar","status":"failed","via":"tool_call"}`,
		`{"id":"mcp:depot:wipe","kind":"block","layer":"policy","reason":"hidden from this caller"}`,
		created("hydrated", 2, len(textResult("{}")), ""),
		`{"argumentBytes":2,"id":"mcp:calendar:shot","kind":"call","resultBytes":` + fmt.Sprint(len(textResult("{}"))) + `,"source":"mcp","sourceName":"calendar","via":"direct"}`,
		created("code", len(`{"title":"s3cr3t-FIVE"}`), len(raw), `,"parent":"PARENT"`),
		`{"calls":0,"kind":"code"}`,
	}
	// The last list wrote nothing: it was of another session of the same face.
	if n := len(got); n > len(want) {
		got = got[:len(want)]
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
}

func TestTelemetry_GateBlocks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log.jsonl")
	log, err := telemetry.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r := newRig(t, newFakeServers(calendar()), rigOptions{records: log})
	none, err := policy.Compile(policy.Rules{Deny: []string{"mcp:calendar:create_*"}})
	if err != nil {
		t.Fatal(err)
	}
	r.gate.Swap(none)
	r.local(t, nameCall, `{"id":"create_event"}`)
	got := records(t, file)
	if len(got) != 2 || !strings.Contains(got[0], `"kind":"block"`) || !strings.Contains(got[0], `deny mcp:calendar:create_*`) || !strings.Contains(got[1], `"status":"unknown_tool"`) {
		t.Errorf("records = %s, want a block with its rule and a call that is unknown", got)
	}
}

// "also a call to a tool that policy hides", whichever name it is called by.
func TestTelemetry_HiddenBlocks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log.jsonl")
	log, err := telemetry.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r := newRig(t, newFakeServers(calendar()), rigOptions{records: log, rules: policy.Rules{Deny: []string{"mcp:calendar:create_*"}}})
	selectors := []string{"mcp:calendar:create_event", "calendar__create_event", "mcp:calendar:calendar__create_event", " create_event ", "nowhere"}
	for _, selector := range selectors {
		r.local(t, nameCall, fmt.Sprintf(`{"id":%q}`, selector))
	}
	blocks := 0
	for _, line := range records(t, file) {
		if strings.Contains(line, `"kind":"block"`) && strings.Contains(line, `"id":"mcp:calendar:create_event"`) {
			blocks++
		}
	}
	if blocks != len(selectors)-1 {
		t.Errorf("%d blocks, want %d: one for each name of the hidden tool", blocks, len(selectors)-1)
	}
}

// The clock of a script rests while a call reports progress, until restTime
// has passed without any.
func TestResting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resting, rests := 0, 0
		r := &restful{rest: func() func() {
			resting++
			rests++
			return func() { resting-- }
		}}
		at := func(d time.Duration, want int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			if resting != want {
				t.Errorf("%d rests, want %d", resting, want)
			}
		}
		at(0, 0)
		r.Progress(nil)
		at(restTime-time.Second, 1)
		r.Progress(nil)
		at(restTime-time.Second, 1)
		at(2*time.Second, 0)
		r.Progress(nil)
		at(time.Second, 1)
		r.end()
		at(0, 0)
		r.Progress(nil)
		at(restTime, 0)
		if rests != 2 {
			t.Errorf("%d rests in all, want 2", rests)
		}
	})
}

// What the log says that direct listing would cost is what off mode lists.
func TestTelemetry_DirectBytes(t *testing.T) {
	s := fakeServer{Name: "s", Tools: []json.RawMessage{tool("a", "d", `{"type":"object","properties":{}}`), tool("b c", "d", `{"type":"object","properties":{}}`)}}
	r := newRig(t, newFakeServers(s), rigOptions{settings: Settings{Mode: "off"}})
	if got, want := directBytes(r.dir.View("").Tools()), len(list(t, r)); got != want {
		t.Errorf("directBytes = %d, want %d", got, want)
	}
}
