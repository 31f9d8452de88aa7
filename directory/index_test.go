package directory

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// someQueries is a mix that reaches every way by which a word finds a tool.
var someQueries = []string{
	"create an issue", "send message", "list pull requests", "weather forecast", "find files", "book a hotel room",
	"kubernetes pods", "physician", "invioce", "delete", "chart of sales", "calendar", "plan_route", "how much is the bill",
}

// answers returns the ids and scores that a ranker finds.
func answers(t testing.TB, r *ranker) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	for _, query := range someQueries {
		hits, err := r.search(context.Background(), query, 20)
		if err != nil {
			t.Fatalf("search(%q) = %v", query, err)
		}
		all[query] = []string{}
		for _, h := range hits {
			all[query] = append(all[query], fmt.Sprintf("%s %.9f", h.tool.ID, h.score))
		}
	}
	return all
}

// TestIndex_HistoryDoesNotMatter: any history of updates gives the same order
// and scores as a fresh index of the same tools.
func TestIndex_HistoryDoesNotMatter(t *testing.T) {
	tools, servers := ownCatalog(t)
	random := rand.New(rand.NewPCG(7, 7))
	ix := newIndex(nil)
	defer ix.close()
	for step := range 30 {
		var some []*upstreams.Tool
		about := slices.Clone(servers)
		for _, tool := range tools {
			if random.IntN(4) == 0 {
				continue
			}
			if c := *tool; random.IntN(5) == 0 {
				c.Description = fmt.Sprintf("%s Version %d of the weather chart.", c.Description, step)
				tool = &c
			}
			some = append(some, tool)
		}
		about[random.IntN(len(about))].Instructions = fmt.Sprintf("Pods and invoices, revision %d.", step)
		random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		r := ix.update(some, about)
		if step%3 == 2 {
			want := answers(t, rankerOf(t, some, about))
			if diff := cmp.Diff(want, answers(t, r)); diff != "" {
				t.Fatalf("after %d updates the answers differ from a fresh index (-fresh +updated):\n%s", step+1, diff)
			}
		}
		r.release()
	}
}

// TestIndex_SnapshotsStay: a ranker answers for its own tools after later
// updates, and with the tools it was given.
func TestIndex_SnapshotsStay(t *testing.T) {
	tools, servers := ownCatalog(t)
	ix := newIndex(nil)
	defer ix.close()
	first := ix.update(tools, servers)
	defer first.release()
	before := answers(t, first)
	var fresh []*upstreams.Tool
	for _, tool := range tools[:len(tools)/2] {
		c := *tool
		fresh = append(fresh, &c)
	}
	second := ix.update(fresh, servers)
	defer second.release()
	third := ix.update(nil, nil)
	defer third.release()
	if diff := cmp.Diff(before, answers(t, first)); diff != "" {
		t.Errorf("the first snapshot changed (-before +after):\n%s", diff)
	}
	hits, err := second.search(context.Background(), "create_note", 1)
	if err != nil || len(hits) != 1 || !slices.Contains(fresh, hits[0].tool) {
		t.Errorf("the second snapshot found %v, %v; want one of the tools it was given", hits, err)
	}
	if got := found(t, third, "create_note", 1); len(got) != 0 {
		t.Errorf("the empty snapshot found %q", got)
	}
}

func TestIndex_SearchWhileUpdating(t *testing.T) {
	tools, servers := ownCatalog(t)
	ix := newIndex(nil)
	defer ix.close()
	var now sync.Map
	now.Store("ranker", ix.update(tools, servers))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				v, _ := now.Load("ranker")
				if _, err := v.(*ranker).search(context.Background(), someQueries[i%len(someQueries)], 8); err != nil {
					t.Errorf("search while updating: %v", err)
					return
				}
			}
		})
	}
	for i := range 30 {
		part := slices.Clone(tools)
		for j := i; j < len(part); j += 7 {
			c := *part[j]
			c.Description += fmt.Sprintf(" Round %d.", i)
			part[j] = &c
		}
		now.Store("ranker", ix.update(part, servers))
	}
	cancel()
	wg.Wait()
}

func TestIndex_Closed(t *testing.T) {
	tools, servers := ownCatalog(t)
	ix := newIndex(nil)
	r := ix.update(tools, servers)
	ix.close()
	ix.close()
	if got := found(t, r, "create_note", 1); len(got) != 1 {
		t.Errorf("a snapshot of a closed index found %q, want the tool", got)
	}
	r.release()
	r.release()
	if got := found(t, ix.update(tools, servers), "create_note", 1); len(got) != 0 {
		t.Errorf("a closed index took tools: %q", got)
	}
}

func TestIndex_CancelledSearch(t *testing.T) {
	tools, servers := ownCatalog(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := rankerOf(t, tools, servers).search(ctx, "create", 8); err == nil {
		t.Error("search with a cancelled context gives no error")
	}
}

// One tool's schema must not cost all others seconds and half a gigabyte.
func TestIndex_HugeSchemaIsReadInPart(t *testing.T) {
	for name, schema := range map[string]func(i int) string{
		"values":       func(i int) string { return fmt.Sprintf(`"x":{"enum":["v%d"]}`, i) },
		"names":        func(i int) string { return fmt.Sprintf(`"n%d":{}`, i) },
		"descriptions": func(i int) string { return fmt.Sprintf(`"x":{"description":"word%d"}`, i) },
	} {
		var parts []string
		for i := range 50_000 {
			parts = append(parts, fmt.Sprintf(`{"properties":{%s}}`, schema(i)))
		}
		huge := fakeTool("s", "huge", "")
		huge.InputSchema = json.RawMessage(`{"anyOf":[` + strings.Join(parts, ",") + `]}`)
		var a analyzer
		if n := len(a.read(huge, upstreams.ServerInfo{})); n < 1000 || n > 50_000 {
			t.Errorf("%s: read() = %d words, want some of them", name, n)
		}
	}
}
