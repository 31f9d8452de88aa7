package codebridge

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// children lists the worker processes of this process.
func children(t testing.TB) []int {
	t.Helper()
	return childrenOf(t, os.Getpid())
}

func childrenOf(t testing.TB, parent int) []int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		pid := filepath.Base(filepath.Dir(path))
		rest := stat[bytes.LastIndexByte(stat, ')')+1:]
		fields := strings.Fields(string(rest)) // state, ppid, …
		cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) && bytes.Contains(cmdline, []byte(workerArg)) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, n)
		}
	}
	return pids
}

// residentBytes is the memory of a process that is really there.
func residentBytes(t testing.TB, pid int) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// TestWorker_DiesWithParent: kill -9 of the parent leaves no worker behind,
// not even one that computes.
func TestWorker_DiesWithParent(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CODEBRIDGE_TEST_PARENT="+cacheDir(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		t.Fatalf("the parent says %q, %v", line, err)
	}
	pids := childrenOf(t, cmd.Process.Pid)
	if len(pids) != 1 {
		t.Fatalf("the parent has the workers %v, want one", pids)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "the worker is gone", func() bool { return syscall.Kill(pids[0], 0) != nil })
}
