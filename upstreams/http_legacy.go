package upstreams

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// legacy is the transport of 2024-11-05: one event stream for all that the
// server sends, and an address it names there to post to. It is shown to the
// SDK as streamable HTTP, because a session begins there before it is known
// which of the two the server speaks.
type legacy struct {
	stream   *stream
	endpoint *url.URL
}

// errNoEndpoint: there is no server of the older transport.
var errNoEndpoint = errors.New("no SSE stream with an endpoint event")

// fallBack goes over to the older transport and sends initialize there.
func (l *httpLink) fallBack(ctx context.Context, header http.Header, x *exchange, why string) error {
	err := l.requestOlder(ctx, header, x)
	if errors.Is(err, errNoEndpoint) {
		return &wire.Error{Code: jsonrpc.CodeInternalError, Message: why + " (is url right? It is no server of the older SSE transport either)"}
	}
	return err
}

// requestOlder posts a request and waits for its answer, which comes on the
// stream. The SDK reads that; up to the answer to initialize, this does.
func (l *httpLink) requestOlder(ctx context.Context, header http.Header, x *exchange) error {
	var s *stream
	if x.Method == "initialize" {
		o, err := l.openOlder(ctx)
		if err != nil {
			return err
		}
		s = o.stream
		l.mu.Lock()
		l.older = o
		l.mu.Unlock()
	}
	resp, err := l.post(ctx, header, x.Envelope)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if s != nil {
		defer context.AfterFunc(ctx, s.release)()
		for !x.answered() {
			s.pull()
		}
		return nil
	}
	select {
	case o := <-x.answer:
		x.end(o)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// openOlder opens the stream and waits for the endpoint event. The stream
// lives until the link ends, and its end is the end of the session.
func (l *httpLink) openOlder(ctx context.Context) (*legacy, error) {
	streamCtx, cancel := context.WithCancel(l.ctx)
	defer context.AfterFunc(ctx, cancel)()
	fail := func(err error) (*legacy, error) {
		cancel()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	header := http.Header{"Accept": {eventStream}}
	resp, err := l.caller.do(streamCtx, http.MethodGet, l.caller.url, header, nil)
	if err != nil {
		return fail(err)
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp) != eventStream {
		err := l.caller.refused(resp, "", "")
		if !isOneOf(err, ErrNeedsAuth, ErrUnavailable) {
			err = neverRan(fmt.Errorf("%w: %w: HTTP %s", ErrUnavailable, errNoEndpoint, resp.Status))
		}
		return fail(err)
	}
	s := &stream{link: l, ctx: streamCtx, older: true, max: wire.DefaultMaxLine, release: cancel}
	s.use(resp)
	for {
		ev, err := s.events.next()
		if err != nil {
			return fail(neverRan(fmt.Errorf("%w: %w: the stream ended", ErrUnavailable, errNoEndpoint)))
		}
		if ev.name != "endpoint" {
			continue
		}
		to, err := l.caller.url.Parse(string(ev.data))
		if err == nil && !sameOrigin(l.caller.url, to) {
			err = fmt.Errorf("it names an address at another origin, %s, which is refused", origin(to))
		}
		if err != nil {
			return fail(neverRan(fmt.Errorf("%w: %w", ErrUnavailable, err)))
		}
		to.User = l.caller.url.User
		return &legacy{s, to}, nil
	}
}
