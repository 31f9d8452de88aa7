package upstreams

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

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

// secretsOf knows the values of cfg that must not show up in errors, noise
// and stderr: those of env and headers, of flags (--token=value), and all of
// the URL but its host.
func secretsOf(cfg Config) *telemetry.Redactor {
	var values []string
	for name, v := range cfg.Env {
		if name != "PATH" { // named in errors, and no secret
			values = append(values, v.Reveal())
		}
	}
	for _, v := range cfg.Headers {
		values = append(values, v.Reveal())
	}
	for _, v := range cfg.Args {
		if flag, value, ok := strings.Cut(v.Reveal(), "="); ok && strings.HasPrefix(flag, "-") {
			values = append(values, value)
		}
	}
	if u, err := url.Parse(cfg.URL.Reveal()); err == nil {
		password, _ := u.User.Password()
		values = append(values, u.RequestURI(), u.RawQuery, u.Fragment, u.User.Username(), password)
		for _, vs := range u.Query() {
			values = append(values, vs...)
		}
	}
	r := new(telemetry.Redactor)
	r.Add(slices.DeleteFunc(values, func(v string) bool { return len(v) < minSecret })...)
	return r
}

// minSecret spares the words that stand in env and are in every second line
// of a log: warn, true, debug.
const minSecret = 6

// redacted returns report with secrets taken out of the texts, and what is
// long cut after that, so that no half of a secret is left; nil for nil.
func redacted(r *telemetry.Redactor, report func(string)) func(string) {
	if report == nil {
		return nil
	}
	return func(text string) { report(clipText(r.String(text), 200)) }
}
