package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/toolsearch-mcp/toolsearch-mcp/aggregator"
	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
)

// sandbox runs programs and remembers for the next start when it cannot: the
// probe tells that a process can be started, not that its engine works.
type sandbox struct {
	engine aggregator.CodeRunner
	marker string // the file that says that it does not work; "" without a cache
	log    *slog.Logger
}

func newSandbox(engine aggregator.CodeRunner, cache string, log *slog.Logger) *sandbox {
	s := &sandbox{engine: engine, log: log}
	if cache != "" {
		b := buildInfo()
		s.marker = filepath.Join(cache, fmt.Sprintf("no-sandbox-%s-%.12s", filepath.Base(b.Version), b.Commit))
	}
	return s
}

// Run implements aggregator.CodeRunner.
func (s *sandbox) Run(ctx context.Context, p codebridge.Program, h codebridge.Host) (*codebridge.Result, error) {
	res, err := s.engine.Run(ctx, p, h)
	if err != nil || res.Error == nil || res.Error.Kind != codebridge.Crash || s.works(ctx) == nil {
		return res, err
	}
	s.log.Error("scripts cannot run here: the next start will use mode tools", "err", res.Error.Message)
	s.remember(res.Error.Message)
	failed := *res.Error
	failed.Message += "; no script can run here now: the user should write mode: tools under toolSearch, or run toolsearch-mcp check"
	answer := *res
	answer.Error = &failed
	return &answer, nil
}

// works runs the smallest program; the error is a crash.
func (s *sandbox) works(ctx context.Context) error {
	res, err := s.engine.Run(ctx, codebridge.Program{Source: "return 1"}, noHost{})
	if err != nil {
		return err
	}
	if res.Error != nil && res.Error.Kind == codebridge.Crash {
		return errors.New(res.Error.Message)
	}
	return nil
}

// broken returns why an earlier start of this version could not run programs,
// nil if nothing is known.
func (s *sandbox) broken() error {
	if s.marker == "" {
		return nil
	}
	why, err := os.ReadFile(s.marker)
	if err != nil {
		return nil
	}
	return fmt.Errorf("it did not work at an earlier start (%s); toolsearch-mcp check tries again", why)
}

func (s *sandbox) remember(why string) {
	if s.marker == "" {
		return
	}
	err := os.MkdirAll(filepath.Dir(s.marker), 0o700)
	if err == nil {
		err = os.WriteFile(s.marker, []byte(why), 0o600)
	}
	if err != nil {
		s.log.Warn("the next start will not know that scripts cannot run", "err", err)
	}
}

func (s *sandbox) forget() {
	if s.marker == "" {
		return
	}
	if err := os.Remove(s.marker); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.log.Warn("removing the note that scripts cannot run", "err", err)
	}
}

// noHost is for a program that calls nothing.
type noHost struct{}

func (noHost) Lane(string, json.RawMessage) string { return "" }

func (noHost) Call(context.Context, *codebridge.Call) (json.RawMessage, error) {
	return nil, errors.New("there is nothing to call")
}
