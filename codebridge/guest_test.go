package codebridge

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestGuest_SeesStackOverflow: recursion either works or is a trap; it never
// returns what a broken engine computed. This also holds qjs to the layout of
// memory that overflowed relies on.
func TestGuest_SeesStackOverflow(t *testing.T) {
	g, err := newGuest(DefaultMemoryBytes, cacheDir(t), func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	deep := func(n int) error {
		fn, err := g.compile(scriptName, fmt.Sprintf("%sfunction f(n) { return n ? f(n-1)+1 : 0 } return f(%d)%s", bodyOpen, n, bodyClose))
		if err != nil {
			t.Fatal(err)
		}
		return g.start(fn, false, runFrame{MaxOutput: 1 << 16, MaxArgs: 1 << 20})
	}
	for n := 100; ; n += 2 {
		err := deep(n)
		if errors.Is(err, errTrap) {
			if n < 190 {
				t.Errorf("recursion of %d calls fails, want room for 190", n)
			}
			if at := stackEnd - 4096; string(g.mem.buf[at:constantsEnd]) != string(g.stack[at:constantsEnd]) {
				t.Errorf("at %d calls the engine's constants are overwritten already", n)
			}
			break
		}
		if err != nil || n > 400 {
			t.Fatalf("recursion of %d calls: %v, want a trap by now", n, err)
		}
		if !g.reset() {
			t.Fatal("the guest cannot be reset")
		}
	}
}

// TestGuest_Reset: a guest that was reset is, byte by byte, a new one.
func TestGuest_Reset(t *testing.T) {
	var out string
	g, err := newGuest(DefaultMemoryBytes, cacheDir(t), func(l []byte) { out += string(l) + "\n" })
	if err != nil {
		t.Fatal(err)
	}
	run := func(source string) string {
		out = ""
		fn, err := g.compile(scriptName, bodyOpen+source+bodyClose)
		if err == nil {
			err = g.start(fn, false, runFrame{MaxOutput: 1 << 16, MaxArgs: 1 << 20, Seed: [4]uint32{1, 2, 3, 4}})
		}
		if err != nil {
			t.Fatalf("%q: %v", source, err)
		}
		return out
	}
	before := slices.Clone(g.mem.buf)
	const look = `return [Object.getOwnPropertyNames(globalThis), Object.getOwnPropertyNames(Array.prototype), [].x, Math.random()]`
	want := run(look)
	for _, source := range []string{
		`globalThis.x = 1; Array.prototype.x = 2; Object.defineProperty(Object.prototype, "x", {value: 3}); return 1`,
		`let s = "x"; while (s.length < 1e6) s += s; return s.length`,
		`tools.call("echo", {}); new Promise(() => {}); Promise.reject(1); return 1`,
		`throw new Error("x")`,
	} {
		run(source)
		if !g.reset() {
			t.Fatalf("after %q the guest cannot be reset", source)
		}
		if !bytes.Equal(g.mem.buf, before) {
			t.Errorf("after %q and a reset the memory is not as it was", source)
		}
		if got := run(look); got != want {
			t.Errorf("after %q and a reset a program sees %.200s, want %.200s", source, got, want)
		}
		g.reset()
	}
	run(`const a = []; for (let i = 0; i < 300; i++) a.push("x".repeat(1e5) + i); return a.length`)
	if g.reset() {
		t.Error("a guest whose memory has grown was reset, want a new one to be made")
	}
}
