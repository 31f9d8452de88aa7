package codebridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hostile children stand for a worker in which a program has broken out of
// the engine. Each behaves well until it gets a program.
var hostile = map[string]func(in *bufio.Reader, out io.Writer){
	"floods with lines": func(_ *bufio.Reader, out io.Writer) {
		for {
			say(out, frameLog, `"`+strings.Repeat("x", 1000)+`"`)
		}
	},
	"floods with large lines": func(_ *bufio.Reader, out io.Writer) {
		for {
			say(out, frameLog, `"`+strings.Repeat("x", maxFrame-100)+`"`)
		}
	},
	"floods with garbage": func(_ *bufio.Reader, out io.Writer) {
		for {
			_, _ = out.Write(bytes.Repeat([]byte{0, 0, 0, 9, 'l', 0xff}, 10000))
		}
	},
	"claims a huge length": func(_ *bufio.Reader, out io.Writer) {
		_, _ = out.Write([]byte{0xff, 0xff, 0xff, 0xff, 'l'})
		select {}
	},
	"claims the largest length and stalls": func(_ *bufio.Reader, out io.Writer) {
		_, _ = out.Write(binary.BigEndian.AppendUint32(nil, maxFrame))
		_, _ = out.Write([]byte("l\""))
		select {}
	},
	"claims no length":           func(_ *bufio.Reader, out io.Writer) { _, _ = out.Write(make([]byte, 64)); select {} },
	"half a frame, then silence": func(_ *bufio.Reader, out io.Writer) { _, _ = out.Write([]byte{0, 0, 0, 9, 'l', '"'}); select {} },
	"half a frame, then death":   func(_ *bufio.Reader, out io.Writer) { _, _ = out.Write([]byte{0, 0, 0, 9, 'l', '"'}) },
	"silence":                    func(*bufio.Reader, io.Writer) { select {} },
	"death":                      func(*bufio.Reader, io.Writer) {},
	"an unknown frame":           func(_ *bufio.Reader, out io.Writer) { say(out, 'z', "1"); select {} },
	"a frame of the parent":      func(_ *bufio.Reader, out io.Writer) { say(out, frameRun, "{}"); select {} },
	"ready again":                func(_ *bufio.Reader, out io.Writer) { say(out, frameReady, "{}"); select {} },
	"a log line that is no text": func(_ *bufio.Reader, out io.Writer) { say(out, frameLog, "{}"); select {} },
	"a call out of order":        func(_ *bufio.Reader, out io.Writer) { say(out, frameCall, `5 call ["echo",{}]`); select {} },
	"a call twice": func(_ *bufio.Reader, out io.Writer) {
		say(out, frameCall, `1 call ["echo",{}]`)
		say(out, frameCall, `1 call ["echo",{}]`)
		select {}
	},
	"a call with a negative id":     func(_ *bufio.Reader, out io.Writer) { say(out, frameCall, `-1 call ["echo",{}]`); select {} },
	"a call of an unknown function": func(_ *bufio.Reader, out io.Writer) { say(out, frameCall, `1 exec ["echo",{}]`); select {} },
	"a call without arguments":      func(_ *bufio.Reader, out io.Writer) { say(out, frameCall, `1 call []`); select {} },
	"a call with broken arguments":  func(_ *bufio.Reader, out io.Writer) { say(out, frameCall, `1 call ["echo",{]`); select {} },
	"a call of two values":          func(_ *bufio.Reader, out io.Writer) { say(out, frameCall, `1 call ["echo",{}] ["echo",{}]`); select {} },
	"a call that is nothing":        func(_ *bufio.Reader, out io.Writer) { say(out, frameCall, ``); select {} },
	"an answer that was not given":  func(_ *bufio.Reader, out io.Writer) { say(out, frameIdle, "3"); select {} },
	"a count that is none":          func(_ *bufio.Reader, out io.Writer) { say(out, frameDrop, "-3"); select {} },
	"a value that is none":          func(_ *bufio.Reader, out io.Writer) { say(out, frameValue, `{"OK":true,"Value":`); select {} },
	"two values": func(_ *bufio.Reader, out io.Writer) {
		say(out, frameValue, `{"OK":true,"Value":1}`)
		say(out, frameValue, `{"OK":true,"Value":2}`)
		select {}
	},
	"a value over the limit": func(_ *bufio.Reader, out io.Writer) {
		say(out, frameValue, `{"OK":true,"Value":"`+strings.Repeat("x", DefaultMaxOutputBytes)+`"}`)
		select {}
	},
	"success without a value":  func(_ *bufio.Reader, out io.Writer) { say(out, frameDone, `{"Reuse":true}`); select {} },
	"a last word that is none": func(_ *bufio.Reader, out io.Writer) { say(out, frameDone, `[`); select {} },
	"more calls than there may be": func(_ *bufio.Reader, out io.Writer) {
		for i := 1; ; i++ {
			say(out, frameCall, strconv.Itoa(i)+` call ["hang",{}]`)
		}
	},
	"calls for large results that it does not read": func(_ *bufio.Reader, out io.Writer) {
		for i := 1; i <= MaxCalls; i++ {
			say(out, frameCall, strconv.Itoa(i)+` call ["large",{}]`)
		}
		select {}
	},
	"lies about being done, then goes on": func(_ *bufio.Reader, out io.Writer) {
		say(out, frameValue, `{"OK":true,"Value":1}`)
		say(out, frameDone, `{"Reuse":true}`)
		say(out, frameDone, `{"Reuse":true}`)
		say(out, frameLog, `"x"`)
		select {}
	},
	"is done and never ready": func(_ *bufio.Reader, out io.Writer) {
		say(out, frameValue, `{"OK":true,"Value":1}`)
		say(out, frameDone, `{"Reuse":false}`)
		select {}
	},
}

func say(out io.Writer, typ frameType, payload string) {
	if _, err := out.Write(encodeFrame(typ, []byte(payload))); err != nil {
		os.Exit(0)
	}
}

const hostileCache = "hostile:" // a cache folder of this name asks for a hostile child

// maybeHostile makes this process a hostile child if the parent asks for one,
// else passes the parent's first frame on to a real worker.
func maybeHostile() {
	if len(os.Args) != 2 || os.Args[1] != workerArg {
		return
	}
	in := bufio.NewReader(os.Stdin)
	f, err := readFrame(in, maxFrame)
	if err != nil {
		os.Exit(2)
	}
	var init initFrame
	if json.Unmarshal(f.payload, &init) != nil || !strings.HasPrefix(init.CacheDir, hostileCache) {
		os.Exit(workerMain(io.MultiReader(bytes.NewReader(encodeFrame(f.typ, f.payload)), in), os.Stdout))
	}
	say(os.Stdout, frameHello, fmt.Sprintf(`{"Build":%q}`, buildID()))
	say(os.Stdout, frameReady, `{}`)
	if _, err := readFrame(in, maxFrame); err == nil { // the program
		hostile[strings.TrimPrefix(init.CacheDir, hostileCache)](in, os.Stdout)
	}
	os.Exit(0)
}

// TestHostileChildren: whatever a child says or does not say, the run ends
// within its limit, as a crash or a time-out, and the parent keeps its memory.
func TestHostileChildren(t *testing.T) {
	large := text(strings.Repeat("x", MaxResultBytes-1000))
	h := &fakeHost{tools: map[string]toolFunc{"large": func(context.Context, *Call, json.RawMessage) (string, error) { return large, nil }}}
	before := heap()
	for name := range hostile {
		e := New(Options{Config: Config{Workers: 1, TimeoutMs: 300, QueueMs: generous}})
		e.cacheDir = hostileCache + name
		start := time.Now()
		r := mustRun(t, e, `return 1`, h)
		took := time.Since(start)
		switch {
		case strings.Contains(name, "done"):
			if what(r) != "1" {
				t.Errorf("a child that %s = %s, want its value", name, what(r))
			}
		case r.Error == nil || r.Error.Kind != Crash && r.Error.Kind != Timeout && r.Error.Kind != CallLimit:
			t.Errorf("a child that sends %s = %s, want a crash or a timeout", name, what(r))
		}
		if took > 300*time.Millisecond+late {
			t.Errorf("a child that sends %s: the run took %v", name, took)
		}
		if n := len(r.Logs); n > MaxLogLines+1 {
			t.Errorf("a child that sends %s: %d lines were kept", name, n)
		}
		if err := e.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if e.total != 0 {
			t.Errorf("a child that sends %s: %d workers are left", name, e.total)
		}
		eventually(t, "after a child that sends "+name+" the parent's memory is given back", func() bool { return heap()-before < 20<<20 })
	}
}

// FuzzReadFrame: the reader takes in what the writer wrote, refuses what is
// too long, and never holds more than arrived.
func FuzzReadFrame(f *testing.F) {
	f.Add(encodeFrame(frameLog, []byte(`"x"`)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{0, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 1, 'i'})
	f.Add([]byte{0, 0x3f, 0xff, 0xff, 'l', 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 16
		r := bufio.NewReader(bytes.NewReader(b))
		read := 0
		for {
			fr, err := readFrame(r, limit)
			if err != nil {
				break
			}
			again := encodeFrame(fr.typ, fr.payload)
			if !bytes.Equal(again, b[read:read+len(again)]) {
				t.Fatalf("frame at %d reads as %q", read, again)
			}
			if len(again) > limit+4 {
				t.Fatalf("a frame of %d bytes was read, the limit is %d", len(again), limit)
			}
			read += len(again)
		}
	})
}

// FuzzRun: no sequence of frames makes the parent panic or lets it keep more
// than its limits.
func FuzzRun(f *testing.F) {
	for _, s := range []string{`1 call ["echo",{"a":1}]`, `1 search ["x"]`, `{"OK":true,"Value":{"a":[1]}}`, `"line"`, "3", `{"Error":{"kind":"exception"}}`, "", "[", "-1"} {
		for _, typ := range "lncivdzr" {
			f.Add(byte(typ), s, byte('c'), `1 call ["x",{}]`)
		}
	}
	f.Fuzz(func(t *testing.T, t1 byte, p1 string, t2 byte, p2 string) {
		h := &fakeHost{}
		r := newRun(&worker{stop: make(chan struct{}), out: make(chan outgoing, 8)}, h, Config{}.withDefaults())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.ctx = ctx
		var failure *Error
		for _, fr := range []frame{{frameType(t1), []byte(p1)}, {frameType(t2), []byte(p2)}} {
			if fr.typ == frameDone {
				failure, _ = r.done(fr.payload)
			} else {
				failure = r.take(fr)
			}
			if failure != nil {
				break
			}
		}
		res := r.result(failure)
		size := len(res.Value)
		for _, l := range res.Logs {
			size += len(l)
		}
		if size > r.cfg.MaxOutputBytes+200 {
			t.Fatalf("%d bytes are kept", size)
		}
		if res.Value != nil && !json.Valid(res.Value) {
			t.Fatalf("the value %q is kept", res.Value)
		}
	})
}

// FuzzSettle: what the parent sends is what the child reads.
func FuzzSettle(f *testing.F) {
	f.Add(uint16(1), true, byte('s'), "int1:", `{"a":1}`)
	f.Fuzz(func(t *testing.T, id uint16, ok bool, alias byte, prefix, body string) {
		if len(prefix) > 255 {
			return
		}
		want := settleFrame{ID: int(id), OK: ok, Alias: alias, Big: prefix, JSON: []byte(body)}
		b := encodeSettle(want)
		got, err := decodeSettle(b[5:])
		if err != nil || got.ID != want.ID || got.OK != ok || got.Alias != alias || got.Big != prefix || string(got.JSON) != body {
			t.Errorf("decodeSettle(encodeSettle(%+v)) = %+v, %v", want, got, err)
		}
		for n := range len(b) - 5 {
			_, _ = decodeSettle(b[5 : 5+n]) // must not panic
		}
	})
}
