// Package aggregator is the MCP face: what our client sees. It answers lists
// and calls from a view of the directory, and sends every call through one
// chain of Requesters.
//
// It does not rank, does not decide policy, and talks to no server itself.
package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// Servers is the part of *upstreams.Set that the face needs: everything but
// Do, so that no call can go round the gate.
type Servers interface {
	Snapshot() *upstreams.Snapshot
	Status() []upstreams.Status
	Settled() <-chan struct{}
	Live(ctx context.Context, server string) error
	Start()
	Changed() <-chan struct{}
}

// CodeRunner runs programs; *codebridge.Engine is the one of the program.
type CodeRunner interface {
	Run(context.Context, codebridge.Program, codebridge.Host) (*codebridge.Result, error)
}

// ChooseProfile returns the policy profile of a client ("" for none) and the
// mode it gets. The name is clientInfo.name, not verified.
type ChooseProfile func(clientName string) (profile, mode string, err error)

// Options of New.
type Options struct {
	Directory *directory.Directory // required
	Servers   Servers              // required
	Head      upstreams.Requester  // required: the head of the chain of Requesters
	Engine    CodeRunner           // nil: programs cannot run, mode code becomes tools
	Settings  Settings             // clamped by New
	Profile   ChooseProfile        // nil: no profile, the mode of Settings
	Telemetry *telemetry.Log       // nil: none
	Logger    *slog.Logger         // nil: silent
	Version   string
}

// Server is one MCP server for any number of sessions.
type Server struct {
	// fixed at creation
	dir     *directory.Directory
	servers Servers
	head    upstreams.Requester
	engine  CodeRunner
	records *telemetry.Log
	log     *slog.Logger
	mcp     *mcp.Server
	self    json.RawMessage // our name and version, as the SDK tells them
	cold    bool            // no catalog of any server was known at the start

	calls   atomic.Int64 // numbers the calls, for telemetry
	started atomic.Bool  // Servers.Start was called
	start   sync.Once

	// mu guards the following
	mu       sync.Mutex
	settings Settings
	choose   ChooseProfile
	faces    map[faceKey]*face
	sessions map[*mcp.ServerSession]*session
	thawed   bool      // the one rewriting of frozen texts after a cold start is done
	patience time.Time // until when searches wait on a cold start; set by the first
}

// New makes a server. The directory must already hold the cached catalogs:
// the texts that stay frozen are made of them.
func New(o Options) *Server {
	if o.Directory == nil || o.Servers == nil || o.Head == nil {
		panic("aggregator: New needs Directory, Servers and Head")
	}
	s := &Server{
		dir: o.Directory, servers: o.Servers, head: o.Head, engine: o.Engine,
		records: o.Telemetry, log: o.Logger,
		faces:    make(map[faceKey]*face),
		sessions: make(map[*mcp.ServerSession]*session),
		cold:     true,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, info := range s.servers.Snapshot().Servers {
		s.cold = s.cold && !info.Known
	}
	s.configure(o.Settings, o.Profile)
	self := &mcp.Implementation{Name: "toolsearch-mcp", Title: "Tool search", Version: o.Version}
	s.self = encode(self)
	s.mcp = mcp.NewServer(self, &mcp.ServerOptions{
		// Set by hand: what the SDK would infer are its own registrations, and
		// it has none of ours.
		Capabilities: capabilities(ModeTools),
		Logger:       slog.New(slog.DiscardHandler),
	})
	s.mcp.AddReceivingMiddleware(s.receive)
	s.mcp.AddSendingMiddleware(s.send)
	wire.ReceiveRaw(s.mcp, RawMethods()...)
	return s
}

// configure takes settings and the chooser into use.
func (s *Server) configure(settings Settings, choose ChooseProfile) {
	settings, warnings := settings.Clamp()
	for _, w := range warnings {
		s.log.Warn("setting outside its limits", "setting", w)
	}
	if choose == nil {
		choose = func(string) (string, string, error) { return "", settings.Mode, nil }
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings, s.choose = settings, choose
	s.faces = make(map[faceKey]*face)
}

// Reload takes a new configuration into use: the caller has swapped the rules
// and the servers before. Frozen texts are written anew, running sessions get
// the mode and profile that a new one would, and list_changed is sent to those
// whose list has changed.
func (s *Server) Reload(settings Settings, choose ChooseProfile) {
	s.configure(settings, choose)
	s.mu.Lock()
	var all []*session
	for _, c := range s.sessions {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		if err := s.chooseFor(c); err != nil {
			s.log.Error("choosing a profile", "client", c.client, "err", err)
		}
	}
	s.announce()
}

// Run serves one session, for stdio, until the client is gone or ctx ends. The
// transport should keep the parameters of RawMethods as bytes.
func (s *Server) Run(ctx context.Context, transport mcp.Transport) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx) })
	defer watching.Wait()
	defer cancel()

	conn := &startingTransport{Transport: transport, s: s}
	ss, err := s.mcp.Connect(ctx, conn, nil)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	defer s.forget(ss)
	gone := make(chan error, 1)
	go func() { gone <- ss.Wait() }()
	select {
	case err := <-gone:
		return err
	case <-ctx.Done():
		// Not ss.Close, which waits for the answers to all requests: the end
		// of the connection cancels them.
		conn.close()
		<-gone //nolint:errcheck // the end is ours
		return context.Cause(ctx)
	}
}

// Local is a session inside our own process: the commands search, describe,
// call, code and demo. Every control tool can be called in it.
type Local struct {
	s *Server
	c *session
}

// Local makes a session with this policy profile ("" for none) in the mode of
// the settings. It does not start the servers: a call starts its own.
func (s *Server) Local(profile string) *Local {
	s.mu.Lock()
	mode := s.modeFor(s.settings.Mode)
	s.mu.Unlock()
	return &Local{s, &session{id: telemetry.NewSession(), local: true, client: "toolsearch-mcp", profile: profile, mode: mode}}
}

// Call is a tools/call: args is the JSON object of the arguments, or nil. The
// error is one in which errors.As finds a *jsonrpc.Error where a client would
// get one.
func (l *Local) Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	if args == nil {
		args = json.RawMessage("{}")
	}
	params := fmt.Appendf(nil, `{"name":%s,"arguments":%s}`, quote(name), args)
	return l.s.route(ctx, methodCallTool, &request{session: l.c, params: params})
}

// List is a tools/list.
func (l *Local) List(ctx context.Context) (json.RawMessage, error) {
	return l.s.route(ctx, methodListTools, &request{session: l.c})
}

// Start opens the servers, once. For clients a startingTransport says when.
func (s *Server) Start() {
	s.start.Do(func() {
		s.started.Store(true)
		s.servers.Start()
	})
}

// settleTime is how long a first search, or a tools/list in off mode, waits
// for servers of which nothing is known.
const (
	settleTime = 3 * time.Second
	listTime   = 10 * time.Second
	indexTime  = 100 * time.Millisecond // for the index of a list that came in the last moment
)

// settledView returns what a search of callers with this profile is made in.
// On a start without any cache it waits until the first attempt of every
// server has ended, at most settleTime in all, and what the servers have told
// by then is left out if it cannot be indexed in that time, too.
func (s *Server) settledView(ctx context.Context, profile string) *directory.View {
	if !s.cold || !s.started.Load() {
		return s.dir.View(profile)
	}
	s.mu.Lock()
	if s.patience.IsZero() {
		s.patience = time.Now().Add(settleTime)
	}
	patience := s.patience
	s.mu.Unlock()
	if time.Until(patience) <= 0 {
		return s.dir.View(profile)
	}
	settling, cancel := context.WithDeadline(ctx, patience)
	defer cancel()
	select {
	case <-s.servers.Settled():
	case <-settling.Done():
	}
	indexing, cancel := context.WithDeadline(ctx, patience.Add(indexTime))
	defer cancel()
	return s.dir.Indexed(indexing, profile)
}

// current returns the settings that are in use.
func (s *Server) current() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings
}

func (s *Server) nextCallID() string { return "call-" + strconv.FormatInt(s.calls.Add(1), 10) }
