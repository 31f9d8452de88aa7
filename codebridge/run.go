package codebridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// run is one program in a worker, seen from the parent.
type run struct {
	// fixed at creation
	worker *worker
	host   Host
	cfg    Config
	blocks *blockStore
	events chan event    // from calls and from the writer; has room for all of them
	wake   chan struct{} // one slot: resting has changed

	// owned by loop
	ctx      context.Context // of the calls
	calls    []*callState    // calls[i] has id i+1
	queued   []*callState    // made, not started, in order
	lanes    map[string]bool // taken
	running  int             // started, answer not written yet
	answers  int             // sent to the child
	idle     bool            // the child has taken in all answers and waits
	logs     []string
	logBytes int
	dropped  int // log lines that came here
	unsent   int // log lines that the child says it did not send
	notes    []string
	value    json.RawMessage
	clock    clock

	// mu guards the following
	mu      sync.Mutex
	resting map[int]int // call id → how many times
}

// callState is one call of a program.
type callState struct {
	id       int
	fn, lane string
	args     json.RawMessage
	record   CallRecord // of fn "call"
	started  time.Time  // zero: waits
	ended    bool
}

// event is news about a call: answered (frame is set) or its answer written.
type event struct {
	id     int
	frame  []byte
	toolID string
	status string
}

func newRun(w *worker, h Host, cfg Config) *run {
	return &run{
		worker: w, host: h, cfg: cfg,
		blocks:  newBlockStore(),
		events:  make(chan event, 2*MaxCalls+8),
		wake:    make(chan struct{}, 1),
		lanes:   make(map[string]bool),
		resting: make(map[int]int),
	}
}

// errEnded cancels the calls of a program that has ended.
var errEnded = errors.New("the program has ended")

// do runs the program. reuse tells whether the worker can take another one.
func (r *run) do(ctx, life context.Context, source string) (_ *Result, reuse bool) {
	calls, cancel := context.WithCancelCause(ctx)
	defer cancel(errEnded)
	r.ctx = calls
	b, err := json.Marshal(runFrame{
		Source: source, MaxOutput: r.cfg.MaxOutputBytes, MaxArgs: MaxResultBytes,
		Seed: [4]uint32{rand.Uint32(), rand.Uint32(), rand.Uint32(), rand.Uint32()},
	})
	if err != nil {
		panic(err) // our own type
	}
	start := time.Now()
	r.clock.start(time.Duration(r.cfg.TimeoutMs) * time.Millisecond)
	defer r.clock.stop()
	r.worker.send(encodeFrame(frameRun, b), nil)
	failure, reuse := r.loop(ctx, life)
	if !reuse {
		r.worker.kill()
	}
	cancel(errEnded)
	res := r.result(failure)
	res.Took = time.Since(start)
	return res, reuse
}

// loop works until the program has ended. It is the only writer of the
// fields it owns.
func (r *run) loop(ctx, life context.Context) (failure *Error, reuse bool) {
	for {
		r.clock.rest(r.atRest())
		select {
		case f, ok := <-r.worker.frames:
			if !ok {
				return r.died(), false
			}
			if f.typ == frameDone {
				return r.done(f.payload)
			}
			if failure := r.take(f); failure != nil {
				return failure, false
			}
		case ev := <-r.events:
			if ctx.Err() == nil && life.Err() == nil { // else a failure is only the echo of that
				r.settle(ev)
			}
		case <-r.wake:
		case <-r.clock.timer.C:
			return r.timedOut(), false
		case <-ctx.Done():
			return &Error{Kind: Cancelled, Message: "the run was cancelled" + r.pendingText()}, false
		case <-life.Done():
			return &Error{Kind: Cancelled, Message: "the program is shutting down" + r.pendingText()}, false
		}
	}
}

// take handles a frame of the running program. An error is a child that does
// not keep to the protocol, or a limit.
func (r *run) take(f frame) *Error {
	broken := func(what string) *Error {
		return &Error{Kind: Crash, Message: "the sandbox process broke its protocol: " + what + r.pendingText()}
	}
	switch f.typ {
	case frameLog:
		var line string
		if json.Unmarshal(f.payload, &line) != nil {
			return broken("a log line that is no text")
		}
		if len(r.logs) >= MaxLogLines || r.logBytes+len(line) > r.cfg.MaxOutputBytes {
			r.dropped++
			return nil
		}
		r.logs = append(r.logs, line)
		r.logBytes += len(line)
	case frameDrop:
		n, err := strconv.ParseUint(string(f.payload), 10, 31)
		if err != nil {
			return broken("a count that is no number")
		}
		r.unsent = int(n)
	case frameIdle:
		n, err := strconv.Atoi(string(f.payload))
		if err != nil || n < 0 || n > r.answers {
			return broken("an answer that was not given")
		}
		r.idle = n == r.answers
	case frameValue:
		var o outcome
		if json.Unmarshal(f.payload, &o) != nil || len(o.Value) > r.cfg.MaxOutputBytes || r.value != nil {
			return broken("a value that is none")
		}
		r.value = o.Value
	case frameCall:
		return r.call(f.payload, broken)
	default:
		return broken(fmt.Sprintf("frame %q", f.typ))
	}
	return nil
}

// call takes in a call that the program makes.
func (r *run) call(payload []byte, broken func(string) *Error) *Error {
	head, args, _ := strings.Cut(string(payload[:min(len(payload), 32)]), " ")
	fn, _, ok := strings.Cut(args, " ")
	id, err := strconv.Atoi(head)
	if !ok || err != nil || id != len(r.calls)+1 {
		return broken("a call out of order")
	}
	list := json.RawMessage(payload[len(head)+len(fn)+2:])
	if fn != "search" && fn != "describe" && fn != "call" {
		return broken("a call of an unknown function")
	}
	var parts []json.RawMessage
	if len(list) > MaxResultBytes+16 || json.Unmarshal(list, &parts) != nil || len(parts) == 0 || len(parts) > 2 {
		return broken("a call with arguments that are no list")
	}
	if id > MaxCalls {
		return &Error{Kind: CallLimit, Message: fmt.Sprintf("more than %d searches and calls in one program; split the work over several programs, or use tools that take lists", MaxCalls) + r.pendingText()}
	}
	c := &callState{id: id, fn: fn, args: list, lane: r.host.Lane(fn, list)}
	if fn == "call" {
		_ = json.Unmarshal(parts[0], &c.record.ID) // no text: the host says so
		c.record.ID = strings.TrimSpace(c.record.ID)
	}
	r.calls = append(r.calls, c)
	r.queued = append(r.queued, c)
	r.schedule()
	return nil
}

// schedule starts what may run now, first come first served within a lane.
func (r *run) schedule() {
	blocked := make(map[string]bool)
	r.queued = slices.DeleteFunc(r.queued, func(c *callState) bool {
		if r.running >= MaxParallel || c.lane != "" && (r.lanes[c.lane] || blocked[c.lane]) {
			blocked[c.lane] = true
			return false
		}
		r.running++
		if c.lane != "" {
			r.lanes[c.lane] = true
		}
		c.started = time.Now()
		go r.perform(c.id, c.fn, c.args)
		return true
	})
}

// perform asks the host. It ends when the host answers, which may be after
// the program has ended.
func (r *run) perform(id int, fn string, args json.RawMessage) {
	raw, err := func() (_ json.RawMessage, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("internal error: %v", p)
			}
		}()
		return r.host.Call(r.ctx, &Call{Fn: fn, Args: args, run: r, id: id})
	}()
	a := r.blocks.answer(fn, raw, err)
	a.settle.ID = id
	r.events <- event{id: id, frame: encodeSettle(a.settle), toolID: a.toolID, status: a.status}
}

// settle passes an answer on to the child, or makes room when it was written.
func (r *run) settle(ev event) {
	c := r.calls[ev.id-1]
	if ev.frame == nil {
		r.running--
		r.schedule()
		return
	}
	c.ended = true
	c.record.Ms = time.Since(c.started).Milliseconds()
	c.record.Status = ev.status
	if ev.toolID != "" {
		c.record.ID = ev.toolID
	}
	delete(r.lanes, c.lane)
	r.answers++
	r.idle = false
	r.worker.send(ev.frame, func() { r.events <- event{id: ev.id} })
	r.schedule()
}

// done reads the child's last word.
func (r *run) done(payload []byte) (*Error, bool) {
	var d doneFrame
	if json.Unmarshal(payload, &d) != nil || d.Error != nil && d.Error.Kind == "" {
		return &Error{Kind: Crash, Message: "the sandbox process broke its protocol: a last word that is none"}, false
	}
	if d.Error == nil && r.value == nil {
		return &Error{Kind: Crash, Message: "the sandbox process broke its protocol: success without a value"}, false
	}
	r.unsent = max(r.unsent, d.Dropped)
	if d.Silent && d.Error == nil {
		r.notes = append(r.notes, "note: the program returned nothing; end it with return and what you want to see")
	}
	if n := len(d.Unwaited); n > 0 {
		r.notes = append(r.notes, fmt.Sprintf("note: not awaited by the program, finished before it ended: %s; write await", strings.Join(d.Unwaited[:min(n, 10)], ", ")))
	}
	return d.Error, d.Reuse
}

// died explains a child that is gone.
func (r *run) died() *Error {
	err := r.worker.failure()
	if s := r.worker.stderr.String(); strings.Contains(s, "out of memory") || strings.Contains(s, "cannot allocate memory") {
		return &Error{Kind: Memory, Message: fmt.Sprintf("the program used more than %s of memory", byteSize(r.cfg.MemoryBytes)) + r.pendingText()}
	}
	return &Error{Kind: Crash, Message: err.Error() + r.pendingText()}
}

func (r *run) timedOut() *Error {
	text := fmt.Sprintf("the program ran longer than %v", time.Duration(r.cfg.TimeoutMs)*time.Millisecond)
	if !slices.ContainsFunc(r.calls, func(c *callState) bool { return !c.ended }) {
		text += " and was not waiting for a call: look for a loop that does not end"
	}
	return &Error{Kind: Timeout, Message: text + r.pendingText() + "; do less in one program (toolSearch.codeTimeoutMs is the limit)"}
}

// pendingText names the calls that are cancelled with the program.
func (r *run) pendingText() string {
	var acted, waiting []string
	for _, c := range r.calls {
		if c.ended {
			continue
		}
		name := c.record.ID
		if c.fn != "call" {
			name = c.fn
		}
		if c.started.IsZero() {
			waiting = append(waiting, name)
		} else {
			acted = append(acted, name)
		}
	}
	list := func(s []string) string {
		if n := len(s); n > 8 {
			s = append(slices.Clone(s[:8]), fmt.Sprintf("and %d more", n-8))
		}
		return strings.Join(s, ", ")
	}
	text := ""
	if len(acted) > 0 {
		text += "; cancelled, may have acted: " + list(acted)
	}
	if len(waiting) > 0 {
		text += "; not started: " + list(waiting)
	}
	return text
}

// setResting is Call.Rest.
func (r *run) setResting(id, by int) {
	r.mu.Lock()
	r.resting[id] += by
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// atRest tells whether the program waits for nothing but calls that rest.
func (r *run) atRest() bool {
	if !r.idle || r.running == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if !c.ended && !c.started.IsZero() && r.resting[c.id] == 0 {
			return false
		}
	}
	return true
}

// result puts together what is known when the program has ended.
func (r *run) result(failure *Error) *Result {
	res := &Result{Value: r.value, Calls: []CallRecord{}, Error: failure}
	for _, c := range r.calls {
		if c.fn != "call" {
			continue
		}
		switch {
		case c.ended:
		case c.started.IsZero():
			c.record.Status = StatusNotStarted
		default:
			c.record.Status = StatusCancelled
			c.record.Ms = time.Since(c.started).Milliseconds()
		}
		res.Calls = append(res.Calls, c.record)
	}
	var skipped int
	res.Blocks, skipped = r.blocks.referredTo(res.Value)
	if skipped > 0 {
		r.notes = append(r.notes, fmt.Sprintf("note: %d content blocks are not attached, they are more than %s together", skipped, byteSize(MaxBlockBytes)))
	}
	// The value goes before the console's lines.
	room := r.cfg.MaxOutputBytes - len(res.Value)
	size := r.logBytes
	for size > room && len(r.logs) > 0 {
		size -= len(r.logs[len(r.logs)-1])
		r.logs = r.logs[:len(r.logs)-1]
		r.dropped++
	}
	if n := r.dropped + r.unsent; n > 0 {
		r.notes = append(r.notes, fmt.Sprintf("note: %d more lines of console output were dropped", n))
	}
	res.Logs = append(append(make([]string, 0, len(r.logs)+len(r.notes)), r.logs...), r.notes...)
	return res
}

// clock is a time limit that can rest.
type clock struct {
	left  time.Duration
	since time.Time // zero: it rests
	timer *time.Timer
}

func (c *clock) start(limit time.Duration) {
	c.left, c.since, c.timer = limit, time.Now(), time.NewTimer(limit)
}

func (c *clock) rest(rest bool) {
	switch {
	case rest && !c.since.IsZero():
		c.left -= time.Since(c.since)
		c.since = time.Time{}
		c.timer.Stop()
	case !rest && c.since.IsZero():
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}

func (c *clock) stop() { c.timer.Stop() }
