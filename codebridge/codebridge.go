// Package codebridge runs a short JavaScript program, written by a model, in
// a sandbox: QuickJS in WebAssembly in a child process that the parent kills
// at the limit.
//
// It knows nothing of MCP servers: what a program can reach is its Host.
package codebridge

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"
)

// Config is the codeBridge section of the configuration, plus the limits of
// toolSearch that concern programs. Zero means the default.
type Config struct {
	Workers        int `yaml:"workers"`        // 0: one per processor, at most 8
	QueueMs        int `yaml:"queueMs"`        // 0: 10000
	MaxOutputBytes int `yaml:"maxOutputBytes"` // 0: 64 KiB
	MemoryBytes    int `yaml:"memoryBytes"`    // 0: 64 MiB
	TimeoutMs      int `yaml:"-"`              // toolSearch.codeTimeoutMs; 0: 10000
}

// Options of New.
type Options struct {
	Config   Config
	CacheDir string // for the compiled module, ours and 0700; "": none
	Version  string // must equal the worker's
	Logger   *slog.Logger
}

// Engine runs programs in worker processes, started on demand.
type Engine struct{}

// MaybeWorker turns the process into a worker and does not return if it was
// started as one. It is the first line of main and of TestMain.
func MaybeWorker() { panic("todo") }

// New makes an engine; no process is started.
func New(Options) *Engine { panic("todo") }

// Probe starts a worker process and waits for its first frame, which it sends
// before it loads the engine. An error means that programs cannot run here.
func (e *Engine) Probe(ctx context.Context) error { panic("todo") }

// Program is one body of an async function.
type Program struct {
	Source string // at most MaxSourceBytes
	// Parallel tells whether calls to this key (a server) may run side by side.
	// Calls of one program with the same key otherwise run one after the other.
}

// MaxSourceBytes is the longest program.
const MaxSourceBytes = 64 << 10

// Host is what a program can reach. Its methods are called on goroutines of
// their own, several at a time, and must return soon after ctx ends.
type Host interface {
	// Call carries out one function of the guest API: "search", "describe" or
	// "call"; args is the JSON array of its arguments. A *ToolError reaches the
	// program as a catchable ToolError.
	Call(ctx context.Context, fn string, args json.RawMessage) (json.RawMessage, error)
}

// ToolError is a failed tool call as a program sees it.
type ToolError struct {
	Code    string          // the status: blocked, timed_out, …
	Tool    json.RawMessage // {id, name, source}, or nil
	Message string
	Result  json.RawMessage // the upstream's result, or nil
}

func (e *ToolError) Error() string { return e.Message }

// Kind is how a program ended; "" is success.
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
	Value  json.RawMessage // what the body returned; "null" for undefined
	Logs   []string
	Calls  []CallRecord
	Blocks []json.RawMessage // content blocks referred to in Value
	Error  *Error            // nil on success
	Took   time.Duration
}

// CallRecord is one tool call that a program made.
type CallRecord struct {
	ID     string `json:"id"`
	Status string `json:"status"` // "ok" or the ToolError's code
	Ms     int64  `json:"ms"`
}

// Error tells why a program failed, in terms of the program's own source.
type Error struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Stack   string `json:"stack,omitempty"`
}

// Run runs a program to its end, its limit, or the end of ctx. It never
// panics on account of the program. The returned error is only for misuse
// (Close was called); all else is in Result.Error.
func (e *Engine) Run(ctx context.Context, p Program, h Host) (*Result, error) { panic("todo") }

// Close ends all workers and waits for them.
func (e *Engine) Close() error { panic("todo") }
