package upstreams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// link is one open way to a server, before any MCP message. It is made by
// dial and belongs to the caller, who must close it.
type link struct {
	transport mcp.Transport
	// close ends the connection and, for a child process, its whole process
	// group. It is idempotent, returns when everything is gone and never
	// takes longer than a few seconds, whatever ctx says; when ctx ends, the
	// waiting for a peaceful end is cut short.
	close func(ctx context.Context) error
	// stderr returns the end of what a child wrote to stderr; "" on HTTP.
	stderr func() string
	// exit tells how the child ended ("exit status 1"), and whether it has;
	// on HTTP it never has.
	exit func() (how string, ended bool)
}

// linkEvents is what a link reports apart from its messages. The functions
// must not block; nil ones are not called.
type linkEvents struct {
	// Progress gets the params of each notifications/progress, in the order
	// of arrival and before any later answer is delivered.
	Progress func(params json.RawMessage)
	// Noise gets a shortened line of stdout that was no JSON-RPC message, at
	// most a few times a minute.
	Noise func(line string)
}

// dial opens the way that cfg describes. Errors say what to do and hold no
// secrets.
func dial(ctx context.Context, cfg Config, ev linkEvents, log *slog.Logger) (*link, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	switch {
	case cfg.Dial != nil:
		t, err := cfg.Dial(ctx)
		if err != nil {
			return nil, err
		}
		return dialedLink(t, ev), nil
	case cfg.Command != "":
		return dialStdio(ctx, cfg, ev, log)
	case cfg.URL != "":
		return dialHTTP(ctx, cfg, ev, log)
	}
	return nil, errors.New("entry has neither command nor url")
}

// dialedLink makes a link of a transport that somebody else opened. Closing
// it closes the connection, also under a session that waits for a peer.
func dialedLink(t mcp.Transport, ev linkEvents) *link {
	h := &held{Transport: wire.Wrap(t, ev.Progress)}
	return &link{
		transport: h,
		close:     h.close,
		stderr:    func() string { return "" },
		exit:      func() (string, bool) { return "", false },
	}
}

// held is a transport that remembers its connection.
type held struct {
	mcp.Transport

	mu     sync.Mutex // guards the following
	conn   mcp.Connection
	closed bool
}

func (h *held) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := h.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_ = c.Close()
		return nil, mcp.ErrConnectionClosed
	}
	h.conn = c
	return c, nil
}

func (h *held) close(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn != nil && !h.closed {
		_ = h.conn.Close() // a second close, after the session's own, has nothing to say
	}
	h.closed = true
	return nil
}

// errNotExecuted is in the chain of a call's error when the server certainly
// did not carry the call out: it was never sent, or it was refused because
// the session is gone. Such a call may be repeated on a new session.
var errNotExecuted = errors.New("not executed")

// neverRan puts errNotExecuted into the chain of err, and not into its text.
func neverRan(err error) error { return &notExecuted{err} }

type notExecuted struct{ error }

func (e *notExecuted) Unwrap() error        { return e.error }
func (e *notExecuted) Is(target error) bool { return target == errNotExecuted }

// callError translates what wire.CallRaw, or connecting a client session over
// a link, returned into the errors of this package: *RPCError for what the
// server itself answered, ErrTooLarge, ErrNeedsAuth, ErrUnavailable, ErrLost
// (sent, then the connection broke), each with errNotExecuted in its chain
// where that is certain. The errors of an ended ctx come back as they are.
func callError(err error) error {
	err = said(err)
	var rpc *jsonrpc.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case isOneOf(err, ErrNeedsAuth, ErrUnavailable, ErrLost, ErrTooLarge):
		return err // said so by httpLink
	case errors.Is(err, wire.ErrTooLarge):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case errors.Is(err, wire.ErrNotSent), errors.Is(err, mcp.ErrConnectionClosed):
		// The SDK says ErrConnectionClosed only before it sends.
		return neverRan(fmt.Errorf("%w: %w", ErrUnavailable, err))
	case errors.As(err, &rpc):
		return &RPCError{Code: rpc.Code, Message: rpc.Message, Data: rpc.Data}
	default:
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
}

func isOneOf(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
}
