//go:build unix

package guardian

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The guardian's own name and argument. The name is not ours, so that
// "killall -9" with our name leaves it alive to do its work.
const (
	argv0 = "mcp-guardian"
	argv1 = "end-groups-when-stdin-ends"
)

// How long a group may take for each step towards its end, after we are gone.
const (
	quietGrace = 300 * time.Millisecond // its stdin is closed; some end by that
	termGrace  = time.Second
	killGrace  = 2 * time.Second
)

// A process that was started as the guardian never gets to main: what the
// packages of the whole program prepare before it would be half of the
// guardian's memory.
func init() {
	if len(os.Args) == 2 && os.Args[0] == argv0 && os.Args[1] == argv1 {
		run()
		os.Exit(0)
	}
}

// run keeps the list of groups that arrives on stdin as lines +PGID and
// -PGID, and ends what is on it when stdin ends.
func run() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	groups := map[int]bool{}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		pgid, err := strconv.Atoi(strings.TrimLeft(in.Text(), "+-"))
		if err != nil || pgid <= 1 {
			continue
		}
		if in.Text()[0] == '+' {
			groups[pgid] = true
		} else {
			delete(groups, pgid)
		}
	}
	var all sync.WaitGroup
	for pgid := range groups {
		all.Go(func() { _ = End(context.Background(), pgid, quietGrace, termGrace) })
	}
	all.Wait()
}

// The one guardian of this process, started with the first group.
var (
	mu     sync.Mutex // guards the following
	groups = map[int]bool{}
	pipe   *os.File // to the guardian; nil if none runs
)

// Watch makes the guardian end this process group when we are gone. An error
// means that nobody would.
func Watch(pgid int) error {
	mu.Lock()
	defer mu.Unlock()
	groups[pgid] = true
	return tellLocked(fmt.Sprintf("+%d\n", pgid))
}

// Unwatch is called when the group has ended, before its number can belong to
// somebody else.
func Unwatch(pgid int) {
	mu.Lock()
	defer mu.Unlock()
	if !groups[pgid] {
		return
	}
	delete(groups, pgid)
	if pipe != nil {
		_ = tellLocked(fmt.Sprintf("-%d\n", pgid)) // a new guardian gets the new list anyway
	}
}

// tellLocked writes one line to the guardian. One that does not take it, or
// is gone, is replaced.
func tellLocked(line string) error {
	if pipe != nil {
		if err := pipe.SetWriteDeadline(time.Now().Add(time.Second)); err == nil {
			if _, err := pipe.WriteString(line); err == nil {
				return nil
			}
		}
		pipe.Close()
		pipe = nil
	}
	if len(groups) == 0 {
		return nil
	}
	return startLocked()
}

func startLocked() error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("guardian: %w", err)
	}
	defer r.Close()
	path := "/proc/self/exe" // also right when the file was replaced by an update
	if runtime.GOOS != "linux" {
		if path, err = os.Executable(); err != nil {
			w.Close()
			return fmt.Errorf("guardian: %w", err)
		}
	}
	cmd := &exec.Cmd{
		Path:  path,
		Args:  []string{argv0, argv1},
		Env:   []string{"GOGC=off", "GOMAXPROCS=1"},
		Dir:   "/",
		Stdin: r,
		// Its own session: signals to our terminal or group do not reach it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		w.Close()
		return fmt.Errorf("guardian: %w", err)
	}
	go func() { _ = cmd.Wait() }() // ends with the guardian, at the latest when we close the pipe
	var all strings.Builder
	for pgid := range groups {
		fmt.Fprintf(&all, "+%d\n", pgid)
	}
	if _, err := w.WriteString(all.String()); err != nil {
		w.Close()
		return fmt.Errorf("guardian: %w", err)
	}
	pipe = w
	return nil
}

// End ends a process group: it waits up to quiet for the group to end by
// itself, sends SIGTERM, waits up to term, and sends SIGKILL. When ctx ends,
// the waits are over at once. It returns when no process of the group is
// left, or an error if there still is one a while after SIGKILL. On Linux it
// ends descendants that left the group too.
func End(ctx context.Context, pgid int, quiet, term time.Duration) error {
	lost := strays{}
	if gone(ctx, pgid, lost, quiet) {
		return nil
	}
	_ = syscall.Kill(-pgid, syscall.SIGTERM) // who is left is looked at in gone
	lost.signal(syscall.SIGTERM)
	if gone(ctx, pgid, lost, term) {
		return nil
	}
	_ = syscall.Kill(-pgid, syscall.SIGSTOP) // nobody can leave while we look
	lost.look(pgid)
	_ = syscall.Kill(-pgid, syscall.SIGKILL)
	lost.signal(syscall.SIGKILL)
	if gone(context.Background(), pgid, lost, killGrace) {
		return nil
	}
	return fmt.Errorf("process group %d is still there after SIGKILL", pgid)
}

// gone waits until the group and what left it is gone, up to limit or the end
// of ctx.
func gone(ctx context.Context, pgid int, lost strays, limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if !lost.look(pgid) && !lost.alive() {
			return true
		}
		left := time.Until(deadline)
		if left <= 0 || ctx.Err() != nil {
			return false
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(pause, left)):
		}
	}
}
