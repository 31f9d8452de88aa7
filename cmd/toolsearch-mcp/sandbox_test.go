package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
)

// runner is an engine that ends every program in one way.
type runner struct {
	kinds []codebridge.Kind // of the next runs; the last one stays
	runs  int
}

func (r *runner) Run(context.Context, codebridge.Program, codebridge.Host) (*codebridge.Result, error) {
	kind := r.kinds[min(r.runs, len(r.kinds)-1)]
	r.runs++
	res := &codebridge.Result{}
	if kind != "" {
		res.Error = &codebridge.Error{Kind: kind, Message: "it ended"}
	}
	return res, nil
}

func TestSandbox_RemembersThatNothingRuns(t *testing.T) {
	cache := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	s := newSandbox(&runner{kinds: []codebridge.Kind{codebridge.Crash}}, cache, log)
	if err := s.broken(); err != nil {
		t.Fatalf("broken() at first = %v, want nil", err)
	}
	res, err := s.Run(t.Context(), codebridge.Program{Source: "x"}, noHost{})
	if err != nil || !strings.Contains(res.Error.Message, "mode: tools") {
		t.Errorf("Run = %+v, %v, want a message that names mode: tools", res.Error, err)
	}
	next := newSandbox(&runner{kinds: []codebridge.Kind{""}}, cache, log)
	if err := next.broken(); err == nil || !strings.Contains(err.Error(), "it ended") {
		t.Errorf("broken() at the next start = %v, want why", err)
	}
	if err := next.works(t.Context()); err != nil {
		t.Errorf("works() = %v, want nil", err)
	}
	next.forget()
	if err := next.broken(); err != nil {
		t.Errorf("broken() after check = %v, want nil", err)
	}
}

// A program that crashes its own worker says nothing about the others.
func TestSandbox_ACrashOfOneProgramIsItsOwn(t *testing.T) {
	s := newSandbox(&runner{kinds: []codebridge.Kind{codebridge.Crash, ""}}, t.TempDir(), slog.New(slog.DiscardHandler))
	res, err := s.Run(t.Context(), codebridge.Program{Source: "x"}, noHost{})
	if err != nil || strings.Contains(res.Error.Message, "mode: tools") || s.broken() != nil {
		t.Errorf("Run = %+v, %v, broken %v, want a plain crash", res.Error, err, s.broken())
	}
	timeout := &runner{kinds: []codebridge.Kind{codebridge.Timeout}}
	s = newSandbox(timeout, "", slog.New(slog.DiscardHandler))
	if _, err := s.Run(t.Context(), codebridge.Program{Source: "x"}, noHost{}); err != nil || timeout.runs != 1 {
		t.Errorf("Run(timeout) = %v after %d runs, want one run", err, timeout.runs)
	}
}
