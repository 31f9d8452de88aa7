package directory

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

func idsOf(tools []*upstreams.Tool) []string {
	ids := []string{}
	for _, t := range tools {
		ids = append(ids, t.ID)
	}
	return ids
}

func searchIDs(t *testing.T, v *View, query string, limit int) []string {
	t.Helper()
	hits, err := v.Search(t.Context(), query, limit)
	if err != nil {
		t.Fatalf("Search(%q) = %v", query, err)
	}
	ids := []string{}
	for _, h := range hits {
		ids = append(ids, h.ID)
	}
	return ids
}

func TestDirectory_ViewShowsWhatTheProfileMaySee(t *testing.T) {
	direct := fakeTool("browser", "screenshot", "")
	direct.DirectOnly = true
	app := fakeTool("panels", "paint", "")
	app.Hidden = "app-only tool"
	d, source := fakeDirectory(t, fakeRules{hide: []string{"secret", "mcp:closed:"}},
		fakeTool("calendar", "create_event", ""), fakeTool("calendar", "secret", ""), fakeTool("vault", "secret", ""), direct, app)
	s := *source.now.Load()
	s.Servers = append(s.Servers, upstreams.ServerInfo{Name: "closed", Safe: "closed"}, upstreams.ServerInfo{Name: "starting", Safe: "starting"})
	source.now.Store(&s)

	v := d.View("reader")
	if diff := cmp.Diff([]string{"mcp:calendar:create_event"}, idsOf(v.Tools())); diff != "" {
		t.Errorf("Tools (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"mcp:browser:screenshot"}, idsOf(v.Direct())); diff != "" {
		t.Errorf("Direct (-want +got):\n%s", diff)
	}
	var servers []string
	for _, s := range v.Servers() {
		servers = append(servers, s.Name)
	}
	// vault and panels have known tools of which none is visible; closed is denied.
	if diff := cmp.Diff([]string{"browser", "calendar", "starting"}, servers); diff != "" {
		t.Errorf("Servers (-want +got):\n%s", diff)
	}
	for _, query := range []string{"secret", "screenshot", "paint"} {
		if got := searchIDs(t, v, query, 20); len(got) > 0 {
			t.Errorf("Search(%q) = %q, want nothing", query, got)
		}
	}
	if got := searchIDs(t, v, "create event", 20); !slices.Equal(got, []string{"mcp:calendar:create_event"}) {
		t.Errorf("Search(create event) = %q", got)
	}
	if got := searchIDs(t, v, "create event", 0); len(got) != 0 {
		t.Errorf("Search(limit 0) = %q, want nothing", got)
	}
}

func TestDirectory_ViewStaysWhileNothingChanges(t *testing.T) {
	tool := fakeTool("harbour", "list_ships", "")
	d, source := fakeDirectory(t, fakeRules{}, tool)
	first := d.View("")
	if d.View("") != first {
		t.Error("View is another one though the source did not change")
	}
	source.set(tool)
	if d.View("") != first {
		t.Error("View is another one though nothing in it changed")
	}
	if d.View("other") == first {
		t.Error("two profiles share a view")
	}

	s := *source.now.Load()
	s.Servers = slices.Clone(s.Servers)
	s.Servers[0].Live = true
	source.now.Store(&s)
	live := d.View("")
	if live == first || !live.Servers()[0].Live {
		t.Error("View does not show that the server is live")
	}
	if live.index != first.index {
		t.Error("the index was made again though no word changed")
	}

	source.set(tool, fakeTool("harbour", "moor_ship", ""))
	if got := searchIDs(t, d.View(""), "moor", 5); len(got) != 1 {
		t.Errorf("Search(moor) = %q, want the new tool", got)
	}
	if got := searchIDs(t, first, "moor", 5); len(got) != 0 {
		t.Errorf("Search(moor) in the old view = %q, want nothing", got)
	}
	if _, err := first.Resolve("moor_ship"); err == nil {
		t.Error("the old view resolves the new tool")
	}
}

func TestDirectory_SwapChangesLaterViews(t *testing.T) {
	d, _ := fakeDirectory(t, fakeRules{}, fakeTool("harbour", "list_ships", ""), fakeTool("harbour", "sink_ship", ""))
	before := d.View("")
	d.Swap(fakeRules{hide: []string{"sink"}})
	after := d.View("")
	if got := searchIDs(t, after, "sink ship", 5); slices.Contains(got, "mcp:harbour:sink_ship") {
		t.Errorf("Search(sink ship) after Swap = %q", got)
	}
	if _, err := after.Resolve("sink_ship"); err == nil {
		t.Error("Resolve finds a tool that the new rules hide")
	}
	if got := searchIDs(t, before, "sink ship", 5); !slices.Contains(got, "mcp:harbour:sink_ship") {
		t.Errorf("Search(sink ship) in the view from before = %q, want sink_ship", got)
	}
}

// Of views that nobody searches only the newest is indexed; one that is
// searched after all shows its own tools and no others.
func TestDirectory_NewestIndexWins(t *testing.T) {
	d, source := fakeDirectory(t, fakeRules{}, fakeTool("a", "first_ship", ""))
	first := d.View("")
	searchIDs(t, first, "ship", 5)
	x := d.profiles[""].indexer
	x.index.mu.Lock() // holds the updates up
	unlock := sync.OnceFunc(x.index.mu.Unlock)
	defer unlock()

	source.set(fakeTool("a", "first_ship", ""), fakeTool("b", "second_ship", ""))
	d.View("")
	for taken := false; !taken; runtime.Gosched() {
		x.mu.Lock()
		taken = x.newest == nil // the update to this view has begun, and hangs
		x.mu.Unlock()
	}
	source.set(fakeTool("b", "second_ship", "old words"), fakeTool("c", "third_ship", ""))
	skipped := d.View("")
	source.set(fakeTool("b", "second_ship", "new words"), fakeTool("d", "fourth_ship", ""))
	newest := d.View("")

	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("gone")
	cancel(cause)
	if _, err := newest.Search(ctx, "ship", 5); !errors.Is(err, cause) {
		t.Errorf("Search while the index is made, context ended: %v, want %v", err, cause)
	}
	if got := newest.NearServers("ship"); got != nil {
		t.Errorf("NearServers while the index is made = %q, want none", got)
	}
	unlock()

	searchIDs(t, newest, "ship", 5)
	if skipped.index.ready() != nil {
		t.Error("a view that nobody searched was indexed, though there was a newer one")
	}
	for range 2 {
		for _, c := range []struct {
			name string
			view *View
			want map[string]string
		}{
			{"newest", newest, map[string]string{"mcp:b:second_ship": "new words", "mcp:d:fourth_ship": ""}},
			{"skipped", skipped, map[string]string{"mcp:b:second_ship": "old words", "mcp:c:third_ship": ""}},
			{"first", first, map[string]string{"mcp:a:first_ship": ""}},
		} {
			hits, err := c.view.Search(t.Context(), "ship", 5)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, h := range hits {
				got[h.ID] = h.Description
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s view: hits (-want +got):\n%s", c.name, diff)
			}
		}
	}
}

// Who cannot wait for an index gets the newest view that has one, of the same
// rules; of the others none is kept for that.
func TestDirectory_Indexed(t *testing.T) {
	d, source := fakeDirectory(t, fakeRules{}, fakeTool("a", "first_ship", ""))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	first := d.Indexed(t.Context(), "")
	if first.index.ready() == nil {
		t.Fatal("Indexed did not wait for the index")
	}
	x := d.profiles[""].indexer
	x.index.mu.Lock() // holds the updates up
	unlock := sync.OnceFunc(x.index.mu.Unlock)
	defer unlock()
	for i := range 5 {
		source.set(fakeTool("a", "first_ship", ""), fakeTool("b", fmt.Sprintf("ship_%d", i), ""))
		if got := d.Indexed(over, ""); got != first {
			t.Errorf("Indexed while the index is made = a view with %q, want the first", idsOf(got.Tools()))
		}
	}
	d.View("")
	for i := range 5 { // nobody waits for these
		source.set(fakeTool("c", fmt.Sprintf("ship_%d", i), ""))
		d.View("")
	}
	if n := len(d.profiles[""].older); n > 7 {
		t.Errorf("%d older views are kept, want those that are indexed or waited for", n)
	}
	d.Swap(fakeRules{hide: []string{"first"}})
	if got := d.Indexed(over, ""); got == first {
		t.Error("Indexed = a view of rules that do not hold any more")
	}
	unlock()
	last := d.Indexed(t.Context(), "")
	x.index.mu.Lock()
	d.Swap(fakeRules{hide: []string{"ship"}})
	if got := d.Indexed(over, ""); got == last {
		t.Error("Indexed = the last view of rules that do not hold any more")
	}
	x.index.mu.Unlock()
	if got := d.Indexed(t.Context(), ""); got != d.View("") || len(d.profiles[""].older) > 0 {
		t.Errorf("Indexed = %q with %d older views, want the newest alone", idsOf(got.Tools()), len(d.profiles[""].older))
	}
}

func TestDirectory_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		source := &fakeSource{}
		source.set(fakeTools(60)...)
		d := New(Options{Source: source.now.Load, Rules: fakeRules{}})
		v := d.View("")
		searchIDs(t, v, "invoice", 5)
		source.set(fakeTools(70)...)
		late := d.View("")
		for range 2 {
			if err := d.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		}
		if _, err := late.Search(t.Context(), "invoice", 5); err != nil && !errors.Is(err, errClosed) {
			t.Errorf("Search after Close = %v", err)
		}
		source.set(fakeTools(80)...)
		for _, profile := range []string{"", "new"} {
			v := d.View(profile)
			if _, err := v.Search(t.Context(), "invoice", 5); !errors.Is(err, errClosed) {
				t.Errorf("Search in a view from after Close = %v, want %v", err, errClosed)
			}
			if _, err := v.Resolve("mcp:server001:update_crew_list_74"); err != nil {
				t.Errorf("Resolve after Close = %v", err)
			}
		}
	})
}

func TestDirectory_Concurrently(t *testing.T) {
	tools := fakeTools(200)
	d, source := fakeDirectory(t, fakeRules{}, tools...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			profile := fmt.Sprint("p", i%2)
			for range 25 {
				v := d.View(profile)
				hits, err := v.Search(ctx, "create invoice", 8)
				if err != nil {
					t.Error(err)
					return
				}
				for _, h := range hits {
					if got, err := v.Resolve(h.Name); err != nil || got != h.Tool {
						t.Errorf("Resolve(%q) = %v, %v", h.Name, got, err)
					}
				}
				v.Overview(500, false)
				v.NearServers("invoice")
			}
		})
	}
	wg.Go(func() {
		for i := range 25 {
			source.set(tools[:100+4*i]...)
			d.View("p0")
		}
	})
	wg.Go(func() {
		for i := range 25 {
			d.Swap(fakeRules{hide: []string{fmt.Sprintf("_%d", i)}})
		}
	})
	wg.Wait()
}

// Nobody says when a view is done with: its share of the index is released
// when it is unreachable.
func TestDirectory_ReleasesForgottenViews(t *testing.T) {
	d, source := fakeDirectory(t, fakeRules{}, fakeTools(10)...)
	v := d.View("")
	searchIDs(t, v, "invoice", 5)
	postings := v.index.ranker.postings
	gone := make(chan struct{})
	runtime.AddCleanup(v.index, func(c chan struct{}) { close(c) }, gone)
	v = nil
	source.set(fakeTools(20)...)
	d.View("")
	for range 100 {
		runtime.GC()
		select {
		case <-gone:
			runtime.GC() // whatever else was queued with it has run
			released := true
			postings.once.Do(func() { released = false })
			if !released {
				t.Error("a forgotten view still holds its index")
			}
			return
		default:
		}
	}
	t.Error("a forgotten view is still reachable")
}

func TestNew_WantsItsOptions(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "required") {
			t.Errorf("New(Options{}) panics with %v, want what is required", r)
		}
	}()
	New(Options{})
}

func TestDirectory_NoSnapshotIsEmpty(t *testing.T) {
	d := New(Options{Source: func() *upstreams.Snapshot { return nil }, Rules: fakeRules{}})
	defer d.Close()
	v := d.View("")
	if got := searchIDs(t, v, "anything", 5); len(got) != 0 || len(v.Tools()) != 0 {
		t.Errorf("Search = %q, Tools = %q, want nothing", got, idsOf(v.Tools()))
	}
	if got := v.Overview(100, false); got != "" {
		t.Errorf("Overview = %q, want nothing", got)
	}
}

func BenchmarkView(b *testing.B) {
	for _, n := range []int{100, 1000, 3000, 10000} {
		tools := fakeTools(n)
		b.Run(fmt.Sprintf("tools=%d", n), func(b *testing.B) {
			s := &fakeSource{}
			s.set(tools...)
			snapshot := s.now.Load()
			for b.Loop() {
				newView("", fakeRules{}, snapshot)
			}
		})
	}
}

// BenchmarkView_FirstName is what the first use of a name adds to it.
func BenchmarkView_FirstName(b *testing.B) {
	for _, n := range []int{100, 1000, 3000, 10000} {
		tools := fakeTools(n)
		b.Run(fmt.Sprintf("tools=%d", n), func(b *testing.B) {
			for b.Loop() {
				newCatalog(tools)
			}
		})
	}
}

// BenchmarkView_FirstSearch is from an empty directory to the first answer.
func BenchmarkView_FirstSearch(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		s := &fakeSource{}
		s.set(fakeTools(n)...)
		b.Run(fmt.Sprintf("tools=%d", n), func(b *testing.B) {
			for b.Loop() {
				d := New(Options{Source: s.now.Load, Rules: fakeRules{}})
				if _, err := d.View("").Search(b.Context(), "create invoice", 8); err != nil {
					b.Fatal(err)
				}
				if err := d.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A server's own words about a tool that the caller may not see are not shown
// to that caller either.
func TestDirectory_ViewSaysNothingOfHiddenTools(t *testing.T) {
	d, source := fakeDirectory(t, fakeRules{hide: []string{"wipe", "drop_table"}},
		fakeTool("depot", "wipe", ""), fakeTool("depot", "drop_table", ""), fakeTool("depot", "count", ""))
	s := *source.now.Load()
	s.Servers = []upstreams.ServerInfo{{Name: "depot", Safe: "depot", Known: true,
		Instructions: "Call wipe with care.\nNever (wipe) at noon.\nDROP-TABLE, `dropTable` and drop table empty it.\nKeeps boxes, wiped or not.\n"}}
	source.now.Store(&s)
	if got, want := d.View("").Overview(1000, false), "depot (1 tool): Keeps boxes, wiped or not"; got != want {
		t.Errorf("Overview = %q, want %q", got, want)
	}
}
