package aggregator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

const (
	methodInitialize    = "initialize"
	methodDiscover      = "server/discover"
	methodListTools     = "tools/list"
	methodCallTool      = "tools/call"
	methodListResources = "resources/list"
	methodListTemplates = "resources/templates/list"
	methodReadResource  = "resources/read"
	methodListPrompts   = "prompts/list"
	methodGetPrompt     = "prompts/get"
	methodListChanged   = "notifications/tools/list_changed"
	methodProgress      = "notifications/progress"
)

// modern is the first protocol revision without a handshake.
const modern = "2026-07-28"

// request is one request of a client, with its parameters as they came.
type request struct {
	session *session
	params  json.RawMessage
}

// routes is everything that we answer ourselves; the rest is the SDK's.
var routes = map[string]func(*Server, context.Context, *request) (json.RawMessage, error){
	methodListTools:     (*Server).listTools,
	methodCallTool:      (*Server).callTool,
	methodListResources: (*Server).listResources,
	methodListTemplates: (*Server).listTemplates,
	methodReadResource:  (*Server).readResource,
}

// RawMethods are the requests whose parameters the transport of a session
// should keep as bytes (wire.Options.RawMethods): what we answer ourselves.
func RawMethods() []string { return slices.Sorted(maps.Keys(routes)) }

// route answers one request. A panic costs that request alone.
func (s *Server) route(ctx context.Context, method string, r *request) (raw json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("panic while answering", "method", method, "panic", p, "stack", string(debug.Stack()))
			raw, err = nil, &wire.Error{Code: jsonrpc.CodeInternalError, Message: "internal error of toolsearch-mcp; the log has the details"}
		}
	}()
	return routes[method](s, ctx, r)
}

// receive is the one receiving middleware: every request of a client passes
// it, and what is in routes goes no further.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		name := strings.TrimSuffix(method, wire.RawSuffix)
		if name == methodListPrompts || name == methodGetPrompt { // the SDK would answer, although there are none
			return nil, &wire.Error{Code: jsonrpc.CodeMethodNotFound, Message: name + ": not supported"}
		}
		_, ours := routes[name]
		if !ours && name != methodInitialize && name != methodDiscover {
			return next(ctx, method, req)
		}
		ss, ok := req.GetSession().(*mcp.ServerSession)
		if !ok {
			return next(ctx, method, req)
		}
		if !ours {
			return s.greet(ctx, ss, req, func() (mcp.Result, error) { return next(ctx, method, req) })
		}
		c, err := s.sessionOf(ss, clientName(ss.InitializeParams()))
		if err != nil {
			return nil, err
		}
		params, err := rawParams(req.GetParams())
		if err != nil {
			return nil, err
		}
		raw, err := s.route(ctx, name, &request{session: c, params: params})
		if err != nil {
			return nil, err
		}
		if p := ss.InitializeParams(); p != nil && p.ProtocolVersion >= modern {
			raw = s.modernResult(raw, name != methodCallTool)
		}
		return &wire.RawResult{Raw: raw}, nil
	}
}

// greet answers initialize and server/discover: the SDK's answer with the
// instructions and capabilities of this client.
func (s *Server) greet(ctx context.Context, ss *mcp.ServerSession, req mcp.Request, next func() (mcp.Result, error)) (mcp.Result, error) {
	p, _ := req.GetParams().(*mcp.InitializeParams) // nil for server/discover
	if p != nil && ss.InitializeParams() != nil {
		return nil, &wire.Error{Code: jsonrpc.CodeInvalidRequest, Message: "this session is initialized already: go on with it, or begin a new one"}
	}
	res, err := next()
	if err != nil {
		return nil, err
	}
	c, err := s.sessionOf(ss, cmp.Or(clientName(p), clientName(ss.InitializeParams())))
	if err != nil {
		return nil, err
	}
	f := s.faceFor(c.face())
	offered := capabilities(c.face().mode)
	switch r := res.(type) {
	case *mcp.InitializeResult:
		answer := *r
		answer.Instructions, answer.Capabilities = f.instructions, offered
		return &answer, nil
	case *mcp.DiscoverResult:
		r.Instructions, r.Capabilities = f.instructions, offered
		return r, nil
	}
	return res, nil
}

// capabilities are what a client is offered in a mode.
func capabilities(m Mode) *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}
	if m == ModeDirectory {
		c.Resources = &mcp.ResourceCapabilities{}
	}
	return c
}

// clientName is what a client calls itself, "" if it does not tell.
func clientName(p *mcp.InitializeParams) string {
	if p == nil || p.ClientInfo == nil {
		return ""
	}
	return p.ClientInfo.Name
}

// rawParams returns the parameters as bytes: as they came over a transport of
// ours, encoded again from the SDK's type over others.
func rawParams(p mcp.Params) (json.RawMessage, error) {
	if raw, ok := p.(*wire.RawParams); ok {
		return raw.Raw, nil
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding the parameters: %w", err)
	}
	return b, nil
}

// modernResult adds what revision 2026-07-28 wants in every result, and in
// lists that may be cached. Lists differ by profile: never shared. The SDK
// would name the server too, in results that do not pass it as bytes.
func (s *Server) modernResult(raw json.RawMessage, cacheable bool) json.RawMessage {
	o, err := rawjson.Parse(raw)
	if err != nil {
		return raw
	}
	meta := o.Get("_meta")
	if m, err := rawjson.Parse(meta); rawjson.IsNull(meta) || err == nil && !m.Has(mcp.MetaKeyServerInfo) {
		o = o.With("_meta", m.With(mcp.MetaKeyServerInfo, s.self).Bytes())
	}
	if !o.Has("resultType") {
		o = o.With("resultType", json.RawMessage(`"complete"`))
	}
	if cacheable {
		o = o.With("ttlMs", json.RawMessage("0")).With("cacheScope", json.RawMessage(`"private"`))
	}
	return o.Bytes()
}

// send is the sending middleware: it keeps list_changed from sessions whose
// list is as it was, and puts the bytes of progress in place of the SDK's type.
func (s *Server) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ss, ok := req.GetSession().(*mcp.ServerSession)
		switch {
		case !ok:
		case method == methodListChanged:
			if !s.wants(ss) {
				return nil, nil
			}
		case method == methodProgress:
			if raw, ok := ctx.Value(progressKey{}).(json.RawMessage); ok {
				req = &mcp.ServerRequest[*wire.RawParams]{Session: ss, Params: &wire.RawParams{Raw: raw}}
			}
		}
		return next(ctx, method, req)
	}
}

// startingTransport starts the servers when a client's first list has been
// written, since twenty children that start take the processor from it; for a
// client that does not list, listGrace after its first answer, and at once for
// one that calls a tool. Clients that only ask what we are start none.
type startingTransport struct {
	mcp.Transport
	s    *Server
	conn mcp.Connection // set by Connect
}

// listGrace is how long the servers' start waits for a client's first list.
const listGrace = 100 * time.Millisecond

func (t *startingTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.conn = &startingConn{Connection: conn, s: t.s}
	return t.conn, nil
}

// close ends the connection; its requests are cancelled.
func (t *startingTransport) close() {
	if err := t.conn.Close(); err != nil {
		t.s.log.Debug("closing the client's connection", "err", err)
	}
}

type startingConn struct {
	mcp.Connection
	s       *Server
	greeted atomic.Bool // the client began as one of the two revisions does
	begun   atomic.Bool // its next answer starts the servers in a while

	// mu guards the following
	mu   sync.Mutex
	list jsonrpc.ID  // of its last tools/list, whose answer starts the servers
	wait *time.Timer // the start in a while
}

func (c *startingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if req, ok := m.(*jsonrpc.Request); ok && req.IsCall() {
		method := strings.TrimSuffix(req.Method, wire.RawSuffix)
		if !c.greeted.Load() && (method == methodInitialize || namesRevision(req.Params)) {
			c.greeted.Store(true)
		}
		switch {
		case !c.greeted.Load() || method == methodDiscover || method == "ping":
		case method == methodCallTool:
			c.s.Start()
		case method == methodListTools:
			c.mu.Lock()
			c.list = req.ID
			c.mu.Unlock()
		default:
			c.begun.Store(true)
		}
	}
	return m, err
}

// namesRevision tells whether a request says of which revision it is, as those
// of 2026-07-28 do.
func namesRevision(params json.RawMessage) bool {
	o, _ := rawjson.Parse(params) // what cannot be read is nothing
	meta, _ := rawjson.Parse(o.Get("_meta"))
	return meta.Has(mcp.MetaKeyProtocolVersion)
}

func (c *startingConn) Write(ctx context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Response)
	if ok && !c.greeted.Load() {
		m = refusedUngreeted(r)
	}
	err := c.Connection.Write(ctx, m)
	if ok && err == nil {
		c.answered(r.ID)
	}
	return err
}

// answered starts the servers if it is time.
func (c *startingConn) answered(id jsonrpc.ID) {
	c.mu.Lock()
	listed := c.list.IsValid() && c.list == id
	if !listed && c.wait == nil && c.begun.Load() {
		c.wait = time.AfterFunc(listGrace, c.s.Start)
	}
	c.mu.Unlock()
	if listed {
		c.s.Start()
	}
}

// Close also keeps the servers from being started for a client that is gone.
func (c *startingConn) Close() error {
	c.mu.Lock()
	if c.wait != nil {
		c.wait.Stop()
	}
	c.mu.Unlock()
	return c.Connection.Close()
}

// refusedUngreeted gives the SDK's refusal of a request before initialize a
// code: it has none, and no other error at that time is without one.
func refusedUngreeted(r *jsonrpc.Response) *jsonrpc.Response {
	if _, coded := errors.AsType[*jsonrpc.Error](r.Error); r.Error == nil || coded {
		return r
	}
	return &jsonrpc.Response{ID: r.ID, Error: &wire.Error{
		Code: jsonrpc.CodeInvalidRequest, Message: "this session is not initialized: send initialize first",
	}}
}

// invalidParams is the JSON-RPC error for a request that nobody can answer.
func invalidParams(format string, args ...any) error {
	return &wire.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
