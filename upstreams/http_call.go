package upstreams

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

const (
	maxRedirects = 5
	maxErrorBody = 64 << 10 // of an answer that is not 2xx
	dialTimeout  = 15 * time.Second
)

// httpCaller sends the requests of one link: with the configured headers, to
// the configured origin only. Its errors name neither the URL nor a secret;
// they have ErrUnavailable or ErrLost in their chain, or are those of ctx.
type httpCaller struct {
	client *http.Client
	url    *url.URL
	header http.Header
	hidden *telemetry.Redactor
}

func newHTTPCaller(cfg Config) (*httpCaller, error) {
	u, err := url.Parse(cfg.URL.Reveal())
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("url is not an address that begins with http:// or https://")
	}
	header := http.Header{"User-Agent": {"toolsearch-mcp"}}
	for name, value := range cfg.Headers {
		header.Set(name, value.Reveal())
	}
	// Ours, whatever is configured: a server must see what we can read.
	for _, name := range []string{"Accept", "Content-Type", "Content-Length", "Accept-Encoding", sessionHeader, protocolHeader} {
		header.Del(name)
	}
	header.Set(DepthHeader, depth())
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 16
	t.TLSHandshakeTimeout = dialTimeout
	return &httpCaller{
		client: &http.Client{
			Transport:     t,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		url:    u,
		header: header,
		hidden: redactorOf(&cfg),
	}, nil
}

// do sends one request and follows redirects within the origin, with the same
// method and body. The caller closes the answer's body.
func (h *httpCaller) do(ctx context.Context, method string, to *url.URL, own http.Header, body []byte) (*http.Response, error) {
	for range maxRedirects {
		resp, err := h.once(ctx, method, to, own, body)
		if err != nil {
			return nil, err
		}
		switch resp.StatusCode {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		default:
			return resp, nil
		}
		resp.Body.Close()
		next, err := to.Parse(resp.Header.Get("Location"))
		if err != nil {
			return nil, neverRan(fmt.Errorf("%w: the server redirects to an address that cannot be read", ErrUnavailable))
		}
		if !sameOrigin(to, next) {
			return nil, neverRan(fmt.Errorf("%w: the server redirects to another origin, %s, which is refused because headers and credentials would go there: write that server's url, if it is the right one", ErrUnavailable, origin(next)))
		}
		next.User = to.User
		to = next
	}
	return nil, neverRan(fmt.Errorf("%w: the server redirects more than %d times", ErrUnavailable, maxRedirects))
}

func (h *httpCaller) once(ctx context.Context, method string, to *url.URL, own http.Header, body []byte) (*http.Response, error) {
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	req, err := http.NewRequestWithContext(traced, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, neverRan(fmt.Errorf("%w: %s", ErrUnavailable, h.hidden.String(said(err).Error())))
	}
	maps.Copy(req.Header, h.header)
	if host := h.header.Get("Host"); host != "" {
		req.Host = host
	}
	maps.Copy(req.Header, own)
	resp, err := h.client.Do(req)
	switch {
	case err == nil:
		return resp, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !sent.Load():
		return nil, neverRan(fmt.Errorf("%w: connect to %s: %s", ErrUnavailable, origin(to), h.hidden.String(said(err).Error())))
	default:
		return nil, fmt.Errorf("%w: %s", ErrLost, h.hidden.String(said(err).Error()))
	}
}

// said is what httpCaller or httpLink said in err, without what package
// net/http and the SDK put around it.
func said(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// origin is all of a URL that may be shown.
func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// mediaType is the content type of an answer without parameters.
func mediaType(resp *http.Response) string {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// readAll reads a body of at most max bytes; a longer one is ErrTooLarge.
func readAll(r io.Reader, max int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(max)+1))
	if len(b) > max {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, max)
	}
	return b, err
}

// maybeOlder is a refusal that may be that of a server that only has the older
// transport (2025-11-25, backwards compatibility).
type maybeOlder struct{ error }

func (m *maybeOlder) Unwrap() error { return m.error }

// refused makes the error of an answer that is not 2xx and closes that. If the
// session is gone, mcp.ErrSessionMissing is in its chain.
func (h *httpCaller) refused(resp *http.Response, method, session string) error {
	defer resp.Body.Close()
	body, _ := readAll(resp.Body, maxErrorBody)
	text := "HTTP " + resp.Status
	if t := mediaType(resp); t != "text/html" && len(bytes.TrimSpace(body)) > 0 {
		text += ": " + clipText(strings.Join(strings.Fields(strings.ToValidUTF8(h.hidden.String(string(body)), "")), " "), 300)
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%w: %s", ErrNeedsAuth, text)
	case method != "initialize" && forgotten(resp, body, session):
		return neverRan(fmt.Errorf("%w: %w: %s", ErrUnavailable, mcp.ErrSessionMissing, text))
	}
	answer, err := wire.ParseEnvelope(body)
	if err == nil && !answer.Request && answer.Error != nil {
		return wire.ParseError(answer.Error)
	}
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
		return fmt.Errorf("%w: %s", ErrUnavailable, text)
	}
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		if resp.StatusCode == http.StatusNotFound {
			text += " (is url right?)"
		}
		if err != nil {
			return &maybeOlder{&wire.Error{Code: jsonrpc.CodeInternalError, Message: text}}
		}
	}
	return &wire.Error{Code: jsonrpc.CodeInternalError, Message: text}
}

// broken makes the error of an answer that could not be read to its end.
func (h *httpCaller) broken(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrTooLarge):
		return err
	}
	return fmt.Errorf("%w: %s", ErrLost, h.hidden.String(said(err).Error()))
}

// forgotten tells whether an answer that is not 2xx means that the session is
// gone. The protocol says 404; the protocol's own examples say 400 "No valid
// session ID provided".
func forgotten(resp *http.Response, body []byte, session string) bool {
	if session == "" {
		return false
	}
	if resp.StatusCode == http.StatusNotFound {
		return true
	}
	text := strings.ToLower(string(body))
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "session") {
		return false
	}
	for _, word := range []string{"no valid", "not found", "invalid", "unknown", "expired", "missing", "not initialized"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
