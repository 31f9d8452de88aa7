package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// fewCollections lets the heap grow to five times what is in use between
	// two collections: a proxy makes much short-lived garbage on a small base.
	fewCollections = 400
	// calmHeap is how far that may go in bytes while little is in use.
	calmHeap = 48 << 20
)

// tuneMemory trades memory for processor time within bounds, unless the
// environment says otherwise (GOGC, GOMEMLIMIT).
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(fewCollections)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		followHeap(calmHeap)
	}
}

// followHeap keeps the soft limit at twice what is really in use and not below
// calmHeap: a limit close to what is in use would collect without end.
func followHeap(limit int64) {
	debug.SetMemoryLimit(limit)
	// A collection runs the cleanup of an object that nothing refers to.
	type sentinel struct{ _ [16]byte }
	var next func(int64)
	next = func(limit int64) {
		s := new(sentinel)
		runtime.AddCleanup(s, func(limit int64) {
			want := max(calmHeap, 2*inUse())
			if want < limit*3/4 || want > limit {
				limit = want
				debug.SetMemoryLimit(limit)
			}
			next(limit)
		}, limit)
	}
	next(limit)
}

// inUse is what the last collection left on the heap, with what the runtime
// itself holds beside it.
func inUse() int64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/metadata/other:bytes"}}
	metrics.Read(samples)
	var sum uint64
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			sum += s.Value.Uint64()
		}
	}
	return int64(sum)
}
