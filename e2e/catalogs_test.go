package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
)

// catalog is what one real server answered to initialize and tools/list.
type catalog struct {
	Server, ProtocolVersion, Instructions string
	ServerInfo                            struct{ Title string }
	Tools                                 []json.RawMessage
}

// playCatalogs plays all catalogs of real servers in this one process, each
// at its own path over HTTP, and returns them with their configuration.
func playCatalogs(t testing.TB, extra object) (catalogs []catalog, servers object) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(needData(t, "catalogs"), "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no catalogs: %v", err)
	}
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	servers = object{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c catalog
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		s := mcptest.New(mcptest.Script{Name: c.Server, Title: c.ServerInfo.Title, Instructions: c.Instructions, Protocol: c.ProtocolVersion, Tools: c.Tools})
		t.Cleanup(s.Drop) // before srv.Close, which waits for streams
		mux.Handle("/"+c.Server, s)
		server := object{"url": srv.URL + "/" + c.Server, "transport": "http"}
		maps.Copy(server, extra)
		servers[c.Server] = server
		catalogs = append(catalogs, c)
	}
	return catalogs, servers
}

type checkReport struct {
	OK      bool
	Servers []struct {
		Name, State, Problem string
		Tools                int
	}
	Hidden []struct{ ID, Why string }
}

// check runs the command and returns its report.
func (h *home) check() checkReport {
	h.t.Helper()
	out, stderr, code := h.run("check", "--json")
	var r checkReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		h.t.Fatalf("check --json (exit %d) = %.500s: %v\n%s", code, out, err, stderr)
	}
	return r
}

// TestCatalogs: every tool of 49 real servers is counted by check, found by
// its name, described exactly, and reaches its server when called.
func TestCatalogs(t *testing.T) {
	catalogs, servers := playCatalogs(t, object{"validateArguments": "off"})
	h := newHome(t, servers, object{"toolSearch": object{"mode": "tools", "maxAnswerChars": 40000}})

	report := h.check()
	hidden := map[string]string{}
	for _, x := range report.Hidden {
		hidden[x.ID] = x.Why
	}
	counted := map[string]int{}
	for _, s := range report.Servers {
		counted[s.Name] = s.Tools
		if s.State != "ready" {
			t.Errorf("check: %s is %s: %s", s.Name, s.State, s.Problem)
		}
	}
	p := h.connect()
	total := 0
	for _, c := range catalogs {
		total += len(c.Tools)
		if counted[c.Server] != len(c.Tools) {
			t.Errorf("check counts %d tools of %s, want %d", counted[c.Server], c.Server, len(c.Tools))
		}
		for _, raw := range c.Tools {
			var tool struct {
				Name        string
				InputSchema json.RawMessage
			}
			if err := json.Unmarshal(raw, &tool); err != nil {
				t.Fatal(err)
			}
			id := "mcp:" + c.Server + ":" + tool.Name
			if hidden[id] != "" {
				delete(hidden, id)
				continue
			}
			tryTool(t, p, c.Server, id, tool.Name, tool.InputSchema)
		}
	}
	for id, why := range hidden {
		t.Errorf("check hides %s (%s), which no catalog has", id, why)
	}
	t.Logf("%d tools of %d servers, %d of them hidden", total, len(catalogs), len(report.Hidden))
}

func tryTool(t *testing.T, p *proxy, server, id, name string, schema json.RawMessage) {
	t.Helper()
	// Several servers may have the name: each must be among the hits.
	hits, _ := search(t, p.Client, name, 8)
	if !slices.ContainsFunc(hits, func(h hit) bool { return h.ID == id && h.SourceName == server }) {
		t.Errorf("search %q = %v, want %s among them", name, ids(hits), id)
		return
	}
	if base := hits[0].ID[strings.LastIndex(hits[0].ID, ":")+1:]; base != name {
		t.Errorf("search %q: first is %s, want a tool of that name", name, hits[0].ID)
	}

	r := callTool(t, p.Client, "tool_describe", object{"id": id})
	var d struct {
		Parameters json.RawMessage
		Truncated  []string
	}
	if err := json.Unmarshal([]byte(r.text()), &d); err != nil || r.IsError {
		t.Errorf("tool_describe %s = %.300s: %v", id, r.text(), err)
		return
	}
	if len(d.Truncated) == 0 {
		if diff := cmp.Diff(decode(t, schema), decode(t, d.Parameters)); diff != "" {
			t.Errorf("tool_describe %s: parameters (-want +got):\n%s", id, diff)
		}
	}

	// A parameter of the tool itself: some are named like our containers.
	parameter := "n"
	var s struct{ Properties map[string]any }
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Properties) > 0 {
		parameter = slices.Min(slices.Collect(maps.Keys(s.Properties)))
	}
	args := "{" + mustJSON(t, parameter) + ":12345678901234567890}" // the bytes that must arrive
	r = callTool(t, p.Client, "tool_call", object{"id": id, "args": json.RawMessage(args)})
	want := `{"server":` + mustJSON(t, server) + `,"tool":` + mustJSON(t, name) + `,"arguments":` + args + `}`
	if r.text() != want {
		t.Errorf("tool_call %s = %.300s, want %s", id, r.text(), want)
	}
}

func ids(hits []hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, h.ID)
	}
	return out
}

func decode(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%.200s: %v", raw, err)
	}
	return v
}
