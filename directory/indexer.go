package directory

import (
	"context"
	"fmt"
	"runtime"
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
// a goroutine that ends when there is nothing more to do. Of several updates
// that wait, only the newest is made.
type indexer struct {
	index *index

	// mu guards the following
	mu      sync.Mutex
	next    *build // waits for run
	running bool
	closed  bool
	wg      sync.WaitGroup
}

// build is the index of one view, now or soon.
type build struct {
	tools   []*upstreams.Tool
	servers []upstreams.ServerInfo
	done    chan struct{} // closed by the indexer when one of the following is set
	ranker  *ranker
	newer   *build // was to be made before this one had its turn
	err     error
}

// submit asks for an index of these tools.
func (x *indexer) submit(tools []*upstreams.Tool, servers []upstreams.ServerInfo) *build {
	b := &build{tools: tools, servers: servers, done: make(chan struct{})}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		b.err = errClosed
		close(b.done)
		return b
	}
	if skipped := x.next; skipped != nil {
		skipped.newer = b
		close(skipped.done)
	}
	x.next = b
	if !x.running {
		x.running = true
		x.wg.Go(x.run)
	}
	return b
}

// run makes builds until none waits.
func (x *indexer) run() {
	for {
		x.mu.Lock()
		b := x.next
		x.next = nil
		x.running = b != nil
		x.mu.Unlock()
		if b == nil {
			return
		}
		b.ranker = x.index.update(b.tools, b.servers)
		// A view has no end that its users would tell us.
		runtime.AddCleanup(b, (*ranker).release, b.ranker)
		close(b.done)
	}
}

// close waits for an update that runs, drops one that waits, and closes the index.
func (x *indexer) close() {
	x.mu.Lock()
	x.closed = true
	if b := x.next; b != nil {
		x.next = nil
		b.err = errClosed
		close(b.done)
	}
	x.mu.Unlock()
	x.wg.Wait()
	x.index.close()
}

// wait returns the build that answers for b: b itself or, if it was skipped,
// the newer one.
func (b *build) wait(ctx context.Context) (*build, error) {
	for {
		select {
		case <-b.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("search index is not ready: %w", context.Cause(ctx))
		}
		if b.newer == nil {
			return b, b.err
		}
		b = b.newer
	}
}

// ready is wait for those who cannot wait; nil if it is not there.
func (b *build) ready() *build {
	for {
		select {
		case <-b.done:
		default:
			return nil
		}
		if b.newer == nil {
			if b.err != nil {
				return nil
			}
			return b
		}
		b = b.newer
	}
}
