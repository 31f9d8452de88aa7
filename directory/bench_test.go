package directory

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// manyTools makes n tools of the ranking tests' catalog: the same verbs on
// ever other things.
func manyTools(t testing.TB, n int) ([]*upstreams.Tool, []upstreams.ServerInfo) {
	t.Helper()
	own, about := ownCatalog(t)
	things := strings.Fields(`anchor barge buoy canal cargo chart compass crane crew current deck dock engine fender ferry fleet
		gangway harbour hatch hull jetty keel ladder lagoon lighthouse locker mast mooring oar pier pilot port propeller pump
		quay radar rig rope rudder sail sailor sextant shipyard signal tanker tide trawler tug wharf winch yacht`)
	tools := make([]*upstreams.Tool, 0, n)
	var servers []upstreams.ServerInfo
	for round := 0; len(tools) < n; round++ {
		thing := things[round%len(things)]
		suffix := fmt.Sprintf("%s%d", thing, round/len(things))
		for _, info := range about {
			info.Name += "-" + suffix
			info.Safe = info.Name
			servers = append(servers, info)
		}
		for i, tool := range own {
			if len(tools) == n {
				break
			}
			noun := things[(i+7*round)%len(things)]
			c := *fakeTool(tool.Server+"-"+suffix, tool.Name+"_"+noun, tool.Description+" For the "+noun+" of a "+thing+".")
			c.InputSchema = tool.InputSchema
			tools = append(tools, &c)
		}
	}
	return tools, servers
}

// benchQueries are sentences and keywords, as people and models write them.
func benchQueries(t testing.TB) []string {
	var queries []string
	for _, line := range dataLines(t, "testdata/rank/queries.txt") {
		query, _, _ := strings.Cut(line, "=")
		queries = append(queries, strings.TrimSpace(query))
	}
	return queries
}

func sizes(b *testing.B, run func(b *testing.B, n int)) {
	for _, n := range []int{100, 1000, 10000, 20000} {
		b.Run(fmt.Sprintf("tools=%d", n), func(b *testing.B) { run(b, n) })
	}
}

// forgetWords makes the next text cost what the first one of a process does.
func forgetWords() {
	lexicon.Lock()
	defer lexicon.Unlock()
	clear(lexicon.words)
}

// BenchmarkAnalyze is the yardstick of BenchmarkIndex: all that is done with
// the same texts before they come to an index.
func BenchmarkAnalyze(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		tools, servers := manyTools(b, n)
		about := make(map[string]upstreams.ServerInfo, len(servers))
		for _, s := range servers {
			about[s.Name] = s
		}
		for b.Loop() {
			forgetWords()
			var a analyzer
			for _, t := range tools {
				newDoc(&a, t, about[t.Server])
			}
		}
	})
}

// BenchmarkIndex builds an index from nothing.
func BenchmarkIndex(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		tools, servers := manyTools(b, n)
		before := heapInUse()
		ix := newIndex(nil)
		r := ix.update(tools, servers)
		heap := heapInUse() - before
		r.release()
		ix.close()
		for b.Loop() {
			forgetWords()
			ix := newIndex(nil)
			r := ix.update(tools, servers)
			b.StopTimer() // searches have begun
			r.release()
			ix.close()
			b.StartTimer()
		}
		b.ReportMetric(float64(heap)/(1<<20), "MiB")
	})
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkSearch(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		tools, servers := manyTools(b, n)
		r := rankerOf(b, tools, servers)
		queries := benchQueries(b)
		var times []time.Duration
		for i := 0; b.Loop(); i++ {
			start := time.Now()
			if _, err := r.search(context.Background(), queries[i%len(queries)], 8); err != nil {
				b.Fatal(err)
			}
			times = append(times, time.Since(start))
		}
		reportTimes(b, times)
	})
}

func reportTimes(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkReplaceServer replaces a server of 50 tools while four goroutines search.
func BenchmarkReplaceServer(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		tools, servers := manyTools(b, n)
		ix := newIndex(nil)
		defer ix.close()
		var mu sync.RWMutex
		current := ix.update(tools, servers)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var wg sync.WaitGroup
		queries := benchQueries(b)
		for g := range 4 {
			wg.Go(func() {
				for i := g; ctx.Err() == nil; i++ {
					mu.RLock()
					r := current
					mu.RUnlock()
					if _, err := r.search(context.Background(), queries[i%len(queries)], 8); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		for round := 0; b.Loop(); round++ {
			next := slices.Clone(tools)
			for i := range next[:50] {
				c := *next[i]
				c.Description = fmt.Sprintf("%s Round %d.", c.Description, round)
				next[i] = &c
			}
			r := ix.update(next, servers)
			mu.Lock()
			current = r
			mu.Unlock()
		}
		cancel()
		wg.Wait()
	})
}

// TestRank_HostileQueriesCost: no query costs more than 20 times the median
// one. Times are the best of several, so that a busy machine does not matter.
func TestRank_HostileQueriesCost(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds an index of 10,000 tools")
	}
	tools, servers := manyTools(t, 10000)
	r := rankerOf(t, tools, servers)
	cost := func(query string) time.Duration {
		best := time.Hour
		for range 5 {
			start := time.Now()
			if _, err := r.search(context.Background(), query, 8); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	var usual []time.Duration
	for _, query := range benchQueries(t) {
		usual = append(usual, cost(query))
	}
	slices.Sort(usual)
	median := usual[len(usual)/2]
	for _, query := range hostileQueries() {
		if got := cost(query); got > 20*median {
			t.Errorf("search(%.40q) takes %v, want at most 20 times the median of %v", query, got, median)
		}
	}
	t.Logf("median %v, dearest usual %v", median, usual[len(usual)-1])
}
