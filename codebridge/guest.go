package codebridge

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/fastschema/qjs"
	"github.com/tetratelabs/wazero/experimental"
)

var (
	//go:embed values.js
	values string
	//go:embed prelude.js
	prelude string
)

// rawJSON is JSON inside JSON.
type rawJSON = json.RawMessage

// guest is one JavaScript runtime, inside the child. It and unit are the only
// users of qjs, by its public API alone.
//
// A guest serves one program at a time. Between two programs reset puts its
// whole memory back to what it was before the first: all that JavaScript can
// change lives there, so the next program cannot tell it was not the first.
// That is 20 times faster than a new runtime, of which qjs leaks a part.
//
// Its methods turn the panics of qjs into errors; after one of those (a trap)
// the guest is dead.
type guest struct {
	rt    *qjs.Runtime
	js    *qjs.Context
	api   [3]*qjs.Value // start, settle, finish of the prelude
	undef *qjs.Value
	lines *lineWriter
	mem   *linearMemory

	// its memory before any program
	clean []stretch
	stack []byte // its beginning, up to stackLast
	size  int
}

const (
	apiStart = iota
	apiSettle
	apiFinish
)

// noFolder is where the guest's file system would be. It can never exist:
// whatever touches a file traps.
func noFolder() string {
	if runtime.GOOS == "windows" {
		return `\\?\NUL\none`
	}
	return "/dev/null/none"
}

// importName stands for the word import in front of a parenthesis: as long,
// so that columns stay.
const importName = "imp0rt"

// newGuest makes a runtime. emit gets each line that the prelude prints; the
// slice is only valid during the call.
func newGuest(memory int, cacheDir string, emit func(line []byte)) (g *guest, err error) {
	defer trapped(&err)
	g = &guest{lines: &lineWriter{emit: emit}, mem: &linearMemory{limit: memory + baseMemory}}
	ctx := experimental.WithMemoryAllocator(context.Background(), g.mem)
	g.rt, err = qjs.New(qjs.Option{
		CWD: noFolder(), Context: ctx, CacheDir: cacheDir,
		Stdout: g.lines, Stderr: io.Discard,
	})
	if err != nil {
		return nil, err
	}
	g.js = g.rt.Context()
	g.undef = g.js.NewUndefined()
	host, err := g.js.Eval("host", qjs.Code(fmt.Sprintf(`({maxLines: %d, importName: %q})`, MaxLogLines, importName)))
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	writer, err := g.js.Eval("values", qjs.Code(values))
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	host.SetPropertyStr("values", writer)
	factory, err := g.js.Eval("prelude", qjs.Code(prelude))
	if err != nil {
		return nil, fmt.Errorf("prelude: %w", err)
	}
	api, err := g.js.Invoke(factory, g.undef, host)
	if err != nil {
		return nil, fmt.Errorf("prelude: %w", err)
	}
	for i, name := range []string{"start", "settle", "finish"} {
		g.api[i] = api.GetPropertyStr(name)
	}
	// Memory that is there already need not be grown by every program: one
	// that does cannot be reset.
	g.rt.FreeHandle(g.rt.Malloc(spareMemory))
	g.clean = stretches(g.mem.buf)
	g.stack = slices.Clone(g.mem.buf[:stackLast])
	g.size = len(g.mem.buf)
	return g, nil
}

// reset makes the guest as it was. It reports false if it cannot: memory
// never shrinks, and a program that was given more could tell.
func (g *guest) reset() bool {
	if len(g.mem.buf) != g.size {
		return false
	}
	for _, s := range g.clean {
		if part := g.mem.buf[s.from:s.to]; s.bytes != nil {
			copy(part, s.bytes)
		} else {
			blank(part)
		}
	}
	g.lines.buf = g.lines.buf[:0]
	return true
}

// stretch is a part of a guest's memory that begins and ends with a page.
type stretch struct {
	from, to int
	bytes    []byte // nil: zeros
}

// stretches keeps what is in memory. Most pages are zeros, and take no space.
func stretches(m []byte) (all []stretch) {
	isZero := func(at int) bool { return bytes.Equal(m[at:at+len(zeroPage)], zeroPage[:]) }
	for from := 0; from < len(m); {
		zero, to := isZero(from), from+len(zeroPage)
		for to < len(m) && isZero(to) == zero {
			to += len(zeroPage)
		}
		s := stretch{from: from, to: to}
		if !zero {
			s.bytes = slices.Clone(m[from:to])
		}
		all = append(all, s)
		from = to
	}
	return all
}

// clearPages makes memory zero. Pages that are zero already are not written,
// so they take no real memory.
func clearPages(m []byte) {
	for page := range slices.Chunk(m, len(zeroPage)) {
		if !bytes.Equal(page, zeroPage[:]) {
			clear(page)
		}
	}
}

var zeroPage [4096]byte

const (
	baseMemory  = 1 << 20 // what the engine itself takes of a guest's memory, and a little
	spareMemory = 6 << 20 // what a program may use without growing it
)

// linearMemory is the memory of a guest. It never moves, so growing costs
// nothing. Going over the limit is a trap that the program cannot catch: the
// engine does not survive a failed allocation in every place.
type linearMemory struct {
	limit int
	buf   []byte
	full  bool
}

var errFull = errors.New("out of memory")

func (m *linearMemory) Allocate(_, _ uint64) experimental.LinearMemory {
	m.buf = make([]byte, 0, m.limit)
	return m
}

func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > uint64(m.limit) {
		m.full = true
		panic(errFull)
	}
	m.buf = m.buf[:size]
	return m.buf
}

func (m *linearMemory) Free() { m.buf = nil }

// close lets go of a guest that will not be used again.
func (g *guest) close() {
	defer func() { _ = recover() }() // qjs panics when it frees a dead module
	g.rt.Close()
}

// compile evaluates text, whose value must be a function.
func (g *guest) compile(name, text string) (fn *qjs.Value, err error) {
	defer trapped(&err)
	fn, err = g.js.Eval(name, qjs.Code(text))
	if g.overflowed() {
		return nil, errTrap
	}
	return fn, err
}

// start calls the body and runs all jobs.
func (g *guest) start(body *qjs.Value, implicit bool, f runFrame) (err error) {
	defer trapped(&err)
	options := g.str(fmt.Sprintf(`{"implicit":%t,"maxOutput":%d,"maxArgs":%d,"seed":[%d,%d,%d,%d]}`,
		implicit, f.MaxOutput, f.MaxArgs, f.Seed[0], f.Seed[1], f.Seed[2], f.Seed[3]))
	defer options.Free()
	return g.invoke(apiStart, body, options)
}

// settle hands an answer in and runs all jobs. The answer goes as one text,
// because each crossing of a value costs several calls into the engine.
func (g *guest) settle(s settleFrame) (err error) {
	defer trapped(&err)
	text := g.str(fmt.Sprintf("[%d,%t,\"%c\",%q]\n%s", s.ID, s.OK, s.Alias, s.Big, s.JSON))
	defer text.Free()
	return g.invoke(apiSettle, text)
}

// finish asks for the last line.
func (g *guest) finish() (err error) {
	defer trapped(&err)
	return g.invoke(apiFinish)
}

func (g *guest) invoke(fn int, args ...*qjs.Value) error {
	v, err := g.js.Invoke(g.api[fn], g.undef, args...)
	if err == nil {
		v.Free()
		// The evaluation of a script whose value is no promise drains all jobs.
		if v, err = g.js.Eval("drain", qjs.Code("0")); err == nil {
			v.Free()
		}
	}
	if g.overflowed() {
		return errTrap
	}
	return err
}

// The engine has a stack of 64 KiB, enough for some 200 calls, and does not
// see its end: below it lie the engine's own constants, then its variables.
// These are their places in the memory of qjs v0.0.6.
const (
	constantsEnd = 96_256
	stackEnd     = 99_872
	stackLast    = stackEnd + 512 // nothing that fits the stack gets here
)

// overflowed tells whether the stack has run over its end, after which the
// engine may compute nonsense instead of trapping.
func (g *guest) overflowed() bool {
	if g.stack == nil {
		return false
	}
	m := g.mem.buf
	return !bytes.Equal(m[:constantsEnd], g.stack[:constantsEnd]) || !bytes.Equal(m[stackEnd:stackLast], g.stack[stackEnd:stackLast])
}

// str is qjs's NewString without its leak of the C string.
func (g *guest) str(s string) *qjs.Value {
	h := g.rt.NewStringHandle(s)
	defer h.Free()
	return g.js.Call("QJS_NewString", g.js.Raw(), h.Raw())
}

// errTrap is a failure of the engine itself, after which it is dead.
var errTrap = errors.New("too deep recursion or an internal error of the engine")

func trapped(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", errTrap, p)
	}
}

// lineWriter cuts what the guest prints into lines.
type lineWriter struct {
	buf  []byte
	emit func([]byte)
}

// maxLine is more than any line of the prelude; what is longer was not
// written by it.
const maxLine = maxFrame - 16

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := slices.Index(p, '\n')
		if i < 0 {
			if len(w.buf)+len(p) <= maxLine {
				w.buf = append(w.buf, p...)
			}
			break
		}
		line := p[:i]
		if len(w.buf) > 0 {
			w.buf = append(w.buf, line...)
			line = w.buf
		}
		if len(line) > 0 && len(line) <= maxLine {
			w.emit(line)
		}
		w.buf = w.buf[:0]
		p = p[i+1:]
	}
	return n, nil
}
