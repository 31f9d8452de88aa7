package directory

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// View is everything one profile can see, immutable.
type View struct {
	tools   []*upstreams.Tool
	direct  []*upstreams.Tool
	servers []upstreams.ServerInfo
	known   map[string]int // number of catalog tools by configured server name

	catalog func() *catalog // made at its first use
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
	for tools := range byServer(visible) {
		server, first := tools[0].Server, len(v.tools)
		for _, t := range tools {
			switch {
			case t.Hidden != "":
				continue
			case t.DirectOnly:
				v.direct = append(v.direct, t)
			default:
				v.tools = append(v.tools, t)
			}
			sees[server] = true
		}
		v.known[server] += len(v.tools) - first
	}
	seen := make(map[*upstreams.Tool]bool, len(visible))
	for _, t := range visible {
		seen[t] = true
	}
	all := make(map[string][]*upstreams.Tool)
	for tools := range byServer(s.Tools) {
		all[tools[0].Server] = tools
	}
	for _, info := range s.Servers {
		tools := all[info.Name]
		if sees[info.Name] || tools == nil && rules.SeesServer(profile, info.Safe) {
			info.Instructions = withoutLines(info.Instructions, func(yield func(string) bool) {
				for _, t := range tools {
					if !seen[t] && !yield(t.Name) {
						return
					}
				}
			})
			v.servers = append(v.servers, info)
		}
	}
	return v
}

// withoutLines removes the lines of a text that have one of the names as a
// word of its own, or one of several words however it is written: what a
// caller may not see, the words of its server do not tell either.
func withoutLines(text string, names iter.Seq[string]) string {
	const long = 8 // letters of what nobody writes by chance
	plain := ""    // of text, once it is needed
	for name := range names {
		if name == "" || text == "" {
			continue
		}
		spelled := ""
		if looksLikeName(name) {
			spelled = string(plainName(nil, name))
		}
		tells := func(text, plain string) bool {
			return hasWord(text, name) || len(spelled) >= long && strings.Contains(plain, spelled)
		}
		if plain == "" {
			plain = string(plainName(nil, text))
		}
		if !tells(text, plain) {
			continue
		}
		var kept strings.Builder
		for line := range strings.Lines(text) {
			if !tells(line, string(plainName(nil, line))) {
				kept.WriteString(line)
			}
		}
		text, plain = kept.String(), ""
	}
	return text
}

func hasWord(text, word string) bool {
	within := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	for {
		before, after, ok := strings.Cut(text, word)
		if !ok {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !within(last) && !within(next) {
			return true
		}
		text = after
	}
}

// byServer yields the tools of one server after those of another; sorted
// by ID, they stand together.
func byServer(tools []*upstreams.Tool) iter.Seq[[]*upstreams.Tool] {
	return func(yield func([]*upstreams.Tool) bool) {
		for len(tools) > 0 {
			n := 1
			for n < len(tools) && tools[n].Server == tools[0].Server {
				n++
			}
			if !yield(tools[:n]) {
				return
			}
			tools = tools[n:]
		}
	}
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
	return v.catalog().resolve(selector)
}

// Search returns at most limit hits for a query, best first. Any text is a
// valid query. It waits for the index until ctx ends.
func (v *View) Search(ctx context.Context, query string, limit int) ([]Hit, error) {
	hits := []Hit{}
	if limit <= 0 || len(v.tools) == 0 {
		return hits, nil
	}
	ranker, err := v.index.wait(ctx)
	if err != nil {
		return nil, err
	}
	found, err := ranker.search(ctx, query, limit)
	runtime.KeepAlive(v.index) // the ranker is released with it
	if err != nil {
		return nil, err
	}
	for _, s := range found {
		hits = append(hits, v.hits.get(s.tool))
	}
	return hits, nil
}

// NearServers names servers whose own words match the query although none of
// their tools was hit, at most 3, for the note of an empty search. It does
// not wait: while the index is not ready there are none.
func (v *View) NearServers(query string) []string {
	ranker := v.index.ready()
	if ranker == nil {
		return nil
	}
	names := ranker.nearServers(query)
	runtime.KeepAlive(v.index)
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
