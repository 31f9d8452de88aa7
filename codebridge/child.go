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
	lines int // of its console
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
		c.lines++
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
	c.calls, c.lines, c.ended, c.last, c.value = 0, 0, false, lastLine{}, outcome{}
	src := parseSource(f.Source)
	failure, trap := c.execute(src, f)
	done := doneFrame{Error: failure, Unwaited: c.last.Unwaited, Dropped: c.last.Dropped, Reuse: !trap}
	done.Silent = c.value.Nothing && c.lines == 0 && !src.hasWord("return")
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
