package aggregator

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// session is one MCP session with a client.
type session struct {
	// fixed at creation
	id    string
	local bool // inside our own process
	mcp   *mcp.ServerSession

	// mu guards the following
	mu        sync.Mutex
	client    string
	profile   string
	mode      Mode
	offered   map[string]bool // control tools that were ever listed to it
	listed    []byte          // the tools that it was last shown or told to fetch
	notify    bool            // the next list_changed goes to it
	lastEntry string          // of the last session record, so that only changes are written
}

func (c *session) caller() upstreams.Caller {
	c.mu.Lock()
	defer c.mu.Unlock()
	return upstreams.Caller{Session: c.id, Client: c.client, Profile: c.profile}
}

func (c *session) face() faceKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	return faceKey{c.profile, c.mode}
}

// sessionOf returns our side of an SDK session, made at its first request.
// client is what the client calls itself.
func (s *Server) sessionOf(ss *mcp.ServerSession, client string) (*session, error) {
	s.mu.Lock()
	c := s.sessions[ss]
	if c != nil {
		s.mu.Unlock()
		return c, nil
	}
	c = &session{id: telemetry.NewSession(), mcp: ss, client: client}
	s.sessions[ss] = c
	s.mu.Unlock()
	return c, s.chooseFor(c)
}

func (s *Server) forget(ss *mcp.ServerSession) {
	s.mu.Lock()
	delete(s.sessions, ss)
	s.mu.Unlock()
}

// chooseFor gives a session its profile and mode.
func (s *Server) chooseFor(c *session) error {
	s.mu.Lock()
	choose := s.choose
	s.mu.Unlock()
	profile, name, err := choose(c.caller().Client)
	if err != nil {
		return err
	}
	mode := s.modeFor(name)
	c.mu.Lock()
	c.profile, c.mode = profile, mode
	c.mu.Unlock()
	return nil
}

// modeFor is the mode that can be had: code needs an engine.
func (s *Server) modeFor(name string) Mode {
	mode, err := ParseMode(name)
	if err != nil {
		s.log.Error("unknown mode, using the default", "err", err)
		mode = ModeCode
	}
	if mode == ModeCode && s.engine == nil {
		return ModeTools
	}
	return mode
}

const (
	quietTime = 50 * time.Millisecond  // without a change, before list_changed is weighed
	loudTime  = 500 * time.Millisecond // the longest that changes can put it off
)

// watch follows the servers until ctx ends and announces new lists.
func (s *Server) watch(ctx context.Context) {
	settled := s.servers.Settled()
	var quiet, loud <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-settled:
			settled = nil
			s.thaw()
		case <-s.servers.Changed():
		case <-quiet:
			quiet, loud = nil, nil
			s.announce()
			continue
		case <-loud:
			quiet, loud = nil, nil
			s.announce()
			continue
		}
		quiet = time.After(quietTime)
		if loud == nil {
			loud = time.After(loudTime)
		}
	}
}

// thaw rewrites the frozen texts once, when a start without any cache has
// learned what there is.
func (s *Server) thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cold && !s.thawed {
		s.thawed = true
		s.faces = make(map[faceKey]*face)
	}
}

// announce sends list_changed to the sessions whose list differs from what
// they were last shown or told.
func (s *Server) announce() {
	s.mu.Lock()
	sessions := make([]*session, 0, len(s.sessions))
	for _, c := range s.sessions {
		sessions = append(sessions, c)
	}
	s.mu.Unlock()
	differs := false
	for _, c := range sessions {
		s.dir.View(c.caller().Profile) // begins its index, for which a search would have to wait
		c.mu.Lock()
		never := c.listed == nil
		c.mu.Unlock()
		if never {
			continue // it has nothing that could have changed
		}
		tools := s.toolsFor(c)
		c.mu.Lock()
		if !bytes.Equal(c.listed, tools) {
			c.listed, c.notify, differs = tools, true, true
		}
		c.mu.Unlock()
		s.recordSession(c, tools)
	}
	if differs {
		// The SDK sends list_changed for its own registrations alone: this one
		// is never listed and never called.
		s.mcp.AddTool(&mcp.Tool{Name: "list-changed", InputSchema: map[string]any{"type": "object"}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, &wire.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such tool"}
			})
	}
}

// wants tells whether a list_changed that the SDK is about to send is for this
// session, and takes the mark off.
func (s *Server) wants(ss *mcp.ServerSession) bool {
	s.mu.Lock()
	c := s.sessions[ss]
	s.mu.Unlock()
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	notify := c.notify
	c.notify = false
	return notify
}
