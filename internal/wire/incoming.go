package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

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
	peer := ""
	switch {
	case e.Request && e.ID == nil && e.Method == "notifications/progress" && c.o.Progress != nil:
		c.o.Progress(e.Params)
		return
	case e.isCancelled():
		if id, _ := e.cancelled(); c.server && !c.cancel(string(id)) {
			return
		}
	case e.Request:
		e.Raw = slices.Contains(c.o.RawMethods, e.Method)
		if e.Raw {
			peer = peerOf(e.Params)
		}
		if e.ID != nil && c.server && !c.owe(string(e.ID), e.Method, peer) {
			c.answerError(nil, jsonrpc.CodeInvalidRequest, "a request with the id "+clip(string(e.ID), 40)+" is still being worked on")
			return
		}
		if e.Raw {
			e.Method += RawSuffix
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
		if e.Raw && c.accepted(peer) {
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
func (c *conn) owe(id, method, peer string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, used := c.owed[id]; used {
		return false
	}
	c.owed[id] = &debt{peer: peer}
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
	d := c.owed[id]
	if d == nil || d.cancelled || c.init == id {
		return false
	}
	d.cancelled = true
	return true
}

// wanted tells whether a request is still to be answered. If not, it is
// forgotten. A result proves that the SDK accepted the request.
func (c *conn) wanted(id string, result bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.owed[id]
	if d == nil || d.cancelled {
		delete(c.owed, id)
		return false
	}
	if result && d.peer != "" {
		c.peer = d.peer
	}
	return true
}

// accepted tells whether the SDK need not look at what a request says of its
// connection: nothing, or the same as one before.
func (c *conn) accepted(peer string) bool {
	if peer == "" {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return peer == c.peer
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
