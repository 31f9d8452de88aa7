package codebridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// attacks are programs that try to outlive their limits, to break the engine
// or to get out of it. Each must end within its limit with one of the kinds
// ("" is success), and harm nothing else. Where a value is given a program
// that succeeds must have returned it.
var attacks = []struct {
	name, source string
	kinds        []Kind
	value        string
}{
	// time
	{"endless loop", `while (true) {}`, []Kind{Timeout}, ""},
	{"endless loop in try", `for (;;) { try { for (;;) {} } catch {} finally { continue } }`, []Kind{Timeout}, ""},
	{"endless loop in finally", `try { throw 1 } finally { for (;;) {} }`, []Kind{Timeout}, ""},
	{"endless getter of the value", `return {get a() { for (;;) {} }}`, []Kind{Timeout}, ""},
	{"endless toJSON of the value", `return {toJSON() { for (;;) {} }}`, []Kind{Timeout}, ""},
	{"endless proxy as value", `return new Proxy({}, {ownKeys() { for (;;) {} }})`, []Kind{Timeout}, ""},
	{"endless iterator", `for (const x of {[Symbol.iterator]() { return {next() { return {} }} }}) {}`, []Kind{Timeout}, ""},
	{"endless getter of a thrown error", `const e = new Error("x"); Object.defineProperty(e, "message", {get() { for (;;) {} }}); throw e`, []Kind{Timeout}, ""},
	{"endless toString of a thrown value", `throw {toString() { for (;;) {} }, get x() { for (;;) {} }}`, []Kind{Timeout}, ""},
	{"endless valueOf in console", `console.log({get x() { for (;;) {} }})`, []Kind{Timeout}, ""},
	{"endless getter in arguments", `await tools.call("echo", {get x() { for (;;) {} }})`, []Kind{Timeout}, ""},
	{"endless thenable", `return {then() { for (;;) {} }}`, []Kind{Timeout}, ""},
	{"microtask loop before await", `const spin = () => Promise.resolve().then(spin); spin(); await null; return 1`, []Kind{Timeout, Memory}, ""},
	{"microtask loop after await", `await tools.call("echo", {}); (async () => { for (;;) await null })(); return 1`, []Kind{Timeout, Memory}, ""},
	{"microtask loop by queueMicrotask", `const f = () => queueMicrotask(f); f(); return 1`, []Kind{Timeout}, ""},
	{"loop in the background after return", `Promise.resolve().then(() => { for (;;) {} }); return 1`, []Kind{Timeout}, ""},
	{"await in a loop with catch", `for (;;) { try { await null; throw 1 } catch {} }`, []Kind{Timeout}, ""},
	{"catastrophic regular expression", `return /(a+)+$/.test("a".repeat(40) + "b")`, []Kind{Timeout}, ""},
	{"catastrophic regular expression with backtracking", `return /^(([a-z])+.)+[A-Z]([a-z])+$/.test("a".repeat(60))`, []Kind{Timeout}, ""},
	{"giant sort", `const a = Array.from({length: 400000}, (_, i) => -i * 7919 % 1000003); for (;;) a.sort((x, y) => x - y).reverse()`, []Kind{Timeout, Memory}, ""},
	{"native search of 2^53", `return Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)`, []Kind{Timeout}, ""},
	{"native fill of 2^53", `return Array.prototype.fill.call({length: 2 ** 53 - 1}, 1)`, []Kind{Timeout, Memory}, ""},
	{"native join of a sparse array", `return new Array(4e9).join("").length`, []Kind{Timeout, Memory, Exception}, ""},
	{"native includes over a proxy", `return Array.prototype.includes.call(new Proxy({length: 1e15}, {get: (t, k) => k === "length" ? 1e15 : 0}), 1)`, []Kind{Timeout}, ""},
	{"shared graph as JSON", `let o = {}; for (let i = 0; i < 60; i++) o = {a: o, b: o}; return JSON.stringify(o)`, []Kind{Timeout, Memory, Exception}, ""},
	{"shared graph as value", `let o = {a: 1}; for (let i = 0; i < 60; i++) o = {a: o, b: o}; return o`, []Kind{OutputLimit, Timeout}, ""},
	{"shared graph in console", `let o = {a: 1}; for (let i = 0; i < 60; i++) o = {a: o, b: o}; console.log(o); return 1`, []Kind{Timeout, ""}, "1"},
	{"big power", `return 2n ** 2n ** 40n`, []Kind{Exception, Memory, Timeout}, ""},
	{"big product", `let a = 3n ** 100000n; for (;;) a = a * a % (2n ** 200000n)`, []Kind{Timeout, Memory}, ""},
	{"a host call that ignores its end", `await tools.call("stubborn", {})`, []Kind{Timeout}, ""},
	{"a host call that hangs", `await tools.call("hang", {})`, []Kind{Timeout}, ""},
	{"calls for ever", `for (;;) await tools.call("echo", {})`, []Kind{CallLimit, Timeout}, ""},

	// promises
	{"promise that nothing settles", `await new Promise(() => {})`, []Kind{Deadlock}, ""},
	{"waiting for itself", `const p = (async () => { await null; return p })(); return await p`, []Kind{Exception, Deadlock}, ""},
	{"thenable that never calls back", `await {then() {}}; return 1`, []Kind{Deadlock}, ""},
	{"race of nothing", `return await Promise.race([])`, []Kind{Deadlock}, ""},
	{"deadlock after a call", `await tools.call("echo", {}); await new Promise(() => {})`, []Kind{Deadlock}, ""},

	// memory
	{"string of 512 MB", `return "x".repeat(2 ** 29).length`, []Kind{Memory}, ""},
	{"string doubling", `let s = "x"; for (;;) s += s`, []Kind{Memory, Exception}, ""},
	{"array growth", `const a = []; for (;;) a.push(new Array(1000).fill(1))`, []Kind{Memory, Timeout}, ""},
	{"object growth", `const o = {}; for (let i = 0; ; i++) o["k" + i] = i`, []Kind{Memory, Timeout}, ""},
	{"ArrayBuffer of 2 GB", `return new ArrayBuffer(2 ** 31).byteLength`, []Kind{Memory, Exception}, ""},
	{"typed arrays", `const a = []; for (;;) a.push(new Uint8Array(1 << 20))`, []Kind{Memory, Exception, Timeout}, ""},
	{"Map growth", `const m = new Map(); for (let i = 0; ; i++) m.set(i, {i})`, []Kind{Memory, Timeout}, ""},
	{"closures", `const a = []; for (;;) a.push(() => a)`, []Kind{Memory, Timeout}, ""},
	{"promises", `const a = []; for (;;) a.push(new Promise(() => {}))`, []Kind{Memory, Timeout}, ""},
	{"symbols", `const a = []; for (;;) a.push(Symbol("x".repeat(1000)))`, []Kind{Memory, Timeout}, ""},
	{"caught memory error", `for (;;) try { "x".repeat(2 ** 29) } catch {}`, []Kind{Memory, Timeout}, ""},
	{"padStart", `return "x".padStart(2 ** 30 - 2).length`, []Kind{Memory, Exception}, ""},
	{"replace that grows", `let s = "aa"; for (;;) s = s.replace(/a/g, "aaaa")`, []Kind{Memory, Exception, Timeout}, ""},

	// depth
	{"recursion", `function f() { return f() + 1 } return f()`, []Kind{Exception, Crash, Memory}, ""},
	{"recursion through map", `const f = () => [1].map(f); return f()`, []Kind{Exception, Crash, Memory}, ""},
	{"recursion through sort", `const f = () => [1, 2].sort(f); return f()`, []Kind{Exception, Crash, Memory}, ""},
	{"recursion through toString", `const o = {toString() { return "" + o }}; return "" + o`, []Kind{Exception, Crash, Memory}, ""},
	{"recursion through a proxy", `const p = new Proxy({}, {get(t, k) { return p[k] }}); return p.x`, []Kind{Exception, Crash, Memory}, ""},
	{"proxy of proxies", `let p = {}; for (let i = 0; i < 200000; i++) p = new Proxy(p, {}); return p.x`, []Kind{"", Exception, Crash, Memory, Timeout}, "null"},
	{"recursion through JSON", `const o = {toJSON() { return JSON.stringify(o) }}; return JSON.stringify(o)`, []Kind{Exception, Crash, Memory}, ""},
	{"recursion through a regular expression", `return "x".replace(/x/, function f(m) { return m.replace(/x/, f) })`, []Kind{Timeout, Exception, Crash, Memory}, ""},
	{"recursive async", `const f = async () => f(); return await f()`, []Kind{Exception, Crash, Memory, Timeout}, ""},
	{"deep JSON", `return JSON.parse("[".repeat(200000))`, []Kind{Exception, Crash, Memory}, ""},
	{"deep source", "return " + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000), []Kind{"", Syntax, Crash, Memory, Exception}, "1"},
	{"deep arrays in the source", "return " + strings.Repeat("[", 20000) + strings.Repeat("]", 20000), []Kind{"", Syntax, Crash, Memory, Exception}, ""},
	{"deep templates in the source", "return " + strings.Repeat("`${", 9000) + "1" + strings.Repeat("}`", 9000), []Kind{"", Syntax, Crash, Memory, Exception}, ""},
	{"deep TypeScript", "const x: " + strings.Repeat("Array<", 9000) + "number" + strings.Repeat(">", 9000) + " = 1; return x", []Kind{"", Syntax, Crash, Memory, Timeout}, "1"},
	{"deep regular expression", `return new RegExp("(".repeat(50000) + ")".repeat(50000)).test("")`, []Kind{"", Exception, Crash, Memory, Syntax}, "true"},
	{"deep result", `let a = []; for (let i = 0; i < 100000; i++) a = [a]; return a`, []Kind{"", OutputLimit}, ""},
	{"deep arguments", `let a = {}; for (let i = 0; i < 100000; i++) a = {a}; await tools.call("echo", a)`, []Kind{Exception}, ""},
	{"deep answer of a tool", `return (await tools.call("deep", {})).result.details.length`, []Kind{Exception}, ""},
	{"deep prototype chain", `let o = {}; for (let i = 0; i < 200000; i++) o = Object.create(o); return o.nix`, []Kind{"", Memory, Timeout}, "null"},

	// floods
	{"console flood", `for (;;) console.log("x".repeat(100))`, []Kind{Timeout}, ""},
	{"console flood of large lines", `for (;;) console.log("x".repeat(100000))`, []Kind{Timeout, Memory}, ""},
	{"flood of calls", `for (;;) tools.call("echo", {})`, []Kind{CallLimit}, ""},
	{"flood of calls, caught", `for (let i = 0; i < 1000; i++) tools.call("echo", {}).catch(() => {}); return 1`, []Kind{CallLimit}, ""},
	{"flood of searches", `await Promise.all(Array.from({length: 300}, () => tools.search("x")))`, []Kind{CallLimit}, ""},
	{"large arguments", `await tools.call("echo", {x: "y".repeat(2 ** 21)})`, []Kind{Exception}, ""},
	{"large value", `return "y".repeat(2 ** 21)`, []Kind{OutputLimit}, ""},
	{"large error", `throw new Error("y".repeat(2 ** 21))`, []Kind{Exception}, ""},
	{"many rejections", `for (let i = 0; i < 20000; i++) Promise.reject(new Error("n" + i)); return 1`, []Kind{Exception, Timeout}, ""},

	// ways out
	{"std", `return typeof std + typeof os + typeof bjson + typeof print + typeof scriptArgs + typeof gc`, []Kind{""}, `"undefinedundefinedundefinedundefinedundefinedundefined"`},
	{"host objects", `return [typeof process, typeof Deno, typeof require, typeof module, typeof window, typeof Worker, typeof WebAssembly, typeof navigator, typeof performance].join()`, []Kind{""}, `"undefined,undefined,function,undefined,undefined,undefined,undefined,undefined,undefined"`},
	{"std.exit", `std.exit(0)`, []Kind{Exception}, ""},
	{"import of os", `const os = await import("qjs:os"); return os.readdir("/")`, []Kind{Exception}, ""},
	{"import hidden from the lexer", "const x = 4\nconst y = x++ /1; const z = '/'; const os = await import('qjs:os'); return typeof os", []Kind{Exception}, ""},
	{"import of a file", `return await import("/etc/passwd")`, []Kind{Exception}, ""},
	{"static import", "import * as os from 'qjs:os';\nreturn os", []Kind{Syntax}, ""},
	{"import.meta", `return import.meta.url`, []Kind{Syntax}, ""},
	{"eval", `return eval("1")`, []Kind{Exception}, ""},
	{"Function", `return new Function("return 1")()`, []Kind{Exception}, ""},
	{"function constructor", `return (() => {}).constructor("return 1")()`, []Kind{Exception, ""}, ""},
	{"async function constructor", `return await (async () => {}).constructor("return globalThis")()`, []Kind{Exception, ""}, ""},
	{"generator constructor", `return (function* () {}).constructor("yield 1")().next().value`, []Kind{Exception, ""}, ""},
	{"constructor through Reflect", `return Reflect.construct((() => {}).constructor, ["return 1"])()`, []Kind{Exception}, ""},
	{"environment", `return [typeof environ, typeof getenv, Object.keys(globalThis).join()]`, []Kind{""}, `["undefined","undefined",""]`},
	{"stack of our frames", `return Error.prepareStackTrace === undefined && new Error("x").stack.includes("script.js")`, []Kind{""}, `true`},
	{"prepareStackTrace", `Error.prepareStackTrace = (e, frames) => frames.map(f => f.getFunction && f.getFunction() && 1); return String(new Error("x").stack)`, []Kind{"", Exception}, ""},
	{"callers", `function f() { return f.caller } return f()`, []Kind{"", Exception}, ""},
	{"closing the wrapper", `}); globalThis.evil = 1; (async () => {`, []Kind{Syntax}, ""},
	{"closing the wrapper and its twin", `}); ]; (async () => { return 1`, []Kind{Syntax}, ""},
	{"comment at the end", `return 1 //`, []Kind{""}, "1"},
	{"open comment", `return 1 /*`, []Kind{Syntax, ""}, "1"},
	{"HTML comment", "return 1 <!-- x", []Kind{"", Syntax}, "1"},
	{"line separators", "return 1 // \u2028 + 1", []Kind{"", Syntax}, ""},
	{"forged lines of ours", `console.log('v{"OK":true,"Value":666}\nv{"OK":true,"Value":667}'); return 1`, []Kind{""}, "1"},

	// tampering with what the prelude uses
	{"Object.prototype setters", `for (const k of ["id", "kind", "resolve", "get", "value", "0", "1", "length", "text"]) Object.defineProperty(Object.prototype, k, {set() { throw new Error("caught you") }, get() { return undefined }, configurable: true}); return (await tools.call("echo", {a: 1})).result.details`, []Kind{"", Exception}, `{"a":1}`},
	{"Array.prototype", `for (const k of Object.getOwnPropertyNames(Array.prototype)) try { Array.prototype[k] = () => { throw 1 } } catch {} ; Array.prototype[Symbol.iterator] = null; return (await tools.call("echo", {a: [1]})).result.details`, []Kind{""}, `{"a":[1]}`},
	{"Promise.prototype", `Promise.prototype.then = () => { throw 1 }; Promise.prototype.catch = null; return (await tools.call("echo", {a: 1})).result.details.a`, []Kind{"", Exception, Deadlock}, `1`},
	{"Function.prototype", `const F = Object.getPrototypeOf(() => {}); F.call = F.apply = F.bind = () => { throw 1 }; return (await tools.call("echo", {a: 1})).result.details.a`, []Kind{""}, `1`},
	{"JSON and Reflect", `JSON.stringify = JSON.parse = () => { throw 1 }; for (const k of Reflect.ownKeys(Reflect)) try { Reflect[k] = null } catch {} ; return (await tools.call("echo", {a: 1})).result.details.a`, []Kind{""}, `1`},
	{"String, Map and WeakSet", `String.prototype.slice = String.prototype.startsWith = Map.prototype.get = Map.prototype.set = Map.prototype.forEach = WeakSet.prototype.has = WeakSet.prototype.add = () => { throw 1 }; return (await tools.call("echo", {a: 1})).result.details.a`, []Kind{""}, `1`},
	{"globals replaced", `Promise = Proxy = Map = WeakSet = Error = TypeError = Object = null; return 1`, []Kind{"", Exception}, "1"},
	{"the API frozen", `try { openclaw.tools.call = null } catch {} try { delete openclaw.tools } catch {} return typeof openclaw.tools.call`, []Kind{""}, `"function"`},
	{"species", `class P extends Promise { static get [Symbol.species]() { throw 1 } } return await new P(r => r(1))`, []Kind{"", Exception}, "1"},
	{"instanceof", `Object.defineProperty(Error, Symbol.hasInstance, {value() { for (;;) {} }}); throw new Error("x")`, []Kind{Exception}, ""},
	{"revoked proxy", `const {proxy, revoke} = Proxy.revocable({}, {}); revoke(); return proxy`, []Kind{"", Exception}, ""},
	{"revoked proxy thrown", `const {proxy, revoke} = Proxy.revocable({}, {}); revoke(); throw proxy`, []Kind{Exception}, ""},
	{"lying array", `return new Proxy([], {get: (t, k) => k === "length" ? 1e9 : "x"})`, []Kind{Timeout, OutputLimit}, ""},
	{"constructor of promises", `try { Object.defineProperty(Promise.prototype, "constructor", {value: 1}) } catch {} return await Promise.resolve(1)`, []Kind{""}, "1"},
	{"globals of another run", `const before = typeof globalThis.mine; globalThis.mine = 1; Array.prototype.mine = 1; return before`, []Kind{""}, `"undefined"`},
	{"prototypes of another run", `return [].mine === undefined`, []Kind{""}, `true`},
}

// attackHost has tools that are part of an attack.
func attackHost(release <-chan struct{}) *fakeHost {
	return &fakeHost{tools: map[string]toolFunc{
		"stubborn": func(context.Context, *Call, json.RawMessage) (string, error) { <-release; return text("late"), nil },
		"deep": func(context.Context, *Call, json.RawMessage) (string, error) {
			return text(strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), nil
		},
	}}
}

// late is how much longer than its limit a run may take.
const late = 250 * time.Millisecond

// maxGrowth is how much more memory the parent may use while attacks run.
const maxGrowth = 20 << 20

// TestAttacks runs every attack with a small limit, beside honest programs
// and before one in the same engine. One that comes late, because the machine
// is busy with all of them, has to keep its limit alone.
func TestAttacks(t *testing.T) {
	// Programs that run for ever get little time, others enough to come to
	// their own end on a slow machine.
	short := newEngine(t, Config{Workers: 2, TimeoutMs: 150, MemoryBytes: 32 << 20, QueueMs: 120_000})
	ample := newEngine(t, Config{Workers: 2, TimeoutMs: 4000, MemoryBytes: 32 << 20, QueueMs: 120_000})
	honest := newEngine(t, Config{Workers: 1, TimeoutMs: generous})
	release := make(chan struct{})
	host := attackHost(release)
	peak := watchHeap()

	stop := make(chan struct{})
	var beside sync.WaitGroup
	var good atomic.Int64
	beside.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(25 * time.Millisecond):
			}
			if r := mustRun(t, honest, `return (await tools.call("add", {a: 1, b: 2})).sum`, nil); what(r) != "3" {
				t.Errorf("a run beside an attack = %s, want 3", what(r))
				return
			}
			good.Add(1)
		}
	})

	var report sync.Mutex
	var table strings.Builder
	var slow []int
	next := make(chan int)
	var workers sync.WaitGroup
	engineOf := func(i int) (e *Engine, deadline time.Duration) {
		if e = ample; attacks[i].kinds[0] == Timeout {
			e = short
		}
		return e, time.Duration(e.cfg.TimeoutMs)*time.Millisecond + late
	}
	for range 2 {
		workers.Go(func() {
			for i := range next {
				a := attacks[i]
				e, deadline := engineOf(i)
				r := mustRun(t, e, a.source, host)
				var kind Kind
				if r.Error != nil {
					kind = r.Error.Kind
				}
				switch {
				case !slices.Contains(a.kinds, kind):
					t.Errorf("%s: %s after %v, want one of %q", a.name, what(r), r.Took, a.kinds)
				case kind == "" && a.value != "" && string(r.Value) != a.value:
					t.Errorf("%s: returned %s, want %s", a.name, r.Value, a.value)
				}
				report.Lock()
				if r.Took > deadline {
					slow = append(slow, i)
				}
				fmt.Fprintf(&table, "%-50s %-12s %6.1f ms\n", a.name, cmpOr(string(kind), "ok"), float64(r.Took.Microseconds())/1000)
				report.Unlock()
				if after := mustRun(t, e, `return typeof globalThis.mine + [].mine + 6 * 7`, nil); after.Error == nil && string(after.Value) != `"undefinedundefined42"` || after.Error != nil && after.Error.Kind != Timeout {
					t.Errorf("after %s: %s", a.name, what(after))
				}
			}
		})
	}
	for i := range attacks {
		next <- i
	}
	close(next)
	workers.Wait()
	close(stop)
	beside.Wait()
	for _, i := range slow {
		e, deadline := engineOf(i)
		if r := mustRun(t, e, attacks[i].source, host); r.Took > deadline && !underRace {
			t.Errorf("%s: ended after %v also when it was alone, want at most %v", attacks[i].name, r.Took, deadline)
		}
	}
	close(release)

	grown := peak()
	if grown > maxGrowth {
		t.Errorf("the parent's memory grew by %s at its peak, want at most %s", byteSize(int(grown)), byteSize(maxGrowth))
	}
	if good.Load() == 0 {
		t.Error("no honest program ran beside the attacks")
	}
	for _, e := range []*Engine{short, ample, honest} {
		if err := e.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if e.total != 0 || len(e.idle) != 0 {
			t.Errorf("after Close %d workers are counted", e.total)
		}
	}
	if path := os.Getenv("ATTACK_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(table.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d attacks, %d honest programs beside them; %d attacks were late, and run again alone; memory grew by %s at its peak",
		len(attacks), good.Load(), len(slow), byteSize(int(grown)))
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// watchHeap looks at the memory in use, garbage included, until the returned
// function is called, which tells by how much it grew at its peak.
func watchHeap() (grown func() int64) {
	stop, most := make(chan struct{}), make(chan int64)
	before := heap()
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		var peak int64
		for {
			metrics.Read(sample)
			peak = max(peak, int64(sample[0].Value.Uint64()))
			select {
			case <-time.After(time.Millisecond):
			case <-stop:
				most <- peak
				return
			}
		}
	}()
	return func() int64 { close(stop); return <-most - before }
}

// heap is the memory in use after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
