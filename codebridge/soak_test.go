package codebridge

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// TestSoak runs many programs of all kinds in one engine, one in twenty of
// which never ends, and compares the parent's memory at the end with that
// after the first tenth. The length is set with -soak and -long.
func TestSoak(t *testing.T) {
	runs := *soakRuns
	switch {
	case *long:
		runs = 20_000
	case testing.Short():
		runs = 100
	}
	e := newEngine(t, Config{Workers: 2, TimeoutMs: 100})
	programs := []struct{ source, want string }{
		{`return 1 + 1`, "2"},
		{`const hits = await tools.search("x"); const r = await tools.call(hits[1].id, {a: 1, b: 2}); return r.result.details.sum`, "3"},
		{`return (await Promise.all([1, 2, 3].map(async i => (await tools.call("echo", {i})).result.details.i))).join()`, `"1,2,3"`},
		{`throw new Error("x")`, "exception: Error: x"},
		{`const x: number = 4; return x`, "4"},
		{`for (let i = 0; i < 50; i++) console.log("line", i); return "x".repeat(10000).length`, "10000"},
		{`await new Promise(() => {})`, "deadlock"},
		{`return await tools.call("fail")`, "exception: ToolError failed: disk full"},
		{`return (`, "syntax"},
		{`return "x".repeat(100000)`, "output_limit"},
	}
	var atTenth int64
	var table strings.Builder
	timeouts := 0
	for i := range runs {
		p := programs[i%len(programs)]
		if i%20 == 19 {
			p.source, p.want = `await tools.call("echo", {}); for (;;) {}`, "timeout"
		}
		r := mustRun(t, e, p.source, nil)
		if r.Error != nil && r.Error.Kind == Timeout {
			timeouts++
			if p.want != "timeout" {
				continue // a busy machine; the others show that it works
			}
		}
		if got := what(r); !strings.HasPrefix(got, p.want) {
			t.Fatalf("program %d, %q = %s, want %s", i, p.source, got, p.want)
		}
		if (i+1)%(runs/10) == 0 {
			h := heap()
			if atTenth == 0 {
				atTenth = h
			}
			fmt.Fprintf(&table, "%6d programs: parent %.2f MiB in use, %d goroutines, %d workers\n", i+1, float64(h)/(1<<20), runtime.NumGoroutine(), len(children(t))-countShared())
		}
	}
	t.Logf("%d programs, %d time-outs\n%s", runs, timeouts, table.String())
	if path := os.Getenv("SOAK_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(table.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
	if timeouts < runs/20 {
		t.Errorf("%d time-outs, want at least %d", timeouts, runs/20)
	}
	if end := heap(); end > atTenth+atTenth/10+256<<10 {
		t.Errorf("the parent uses %d bytes at the end, %d after a tenth; want 10%% more at most", end, atTenth)
	}
}
