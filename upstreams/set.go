package upstreams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options of a [Set]. The zero value works: no cache, no log.
type Options struct {
	MaxNameLength int    // of full names, clamped to 32–64; 0: DefaultMaxNameLength
	CacheDir      string // catalogs of the last start, a folder that is made if needed; "": none kept
	Version       string // our version, told to servers in clientInfo
	Logger        *slog.Logger
}

// DefaultMaxNameLength: the 63 characters that Gemini and Qwen allow, less
// "mcp__toolsearch-mcp__".
const DefaultMaxNameLength = 42

// closeLimit is how long Close waits for servers that do not want to end. A
// link takes less by itself.
const closeLimit = 15 * time.Second

// Set is all configured servers. It is safe for concurrent use.
type Set struct {
	// Fixed at creation.
	opts    Options
	cache   *cache
	begin   chan struct{} // closed by Start
	changed chan struct{} // one slot, never closed
	settled chan struct{} // closed by settle

	patience context.Context // of children that are ended; its end is abort
	abort    context.CancelFunc

	applying sync.Mutex // held over a whole Apply or Close

	mu      sync.Mutex // guards the following
	started bool
	closed  bool
	calm    bool // settled is closed
	servers map[string]*server
	snap    *Snapshot
}

// NewSet makes an empty set.
func NewSet(opts Options) *Set {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Set{
		opts:    opts,
		begin:   make(chan struct{}),
		changed: make(chan struct{}, 1),
		settled: make(chan struct{}),
		servers: map[string]*server{},
		snap:    &Snapshot{},
	}
	s.patience, s.abort = context.WithCancel(context.Background())
	var err error
	if s.cache, err = openCache(opts.CacheDir); err != nil {
		opts.Logger.Warn("catalogs are not kept for the next start", "err", err)
	}
	return s
}

// Apply reconciles the set with the configuration: equal entries are left as
// they are, changed ones are replaced, gone ones closed. Cached catalogs are
// loaded before it returns. No server is contacted before Start. Invalid
// configurations change nothing.
func (s *Set) Apply(configs []Config) error {
	if err := validateAll(configs); err != nil {
		return err
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	s.mu.Lock()
	old, closed := s.servers, s.closed
	s.mu.Unlock()
	if closed {
		return ErrClosed
	}
	servers := map[string]*server{}
	var fresh []*server
	for _, cfg := range configs {
		if !cfg.enabled() {
			continue
		}
		srv := old[cfg.Name]
		if srv == nil || !srv.cfg.equal(&cfg) {
			srv = newServer(s.patience, cfg, s.opts, s.begin, s.cache, s.refresh)
			fresh = append(fresh, srv)
		}
		servers[cfg.Name] = srv
	}
	s.mu.Lock()
	s.servers = servers
	s.mu.Unlock()

	var gone []*server
	for name, srv := range old {
		if servers[name] != srv {
			srv.cancel(ErrClosed)
			gone = append(gone, srv)
		}
	}
	for _, srv := range fresh {
		srv.start(old[srv.cfg.Name])
	}
	s.refresh()
	return waitFor(gone)
}

// Start opens all servers side by side and returns at once. Further calls do
// nothing. It is called when the first client's initialize was answered.
func (s *Set) Start() {
	s.mu.Lock()
	if !s.started {
		s.started = true
		close(s.begin)
	}
	s.mu.Unlock()
	s.refresh()
}

// refresh brings the Snapshot up to date and sends the signals that follow
// from it. Servers call it after every change of theirs.
func (s *Set) refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := &Snapshot{}
	for _, srv := range s.servers {
		info, tools := srv.view()
		snap.Servers = append(snap.Servers, info)
		snap.Tools = append(snap.Tools, tools...)
	}
	slices.SortFunc(snap.Servers, func(a, b ServerInfo) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(snap.Tools, func(a, b *Tool) int { return strings.Compare(a.ID, b.ID) })
	if !slices.Equal(snap.Servers, s.snap.Servers) || !slices.Equal(snap.Tools, s.snap.Tools) {
		s.snap = snap
		poke(s.changed)
	}
	if s.started && !s.calm && !s.closed {
		for _, srv := range s.servers {
			select {
			case <-srv.tried:
			default:
				return
			}
		}
		s.calm = true
		close(s.settled)
	}
}

// Snapshot returns what is known of all servers now. It never blocks.
func (s *Set) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snap
}

// Changed returns a channel that receives when Snapshot may have changed
// since the last receive: a level, not a count. One reader.
func (s *Set) Changed() <-chan struct{} { return s.changed }

// Settled is closed when the first attempt of every server has ended. It is
// never closed before Start.
func (s *Set) Settled() <-chan struct{} { return s.settled }

// Status returns the health of every enabled server, sorted by name.
func (s *Set) Status() []Status {
	s.mu.Lock()
	servers := s.servers
	s.mu.Unlock()
	all := make([]Status, 0, len(servers))
	for _, srv := range servers {
		all = append(all, srv.status())
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Live waits until the named server is connected and listed, connecting at
// once if it is down, and returns when Snapshot holds its live tools. It gives
// up when an attempt made for it fails. Errors: ErrUnavailable and
// ErrNeedsAuth with the cause, ErrClosed for a server that is not in the
// configuration, ctx's.
func (s *Set) Live(ctx context.Context, server string) error {
	srv, err := s.server(server)
	if err != nil {
		return err
	}
	_, err = srv.liveSession(ctx)
	return err
}

// Do carries out a call without asking policy: it is the end of the chain.
// It connects at once to a server that is down, and it does not check the
// arguments.
func (s *Set) Do(ctx context.Context, call Call) (*Result, error) {
	srv, err := s.server(call.Tool.Server)
	if err != nil {
		return nil, err
	}
	return srv.do(ctx, call)
}

func (s *Set) server(name string) (*server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	srv := s.servers[name]
	if srv == nil || s.closed {
		return nil, fmt.Errorf("server %q: %w", name, ErrClosed)
	}
	return srv, nil
}

// Close ends all servers side by side and waits for them, at most a few
// seconds; child processes are gone when it returns.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.applying.Lock()
	defer s.applying.Unlock()
	var all []*server
	for _, srv := range s.servers { // nobody writes it any more
		srv.cancel(ErrClosed)
		all = append(all, srv)
	}
	return waitFor(all)
}

// Abort makes every Close, begun or to come, impatient: children that have not
// ended by themselves are killed at once. It does not wait.
func (s *Set) Abort() { s.abort() }

// waitFor waits until the servers have ended, but not for ever.
func waitFor(servers []*server) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	var errs []error
	for _, srv := range servers {
		select {
		case <-srv.done:
			continue
		default:
		}
		select {
		case <-srv.done:
		case <-ctx.Done():
			errs = append(errs, srv.wrap(errors.New("did not end in time and was left behind")))
		}
	}
	return errors.Join(errs...)
}
