package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

func TestReadQueries(t *testing.T) {
	settings, _ := Settings{}.Clamp()
	tests := []struct {
		input string
		want  []query // nil: an error
		err   string
	}{
		{`{"query":"x"}`, []query{{"x", 8}}, ""},
		{`{"query":"x","limit":null,"queries":null}`, []query{{"x", 8}}, ""},
		{`{"query":"x","queries":[]}`, []query{{"x", 8}}, ""},
		{`{"query":"x","limit":100}`, []query{{"x", 20}}, ""},
		{`{"query":"x","limit":0}`, []query{{"x", 1}}, ""},
		{`{"query":"x","limit":-5}`, []query{{"x", 1}}, ""},
		{`{"query":"x","limit":"5"}`, []query{{"x", 5}}, ""},
		{`{"query":"x","limit":" 5 "}`, []query{{"x", 5}}, ""},
		{`{"query":"x","limit":5.0}`, []query{{"x", 5}}, ""},
		{`{"query":"x","limit":1e999}`, []query{{"x", 20}}, ""},
		{`{"query":"x","limit":2.5}`, nil, "limit must be a whole number from 1 to 20, got 2.5"},
		{`{"query":"x","limit":"2.5"}`, nil, "limit must be a whole number"},
		{`{"query":"x","limit":"many"}`, nil, "limit must be a whole number"},
		{`{"query":"x","limit":true}`, nil, "limit must be a whole number"},
		{`{"query":"x","limit":[1]}`, nil, "limit must be a whole number"},
		{`{"query":""}`, []query{{"", 8}}, ""},
		{`{"query":7}`, nil, "query must be a string, got a number"},
		{`{}`, nil, "neither query nor queries"},
		{`{"query":null}`, nil, "neither query nor queries"},
		{`{"queries":[]}`, nil, "neither query nor queries"},
		{`{"q":"x"}`, nil, "got only q"},
		{`null`, nil, "neither query nor queries"},
		{`[]`, nil, "must be an object, got an array"},
		{`"{\"query\":\"x\"}"`, []query{{"x", 8}}, ""},
		{`{"query":"x","queries":[{"query":"y"}]}`, nil, "query and queries are both given"},
		{`{"query":" ","queries":[{"query":"y"}]}`, []query{{"y", 8}}, ""},
		{`{"query":null,"queries":[{"query":"y","limit":3},{"query":"z"}]}`, []query{{"y", 3}, {"z", 8}}, ""},
		{`{"queries":["y"]}`, []query{{"y", 8}}, ""},
		{`{"queries":"[{\"query\":\"y\"}]"}`, []query{{"y", 8}}, ""},
		{`{"queries":[{"query":"a","limit":20},{"query":"b","limit":20},{"query":"c","limit":10},{"query":"d"}]}`,
			[]query{{"a", 20}, {"b", 20}, {"c", 10}, {"d", 1}}, ""},
		{`{"queries":[{"query":"a","limit":99},{"query":"b","limit":20},{"query":"c"},{"query":"d"}]}`,
			[]query{{"a", 20}, {"b", 20}, {"c", 5}, {"d", 5}}, ""},
		{`{"queries":[{"query":"a","limit":20},{"query":"b","limit":20},{"query":"c","limit":11}]}`, nil, "sum up to 51"},
		{`{"queries":[{"query":"a"},{"limit":1}]}`, nil, "queries[1].query must be a string"},
		{`{"queries":[{"query":"a","limit":1.5}]}`, nil, "queries[0].limit must be a whole number"},
		{`{"queries":[5]}`, nil, "queries[0] must be an object"},
		{`{"queries":{"query":"a"}}`, nil, "queries must be an array"},
		{`{"queries":[` + strings.Repeat(`"q",`, 16) + `"q"]}`, nil, "17 queries, at most 16"},
	}
	for _, tt := range tests {
		got, _, err := readQueries(json.RawMessage(tt.input), settings)
		switch {
		case tt.want == nil && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("readQueries(%s) = %v, %v, want the error %q", tt.input, got, err, tt.err)
		case tt.want != nil && (err != nil || !slices.Equal(got, tt.want)):
			t.Errorf("readQueries(%s) = %v, %v, want %v", tt.input, got, err, tt.want)
		}
	}
}

func TestReadQueries_SixteenShare(t *testing.T) {
	settings, _ := Settings{}.Clamp()
	got, _, err := readQueries(json.RawMessage(`{"queries":[`+strings.Repeat(`"q",`, 15)+`"q"]}`), settings)
	if err != nil || len(got) != 16 || got[15].limit != 3 {
		t.Errorf("readQueries of 16 = %v, %v, want limits of 3", got, err)
	}
}

// First output is dropped from the last hits, then hits; the budget holds.
func TestFitHits(t *testing.T) {
	hit := func(i int) directory.Hit {
		return directory.Hit{ID: fmt.Sprint("mcp:s:t", i), Description: strings.Repeat(`"d" `, 45), Input: "{ a: string }", Output: strings.Repeat("x", 200)}
	}
	groups := []group{{Query: "q"}}
	for i := range 20 {
		groups[0].Candidates = append(groups[0].Candidates, hit(i))
	}
	note := func(dropped int) string {
		if dropped == 0 {
			return ""
		}
		return fmt.Sprintf("%d dropped", dropped)
	}
	all := chars(content(string(encode(groups[0].Candidates))))
	noOutput := slices.Clone(groups[0].Candidates)
	for i := range noOutput {
		noOutput[i].Output = ""
	}
	some := (all + chars(content(string(encode(noOutput))))) / 2
	for _, budget := range []int{100, 1000, 4000, some, all} {
		text, second := fitHits(groups, false, budget, note)
		if n := chars(content(text, second)); n > budget && text != "[]" {
			t.Errorf("fitHits(%d) has %d characters", budget, n)
		}
		var hits []directory.Hit
		if err := json.Unmarshal([]byte(text), &hits); err != nil {
			t.Fatalf("fitHits(%d) = %s: %v", budget, text, err)
		}
		for i, h := range hits {
			if h.ID != groups[0].Candidates[i].ID {
				t.Errorf("fitHits(%d): hit %d is %s", budget, i, h.ID)
			}
			if len(hits) < 20 && h.Output != "" {
				t.Errorf("fitHits(%d): hits were dropped before output", budget)
			}
		}
		if (len(hits) < 20) != (second != "") {
			t.Errorf("fitHits(%d): %d hits, note %q", budget, len(hits), second)
		}
		if budget == some && (len(hits) != 20 || hits[0].Output == "" || hits[19].Output != "") {
			t.Errorf("fitHits(%d): %d hits, output of the first %q, of the last %q; want output dropped from the end", budget, len(hits), hits[0].Output, hits[19].Output)
		}
	}
	batch := []group{groups[0], {Query: strings.Repeat("long ", 100), Candidates: []directory.Hit{hit(1)}}}
	text, _ := fitHits(batch, true, 4000, note)
	var got struct{ Results []group }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if !got.Results[0].Truncated || got.Results[1].Truncated || len(got.Results[1].Candidates) != 1 {
		t.Errorf("batch = %s, want the larger group truncated and the smaller whole", text)
	}
	if len(groups[0].Candidates) != 20 || groups[0].Candidates[19].Output == "" {
		t.Error("fitHits changed its input")
	}
}

func search(t *testing.T, r *rig, args string) (hits []directory.Hit, note string) {
	t.Helper()
	a := decode(t, r.local(t, nameSearch, args))
	if a.IsError {
		t.Fatalf("tool_search %s: %s", args, a.text())
	}
	if err := json.Unmarshal([]byte(a.text()), &hits); err != nil {
		t.Fatalf("tool_search %s = %s: %v", args, a.text(), err)
	}
	if len(a.Content) > 1 {
		note = a.Content[1].Text
	}
	return hits, note
}

func TestSearch_NothingKnown(t *testing.T) {
	idle := newRig(t, newFakeServers(fakeServer{Name: "files", State: upstreams.Idle}), rigOptions{})
	want := "No tools are known yet: run toolsearch-mcp check, or search with --wait."
	if hits, note := search(t, idle, `{"query":"write file"}`); len(hits) != 0 || note != want {
		t.Errorf("search before any start = %d hits, note %q, want none and %q", len(hits), note, want)
	}
	down := newRig(t, newFakeServers(fakeServer{Name: "files", State: upstreams.Backoff}), rigOptions{})
	down.Start()
	want = "No tools are known yet. Down: files (tell the user to run toolsearch-mcp check)."
	if hits, note := search(t, down, `{"query":"write file"}`); len(hits) != 0 || note != want {
		t.Errorf("search while all are down = %d hits, note %q, want none and %q", len(hits), note, want)
	}
}

func TestSearch_Notes(t *testing.T) {
	servers := []fakeServer{
		{Name: "calendar", Tools: []json.RawMessage{tool("create_event", "Create an event.", "")}},
		{Name: "boot", State: upstreams.Starting},
		{Name: "locked", State: upstreams.NeedsAuth},
		{Name: "dead", State: upstreams.Backoff},
		{Name: "secret", State: upstreams.Starting},
	}
	r := newRig(t, newFakeServers(servers...), rigOptions{rules: policy.Rules{Deny: []string{"mcp:secret:*"}}})
	hits, note := search(t, r, `{"query":"create event"}`)
	want := "Still starting: boot (search again in a moment). Need a login: locked (tell the user to run toolsearch-mcp check). Down: dead (tell the user to run toolsearch-mcp check)."
	if len(hits) != 1 || note != want {
		t.Errorf("search = %d hits, note %q, want 1 and %q", len(hits), note, want)
	}
	hits, note = search(t, r, `{"query":"zzzz qqqq"}`)
	if len(hits) != 0 || !strings.HasPrefix(note, "Nothing matched; try other words") || !strings.Contains(note, "Servers: boot, calendar, dead, locked.") || !strings.Contains(note, "Down: dead") {
		t.Errorf("search without a match = %v, note %q", hits, note)
	}
	hits, note = search(t, r, `{"query":" "}`)
	if len(hits) != 0 || !strings.Contains(note, "Servers: boot, calendar, dead, locked.") {
		t.Errorf("blank search = %v, note %q", hits, note)
	}
	if strings.Contains(note, "secret") {
		t.Errorf("note %q names a server whose tools are all denied", note)
	}

	r = newRig(t, newFakeServers(servers[0]), rigOptions{})
	if _, note = search(t, r, `{"query":"create event"}`); note != "" {
		t.Errorf("note = %q, want none: there is nothing to say", note)
	}
	r = newRig(t, newFakeServers(), rigOptions{})
	if _, note = search(t, r, `{"query":"create event"}`); note != "No server is configured or visible to you." {
		t.Errorf("note without servers = %q", note)
	}
}

func TestSearch_NoteIsBounded(t *testing.T) {
	var servers []fakeServer
	for i := range 60 {
		servers = append(servers, fakeServer{Name: fmt.Sprintf("a-server-with-a-long-name-%02d", i), State: []upstreams.State{upstreams.Starting, upstreams.NeedsAuth, upstreams.Failed, upstreams.Backoff}[i%4]})
	}
	r := newRig(t, newFakeServers(servers...), rigOptions{})
	for _, args := range []string{`{"query":"x"}`, `{"query":""}`, `{"queries":["a","b"]}`} {
		a := decode(t, r.local(t, nameSearch, args))
		if len(a.Content) != 2 || utf8.RuneCountInString(a.Content[1].Text) > maxNote {
			t.Errorf("tool_search %s: note of %d characters", args, utf8.RuneCountInString(a.Content[1].Text))
		}
	}
}

// Every answer is within maxAnswerChars, counted as clients count.
func TestSearch_Budget(t *testing.T) {
	var tools []json.RawMessage
	for i := range 60 {
		tools = append(tools, tool(fmt.Sprintf("send_thing_%d", i), strings.Repeat(`send "things" <b> `, 30), `{"type":"object","properties":{"a":{"enum":["x","y"]},"b":{"type":"string"}}}`))
	}
	r := newRig(t, newFakeServers(fakeServer{Name: "s", Tools: tools}), rigOptions{settings: Settings{MaxAnswerChars: 4000}})
	for _, args := range []string{`{"query":"send things","limit":20}`, `{"queries":["send","things",{"query":"send thing","limit":20}]}`} {
		var result struct{ Content json.RawMessage }
		if err := json.Unmarshal(r.local(t, nameSearch, args), &result); err != nil {
			t.Fatal(err)
		}
		if n := chars(result.Content); n > 4000 || n < 3000 {
			t.Errorf("tool_search %s has %d characters, want close to 4000", args, n)
		}
		if !strings.Contains(string(result.Content), "more hits did not fit") {
			t.Errorf("tool_search %s does not say that hits were dropped", args)
		}
	}
}

// On a start without any cache the first search waits until all servers have
// settled, at most 3 s; a later one does not.
func TestSearch_ColdStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServers(fakeServer{Name: "slow", State: upstreams.Starting, Tools: []json.RawMessage{tool("create_event", "Create.", "")}})
		r := newRig(t, f, rigOptions{})
		r.Start()
		begin := time.Now()
		if hits, note := search(t, r, `{"query":"create"}`); len(hits) != 0 || time.Since(begin) != settleTime || !strings.Contains(note, "Still starting: slow") {
			t.Errorf("first search = %v, note %q after %v, want none after %v", hits, note, time.Since(begin), settleTime)
		}
		begin = time.Now()
		if search(t, r, `{"query":"create"}`); time.Since(begin) != 0 {
			t.Errorf("second search took %v", time.Since(begin))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServers(fakeServer{Name: "slow", State: upstreams.Starting, Tools: []json.RawMessage{tool("create_event", "Create.", "")}})
		r := newRig(t, f, rigOptions{})
		r.Start()
		time.AfterFunc(time.Second, func() { f.comeUp("slow"); close(f.settled) })
		begin := time.Now()
		if hits, _ := search(t, r, `{"query":"create"}`); len(hits) != 1 || time.Since(begin) != time.Second {
			t.Errorf("search = %v after %v, want the hit after 1 s", hits, time.Since(begin))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServers(fakeServer{Name: "slow", State: upstreams.Starting}, fakeServer{Name: "known", State: upstreams.Cached, Tools: []json.RawMessage{tool("create_event", "Create.", "")}})
		r := newRig(t, f, rigOptions{})
		r.Start()
		begin := time.Now()
		if hits, _ := search(t, r, `{"query":"create"}`); len(hits) != 1 || time.Since(begin) != 0 {
			t.Errorf("search with a cache = %v after %v, want the hit at once", hits, time.Since(begin))
		}
	})
}

func TestSearch_Cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	f := newFakeServers(fakeServer{Name: "slow", State: upstreams.Starting})
	r := newRig(t, f, rigOptions{})
	r.Start()
	cancel()
	if _, err := r.Local("").Call(ctx, nameSearch, json.RawMessage(`{"query":"x"}`)); err != nil {
		t.Errorf("Call = %v, want a result that says so", err)
	}
}
