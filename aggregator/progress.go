package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
)

// progressKey marks the context of a progress notification with its bytes,
// which the sending middleware puts in place of the SDK's type.
type progressKey struct{}

// progress hands notifications on to the client of one request: only if it
// gave a token, with its own token, and never after the answer. A client that
// does not read loses progress; it does not hold up the upstream.
type progress struct {
	// fixed at creation
	ctx   context.Context // the request's: notifications must travel with it
	to    *mcp.ServerSession
	token json.RawMessage // as the client sent it
	ended chan struct{}   // closed when run has ended

	// mu guards the following
	mu    sync.Mutex
	queue chan json.RawMessage // nil until the first notification; closed by close
	done  bool
}

// progressQueue is how many notifications a client may be behind.
const progressQueue = 64

// newProgress returns nil if the client wants no progress.
func newProgress(ctx context.Context, c *session, meta rawjson.Object) *progress {
	token := meta.Get("progressToken")
	if c.mcp == nil || rawjson.IsNull(token) {
		return nil
	}
	return &progress{ctx: ctx, to: c.mcp, token: token, ended: make(chan struct{})}
}

// Progress implements upstreams.Client.
func (p *progress) Progress(params json.RawMessage) {
	o, err := rawjson.Parse(params)
	if err != nil {
		return
	}
	p.send(o)
}

func (p *progress) send(o rawjson.Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return
	}
	if p.queue == nil {
		p.queue = make(chan json.RawMessage, progressQueue)
		go p.run(p.queue)
	}
	select {
	case p.queue <- o.With("progressToken", p.token).Bytes():
	default:
	}
}

// run writes what is queued, until the queue is closed.
func (p *progress) run(queue <-chan json.RawMessage) {
	defer close(p.ended)
	for params := range queue {
		// An error means that the client is gone, and the session with it.
		_ = p.to.NotifyProgress(context.WithValue(p.ctx, progressKey{}, params), &mcp.ProgressNotificationParams{})
	}
}

// close ends it when all that was queued is written: a client may not hear of
// a request that was answered.
func (p *progress) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	started := p.queue != nil && !p.done
	if started {
		close(p.queue)
	}
	p.done = true
	p.mu.Unlock()
	if started {
		<-p.ended
	}
}

// beatTime is how often a client hears that a script still runs.
const beatTime = 5 * time.Second

// beat tells the client every beatTime that a script runs, until stop is
// called, which also closes p. calls counts the tool calls it has made.
func (p *progress) beat(calls func() int) (stop func()) {
	if p == nil {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	begin := time.Now()
	go func() {
		defer close(ended)
		tick := time.NewTicker(beatTime)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			message := fmt.Sprintf("script running for %d s, %d tool calls", int(time.Since(begin).Seconds()), calls())
			p.send(rawjson.Object{
				{Name: "progress", Value: fmt.Appendf(nil, "%d", n)},
				{Name: "message", Value: rawjson.Quote(message)},
			})
		}
	}()
	return func() {
		close(end)
		<-ended
		p.close()
	}
}
