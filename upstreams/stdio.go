package upstreams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/secret"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// The steps towards a child's end: its stdin is closed, after quietGrace its
// group gets SIGTERM, after termGrace SIGKILL.
const (
	quietGrace = 2 * time.Second
	termGrace  = 2 * time.Second

	// afterEnd is how long a child's output may stay open after the child
	// itself has ended, and how long its end is waited for after its output.
	afterEnd = 300 * time.Millisecond

	stderrKept = 16 << 10
)

// process is a running stdio server and the group of processes it started.
type process struct {
	cmd    *exec.Cmd
	group  *group
	stdin  *os.File // our ends of its pipes
	stdout *os.File
	stderr *os.File

	ended      chan struct{} // closed by wait when the process itself has ended
	stderrDone chan struct{} // closed by drain when stderr has ended
	said       ring          // the end of what it wrote to stderr

	closing sync.Once
	err     error // of closing
}

// dialStdio starts the command of cfg. The link's transport speaks lines.
func dialStdio(ctx context.Context, cfg Config, ev linkEvents, log *slog.Logger) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	hidden := redactorOf(&cfg)
	c, err := startProcess(cfg)
	if err != nil {
		return nil, err
	}
	log.Debug("child started", "pid", c.cmd.Process.Pid)
	return &link{
		transport: wire.NewClientTransport(processOutput{c}, c.stdin, wire.Options{
			Progress: ev.Progress,
			Noise:    redacted(hidden, ev.Noise),
		}),
		close:  c.close,
		stderr: func() string { return hidden.String(c.said.String()) },
		exit:   c.exit,
	}, nil
}

func startProcess(cfg Config) (c *process, err error) {
	env := childEnv(cfg, os.Environ())
	dir := cfg.Cwd
	if dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, advised("cwd %s is not a folder: create it, or correct cwd", dir)
		}
	}
	path, err := lookCommand(cfg.Command, dir, env)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path) //nolint:noctx // close ends it, with its group
	cmd.Args = append([]string{path}, reveal(cfg.Args)...)
	cmd.Dir, cmd.Env = dir, env
	if err := prepare(cmd); err != nil {
		return nil, err
	}

	// os.Pipe and not cmd.StdoutPipe: Wait must not wait for grandchildren
	// that hold the pipes, nor take away what is still in them.
	var ours, theirs [3]*os.File
	defer func() {
		closeAll(theirs[:])
		if err != nil {
			closeAll(ours[:])
		}
	}()
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		if theirs[i], ours[i] = w, r; i == 0 {
			theirs[i], ours[i] = r, w
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cfg.Command, err)
	}
	c = &process{
		cmd: cmd, stdin: ours[0], stdout: ours[1], stderr: ours[2],
		ended: make(chan struct{}), stderrDone: make(chan struct{}),
	}
	if c.group, err = adopt(cmd); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("start %s: %w", cfg.Command, err)
	}
	go c.wait()
	go c.drain()
	return c, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

func reveal(args []secret.String) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a.Reveal()
	}
	return out
}

// wait collects the process. What it started may live on and hold its stdout:
// without the server itself that is no session any more.
func (c *process) wait() {
	_ = c.cmd.Wait() // how it ended is in ProcessState
	close(c.ended)
	time.AfterFunc(afterEnd, func() { c.stdout.Close() })
}

// drain keeps stderr flowing, so that a child never blocks on it.
func (c *process) drain() {
	defer close(c.stderrDone)
	_, _ = io.Copy(&c.said, c.stderr)
}

func (c *process) exit() (how string, ended bool) {
	select {
	case <-c.ended:
		return c.cmd.ProcessState.String(), true
	default:
		return "", false
	}
}

func (c *process) close(ctx context.Context) error {
	c.closing.Do(func() {
		c.stdin.Close()
		c.err = c.group.end(ctx)
		within(afterEnd, c.ended)
		within(afterEnd, c.stderrDone)
		c.stdout.Close()
		c.stderr.Close()
	})
	return c.err
}

// within waits for done, at most limit.
func within(limit time.Duration, done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// processOutput is what the transport reads. It ends when stdout ends or the
// child is gone, and only after it is known how the child ended, if it did.
// Closing it does nothing: a child that writes while it ends is listened to,
// and process.close ends the reading.
type processOutput struct{ c *process }

func (o processOutput) Read(p []byte) (int, error) {
	n, err := o.c.stdout.Read(p)
	if err != nil {
		within(afterEnd, o.c.ended)
		if errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
	}
	return n, err
}

func (o processOutput) Close() error { return nil }

// ring keeps the end of what is written to it.
type ring struct {
	mu  sync.Mutex // guards the following
	buf []byte     // at most 2*stderrKept
}

func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.buf = append(r.buf, p[max(0, len(p)-stderrKept):]...); len(r.buf) > stderrKept {
		r.buf = append(r.buf[:0], r.buf[len(r.buf)-stderrKept:]...)
	}
	return len(p), nil
}

func (r *ring) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.ToValidUTF8(string(r.buf), "\uFFFD")
}
