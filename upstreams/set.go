package upstreams

import (
	"context"
	"log/slog"
)

// Options of a [Set]. The zero value works: no cache, no log.
type Options struct {
	MaxNameLength int    // of full names; 0: DefaultMaxNameLength
	CacheDir      string // catalogs of the last start; "": none kept
	Version       string // our version, told to servers in clientInfo
	Logger        *slog.Logger
}

// DefaultMaxNameLength: the 63 characters that Gemini and Qwen allow, less
// "mcp__toolsearch-mcp__".
const DefaultMaxNameLength = 42

// Set is all configured servers. It is safe for concurrent use.
type Set struct{}

// NewSet makes an empty set.
func NewSet(Options) *Set { panic("todo") }

// Apply reconciles the set with the configuration: equal entries are left as
// they are, changed ones are replaced, gone ones closed. Cached catalogs are
// loaded before it returns. No server is contacted before Start.
func (s *Set) Apply([]Config) error { panic("todo") }

// Start opens all servers side by side and returns at once. Further calls do
// nothing. It is called when the first client's initialize was answered.
func (s *Set) Start() { panic("todo") }

// Snapshot returns what is known of all servers now. It never blocks.
func (s *Set) Snapshot() *Snapshot { panic("todo") }

// Changed returns a channel that receives when Snapshot may have changed
// since the last receive: a level, not a count. One reader.
func (s *Set) Changed() <-chan struct{} { panic("todo") }

// Settled is closed when the first attempt of every server has ended. It is
// never closed before Start.
func (s *Set) Settled() <-chan struct{} { panic("todo") }

// Status returns the health of every configured server, sorted by name.
func (s *Set) Status() []Status { panic("todo") }

// Live waits until the named server is connected and listed, connecting at
// once if it is down, and returns when Snapshot holds its live tools. Errors:
// ErrUnavailable and ErrNeedsAuth with the cause, ctx's.
func (s *Set) Live(ctx context.Context, server string) error { panic("todo") }

// Do carries out a call without asking policy: it is the end of the chain.
func (s *Set) Do(ctx context.Context, call Call) (*Result, error) { panic("todo") }

// Close ends all servers side by side and waits for them, at most a few
// seconds; child processes are gone when it returns.
func (s *Set) Close() error { panic("todo") }
