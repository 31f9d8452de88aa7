package codebridge

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/fastschema/qjs"
)

// workerArg is the hidden first argument of a worker process.
const workerArg = "codebridge-worker"

// testHook, if set by a test, answers a frameTest inside the worker, with all
// the rights that a program which broke out of the engine would have.
var testHook func(request []byte) []byte

// MaybeWorker turns the process into a worker and does not return if it was
// started as one. It is the first line of main and of TestMain.
func MaybeWorker() {
	if len(os.Args) == 2 && os.Args[1] == workerArg {
		os.Exit(workerMain(os.Stdin, os.Stdout))
	}
}

// workerMain is the life of a worker process. Its standard error is the
// parent's log.
func workerMain(in io.Reader, out io.Writer) int {
	// One thread runs JavaScript, which cannot be interrupted; another must
	// be free to see the parent go.
	runtime.GOMAXPROCS(max(2, min(4, runtime.NumCPU())))
	debug.SetGCPercent(10) // of a heap that is mostly the guest's empty memory

	c := &child{out: out, in: make(chan frame, 4)}
	r := bufio.NewReaderSize(in, 64<<10)
	first, err := readFrame(r, maxFrame)
	if err != nil || first.typ != frameInit {
		fmt.Fprintln(os.Stderr, "this is the sandbox process of the program; it is started by the program itself")
		return 2
	}
	if err := json.Unmarshal(first.payload, &c.init); err != nil {
		return 2
	}
	c.sendJSON(frameHello, helloFrame{Build: buildID()})
	go c.read(r)

	if err := c.load(); err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		return 1
	}
	missing, err := confine(c.init.MemoryBytes)
	if err != nil {
		fmt.Fprintln(os.Stderr, "confine:", err)
		return 1
	}
	ready := readyFrame{Missing: missing}
	for {
		c.sendJSON(frameReady, ready)
		ready.Missing = nil
		f := <-c.in
		switch {
		case f.typ == frameRun:
			if !c.run(f.payload) {
				return 0
			}
		case f.typ == frameTest && testHook != nil:
			c.send(frameDone, testHook(f.payload))
		default:
			fmt.Fprintf(os.Stderr, "unexpected frame %q\n", f.typ)
			return 1
		}
	}
}

// child is the state of a worker process.
type child struct {
	// fixed at creation
	out  io.Writer
	in   chan frame // from read, which ends the process at the end of input
	init initFrame

	// owned by workerMain's goroutine
	guest *guest
	calls int // of the running program: not answered yet
	ended bool
	last  lastLine
	value outcome
}

// lastLine is what the prelude's finish tells.
type lastLine struct {
	Errors   []guestError
	Count    int
	Unwaited []string
	Dropped  int
}

// read passes on what the parent sends. When the parent is gone there is
// nobody to work for, whatever the program is doing.
func (c *child) read(r *bufio.Reader) {
	for {
		f, err := readFrame(r, maxFrame)
		if err != nil {
			os.Exit(0)
		}
		c.in <- f
	}
}

func (c *child) send(typ frameType, payload []byte) {
	if _, err := c.out.Write(encodeFrame(typ, payload)); err != nil {
		os.Exit(0)
	}
}

func (c *child) sendJSON(typ frameType, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own types
	}
	c.send(typ, b)
}

// load makes the first guest and lets it run once, so that all that is
// needed later is in memory before files are out of reach.
func (c *child) load() error {
	g, err := newGuest(c.init.MemoryBytes, c.init.CacheDir, c.line)
	if err != nil {
		return err
	}
	c.guest = g
	if c.init.CacheDir != "" {
		trimCache(c.init.CacheDir)
	}
	if _, err := g.compile("warm", bodyOpen+bodyClose); err != nil {
		return err
	}
	transpile("0", api.LoaderTS)
	if !g.reset() {
		return errors.New("a fresh runtime cannot be reset")
	}
	debug.FreeOSMemory()
	return nil
}

// line takes a line that the guest printed.
func (c *child) line(l []byte) {
	rest := l[1:]
	switch l[0] {
	case 'l':
		c.send(frameLog, rest)
	case 'n':
		c.send(frameDrop, rest)
	case 'c':
		c.calls++
		c.send(frameCall, rest)
	case 'v':
		if c.ended || json.Unmarshal(rest, &c.value) != nil {
			return
		}
		c.ended = true
		if c.value.OK { // known to the parent even if what follows never ends
			c.send(frameValue, rest)
		}
	case 'u':
		_ = json.Unmarshal(rest, &c.last) // a program that prints its own only confuses itself
	}
}

// run runs one program and reports whether the process can take another.
func (c *child) run(payload []byte) bool {
	var f runFrame
	if json.Unmarshal(payload, &f) != nil {
		return false
	}
	c.calls, c.ended, c.last, c.value = 0, false, lastLine{}, outcome{}
	src := parseSource(f.Source)
	failure, trap := c.execute(src, f)
	done := doneFrame{Error: failure, Unwaited: c.last.Unwaited, Dropped: c.last.Dropped, Reuse: !trap}
	c.sendJSON(frameDone, done)
	if trap {
		return false
	}
	// A program that got at the engine's modules through an import the lexer
	// did not see could have changed what lies outside of its memory.
	if !strings.Contains(src.text, "import") && c.guest.reset() {
		return true
	}
	c.guest.close()
	g, err := newGuest(c.init.MemoryBytes, "", c.line)
	if err != nil {
		return false
	}
	c.guest = g
	debug.FreeOSMemory()
	return true
}

// execute runs a program to its end. trap tells that the engine is dead.
func (c *child) execute(src *source, f runFrame) (failure *Error, trap bool) {
	u := &unit{src: src, guest: c.guest}
	if failure, err := u.prepare(); failure != nil || err != nil {
		return c.failed(failure, err)
	}
	if err := c.guest.start(u.fn, u.body.implicit, f); err != nil {
		return c.failed(nil, err)
	}
	settled := 0
	for !c.ended || c.calls > 0 {
		if c.calls == 0 {
			return &Error{Kind: Deadlock, Message: "the program waits for a promise that nothing can settle: every promise it awaits must come from openclaw.tools or be resolved by its own code"}, false
		}
		c.send(frameIdle, strconv.AppendInt(nil, int64(settled), 10))
		s, err := decodeSettle((<-c.in).payload)
		if err != nil {
			return &Error{Kind: Crash, Message: err.Error()}, true
		}
		c.calls--
		settled++
		if err := c.guest.settle(s); err != nil {
			return c.failed(nil, err)
		}
	}
	if err := c.guest.finish(); err != nil {
		return c.failed(nil, err)
	}
	switch {
	case !c.value.OK && c.value.Error != nil:
		return u.explain(*c.value.Error), false
	case len(c.last.Errors) > 0:
		e := u.explain(c.last.Errors[0])
		e.Message = "not handled: " + e.Message
		if n := c.last.Count; n > 1 {
			e.Message += fmt.Sprintf(" (and %d more)", n-1)
		}
		e.Message += "; await the promise, or catch its error"
		return e, false
	case c.value.Over != nil:
		return tooLarge(c.value.Over, f.MaxOutput), false
	}
	return nil, false
}

// failed turns an error of the guest into what the program is told.
func (c *child) failed(failure *Error, err error) (*Error, bool) {
	switch {
	case failure != nil:
		return failure, false
	case c.guest.mem.full:
		return &Error{Kind: Memory, Message: fmt.Sprintf("the program used more than %s of memory; handle less data at a time, or let the tools filter it", byteSize(c.init.MemoryBytes))}, true
	case errors.Is(err, errTrap):
		return &Error{Kind: Crash, Message: "the engine stopped: " + errTrap.Error() + "; write it without deep recursion"}, true
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return &Error{Kind: Crash, Message: "the engine stopped: " + first}, true
}

func tooLarge(o *oversize, limit int) *Error {
	size := byteSize(o.Bytes)
	if o.More {
		size = "more than " + size
	}
	return &Error{Kind: OutputLimit, Message: fmt.Sprintf(
		"the returned value is %s of JSON, the limit is %s; its shape: %s; return a part: select fields with map, filter, slice(0, n), or return counts",
		size, byteSize(limit), o.Shape)}
}

func byteSize(n int) string {
	switch {
	case n >= 1<<20:
		return strings.TrimSuffix(strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64), ".0") + " MiB"
	case n >= 10<<10:
		return strconv.Itoa(n>>10) + " KiB"
	}
	return strconv.Itoa(n) + " bytes"
}

// unit is a program and what was made of it for the engine.
type unit struct {
	src   *source
	guest *guest

	body body
	made *transpiled // nil: the body went to the engine as it is
	fn   *qjs.Value
}

// scriptName is the file of the program in the engine's stacks.
const scriptName = "script.js"

// prepare compiles the program: as it is if that is JavaScript, else without
// its types, else with HTML's escapes resolved.
func (u *unit) prepare() (*Error, error) {
	if len(u.src.tokens) == 0 {
		return &Error{Kind: Syntax, Message: "the program is empty; write JavaScript such as: return await openclaw.tools.search(\"what you need\")"}, nil
	}
	if strings.IndexByte(u.src.text, 0) >= 0 {
		return &Error{Kind: Syntax, Message: "the program contains a NUL character"}, nil
	}
	original := u.src
	ok, err := u.compile()
	if !ok && err == nil {
		if plain, changed := u.src.unescapeHTML(); changed {
			u.src = plain
			ok, err = u.compile()
		}
	}
	if ok || err != nil {
		return nil, err
	}
	u.src = original
	return u.syntaxError(), nil
}

// compile tries the ways to read the program as JavaScript or TypeScript. err
// is a failure of the engine, not of the program.
func (u *unit) compile() (ok bool, err error) {
	var bodies []body
	head, doubtful := u.src.headBody()
	for _, f := range u.src.forms() {
		if f.implicit && doubtful {
			ok, err := u.evaluate(head)
			if err != nil {
				return false, err
			}
			if !ok {
				if _, problem := transpile(head, api.LoaderTS); problem != nil {
					continue
				}
			}
		}
		bodies = append(bodies, u.src.body(f))
	}
	for _, b := range bodies {
		u.body, u.made = b, nil
		if ok, err := u.evaluate(b.text); err != nil {
			return false, err
		} else if !ok {
			continue
		}
		if u.src.closed >= 0 {
			if ok, err := u.evaluate(u.src.bracketBody()); err != nil || !ok {
				return false, err
			}
		}
		if u.needsLowering() {
			if err := u.lower(b, api.LoaderJS); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	for _, b := range bodies {
		u.body, u.fn = b, nil
		if err := u.lower(b, api.LoaderTS); err != nil {
			return false, err
		}
		if u.fn != nil {
			return u.src.closed < 0, nil
		}
	}
	return false, nil
}

// needsLowering tells whether the program has async functions beside one that
// is its whole last statement, whose promise the prelude awaits anyway.
func (u *unit) needsLowering() bool {
	n := u.src.asyncs
	if last := u.src.last; last >= 0 {
		rest := strings.TrimPrefix(u.src.text[last:], "(")
		if strings.HasPrefix(rest, "async") {
			n--
		}
	}
	return n > 0
}

// lower compiles the body as esbuild rewrites it. If that does not work u.fn
// stays what it was.
func (u *unit) lower(b body, loader api.Loader) error {
	made, problem := transpile(b.text, loader)
	if problem != nil {
		return nil
	}
	before := u.fn
	ok, err := u.evaluate(made.text)
	if err != nil {
		return err
	}
	if !ok {
		u.fn = before
		return nil
	}
	u.made = made
	return nil
}

// evaluate gives a text to the engine and keeps its value, the body as a
// function, in u.fn. ok is false if the text is not JavaScript.
func (u *unit) evaluate(text string) (ok bool, err error) {
	fn, err := u.guest.compile(scriptName, text)
	switch {
	case err == nil:
		u.fn = fn
		return true, nil
	case errors.Is(err, errTrap):
		return false, err
	}
	return false, nil
}

// syntaxError tells why the program is neither JavaScript nor TypeScript.
func (u *unit) syntaxError() *Error {
	e := &Error{Kind: Syntax}
	b := u.src.body(form{})
	if _, p := transpile(b.text, api.LoaderTS); p != nil {
		e.Message = p.message
		if p.line > 1+strings.Count(u.src.text, "\n") {
			e.Message = "Unexpected end of the program: something is not closed"
		}
		if p.line > 0 {
			e.Line, e.Column = u.src.position(b, p.line, p.column)
		}
	} else if u.src.closed >= 0 {
		line := 1 + strings.Count(u.src.text[:u.src.closed], "\n")
		e.Line, e.Column = u.src.position(b, line, u.src.closed-strings.LastIndexByte(u.src.text[:u.src.closed], '\n'))
		if line == 1 {
			e.Column = u.src.closed + 1
		}
		e.Message = fmt.Sprintf("Unexpected %q: it closes nothing", u.src.text[u.src.closed])
	} else {
		_, err := u.guest.compile(scriptName, b.text)
		if err != nil {
			first, stack, _ := strings.Cut(err.Error(), "\n")
			e.Message = strings.TrimPrefix(first, "SyntaxError: ")
			if frames := u.frames(stack); len(frames) > 0 {
				e.Line, e.Column = frames[0].line, frames[0].column
			}
		}
	}
	switch {
	case looksLikeShell(u.src.text):
		e.Message += shellHint
	case u.src.imports > 0:
		e.Message += "; import is not available here: " + useTools
	}
	return e
}

// explain puts an exception into terms of the program's own source.
func (u *unit) explain(g guestError) *Error {
	e := &Error{Kind: Exception, Message: g.Message}
	switch {
	case g.Thrown:
		e.Message = "thrown: " + g.Message
	case g.Name == "ToolError" && g.Code != "":
		e.Message = "ToolError " + g.Code + ": " + g.Message
	case g.Name != "":
		e.Message = g.Name + ": " + g.Message
	}
	e.Message += hint(g, u.src.text)
	var stack []string
	for i, f := range u.frames(g.Stack) {
		if i == 0 {
			e.Line, e.Column = f.line, f.column
		}
		if i < 5 {
			stack = append(stack, fmt.Sprintf("at %s (line %d, column %d)", f.function, f.line, f.column))
		}
	}
	e.Stack = strings.Join(stack, "\n")
	return e
}

const (
	useTools  = "find a tool with openclaw.tools.search(...) and run it with openclaw.tools.call(id, args)"
	shellHint = "; this looks like a shell command, but the program must be JavaScript: " + useTools
)

// hint is one sentence more for exceptions that models run into.
func hint(g guestError, source string) string {
	switch g.Name {
	case "ReferenceError":
		name, rest, _ := strings.Cut(strings.TrimPrefix(g.Message, "'"), " ")
		name = strings.TrimSuffix(name, "'")
		switch {
		case strings.HasPrefix(rest, "is not initialized"):
			return "; a variable cannot be used in its own declaration: give it another name than " + name
		case !strings.HasPrefix(rest, "is not defined"):
			return ""
		}
		if looksLikeShell(source) {
			return shellHint
		}
		switch name {
		case "process", "Deno", "Bun", "fs", "os", "path", "module", "exports", "__dirname", "global", "window", "document", "axios", "XMLHttpRequest", "Buffer", "http", "https", "child_process", "std":
			return "; there is no such object here: " + useTools
		case "tool_search", "tool_describe", "tool_call", "search", "describe", "call", "call_tool", "callTool":
			return "; write openclaw.tools.search(...), openclaw.tools.describe(id) or openclaw.tools.call(id, args)"
		case "URL", "URLSearchParams", "TextEncoder", "TextDecoder", "structuredClone", "crypto", "atob", "btoa", "performance", "Intl":
			return "; this is plain JavaScript without the browser's objects"
		}
		return "; declare it with const or let, or, if it is a tool, write openclaw.tools.call(" + strconv.Quote(name) + ", {...})"
	case "InternalError", "RangeError":
		if strings.Contains(g.Message, "stack overflow") || strings.Contains(g.Message, "call stack") {
			return "; too deep recursion"
		}
	}
	return ""
}

type stackFrame struct {
	function     string
	line, column int
}

// frames reads the engine's stack and keeps the program's own part of it.
func (u *unit) frames(stack string) []stackFrame {
	var out []stackFrame
	for l := range strings.Lines(stack) {
		l = strings.TrimSpace(l)
		at, place, ok := strings.Cut(l, "("+scriptName)
		if !ok {
			if place, ok = strings.CutPrefix(l, "at "+scriptName); !ok {
				continue
			}
			at = ""
		}
		f := stackFrame{function: strings.TrimSpace(strings.TrimPrefix(at, "at "))}
		if f.function == "" || f.function == "<anonymous>" {
			f.function = "program"
		}
		parts := strings.Split(strings.Trim(place, ":)"), ":")
		f.line, _ = strconv.Atoi(parts[0])
		if len(parts) > 1 {
			f.column, _ = strconv.Atoi(parts[1])
		}
		if f.line == 0 || strings.HasPrefix(f.function, "__") { // esbuild's helpers
			continue
		}
		if u.made != nil {
			f.line, f.column = u.made.position(f.line, max(f.column, 1))
		}
		f.line, f.column = u.src.position(u.body, f.line, f.column)
		if len(out) > 0 && out[len(out)-1] == f {
			continue
		}
		out = append(out, f)
	}
	return out
}
