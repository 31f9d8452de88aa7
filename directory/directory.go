// Package directory finds tools: names and selectors, signatures, search, and
// the short texts that tell a model what there is.
//
// It reads tools from package upstreams and is told by Rules what a profile
// may see. It calls nothing.
package directory

import (
	"context"
	"log/slog"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// Rules tell what callers with a profile may see; *policy.Policy is the one
// of the program.
type Rules interface {
	Filter(profile string, tools []*upstreams.Tool) []*upstreams.Tool
	SeesServer(profile, safe string) bool
}

// Options of New.
type Options struct {
	Source func() *upstreams.Snapshot // required; the same pointer while nothing changed
	Rules  Rules                      // required
	Logger *slog.Logger               // nil: silent
}

// Directory keeps one immutable View a profile.
type Directory struct{}

// New makes a directory. It builds nothing yet.
func New(Options) *Directory { panic("todo") }

// View returns what callers with this profile see now: never older than the
// Source at the time of the call. Names resolve at once; the search index is
// completed in the background, and Search waits for it.
func (d *Directory) View(profile string) *View { panic("todo") }

// Swap replaces the rules; views made before stay as they were.
func (d *Directory) Swap(Rules) { panic("todo") }

// Close releases the indexes. Views must not be searched after it.
func (d *Directory) Close() error { panic("todo") }

// View is everything one profile can see, immutable.
type View struct{}

// Tools returns the catalog, sorted by ID. The slice must not be changed.
func (v *View) Tools() []*upstreams.Tool { panic("todo") }

// Direct returns the direct-only tools, sorted by ID.
func (v *View) Direct() []*upstreams.Tool { panic("todo") }

// Servers returns the servers that may be named to this caller, sorted.
func (v *View) Servers() []upstreams.ServerInfo { panic("todo") }

// Resolve finds the one tool that a selector names (contract 2), direct-only
// tools included. Never fuzzy. The error is a *ResolveError.
func (v *View) Resolve(selector string) (*upstreams.Tool, error) { panic("todo") }

// ResolveError says why a selector names no tool.
type ResolveError struct {
	Selector  string
	Ambiguous []string // ids, when several tools have the name
	Near      []string // at most 3 names or ids to suggest, best first
}

func (e *ResolveError) Error() string { panic("todo") }

// Search returns at most limit hits for a query, best first. Any text is a
// valid query. It waits for the index until ctx ends.
func (v *View) Search(ctx context.Context, query string, limit int) ([]Hit, error) { panic("todo") }

// Hit is one tool as search shows it (contract 4).
type Hit struct {
	ID          string   `json:"id"`
	Source      string   `json:"source"`
	SourceName  string   `json:"sourceName"`
	Name        string   `json:"name"`
	Label       string   `json:"label,omitempty"`
	Description string   `json:"description"`
	Input       string   `json:"input"`
	Output      string   `json:"output,omitempty"`
	Hints       []string `json:"hints,omitempty"`

	Tool *upstreams.Tool `json:"-"`
}

// NewHit makes the hit of a tool: one line of description, signature, hints.
func NewHit(t *upstreams.Tool) Hit { panic("todo") }

// NearServers names servers whose own words match the query although none of
// their tools was hit, at most 3, for the note of an empty search.
func (v *View) NearServers(query string) []string { panic("todo") }

// Overview returns the lines "name (n tools): what it is for", one a server,
// within max characters: whole lines, then names only, then "and N more".
// namesOnly is for a start without any cache.
func (v *View) Overview(max int, namesOnly bool) string { panic("todo") }

// Text returns the directory text within max characters (contract 3) and how
// many of the tools it holds.
func (v *View) Text(max int) (text string, shown int) { panic("todo") }

// OneLine makes untrusted text fit to be shown: control, bidirectional,
// zero-width and tag characters neutralised, white space folded to one blank,
// cut at a word at max characters (0: not cut).
func OneLine(s string, max int) string { panic("todo") }

// Clean is OneLine for text of several lines: line breaks stay.
func Clean(s string) string { panic("todo") }

// The seam to index.go and rank.go. A Directory keeps one *index a profile:
//
//	newIndex(log) *index
//	(*index).update(tools, servers) *ranker     the whole new list, any number of times, one at a time, off the request path
//	(*index).close()                            after the last update; rankers are not searched any more
//	(*ranker).search(ctx, query, limit)         ([]scored, error), best first; safe for concurrent use
//	(*ranker).nearServers(query) []string       names of servers, at most 3
//	(*ranker).release()                         nobody searches this ranker any more
//
// A ranker is immutable: it goes on answering for its own list after later updates.

// scored is one tool that a ranker found.
type scored struct {
	tool  *upstreams.Tool
	score float64
}
