package codebridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// benchEngine has one warm worker.
func benchEngine(b *testing.B) *Engine {
	b.Helper()
	e := newEngine(b, Config{Workers: 1, TimeoutMs: generous})
	mustRun(b, e, `const x: number = 1; return x`, nil)
	return e
}

func BenchmarkRun(b *testing.B) {
	big := `{"content":[],"structuredContent":{"rows":[` + strings.TrimSuffix(strings.Repeat(`{"id":1,"name":"a name of some length","ok":true},`, 20_000), ",") + `]}}`
	h := &fakeHost{tools: map[string]toolFunc{
		"large": func(context.Context, *Call, json.RawMessage) (string, error) { return big, nil },
	}}
	for _, bench := range []struct{ name, source, want string }{
		{"trivial", `return 1`, "1"},
		{"search+describe+call", `const hits = await openclaw.tools.search("add"); const t = await openclaw.tools.describe(hits[1].id); const r = await openclaw.tools.call(hits[1].id, {a: 1, b: 2}); return r.result.details.sum`, "3"},
		{"calls=100/sequential", `let n = 0; for (let i = 0; i < 100; i++) n += (await tools.call("add", {a: i, b: 0})).result.details.sum; return n`, "4950"},
		{"calls=100/parallel", `const rs = await Promise.all(Array.from({length: 100}, (_, i) => tools.call("add", {a: i, b: 0}))); return rs.length`, "100"},
		{"result=1MB", `return (await tools.call("large", {})).result.details.rows.length`, "20000"},
		{"typescript", `const n: number = await Promise.resolve(1); return n`, "1"},
		{"async-callbacks", `return (await Promise.all([1, 2, 3].map(async i => i * 2))).length`, "3"},
		{"fib(27)", `function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } return fib(27)`, "196418"},
		{"10-calls-of-100ms", `return (await Promise.all(Array.from({length: 10}, () => tools.call("sleep", {ms: 100})))).length`, "10"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			e := benchEngine(b)
			var took []time.Duration
			for b.Loop() {
				r := mustRun(b, e, bench.source, h)
				if what(r) != bench.want {
					b.Fatalf("= %s, want %s", what(r), bench.want)
				}
				took = append(took, r.Took)
			}
			reportPercentiles(b, took)
		})
	}
}

func reportPercentiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkBareEngine is fib(27) in the engine alone, in this process: the
// yardstick for BenchmarkRun/fib(27).
func BenchmarkBareEngine(b *testing.B) {
	g, err := newGuest(DefaultMemoryBytes, cacheDir(b), func([]byte) {})
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := g.compile("fib", `(() => { function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } return fib(27) })()`); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	reportPercentiles(b, took)
}

// BenchmarkFirstRun is what the first program waits after the start of our
// process: a worker starts, loads the engine and runs it.
func BenchmarkFirstRun(b *testing.B) {
	warm := newEngine(b, Config{Workers: 1})
	mustRun(b, warm, `return 1`, nil) // fills the cache
	for b.Loop() {
		e := New(Options{CacheDir: cacheDir(b)})
		mustRun(b, e, `return 1`, nil)
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProbe is what a start of our process spends on finding out whether
// programs can run.
func BenchmarkProbe(b *testing.B) {
	e := newEngine(b, Config{})
	for b.Loop() {
		if err := e.Probe(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLimit is how long after its limit a program that computes for ever
// is answered.
func BenchmarkLimit(b *testing.B) {
	const limit = 200 * time.Millisecond
	e := newEngine(b, Config{Workers: 1, TimeoutMs: int(limit.Milliseconds())})
	var over []time.Duration
	for b.Loop() {
		r := mustRun(b, e, `for (;;) {}`, nil)
		if r.Error == nil || r.Error.Kind != Timeout {
			b.Fatalf("= %s, want a timeout", what(r))
		}
		over = append(over, r.Took-limit)
	}
	reportPercentiles(b, over)
}

// BenchmarkMemory reports the resident memory of this process and its workers.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{0, 1, 4} {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			e := newEngine(b, Config{Workers: max(n, 1), TimeoutMs: generous})
			g := newGate()
			var done []<-chan *Result
			for range n {
				c := make(chan *Result, 1)
				go func() { c <- mustRun(b, e, `await tools.call("gate", {who: "x"})`, g.host()) }()
				done = append(done, c)
			}
			for range n {
				<-g.entered
			}
			own, all := residentBytes(b, os.Getpid()), 0
			for _, pid := range children(b) {
				all += residentBytes(b, pid)
			}
			for b.Loop() {
			}
			b.ReportMetric(float64(own)/(1<<20), "parent-MiB")
			b.ReportMetric(float64(all)/(1<<20), "workers-MiB")
			close(g.open)
			for _, c := range done {
				<-c
			}
		})
	}
}
