package aggregator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// Recorder is the head of the chain of Requesters: it writes a telemetry
// record for every call that passes, and one for every call that is blocked.
type Recorder struct {
	next    upstreams.Requester
	records *telemetry.Log
}

// NewRecorder puts a recorder in front of next. A nil log records nothing.
func NewRecorder(next upstreams.Requester, records *telemetry.Log) *Recorder {
	if next == nil {
		panic("aggregator: NewRecorder needs a requester")
	}
	return &Recorder{next, records}
}

// Do implements upstreams.Requester.
func (r *Recorder) Do(ctx context.Context, call upstreams.Call) (*upstreams.Result, error) {
	begin := time.Now()
	res, err := r.next.Do(ctx, call)
	if r.records == nil {
		return res, err
	}
	o := origin(call.From)
	var denied *policy.DeniedError
	var blocked *policy.BlockedError
	switch {
	case errors.As(err, &denied):
		r.records.Block(o, telemetry.Block{ID: call.Tool.ID, Layer: denied.Decision.Layer, Reason: denied.Decision.Rule})
	case errors.As(err, &blocked):
		r.records.Block(o, telemetry.Block{ID: call.Tool.ID, Layer: "gate", Reason: blocked.Reason})
	}
	record := telemetry.Call{
		ID: call.Tool.ID, Source: sourceMCP, SourceName: call.Tool.Server,
		MS: time.Since(begin).Milliseconds(), ArgumentBytes: len(call.Args),
		Via: string(call.Via), Parent: call.Parent,
	}
	if err != nil {
		record.Status = translate(ctx, err, call.Tool, phrasesTools).status
	} else {
		record.ResultBytes = len(res.Raw)
		if isError(res) {
			record.Status = statusFailed
		}
	}
	r.records.Call(o, record)
	return res, err
}

func isError(res *upstreams.Result) bool {
	o, err := rawjson.Parse(res.Raw)
	return err != nil || string(o.Get("isError")) == "true"
}

func origin(c upstreams.Caller) telemetry.Origin {
	return telemetry.Origin{Session: c.Session, Client: c.Client, Profile: c.Profile}
}

// recordHidden writes a block if a selector that names nothing the caller sees
// is the name, in any of its forms, of a tool that policy hides.
func (s *Server) recordHidden(c upstreams.Caller, selector string) {
	if s.records == nil {
		return
	}
	selector = strings.TrimSpace(selector)
	for _, t := range s.servers.Snapshot().Tools {
		long := "mcp:" + t.Safe + ":" + t.Safe + "__" + t.Name
		if t.Hidden == "" && slices.Contains([]string{t.ID, t.FullName, long, t.Name}, selector) {
			s.records.Block(origin(c), telemetry.Block{ID: t.ID, Layer: "policy", Reason: "hidden from this caller"})
			return
		}
	}
}

// recordSession writes what a session was shown, when it changes.
func (s *Server) recordSession(c *session, tools []byte) {
	if s.records == nil {
		return
	}
	k := c.face()
	view := s.dir.View(k.profile)
	record := telemetry.Session{
		Mode: string(k.mode), CatalogSize: len(view.Tools()), Sources: sources(len(view.Tools())),
		ToolsListed:       len(s.listedTools(k)) + len(s.faceFor(k).definitions),
		ToolsListBytes:    len(tools),
		InstructionsBytes: len(s.faceFor(k).instructions),
		DirectBytes:       directBytes(slices.Concat(view.Tools(), view.Direct())),
	}
	entry := string(encode(record))
	c.mu.Lock()
	changed := entry != c.lastEntry
	c.lastEntry = entry
	c.mu.Unlock()
	if changed {
		s.records.Session(origin(c.caller()), record)
	}
}

// directBytes is what tools/list would have if it showed these tools as their
// servers wrote them, under our names.
func directBytes(tools []*upstreams.Tool) int {
	n := len(listResult(nil)) + max(0, len(tools)-1)
	for _, t := range tools {
		n += len(t.Raw) - len(quote(t.Name)) + len(quote(t.FullName))
	}
	return n
}

// sources counts the catalog by where tools come from. Core and client are for
// programs that embed these packages.
func sources(mcp int) map[string]int {
	return map[string]int{sourceMCP: mcp, "core": 0, "client": 0}
}
