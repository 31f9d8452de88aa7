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

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// The SDK's streamable transport speaks to the server through httpLink, which
// puts right what would end a session there, or hold it up. What the SDK gets
// to see: a request is answered 200 or fails alone, but for 404, the session's
// end; a notification always arrives; there is one event stream, which is open
// at once and does not break. It knows neither the URL nor the id of the
// session, which would stand in its errors.

const (
	sessionHeader  = "Mcp-Session-Id"
	protocolHeader = "Mcp-Protocol-Version"
	lastEventID    = "Last-Event-Id"

	deleteTimeout = time.Second
	eventStream   = "text/event-stream"
)

// httpLink is a link to a server over streamable HTTP, revision 2025-11-25, or
// over the older pair of an event stream and an address to post to. It is the
// round tripper below the SDK's transport.
type httpLink struct {
	// fixed at creation
	caller    *httpCaller
	maxResult int
	fallback  bool // try the older transport if the server does not speak this one
	progress  func(json.RawMessage)
	noise     func(string)
	ctx       context.Context // ends with the link
	cancel    context.CancelCauseFunc

	quiet wire.NoiseLimit

	// mu guards the following
	mu      sync.Mutex
	conn    mcp.Connection // the SDK's; nil before
	session string         // Mcp-Session-Id, "" if the server gave none
	waiting map[jsonrpc.ID]*exchange
	older   *legacy // non-nil: the older transport is spoken
	over    error   // why the session has ended
}

// exchange is a request to the server.
type exchange struct {
	wire.Envelope
	answer chan outcome // one slot
}

type outcome struct {
	result json.RawMessage
	err    error
}

func (x *exchange) end(o outcome) {
	select {
	case x.answer <- o:
	default: // it was answered before
	}
}

func (x *exchange) answered() bool { return len(x.answer) > 0 }

// dialHTTP prepares a link to a server over HTTP. Nothing is sent before the
// first message.
func dialHTTP(_ context.Context, cfg Config, ev linkEvents, _ *slog.Logger) (*link, error) {
	caller, err := newHTTPCaller(cfg)
	if err != nil {
		return nil, err
	}
	l := &httpLink{
		caller: caller, maxResult: cfg.maxResultBytes(), fallback: cfg.Transport == "",
		progress: ev.Progress, noise: redacted(caller.hidden, ev.Noise),
		waiting: map[jsonrpc.ID]*exchange{},
	}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	if cfg.Transport == "sse" {
		l.older = new(legacy)
	}
	return &link{
		transport: l,
		close:     func(context.Context) error { l.close(); return nil },
		stderr:    func() string { return "" },
		exit:      func() (string, bool) { return "", false },
	}, nil
}

// Connect implements [mcp.Transport]. The connection is the SDK's own: in any
// wrapping it would not open the event stream.
func (l *httpLink) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := (&mcp.StreamableClientTransport{
		Endpoint:     origin(l.caller.url),
		HTTPClient:   &http.Client{Transport: l},
		MaxRetries:   1, // see stream.end
		MaxEventSize: -1,
	}).Connect(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	return conn, err
}

// close ends the session and all requests.
func (l *httpLink) close() {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // sends DELETE, which cannot fail, once
	}
	l.cancel(fmt.Errorf("%w: the connection was closed", ErrLost))
	l.caller.client.CloseIdleConnections()
}

// RoundTrip implements [http.RoundTripper].
func (l *httpLink) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, header := req.Context(), req.Header.Clone()
	l.mu.Lock()
	if header.Get(sessionHeader) != "" {
		header.Set(sessionHeader, l.session)
	}
	l.mu.Unlock()
	switch req.Method {
	case http.MethodGet:
		return l.listen(ctx, header)
	case http.MethodDelete:
		ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
		defer cancel()
		if resp, err := l.caller.do(ctx, http.MethodDelete, l.caller.url, header, nil); err == nil {
			resp.Body.Close() // whatever it answered: we are gone
		}
		return respond(http.StatusAccepted, "", http.NoBody), nil
	}
	defer req.Body.Close()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	e, err := wire.ParseEnvelope(body)
	if err != nil {
		return nil, err
	}
	e.Method, e.Raw = strings.CutSuffix(e.Method, wire.RawSuffix)
	// The request ends with its caller's ctx and with the link.
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	release := func() { stop(); cancel(nil) }
	if !e.Request || e.ID == nil {
		defer release()
		return l.notify(ctx, header, e)
	}
	x := &exchange{Envelope: e, answer: make(chan outcome, 1)}
	rest, err := l.request(ctx, header, x)
	if rest != nil {
		rest.release = release
		return respond(http.StatusOK, eventStream, rest), nil
	}
	defer release()
	if err == nil {
		o := <-x.answer
		if err = o.err; err == nil {
			return l.answer(ctx, x, o.result), nil
		}
	}
	wire.Deliver(ctx, nil, err)
	if errors.Is(err, mcp.ErrSessionMissing) {
		return respond(http.StatusNotFound, "", http.NoBody), nil
	}
	return nil, err
}

// respond makes an answer for the SDK.
func respond(status int, contentType string, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, Body: body, ContentLength: -1,
	}
}

// answer makes the SDK's answer to a request. Raw results go past it.
func (l *httpLink) answer(ctx context.Context, x *exchange, result json.RawMessage) *http.Response {
	if wire.Deliver(ctx, result, nil) {
		result = nil
	}
	resp := respond(http.StatusOK, "application/json", io.NopCloser(bytes.NewReader(wire.Envelope{ID: x.ID, Result: result}.Bytes())))
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.Method == "initialize" && l.session != "" {
		resp.Header.Set(sessionHeader, "hidden")
	}
	return resp
}

// notify sends a message that gets no answer. A server that refuses it has
// lost a notification, no more.
func (l *httpLink) notify(ctx context.Context, header http.Header, e wire.Envelope) (*http.Response, error) {
	resp, err := l.post(ctx, header, e)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		l.report(nil, fmt.Sprintf("%s: %v", e.Method, err))
	} else {
		resp.Body.Close()
	}
	return respond(http.StatusAccepted, "", http.NoBody), nil
}

// post sends a message. A status that is not 2xx is an error.
func (l *httpLink) post(ctx context.Context, header http.Header, e wire.Envelope) (*http.Response, error) {
	to := l.caller.url
	l.mu.Lock()
	if l.older != nil {
		to = l.older.endpoint
	}
	l.mu.Unlock()
	if to == nil {
		return nil, neverRan(fmt.Errorf("%w: the event stream is not open", ErrUnavailable))
	}
	resp, err := l.caller.do(ctx, http.MethodPost, to, header, e.Bytes())
	if err != nil || resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return resp, err
	}
	return nil, l.caller.refused(resp, e.Method, header.Get(sessionHeader))
}

// request carries out a request up to its answer, which it leaves in x, or up
// to something else that the SDK must see first: then the rest is a stream,
// which ends with the answer.
func (l *httpLink) request(ctx context.Context, header http.Header, x *exchange) (rest *stream, err error) {
	id := idOf(x.Envelope)
	l.mu.Lock()
	l.waiting[id] = x
	older, over := l.older, l.over
	l.mu.Unlock()
	forget := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, id)
	}
	defer func() {
		if rest == nil {
			forget()
		}
	}()
	if over != nil {
		return nil, neverRan(fmt.Errorf("%w: %w", ErrUnavailable, over))
	}
	if older != nil {
		return nil, l.requestOlder(ctx, header, x)
	}
	resp, err := l.post(ctx, header, x.Envelope)
	if no, ok := errors.AsType[*notStreamable](err); ok && x.Method == "initialize" && l.fallback {
		return nil, l.fallBack(ctx, header, x, no.text)
	}
	if err != nil {
		return nil, err
	}
	if x.Method == "initialize" {
		l.mu.Lock()
		l.session = resp.Header.Get(sessionHeader)
		l.mu.Unlock()
	}
	s := &stream{link: l, ctx: ctx, header: header, request: x, max: wire.DefaultMaxLine}
	if x.Method == "tools/call" {
		s.max = l.maxResult + 4096 // the envelope
	}
	switch t := mediaType(resp); t {
	case "application/json":
		defer resp.Body.Close()
		body, err := readAll(resp.Body, s.max)
		if err != nil {
			return nil, l.caller.broken(ctx, err)
		}
		if s.take(body); !x.answered() {
			return nil, fmt.Errorf("%w: the server's answer is not one to the request", ErrLost)
		}
		return nil, nil
	case eventStream:
		s.use(resp)
		for !x.answered() {
			if s.pull(); x.Raw && s.out.Len() > 0 {
				s.forget = forget
				return s, nil
			}
		}
		return nil, s.Close()
	default:
		resp.Body.Close()
		return nil, &wire.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("HTTP %s without a JSON-RPC answer (content type %q)", resp.Status, t)}
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

// listen opens the stream of messages that belong to no request: for the SDK
// at once, in truth when it begins to read.
func (l *httpLink) listen(ctx context.Context, header http.Header) (*http.Response, error) {
	l.mu.Lock()
	older, over := l.older, l.over
	l.mu.Unlock()
	switch {
	case errors.Is(over, mcp.ErrSessionMissing):
		return respond(http.StatusNotFound, "", http.NoBody), nil
	case over != nil:
		return nil, over
	case older != nil:
		return respond(http.StatusOK, eventStream, older.stream), nil
	}
	return respond(http.StatusOK, eventStream, &stream{link: l, ctx: ctx, header: header, max: wire.DefaultMaxLine}), nil
}

func (l *httpLink) report(text []byte, why string) {
	if l.noise == nil {
		return
	}
	if suffix, ok := l.quiet.Allow(time.Now()); ok {
		l.noise(strings.TrimSpace(clipText(string(text), 1000) + " (" + why + ")" + suffix))
	}
}
