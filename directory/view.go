package directory

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// View is everything one profile can see, immutable.
type View struct {
	tools   []*upstreams.Tool
	direct  []*upstreams.Tool
	servers []upstreams.ServerInfo
	known   map[string]int // number of catalog tools by configured server name

	catalog *catalog
	hits    *hitCache
	index   *build
}

// hitCache keeps the hits that were made: their signatures cost a walk
// through the schemas.
type hitCache struct{ byTool sync.Map } // *upstreams.Tool → Hit

// newView filters a snapshot; catalog, hits and index are the caller's part.
func newView(profile string, rules Rules, s *upstreams.Snapshot) *View {
	v := &View{known: make(map[string]int)}
	visible := rules.Filter(profile, s.Tools)
	v.tools = make([]*upstreams.Tool, 0, len(visible))
	sees := make(map[string]bool)
	for _, t := range visible {
		switch {
		case t.Hidden != "":
			continue
		case t.DirectOnly:
			v.direct = append(v.direct, t)
		default:
			v.tools = append(v.tools, t)
			v.known[t.Server]++
		}
		sees[t.Server] = true
	}
	has := make(map[string]bool)
	for _, t := range s.Tools {
		has[t.Server] = true
	}
	for _, info := range s.Servers {
		if sees[info.Name] || !has[info.Name] && rules.SeesServer(profile, info.Safe) {
			v.servers = append(v.servers, info)
		}
	}
	return v
}

// seen returns all tools that a selector may name.
func (v *View) seen() []*upstreams.Tool {
	if len(v.direct) == 0 {
		return v.tools
	}
	return slices.Concat(v.tools, v.direct)
}

// Tools returns the catalog, sorted by ID. The slice must not be changed.
func (v *View) Tools() []*upstreams.Tool { return v.tools }

// Direct returns the direct-only tools, sorted by ID. The slice must not be changed.
func (v *View) Direct() []*upstreams.Tool { return v.direct }

// Servers returns the servers that may be named to this caller, sorted by
// name: those of which it sees a tool, and those whose tools are not known
// unless the rules deny them all.
func (v *View) Servers() []upstreams.ServerInfo { return v.servers }

// Resolve finds the one tool that a selector names (contract 2), direct-only
// tools included. Never fuzzy. The error is a *ResolveError.
func (v *View) Resolve(selector string) (*upstreams.Tool, error) {
	return v.catalog.resolve(selector)
}

// Search returns at most limit hits for a query, best first. Any text is a
// valid query. It waits for the index until ctx ends.
func (v *View) Search(ctx context.Context, query string, limit int) ([]Hit, error) {
	hits := []Hit{}
	if limit <= 0 || len(v.tools) == 0 {
		return hits, nil
	}
	b, err := v.index.wait(ctx)
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(b) // its ranker is released with it
	extra := 0
	if b != v.index { // made for a newer list: ask for as many more as we may drop
		for _, t := range b.tools {
			if !v.holds(t) {
				extra++
			}
		}
	}
	found, err := b.ranker.search(ctx, query, limit+extra)
	if err != nil {
		return nil, err
	}
	for _, s := range found {
		if t := v.catalog.ids[s.tool.ID]; v.holds(t) && len(hits) < limit {
			hits = append(hits, v.hits.get(t))
		}
	}
	return hits, nil
}

// holds tells whether the catalog has a tool with the ID of t.
func (v *View) holds(t *upstreams.Tool) bool {
	if t == nil {
		return false
	}
	own := v.catalog.ids[t.ID]
	return own != nil && !own.DirectOnly
}

// NearServers names servers whose own words match the query although none of
// their tools was hit, at most 3, for the note of an empty search. It does
// not wait: while the index is not ready there are none.
func (v *View) NearServers(query string) []string {
	b := v.index.ready()
	if b == nil {
		return nil
	}
	defer runtime.KeepAlive(b)
	var names []string
	for _, name := range b.ranker.nearServers(query) {
		if slices.ContainsFunc(v.servers, func(s upstreams.ServerInfo) bool { return s.Name == name }) {
			names = append(names, name)
		}
	}
	return names
}

// Hit returns NewHit(t), made once a tool.
func (v *View) Hit(t *upstreams.Tool) Hit { return v.hits.get(t) }

func (c *hitCache) get(t *upstreams.Tool) Hit {
	if h, ok := c.byTool.Load(t); ok {
		return h.(Hit)
	}
	h := NewHit(t)
	c.byTool.Store(t, h)
	return h
}
