package codebridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// what is the comparable part of a result: the value, or the kind and message
// of the error.
func what(r *Result) string {
	if r.Error == nil {
		return string(r.Value)
	}
	return string(r.Error.Kind) + ": " + r.Error.Message
}

// TestValues: what a program returns arrives as JSON, and what JSON cannot
// say has a defined form.
func TestValues(t *testing.T) {
	for source, want := range map[string]string{
		`return 42`:          `42`,
		`return "ü\n\u0000"`: `"ü\n\u0000"`,
		`return undefined`:   `null`,
		``:                   `syntax: the program is empty; write JavaScript such as: return await openclaw.tools.search("what you need")`,
		`return null`:        `null`,
		`return -0`:          `0`,
		`return NaN`:         `null`,
		`return [Infinity]`:  `[null]`,
		`return 10n`:         `10`,
		`return 2n**70n`:     `1180591620717411303424`,
		`return {a: undefined, b: [undefined, , 1], f() {}}`: `{"b":[null,null,1]}`,
		`return Symbol("s")`:                            `"[Symbol(s)]"`,
		`return [function f() {}, class K {}]`:          `["[function f]","[function K]"]`,
		`return new Map([["a", 1], [2, new Set([3])]])`: `{"a":1,"2":[3]}`,
		`return new Map([[{}, 1]])`:                     `[[{},1]]`,
		`return new Date(0)`:                            `"1970-01-01T00:00:00.000Z"`,
		`return new Date(NaN)`:                          `null`,
		`return /a+/gi`:                                 `"/a+/gi"`,
		`return new Uint8Array([1, 255])`:               `[1,255]`,
		`return new ArrayBuffer(3)`:                     `"[ArrayBuffer of 3 bytes]"`,
		`return [new WeakMap(), new Number(3), new String("s"), new Boolean(false)]`:                         `["[WeakMap or WeakSet]",3,"s",false]`,
		`const e = new RangeError("far"); e.limit = 3; return {e}`:                                           `{"e":{"name":"RangeError","message":"far","limit":3}}`,
		`const a = {n: 1}; a.self = a; return a`:                                                             `{"n":1,"self":"[circular]"}`,
		`const s = {n: 1}; return [s, s]`:                                                                    `[{"n":1},{"n":1}]`,
		`return {ok: 1, get bad() { throw new Error("no") }}`:                                                `{"ok":1,"bad":"[getter threw Error: no]"}`,
		`return {toJSON() { return {a: 1} }}`:                                                                `{"a":1}`,
		`return {p: {q: Promise.resolve(1)}}`:                                                                `{"p":{"q":"[a promise: write await before the call, or await Promise.all([...]) for several]"}}`,
		`return [Promise.resolve(1), 2]`:                                                                     `[1,2]`,
		`return {a: Promise.resolve(1)}`:                                                                     `{"a":1}`,
		`let a = []; for (let i = 0; i < 200; i++) a = [a]; return JSON.stringify(a).length > 0 && a.length`: `1`,
		`return Array(4)`:                     `[null,null,null,null]`,
		`return {"__proto__x": 1, "a\"b": 2}`: `{"__proto__x":1,"a\"b":2}`,
		`return "\ud800"`:                     `"\ud800"`,
		`return globalThis.ToolError.name`:    `"ToolError"`,
	} {
		if got := what(mustRun(t, sharedEngine(t), source, nil)); got != want {
			t.Errorf("Run(%q) = %s, want %s", source, got, want)
		}
	}
}

// TestLanguage: the body of an async function in modern JavaScript, in
// TypeScript, and in the shapes in which models write it.
func TestLanguage(t *testing.T) {
	for source, want := range map[string]string{
		// plain
		"const a = await Promise.resolve(1);\nreturn a":                         `1`,
		"class A { #x = 2; get x() { return this.#x } }\nreturn new A().x ?? 0": `2`,
		"let x = null; x ??= 5; return x?.toFixed?.(1)":                         `"5.0"`,
		"for await (const x of [Promise.resolve(3)]) return x":                  `3`,
		"return 'ab1'.replace(/(?<=b)\\d/, '!')":                                `"ab!"`,
		"label: for (;;) { break label }\nreturn 1":                             `1`,
		// the last expression
		"1 + 1":                                          `2`,
		"await Promise.resolve(7)":                       `7`,
		"const a = 3\na":                                 `3`,
		"const a = 3; a * 2;":                            `6`,
		"const a = [1,2]\na\n  .map(x => x + 1)":         `[2,3]`,
		"const r = {\n  a: 1\n}\nr // the result":        `{"a":1}`,
		"const a = 5\n{ a, b: 1 }":                       `{"a":5,"b":1}`,
		"`x${1 + 1}y`":                                   `"x2y"`,
		"const x = 1\nif (x) {\n  console.log(x)\n}":     `null`,
		"for (const a of [1,2])\n  console.log(a)":       `null`,
		"let s = 0\nfor (const a of [1,2])\n  s += a\ns": `3`,
		// a whole function
		"async () => {\n  return 5\n}":                                                `5`,
		"async () => 5":                                                               `5`,
		"(async () => { return 5 })()":                                                `5`,
		"(async () => { return 5 })":                                                  `5`,
		"async function main() {\n  return 5\n}":                                      `5`,
		"function main() { return 5 }":                                                `5`,
		"async function main() { return 5 }\nmain()":                                  `5`,
		"async function main() { return 5 }\nawait main();":                           `5`,
		"const main = async () => 5;\nmain().then(x => x + 1)":                        `6`,
		"export default async function () { return 5 }":                               `5`,
		"export default 3":                                                            `3`,
		"function half(x) { return x / 2 }\nasync function run() { return half(10) }": `5`,
		// fences and wrappings
		"```js\nreturn 1\n```": `1`,
		"Here is the code:\n\n```javascript\nreturn 1\n```\nDone.": `1`,
		"```\n1 + 1\n```": `2`,
		"~~~ts\nconst a: number = 1; return a\n~~~": `1`,
		`{"code": "return 1"}`:                      `1`,
		"\ufeffreturn 1":                            `1`,
		"return [1,2].map(x =&gt; x + 1)":           `[2,3]`,
		"// only a comment\n":                       `syntax: the program is empty; write JavaScript such as: return await openclaw.tools.search("what you need")`,
		// TypeScript
		"const x: {id: number}[] = [{id: 1}] as any;\nreturn x[0]!.id":            `1`,
		"interface A { a: number }\nconst a: A = {a: 1};\na.a":                    `1`,
		"enum E { A = 3 }\nreturn E.A":                                            `3`,
		"const f = async <T,>(x: T): Promise<T> => x;\nreturn await f<number>(4)": `4`,
		"type T = string;\nfunction f(x?: T): T { return x ?? 'd' }\nf()":         `"d"`,
		// async functions that are rewritten
		"const f = async x => { await null; return x * 2 };\nreturn await Promise.all([1,2].map(f))":                     `[2,4]`,
		"async function* g() { yield 1; yield 2 }\nconst out = [];\nfor await (const x of g()) out.push(x);\nreturn out": `[1,2]`,
		"class A { async m() { return this.v } v = 9 }\nreturn new A().m()":                                              `9`,
	} {
		if got := what(mustRun(t, sharedEngine(t), source, nil)); got != want {
			t.Errorf("Run(%q)\n got %s\nwant %s", source, got, want)
		}
	}
}

// TestSlips: what models get wrong works, or is answered by a sentence that
// says what to write.
func TestSlips(t *testing.T) {
	const useTools = "openclaw.tools.call(id, args)"
	for source, want := range map[string]string{
		// work
		`const r = await openclaw.tools.call((await openclaw.tools.search("x"))[0], {text: "hit as id"}); return r.result.details`:                        `{"text":"hit as id"}`,
		`return (await tools.call("echo", '{"text": "JSON text"}')).result.details`:                                                                       `{"text":"JSON text"}`,
		`return (await tools.call({id: "echo", args: {a: 1}})).result.details`:                                                                            `{"a":1}`,
		`return (await tools.call({name: "echo", arguments: {a: 1}})).result.details`:                                                                     `{"a":1}`,
		`return (await tools.call("test", "echo", {a: 1})).result.details`:                                                                                `{"a":1}`,
		`return (await tools.call("echo")).result.details`:                                                                                                `{}`,
		`return (await tools.call(await tools.describe("echo"))).result.details`:                                                                          `{}`,
		`return (await tools.search({query: "x", limit: 2})).length`:                                                                                      `2`,
		`return (await tools.search("x", 2)).results[0].id`:                                                                                               `"mcp:test:echo"`,
		`return (await tools.search("x")).hits.length`:                                                                                                    `2`,
		`return (await openclaw.tools.echo({a: 1})).result.details`:                                                                                       `{"a":1}`,
		`return (await openclaw.tools.test__echo({a: 1})).result.details`:                                                                                 `{"a":1}`,
		`return (await tools.test.echo({a: 1})).result.details`:                                                                                           `{"a":1}`,
		`return (await tools["mcp:test:echo"]({a: 1})).result.details`:                                                                                    `{"a":1}`,
		`return (await openclaw.call("echo", {a: 1})).result.details`:                                                                                     `{"a":1}`,
		`const openclaw = globalThis.openclaw; return (await openclaw.tools.search("x")).length`:                                                          `2`,
		`const {tools} = openclaw; return (await tools.search("x")).length`:                                                                               `2`,
		`const {search, call} = openclaw.tools; return (await call((await search("x"))[0].id)).tool.id`:                                                   `"mcp:test:echo"`,
		`const openclaw = require("openclaw"); return (await openclaw.tools.search("x")).length`:                                                          `2`,
		`const r = await tools.call("add", {a: 1, b: 2}); return [r.sum, r.result.sum, r.content[0].text, r.structuredContent.sum, r.result.details.sum]`: `[3,3,"3",3,3]`,
		`return ["a","b"].map(x => tools.call("echo", {x}))`:                                                                                              `[{"tool":{"id":"mcp:test:echo","name":"test__echo","source":"mcp"},"result":{"content":[{"type":"text","text":"{\"x\":\"a\"}"}],"details":{"x":"a"}}},{"tool":{"id":"mcp:test:echo","name":"test__echo","source":"mcp"},"result":{"content":[{"type":"text","text":"{\"x\":\"b\"}"}],"details":{"x":"b"}}}]`,
		`return JSON.stringify({p: tools.call("echo", {})})`:                                                                                              `"{\"p\":\"[a promise: write await openclaw.tools.call(...)]\"}"`,
		// are explained
		`const h = tools.search("x"); return h[0].id`:         `exception: TypeError: openclaw.tools.search(...) is a promise: write (await openclaw.tools.search(...))[0]`,
		`const r = tools.call("echo", {}); return r.result`:   `exception: TypeError: openclaw.tools.call(...) is a promise: write (await openclaw.tools.call(...)).result`,
		`for (const h of tools.search("x")) {}`:               `exception: TypeError: openclaw.tools.search(...) is a promise: write await openclaw.tools.search(...) and loop over its result`,
		`await tools.call("echo", {x: tools.search("q")})`:    `exception: TypeError: args.x is a promise: write await before the call, or await Promise.all([...]) for several`,
		`await tools.call(tools.search("q"), {})`:             `exception: TypeError: openclaw.tools.call needs a tool id, for example hits[0].id, but got a promise (write await before the call that made it)`,
		`await tools.call(undefined, {})`:                     `exception: TypeError: openclaw.tools.call needs a tool id, for example hits[0].id, but got undefined; did the search find nothing?`,
		`await tools.call(await tools.search("q"), {})`:       `exception: TypeError: openclaw.tools.call needs a tool id, for example hits[0].id, but got an array`,
		`await tools.call("echo", ["a"])`:                     `exception: TypeError: the arguments must be one object: openclaw.tools.call("echo", {name: value}), but got an array`,
		`await tools.call("echo", "plain")`:                   `exception: TypeError: the arguments must be one object: openclaw.tools.call("echo", {name: value}), but got a string`,
		`await tools.call("echo", {f() {}})`:                  `exception: TypeError: args.f is function f; call it, or leave it out`,
		`await tools.call("echo", {a: {b: [NaN]}})`:           `exception: TypeError: args.a.b[0] is NaN, which JSON cannot hold`,
		`const a = {}; a.a = a; await tools.call("echo", a)`:  `exception: TypeError: args.a is circular: it contains itself`,
		`await tools.write("a.txt", "hi")`:                    `exception: TypeError: pass one object of arguments: openclaw.tools.call("write", {name: value})`,
		`await tools.search()`:                                `exception: TypeError: openclaw.tools.search needs a query text, but got undefined`,
		`await write({path: "a"})`:                            `exception: ReferenceError: write is not defined; declare it with const or let, or, if it is a tool, write openclaw.tools.call("write", {...})`,
		`await call_tool("depot", "write", {})`:               `exception: ReferenceError: call_tool is not defined; write openclaw.tools.search(...), openclaw.tools.describe(id) or openclaw.tools.call(id, args)`,
		`await fetch("https://x.test")`:                       `exception: Error: fetch is not available here: find a tool with openclaw.tools.search(...) and run it with ` + useTools,
		`require("fs")`:                                       `exception: Error: require is not available here: find a tool with openclaw.tools.search(...) and run it with ` + useTools,
		`await import("fs")`:                                  `exception: Error: import is not available here: find a tool with openclaw.tools.search(...) and run it with ` + useTools,
		`await new Promise(r => setTimeout(r, 1))`:            `exception: Error: setTimeout is not available here: there are no timers, await openclaw.tools.call(id, args) waits as long as the tool takes`,
		`return process.env.HOME`:                             `exception: ReferenceError: process is not defined; there is no such object here: find a tool with openclaw.tools.search(...) and run it with ` + useTools,
		`ls -la`:                                              `exception: ReferenceError: ls is not defined; this looks like a shell command, but the program must be JavaScript: find a tool with openclaw.tools.search(...) and run it with ` + useTools,
		`const tools = await tools.search("x"); return tools`: `exception: ReferenceError: tools is not initialized; a variable cannot be used in its own declaration: give it another name than tools`,
		`await tools.call("nix", {})`:                         `exception: ToolError unknown_tool: no tool nix`,
	} {
		if got := what(mustRun(t, sharedEngine(t), source, nil)); got != want {
			t.Errorf("Run(%q)\n got %s\nwant %s", source, got, want)
		}
	}
}

// TestSyntaxErrors: kind, place and advice for what is no program.
func TestSyntaxErrors(t *testing.T) {
	for _, tt := range []struct {
		source       string
		line, column int
		want         string // in the message
	}{
		{"const a = 1;\nreturn a +;\n", 2, 11, "Unexpected"},
		{"return (", 1, 9, "Unexpected end of the program"},
		{"import fs from 'fs';\nreturn 1", 1, 0, "import is not available here"},
		{"}); evil(); (async () => {", 1, 1, "Unexpected"},
		{"curl -s https://x.test/a", 0, 0, "looks like a shell command"},
		{"$ curl https://x.test | sh", 0, 0, "looks like a shell command"},
		{"let a = 1; let a = 2", 1, 16, "already been declared"},
		{"```js\nreturn 1 +\n```", 2, 0, "Unexpected"},
		{"return 'open", 1, 0, "Unterminated string"},
		{"a\x00b", 0, 0, "NUL"},
	} {
		r := mustRun(t, sharedEngine(t), tt.source, nil)
		if r.Error == nil || r.Error.Kind != Syntax || !strings.Contains(r.Error.Message, tt.want) {
			t.Errorf("Run(%q) = %s, want a syntax error with %q", tt.source, what(r), tt.want)
			continue
		}
		if tt.line > 0 && r.Error.Line != tt.line || tt.column > 0 && r.Error.Column != tt.column {
			t.Errorf("Run(%q) fails at %d:%d, want %d:%d", tt.source, r.Error.Line, r.Error.Column, tt.line, tt.column)
		}
	}
	if r := mustRun(t, sharedEngine(t), strings.Repeat(" ", MaxSourceBytes+1), nil); r.Error == nil || r.Error.Kind != Syntax {
		t.Errorf("Run of a source over the limit = %s, want a syntax error", what(r))
	}
}

// TestPlaces: exceptions name the line of the model's own source, however it
// was rewritten, and no frame of ours.
func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		source string
		line   int
	}{
		{"throw new Error('x')", 1},
		{"const a = 1;\n\nthrow new Error('x')", 3},
		{"function f() {\n  null.x\n}\nf()", 2},
		{"const a: number = 1;\n\nif (a) throw new Error('x')", 3},
		{"const f = async () => {\n  await null;\n  throw new Error('x');\n};\nawait f()", 3},
		{"```js\nconst a = 1;\nnull.x\n```", 3},
		{"const a = 1;\nawait tools.call('fail', {});", 2},
		{"await null;\nawait tools.call('fail', {});", 2},
		{"const h = tools.search('x');\nh[0]", 2},
		{"const a = 1;\nconst b = a.b.c;\nreturn b", 2},
		{"const a = 1;\nif (a) {\n  const {x} = null;\n}", 3},
		{"const a = 1;\nreturn a.b.c", 2},
		{"const a = 1\nlet b = [\n  1,\n]\nfor (const x of a) {}", 5},
		{"const f = async () => 1;\nawait f();\nconst b = null\nconst a = b.c", 4},
		{"throw {plain: 1}", 0},
	} {
		r := mustRun(t, sharedEngine(t), tt.source, nil)
		if r.Error == nil || r.Error.Kind != Exception || r.Error.Line != tt.line {
			t.Errorf("Run(%q) fails with %+v, want an exception in line %d", tt.source, r.Error, tt.line)
			continue
		}
		if strings.Contains(r.Error.Stack, "prelude") || strings.Count(r.Error.Stack, "\n") > 4 {
			t.Errorf("Run(%q) has the stack %q, want a short one without our frames", tt.source, r.Error.Stack)
		}
	}
}

// TestUnhandled: what nobody awaited is finished and told.
func TestUnhandled(t *testing.T) {
	for source, want := range map[string]string{
		`tools.call("fail", {}); return 1`:                                        `not handled: ToolError failed: disk full`,
		`Promise.reject(new Error("a")); return 1`:                                `not handled: Error: a`,
		`new Promise((_, no) => no(new Error("a"))); return 1`:                    `not handled: Error: a`,
		`Promise.resolve(1).then(() => { throw new Error("a") }); return 1`:       `not handled: Error: a`,
		`const f = async () => { throw new Error("a") }; f(); return 1`:           `not handled: Error: a`,
		`async function f() { await null; throw new Error("a") }; f(); return 1`:  `not handled: Error: a`,
		`Promise.all([tools.call("fail", {}), tools.call("echo", {})]); return 1`: `not handled: ToolError failed: disk full`,
		`tools.call("echo", {}).then(r => r.result.nix.nix); return 1`:            `not handled: TypeError: cannot read property 'nix' of undefined`,
		`tools.call("fail", {}).finally(() => {}); return 1`:                      `not handled: ToolError failed: disk full`,
	} {
		r := mustRun(t, sharedEngine(t), source, nil)
		if r.Error == nil || r.Error.Kind != Exception || !strings.HasPrefix(r.Error.Message, want) || string(r.Value) != "1" {
			t.Errorf("Run(%q) = value %s, error %+v; want the value 1 and an exception %q", source, r.Value, r.Error, want)
		}
	}
	for _, source := range []string{
		`tools.call("fail", {}).catch(() => {}); return 1`,
		`try { await tools.call("fail", {}) } catch (e) {} return 1`,
		`const p = Promise.reject(new Error("a")); await null; try { await p } catch {} return 1`,
		`await Promise.allSettled([tools.call("fail", {}), Promise.reject(1)]); return 1`,
		`await Promise.race([tools.call("echo", {}), tools.call("fail", {}).catch(() => 0)]); return 1`,
		`await Promise.any([tools.call("fail", {}), tools.call("echo", {})]); return 1`,
		`const f = async () => { throw new Error("a") }; try { await f() } catch {} return 1`,
		`const f = async () => { throw new Error("a") }; f().catch(() => {}); return 1`,
		`async function f() { return await g() } async function g() { throw 1 } await f().catch(() => {}); return 1`,
	} {
		if r := mustRun(t, sharedEngine(t), source, nil); what(r) != "1" {
			t.Errorf("Run(%q) = %s, want 1", source, what(r))
		}
	}
	r := mustRun(t, sharedEngine(t), `tools.call("sleep", {ms: 20}); return 1`, nil)
	if what(r) != "1" || len(r.Calls) != 1 || r.Calls[0].Status != StatusOK || len(r.Logs) != 1 || !strings.Contains(r.Logs[0], `openclaw.tools.call("sleep")`) {
		t.Errorf("a call that was not awaited: %s, calls %+v, logs %q; want it finished and told", what(r), r.Calls, r.Logs)
	}
}

// TestToolError: a failed call is an error that a program can catch and read.
func TestToolError(t *testing.T) {
	r := mustRun(t, sharedEngine(t), `
		try { await openclaw.tools.call("fail", {}) } catch (e) {
			return [e instanceof ToolError, e instanceof Error, e.name, e.code, e.message, e.tool.id, e.result.content[0].text]
		}`, nil)
	if want := `[true,true,"ToolError","failed","disk full","mcp:test:fail","disk full"]`; what(r) != want {
		t.Errorf("a caught ToolError reads as %s, want %s", what(r), want)
	}
	if len(r.Calls) != 1 || r.Calls[0].ID != "mcp:test:fail" || r.Calls[0].Status != "failed" {
		t.Errorf("calls = %+v, want one of mcp:test:fail, failed", r.Calls)
	}
}

// TestDetails: one rule for where the data of a result is.
func TestDetails(t *testing.T) {
	for result, want := range map[string]string{
		`{"content":[{"type":"text","text":"[1,2]"}]}`:                                 `[1,2]`,
		`{"content":[{"type":"text","text":" {\"a\":1} "}]}`:                           `{"a":1}`,
		`{"content":[{"type":"text","text":"42"}]}`:                                    `"42"`,
		`{"content":[{"type":"text","text":"{broken"}]}`:                               `"{broken"`,
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:          `"a\nb"`,
		`{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"b":2}}`: `{"b":2}`,
		`{"content":[]}`: `""`,
		`{"content":[{"type":"text","text":"{\"n\":12345678901234567890}"}]}`:               `{"n":12345678901234567890}`,
		`{"content":[],"structuredContent":{"n":-9007199254740993,"s":"9007199254740993"}}`: `{"n":-9007199254740993,"s":"9007199254740993"}`,
	} {
		h := &fakeHost{tools: map[string]toolFunc{"t": func(context.Context, *Call, json.RawMessage) (string, error) { return result, nil }}}
		if got := what(mustRun(t, sharedEngine(t), `return (await tools.call("t")).result.details`, h)); got != want {
			t.Errorf("details of %s = %s, want %s", result, got, want)
		}
	}
	big := func(context.Context, *Call, json.RawMessage) (string, error) {
		return `{"content":[],"structuredContent":{"id":9007199254740993}}`, nil
	}
	var got string
	h := &fakeHost{tools: map[string]toolFunc{"big": big, "take": func(_ context.Context, _ *Call, args json.RawMessage) (string, error) {
		got = string(args)
		return text("ok"), nil
	}}}
	r := mustRun(t, sharedEngine(t), `const r = await tools.call("big"); await tools.call("take", {id: r.result.details.id}); return typeof r.result.details.id`, h)
	if want := `{"id":9007199254740993}`; got != want || what(r) != `"bigint"` {
		t.Errorf("a large integer passed on = %s (%s), want %s as a bigint", got, what(r), want)
	}
	isError := func(context.Context, *Call, json.RawMessage) (string, error) {
		return `{"isError":true,"content":[{"type":"text","text":"no such file"}]}`, nil
	}
	r = mustRun(t, sharedEngine(t), `return await tools.call("t")`, &fakeHost{tools: map[string]toolFunc{"t": isError}})
	if want := "exception: ToolError failed: no such file"; what(r) != want {
		t.Errorf("a result with isError = %s, want %s", what(r), want)
	}
}

// TestBlocks: a program sees references to binary content; what its value
// refers to comes out as the real blocks, each once.
func TestBlocks(t *testing.T) {
	data := strings.Repeat("QUJD", 1000)
	image := fmt.Sprintf(`{"type":"image","data":%q,"mimeType":"image/png"}`, data)
	small := `{"type":"audio","data":"c21hbGw=","mimeType":"audio/wav"}`
	resource := fmt.Sprintf(`{"type":"resource","resource":{"uri":"file:///a.bin","mimeType":"application/x","blob":%q}}`, data)
	h := &fakeHost{tools: map[string]toolFunc{"shoot": func(context.Context, *Call, json.RawMessage) (string, error) {
		return `{"content":[{"type":"text","text":"here"},` + image + `,` + small + `,` + resource + `],"extra":1}`, nil
	}}}
	r := mustRun(t, sharedEngine(t), `const r = await tools.call("shoot"); const c = r.result.content; return {all: c.slice(1), again: c[1], extra: r.result.extra}`, h)
	want := `{"all":[{"type":"image","mimeType":"image/png","bytes":3000,"ref":"content-block:1"},` + small + `,{"type":"resource","mimeType":"application/x","bytes":3000,"ref":"content-block:2","uri":"file:///a.bin"}],"again":{"type":"image","mimeType":"image/png","bytes":3000,"ref":"content-block:1"},"extra":1}`
	if what(r) != want {
		t.Errorf("blocks inside a program = %s, want %s", what(r), want)
	}
	var got []string
	for _, b := range r.Blocks {
		got = append(got, string(b))
	}
	if len(got) != 3 || got[0] != image || got[1] != small || got[2] != resource {
		t.Errorf("attached blocks = %.300q, want the image, the audio and the resource", got)
	}
	if r := mustRun(t, sharedEngine(t), `await tools.call("shoot"); return "content-block:9"`, h); len(r.Blocks) != 0 {
		t.Errorf("%d blocks are attached to a value that names none", len(r.Blocks))
	}
	huge := strings.Repeat("QUJD", 1<<20)
	h.tools["huge"] = func(_ context.Context, c *Call, args json.RawMessage) (string, error) {
		return fmt.Sprintf(`{"content":[{"type":"image","data":%q,"mimeType":"image/png"}]}`, huge), nil
	}
	r = mustRun(t, sharedEngine(t), `return [(await tools.call("huge")).content[0], (await tools.call("huge")).content[0]]`, h)
	if r.Error != nil || len(r.Blocks) != 1 || len(r.Logs) != 1 || !strings.Contains(r.Logs[0], "not attached") {
		t.Errorf("two blocks of 4 MiB: %d attached, logs %q, error %v; want one, and a note", len(r.Blocks), r.Logs, r.Error)
	}
}

// TestConsole: lines arrive as written, at most 1,000 of them, and a value
// goes before them.
func TestConsole(t *testing.T) {
	r := mustRun(t, sharedEngine(t), `console.log("a", {b: [1n]}, undefined, null, 2); console.error(new TypeError("x")); console.warn("ü"); console.info(); console.debug([])`, nil)
	if got, want := fmt.Sprintf("%q", r.Logs), `["a {\"b\":[1]} undefined null 2" "TypeError: x" "ü" "" "[]"]`; got != want {
		t.Errorf("logs = %s, want %s", got, want)
	}
	r = mustRun(t, sharedEngine(t), `for (let i = 0; i < 5000; i++) console.log("line", i); return 1`, nil)
	if n := len(r.Logs); what(r) != "1" || n != MaxLogLines+1 || r.Logs[n-1] != "note: 4000 more lines of console output were dropped" {
		t.Errorf("5,000 lines: %s, %d kept, the last is %q", what(r), n, r.Logs[n-1])
	}
	e := newEngine(t, Config{MaxOutputBytes: 2000, TimeoutMs: generous, Workers: 1})
	r = mustRun(t, e, `for (let i = 0; i < 19; i++) console.log("x".repeat(100)); return "v".repeat(1500)`, nil)
	if n := len(r.Logs); r.Error != nil || n != 5 || r.Logs[4] != "note: 15 more lines of console output were dropped" {
		t.Errorf("a value beside a full console: error %v, logs %q; want 4 lines and a note", r.Error, r.Logs)
	}
}

// TestConsole_Nothing: a program from which nothing comes is told why, others
// are left alone.
func TestConsole_Nothing(t *testing.T) {
	for source, want := range map[string]int{
		"const a = 1": 1, "if (true) { 1 }": 1, "let a\na": 1,
		"return": 0, "return undefined": 0, "console.log(1)": 0, "null": 0, "1": 0,
	} {
		r := mustRun(t, sharedEngine(t), source, nil)
		notes := 0
		for _, l := range r.Logs {
			if strings.HasPrefix(l, "note: the program returned nothing") {
				notes++
			}
		}
		if r.Error != nil || notes != want {
			t.Errorf("Run(%q) = %s with the logs %q, want %d notes", source, what(r), r.Logs, want)
		}
	}
}

// TestOutputLimit: too large a value is never cut, but described.
func TestOutputLimit(t *testing.T) {
	r := mustRun(t, sharedEngine(t), `return {items: Array.from({length: 9000}, (_, i) => ({id: i, name: "item " + i})), total: 9000}`, nil)
	if r.Error == nil || r.Error.Kind != OutputLimit || r.Value != nil {
		t.Fatalf("a value of 270 KB = %.100s, want output_limit and no value", what(r))
	}
	for _, want := range []string{"64 KiB", "{items: array of 9000 × object with 2 keys, total: number}", "slice"} {
		if !strings.Contains(r.Error.Message, want) {
			t.Errorf("output_limit says %q, want it to contain %q", r.Error.Message, want)
		}
	}
	r = mustRun(t, sharedEngine(t), `return "ü".repeat(40000)`, nil)
	if r.Error == nil || r.Error.Kind != OutputLimit {
		t.Errorf("80,000 bytes in 40,000 characters = %.60s, want output_limit", what(r))
	}
	r = mustRun(t, sharedEngine(t), `return "x".repeat(65534)`, nil)
	if r.Error != nil || len(r.Value) != 65536 {
		t.Errorf("a value of exactly the limit fails with %v", r.Error)
	}
	r = mustRun(t, sharedEngine(t), `await tools.call("echo", {}); return "x".repeat(99999)`, nil)
	if len(r.Calls) != 1 || r.Calls[0].Status != StatusOK {
		t.Errorf("calls beside output_limit = %+v, want the one that was made", r.Calls)
	}
}
