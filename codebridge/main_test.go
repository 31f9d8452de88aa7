package codebridge

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	soakRuns = flag.Int("soak", 200, "how many programs TestSoak runs")
	long     = flag.Bool("long", false, "let TestSoak run 20,000 programs")
)

func TestMain(m *testing.M) {
	testHook = nativeProof
	maybeHostile()
	MaybeWorker()
	maybeParent()
	flag.Parse()
	code := m.Run()
	if shared.engine != nil {
		_ = shared.engine.Close()
	}
	os.Exit(code)
}

// cacheDir keeps the compiled engine from one test run to the next.
func cacheDir(t testing.TB) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = t.TempDir()
	}
	return filepath.Join(dir, "toolsearch-mcp-test", "engine")
}

// newEngine makes an engine that the test closes at its end.
func newEngine(t testing.TB, c Config) *Engine {
	t.Helper()
	if c.QueueMs == 0 {
		c.QueueMs = 60_000 // the machine of a test may be slow
	}
	e := New(Options{Config: c, CacheDir: cacheDir(t)})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return e
}

// generous is a time limit that only a program which waits for ever meets.
const generous = 30_000

var shared struct {
	once   sync.Once
	engine *Engine
}

// sharedEngine is one for tests of what programs do, not of the engine.
func sharedEngine(t testing.TB) *Engine {
	t.Helper()
	shared.once.Do(func() {
		shared.engine = New(Options{Config: Config{TimeoutMs: generous, QueueMs: 120_000, Workers: 2}, CacheDir: cacheDir(t)})
	})
	return shared.engine
}

// fakeHost answers calls with functions by tool name; it knows each tool as
// its bare name and as mcp:test:name.
type fakeHost struct {
	tools  map[string]func(ctx context.Context, c *Call, args json.RawMessage) (string, error) // returns the upstream's result
	serial bool
}

func (h *fakeHost) Lane(fn string, args json.RawMessage) string {
	if h.serial && fn == "call" {
		return "test"
	}
	return ""
}

func (h *fakeHost) Call(ctx context.Context, c *Call) (json.RawMessage, error) {
	var args []json.RawMessage
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return nil, err
	}
	switch c.Fn {
	case "search":
		return json.RawMessage(`[{"id":"mcp:test:echo","name":"test__echo","input":"{ text: string }"},{"id":"mcp:test:add","name":"test__add","input":"{ a: number; b: number }"}]`), nil
	case "describe":
		return json.RawMessage(`{"id":"mcp:test:echo","parameters":{"type":"object","properties":{"text":{"type":"string"}}}}`), nil
	}
	var id string
	if err := json.Unmarshal(args[0], &id); err != nil {
		return nil, &ToolError{Code: "unknown_tool", Message: "the id is no text"}
	}
	name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(id), "mcp:test:"), "test__")
	tool := json.RawMessage(fmt.Sprintf(`{"id":"mcp:test:%s","name":"test__%s","source":"mcp"}`, name, name))
	f := h.tools[name]
	if f == nil {
		f = commonTools[name]
	}
	if f == nil {
		return nil, &ToolError{Code: "unknown_tool", Message: "no tool " + id}
	}
	result, err := f(ctx, c, args[1])
	if err != nil {
		if te, ok := errors.AsType[*ToolError](err); ok {
			te.Tool = tool
		}
		return nil, err
	}
	return json.RawMessage(`{"tool":` + string(tool) + `,"result":` + result + `}`), nil
}

// text is an upstream result with one text block.
func text(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return `{"content":[{"type":"text","text":` + string(b) + `}]}`
}

type toolFunc = func(ctx context.Context, c *Call, args json.RawMessage) (string, error)

var commonTools = map[string]toolFunc{
	"echo": func(_ context.Context, _ *Call, args json.RawMessage) (string, error) { return text(string(args)), nil },
	"add": func(_ context.Context, _ *Call, args json.RawMessage) (string, error) {
		var a struct{ A, B float64 }
		if err := json.Unmarshal(args, &a); err != nil {
			return "", &ToolError{Code: "invalid_arguments", Message: err.Error()}
		}
		return fmt.Sprintf(`{"content":[{"type":"text","text":"%v"}],"structuredContent":{"sum":%v}}`, a.A+a.B, a.A+a.B), nil
	},
	"fail": func(context.Context, *Call, json.RawMessage) (string, error) {
		return "", &ToolError{Code: "failed", Message: "disk full", Result: json.RawMessage(`{"isError":true,"content":[{"type":"text","text":"disk full"}]}`)}
	},
	"hang": func(ctx context.Context, _ *Call, _ json.RawMessage) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	},
	"sleep": func(ctx context.Context, _ *Call, args json.RawMessage) (string, error) {
		var a struct{ Ms int }
		if err := json.Unmarshal(args, &a); err != nil {
			return "", err
		}
		select {
		case <-time.After(time.Duration(a.Ms) * time.Millisecond):
			return text("slept"), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	},
}

func mustRun(t testing.TB, e *Engine, source string, h Host) *Result {
	t.Helper()
	if h == nil {
		h = &fakeHost{}
	}
	r, err := e.Run(t.Context(), Program{Source: source}, h)
	if err != nil {
		t.Fatalf("Run(%.200q) = %v", source, err)
	}
	return r
}
