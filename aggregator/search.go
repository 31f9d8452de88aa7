package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

const (
	maxQueries   = 16  // of a batch
	maxBatchHits = 50  // sum of the limits of a batch
	maxNote      = 400 // characters of the second block
	maxEcho      = 120 // characters of a query that a batch answer repeats
)

// query is one search.
type query struct {
	text  string
	limit int
}

// group is the answer to one query of a batch.
type group struct {
	Query      string          `json:"query"`
	Candidates []directory.Hit `json:"candidates"`
	Truncated  bool            `json:"truncated,omitempty"`
}

// controlSearch answers tool_search.
func (s *Server) controlSearch(ctx context.Context, call *controlCall) (json.RawMessage, error) {
	settings := s.current()
	queries, batch, err := readQueries(call.args, settings)
	if err != nil {
		return errorResult(err.Error()), nil
	}
	view := s.settledView(ctx, call.session.caller().Profile)
	found, err := s.search(ctx, call.session, view, queries)
	if err != nil {
		return errorResult("the search was given up: " + err.Error() + "; try again"), nil //nolint:nilerr // told in the result
	}
	text, note := fitHits(found, batch, settings.MaxAnswerChars, func(dropped int) string {
		return s.searchNote(view, found, dropped)
	})
	return textResult(text, note), nil
}

// search runs queries in a view.
func (s *Server) search(ctx context.Context, c *session, view *directory.View, queries []query) ([]group, error) {
	groups := make([]group, 0, len(queries))
	for _, q := range queries {
		begin := time.Now()
		g := group{Query: q.text, Candidates: []directory.Hit{}}
		if strings.TrimSpace(q.text) != "" {
			hits, err := view.Search(ctx, q.text, q.limit)
			if err != nil {
				return nil, err
			}
			g.Candidates = append(g.Candidates, hits...)
		}
		s.records.Search(origin(c.caller()), telemetry.Search{
			QueryLength: utf8.RuneCountInString(q.text), Hits: len(g.Candidates),
			MS: time.Since(begin).Milliseconds(), Bytes: len(encode(g.Candidates)),
		})
		groups = append(groups, g)
	}
	return groups, nil
}

// readQueries reads the input of tool_search; batch tells which form it had.
func readQueries(input json.RawMessage, settings Settings) (queries []query, batch bool, err error) {
	const want = `send {"query":"what the tool should do"} or {"queries":[{"query":"…"}]}`
	o, err := readObject(input)
	if err != nil {
		return nil, false, fmt.Errorf("tool_search: %w; %s", err, want)
	}
	text, hasQuery := o.Text("query")
	if v := o.Get("query"); !rawjson.IsNull(v) && !hasQuery {
		return nil, false, fmt.Errorf("tool_search: query must be a string, got %s; %s", rawjson.Kind(v), want)
	}
	limit, hasLimit, err := readLimit("limit", o.Get("limit"), settings)
	if err != nil {
		return nil, false, fmt.Errorf("tool_search: %w", err)
	}
	items, err := readItems(o.Get("queries"))
	if err != nil {
		return nil, false, fmt.Errorf("tool_search: %w; %s", err, want)
	}
	switch {
	case len(items) == 0 && !hasQuery:
		if len(o) > 0 {
			return nil, false, fmt.Errorf("tool_search: neither query nor queries is given, got %s; %s", memberNames(o), want)
		}
		return nil, false, fmt.Errorf("tool_search: neither query nor queries is given; %s", want)
	case len(items) == 0:
		if !hasLimit {
			limit = settings.SearchDefaultLimit
		}
		return []query{{text, limit}}, false, nil
	case strings.TrimSpace(text) != "":
		return nil, false, errors.New("tool_search: query and queries are both given; send one of them, or put the query into queries")
	case len(items) > maxQueries:
		return nil, false, fmt.Errorf("tool_search: %d queries, at most %d are possible; send fewer", len(items), maxQueries)
	}
	most := settings.SearchDefaultLimit
	if hasLimit {
		most = limit
	}
	queries, err = readBatch(items, most, settings)
	return queries, true, err
}

// readBatch gives every query of a batch its limit: those that name none share
// what the others leave of maxBatchHits, each at least 1 and at most most.
func readBatch(items []json.RawMessage, most int, settings Settings) ([]query, error) {
	queries := make([]query, len(items))
	var open []int
	sum := 0
	for i, item := range items {
		name := fmt.Sprintf("queries[%d]", i)
		if text, ok := textOf(item); ok { // a bare string
			queries[i].text = text
			open = append(open, i)
			continue
		}
		o, err := rawjson.Parse(item)
		if err != nil {
			return nil, fmt.Errorf(`tool_search: %s must be an object {"query":"…"}, got %s`, name, rawjson.Kind(item))
		}
		text, ok := o.Text("query")
		if !ok {
			return nil, fmt.Errorf("tool_search: %s.query must be a string, got %s", name, rawjson.Kind(o.Get("query")))
		}
		limit, given, err := readLimit(name+".limit", o.Get("limit"), settings)
		if err != nil {
			return nil, fmt.Errorf("tool_search: %w", err)
		}
		queries[i] = query{text, limit}
		if given {
			sum += limit
		} else {
			open = append(open, i)
		}
	}
	if sum > maxBatchHits {
		return nil, fmt.Errorf("tool_search: the limits sum up to %d, at most %d are possible; lower them or send fewer queries", sum, maxBatchHits)
	}
	if len(open) > 0 {
		share := min(max((maxBatchHits-sum)/len(open), 1), most)
		for _, i := range open {
			queries[i].limit = share
		}
	}
	return queries, nil
}

// readObject reads a control tool's input: an object, a string that holds one,
// or nothing.
func readObject(input json.RawMessage) (rawjson.Object, error) {
	if rawjson.IsNull(input) {
		return nil, nil
	}
	if text, ok := objectText(input); ok {
		input = text
	}
	if rawjson.Kind(input) != "an object" {
		return nil, fmt.Errorf("the input must be an object, got %s", rawjson.Kind(input))
	}
	return rawjson.Parse(input)
}

// readItems reads queries: an array, a string that holds one, or nothing.
func readItems(v json.RawMessage) ([]json.RawMessage, error) {
	if rawjson.IsNull(v) || blank(v) {
		return nil, nil
	}
	if text, ok := textOf(v); ok {
		v = json.RawMessage(text)
	}
	if !json.Valid(v) || rawjson.Kind(v) != "an array" {
		return nil, errors.New("queries must be an array")
	}
	return rawjson.Array(v)
}

func textOf(v json.RawMessage) (string, bool) {
	if v = bytes.TrimSpace(v); len(v) == 0 || v[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(v, &s)
	return s, err == nil
}

// readLimit reads a limit, clamped to what settings allow: whole numbers, also
// as strings. given is false for an absent one.
func readLimit(name string, v json.RawMessage, settings Settings) (limit int, given bool, err error) {
	if rawjson.IsNull(v) {
		return 0, false, nil
	}
	text := string(bytes.TrimSpace(v))
	if s, ok := textOf(v); ok {
		text = strings.TrimSpace(s)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f) || f != math.Trunc(f) {
		return 0, false, fmt.Errorf("%s must be a whole number from 1 to %d, got %s", name, settings.MaxSearchLimit, cut(directory.OneLine(string(v), 0), 40))
	}
	return int(min(max(f, 1), float64(settings.MaxSearchLimit))), true, nil
}

// fitHits encodes hits and the note so that the content of both blocks is
// within budget characters: output goes first, from the last hits on, then
// hits from the end. note is told how many hits were dropped.
func fitHits(groups []group, batch bool, budget int, note func(dropped int) string) (text, second string) {
	shown := make([]group, len(groups))
	for i, g := range groups {
		shown[i] = group{Query: cut(g.Query, maxEcho), Candidates: slices.Clone(g.Candidates)}
	}
	dropped := 0
	for {
		if batch {
			text = string(encode(struct {
				Results []group `json:"results"`
			}{shown}))
		} else {
			text = string(encode(shown[0].Candidates))
		}
		second = note(dropped)
		if chars(content(text, second)) <= budget {
			return text, second
		}
		if dropOutput(shown) {
			continue
		}
		if !dropHit(shown) {
			return text, ""
		}
		dropped++
	}
}

// dropOutput takes the output off the last hit that has one.
func dropOutput(groups []group) bool {
	for _, group := range slices.Backward(groups) {
		for j := len(group.Candidates) - 1; j >= 0; j-- {
			if h := &group.Candidates[j]; h.Output != "" {
				h.Output = ""
				return true
			}
		}
	}
	return false
}

// dropHit drops the last hit of the group that has most, of the later one if
// two have as many.
func dropHit(groups []group) bool {
	most := 0
	for i := range groups {
		if len(groups[i].Candidates) >= len(groups[most].Candidates) {
			most = i
		}
	}
	g := &groups[most]
	if len(g.Candidates) == 0 {
		return false
	}
	g.Candidates, g.Truncated = g.Candidates[:len(g.Candidates)-1], true
	return true
}

// searchNote is the second block of a search: what the hits do not say. "" if
// there is nothing.
func (s *Server) searchNote(view *directory.View, groups []group, dropped int) string {
	var parts []string
	if dropped > 0 {
		parts = append(parts, fmt.Sprintf("%d more hits did not fit; lower limit, or search more narrowly.", dropped))
	}
	var names []string
	known := false
	for _, info := range view.Servers() {
		known = known || info.Known
		names = append(names, directory.OneLine(info.Name, 40))
	}
	trouble := s.trouble(view)
	var missed []string
	none := true
	for _, g := range groups {
		none = none && len(g.Candidates) == 0
		if len(g.Candidates) == 0 {
			missed = append(missed, g.Query)
		}
	}
	switch {
	case len(names) == 0 && none:
		parts = append(parts, "No server is configured or visible to you.")
	case none && !known && !s.started.Load(): // in a command
		return "No tools are known yet: run toolsearch-mcp check, or search with --wait."
	case none && !known:
		parts = append(parts, "No tools are known yet.")
	case none:
		blank := strings.TrimSpace(strings.Join(missed, "")) == ""
		if blank {
			parts = append(parts, "Say what the tool should do: product, action, object.")
		} else {
			parts = append(parts, "Nothing matched; try other words: product, action, object, in English.")
			var near []string
			for _, q := range missed {
				for _, name := range view.NearServers(q) {
					if name = directory.OneLine(name, 40); !slices.Contains(near, name) {
						near = append(near, name)
					}
				}
			}
			if len(near) > 0 {
				parts = append(parts, "Servers that may fit: "+directory.JoinNames(near, 100)+".")
			}
		}
		left := maxNote - utf8.RuneCountInString(strings.Join(append(parts, trouble), " ")) - len(" Servers: .")
		if left > 20 {
			parts = append(parts, "Servers: "+directory.JoinNames(names, left)+".")
		}
	}
	if trouble != "" {
		parts = append(parts, trouble)
	}
	return cut(strings.Join(parts, " "), maxNote)
}

// trouble names the visible servers that are not there: "" if all are.
func (s *Server) trouble(view *directory.View) string {
	visible, known := make(map[string]bool), make(map[string]bool)
	for _, info := range view.Servers() {
		visible[info.Name], known[info.Name] = true, info.Known
	}
	var idle, starting, login, down []string
	for _, st := range s.servers.Status() {
		if !visible[st.Name] {
			continue
		}
		name := directory.OneLine(st.Name, 40)
		switch st.State {
		case upstreams.Starting:
			starting = append(starting, name)
		case upstreams.Idle:
			switch {
			case st.Tools > 0:
			case s.started.Load():
				starting = append(starting, name)
			default: // in a command, which starts what it calls
				idle = append(idle, name)
			}
		case upstreams.Ready:
			if !known[st.Name] { // it came after the view was made
				starting = append(starting, name)
			}
		case upstreams.NeedsAuth:
			login = append(login, name)
		case upstreams.Backoff, upstreams.Failed:
			down = append(down, name)
		}
	}
	var parts []string
	for _, kind := range []struct {
		names      []string
		head, tail string
	}{
		{idle, "Not started: ", " (search with --wait)."},
		{starting, "Still starting: ", " (search again in a moment)."},
		{login, "Need a login: ", " (tell the user to run toolsearch-mcp check)."},
		{down, "Down: ", " (tell the user to run toolsearch-mcp check)."},
	} {
		if len(kind.names) > 0 {
			parts = append(parts, kind.head+directory.JoinNames(kind.names, 60)+kind.tail)
		}
	}
	return strings.Join(parts, " ")
}
