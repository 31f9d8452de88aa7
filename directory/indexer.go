package directory

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// The seam to index.go and rank.go. An indexer drives one *index:
//
//	newIndex(log) *index
//	(*index).update(tools, servers) *ranker     the whole new list, any number of times, one at a time, off the request path
//	(*index).close()                            after the last update; rankers are not searched any more
//	(*ranker).search(ctx, query, limit)         ([]scored, error), best first; safe for concurrent use
//	(*ranker).nearServers(query) []string       names of servers, at most 3
//	(*ranker).release()                         nobody searches this ranker any more
//
// A ranker is immutable: it goes on answering for its own list after later updates.

// scored is one tool that a ranker found.
type scored struct {
	tool  *upstreams.Tool
	score float64
}

// indexer keeps the index of one profile up to date, one update at a time in
// a goroutine that ends when there is nothing more to do. Lists that a search
// waits for come first; of the others only the newest is indexed.
type indexer struct {
	// fixed at creation
	index    *index
	finished func() // called after each update, without a lock

	// mu guards the following
	mu      sync.Mutex
	wanted  []*build // searches wait for these
	newest  *build   // nobody waits yet
	running bool
	closed  bool
	wg      sync.WaitGroup
}

// build is the index of one list of tools: not begun, wanted, or done.
type build struct {
	indexer *indexer
	tools   []*upstreams.Tool
	servers []upstreams.ServerInfo
	wanted  bool          // guarded by indexer.mu: a search waited for it
	done    chan struct{} // closed by the indexer when one of the following is set
	ranker  *ranker
	err     error
}

// errClosed is what a search gets whose index was never made.
var errClosed = errors.New("directory is closed")

// submit asks for an index of these tools, soon.
func (x *indexer) submit(tools []*upstreams.Tool, servers []upstreams.ServerInfo) *build {
	b := &build{indexer: x, tools: tools, servers: servers, done: make(chan struct{})}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		b.failLocked(errClosed)
		return b
	}
	x.newest = b
	x.startLocked()
	return b
}

// want asks for b now, also if a newer list took its place.
func (x *indexer) want(b *build) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if b.wanted {
		return
	}
	b.wanted = true
	if x.newest == b {
		x.newest = nil
	}
	if x.closed {
		b.failLocked(errClosed)
		return
	}
	x.wanted = append(x.wanted, b)
	x.startLocked()
}

// begun tells whether b is made already or will be, whatever comes.
func (b *build) begun() bool {
	b.indexer.mu.Lock()
	defer b.indexer.mu.Unlock()
	return b.wanted
}

// failLocked ends a build that was neither taken by run nor ended before.
func (b *build) failLocked(err error) {
	b.wanted = true
	b.err = err
	close(b.done)
}

func (x *indexer) startLocked() {
	if !x.running {
		x.running = true
		x.wg.Go(x.run)
	}
}

// take returns what to do next, nil if there is nothing more.
func (x *indexer) take() *build {
	x.mu.Lock()
	defer x.mu.Unlock()
	var b *build
	if len(x.wanted) > 0 {
		b = x.wanted[0]
		x.wanted = slices.Delete(x.wanted, 0, 1) // keeps no pointer to b
	} else if x.newest != nil {
		b, x.newest = x.newest, nil
		b.wanted = true // it is being made: nobody needs to ask again
	}
	x.running = b != nil
	return b
}

// run makes builds until none is left.
func (x *indexer) run() {
	for b := x.take(); b != nil; b = x.take() {
		b.ranker = x.index.update(b.tools, b.servers)
		// A view has no end that its users would tell us.
		runtime.AddCleanup(b, (*ranker).release, b.ranker)
		close(b.done)
		x.finished()
	}
}

// close waits for an update that runs, drops those that wait, and closes the index.
func (x *indexer) close() {
	x.mu.Lock()
	x.closed = true
	for _, b := range x.wanted {
		b.failLocked(errClosed)
	}
	x.wanted = nil
	if b := x.newest; b != nil {
		b.failLocked(errClosed)
		x.newest = nil
	}
	x.mu.Unlock()
	x.wg.Wait()
	x.index.close()
}

// wait returns the finished ranker. It stays usable while b is reachable.
func (b *build) wait(ctx context.Context) (*ranker, error) {
	select {
	case <-b.done:
		return b.ranker, b.err
	default:
	}
	b.indexer.want(b)
	select {
	case <-b.done:
		return b.ranker, b.err
	case <-ctx.Done():
		return nil, fmt.Errorf("search index is not ready: %w", context.Cause(ctx))
	}
}

// ready is wait for those who cannot wait: nil if the ranker is not there.
func (b *build) ready() *ranker {
	select {
	case <-b.done:
		return b.ranker
	default:
		return nil
	}
}
