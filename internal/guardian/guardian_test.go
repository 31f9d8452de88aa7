//go:build unix

package guardian

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	switch role := os.Getenv("GUARDIAN_TEST_ROLE"); role {
	case "":
		os.Exit(m.Run())
	case "parent":
		parent()
	case "stubborn", "grandchild", "stray", "detacher":
		stubborn(role)
	}
}

// start starts this test binary in a role, in a process group of its own.
func start(role string) (*exec.Cmd, *bufio.Reader, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"GUARDIAN_TEST_ROLE=" + role}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: role != "grandchild" && role != "stray", Setsid: role == "stray"}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return cmd, bufio.NewReader(out), cmd.Start()
}

// parent starts a stubborn child under watch, prints its group and waits to
// be killed.
func parent() {
	child, out, err := start("stubborn")
	if err == nil {
		_, err = out.ReadString('\n')
	}
	if err == nil {
		err = Watch(child.Process.Pid)
	}
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println(child.Process.Pid)
	select {}
}

// stubborn ignores everything that can be ignored, and has a child like it:
// in its group, or as a stray.
func stubborn(role string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	child := map[string]string{"stubborn": "grandchild", "detacher": "stray"}[role]
	pid := os.Getpid()
	if child != "" {
		cmd, out, err := start(child)
		if err == nil {
			_, err = out.ReadString('\n')
		}
		if err != nil {
			return
		}
		pid = cmd.Process.Pid
	}
	fmt.Println(pid)
	time.Sleep(time.Minute)
}

// eventually waits for a fact about other processes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func TestGuardian_EndsStubbornGroupsAfterKill9(t *testing.T) {
	cmd, out, err := start("parent")
	if err != nil {
		t.Fatal(err)
	}
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pgid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(line)
	}
	t.Cleanup(func() { syscall.Kill(-pgid, syscall.SIGKILL) })
	if !alive(pgid) {
		t.Fatal("the child is not there")
	}
	// The whole group of the parent, as a terminal would do it: the guardian
	// must not be in it.
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	eventually(t, "child and grandchild gone", func() bool { return !alive(pgid) })
}

func TestGuardian_IgnoresSignalsAndLeavesEndedGroups(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only /proc tells when the guardian has set its signals")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	g := exec.Command(os.Args[0])
	g.Args = []string{argv0, argv1}
	g.Stdin = r
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	child, out, err := start("stubborn")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-child.Process.Pid, syscall.SIGKILL)
		child.Wait()
	})
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(w, "+%d\nnonsense\n+1\n+0\n-%d\n", child.Process.Pid, child.Process.Pid)
	eventually(t, "the guardian ignores SIGTERM", func() bool { return ignores(g.Process.Pid, syscall.SIGTERM) })
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := g.Process.Signal(s); err != nil {
			t.Errorf("the guardian is gone before %v: %v", s, err)
		}
	}
	w.Close()
	if err := g.Wait(); err != nil {
		t.Errorf("guardian ended with %v, want exit status 0", err)
	}
	if !alive(child.Process.Pid) {
		t.Error("a group that was taken off the list was ended")
	}
}

// ignores reads from /proc whether a process ignores a signal.
func ignores(pid int, s syscall.Signal) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if hex, ok := strings.CutPrefix(line, "SigIgn:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			return err == nil && mask&(1<<(s-1)) != 0
		}
	}
	return false
}

func TestWatch_ReplacesADeadGuardian(t *testing.T) {
	if err := Watch(1 << 30); err != nil { // no such group
		t.Fatal(err)
	}
	mu.Lock()
	pipe.Close() // as if it had died: writing fails
	mu.Unlock()
	if err := Watch(1<<30 + 1); err != nil {
		t.Fatal(err)
	}
	Unwatch(1 << 30)
	Unwatch(1<<30 + 1)
	mu.Lock()
	defer mu.Unlock()
	if len(groups) != 0 {
		t.Errorf("groups = %v, want none", groups)
	}
	pipe.Close()
	pipe = nil
}

func TestEnd(t *testing.T) {
	t.Run("stubborn", func(t *testing.T) {
		cmd, out, err := start("stubborn")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		go func() { io.Copy(io.Discard, out); cmd.Wait() }()
		if err := End(t.Context(), cmd.Process.Pid, 0, 50*time.Millisecond); err != nil {
			t.Error(err)
		}
		if alive(cmd.Process.Pid) {
			t.Error("the group is alive")
		}
	})
	t.Run("stray", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("strays are found on Linux only")
		}
		cmd, out, err := start("detacher")
		if err != nil {
			t.Fatal(err)
		}
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		stray, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || !alive(stray) {
			t.Fatalf("stray %q: %v, want the leader of a group of its own", line, err)
		}
		go func() { io.Copy(io.Discard, out); cmd.Wait() }()
		if err := End(t.Context(), cmd.Process.Pid, 0, 50*time.Millisecond); err != nil {
			t.Error(err)
		}
		if alive(stray) {
			syscall.Kill(stray, syscall.SIGKILL)
			t.Error("the stray is alive")
		}
	})
	t.Run("obedient, ctx ended", func(t *testing.T) {
		cmd := exec.Command("sleep", "60")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go cmd.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if err := End(ctx, cmd.Process.Pid, time.Hour, time.Hour); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %v", took)
		}
	})
}

// alive tells whether a process of this group still runs. Zombies do not.
func alive(pgid int) bool { return strays{}.look(pgid) }
