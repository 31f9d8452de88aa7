package upstreams

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// The transport is our own and not the SDK's, for what cannot be put right
// around that one: a 400 or a stray event there ends the session for good, a
// GET that is never answered holds up connecting, its errors quote the URL
// with its secrets, and it cannot be wrapped.

const (
	sessionHeader  = "Mcp-Session-Id"
	protocolHeader = "Mcp-Protocol-Version"
	lastEventID    = "Last-Event-Id"

	deleteTimeout = time.Second
	minReopen     = time.Second // pauses before a broken stream is opened again
	maxReopen     = 30 * time.Second
	minRetry      = 100 * time.Millisecond // of what a server may ask for
	maxResumes    = 5                      // of the stream of one call, without a new event
)

// dialHTTP prepares a link to a server over HTTP. Nothing is sent before the
// first message.
func dialHTTP(_ context.Context, cfg Config, ev linkEvents, _ *slog.Logger) (*link, error) {
	caller, err := newHTTPCaller(cfg)
	if err != nil {
		return nil, err
	}
	maxResult := cfg.MaxResultBytes
	if maxResult == 0 {
		maxResult = DefaultMaxResultBytes
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &httpConn{
		caller: caller, maxResult: maxResult, fallback: cfg.Transport == "",
		progress: ev.Progress, noise: redacted(caller.hidden, ev.Noise),
		ctx: ctx, cancel: cancel,
		in: make(chan jsonrpc.Message),
	}
	if cfg.Transport == "sse" {
		c.legacy = &legacy{conn: c}
	}
	return &link{
		transport: c,
		close:     func(context.Context) error { return c.Close() },
		stderr:    func() string { return "" },
		exit:      func() (string, bool) { return "", false },
	}, nil
}

// httpConn is a client's connection over streamable HTTP, revision 2025-11-25,
// or over the older pair of an event stream and an address to post to. It is
// its own transport.
type httpConn struct {
	// fixed at creation
	caller    *httpCaller
	maxResult int
	fallback  bool // try the older transport if the server does not speak this one
	progress  func(json.RawMessage)
	noise     func(string)
	ctx       context.Context // ends with the connection, with why as cause
	cancel    context.CancelCauseFunc
	in        chan jsonrpc.Message // to Read; never closed

	work  sync.WaitGroup // requests and streams
	quiet wire.NoiseLimit

	// mu guards the following
	mu       sync.Mutex
	session  string  // Mcp-Session-Id, "" if the server gave none
	protocol string  // negotiated version, "" before
	legacy   *legacy // non-nil: the older transport is spoken
	closed   bool
}

func (c *httpConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

func (c *httpConn) SessionID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// Read implements [mcp.Connection].
func (c *httpConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.ctx.Done():
		return nil, context.Cause(c.ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close implements [mcp.Connection]: it ends the session and all requests.
func (c *httpConn) Close() error {
	c.mu.Lock()
	first, session := !c.closed, c.session
	c.closed = true
	c.mu.Unlock()
	if first {
		if session != "" && c.ctx.Err() == nil {
			ctx, cancel := context.WithTimeout(c.ctx, deleteTimeout)
			if resp, err := c.caller.do(ctx, http.MethodDelete, c.caller.url, c.own(""), nil); err == nil {
				resp.Body.Close() // whatever it answered: we are gone
			}
			cancel()
		}
		c.cancel(io.EOF)
	}
	c.work.Wait()
	c.caller.client.CloseIdleConnections()
	return nil
}

// begin registers work that Close waits for; false if it is too late.
func (c *httpConn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.ctx.Err() != nil {
		return false
	}
	c.work.Add(1)
	return true
}

// own are the headers that the protocol wants of a request.
func (c *httpConn) own(accept string) http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := http.Header{}
	if accept != "" {
		h.Set("Accept", accept)
	}
	if c.session != "" {
		h.Set(sessionHeader, c.session)
	}
	if c.protocol != "" {
		h.Set(protocolHeader, c.protocol)
	}
	return h
}

func (c *httpConn) older() *legacy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.legacy
}

// Write implements [mcp.Connection]. A request is carried out in the
// background, and what becomes of it arrives as its answer: one that fails
// does not end the session. Other messages are sent before Write returns; a
// server that refuses them has lost a notification, no more.
func (c *httpConn) Write(ctx context.Context, m jsonrpc.Message) error {
	e := wire.EnvelopeOf(m)
	if !c.begin() {
		return fmt.Errorf("%w: %w", wire.ErrNotSent, mcp.ErrConnectionClosed)
	}
	// The request ends with its caller's ctx and with the connection.
	both, cancel := context.WithCancelCause(c.ctx)
	stop := context.AfterFunc(ctx, func() { cancel(ctx.Err()) })
	done := func() { stop(); cancel(nil); c.work.Done() }
	if e.Request && e.ID != nil {
		go func() {
			defer done()
			if err := c.request(both, e); err != nil {
				c.fail(e, err)
			}
		}()
		return nil
	}
	defer done()
	if err := c.notify(both, e); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.report(nil, fmt.Sprintf("%s: %v", e.Method, err))
	}
	if e.Method == "notifications/initialized" && c.older() == nil && c.begin() {
		go func() {
			defer c.work.Done()
			c.listen()
		}()
	}
	return nil
}

// fail answers a request of ours in the server's place.
func (c *httpConn) fail(e wire.Envelope, err error) {
	c.hand(&jsonrpc.Response{ID: idOf(e), Error: err})
	if errors.Is(err, errSessionGone) {
		c.cancel(err)
	}
}

// idOf is the SDK's id of a request of ours.
func idOf(e wire.Envelope) jsonrpc.ID {
	m, err := wire.Envelope{ID: e.ID, Error: json.RawMessage("{}")}.Message()
	if err != nil {
		panic(err) // it is the SDK's own number
	}
	return m.(*jsonrpc.Response).ID
}

func (c *httpConn) hand(m jsonrpc.Message) {
	select {
	case c.in <- m:
	case <-c.ctx.Done():
	}
}

// take handles one message from the server. It returns whether that was the
// answer to the request that it came for (nil: none).
func (c *httpConn) take(text []byte, request *wire.Envelope) (answered bool) {
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	e, err := wire.ParseEnvelope(text)
	if err != nil {
		c.report(text, err.Error())
		return false
	}
	if e.Request && e.ID == nil && e.Method == "notifications/progress" && c.progress != nil {
		c.progress(e.Params)
		return false
	}
	if !e.Request && e.ID == nil && request != nil {
		e.ID = request.ID // an error of the request as a whole
	}
	m, err := e.Message()
	if err != nil {
		c.report(text, err.Error())
		return false
	}
	if r, ok := m.(*jsonrpc.Response); ok && request != nil && r.ID == idOf(*request) {
		answered = true
		if request.Raw {
			wire.KeepRaw(r)
		}
	}
	c.hand(m)
	return answered
}

func (c *httpConn) report(text []byte, why string) {
	if c.noise == nil {
		return
	}
	if suffix, ok := c.quiet.Allow(time.Now()); ok {
		c.noise(strings.TrimSpace(clipText(string(text), 1000) + " (" + why + ")" + suffix))
	}
}

// limit is how large the answer to a request may be.
func (c *httpConn) limit(method string) int {
	if method == "tools/call" {
		return c.maxResult + 4096 // the envelope
	}
	return wire.DefaultMaxLine
}

// request carries out a request. An error is what to answer in the server's
// place.
func (c *httpConn) request(ctx context.Context, e wire.Envelope) error {
	if l := c.older(); l != nil {
		return l.request(ctx, e)
	}
	resp, err := c.post(ctx, e)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	initialize := e.Method == "initialize"
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		body, _ := readAll(resp.Body, maxErrorBody)
		if initialize && c.fallback && isOlder(resp, body) {
			return c.fallBack(ctx, e, c.caller.statusText(resp, body))
		}
		return c.refused(resp, body, e)
	}
	if initialize {
		c.mu.Lock()
		c.session = resp.Header.Get(sessionHeader)
		c.mu.Unlock()
	}
	switch t := mediaType(resp); t {
	case "application/json":
		body, err := readAll(resp.Body, c.limit(e.Method))
		if err != nil {
			return c.broken(ctx, err)
		}
		if initialize {
			c.negotiated(body)
		}
		if !c.take(body, &e) {
			return fmt.Errorf("%w: the server's answer is not one to the request", ErrLost)
		}
		return nil
	case "text/event-stream":
		return c.stream(ctx, resp, e)
	default:
		return &wire.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("HTTP %s without a JSON-RPC answer (content type %q)", resp.Status, t)}
	}
}

func (c *httpConn) post(ctx context.Context, e wire.Envelope) (*http.Response, error) {
	h := c.own("application/json, text/event-stream")
	h.Set("Content-Type", "application/json")
	return c.caller.do(ctx, http.MethodPost, c.caller.url, h, e.Bytes())
}

func (c *httpConn) notify(ctx context.Context, e wire.Envelope) error {
	if l := c.older(); l != nil {
		return l.post(ctx, e)
	}
	resp, err := c.post(ctx, e)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		body, _ := readAll(resp.Body, maxErrorBody)
		return c.refused(resp, body, e)
	}
	return nil
}

// negotiated takes the protocol version out of the answer to initialize.
func (c *httpConn) negotiated(text []byte) {
	var answer struct {
		Result struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"result"`
	}
	if json.Unmarshal(text, &answer) == nil && answer.Result.ProtocolVersion != "" {
		c.mu.Lock()
		c.protocol = answer.Result.ProtocolVersion
		c.mu.Unlock()
	}
}

// refused makes the error of an answer that is not 2xx.
func (c *httpConn) refused(resp *http.Response, body []byte, e wire.Envelope) error {
	text := c.caller.statusText(resp, body)
	switch {
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%w: %s", ErrNeedsAuth, text)
	case e.Method != "initialize" && forgotten(resp, body, c.SessionID()):
		return neverRan(fmt.Errorf("%w: %w: %s", ErrUnavailable, errSessionGone, text))
	}
	if answer, err := wire.ParseEnvelope(body); err == nil && !answer.Request && answer.Error != nil {
		return wire.ParseError(answer.Error)
	}
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
		return fmt.Errorf("%w: %s", ErrUnavailable, text)
	}
	if resp.StatusCode == http.StatusNotFound {
		text += " (is the path of url right?)"
	}
	return &wire.Error{Code: jsonrpc.CodeInternalError, Message: text}
}

// broken makes the error of an answer that could not be read to its end.
func (c *httpConn) broken(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrTooLarge):
		return err
	}
	return fmt.Errorf("%w: %s", ErrLost, c.caller.hidden.String(inner(err)))
}

// stream reads the event stream that answers a request, and resumes it where
// the server lets us.
func (c *httpConn) stream(ctx context.Context, resp *http.Response, e wire.Envelope) error {
	var last string
	pause, answered := minReopen, false
	for resumes := 0; ; {
		before := last
		err := readEvents(resp.Body, c.limit(e.Method), func(ev event) bool {
			if ev.id != "" {
				last = ev.id
			}
			if ev.retry > 0 {
				pause = min(max(ev.retry, minRetry), maxReopen)
			}
			if len(ev.data) > 0 && (ev.name == "" || ev.name == "message") {
				if e.Method == "initialize" {
					c.negotiated(ev.data)
				}
				answered = c.take(ev.data, &e)
			}
			return !answered
		})
		resp.Body.Close()
		if answered {
			return nil
		}
		if err == nil {
			err = errors.New("the server closed the stream without an answer")
		}
		if resumes++; last != before {
			resumes = 0
		}
		if last == "" || resumes > maxResumes || ctx.Err() != nil || errors.Is(err, ErrTooLarge) {
			return c.broken(ctx, err)
		}
		if resp, _ = c.reopen(ctx, last, pause); resp == nil {
			return c.broken(ctx, err)
		}
	}
}

// reopen asks for a stream, or the rest of one, after a pause. If that fails
// it returns nil, and the status if the server refused for good.
func (c *httpConn) reopen(ctx context.Context, last string, pause time.Duration) (resp *http.Response, refused int) {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return nil, 0
	}
	h := c.own("text/event-stream")
	if last != "" {
		h.Set(lastEventID, last)
	}
	resp, err := c.caller.do(ctx, http.MethodGet, c.caller.url, h, nil)
	if err != nil {
		return nil, 0
	}
	if resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream" {
		return resp, 0
	}
	resp.Body.Close()
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
		return nil, 0
	}
	return nil, resp.StatusCode
}

// listen holds the stream of messages that belong to no request. A server
// that does not offer one is left alone; one that breaks is opened again and
// again, and no call fails for it.
func (c *httpConn) listen() {
	var last string
	var pause time.Duration
	for opened := false; c.ctx.Err() == nil; {
		began := time.Now()
		resp, refused := c.reopen(c.ctx, last, pause)
		if refused != 0 {
			if opened && refused == http.StatusNotFound && c.SessionID() != "" {
				c.cancel(fmt.Errorf("%w: HTTP 404 for its event stream", errSessionGone))
			}
			return
		}
		var retry time.Duration
		if resp != nil {
			opened = true
			// The end of a stream, also by an error, is nothing to report.
			_ = readEvents(resp.Body, wire.DefaultMaxLine, func(ev event) bool {
				if ev.id != "" {
					last = ev.id
				}
				retry = max(retry, ev.retry)
				if len(ev.data) > 0 && (ev.name == "" || ev.name == "message") {
					c.take(ev.data, nil)
				}
				return true
			})
			resp.Body.Close()
		}
		switch {
		case retry > 0:
			pause = min(max(retry, minRetry), maxReopen)
		case resp != nil && time.Since(began) > maxReopen:
			pause = minReopen
		default:
			pause = min(max(minReopen, 2*pause), maxReopen)
		}
	}
}
