package directory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// fakeRules hides the tools whose id contains one of these texts.
type fakeRules struct{ hide []string }

func (r fakeRules) Filter(_ string, tools []*upstreams.Tool) []*upstreams.Tool {
	var kept []*upstreams.Tool
	for _, t := range tools {
		if t.Hidden == "" && !slices.ContainsFunc(r.hide, func(h string) bool { return strings.Contains(t.ID, h) }) {
			kept = append(kept, t)
		}
	}
	return kept
}

func (r fakeRules) SeesServer(_, safe string) bool { return !slices.Contains(r.hide, "mcp:"+safe+":") }

// fakeTool makes a tool of a server whose name is safe. Its full name is the
// plain one; tests that need another set it.
func fakeTool(server, name, description string) *upstreams.Tool {
	return &upstreams.Tool{
		Server: server, Safe: server, Name: name,
		ID: "mcp:" + server + ":" + name, FullName: server + "__" + name,
		Description: description, Trust: upstreams.TrustSchema,
	}
}

// fakeSource is a Source that tests can change.
type fakeSource struct {
	now atomic.Pointer[upstreams.Snapshot]
}

// set replaces the snapshot: these tools, and their servers.
func (s *fakeSource) set(tools ...*upstreams.Tool) {
	snapshot := &upstreams.Snapshot{Tools: slices.Clone(tools)}
	slices.SortFunc(snapshot.Tools, func(a, b *upstreams.Tool) int { return strings.Compare(a.ID, b.ID) })
	for _, t := range tools {
		if !slices.ContainsFunc(snapshot.Servers, func(i upstreams.ServerInfo) bool { return i.Name == t.Server }) {
			snapshot.Servers = append(snapshot.Servers, upstreams.ServerInfo{Name: t.Server, Safe: t.Safe, Known: true})
		}
	}
	slices.SortFunc(snapshot.Servers, func(a, b upstreams.ServerInfo) int { return strings.Compare(a.Name, b.Name) })
	s.now.Store(snapshot)
}

// fakeDirectory makes a directory that is closed at the end of the test.
func fakeDirectory(t testing.TB, rules Rules, tools ...*upstreams.Tool) (*Directory, *fakeSource) {
	t.Helper()
	source := &fakeSource{}
	source.set(tools...)
	d := New(Options{Source: source.now.Load, Rules: rules})
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return d, source
}

// fakeTools makes n tools on n/50 servers, with schemas.
func fakeTools(n int) []*upstreams.Tool {
	verbs := []string{"create", "delete", "list", "get", "update", "search", "export"}
	nouns := []string{"invoice", "customer", "shipment", "harbour_fee", "route", "container", "berth", "pilot", "manifest", "weather_report", "crew_list"}
	var tools []*upstreams.Tool
	for i := range n {
		verb, noun := verbs[i%len(verbs)], nouns[i/len(verbs)%len(nouns)]
		t := fakeTool(fmt.Sprintf("server%03d", i/50), fmt.Sprintf("%s_%s_%d", verb, noun, i), fmt.Sprintf("Use this to %s one %s of the port, number %d.", verb, noun, i))
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","description":"which one"},"limit":{"type":"integer","minimum":1},"state":{"enum":["open","closed"]}},"required":["id"]}`)
		tools = append(tools, t)
	}
	return tools
}
