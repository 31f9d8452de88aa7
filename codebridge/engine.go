package codebridge

import "context"

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

// Warm starts a worker in the background if there is none, so that the next
// program does not wait for one.
func (e *Engine) Warm() { panic("todo") }

// Run runs a program to its end, its limit, or the end of ctx. The returned
// error is only for misuse (Close was called); all else is in Result.Error.
func (e *Engine) Run(ctx context.Context, p Program, h Host) (*Result, error) { panic("todo") }

// Close ends all workers and waits for them.
func (e *Engine) Close() error { panic("todo") }

func (c Config) withDefaults() Config { panic("todo") }

type run struct{}

func (*run) setResting(id, by int) {}
