package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options of a transport. The zero value works.
type Options struct {
	// RawMethods are the incoming methods that get [RawSuffix].
	RawMethods []string
	// Progress gets the params of each notifications/progress, before any
	// later message is delivered. It must not block. Nil: they go to the SDK.
	Progress func(params json.RawMessage)
	// Noise gets what was printed and was no message, cut to about 1,000
	// bytes, at most 20 times a minute. It must not block. Client side only.
	Noise func(line string)
	// MaxLine is the longest message that is read; 0: [DefaultMaxLine].
	MaxLine int
	// Stall is how long the peer may take no byte of a message that is being
	// written before the connection is given up; 0: [DefaultStall] on the
	// client side, no limit on the server side (a stopped client may go on).
	Stall time.Duration
	// Drain is how long, after the end of the input, answers to requests that
	// were read are waited for; 0: [DefaultDrain]. Server side only.
	Drain time.Duration
}

const (
	DefaultStall = 10 * time.Second
	DefaultDrain = 5 * time.Second

	maxNoise      = 20 // a minute
	maxNoiseBytes = 1000
)

var (
	// ErrStalled ends a connection whose peer does not read.
	ErrStalled = errors.New("the peer does not read its input")
	// ErrNotSent is in the chain of a Write's error if no byte of the message
	// has left.
	ErrNotSent = errors.New("not sent")
	// ErrTooLarge is in the chain of the error of a call whose answer was
	// over the limit.
	ErrTooLarge = errors.New("answer too large")

	errClosed = errors.New("connection closed")
)

// NewClientTransport carries messages over lines to and from a server that
// may also write other things: what is no JSON-RPC message is skipped and
// reported as noise. Closing the connection closes r and w.
func NewClientTransport(r io.ReadCloser, w io.WriteCloser, o Options) mcp.Transport {
	if o.Stall == 0 {
		o.Stall = DefaultStall
	}
	return newTransport(r, w, o, false)
}

// NewServerTransport carries messages over lines to and from our client. What
// is no JSON-RPC message is answered with an error, and the session goes on.
// Requests that the client cancelled are not answered; at the end of r, Read
// returns io.EOF when all others are answered. Closing the connection closes
// r and w.
func NewServerTransport(r io.ReadCloser, w io.WriteCloser, o Options) mcp.Transport {
	if o.Drain == 0 {
		o.Drain = DefaultDrain
	}
	return newTransport(r, w, o, true)
}

type transport struct{ c *conn }

func newTransport(r io.ReadCloser, w io.WriteCloser, o Options, server bool) *transport {
	if o.MaxLine == 0 {
		o.MaxLine = DefaultMaxLine
	}
	return &transport{&conn{
		r: r, w: w, o: o, server: server,
		in:      make(chan jsonrpc.Message),
		queue:   make(chan *frame, 64),
		closed:  make(chan struct{}),
		drained: make(chan struct{}, 1),
		owed:    map[string]bool{},
		raw:     map[string]bool{},
	}}
}

func (t *transport) Connect(context.Context) (mcp.Connection, error) {
	go t.c.read()
	go t.c.write()
	return t.c, nil
}

// conn is one connection. Two goroutines serve it until it is closed: read,
// which may stay blocked in a reader that Close cannot interrupt, and write.
type conn struct {
	// fixed at creation
	r       io.ReadCloser
	w       io.WriteCloser
	o       Options
	server  bool
	in      chan jsonrpc.Message // from read to Read
	queue   chan *frame          // from Write to write
	closed  chan struct{}        // closed by shut
	drained chan struct{}        // one slot: owed may have become empty

	framed atomic.Bool // answer in Content-Length frames

	// owned by read
	noise NoiseLimit

	// mu guards the following
	mu    sync.Mutex
	err   error           // why it is closed
	raw   map[string]bool // by id: raw requests of ours. Client side only
	owed  map[string]bool // by id text: requests to answer; false if cancelled. Server side only
	init  string          // the id of initialize, which must not be cancelled
	extra int             // error answers of ours that are not written yet
}

// frame is one message on its way out.
type frame struct {
	bytes []byte
	taken atomic.Bool // by write, or by a caller who gave up
	done  chan error  // one slot, filled by write
	after func()      // nil, or called by write when it is written
}

func (c *conn) SessionID() string { return "" }

// Close implements [mcp.Connection].
func (c *conn) Close() error {
	c.shut(io.EOF)
	return nil
}

func (c *conn) shut(err error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
	}
	c.mu.Unlock()
	if first {
		close(c.closed)
		c.w.Close() // the error of closing a pipe helps nobody
		c.r.Close()
	}
}

func (c *conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Read implements [mcp.Connection].
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.closed:
		return nil, c.cause()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection]. It returns when the message is written,
// at the latest when ctx ends: a message that has been begun is finished
// then, one that has not is never sent.
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) error {
	if answer, ok := m.(*jsonrpc.Response); ok && c.server {
		if id, ok := answer.ID.Raw().(string); ok {
			if !c.wanted(id) {
				return nil
			}
			defer c.settle(id)
		}
	}
	e := EnvelopeOf(m)
	if !c.server {
		c.noteRaw(e)
	}
	f := &frame{bytes: e.Bytes(), done: make(chan error, 1)}
	select {
	case <-c.closed:
		return c.notSent(c.cause())
	default:
	}
	select {
	case c.queue <- f:
	case <-ctx.Done():
		return c.notSent(ctx.Err())
	case <-c.closed:
		return c.notSent(c.cause())
	}
	var why error
	select {
	case err := <-f.done:
		return err
	case <-ctx.Done():
		why = ctx.Err()
	case <-c.closed:
		why = c.cause()
	}
	if f.taken.CompareAndSwap(false, true) {
		return c.notSent(why)
	}
	select {
	case err := <-f.done: // it was written in the last moment
		return err
	default:
		return why
	}
}

func (c *conn) notSent(why error) error {
	if errors.Is(why, io.EOF) {
		why = errClosed
	}
	return fmt.Errorf("%w: %w", ErrNotSent, why)
}

// write is the one goroutine that writes to w.
func (c *conn) write() {
	stall := time.AfterFunc(time.Hour, func() {
		c.shut(fmt.Errorf("%w: nothing was taken for %v", ErrStalled, c.o.Stall))
	})
	stall.Stop()
	defer stall.Stop()
	for {
		select {
		case f := <-c.queue:
			if !f.taken.CompareAndSwap(false, true) {
				continue
			}
			err := c.put(f.bytes, stall)
			f.done <- err
			if f.after != nil {
				f.after()
			}
			if err != nil {
				c.shut(err)
				return
			}
		case <-c.closed:
			return
		}
	}
}

// chunk is written in one piece: the peer that takes one a while is alive.
const chunk = 64 << 10

func (c *conn) put(b []byte, stall *time.Timer) error {
	if c.framed.Load() {
		b = append([]byte("Content-Length: "+strconv.Itoa(len(b))+"\r\n\r\n"), b...)
	} else {
		b = append(b, '\n')
	}
	for part := range slices.Chunk(b, chunk) {
		if c.o.Stall > 0 {
			stall.Reset(c.o.Stall)
		}
		_, err := c.w.Write(part)
		stall.Stop()
		if err != nil {
			if cause := c.cause(); cause != nil {
				return cause // closing made the write fail
			}
			return err
		}
	}
	return nil
}

// read is the one goroutine that reads from r. After Close it goes on until
// r ends, so that a child that still writes is not disturbed.
func (c *conn) read() {
	lines := newLineReader(c.r, c.o.MaxLine, c.server)
	for {
		text, err := lines.next()
		if lines.framed {
			c.framed.Store(true)
		}
		var long *tooLong
		var bad *badFrame
		switch {
		case errors.As(err, &long):
			c.takeTooLong(long)
		case errors.As(err, &bad):
			c.answerError(nil, jsonrpc.CodeParseError, bad.Error())
		case err != nil:
			if c.server {
				c.drain()
			}
			if !errors.Is(err, io.EOF) {
				err = fmt.Errorf("read: %w", err)
			}
			c.shut(err)
			return
		default:
			c.take(text)
		}
	}
}

// drain waits until every request that was read is answered.
func (c *conn) drain() {
	limit := time.NewTimer(c.o.Drain)
	defer limit.Stop()
	for {
		c.mu.Lock()
		left := c.extra
		for _, wanted := range c.owed {
			if wanted {
				left++
			}
		}
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-c.drained:
		case <-limit.C:
			return
		case <-c.closed:
			return
		}
	}
}

// take handles one text that should be a message.
func (c *conn) take(text []byte) {
	e, err := ParseEnvelope(text)
	if errors.Is(err, ErrNotJSON) && c.takeSeveral(text) {
		return
	}
	if err != nil {
		c.refuse(e, err, text)
		return
	}
	c.deliver(e, text)
}

// takeSeveral handles texts that hold a message and more: several messages
// without a line break between them and, from a server, a message after
// something that was printed without one.
func (c *conn) takeSeveral(text []byte) bool {
	if text[0] != '{' {
		if c.server {
			return false
		}
		start := slices.Index(text, '{')
		if start < 0 {
			return false
		}
		e, err := ParseEnvelope(text[start:])
		if err != nil {
			return false
		}
		c.report(text[:start], "")
		c.deliver(e, text[start:])
		return true
	}
	parts, rest := splitObjects(text)
	if len(parts) == 0 {
		return false
	}
	for _, part := range parts {
		c.take(part)
	}
	if len(rest) > 0 {
		c.refuse(Envelope{}, ErrNotJSON, rest)
	}
	return true
}

func (c *conn) refuse(e Envelope, err error, text []byte) {
	if !c.server {
		if id, ok := responseID(e.ID); ok && errors.Is(err, errEmpty) {
			c.hand(&jsonrpc.Response{ID: id, Error: errors.New("the answer has neither result nor error")})
			return
		}
		why := err.Error()
		if errors.Is(err, ErrNotJSON) {
			why = "" // plain text; what else
		}
		c.report(text, why)
		return
	}
	code := int64(jsonrpc.CodeInvalidRequest)
	if errors.Is(err, ErrNotJSON) {
		code = jsonrpc.CodeParseError
	}
	c.answerError(e.ID, code, err.Error())
}

func (c *conn) takeTooLong(long *tooLong) {
	id := json.RawMessage(long.envelope.id)
	switch {
	case c.server:
		c.answerError(id, jsonrpc.CodeInvalidRequest, long.Error())
	case long.envelope.method:
		c.report(nil, long.Error())
	default:
		if own, ok := responseID(id); ok {
			c.hand(&jsonrpc.Response{ID: own, Error: fmt.Errorf("%w: %w", ErrTooLarge, long)})
			return
		}
		c.report(nil, long.Error())
	}
}

// deliver hands one message to the SDK, or deals with it here.
func (c *conn) deliver(e Envelope, text []byte) {
	switch {
	case e.Request && e.ID == nil && e.Method == "notifications/progress" && c.o.Progress != nil:
		c.o.Progress(e.Params)
		return
	case e.isCancelled():
		if id, _ := e.cancelled(); c.server && !c.cancel(string(id)) {
			return
		}
	case e.Request:
		if e.ID != nil && c.server && !c.owe(string(e.ID), e.Method) {
			c.answerError(nil, jsonrpc.CodeInvalidRequest, "a request with the id "+clip(string(e.ID), 40)+" is still being worked on")
			return
		}
		if slices.Contains(c.o.RawMethods, e.Method) {
			e.Method += RawSuffix
			e.Raw = true
			if e.Params == nil {
				e.Params = json.RawMessage("{}")
			}
		}
	}
	m, err := e.Message()
	if err != nil {
		if !c.server { // a client's answer to nothing needs no answer
			c.report(text, err.Error())
		}
		return
	}
	switch m := m.(type) {
	case *jsonrpc.Request:
		if e.Raw {
			inExtra(m)
		}
	case *jsonrpc.Response:
		if c.isRaw(string(e.ID)) {
			KeepRaw(m)
		}
	}
	c.hand(m)
}

// noteRaw remembers which requests of ours are raw, until they are answered
// or cancelled.
func (c *conn) noteRaw(e Envelope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.Raw && e.ID != nil:
		c.raw[string(e.ID)] = true
	case e.isCancelled():
		id, _ := e.cancelled()
		delete(c.raw, string(id))
	}
}

// isRaw tells whether an answer is one to a raw request.
func (c *conn) isRaw(id string) bool {
	id = strings.Trim(id, `"`) // some servers answer "1" for 1
	c.mu.Lock()
	defer c.mu.Unlock()
	raw := c.raw[id]
	delete(c.raw, id)
	return raw
}

func (c *conn) hand(m jsonrpc.Message) {
	select {
	case c.in <- m:
	case <-c.closed: // nobody reads any more
	}
}

// owe notes a request; false if its id is in use.
func (c *conn) owe(id, method string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, used := c.owed[id]; used {
		return false
	}
	c.owed[id] = true
	if method == "initialize" {
		c.init = id
	}
	return true
}

// cancel notes that a request is not to be answered. It reports false if the
// cancellation is to be dropped: the request is finished, was never made, or
// is initialize.
func (c *conn) cancel(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.owed[id] || c.init == id {
		return false
	}
	c.owed[id] = false
	return true
}

// wanted tells whether a request is still to be answered. If not, it is
// forgotten.
func (c *conn) wanted(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owed[id] {
		return true
	}
	delete(c.owed, id)
	return false
}

func (c *conn) settle(id string) {
	c.mu.Lock()
	delete(c.owed, id)
	c.mu.Unlock()
	c.wake()
}

func (c *conn) wake() {
	select {
	case c.drained <- struct{}{}:
	default:
	}
}

// answerError answers a text that never reaches the SDK. It does not wait: a
// client that sends only garbage and does not read gets no answers.
func (c *conn) answerError(id json.RawMessage, code int64, message string) {
	f := &frame{
		bytes: Envelope{ID: id, Error: errorBytes(&Error{Code: code, Message: message})}.Bytes(),
		done:  make(chan error, 1),
		after: func() { c.addExtra(-1); c.wake() },
	}
	c.addExtra(1)
	select {
	case c.queue <- f:
	default:
		c.addExtra(-1)
	}
}

func (c *conn) addExtra(n int) {
	c.mu.Lock()
	c.extra += n
	c.mu.Unlock()
}

func (c *conn) report(text []byte, why string) {
	if c.o.Noise == nil {
		return
	}
	line, ok := c.noise.Allow(time.Now())
	if !ok {
		return
	}
	if len(text) > 0 {
		line = clip(string(text), maxNoiseBytes) + line
	}
	if why != "" {
		line += " (" + why + ")"
	}
	c.o.Noise(line)
}

// NoiseLimit lets 20 reports a minute through and counts the others. The zero
// value is ready.
type NoiseLimit struct {
	mu      sync.Mutex // guards the following
	since   time.Time
	n, lost int
}

// Allow returns whether to report now, and what to add about those left out.
func (l *NoiseLimit) Allow(now time.Time) (suffix string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= time.Minute {
		l.since, l.n = now, 0
	}
	if l.n++; l.n > maxNoise {
		l.lost++
		return "", false
	}
	if l.lost > 0 {
		suffix = fmt.Sprintf(" (after %d more that were not reported)", l.lost)
		l.lost = 0
	}
	return suffix, true
}
