package codebridge

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// worker is a child process as the parent sees it. One goroutine reads its
// frames, one writes to it, so that a child that stalls cannot stall us.
type worker struct {
	// fixed at creation
	cmd    *exec.Cmd
	folder string
	frames chan frame    // closed by read when the child has said its last
	out    chan outgoing // drained by write
	stop   chan struct{} // closed by kill
	dead   chan struct{} // closed by read when the process is reaped
	stderr *head
	once   sync.Once

	// owned by whoever holds the worker
	programs int
	idle     *time.Timer // ends it if nobody takes it

	readErr error // why frames was closed; set before that
}

type outgoing struct {
	bytes   []byte
	written func() // called after the write, also a failed one; may be nil
}

// executable is this program's own file. On Linux it is the running one even
// if the file was replaced since.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		if _, err := os.Stat("/proc/self/exe"); err == nil {
			return "/proc/self/exe", nil
		}
	}
	return os.Executable()
}

// startWorker starts a child and tells it init. It does not wait for an
// answer.
func startWorker(init initFrame) (_ *worker, err error) {
	path, err := executable()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "toolsearch-sandbox-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(folder)
		}
	}()
	w := &worker{
		folder: folder,
		frames: make(chan frame, 16),
		out:    make(chan outgoing, MaxCalls+8),
		stop:   make(chan struct{}),
		dead:   make(chan struct{}),
		stderr: &head{limit: 4 << 10},
	}
	w.cmd = exec.Command(path, workerArg) //nolint:noctx // kill ends it
	w.cmd.Args[0] = filepath.Base(os.Args[0])
	w.cmd.Dir = folder
	w.cmd.Env = []string{} // not nil, which would be ours
	w.cmd.Stderr = w.stderr
	w.cmd.SysProcAttr = processAttributes()
	w.cmd.WaitDelay = time.Second
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go w.read(out)
	go w.write(in)
	b, err := json.Marshal(init)
	if err != nil {
		panic(err) // our own type
	}
	w.send(encodeFrame(frameInit, b), nil)
	return w, nil
}

// read passes the child's frames on until they end or make no sense, then
// ends and reaps the process.
func (w *worker) read(out io.Reader) {
	r := bufio.NewReaderSize(out, 64<<10)
	for w.readErr == nil {
		f, err := readFrame(r, maxFrame)
		if err != nil {
			w.readErr = err
			break
		}
		if f.typ == frameHello && runtime.GOOS != "windows" {
			_ = os.Remove(w.folder) // the child keeps an empty folder that is nowhere
		}
		select {
		case w.frames <- f:
		case <-w.stop:
			w.readErr = errKilled
		}
	}
	close(w.frames)
	w.kill()
	_ = w.cmd.Wait()
	_ = os.Remove(w.folder)
	close(w.dead)
}

var errKilled = errors.New("killed")

func (w *worker) write(in io.WriteCloser) {
	defer func() { _ = in.Close() }()
	for {
		select {
		case o := <-w.out:
			_, _ = in.Write(o.bytes) // a child that does not listen is seen by read
			if o.written != nil {
				o.written()
			}
		case <-w.stop:
			for len(w.out) > 0 { // what nobody reads any more need not stay in memory
				<-w.out
			}
			return
		}
	}
}

// send queues bytes for the child. There is room for all that one program
// can be answered.
func (w *worker) send(b []byte, written func()) {
	select {
	case w.out <- outgoing{b, written}:
	case <-w.stop:
	}
}

// kill ends the process at once. It is reaped in the background; see dead.
func (w *worker) kill() {
	w.once.Do(func() {
		close(w.stop)
		_ = w.cmd.Process.Kill()
	})
}

// expect waits for a frame of one type.
func (w *worker) expect(ctx context.Context, typ frameType) (frame, error) {
	select {
	case f, ok := <-w.frames:
		switch {
		case !ok:
			return frame{}, w.failure()
		case f.typ != typ:
			return frame{}, fmt.Errorf("frame %q where %q was due", f.typ, typ)
		}
		return f, nil
	case <-ctx.Done():
		return frame{}, context.Cause(ctx)
	}
}

// failure says why the child has ended; frames must be closed.
func (w *worker) failure() error {
	<-w.dead
	said, _, _ := strings.Cut(strings.TrimSpace(w.stderr.String()), "\n")
	switch state := w.cmd.ProcessState; {
	case errors.Is(w.readErr, errFrameSize):
		return fmt.Errorf("sandbox process: %w", w.readErr)
	case said != "":
		return fmt.Errorf("sandbox process ended (%v): %s", state, said)
	default:
		return fmt.Errorf("sandbox process ended (%v)", state)
	}
}

// head keeps the first bytes that were written to it.
type head struct {
	limit int

	// mu guards the following
	mu  sync.Mutex
	buf []byte
}

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf = append(h.buf, p[:min(len(p), h.limit-len(h.buf))]...)
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.buf)
}
