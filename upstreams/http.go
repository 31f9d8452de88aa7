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
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// The SDK's streamable transport speaks to the server through httpLink, which
// puts right what would hold up a session there, or end it. What the SDK gets
// to see: a request is answered at once and in full, or fails alone; every
// notification arrives; there is one event stream, for all other messages of
// the server, which is open when asked for and ends with the session. It knows
// neither the URL nor the id of the session, which would stand in its errors.

const (
	sessionHeader  = "Mcp-Session-Id"
	protocolHeader = "Mcp-Protocol-Version"
	lastEventID    = "Last-Event-Id"

	deleteTimeout = time.Second
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

	// the event stream that the SDK reads
	inbox  *io.PipeWriter
	stream *io.PipeReader

	quiet wire.NoiseLimit

	// mu guards the following
	mu      sync.Mutex
	state   httpState
	waiting map[string]*exchange // by id
}

type httpState struct {
	conn      mcp.Connection // the SDK's; nil before
	session   string         // Mcp-Session-Id, "" if the server gave none
	older     bool           // the older transport is spoken
	endpoint  *url.URL       // of that; nil before its stream is open
	listening bool           // the SDK reads stream
	over      error          // why the session has ended
}

func (l *httpLink) now() httpState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

func (l *httpLink) set(change func(*httpState)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.state)
}

// exchange is a request to the server.
type exchange struct {
	wire.Envelope
	answer chan answer // one slot
}

type answer struct {
	result json.RawMessage
	err    error
}

func (x *exchange) answered() bool { return len(x.answer) > 0 }

// end answers the request, if it was not answered before.
func (x *exchange) end(a answer) {
	select {
	case x.answer <- a:
	default:
	}
}

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
		waiting: map[string]*exchange{}, state: httpState{older: cfg.Transport == "sse"},
	}
	l.stream, l.inbox = io.Pipe()
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
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
		MaxRetries:   1, // see end
		MaxEventSize: -1,
	}).Connect(ctx)
	l.set(func(s *httpState) { s.conn = conn })
	return conn, err
}

// close ends the session and all requests.
func (l *httpLink) close() {
	if conn := l.now().conn; conn != nil {
		_ = conn.Close() // sends DELETE, which cannot fail, once
	}
	l.cancel(fmt.Errorf("%w: the connection was closed", ErrLost))
	l.inbox.Close()
	l.caller.client.CloseIdleConnections()
}

// RoundTrip implements [http.RoundTripper].
func (l *httpLink) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, header := req.Context(), req.Header.Clone()
	now := l.now()
	if header.Get(sessionHeader) != "" {
		header.Set(sessionHeader, now.session)
	}
	switch req.Method {
	case http.MethodGet:
		return l.listen(ctx, header)
	case http.MethodDelete:
		ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
		defer cancel()
		if now.over == nil {
			if resp, err := l.caller.do(ctx, http.MethodDelete, l.caller.url, header, nil); err == nil {
				resp.Body.Close() // whatever it answered: we are gone
			}
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
	e.Method = strings.TrimSuffix(e.Method, wire.RawSuffix)
	// The request ends with its caller's ctx and with the link.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })()
	if !e.Request || e.ID == nil {
		return l.notify(ctx, header, e)
	}
	x, forget, err := l.register(e)
	if err != nil {
		return nil, err
	}
	defer forget()
	var a answer
	if err = l.send(ctx, header, x); err == nil {
		select {
		case a = <-x.answer:
			err = a.err
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if errors.Is(err, mcp.ErrSessionMissing) {
		l.end(mcp.ErrSessionMissing)
	}
	if err != nil {
		return nil, err
	}
	if wire.Keep(ctx, a.result) {
		a.result = nil
	}
	body = wire.Envelope{ID: e.ID, Result: a.result}.Bytes()
	resp := respond(http.StatusOK, "application/json", io.NopCloser(bytes.NewReader(body)))
	if e.Method == "initialize" && l.now().session != "" {
		resp.Header.Set(sessionHeader, "hidden")
	}
	return resp, nil
}

// respond makes an answer for the SDK.
func respond(status int, contentType string, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, Body: body, ContentLength: -1,
	}
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
	if now := l.now(); now.older {
		to = now.endpoint
	}
	if to == nil {
		return nil, neverRan(fmt.Errorf("%w: the event stream is not open", ErrUnavailable))
	}
	resp, err := l.caller.do(ctx, http.MethodPost, to, header, e.Bytes())
	if err != nil || resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return resp, err
	}
	return nil, l.caller.refused(resp, e.Method, header.Get(sessionHeader))
}

// register has answers to a request find it, until forget is called.
func (l *httpLink) register(e wire.Envelope) (x *exchange, forget func(), err error) {
	x = &exchange{e, make(chan answer, 1)}
	id := string(e.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.over != nil {
		return nil, nil, neverRan(fmt.Errorf("%w: %w", ErrUnavailable, l.state.over))
	}
	l.waiting[id] = x
	return x, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, id)
	}, nil
}

// send sends a request. If it returns nil, the answer is there or will come on
// the stream of the older transport.
func (l *httpLink) send(ctx context.Context, header http.Header, x *exchange) error {
	if l.now().older {
		return l.sendOlder(ctx, header, x)
	}
	resp, err := l.post(ctx, header, x.Envelope)
	if no, ok := errors.AsType[*maybeOlder](err); ok && x.Method == "initialize" && l.fallback {
		return l.fallBack(ctx, header, x, no)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if x.Method == "initialize" {
		l.set(func(s *httpState) { s.session = resp.Header.Get(sessionHeader) })
	}
	limit := wire.DefaultMaxLine
	if x.Method == "tools/call" {
		limit = l.maxResult + 4096 // the envelope
	}
	switch t := mediaType(resp); t {
	case "application/json":
		body, err := readAll(resp.Body, limit)
		if err != nil {
			return l.caller.broken(ctx, err)
		}
		if l.take(body, x); !x.answered() {
			return fmt.Errorf("%w: the server's answer is not one to the request", ErrLost)
		}
		return nil
	case eventStream:
		return l.follow(ctx, header, resp, x, limit)
	default:
		return &wire.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("HTTP %s without a JSON-RPC answer (content type %q)", resp.Status, t)}
	}
}

// listen is the SDK's request for the event stream.
func (l *httpLink) listen(ctx context.Context, header http.Header) (*http.Response, error) {
	now := l.now()
	switch {
	case errors.Is(now.over, mcp.ErrSessionMissing):
		return respond(http.StatusNotFound, "", http.NoBody), nil
	case now.over != nil:
		return nil, now.over
	}
	l.set(func(s *httpState) { s.listening = true })
	if !now.older {
		go func() { _ = l.follow(ctx, header, nil, nil, wire.DefaultMaxLine) }()
	}
	return respond(http.StatusOK, eventStream, l.stream), nil
}

// end ends the session: it ends the SDK's event stream, and listen answers
// with the reason when that is opened anew.
func (l *httpLink) end(err error) {
	l.mu.Lock()
	l.state.over = err
	for _, x := range l.waiting {
		x.end(answer{err: fmt.Errorf("%w: %w", ErrLost, err)})
	}
	l.mu.Unlock()
	l.show("retry: 1\n\n")
	l.inbox.Close()
}

// show puts events into the SDK's event stream. Before that is open, which is
// up to the answer to initialize, they are lost.
func (l *httpLink) show(events string) {
	if l.now().listening {
		_, _ = io.WriteString(l.inbox, events) // fails when nobody reads it any more
	}
}

// take handles one message from the server. An error without id is one of x.
func (l *httpLink) take(text []byte, x *exchange) {
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	e, err := wire.ParseEnvelope(text)
	var m jsonrpc.Message
	switch {
	case err != nil || e.ID == nil:
	case e.Request:
		_, err = jsonrpc.DecodeMessage(e.Bytes()) // an id that the SDK cannot read would end the session
	default:
		m, err = e.Message()
	}
	if r, ok := m.(*jsonrpc.Response); ok {
		l.mu.Lock()
		x = l.waiting[fmt.Sprint(r.ID.Raw())]
		l.mu.Unlock()
	}
	switch {
	case err != nil:
		l.report(text, err.Error())
	case e.Request && e.ID == nil && e.Method == "notifications/progress" && l.progress != nil:
		l.progress(e.Params)
	case e.Request:
		l.show("data: " + string(e.Bytes()) + "\n\n")
	case x == nil:
		l.report(text, "an answer to nothing that was asked")
	case e.Error != nil:
		x.end(answer{err: wire.ParseError(e.Error)})
	default:
		x.end(answer{result: e.Result})
	}
}

func (l *httpLink) report(text []byte, why string) {
	if l.noise == nil {
		return
	}
	if suffix, ok := l.quiet.Allow(time.Now()); ok {
		l.noise(strings.TrimSpace(clipText(string(text), 1000) + " (" + why + ")" + suffix))
	}
}
