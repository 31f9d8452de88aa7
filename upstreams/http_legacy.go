package upstreams

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// The transport of 2024-11-05: one event stream for all that the server sends,
// and an address it names there to post to. It is shown to the SDK as
// streamable HTTP, because a session has begun before it is known which of the
// two the server speaks.

// errNoEndpoint: there is no server of the older transport.
var errNoEndpoint = errors.New("no SSE stream with an endpoint event")

// sendOlder posts a request; its answer comes on the stream.
func (l *httpLink) sendOlder(ctx context.Context, header http.Header, x *exchange) error {
	if x.Method == "initialize" {
		if err := l.openOlder(ctx); err != nil {
			return err
		}
	}
	resp, err := l.post(ctx, header, x.Envelope)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// fallBack goes over to the older transport and sends initialize there.
func (l *httpLink) fallBack(ctx context.Context, header http.Header, x *exchange, why error) error {
	err := l.sendOlder(ctx, header, x)
	if errors.Is(err, errNoEndpoint) {
		return &wire.Error{Code: jsonrpc.CodeInternalError, Message: why.Error() + "; it is no server of the older SSE transport either"}
	}
	return err
}

// openOlder opens the stream and waits for the endpoint event. The stream
// lives until the link ends, and its end is the end of the session.
func (l *httpLink) openOlder(ctx context.Context) error {
	streamCtx, cancel := context.WithCancel(l.ctx)
	defer context.AfterFunc(ctx, cancel)()
	//nolint:bodyclose // closed at the end of the stream
	resp, err := l.caller.do(streamCtx, http.MethodGet, l.caller.url, http.Header{"Accept": {eventStream}}, nil)
	if err == nil && (resp.StatusCode != http.StatusOK || mediaType(resp) != eventStream) {
		if err = l.caller.refused(resp, "", ""); !isOneOf(err, ErrNeedsAuth, ErrUnavailable) {
			err = neverRan(fmt.Errorf("%w: %w: HTTP %s", ErrUnavailable, errNoEndpoint, resp.Status))
		}
	}
	if err != nil {
		cancel()
		return err
	}
	endpoint := make(chan error, 1) // told once
	go func() {
		defer cancel()
		defer resp.Body.Close()
		found := false
		err := readEvents(resp.Body, wire.DefaultMaxLine, func(ev event) bool {
			switch {
			case ev.name == "endpoint" && !found:
				found = true
				err := l.setEndpoint(string(ev.data))
				endpoint <- err
				return err == nil
			case ev.isMessage():
				l.take(ev.data, nil)
			}
			return true
		})
		if !found {
			endpoint <- neverRan(fmt.Errorf("%w: %w: the stream ended", ErrUnavailable, errNoEndpoint))
			return
		}
		why := "the server closed the event stream"
		if err != nil {
			why = l.caller.hidden.String(err.Error())
		}
		l.end(errors.New(why))
	}()
	select {
	case err := <-endpoint:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *httpLink) setEndpoint(named string) error {
	to, err := l.caller.url.Parse(named)
	if err == nil && !sameOrigin(l.caller.url, to) {
		err = fmt.Errorf("it names an address at another origin, %s, which is refused", origin(to))
	}
	if err != nil {
		return neverRan(fmt.Errorf("%w: %w", ErrUnavailable, err))
	}
	to.User = l.caller.url.User
	l.set(func(s *httpState) { s.older, s.endpoint = true, to })
	return nil
}
