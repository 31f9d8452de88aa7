package codebridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// Engine runs programs in worker processes, started on demand.
type Engine struct {
	// fixed at creation
	cfg      Config
	cacheDir string
	log      *slog.Logger
	life     context.Context // ended by Close
	end      context.CancelCauseFunc

	idleFor     time.Duration // how long a worker waits for a program
	maxPrograms int           // of one worker

	// mu guards the following
	mu       sync.Mutex
	closed   bool
	idle     []*worker // ready for a program, the last used last
	total    int       // workers that are idle, busy or starting
	starting int       // those of total that cannot take a program yet
	queue    queue
	told     bool           // what the confinement lacks was logged
	working  sync.WaitGroup // goroutines and processes that Close waits for
}

const (
	helloWithin = 10 * time.Second // of a process that has only to start
	readyWithin = 60 * time.Second // of a process that has to compile the engine
)

var errClosed = errors.New("the code engine is closed")

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.Workers, min(runtime.NumCPU(), MaxWorkers))
	def(&c.QueueMs, DefaultQueueMs)
	def(&c.MaxOutputBytes, DefaultMaxOutputBytes)
	def(&c.MemoryBytes, DefaultMemoryBytes)
	def(&c.TimeoutMs, DefaultTimeoutMs)
	return c
}

// New makes an engine; no process is started.
func New(o Options) *Engine {
	e := &Engine{
		cfg: o.Config.withDefaults(), cacheDir: o.CacheDir, log: o.Logger,
		idleFor: 5 * time.Minute, maxPrograms: 1000,
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.life, e.end = context.WithCancelCause(context.Background())
	if e.cacheDir != "" {
		if err := usableFolder(e.cacheDir); err != nil {
			e.log.Warn("no cache for the code engine", "folder", e.cacheDir, "err", err)
			e.cacheDir = ""
		}
	}
	return e
}

// usableFolder makes a folder and checks that nobody else can put native code
// into it.
func usableFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !private(info) {
		return errors.New("not a folder of ours with mode 0700")
	}
	return nil
}

// buildID is the same in two processes of one build.
var buildID = sync.OnceValue(func() string {
	h := sha256.New()
	if info, ok := debug.ReadBuildInfo(); ok {
		_, _ = h.Write([]byte(info.String()))
	}
	_, _ = h.Write([]byte(values + prelude))
	return hex.EncodeToString(h.Sum(nil)[:8])
})

// Probe starts a worker process and waits for its first frame, which it sends
// before it loads the engine. An error means that programs cannot run here,
// or could not when one was last tried; see Check.
func (e *Engine) Probe(ctx context.Context) error {
	if b, err := os.ReadFile(e.marker()); err == nil && strings.HasPrefix(string(b), buildID()) {
		_, why, _ := strings.Cut(string(b), "\n")
		return fmt.Errorf("the code engine failed when it was last started: %s", strings.TrimSpace(why))
	}
	w, err := startWorker(e.init())
	if err != nil {
		return fmt.Errorf("sandbox process: %w", err)
	}
	err = e.hello(ctx, w)
	w.kill()
	<-w.dead
	return err
}

// Check starts a worker, waits until it could run a program and ends it. If
// that works a failure that Probe remembers is forgotten.
func (e *Engine) Check(ctx context.Context) error {
	w, err := e.start(ctx)
	if err != nil {
		return err
	}
	w.kill()
	<-w.dead
	return nil
}

// Close ends all workers and the programs in them, and waits for them.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	idle := e.idle
	e.idle = nil
	e.total -= len(idle)
	for t := e.queue.pop(); t != nil; t = e.queue.pop() {
		t.got <- grant{err: errClosed}
	}
	e.mu.Unlock()
	e.end(errClosed)
	for _, w := range idle {
		w.kill()
		<-w.dead
	}
	e.working.Wait()
	return nil
}

// Run runs a program to its end, its limit, or the end of ctx. The returned
// error is only for misuse (Close was called); all else is in Result.Error.
func (e *Engine) Run(ctx context.Context, p Program, h Host) (*Result, error) {
	if len(p.Source) > MaxSourceBytes {
		return failed(Syntax, fmt.Sprintf("the program is %d bytes long, the limit is %d", len(p.Source), MaxSourceBytes)), nil
	}
	w, err := e.acquire(ctx, p.Client)
	if err != nil {
		return refused(err)
	}
	r := newRun(w, h, e.cfg)
	res, reuse := r.do(ctx, e.life, p.Source)
	e.release(w, reuse)
	return res, nil
}

func failed(kind Kind, message string) *Result {
	return &Result{Logs: []string{}, Calls: []CallRecord{}, Error: &Error{Kind: kind, Message: message}}
}

var errBusy = errors.New("busy")

// refused turns an error of acquire into a result.
func refused(err error) (*Result, error) {
	switch {
	case errors.Is(err, errClosed):
		return nil, err
	case errors.Is(err, errBusy):
		return failed(Busy, "all workers are busy with other programs and the queue is full; nothing was run, try again in a few seconds"), nil
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return failed(Cancelled, "cancelled before the program started"), nil
	}
	return failed(Crash, fmt.Sprintf("the sandbox cannot be started: %v; nothing was run; set toolSearch.mode: tools to work without it", err)), nil
}

// acquire returns a worker that is ready, waiting for one in the queue.
func (e *Engine) acquire(ctx context.Context, client string) (*worker, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, errClosed
	}
	for n := len(e.idle); n > 0; n = len(e.idle) {
		w := e.idle[n-1]
		e.idle = e.idle[:n-1]
		w.idle.Stop()
		select {
		case <-w.frames: // it has no reason to speak: it died
			e.total--
			e.retireLocked(w)
			continue
		default:
		}
		e.mu.Unlock()
		return w, nil
	}
	t := &ticket{client: client, got: make(chan grant, 1)}
	if !e.queue.push(t) {
		e.mu.Unlock()
		return nil, errBusy
	}
	if e.total < e.cfg.Workers {
		e.growLocked()
	}
	e.mu.Unlock()

	timer := time.NewTimer(time.Duration(e.cfg.QueueMs) * time.Millisecond)
	defer timer.Stop()
	var why error
	for why == nil {
		select {
		case g := <-t.got:
			return g.worker, g.err
		case <-ctx.Done():
			why = ctx.Err()
		case <-timer.C:
			why = errBusy
			e.mu.Lock()
			if e.starting > 0 { // a process that is being started is no queue; it has its own limit
				why = nil
				timer.Reset(50 * time.Millisecond)
			}
			e.mu.Unlock()
		}
	}
	e.mu.Lock()
	waiting := e.queue.remove(t)
	e.mu.Unlock()
	if !waiting { // answered in the same moment
		if g := <-t.got; g.worker != nil {
			e.offer(g.worker)
		}
	}
	return nil, why
}

// growLocked starts one more worker in the background.
func (e *Engine) growLocked() {
	e.total++
	e.starting++
	e.working.Go(func() {
		w, err := e.start(e.life)
		e.mu.Lock()
		e.starting--
		if err == nil {
			e.mu.Unlock()
			e.offer(w)
			return
		}
		e.total--
		if e.total == 0 { // nobody else will come for those who wait
			for t := e.queue.pop(); t != nil; t = e.queue.pop() {
				t.got <- grant{err: err}
			}
		}
		e.mu.Unlock()
		if !errors.Is(err, errClosed) {
			e.log.Error("the code engine does not start", "err", err)
		}
	})
}

// start starts a worker and waits until it can take a program.
func (e *Engine) start(ctx context.Context) (*worker, error) {
	w, err := startWorker(e.init())
	if err != nil {
		return nil, err
	}
	if err := e.hello(ctx, w); err != nil {
		w.kill()
		<-w.dead
		return nil, err
	}
	late, cancel := context.WithTimeoutCause(ctx, readyWithin, errors.New("sandbox process: not ready in time"))
	defer cancel()
	f, err := w.expect(late, frameReady)
	if err != nil {
		w.kill()
		<-w.dead
		if late.Err() == nil {
			e.mark(err)
		}
		return nil, err
	}
	e.unmark()
	var ready readyFrame
	_ = json.Unmarshal(f.payload, &ready) // only told to the log
	e.mu.Lock()
	told := e.told
	e.told = true
	e.mu.Unlock()
	if len(ready.Missing) > 0 && !told {
		e.log.Warn("the sandbox process is confined less than it could be", "missing", ready.Missing)
	}
	return w, nil
}

// hello waits for the first frame of a worker and checks that it is of our
// own build.
func (e *Engine) hello(ctx context.Context, w *worker) error {
	ctx, cancel := context.WithTimeoutCause(ctx, helloWithin, errors.New("sandbox process: no answer in time"))
	defer cancel()
	f, err := w.expect(ctx, frameHello)
	if err != nil {
		return err
	}
	var hello helloFrame
	if err := json.Unmarshal(f.payload, &hello); err != nil || hello.Build != buildID() {
		return errors.New("sandbox process: another version of this program answered; restart it")
	}
	return nil
}

func (e *Engine) init() initFrame {
	return initFrame{CacheDir: e.cacheDir, MemoryBytes: e.cfg.MemoryBytes}
}

// offer gives a ready worker to the next program that waits, or keeps it.
func (e *Engine) offer(w *worker) {
	e.mu.Lock()
	if e.closed {
		e.total--
		e.retireLocked(w)
		e.mu.Unlock()
		return
	}
	if t := e.queue.pop(); t != nil {
		e.mu.Unlock()
		t.got <- grant{worker: w}
		return
	}
	w.idle = time.AfterFunc(e.idleFor, func() { e.dismiss(w) })
	e.idle = append(e.idle, w)
	e.mu.Unlock()
}

// dismiss ends a worker that nobody needed for long.
func (e *Engine) dismiss(w *worker) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.idle, w); i >= 0 {
		e.idle = slices.Delete(e.idle, i, i+1)
		e.total--
		e.retireLocked(w)
	}
}

// release takes back a worker after a program. It is offered again once it
// has made itself ready; one that cannot be used again is replaced, so that
// the next program finds a warm one.
func (e *Engine) release(w *worker, reuse bool) {
	w.programs++
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		reuse = false
	}
	if !reuse || w.programs >= e.maxPrograms {
		e.replaceLocked(w)
		return
	}
	e.working.Go(func() {
		ctx, cancel := context.WithTimeoutCause(e.life, readyWithin, errors.New("not ready again in time"))
		defer cancel()
		if _, err := w.expect(ctx, frameReady); err != nil {
			e.mu.Lock()
			e.replaceLocked(w)
			e.mu.Unlock()
			return
		}
		e.offer(w)
	})
}

// replaceLocked ends a worker that was counted and starts another unless one
// is ready or on its way.
func (e *Engine) replaceLocked(w *worker) {
	e.total--
	e.retireLocked(w)
	if !e.closed && (e.queue.len() > e.starting || e.total == 0) {
		e.growLocked()
	}
}

// retireLocked ends a worker that is not counted any more, in the background.
func (e *Engine) retireLocked(w *worker) {
	w.kill()
	e.working.Go(func() { <-w.dead })
}

// The marker remembers over restarts that this build could not start its
// engine, so that the next start offers another mode at once.

func (e *Engine) marker() string {
	if e.cacheDir == "" {
		return ""
	}
	return filepath.Join(e.cacheDir, "sandbox-failed")
}

func (e *Engine) mark(why error) {
	if m := e.marker(); m != "" {
		if err := os.WriteFile(m, []byte(buildID()+"\n"+why.Error()+"\n"), 0o600); err != nil {
			e.log.Warn("the failure of the code engine is not remembered", "err", err)
		}
	}
}

func (e *Engine) unmark() {
	if m := e.marker(); m != "" {
		_ = os.Remove(m) // mostly not there
	}
}
