// Package directory finds tools: names and selectors, signatures, search, and
// the short texts that tell a model what there is.
//
// It reads tools from package upstreams and is told by Rules what a profile
// may see. It calls nothing.
package directory

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// Rules tell what callers with a profile may see; *policy.Policy is the one
// of the program.
type Rules interface {
	// Filter returns the tools that callers with this profile may call, in
	// order. It is a pure function and does not change its argument.
	Filter(profile string, tools []*upstreams.Tool) []*upstreams.Tool
	// SeesServer tells whether a server without known tools may be named.
	SeesServer(profile, safe string) bool
}

// Options of New.
type Options struct {
	// Source returns what all servers offer now; required. It must be quick
	// and return the same pointer while nothing changed. It must not call the
	// Directory.
	Source func() *upstreams.Snapshot
	Rules  Rules        // required
	Logger *slog.Logger // nil: silent
}

// Directory keeps one immutable View a profile. It is safe for concurrent use.
type Directory struct {
	// fixed at creation
	source func() *upstreams.Snapshot
	log    *slog.Logger

	// mu guards the following
	mu       sync.Mutex
	rules    Rules
	profiles map[string]*profile
	closed   bool
}

// profile is what is kept for one profile between views.
type profile struct {
	view     *View
	snapshot *upstreams.Snapshot // what view was made from; nil: make it again
	older    []*View             // of the same rules, whose indexes are there or being made
	indexer  *indexer
}

// New makes a directory. It builds nothing yet.
func New(o Options) *Directory {
	if o.Source == nil || o.Rules == nil {
		panic("directory: Options.Source and Options.Rules are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Directory{source: o.Source, log: o.Logger, rules: o.Rules, profiles: make(map[string]*profile)}
}

// View returns what callers with this profile see now: never older than the
// Source at the time of the call, and the same pointer while nothing changed
// for them. It is quick: what costs time, above all the search index, is made
// in the background or when it is first asked for, and Search waits for it.
func (d *Directory) View(name string) *View {
	d.mu.Lock()
	defer d.mu.Unlock()
	// Read under the lock, so that a view is never replaced by an older one.
	snapshot := d.source()
	if snapshot == nil {
		snapshot = &upstreams.Snapshot{}
	}
	p := d.profiles[name]
	if p == nil {
		p = &profile{}
		p.indexer = &indexer{index: newIndex(d.log.With("profile", name)), finished: func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			p.forgetOlder()
		}}
		if d.closed {
			p.indexer.close()
		}
		d.profiles[name] = p
	}
	if p.snapshot != snapshot {
		last, sameRules := p.view, p.snapshot != nil
		p.view = d.viewLocked(name, p, snapshot)
		p.snapshot = snapshot
		if sameRules && last.index != p.view.index {
			p.older = append(p.older, last)
			p.forgetOlder()
		}
	}
	return p.view
}

// Indexed returns View(name) as soon as it can be searched without waiting.
// If ctx ends before that, it returns the newest one before it that can and
// has tools, if there is one.
func (d *Directory) Indexed(ctx context.Context, name string) *View {
	v := d.View(name)
	if _, err := v.index.wait(ctx); err == nil {
		return v
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, old := range slices.Backward(d.profiles[name].older) {
		if old.index.ready() != nil && len(old.tools) > 0 {
			return old
		}
	}
	return v
}

// forgetOlder drops the views that Indexed does not need: those before the
// newest that is indexed, and those that a newer one kept from being indexed.
func (p *profile) forgetOlder() {
	if p.view.index.ready() != nil {
		p.older = nil
		return
	}
	for i, v := range slices.Backward(p.older) {
		if v.index.ready() != nil {
			p.older = slices.Delete(p.older, 0, i)
			break
		}
	}
	p.older = slices.DeleteFunc(p.older, func(v *View) bool { return !v.index.begun() })
}

// viewLocked makes the view of a snapshot, from as much of the last one as
// still holds.
func (d *Directory) viewLocked(name string, p *profile, snapshot *upstreams.Snapshot) *View {
	v := newView(name, d.rules, snapshot)
	last := p.view
	if last != nil && slices.Equal(last.tools, v.tools) && slices.Equal(last.direct, v.direct) {
		if slices.Equal(last.servers, v.servers) {
			return last
		}
		v.catalog, v.hits = last.catalog, last.hits
	} else {
		v.catalog = sync.OnceValue(func() *catalog { return newCatalog(v.seen()) })
		v.hits = &hitCache{}
	}
	if last != nil && slices.Equal(last.tools, v.tools) && slices.EqualFunc(last.servers, v.servers, sameWordsOfServer) {
		v.index = last.index
	} else {
		v.index = p.indexer.submit(v.tools, v.servers)
	}
	return v
}

// sameWordsOfServer tells whether search cannot tell two states of a server apart.
func sameWordsOfServer(a, b upstreams.ServerInfo) bool {
	a.Live, a.Known = b.Live, b.Known
	return a == b
}

// Swap replaces the rules; views made before stay as they were.
func (d *Directory) Swap(r Rules) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rules = r
	for _, p := range d.profiles {
		p.snapshot, p.older = nil, nil
	}
}

// Close ends what runs in the background and releases the indexes. Views must
// not be searched after it; what they know without an index stays right.
func (d *Directory) Close() error {
	d.mu.Lock()
	d.closed = true
	var indexers []*indexer
	for _, p := range d.profiles {
		indexers = append(indexers, p.indexer)
	}
	d.mu.Unlock()
	for _, x := range indexers {
		x.close()
	}
	return nil
}
