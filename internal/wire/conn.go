package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
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
		owed:    map[string]*debt{},
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
	err   error            // why it is closed
	raw   map[string]bool  // by id: raw requests of ours. Client side only
	owed  map[string]*debt // by id text: requests to answer. Server side only
	peer  string           // what the SDK last accepted of what a request says of its connection. Server side only
	init  string           // the id of initialize, which must not be cancelled
	extra int              // error answers of ours that are not written yet
}

// debt is a request that was read and is to be answered.
type debt struct {
	peer      string // what it says of its connection
	cancelled bool
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
			if !c.wanted(id, isResult(answer)) {
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
		for _, d := range c.owed {
			if !d.cancelled {
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
