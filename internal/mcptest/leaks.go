package mcptest

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// NoLeaks fails the test if it leaves goroutines behind that were not there
// when NoLeaks was called. Call it first: cleanups run in reverse. It is not
// for parallel tests.
func NoLeaks(t testing.TB) {
	t.Helper()
	before := goroutines()
	t.Cleanup(func() {
		t.Helper()
		var left []string
		if !eventually(5*time.Second, func() bool {
			left = nil
			for id, stack := range goroutines() {
				if _, old := before[id]; !old {
					left = append(left, stack)
				}
			}
			return len(left) == 0
		}) {
			t.Errorf("%d goroutines left behind:\n%s", len(left), strings.Join(left, "\n\n"))
		}
	})
}

// goroutines returns the stacks of all goroutines but the caller's and those
// of the testing package and the runtime, by id.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := map[string]string{}
	for i, stack := range strings.Split(string(buf), "\n\n") {
		if i == 0 || strings.Contains(stack, "testing.(*T).Run(") || strings.Contains(stack, "os/signal.loop") || strings.Contains(stack, "testing.(*M).startAlarm") {
			continue
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
		all[id] = stack
	}
	return all
}

// PIDs waits until a Script.PIDFile holds n process ids and returns them.
func PIDs(t testing.TB, file string, n int) []int {
	t.Helper()
	var pids []int
	if !eventually(20*time.Second, func() bool {
		pids = nil
		b, _ := os.ReadFile(file)
		for f := range strings.FieldsSeq(string(b)) {
			pid, err := strconv.Atoi(f)
			if err != nil {
				return false
			}
			pids = append(pids, pid)
		}
		return len(pids) >= n
	}) {
		t.Fatalf("%s holds the process ids %v, want %d of them", file, pids, n)
	}
	return pids
}

// Gone waits until none of the processes runs any more and reports those that
// still do as an error.
func Gone(t testing.TB, within time.Duration, pids ...int) {
	t.Helper()
	var left []int
	if !eventually(within, func() bool {
		left = nil
		for _, pid := range pids {
			if Alive(pid) {
				left = append(left, pid)
			}
		}
		return len(left) == 0
	}) {
		t.Errorf("processes %v still run after %v", left, within)
	}
}

// eventually asks again and again, because processes and goroutines do not
// tell when they are gone.
func eventually(within time.Duration, ok func() bool) bool {
	deadline := time.Now().Add(within)
	for !ok() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
	return true
}
