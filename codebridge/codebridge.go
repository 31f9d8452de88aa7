// Package codebridge runs a short JavaScript program, written by a model, in
// a sandbox: QuickJS in WebAssembly in a child process that the parent kills
// at the limit.
//
// It does not know MCP servers, names or policy: all that a program can reach
// is its Host. It does not write the text that a model gets either; it says
// what happened in a Result.
package codebridge

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Config is the codeBridge section of the configuration, plus the limit of
// the toolSearch section that concerns programs. Zero means the default.
type Config struct {
	Workers        int `yaml:"workers"`        // 0: one per processor, at most MaxWorkers
	QueueMs        int `yaml:"queueMs"`        // 0: DefaultQueueMs
	MaxOutputBytes int `yaml:"maxOutputBytes"` // value and logs; 0: DefaultMaxOutputBytes
	MemoryBytes    int `yaml:"memoryBytes"`    // of one program; 0: DefaultMemoryBytes
	TimeoutMs      int `yaml:"-"`              // toolSearch.codeTimeoutMs; 0: DefaultTimeoutMs
}

const (
	DefaultQueueMs        = 10_000
	DefaultMaxOutputBytes = 64 << 10
	DefaultMemoryBytes    = 64 << 20
	DefaultTimeoutMs      = 10_000
	MaxWorkers            = 8
)

const (
	MaxSourceBytes = 64 << 10 // of one program
	MaxResultBytes = 1 << 20  // of one answer that is handed into a program
	MaxBlockBytes  = 8 << 20  // of all content blocks attached to a Result
	MaxCalls       = 256      // of one program: searches, describes and calls
	MaxParallel    = 16       // calls of one program side by side
	MaxLogLines    = 1_000
)

// Clamp returns the configuration with defaults filled in and every number
// inside its limits, and a sentence for each number that was moved. New does
// not clamp, so that a test can use limits that a file cannot.
func (c Config) Clamp() (Config, []string) {
	c = c.withDefaults()
	var warnings []string
	clamp := func(name string, v *int, low, high int) {
		if w := min(max(*v, low), high); w != *v {
			warnings = append(warnings, fmt.Sprintf("%s: %d is outside %d to %d, using %d", name, *v, low, high, w))
			*v = w
		}
	}
	clamp("codeBridge.workers", &c.Workers, 1, 64)
	clamp("codeBridge.queueMs", &c.QueueMs, 0, 600_000)
	clamp("codeBridge.maxOutputBytes", &c.MaxOutputBytes, 1<<10, 1<<20)
	clamp("codeBridge.memoryBytes", &c.MemoryBytes, 16<<20, 512<<20)
	clamp("toolSearch.codeTimeoutMs", &c.TimeoutMs, 1_000, 60_000)
	return c, warnings
}

// Options of New.
type Options struct {
	Config   Config
	CacheDir string       // for the compiled engine, ours and 0700; "": none
	Logger   *slog.Logger // nil: silent
}

// Program is the body of an async function.
type Program struct {
	Source string
	// Client names who asks. Programs of different clients take turns when
	// all workers are busy. It is never shown to the program.
	Client string
}

// Host is what a program can reach. It is made per run and must be safe for
// several calls at a time.
type Host interface {
	// Lane names what a call must not overlap with: calls of one program with
	// the same lane run one after the other, in the order they were made.
	// "" is no lane. It must return at once.
	Lane(fn string, args json.RawMessage) string
	// Call carries out one function of the guest API on a goroutine of its
	// own and should return soon after ctx ends. A *ToolError reaches the
	// program as a catchable ToolError; any other error does too, with the
	// code "failed".
	//
	// "search" [query, options?] and "describe" [id] return JSON that the
	// program gets as it is. "call" [id, args] returns {"tool", "result"},
	// result being the upstream's own; the engine adds result.details and
	// puts references in place of large binary blocks.
	Call(ctx context.Context, c *Call) (json.RawMessage, error)
}

// Call is one function call that a program made.
type Call struct {
	Fn   string          // "search", "describe" or "call"
	Args json.RawMessage // the JSON array of its arguments

	run *run
	id  int
}

// Rest tells that the call waits for something that may take its time, a
// person's approval or work that reports progress. While a program waits for
// such calls alone its clock rests. The returned function ends that; it may
// be called more than once.
func (c *Call) Rest() (resume func()) {
	if c.run == nil { // a Call made by a test of a Host
		return func() {}
	}
	c.run.setResting(c.id, +1)
	var once sync.Once
	return func() { once.Do(func() { c.run.setResting(c.id, -1) }) }
}

// ToolError is a failed call as a program sees it.
type ToolError struct {
	Code    string          // the status: blocked, timed_out, …
	Tool    json.RawMessage // {id, name, source}, or nil
	Message string
	Result  json.RawMessage // the upstream's result, or nil
}

func (e *ToolError) Error() string { return e.Message }

// Kind is how a program failed.
type Kind string

const (
	Syntax      Kind = "syntax"
	Exception   Kind = "exception"
	Timeout     Kind = "timeout"
	Cancelled   Kind = "cancelled"
	Deadlock    Kind = "deadlock"
	Memory      Kind = "memory"
	OutputLimit Kind = "output_limit"
	CallLimit   Kind = "call_limit"
	Busy        Kind = "busy"
	Crash       Kind = "crash"
)

// Result of a run.
type Result struct {
	Value  json.RawMessage   // what the body returned, "null" for undefined; nil if it did not return
	Logs   []string          // never nil
	Calls  []CallRecord      // the tool calls in the order they were made; never nil
	Blocks []json.RawMessage // content blocks that Value refers to
	Error  *Error            // nil on success
	Took   time.Duration     // of the program itself, without the queue
}

// CallRecord is one tool call that a program made.
type CallRecord struct {
	ID     string `json:"id"`
	Status string `json:"status"` // StatusOK, the ToolError's code, StatusCancelled or StatusNotStarted
	Ms     int64  `json:"ms"`
}

const (
	StatusOK         = "ok"
	StatusCancelled  = "cancelled"   // it ran when the program ended; it may have acted
	StatusNotStarted = "not_started" // it waited for others when the program ended
)

// Error tells why a program failed, in terms of the program's own source.
type Error struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Stack   string `json:"stack,omitempty"`
}
