package upstreams

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// What one reading of a list may cost at most. The largest real list has 401
// tools and 2 MB, on one page.
const (
	maxListPages = 1000
	maxListTools = 50_000
	maxListBytes = 256 << 20
	pageTimeout  = 60 * time.Second
	listTimeout  = 5 * time.Minute
)

// How notices of change are followed: after quietTime without a further one,
// but at most quietLimit after the first. While reading again shows no
// change, the time from one reading to the next grows, from firstGap to
// maxGap, or, for a list that is slow to read, to gapFactor times that.
const (
	quietTime  = 250 * time.Millisecond
	quietLimit = 2 * time.Second
	firstGap   = time.Second
	maxGap     = 10 * time.Second
	gapFactor  = 200
	longestGap = 5 * time.Minute
	// After so long without a reading, the next one is not held back.
	forgetGap = time.Minute
)

// pages is what reading a list brought.
type pages struct {
	items    []json.RawMessage
	warnings []string
	gap      error // why later pages are missing; nil if all are there
}

// list reads all pages of the server's tools. If the first page fails that is
// an error, if a later one does the pages before it are kept.
func (s *server) list(ctx context.Context, cs *mcp.ClientSession) (pages, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, slowError(fmt.Sprintf("the list did not end within %v", listTimeout)))
	defer cancel()
	var p pages
	total := 0
	cursors, seen := map[string]bool{}, map[[sha256.Size]byte]bool{}
	for cursor := ""; ; {
		tools, next, err := s.page(ctx, cs, cursor)
		if err != nil {
			if len(cursors) == 0 {
				return pages{}, err
			}
			p.gap = fmt.Errorf("page %d of its tools could not be read: %w", len(cursors)+1, err)
			return p, nil
		}
		sum := sha256.Sum256(tools)
		items, err := rawjson.Array(tools)
		if err != nil {
			return pages{}, err
		}
		if seen[sum] && len(items) > 0 {
			p.warnings = append(p.warnings, fmt.Sprintf("its list repeats a page after page %d and was ended there", len(cursors)))
			return p, nil
		}
		seen[sum] = true
		p.items, total = append(p.items, items...), total+len(tools)
		switch {
		case next == "":
			return p, nil
		case cursors[next]:
			p.warnings = append(p.warnings, "its list repeats a cursor and was ended there")
			return p, nil
		case len(cursors)+1 >= maxListPages, len(p.items) >= maxListTools, total >= maxListBytes:
			p.warnings = append(p.warnings, fmt.Sprintf("its list is too long: only the first %d tools were taken", min(len(p.items), maxListTools)))
			p.items = p.items[:min(len(p.items), maxListTools)]
			return p, nil
		}
		cursors[next], cursor = true, next
	}
}

// page reads one page and returns the array of tools and the next cursor.
func (s *server) page(ctx context.Context, cs *mcp.ClientSession, cursor string) (tools json.RawMessage, next string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pageTimeout, slowError(fmt.Sprintf("no answer within %v", pageTimeout)))
	defer cancel()
	params := rawjson.Object{}
	if cursor != "" {
		params = params.With("cursor", rawjson.Quote(cursor))
	}
	raw, err := wire.CallRaw(ctx, cs, "tools/list", params.Bytes())
	if err != nil {
		return nil, "", causeOf(ctx, s.withoutSecrets(callError(err)))
	}
	o, err := rawjson.Parse(raw)
	if err != nil {
		return nil, "", err
	}
	next, _ = o.Text("nextCursor")
	switch tools = o.Get("tools"); {
	case rawjson.IsNull(tools):
		if !o.Has("tools") {
			return nil, "", errors.New("the answer has no tools")
		}
		return json.RawMessage("[]"), next, nil
	case tools[0] != '[':
		return nil, "", errors.New("the tools in the answer are not an array")
	}
	return tools, next, nil
}

// refresher keeps the catalog of one session up to date. It belongs to the
// server's goroutine.
type refresher struct {
	server  *server
	session *session
	init    *mcp.InitializeResult

	stored   bool          // the cache holds what was listed last
	failures int           // readings in a row that failed
	gap      time.Duration // from the last reading to the next
	last     time.Time     // end of the last reading
}

// follow reads the list again when it may have changed, until the session
// ends, and returns why it ended.
func (r *refresher) follow(ctx context.Context, gone <-chan error) error {
	var due <-chan time.Time
	var first time.Time // notice since the last reading
	if r.failures > 0 {
		due = time.After(backoff(r.failures, rand.Float64()))
	}
	for {
		select {
		case err := <-gone:
			r.session.end(errGone)
			return connectionLost(err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.server.relist:
			now := time.Now()
			if first.IsZero() {
				first = now
			}
			at := now.Add(quietTime)
			if limit := first.Add(quietLimit); at.After(limit) {
				at = limit
			}
			if held := r.last.Add(r.gap); at.Before(held) && now.Sub(r.last) < forgetGap {
				at = held
			}
			due = time.After(time.Until(at))
		case <-due:
			due, first = nil, time.Time{}
			r.readAgain(ctx)
			if r.failures > 0 {
				due = time.After(backoff(r.failures, rand.Float64()))
			}
		}
	}
}

func connectionLost(err error) error {
	if err == nil {
		return errors.New("it ended the connection")
	}
	return fmt.Errorf("the connection broke: %w", err)
}

func (r *refresher) readAgain(ctx context.Context) {
	if time.Since(r.last) >= forgetGap {
		r.gap = 0
	}
	began := time.Now()
	list, err := r.server.list(ctx, r.session.cs)
	if ctx.Err() != nil {
		return
	}
	changed := false
	if err != nil {
		r.failures++
		r.last = time.Now()
		r.server.warn(fmt.Sprintf("its list could not be read again: %v", err))
	} else {
		changed = r.publish(list)
	}
	r.gap = min(max(2*r.gap, firstGap), max(maxGap, min(gapFactor*time.Since(began), longestGap)))
	if changed {
		r.gap = 0
	}
}

// publish makes a listing the server's catalog and tells whether that changed
// anything. Where pages are missing, tools known before stay.
func (r *refresher) publish(p pages) (changed bool) {
	s := r.server
	r.last = time.Now()
	l := &listing{
		Protocol: r.init.ProtocolVersion, Instructions: r.init.Instructions, Tools: p.items,
	}
	if info := r.init.ServerInfo; info != nil {
		l.Title = info.Title
		if l.Title == "" {
			l.Title = info.Name
		}
	}
	s.mu.Lock()
	before := s.known
	s.mu.Unlock()
	c := s.catalog(l, before.tools)
	c.warnings = append(c.warnings, p.warnings...)
	if p.gap != nil {
		r.failures++
		c.warnings = append(c.warnings, p.gap.Error()+"; it is tried again")
		for _, t := range before.tools {
			if c.byName[t.Name] == nil {
				c.tools = append(c.tools, t)
			}
		}
		c.index()
	} else {
		r.failures = 0
		c.warnings = append(c.warnings, s.cfg.unmatched(c.byName)...)
	}
	for _, w := range c.warnings {
		if !slices.Contains(before.warnings, w) {
			s.log.Warn("server behaves oddly", "what", w)
		}
	}
	changed = !slices.Equal(c.tools, before.tools)
	s.mu.Lock()
	s.known, s.live = c, true
	s.mu.Unlock()
	s.changed()
	if p.gap == nil && (changed || !r.stored) {
		r.stored = true
		if err := s.cache.store(&s.cfg, l); err != nil {
			s.log.Warn("catalog is not kept for the next start", "err", err)
		}
	}
	return changed
}
