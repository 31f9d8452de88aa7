package upstreams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

const (
	// protocolVersion is what upstreams are asked for.
	protocolVersion = "2025-11-25"
	// A session that ends may take so long for its last words, and once more
	// after its link was closed.
	sessionGrace = time.Second
)

// errGone ends a session whose connection has ended: the SDK has told all its
// calls.
var errGone = errors.New("connection ended")

// server is one configured server: its life, and what is known of it. One
// goroutine, run, owns the connection; there is at most one at a time.
type server struct {
	// Fixed at creation.
	cfg      Config
	safe     string
	version  string // ours, for clientInfo
	cache    *cache
	log      *slog.Logger
	parser   toolParser
	begin    <-chan struct{} // closed when the Set is started
	hidden   *telemetry.Redactor
	patience context.Context // when it ends, a child is not waited for any more
	changed  func()          // tells the Set that its Snapshot may be out of date; not under mu
	slots    chan struct{}   // one place a running call; nil: no limit
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed by run when everything has ended
	tried    chan struct{} // closed by run when the first attempt has ended
	wake     chan struct{} // one slot: somebody wants a session now
	relist   chan struct{} // one slot: the list of tools may have changed

	calls callTable // calls in flight, for progress

	mu       sync.Mutex // guards the following
	state    State
	err      error         // why it is not ready
	moved    chan struct{} // closed and replaced at every change of the above and of session
	session  *session      // non-nil exactly while Ready
	attempts int           // begun
	trying   bool          // the last of them has not ended
	failed   int           // number of the last one that came to nothing
	stderr   string        // the end of what the last child wrote
	odd      []string      // warnings, but for those of the list
	oddMore  int           // warnings that did not fit
	known    catalog
	live     bool // known comes from the running session
}

// catalog is what a server offers, immutable.
type catalog struct {
	tools        []*Tool // nil: not known
	byName       map[string]*Tool
	bytes        int // of the tools as listed
	title        string
	instructions string
	protocol     string
	warnings     []string // of the list
}

// session is one connection that was initialized and listed.
type session struct {
	cs          *mcp.ClientSession
	link        *link
	listChanges bool            // it says that it tells of changes of its list
	ctx         context.Context // ends with the session
	end         context.CancelCauseFunc
	over        chan struct{} // closed by serve when the link is closed; then epitaph may be read
	epitaph     string        // how it ended: "exit status 1; its last words: …"
}

func newServer(patience context.Context, cfg Config, opts Options, begin <-chan struct{}, cache *cache, changed func()) *server {
	s := &server{
		cfg:      cfg,
		patience: patience,
		safe:     SafeName(cfg.Name),
		version:  opts.Version,
		hidden:   redactorOf(&cfg),
		cache:    cache,
		log:      opts.Logger.With("server", cfg.Name),
		begin:    begin,
		changed:  changed,
		done:     make(chan struct{}),
		tried:    make(chan struct{}),
		wake:     make(chan struct{}, 1),
		relist:   make(chan struct{}, 1),
		state:    Idle,
		moved:    make(chan struct{}),
	}
	s.parser = toolParser{cfg: &s.cfg, safe: s.safe, nameLimit: opts.MaxNameLength}
	if cfg.MaxConcurrentCalls > 0 {
		s.slots = make(chan struct{}, cfg.MaxConcurrentCalls)
	}
	if cfg.Broken != nil {
		s.state, s.err, s.cancel = Failed, cfg.Broken, func(error) {}
		close(s.tried)
		close(s.done)
		return s
	}
	if l := cache.load(&s.cfg); l != nil {
		s.known = s.catalog(l, nil)
		s.state = Cached
	}
	return s
}

// start runs the server after its predecessor, if any, has ended.
func (s *server) start(predecessor *server) {
	if s.cfg.Broken != nil {
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.cancel = cancel
	go s.run(ctx, predecessor)
}

// run holds one session after the other until ctx ends.
func (s *server) run(ctx context.Context, predecessor *server) {
	defer close(s.done)
	defer s.set(Closed, ErrClosed)
	if predecessor != nil {
		<-predecessor.done // two at once might fight for a port or a file
	}
	select {
	case <-s.begin:
	case <-s.wake:
	case <-ctx.Done():
		return
	}
	told := "" // the last error in the log
	for failures := 0; ctx.Err() == nil; {
		began := time.Now()
		uptime, err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if uptime >= sustainedUptime {
			failures = 0
		}
		failures++
		level := slog.LevelWarn
		if told == err.Error() {
			level = slog.LevelDebug // the same again, perhaps every 30 s for days
		}
		told = err.Error()
		var retry <-chan time.Time
		if errors.Is(err, ErrNeedsAuth) {
			s.log.Log(ctx, level, "server refuses our credentials", "err", err)
			s.set(NeedsAuth, err)
		} else {
			d := backoff(failures, rand.Float64())
			s.log.Log(ctx, level, "server is down", "err", err, "retry_in", d)
			s.set(Backoff, err)
			retry = time.After(d)
		}
		s.firstAttemptEnded()
		select {
		case <-retry:
		case <-s.wake:
			sleep(ctx, time.Until(began.Add(minAttemptGap)))
		case <-ctx.Done():
		}
	}
}

// serve holds one session from dialing to its end, and returns why it ended
// and how long it was ready.
func (s *server) serve(ctx context.Context) (uptime time.Duration, err error) {
	attempted := time.Now()
	s.attempt()
	defer func() { s.attemptEnded(err) }()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	limit := s.cfg.startTimeout()
	timer := time.AfterFunc(limit, func() {
		end(slowError(fmt.Sprintf("it did not answer initialize within %v (startTimeoutMs)", limit)))
	})
	defer timer.Stop()

	s.forgetOddities()
	l, err := dial(ctx, s.cfg, linkEvents{Progress: s.calls.progress, Noise: s.noise}, s.log)
	if err != nil {
		return 0, causeOf(ctx, err)
	}
	ss := &session{link: l, ctx: ctx, end: end, over: make(chan struct{})}
	defer close(ss.over)
	defer s.shut(ss)
	if ss.cs, err = s.connect(ctx, l); err != nil {
		return 0, s.lastWords(l, causeOf(ctx, err))
	}
	timer.Stop()
	gone := make(chan error, 1)
	go func() { gone <- ss.cs.Wait() }() // ends at the latest in shut

	list, err := s.list(ctx, ss.cs)
	if err != nil {
		return 0, s.lastWords(l, causeOf(ctx, fmt.Errorf("tools/list: %w", err)))
	}
	init := ss.cs.InitializeResult()
	ss.listChanges = init.Capabilities != nil && init.Capabilities.Tools != nil && init.Capabilities.Tools.ListChanged
	book := refresher{server: s, session: ss, init: init}
	book.publish(list)
	began := time.Now()
	s.ready(ss)
	s.firstAttemptEnded()
	s.log.Info("server is ready", "tools", len(list.items), "protocol", init.ProtocolVersion, "dur", began.Sub(attempted))

	err = book.follow(ctx, gone)
	s.withdraw(ss, err)
	return time.Since(began), s.lastWords(l, err)
}

// slowError is a limit for a start that has passed. It is not ErrTimedOut,
// which means that a call may have acted.
type slowError string

func (e slowError) Error() string { return string(e) }

// connect initializes a client session without client capabilities; roots and
// other questions of the server are answered by the SDK.
func (s *server) connect(ctx context.Context, l *link) (*mcp.ClientSession, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "toolsearch-mcp", Version: s.version}, &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { s.listMayHaveChanged() },
	})
	wire.RegisterRaw(c, "tools/list", "tools/call")
	// A transport that does not heed ctx is cut off.
	stop := context.AfterFunc(ctx, func() { _ = l.close(ctx) })
	defer stop()
	cs, err := c.Connect(ctx, l.transport, &mcp.ClientSessionOptions{ProtocolVersion: protocolVersion})
	err = said(err)
	var answered *wire.Error
	var own *jsonrpc.Error
	switch {
	case err == nil:
		return cs, nil
	case !errors.As(err, &answered) && errors.As(err, &own): // the SDK's word for its own end
		return nil, errors.New("initialize: it ended the connection")
	default:
		return nil, fmt.Errorf("initialize: %w", s.withoutSecrets(callError(err)))
	}
}

// shut ends a session and its link, in bounded time.
func (s *server) shut(ss *session) {
	closed := make(chan struct{})
	if ss.cs == nil {
		close(closed)
	} else {
		go func() { _ = ss.cs.Close(); close(closed) }()
		within(sessionGrace, closed)
	}
	if err := ss.link.close(s.patience); err != nil {
		s.log.Warn("server was not ended cleanly", "err", err)
	}
	within(sessionGrace, closed)
	ss.epitaph = epitaph(ss.link)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stderr = ss.link.stderr()
}

// causeOf returns why ctx ended, if it did, else err.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// liveSession returns the session, waiting for one if there is none: an
// attempt is made at once, and if it fails the wait is over.
func (s *server) liveSession(ctx context.Context) (*session, error) {
	s.mu.Lock()
	wanted := s.attempts + 1
	if s.trying {
		wanted = s.attempts
	}
	for {
		ss, moved, state, err, failed := s.session, s.moved, s.state, s.err, s.failed
		s.mu.Unlock()
		switch {
		case ss != nil:
			return ss, nil
		case state == Closed:
			return nil, s.wrap(ErrClosed)
		case state == Failed || failed >= wanted:
			return nil, s.wrap(unavailable(err))
		}
		poke(s.wake)
		select {
		case <-moved:
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(ctx.Err(), context.Canceled) || errors.Is(cause, ErrTimedOut) {
				return nil, s.wrap(unavailable(errors.Join(fmt.Errorf("it is still %s", state), err)))
			}
			return nil, context.Cause(ctx)
		}
		s.mu.Lock()
	}
}

// unavailable is the error of a call that found no session. Of the cause it
// keeps the words alone, but for credentials: a JSON-RPC error or a lost
// connection of the start must not be taken for one of the call.
func unavailable(err error) error {
	sentinel := ErrUnavailable
	if errors.Is(err, ErrNeedsAuth) {
		sentinel = ErrNeedsAuth
	}
	if after, ok := strings.CutPrefix(err.Error(), sentinel.Error()); ok {
		return fmt.Errorf("%w%s", sentinel, after)
	}
	return fmt.Errorf("%w: %s", sentinel, err.Error())
}

func (s *server) wrap(err error) error { return fmt.Errorf("server %q: %w", s.cfg.Name, err) }

// The following move the state. Each runs wholly under mu and wakes those who
// wait for a change.

func (s *server) moveLocked(state State, err error) {
	s.state, s.err = state, err
	close(s.moved)
	s.moved = make(chan struct{})
}

func (s *server) set(state State, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moveLocked(state, err)
}

func (s *server) attempt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts++
	s.trying = true
	switch {
	case s.attempts > 1: // still down until it succeeds
		s.moveLocked(s.state, s.err)
	case s.known.tools != nil:
		s.moveLocked(Cached, nil)
	default:
		s.moveLocked(Starting, nil)
	}
}

// attemptEnded keeps why an attempt came to nothing; one that led to a session
// did not, however that ended.
func (s *server) attemptEnded(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.trying {
		return
	}
	s.trying = false
	s.failed = s.attempts
	select {
	case <-s.wake: // of a caller who waits for this attempt; later ones want a new one
	default:
	}
	s.moveLocked(s.state, err)
}

func (s *server) ready(ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trying, s.session = false, ss
	s.moveLocked(Ready, nil)
}

// withdraw takes a session back, so that nobody begins anything on it.
func (s *server) withdraw(ss *session, err error) {
	s.mu.Lock()
	if s.session != ss {
		s.mu.Unlock()
		return
	}
	s.session, s.live = nil, false
	s.moveLocked(Backoff, err)
	s.mu.Unlock()
	s.changed()
}

// drop ends a session that turned out to be unusable.
func (s *server) drop(ss *session, err error) {
	s.withdraw(ss, err)
	ss.end(err)
}

func (s *server) firstAttemptEnded() {
	select {
	case <-s.tried:
	default:
		close(s.tried)
		s.changed()
	}
}

// listMayHaveChanged has the list read again soon, once for many calls.
func (s *server) listMayHaveChanged() { poke(s.relist) }

// poke fills a one-slot channel.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// catalog makes what is known of a listing. Tools that did not change are
// taken from before.
func (s *server) catalog(l *listing, before []*Tool) catalog {
	tools, warnings := s.parser.parse(l.Tools, before)
	c := catalog{
		tools: tools, title: l.Title, instructions: l.Instructions, protocol: l.Protocol, warnings: warnings,
	}
	if c.tools == nil {
		c.tools = []*Tool{}
	}
	for _, item := range l.Tools {
		c.bytes += len(item)
	}
	c.index()
	return c
}

func (c *catalog) index() {
	c.byName = make(map[string]*Tool, len(c.tools))
	for _, t := range c.tools {
		c.byName[t.Name] = t
	}
}
