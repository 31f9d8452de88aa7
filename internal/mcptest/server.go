package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Message is one JSON-RPC message, with the bytes it was made of.
type Message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`

	Raw json.RawMessage `json:"-"` // the whole line
}

func parseMessage(line []byte) (Message, error) {
	m := Message{Raw: bytes.Clone(bytes.TrimSpace(line))}
	return m, json.Unmarshal(m.Raw, &m)
}

// Server is a fake upstream server. It serves any number of connections, each
// with the behaviour of its Script, and records what it receives.
type Server struct {
	script Script // fixed at creation

	// mu guards the following.
	mu       sync.Mutex
	tools    []json.RawMessage
	names    map[string]bool // of tools
	conns    map[*conn]bool
	received []Message
	arrived  chan struct{} // closed and replaced when received grows
	record   *os.File
	sessions map[string]*conn // of the HTTP face
	opened   int              // HTTP sessions so far
	fresh    int              // cursors given out
}

// New makes a server. It panics if the script cannot be played.
func New(script Script) *Server {
	if script.Name == "" {
		script.Name = "fake"
	}
	tools, err := script.load()
	if err != nil {
		panic(fmt.Sprintf("mcptest: %v", err))
	}
	s := &Server{script: script, conns: map[*conn]bool{}, sessions: map[string]*conn{}, arrived: make(chan struct{})}
	s.SetTools(tools, false)
	if script.Record != "" {
		if s.record, err = os.OpenFile(script.Record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			panic(fmt.Sprintf("mcptest: %v", err))
		}
	}
	return s
}

// Dial opens one in-memory connection: the value of upstreams.Config.Dial.
func (s *Server) Dial(context.Context) (mcp.Transport, error) {
	r, w := s.Pipe()
	return &mcp.IOTransport{Reader: r, Writer: w, MaxLineLength: -1}, nil
}

// Pipe opens one in-memory connection as the two streams of its client side.
// Closing the writer ends it.
func (s *Server) Pipe() (io.ReadCloser, io.WriteCloser) {
	ours, theirs := io.Pipe()
	in, out := io.Pipe()
	go func() {
		_ = s.Serve(in, theirs)
		_ = theirs.Close()
		_ = in.Close()
	}()
	return ours, out
}

// Tools returns the current list.
func (s *Server) Tools() []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// SetTools replaces the list; with notify, all connections are told.
func (s *Server) SetTools(tools []json.RawMessage, notify bool) {
	names := make(map[string]bool, len(tools))
	for _, t := range tools {
		var d struct{ Name string }
		if json.Unmarshal(t, &d) == nil {
			names[d.Name] = true
		}
	}
	s.mu.Lock()
	s.tools, s.names = tools, names
	s.mu.Unlock()
	if notify {
		s.Notify("notifications/tools/list_changed", nil)
	}
}

// Notify sends a notification to all connections.
func (s *Server) Notify(method string, params json.RawMessage) {
	s.mu.Lock()
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.send(Message{Method: method, Params: params})
	}
}

// Drop ends all connections, as a crash of the server would, and forgets all
// HTTP sessions.
func (s *Server) Drop() {
	s.mu.Lock()
	conns := s.conns
	s.conns = map[*conn]bool{}
	clear(s.sessions)
	s.mu.Unlock()
	for c := range conns {
		c.end()
	}
}

// Received returns all messages received so far, on all connections.
func (s *Server) Received() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.received...)
}

// Await waits until n messages with this method have been received, and
// returns those that were.
func (s *Server) Await(ctx context.Context, method string, n int) ([]Message, error) {
	for {
		s.mu.Lock()
		var found []Message
		for _, m := range s.received {
			if m.Method == method {
				found = append(found, m)
			}
		}
		arrived := s.arrived
		s.mu.Unlock()
		if len(found) >= n {
			return found, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return found, fmt.Errorf("waiting for %d × %s, have %d: %w", n, method, len(found), ctx.Err())
		}
	}
}

func (s *Server) note(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, m)
	close(s.arrived)
	s.arrived = make(chan struct{})
	if s.record != nil {
		fmt.Fprintf(s.record, "%s\n", m.Raw)
	}
}

// errDied ends a connection in the way a crash does.
var errDied = errors.New("mcptest: the script says to die")

// conn is one connection, or one session over HTTP.
type conn struct {
	// Fixed at creation.
	server  *Server
	ctx     context.Context // ends with the connection
	cancel  context.CancelCauseFunc
	end     func()            // as a crash would
	write   func(line []byte) // writes one line or event
	writing chan struct{}     // held while writing: a mutex that testing/synctest understands
	events  chan []byte       // over HTTP: what write got, for the event stream; never closed
	work    sync.WaitGroup    // requests being answered

	// mu guards the following.
	mu       sync.Mutex
	inFlight map[string]context.CancelFunc // by request id
}

func (s *Server) open(write func([]byte), end func()) *conn {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &conn{server: s, ctx: ctx, cancel: cancel, write: write, writing: make(chan struct{}, 1), inFlight: map[string]context.CancelFunc{}}
	c.end = func() { cancel(errDied); end() }
	s.mu.Lock()
	s.conns[c] = true
	s.mu.Unlock()
	return c
}

func (s *Server) shut(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	c.cancel(nil)
	c.work.Wait()
}

// Serve plays the script on one pair of streams until r ends or the script
// ends it. It returns errDied if the script or Drop ended it.
func (s *Server) Serve(r io.ReadCloser, w io.Writer) error {
	c := s.open(func(line []byte) { _, _ = w.Write(append(line, '\n')) }, func() { _ = r.Close() })
	defer s.shut(c)
	if s.script.Exit == "start" {
		return errDied
	}
	for _, line := range s.script.NoiseBefore {
		c.line([]byte(line))
	}
	if n := s.script.NoiseBytes; n > 0 {
		c.line(bytes.Repeat([]byte("#"), n))
	}
	in := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			c.receive(line)
		}
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		if err != nil {
			return nil
		}
	}
}

// line writes one line as it is.
func (c *conn) line(b []byte) {
	select {
	case c.writing <- struct{}{}:
		c.write(b)
		<-c.writing
	case <-c.ctx.Done():
	}
}

// send writes a message with the noise around it.
func (c *conn) send(m Message) {
	for _, l := range c.server.script.NoiseBetween {
		c.line([]byte(l))
	}
	c.line(m.encode())
	for _, l := range c.server.script.NoiseAfter {
		c.line([]byte(l))
	}
}

// encode keeps the bytes of raw parts, which json.Marshal would compact.
func (m Message) encode() []byte {
	b := []byte(`{"jsonrpc":"2.0"`)
	add := func(name string, v []byte) {
		if len(v) > 0 {
			b = append(append(b, `,"`+name+`":`...), v...)
		}
	}
	add("id", m.ID)
	if m.Method != "" {
		add("method", mustMarshal(m.Method))
	}
	add("params", m.Params)
	add("result", m.Result)
	add("error", m.Error)
	return append(b, '}')
}

// receive handles one line: requests in a goroutine of their own.
func (c *conn) receive(line []byte) {
	m, err := parseMessage(line)
	if err != nil {
		c.server.note(Message{Raw: mustMarshal("not JSON: " + string(line))})
		return
	}
	c.server.note(m)
	switch {
	case m.Method == "" || len(m.ID) == 0:
		c.heed(m)
	case m.Method == "initialize": // in order: a script may end the connection right after it
		c.answer(c.ctx, m, c.send)
	default:
		c.work.Go(func() { c.answer(c.ctx, m, c.send) })
	}
}

// heed takes in a message that wants no answer.
func (c *conn) heed(m Message) {
	switch m.Method {
	case "notifications/initialized":
		for _, u := range c.server.script.Unasked {
			c.line(u)
		}
	case "notifications/cancelled":
		var p struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(m.Params, &p)
		c.mu.Lock()
		defer c.mu.Unlock()
		if cancel := c.inFlight[string(p.RequestID)]; cancel != nil {
			cancel()
		}
	}
}

// answer carries out one request and sends what belongs to it.
func (c *conn) answer(ctx context.Context, m Message, send func(Message)) {
	s := c.server
	a, result, rpcErr := s.plan(m)
	if a.Die {
		c.end()
		return
	}
	whole := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	c.inFlight[string(m.ID)] = cancel
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.inFlight, string(m.ID))
		c.mu.Unlock()
	}()
	if a.Late {
		ctx = whole // cancelling the request alone is not heard
	}

	steps := a.Progress + 1
	for i := range steps {
		if !sleep(ctx, a.Delay/time.Duration(steps)) {
			return
		}
		if i < a.Progress {
			if token := progressToken(m.Params); token != nil {
				send(Message{Method: "notifications/progress", Params: fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"total":%d,"message":"step %d"}`, token, i+1, a.Progress, i+1)})
			}
		}
	}
	if a.Never {
		<-ctx.Done()
		return
	}
	if a.Tools != nil {
		s.SetTools(a.Tools, false)
	}
	if a.Notify {
		s.Notify("notifications/tools/list_changed", nil)
	}
	send(Message{ID: m.ID, Result: result, Error: rpcErr})
	if m.Method == "initialize" && s.script.Exit == "initialized" {
		c.end()
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func progressToken(params json.RawMessage) json.RawMessage {
	var p struct {
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil
	}
	return p.Meta.ProgressToken
}

// plan decides on the answer to a request.
func (s *Server) plan(m Message) (a Answer, result, rpcErr json.RawMessage) {
	a, scripted := s.script.Methods[m.Method]
	switch {
	case scripted && m.Method != "tools/call" && (a.Result != nil || a.Error != nil || a.Text != "" || a.Bytes > 0):
	case m.Method == "initialize":
		return a, s.initialize(m.Params), nil
	case m.Method == "ping":
		return a, json.RawMessage(`{}`), nil
	case m.Method == "tools/list":
		return a, s.list(m.Params), nil
	case m.Method == "tools/call":
		return s.call(m.Params)
	case !scripted:
		return a, nil, fmt.Appendf(nil, `{"code":-32601,"message":"method not found: %s"}`, m.Method)
	}
	result, rpcErr = a.outcome(json.RawMessage(`{}`))
	return a, result, rpcErr
}

func (s *Server) initialize(params json.RawMessage) json.RawMessage {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(params, &p)
	if s.script.Protocol != "" {
		p.ProtocolVersion = s.script.Protocol
	}
	capabilities := s.script.Capabilities
	if capabilities == nil {
		capabilities = json.RawMessage(`{"tools":{"listChanged":true}}`)
	}
	info := map[string]string{"name": s.script.Name, "version": "1.0.0"}
	if s.script.Title != "" {
		info["title"] = s.script.Title
	}
	r := map[string]any{"protocolVersion": p.ProtocolVersion, "capabilities": capabilities, "serverInfo": info}
	if s.script.Instructions != "" {
		r["instructions"] = s.script.Instructions
	}
	return mustMarshal(r)
}

// list returns one page. A cursor is the index of the page's first tool.
func (s *Server) list(params json.RawMessage) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var p struct{ Cursor string }
	_ = json.Unmarshal(params, &p)
	from, _ := strconv.Atoi(strings.TrimPrefix(p.Cursor, "fresh-"))
	size := s.script.PageSize
	if size == 0 {
		size = len(s.tools)
	}
	var cursor *string
	switch to := from + size; {
	case s.script.Cursor == "repeat":
		cursor, from = new("0"), 0
	case s.script.Cursor == "fresh":
		s.fresh++
		cursor, from = new(fmt.Sprintf("fresh-%d", s.fresh)), 0
	case to < len(s.tools):
		cursor = new(strconv.Itoa(to))
	case s.script.Cursor == "empty":
		cursor = new("")
	}
	from = min(from, len(s.tools))
	b := []byte(`{"tools":[`)
	for i, t := range s.tools[from:min(from+size, len(s.tools))] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, bytes.ReplaceAll(t, []byte("\n"), nil)...) // a message is one line
	}
	b = append(b, ']')
	if cursor != nil {
		b = append(append(b, `,"nextCursor":`...), mustMarshal(*cursor)...)
	}
	return append(b, '}')
}

func (s *Server) call(params json.RawMessage) (a Answer, result, rpcErr json.RawMessage) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	_ = json.Unmarshal(params, &p)
	if !s.has(p.Name) {
		return a, nil, mustMarshal(map[string]any{"code": -32602, "message": "Unknown tool: " + p.Name})
	}
	a, ok := s.script.Answers[p.Name]
	if !ok {
		a = s.script.Answers["*"]
	}
	args := p.Arguments
	if args == nil {
		args = json.RawMessage("null")
	}
	echo := fmt.Sprintf(`{"server":%s,"tool":%s,"arguments":%s}`, mustMarshal(s.script.Name), mustMarshal(p.Name), args)
	result, rpcErr = a.outcome(textResult(echo))
	return a, result, rpcErr
}

func (s *Server) has(tool string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[tool]
}

func (a Answer) outcome(otherwise json.RawMessage) (result, rpcErr json.RawMessage) {
	switch {
	case a.Error != nil:
		return nil, a.Error
	case a.Result != nil:
		return a.Result, nil
	case a.Bytes > 0:
		return textResult(strings.Repeat("x", a.Bytes)), nil
	case a.Text != "":
		return textResult(a.Text), nil
	}
	return otherwise, nil
}

func textResult(text string) json.RawMessage {
	return mustMarshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}})
}
