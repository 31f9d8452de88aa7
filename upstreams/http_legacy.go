package upstreams

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// isOlder tells whether an answer to initialize may be that of a server that
// only has the older transport: "400 Bad Request", "404 Not Found" or "405
// Method Not Allowed" (2025-11-25, backwards compatibility).
func isOlder(resp *http.Response, body []byte) bool {
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		_, err := wire.ParseEnvelope(body)
		return err != nil
	}
	return false
}

// fallBack goes over to the older transport and sends initialize there.
func (c *httpConn) fallBack(ctx context.Context, e wire.Envelope, why string) error {
	speak := func(l *legacy) {
		c.mu.Lock()
		c.legacy = l
		c.mu.Unlock()
	}
	l := &legacy{conn: c}
	speak(l) // before the answer: what follows it must go the same way
	err := l.request(ctx, e)
	if err == nil {
		return nil
	}
	speak(nil)
	if errors.Is(err, errNoEndpoint) {
		return &wire.Error{Code: jsonrpc.CodeInternalError, Message: why + " (is url right? It is no server of the older SSE transport either)"}
	}
	return err
}

// legacy is the transport of 2024-11-05: one event stream for all that the
// server sends, and an address it names there to post to.
type legacy struct {
	conn *httpConn

	// mu guards the following
	mu       sync.Mutex
	endpoint *url.URL // nil before the stream is open
}

// errNoEndpoint: there is no server of the older transport.
var errNoEndpoint = errors.New("no SSE stream with an endpoint event")

// request posts a request; its answer comes on the stream.
func (l *legacy) request(ctx context.Context, e wire.Envelope) error {
	if e.Method == "initialize" {
		if err := l.open(ctx); err != nil {
			return err
		}
	}
	return l.post(ctx, e)
}

func (l *legacy) post(ctx context.Context, e wire.Envelope) error {
	l.mu.Lock()
	to := l.endpoint
	l.mu.Unlock()
	if to == nil {
		return neverRan(fmt.Errorf("%w: the event stream is not open", ErrUnavailable))
	}
	c := l.conn
	h := c.own("application/json, text/event-stream")
	h.Set("Content-Type", "application/json")
	resp, err := c.caller.do(ctx, http.MethodPost, to, h, e.Bytes())
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

// open opens the stream and waits for the endpoint event. The stream lives
// until the connection ends, and its end is the end of the connection.
func (l *legacy) open(ctx context.Context) error {
	c := l.conn
	streamCtx, cancel := context.WithCancelCause(c.ctx)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	resp, err := c.caller.do(streamCtx, http.MethodGet, c.caller.url, c.own("text/event-stream"), nil)
	if err != nil {
		cancel(nil)
		return err
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp) != "text/event-stream" {
		defer cancel(nil)
		defer resp.Body.Close()
		body, _ := readAll(resp.Body, maxErrorBody)
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden || resp.StatusCode >= 500 {
			return c.refused(resp, body, wire.Envelope{})
		}
		return neverRan(fmt.Errorf("%w: %w: HTTP %s", ErrUnavailable, errNoEndpoint, resp.Status))
	}
	endpoint := make(chan error, 1)
	if !c.begin() {
		cancel(nil)
		resp.Body.Close()
		return fmt.Errorf("%w: %w", wire.ErrNotSent, mcp.ErrConnectionClosed)
	}
	go func() {
		defer c.work.Done()
		defer cancel(nil)
		defer resp.Body.Close()
		l.listen(resp, endpoint)
	}()
	select {
	case err = <-endpoint:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	stop()
	return err
}

// listen reads the stream to its end. It says on endpoint, once, how the
// search for the address to post to ended.
func (l *legacy) listen(resp *http.Response, endpoint chan<- error) {
	c := l.conn
	found := false
	err := readEvents(resp.Body, wire.DefaultMaxLine, func(ev event) bool {
		switch {
		case ev.name == "endpoint" && !found:
			to, err := c.caller.url.Parse(string(ev.data))
			if err == nil && !sameOrigin(c.caller.url, to) {
				err = fmt.Errorf("it names an address at another origin, %s, which is refused", origin(to))
			}
			if err != nil {
				endpoint <- neverRan(fmt.Errorf("%w: %w", ErrUnavailable, err))
				return false
			}
			to.User = c.caller.url.User
			l.mu.Lock()
			l.endpoint = to
			l.mu.Unlock()
			found = true
			endpoint <- nil
		case len(ev.data) > 0 && (ev.name == "" || ev.name == "message"):
			c.take(ev.data, nil)
		}
		return true
	})
	if !found {
		select {
		case endpoint <- neverRan(fmt.Errorf("%w: %w: the stream ended", ErrUnavailable, errNoEndpoint)):
		default: // it was refused above
		}
		return
	}
	if err == nil {
		err = errors.New("the server closed the event stream")
	}
	c.cancel(c.broken(c.ctx, err))
}
