package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
)

// The tool that the scripted model is to find: number 17 of 36.
const (
	gatewayServer = "gateway"
	gatewayTarget = "fake_tool_17"
	gatewayID     = "mcp:" + gatewayServer + ":" + gatewayTarget
	gatewayName   = gatewayServer + "__" + gatewayTarget
	gatewayMarker = "marker-4711"
)

var fakeTrades = []string{
	"orders for the bakery", "seats on the night train", "lessons at the music school", "boats in the harbour",
	"beds of the hospital ward", "pages of the town archive", "lamps along the canal", "bees of the rooftop hives",
	"stalls of the flower market", "parcels in the sorting hall", "rooms of the mountain hut", "plots in the allotment",
}

// fakeTools makes n tools with descriptions of the usual length and one
// required string each. Number 17 is about parcels that were sent back.
func fakeTools(n int) []json.RawMessage {
	tools := make([]json.RawMessage, n)
	for i := range tools {
		about := fmt.Sprintf("Keeps the list of %s, division %d: shows what is booked, who asked for it and until when, and takes in one new entry.", fakeTrades[i%len(fakeTrades)], i+1)
		if i+1 == 17 {
			about = "Registers a returned parcel: writes down the marker on its label and tells the depot that it has come back from the customer."
		}
		tools[i] = mcptest.Tool(fmt.Sprintf("fake_tool_%02d", i+1),
			about+" Every entry carries a marker, which is a short text without blanks and is checked against the book of markers before anything is written.",
			`{"type":"object","properties":{"marker":{"type":"string","description":"The marker of the entry"}},"required":["marker"],"additionalProperties":false}`)
	}
	return tools
}

// lane is one run of the scripted model in one mode.
type lane struct {
	mode     string
	tools    []string // names in tools/list
	schema   bool     // tools/list holds the target's schema
	list     int      // bytes of tools/list
	first    int      // bytes of the model's first request
	sum      int      // bytes of all its requests until the task is done
	requests int
}

// TestToolSearchGateway is the proof that tool search works and saves: a
// scripted client plays the model, in each mode, with 36 tools, with 500, and
// with those of 49 real servers.
func TestToolSearchGateway(t *testing.T) {
	sets := []struct {
		name    string
		servers func(*testing.T) (servers object, catalog int)
	}{
		{"36 tools", func(t *testing.T) (object, int) {
			return object{gatewayServer: fake(t, mcptest.Script{Name: gatewayServer, Tools: fakeTools(36)})}, 36
		}},
		{"500 tools", func(t *testing.T) (object, int) {
			return object{gatewayServer: fake(t, mcptest.Script{Name: gatewayServer, Tools: fakeTools(500)})}, 500
		}},
		{"real catalogs", func(t *testing.T) (object, int) {
			catalogs, servers := playCatalogs(t, nil)
			servers[gatewayServer] = fake(t, mcptest.Script{Name: gatewayServer, Tools: fakeTools(36)})
			n := 36 - 2 // two tools of these servers are not for models
			for _, c := range catalogs {
				n += len(c.Tools)
			}
			return servers, n
		}},
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "tools\tmode\tlisted\ttools/list\tfirst request\tall requests\tturns\t")
	for _, set := range sets {
		t.Run(set.name, func(t *testing.T) {
			servers, size := set.servers(t)
			records := filepath.Join(t.TempDir(), "telemetry.jsonl")
			h := newHome(t, servers, object{"telemetry": object{"log": records}})
			if r := h.check(); !r.OK { // fills the cache, so that each lane begins alike
				t.Fatalf("check = %+v", r)
			}
			direct := h.playLane(t, "off", size, records)
			if !direct.schema {
				t.Errorf("direct mode does not list the schema of %s", gatewayTarget)
			}
			lanes := []*lane{direct}
			for _, mode := range []string{"tools", "directory", "code"} {
				l := h.playLane(t, mode, size, records)
				lanes = append(lanes, l)
				if l.schema {
					t.Errorf("%s: tools/list holds the schema of %s", mode, gatewayTarget)
				}
				if want := controlTools(mode); !slices.Equal(l.tools, want) {
					t.Errorf("%s: tools/list = %v, want %v", mode, l.tools, want)
				}
				if l.first >= direct.first || l.sum >= direct.sum {
					t.Errorf("%s: first request %d bytes, all %d; want less than %d and %d of direct mode", mode, l.first, l.sum, direct.first, direct.sum)
				}
			}
			for _, l := range lanes {
				fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\t%d\t%d\t\n", size, l.mode, len(l.tools), l.list, l.first, l.sum, l.requests)
			}
		})
	}
	_ = w.Flush()
	t.Logf("bytes; a token is about four of them\n%s", table.String())
}

func controlTools(mode string) []string {
	if mode == "code" {
		return []string{"tool_search_code"}
	}
	return []string{"tool_call", "tool_describe", "tool_search"}
}

// playLane lets the model do its task in one mode: register a returned parcel.
func (h *home) playLane(t *testing.T, mode string, size int, records string) *lane {
	t.Helper()
	m := h.beginLane(t, mode, records)
	p := m.p
	l := &lane{mode: mode, list: len(m.list)}
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(m.list, &list); err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		l.tools = append(l.tools, tool.Name)
	}
	slices.Sort(l.tools)
	l.schema = bytes.Contains(m.list, []byte(gatewayTarget)) && bytes.Contains(m.list, []byte(`"marker"`))

	args := object{"marker": gatewayMarker}
	var answer, via string
	switch mode {
	case "off":
		via = "direct"
		answer = m.call(gatewayName, args).text()
	case "code":
		via = "code"
		answer = string(m.call("tool_search_code", object{"code": `const hits = await openclaw.tools.search("register a returned parcel");
const tool = await openclaw.tools.describe(hits[0].id);
return await openclaw.tools.call(tool.id, {marker: "` + gatewayMarker + `"});`}).raw)
	default:
		via = "tool_call"
		hits := []hit{}
		found := m.call("tool_search", object{"query": "register a returned parcel"}).text()
		if err := json.Unmarshal([]byte(found), &hits); err != nil || len(hits) == 0 || hits[0].ID != gatewayID {
			t.Fatalf("%s: tool_search = %.300s: %v, want %s first", mode, found, err, gatewayID)
		}
		contains(t, "tool_describe", m.call("tool_describe", object{"id": hits[0].ID}).text(), `"marker"`)
		answer = m.call("tool_call", object{"id": hits[0].ID, "args": args}).text()
	}
	contains(t, mode+": answer of the target", strings.ReplaceAll(answer, `\`, ""), `"tool":"`+gatewayTarget+`"`, gatewayMarker)
	l.first, l.sum, l.requests = m.first, m.sum, m.requests

	_ = p.Close()
	p.AwaitEnd()
	h.checkRecords(t, mode, via, size, len(l.tools), records)
	return l
}

// beginLane starts the program with an empty telemetry file.
func (h *home) beginLane(t *testing.T, mode, records string) *model {
	t.Helper()
	for range sandboxTries {
		if err := os.WriteFile(records, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		m := &model{t: t, p: h.serve("--mode", mode)}
		m.begin()
		if mode != "code" || bytes.Contains(m.list, []byte("tool_search_code")) {
			return m
		}
		_ = m.p.Close()
		m.p.AwaitEnd()
	}
	t.Fatalf("code mode fell back to tools mode %d times", sandboxTries)
	return nil
}

// model counts what a model would be sent: with every request the whole
// conversation so far, and the tools.
type model struct {
	t    *testing.T
	p    *proxy
	list json.RawMessage

	request              map[string]any
	first, sum, requests int
}

func (m *model) begin() {
	var init struct{ Instructions string }
	if err := json.Unmarshal(m.p.Initialize("gateway-proof"), &init); err != nil {
		m.t.Fatal(err)
	}
	m.list = m.p.Result("tools/list", "")
	var list struct{ Tools json.RawMessage }
	if err := json.Unmarshal(m.list, &list); err != nil {
		m.t.Fatal(err)
	}
	m.request = map[string]any{
		"model": "scripted", "system": init.Instructions, "tools": list.Tools,
		"messages": []any{object{"role": "user", "content": "A customer sent a parcel back. Register it; its marker is " + gatewayMarker + "."}},
	}
	m.send()
	m.first = m.sum
}

func (m *model) send() {
	m.requests++
	m.sum += len(mustJSON(m.t, m.request))
}

// call lets the model make a call and see the answer.
func (m *model) call(name string, args object) *toolResult {
	m.t.Helper()
	r := callTool(m.t, m.p.Client, name, args)
	if r.IsError {
		m.t.Fatalf("%s %v: %s", name, args, r.text())
	}
	var content struct{ Content json.RawMessage }
	if err := json.Unmarshal(r.raw, &content); err != nil {
		m.t.Fatal(err)
	}
	m.request["messages"] = append(m.request["messages"].([]any),
		object{"role": "assistant", "tool_call": object{"name": name, "arguments": args}},
		object{"role": "tool", "content": content.Content})
	m.send()
	return r
}

// checkRecords wants the telemetry to answer: how many schemas were seen at
// first, what was searched and described, what was called and where it ran.
func (h *home) checkRecords(t *testing.T, mode, via string, size, tools int, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte(gatewayMarker)) || bytes.Contains(b, []byte("returned parcel")) {
		t.Errorf("%s: telemetry holds arguments or queries:\n%s", mode, b)
	}
	type record struct {
		Kind, Session, Client, Mode         string
		CatalogSize, ToolsListed            int
		ToolsListBytes, DirectBytes         int
		ID, Source, SourceName, Status, Via string
		Parent                              string
	}
	byKind := map[string][]record{}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		var r record
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatalf("telemetry: %s: %v", s.Bytes(), err)
		}
		byKind[r.Kind] = append(byKind[r.Kind], r)
	}
	counts := map[string]int{}
	for kind, all := range byKind {
		counts[kind] = len(all)
	}
	lookups := 1
	if mode == "off" {
		lookups = 0
	}
	if counts["search"] != lookups || counts["describe"] != lookups || counts["call"] != 1 || counts["session"] == 0 {
		t.Errorf("%s: telemetry counts %v, want %d search, %d describe, 1 call and a session\n%s", mode, counts, lookups, lookups, b)
		return
	}
	s := byKind["session"][0]
	if s.Mode != mode || s.CatalogSize != size || s.ToolsListed != tools || s.Client != "gateway-proof" || mode != "off" && s.ToolsListBytes >= s.DirectBytes {
		t.Errorf("%s: session record %+v, want %d tools in the catalog, %d listed and fewer bytes than directly", mode, s, size, tools)
	}
	c := byKind["call"][0]
	if c.ID != gatewayID || c.Source != "mcp" || c.SourceName != gatewayServer || c.Status != "" || c.Via != via || (c.Parent != "") != (mode == "code") {
		t.Errorf("%s: call record %+v, want %s of server %s via %s", mode, c, gatewayID, gatewayServer, via)
	}
}
