package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
)

const echoSchema = `{"type":"object","properties":{"text":{"type":"string"}}}`

// TestFaults: whatever one server does, the other one answers, a search says
// what is wrong, and nothing is left running.
func TestFaults(t *testing.T) {
	pick := mcptest.Tool("pick_apples", "Pick apples in the orchard", echoSchema)
	rpcError := mcptest.Answer{Error: json.RawMessage(`{"code":-32603,"message":"the orchard is closed"}`)}
	tests := []struct {
		name   string
		script mcptest.Script
		config object // more keys of the bad server
		then   func(*testing.T, *proxy)
	}{
		{"noise on stdout", mcptest.Script{Tools: []json.RawMessage{pick}, NoiseBefore: []string{"Starting…", `{"not":"rpc"}`}, NoiseBetween: []string{"between"}, NoiseAfter: []string{"[]"}}, nil, picks},
		{"2 MB line of noise", mcptest.Script{Tools: []json.RawMessage{pick}, NoiseBytes: 2 << 20}, nil, picks},
		{"2 MB result", mcptest.Script{Tools: []json.RawMessage{pick}, Answers: map[string]mcptest.Answer{"*": {Bytes: 2 << 20}}}, nil, func(t *testing.T, p *proxy) {
			r := callTool(t, p.Client, "tool_call", `{"id":"mcp:bad:pick_apples","args":{}}`)
			if len(r.text()) != 2<<20 {
				t.Errorf("result has %d characters, want %d", len(r.text()), 2<<20)
			}
		}},
		{"flood of stderr", mcptest.Script{Tools: []json.RawMessage{pick}, StderrBytes: 4 << 20}, nil, picks},
		{"never answers initialize", mcptest.Script{Methods: map[string]mcptest.Answer{"initialize": {Never: true}}}, object{"startTimeoutMs": 1000}, noted},
		{"exits at once", mcptest.Script{Exit: "start", ExitCode: 7}, nil, noted},
		{"exits after initialize", mcptest.Script{Exit: "initialized"}, nil, noted},
		{"tools/list is an error", mcptest.Script{Methods: map[string]mcptest.Answer{"tools/list": rpcError}}, nil, noted},
		{"program does not exist", mcptest.Script{}, object{"command": filepath.Join(t.TempDir(), "absent")}, noted},
		{"5,000 tools", mcptest.Script{Generate: 5000}, nil, func(t *testing.T, p *proxy) {
			hits, _ := search(t, p.Client, "update_invoice_4802", 1)
			if len(hits) != 1 || hits[0].ID != "mcp:bad:update_invoice_4802" {
				t.Errorf("search for a tool's name = %v, want that tool", hits)
			}
		}},
		{"cursor repeats for ever", mcptest.Script{Tools: []json.RawMessage{pick}, Cursor: "repeat"}, nil, picks},
		{"a fresh cursor for ever", mcptest.Script{Tools: []json.RawMessage{pick}, Cursor: "fresh"}, nil, picks},
		{"empty cursor", mcptest.Script{Tools: []json.RawMessage{pick}, Cursor: "empty"}, nil, picks},
		{"schemas that are none", mcptest.Script{Tools: []json.RawMessage{
			json.RawMessage(`{"name":"broken","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}}`),
			json.RawMessage(`{"name":"absent"}`),
			json.RawMessage(`{"name":"typeless","inputSchema":{"properties":{"a":true}}}`),
			json.RawMessage(`{"name":"number","inputSchema":7}`),
			json.RawMessage(`{"name":12}`),
			json.RawMessage(`"no tool"`),
			pick,
		}}, nil, func(t *testing.T, p *proxy) {
			picks(t, p)
			for _, name := range []string{"broken", "absent", "typeless"} {
				r := callTool(t, p.Client, "tool_call", object{"id": "mcp:bad:" + name, "args": object{"a": 1}})
				contains(t, "call of "+name, r.text(), `"arguments":{"a":1}`)
			}
		}},
		{"names that are awkward", mcptest.Script{Tools: []json.RawMessage{
			mcptest.Tool("repos/delete", "", echoSchema), mcptest.Tool("tool_call", "", echoSchema),
			mcptest.Tool("a__b", "", echoSchema), mcptest.Tool(strings.Repeat("long_", 30), "", echoSchema),
		}}, nil, func(t *testing.T, p *proxy) {
			for _, name := range []string{"repos/delete", "tool_call", "a__b", strings.Repeat("long_", 30)} {
				hits, _ := search(t, p.Client, name, 1)
				if len(hits) != 1 || hits[0].ID != "mcp:bad:"+name {
					t.Errorf("search for %q = %v, want that tool", name, hits)
					continue
				}
				for _, selector := range []string{hits[0].ID, hits[0].Name} {
					r := callTool(t, p.Client, "tool_call", object{"id": selector, "args": object{"text": "x"}})
					contains(t, "call of "+selector, r.text(), mustJSON(t, name), `"server":"fake"`)
				}
			}
		}},
		{"dies in the middle of a call", mcptest.Script{Tools: []json.RawMessage{pick, mcptest.Tool("die", "", echoSchema)}, Answers: map[string]mcptest.Answer{"die": {Die: true}}}, nil, func(t *testing.T, p *proxy) {
			picks(t, p)
			r := callTool(t, p.Client, "tool_call", `{"id":"mcp:bad:die","args":{}}`)
			if !r.IsError || r.Meta.Call.Status == "" {
				t.Errorf("a call that kills the server = %s, want an error with a status", r.raw)
			}
			picks(t, p) // it is started again
		}},
		{"answers after we gave up", mcptest.Script{Tools: []json.RawMessage{pick, mcptest.Tool("late", "", echoSchema)}, Answers: map[string]mcptest.Answer{"late": {Delay: 700 * time.Millisecond, Late: true}}}, object{"callTimeoutMs": 300}, func(t *testing.T, p *proxy) {
			if r := callTool(t, p.Client, "tool_call", `{"id":"mcp:bad:late","args":{}}`); r.Meta.Call.Status != "timed_out" {
				t.Errorf("a late call = %s, want status timed_out", r.raw)
			}
			picks(t, p)
		}},
		{"list changes with a notification", mcptest.Script{Tools: []json.RawMessage{mcptest.Tool("grow", "", echoSchema)}, Answers: map[string]mcptest.Answer{"grow": {Tools: []json.RawMessage{pick}, Notify: true}}}, nil, grows},
		{"list changes in silence", mcptest.Script{Tools: []json.RawMessage{mcptest.Tool("grow", "", echoSchema)}, Answers: map[string]mcptest.Answer{"grow": {Tools: []json.RawMessage{pick}}}}, nil, func(t *testing.T, p *proxy) {
			callTool(t, p.Client, "tool_call", `{"id":"mcp:bad:grow","args":{}}`)
			// It is unknown to the server now, which makes us list again.
			callTool(t, p.Client, "tool_call", `{"id":"mcp:bad:grow","args":{}}`)
			awaitHit(t, p, "pick_apples", "mcp:bad:pick_apples")
		}},
		{"ignores stdin's end and SIGTERM, with a child that does too", mcptest.Script{Tools: []json.RawMessage{pick}, Stubborn: true}, nil, picks},
		{"asks us what nobody knows", mcptest.Script{Tools: []json.RawMessage{pick}, Unasked: []json.RawMessage{
			json.RawMessage(`{"jsonrpc":"2.0","id":"q1","method":"log","params":{}}`),
			json.RawMessage(`{"jsonrpc":"2.0","id":"q2","method":"roots/list"}`),
			json.RawMessage(`{"jsonrpc":"2.0","id":99,"result":{}}`),
			json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/odd","params":{"a":[1]}}`),
		}}, nil, picks},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pidFile := filepath.Join(t.TempDir(), "pids")
			test.script.PIDFile = pidFile
			bad := fake(t, test.script)
			maps.Copy(bad, test.config)
			good := fake(t, mcptest.Script{Name: "good", PIDFile: pidFile, Tools: []json.RawMessage{mcptest.Tool("water_plants", "Water the plants in the greenhouse", echoSchema)}})
			p := newHome(t, object{"bad": bad, "good": good}, object{"toolSearch": object{"mode": "tools"}}).connect()

			r := callTool(t, p.Client, "tool_call", `{"id":"mcp:good:water_plants","args":{"text":"first"}}`)
			contains(t, "call of the other server", r.text(), `"server":"good"`, `"text":"first"`)
			test.then(t, p)
			r = callTool(t, p.Client, "tool_call", `{"id":"mcp:good:water_plants","args":{"text":"last"}}`)
			contains(t, "call of the other server", r.text(), `"server":"good"`, `"text":"last"`)

			pids := mcptest.PIDs(t, pidFile, 1)
			_ = p.Close()
			p.AwaitEnd()
			mcptest.Gone(t, 10*time.Second, append(pids, p.cmd.Process.Pid)...)
		})
	}
}

// picks calls the bad server's tool and wants its answer.
func picks(t *testing.T, p *proxy) {
	t.Helper()
	r := callTool(t, p.Client, "tool_call", `{"id":"mcp:bad:pick_apples","args":{"text":"x"}}`)
	contains(t, "call of pick_apples", r.text(), `"tool":"pick_apples"`, `"text":"x"`)
}

// noted wants a search to say that the bad server is in trouble, and a call to
// it to be unavailable.
func noted(t *testing.T, p *proxy) {
	t.Helper()
	_, note := search(t, p.Client, "apples", 3)
	contains(t, "note of a search", note, "bad")
}

// grows calls the tool that changes the list.
func grows(t *testing.T, p *proxy) {
	t.Helper()
	callTool(t, p.Client, "tool_call", `{"id":"mcp:bad:grow","args":{}}`)
	awaitHit(t, p, "pick_apples", "mcp:bad:pick_apples")
}

// awaitHit searches until the first hit is the wanted one: a change of a list
// arrives a little after the call that made it.
func awaitHit(t *testing.T, p *proxy, query, id string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		hits, _ := search(t, p.Client, query, 1)
		if len(hits) == 1 && hits[0].ID == id {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("search %q = %v, want %s", query, hits, id)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestKill: nothing survives us, however we end.
func TestKill(t *testing.T) {
	for name, end := range map[string]func(*proxy){
		"stdin closed": func(p *proxy) { _ = p.Close() },
		"SIGTERM":      func(p *proxy) { terminate(p.cmd.Process) },
		"kill -9":      func(p *proxy) { _ = p.cmd.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, pids := stubbornTree(t)
			end(p)
			p.AwaitEnd()
			mcptest.Gone(t, 10*time.Second, append(pids, p.cmd.Process.Pid)...)
		})
	}
}

// stubbornTree starts the program with three servers, two of them stubborn
// with a stubborn child each, and returns all their process ids.
func stubbornTree(t testing.TB) (*proxy, []int) {
	t.Helper()
	pidFile := filepath.Join(t.TempDir(), "pids")
	servers := object{}
	for i := range 3 {
		servers[fmt.Sprintf("s%d", i)] = fake(t, mcptest.Script{
			Name: fmt.Sprintf("s%d", i), Stubborn: i > 0, PIDFile: pidFile,
			Tools: []json.RawMessage{mcptest.Tool("ping", "", echoSchema)},
		})
	}
	p := newHome(t, servers, object{"toolSearch": object{"mode": "tools"}}).connect()
	for i := range 3 {
		callTool(t, p.Client, "tool_call", object{"id": fmt.Sprintf("mcp:s%d:ping", i), "args": object{}})
	}
	return p, mcptest.PIDs(t, pidFile, 5)
}
