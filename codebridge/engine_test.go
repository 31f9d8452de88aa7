package codebridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// eventually waits until f is true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// gate is a tool that tells who called it and waits.
type gate struct {
	entered chan string // the "who" of its arguments
	open    chan struct{}
}

func newGate() *gate { return &gate{entered: make(chan string, 100), open: make(chan struct{})} }

func (g *gate) tool(ctx context.Context, _ *Call, args json.RawMessage) (string, error) {
	var a struct{ Who string }
	if err := json.Unmarshal(args, &a); err != nil {
		return "", err
	}
	g.entered <- a.Who
	select {
	case <-g.open:
		return text("passed"), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// enter waits for a program to come in, and fails if one ends before.
func (g *gate) enter(t *testing.T, running ...<-chan *Result) string {
	t.Helper()
	for {
		select {
		case who := <-g.entered:
			return who
		case <-time.After(10 * time.Millisecond):
		}
		for _, r := range running {
			if len(r) > 0 {
				t.Fatalf("a program ended before it came to the gate: %s", what(<-r))
			}
		}
	}
}

func (g *gate) host() *fakeHost { return &fakeHost{tools: map[string]toolFunc{"gate": g.tool}} }

// inBackground runs a program and returns where its result comes.
func inBackground(t *testing.T, ctx context.Context, e *Engine, p Program, h Host) <-chan *Result {
	done := make(chan *Result, 1)
	go func() {
		r, err := e.Run(ctx, p, h)
		if err != nil {
			t.Errorf("Run(%.100q) = %v", p.Source, err)
			r = &Result{Error: &Error{}}
		}
		done <- r
	}()
	return done
}

func pass(who string) Program {
	return Program{Client: who[:1], Source: fmt.Sprintf(`await tools.call("gate", {who: %q}); return 1`, who)}
}

func TestEngine_RunsSideBySide(t *testing.T) {
	e := newEngine(t, Config{Workers: 2, TimeoutMs: generous})
	g := newGate()
	a, b := inBackground(t, t.Context(), e, pass("a"), g.host()), inBackground(t, t.Context(), e, pass("b"), g.host())
	g.enter(t, a, b)
	g.enter(t, a, b) // both are inside at the same time
	close(g.open)
	if ra, rb := <-a, <-b; what(ra) != "1" || what(rb) != "1" {
		t.Errorf("two programs side by side = %s and %s, want 1 and 1", what(ra), what(rb))
	}
}

func TestEngine_QueueEndsInBusy(t *testing.T) {
	e := newEngine(t, Config{Workers: 1, TimeoutMs: generous, QueueMs: 100})
	g := newGate()
	first := inBackground(t, t.Context(), e, pass("a"), g.host())
	g.enter(t, first)
	start := time.Now()
	r := mustRun(t, e, `return 2`, nil)
	if r.Error == nil || r.Error.Kind != Busy {
		t.Errorf("a program that waits too long = %s, want busy", what(r))
	}
	if took := time.Since(start); took < 100*time.Millisecond {
		t.Errorf("busy after %v, want the queue's 100ms", took)
	}
	close(g.open)
	if r := <-first; what(r) != "1" {
		t.Errorf("the program that ran = %s, want 1", what(r))
	}
	if r := mustRun(t, e, `return 3`, nil); what(r) != "3" {
		t.Errorf("a program afterwards = %s, want 3", what(r))
	}
}

func TestEngine_ClientsTakeTurns(t *testing.T) {
	e := newEngine(t, Config{Workers: 1, TimeoutMs: generous})
	g := newGate()
	var results []<-chan *Result
	add := func(who string) {
		results = append(results, inBackground(t, t.Context(), e, pass(who), g.host()))
		n := len(results) - 1
		eventually(t, who+" waits", func() bool { e.mu.Lock(); defer e.mu.Unlock(); return e.queue.len() == n })
	}
	add("a0")
	if got := g.enter(t, results...); got != "a0" {
		t.Fatalf("first in the gate is %s, want a0", got)
	}
	for _, who := range []string{"a1", "a2", "a3", "b1"} {
		add(who)
	}
	close(g.open)
	var order []string
	for range 4 {
		order = append(order, g.enter(t))
	}
	for _, r := range results {
		<-r
	}
	if want := []string{"a1", "b1", "a2", "a3"}; !slices.Equal(order, want) {
		t.Errorf("programs ran in the order %v, want %v", order, want)
	}
}

func TestQueue_TurnsAndRemoval(t *testing.T) {
	var q queue
	tickets := make(map[string]*ticket)
	for _, name := range []string{"a1", "a2", "b1", "a3", "c1", "b2"} {
		tickets[name] = &ticket{client: name[:1]}
		q.push(tickets[name])
	}
	if !q.remove(tickets["a2"]) || q.remove(tickets["a2"]) {
		t.Error("remove(a2) twice, want true and false")
	}
	if !q.remove(tickets["c1"]) {
		t.Error("remove(c1) = false, want true")
	}
	var got []string
	for x := q.pop(); x != nil; x = q.pop() {
		for name, y := range tickets {
			if x == y {
				got = append(got, name)
			}
		}
	}
	if want := []string{"a1", "b1", "a3", "b2"}; !slices.Equal(got, want) {
		t.Errorf("pop gives %v, want %v", got, want)
	}
	for range maxWaiting {
		if !q.push(&ticket{}) {
			t.Fatal("a client's queue is full too early")
		}
	}
	if q.push(&ticket{}) {
		t.Errorf("%d programs of one client wait, want at most %d", q.len(), maxWaiting)
	}
}

func TestEngine_CancelEndsAtOnce(t *testing.T) {
	e := newEngine(t, Config{Workers: 1, TimeoutMs: generous})
	mustRun(t, e, `return 1`, nil)
	for name, source := range map[string]string{
		"waiting for a call": `await tools.call("gate", {who: "x"})`,
		"computing":          `tools.call("gate", {who: "x"}); await null; for (;;) {}`,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		g := newGate()
		done := inBackground(t, ctx, e, Program{Source: source}, g.host())
		g.enter(t, done)
		start := time.Now()
		cancel()
		r := <-done
		if r.Error == nil || r.Error.Kind != Cancelled || len(r.Calls) != 1 || r.Calls[0].Status != StatusCancelled {
			t.Errorf("cancelled while %s = %s with calls %+v, want cancelled and its call too", name, what(r), r.Calls)
		}
		if took := time.Since(start); took > late {
			t.Errorf("cancelled while %s: ended %v later", name, took)
		}
		if !strings.Contains(r.Error.Message, "may have acted: gate") {
			t.Errorf("cancelled while %s says %q, want it to name the call", name, r.Error.Message)
		}
	}
	g := newGate()
	first := inBackground(t, t.Context(), e, pass("a"), g.host())
	g.enter(t, first)
	ctx, cancel := context.WithCancel(t.Context())
	second := inBackground(t, ctx, e, pass("b"), g.host())
	eventually(t, "b waits", func() bool { e.mu.Lock(); defer e.mu.Unlock(); return e.queue.len() == 1 })
	cancel()
	if r := <-second; r.Error == nil || r.Error.Kind != Cancelled {
		t.Errorf("cancelled in the queue = %s, want cancelled", what(r))
	}
	close(g.open)
	if r := <-first; what(r) != "1" {
		t.Errorf("the program beside = %s, want 1", what(r))
	}
}

// A call that fails because the run was cancelled was cancelled, whichever of
// the two is heard of first.
func TestRun_CancelledCallIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 64 { // the order is a matter of chance
		r := newRun(&worker{stop: make(chan struct{}), out: make(chan outgoing, 1)}, nil, Config{}.withDefaults())
		r.clock.start(time.Minute)
		r.calls = []*callState{{id: 1, fn: "call", started: time.Now()}}
		r.events <- event{id: 1, frame: []byte{}, status: "failed"}
		failure, _ := r.loop(ctx, t.Context())
		if res := r.result(failure); failure.Kind != Cancelled || res.Calls[0].Status != StatusCancelled {
			t.Fatalf("cancelled run = %s with calls %+v, want cancelled and its call too", what(res), res.Calls)
		}
	}
}

func TestEngine_WorkersComeAndGo(t *testing.T) {
	e := newEngine(t, Config{Workers: 1, TimeoutMs: generous})
	e.maxPrograms = 3
	e.idleFor = 20 * time.Millisecond
	count := func() int { e.mu.Lock(); defer e.mu.Unlock(); return e.total }
	if n := count(); n != 0 {
		t.Errorf("a new engine has %d workers, want none", n)
	}
	for i := range 7 {
		if r := mustRun(t, e, fmt.Sprintf(`return %d`, i), nil); what(r) != fmt.Sprint(i) {
			t.Errorf("program %d = %s", i, what(r))
		}
	}
	eventually(t, "idle workers end", func() bool { return count() == 0 && len(children(t)) == countShared() })
}

// countShared is how many workers belong to the engine that tests share.
func countShared() int {
	if shared.engine == nil {
		return 0
	}
	shared.engine.mu.Lock()
	defer shared.engine.mu.Unlock()
	return shared.engine.total
}

func TestEngine_Close(t *testing.T) {
	e := New(Options{Config: Config{Workers: 2, TimeoutMs: generous, QueueMs: generous}, CacheDir: cacheDir(t)})
	g := newGate()
	running := inBackground(t, t.Context(), e, Program{Source: `tools.call("gate", {who: "x"}); await null; for (;;) {}`}, g.host())
	g.enter(t, running)
	if err := e.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if r := <-running; r.Error == nil || r.Error.Kind != Cancelled {
		t.Errorf("a program during Close = %s, want cancelled", what(r))
	}
	if _, err := e.Run(t.Context(), Program{Source: "1"}, &fakeHost{}); err == nil {
		t.Error("Run after Close succeeds, want an error")
	}
	if err := e.Close(); err != nil {
		t.Errorf("a second Close() = %v", err)
	}
	if e.total != 0 {
		t.Errorf("after Close %d workers are left", e.total)
	}
}

func TestEngine_ProbeAndCheck(t *testing.T) {
	dir := t.TempDir()
	e := New(Options{CacheDir: filepath.Join(dir, "cache")})
	defer e.Close()
	if err := e.Probe(t.Context()); err != nil {
		t.Fatalf("Probe() = %v", err)
	}
	e.mark(fmt.Errorf("no memory to be had"))
	if err := e.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "no memory to be had") {
		t.Errorf("Probe() after a failure = %v, want it to remember", err)
	}
	if err := e.Check(t.Context()); err != nil {
		t.Fatalf("Check() = %v", err)
	}
	if err := e.Probe(t.Context()); err != nil {
		t.Errorf("Probe() after Check = %v, want none", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "cache")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the cache folder is %v (%v), want one with mode 0700", info, err)
	}
}

// TestEngine_DistrustsOpenCache: native code is not loaded from a folder that
// others can write to.
func TestEngine_DistrustsOpenCache(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes on Windows")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	e := New(Options{CacheDir: dir})
	defer e.Close()
	if e.cacheDir != "" {
		t.Errorf("a cache folder with mode 0777 is used, want none")
	}
}

// maybeParent makes this process one whose engine computes for ever, to be
// killed.
func maybeParent() {
	dir := os.Getenv("CODEBRIDGE_TEST_PARENT")
	if dir == "" {
		return
	}
	e := New(Options{Config: Config{TimeoutMs: 600_000}, CacheDir: dir})
	h := &fakeHost{tools: map[string]toolFunc{"started": func(context.Context, *Call, json.RawMessage) (string, error) {
		fmt.Println("started")
		return text(""), nil
	}}}
	_, _ = e.Run(context.Background(), Program{Source: `await tools.call("started"); for (;;) {}`}, h)
	os.Exit(1)
}

func TestRun_LanesAndLimitOfParallelCalls(t *testing.T) {
	e := sharedEngine(t)
	var mu sync.Mutex
	var order []string
	inside, most := 0, 0
	step := func(ctx context.Context, _ *Call, args json.RawMessage) (string, error) {
		mu.Lock()
		inside++
		most = max(most, inside)
		order = append(order, string(args))
		mu.Unlock()
		time.Sleep(2 * time.Millisecond)
		mu.Lock()
		inside--
		mu.Unlock()
		return text("ok"), nil
	}
	h := &fakeHost{serial: true, tools: map[string]toolFunc{"step": step}}
	const source = `await Promise.all(Array.from({length: 40}, (_, i) => tools.call("step", {i}))); return 1`
	if r := mustRun(t, e, source, h); what(r) != "1" || len(r.Calls) != 40 {
		t.Fatalf("40 calls in one lane = %s, %d calls", what(r), len(r.Calls))
	}
	if most != 1 || !slices.IsSortedFunc(order, func(a, b string) int { return len(a) - len(b) }) || order[0] != `{"i":0}` || order[39] != `{"i":39}` {
		t.Errorf("calls in one lane: %d at a time, in the order %v; want one by one in the order they were made", most, order)
	}
	most = 0
	h.serial = false
	if r := mustRun(t, e, source, h); what(r) != "1" {
		t.Fatalf("40 calls = %s", what(r))
	}
	if most < 2 || most > MaxParallel {
		t.Errorf("%d calls were made side by side, want several and at most %d", most, MaxParallel)
	}
}

// TestRun_ALaneHoldsNoOther: calls that wait for their lane take no place of
// calls that could run.
func TestRun_ALaneHoldsNoOther(t *testing.T) {
	g := newGate()
	h := &laneHost{fakeHost: *g.host()}
	h.tools["open"] = func(context.Context, *Call, json.RawMessage) (string, error) { close(g.open); return text(""), nil }
	done := inBackground(t, t.Context(), sharedEngine(t), Program{Source: `
		const slow = Array.from({length: 30}, (_, i) => tools.call("gate", {who: "slow"}));
		await tools.call("echo", {});
		console.log("echoed");
		await Promise.race(slow.concat(tools.call("open", {})));
		await Promise.all(slow);
		return 1`}, h)
	if r := <-done; what(r) != "1" || len(r.Logs) != 1 {
		t.Errorf("calls beside a blocked lane = %s, logs %q; want 1", what(r), r.Logs)
	}
}

type laneHost struct{ fakeHost }

func (h *laneHost) Lane(fn string, args json.RawMessage) string {
	if strings.Contains(string(args), `"gate"`) {
		return "gate"
	}
	return ""
}

func TestRun_ClockRests(t *testing.T) {
	limit := 300
	if underRace {
		limit = 3000
	}
	e := newEngine(t, Config{Workers: 1, TimeoutMs: limit})
	slow := func(ctx context.Context, c *Call, args json.RawMessage) (string, error) {
		resume := c.Rest()
		defer resume()
		select {
		case <-time.After(3 * time.Duration(limit) * time.Millisecond):
			return text("done"), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	h := &fakeHost{tools: map[string]toolFunc{"slow": slow}}
	for source, want := range map[string]string{
		`await tools.call("slow", {}); return 1`:                                        "1",
		`await Promise.all([tools.call("slow", {}), tools.call("slow", {})]); return 1`: "1",
		`await tools.call("slow", {}); for (;;) {}`:                                     "timeout",
		`const p = tools.call("slow", {}); await null; for (;;) {}`:                     "timeout", // computes meanwhile
		`await Promise.all([tools.call("slow", {}), tools.call("hang", {})]); return 1`: "timeout", // waits for another too
	} {
		r := mustRun(t, e, source, h)
		got := what(r)
		if r.Error != nil {
			got = string(r.Error.Kind)
		}
		if got != want {
			t.Errorf("with calls that rest, %q = %s, want %s", source, what(r), want)
		}
	}
}

func TestRun_TimeoutTellsWhatHappened(t *testing.T) {
	e := newEngine(t, Config{Workers: 1, TimeoutMs: 300})
	mustRun(t, e, `return 1`, nil) // its start is not part of the time
	h := &laneHost{}
	h.tools = map[string]toolFunc{"gate": commonTools["hang"]}
	r := mustRun(t, e, `
		console.log("before");
		await tools.call("mcp:test:echo", {});
		const all = [tools.call("mcp:test:hang", {}), tools.call("gate", {}), tools.call("gate", {})];
		await Promise.all(all)`, h)
	if r.Error == nil || r.Error.Kind != Timeout {
		t.Fatalf("got %s, want a timeout", what(r))
	}
	for _, want := range []string{"300ms", "cancelled, may have acted: mcp:test:hang, gate", "not started: gate"} {
		if !strings.Contains(r.Error.Message, want) {
			t.Errorf("the timeout says %q, want it to contain %q", r.Error.Message, want)
		}
	}
	var got []string
	for _, c := range r.Calls {
		got = append(got, c.ID+" "+c.Status)
	}
	if want := []string{"mcp:test:echo ok", "mcp:test:hang cancelled", "gate cancelled", "gate not_started"}; !slices.Equal(got, want) {
		t.Errorf("calls = %q, want %q", got, want)
	}
	if !slices.Equal(r.Logs, []string{"before"}) {
		t.Errorf("logs = %q, want what was written before", r.Logs)
	}
	r = mustRun(t, e, `let n = 0; const spin = () => { if (n++ > 50) for (;;) {} ; Promise.resolve().then(spin) }; spin(); return 5`, nil)
	if r.Error == nil || r.Error.Kind != Timeout || string(r.Value) != "5" {
		t.Errorf("a loop after return = value %s, %s; want the value and a timeout", r.Value, what(r))
	}
}

func TestRun_HostPanics(t *testing.T) {
	h := &fakeHost{tools: map[string]toolFunc{"t": func(context.Context, *Call, json.RawMessage) (string, error) { panic("no") }}}
	if r := mustRun(t, sharedEngine(t), `try { await tools.call("t", {}) } catch (e) { return e.code + ": " + e.message }`, h); what(r) != `"failed: internal error: no"` {
		t.Errorf("a host that panics = %s, want a ToolError", what(r))
	}
}

func TestRun_LargeResults(t *testing.T) {
	h := &fakeHost{tools: map[string]toolFunc{
		"fits": func(context.Context, *Call, json.RawMessage) (string, error) {
			return text(strings.Repeat("x", MaxResultBytes-100)), nil
		},
		"over": func(context.Context, *Call, json.RawMessage) (string, error) {
			return text(strings.Repeat("x", MaxResultBytes)), nil
		},
		"fail": func(context.Context, *Call, json.RawMessage) (string, error) {
			return "", &ToolError{Code: "failed", Message: strings.Repeat("m", 2*MaxResultBytes), Result: json.RawMessage(text(strings.Repeat("x", MaxResultBytes)))}
		},
	}}
	for source, want := range map[string]string{
		`return (await tools.call("fits")).result.details.length`:                                    fmt.Sprint(MaxResultBytes - 100),
		`return (await tools.call("over")).result.details.length`:                                    "exception: ToolError failed: the result is 1 MiB of JSON, a program can take 1 MiB; the tool has run; ask it for less: a page, fewer fields, a narrower query",
		`try { await tools.call("fail") } catch (e) { return [e.code, e.message.length, e.result] }`: `["failed",262146,null]`,
	} {
		if got := what(mustRun(t, sharedEngine(t), source, h)); got != want {
			t.Errorf("Run(%q) = %.300s, want %s", source, got, want)
		}
	}
}

func TestConfig_Clamp(t *testing.T) {
	c, warnings := Config{Workers: 1000, MaxOutputBytes: 1, MemoryBytes: 1 << 40, TimeoutMs: 1}.Clamp()
	want := Config{Workers: 64, QueueMs: DefaultQueueMs, MaxOutputBytes: 1 << 10, MemoryBytes: 512 << 20, TimeoutMs: 1000}
	if c != want || len(warnings) != 4 {
		t.Errorf("Clamp() = %+v with %q, want %+v with 4 warnings", c, warnings, want)
	}
	if c, warnings := (Config{}).Clamp(); len(warnings) != 0 || c.TimeoutMs != DefaultTimeoutMs || c.Workers < 1 {
		t.Errorf("Clamp() of nothing = %+v with %q, want the defaults", c, warnings)
	}
}
