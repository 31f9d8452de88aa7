package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// The limit must rise with what is in use, or a large catalog would be
// collected without end, and fall again.
func TestFollowHeap(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	followHeap(calmHeap)
	collect := func(what string, reached func(limit int64) bool) {
		t.Helper()
		for range 1000 {
			runtime.GC()
			if reached(debug.SetMemoryLimit(-1)) {
				return
			}
			time.Sleep(time.Millisecond) // the cleanup runs on a goroutine of the runtime
		}
		t.Errorf("%s: limit = %d", what, debug.SetMemoryLimit(-1))
	}
	large := make([]byte, 4*calmHeap)
	collect("much in use", func(limit int64) bool { return limit >= int64(2*len(large)) })
	runtime.KeepAlive(large)
	large = nil
	collect("little in use", func(limit int64) bool { return limit < 4*calmHeap })
}
