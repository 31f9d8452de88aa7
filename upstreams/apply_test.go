package upstreams

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/secret"
)

func TestSet_ApplyReconciles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stays, changes, goes := mcptest.New(mcptest.Script{Tools: tools("a")}), mcptest.New(mcptest.Script{Tools: tools("a")}), mcptest.New(mcptest.Script{Tools: tools("a")})
		s := NewSet(Options{})
		apply(t, s, fake("stays", stays), fake("changes", changes), fake("goes", goes))
		if st := status(s, "stays"); st.State != Idle || len(stays.Received()) > 0 {
			t.Errorf("before Start: %s, received %v", st.State, stays.Received())
		}
		s.Start()
		<-s.Settled()
		kept := find(s.Snapshot(), "mcp:stays:a")

		if err := s.Apply([]Config{{Name: "x"}}); err == nil {
			t.Error("an invalid configuration was applied")
		}
		if len(s.Snapshot().Servers) != 3 {
			t.Error("an invalid configuration changed something")
		}

		changed := fake("changes", changes)
		changed.CatalogMode = "direct-only"
		apply(t, s, fake("stays", stays), changed, fake("new", goes))
		for _, name := range []string{"changes", "new"} {
			live(t, s, name)
		}
		var got []string
		for _, info := range s.Snapshot().Servers {
			got = append(got, info.Name)
		}
		if !slices.Equal(got, []string{"changes", "new", "stays"}) {
			t.Errorf("servers = %v", got)
		}
		if find(s.Snapshot(), "mcp:stays:a") != kept || count(stays, "initialize") != 1 {
			t.Error("a server whose entry did not change was restarted")
		}
		if !find(s.Snapshot(), "mcp:changes:a").DirectOnly || count(changes, "initialize") != 2 {
			t.Error("a server whose entry changed was not restarted")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Apply(nil); !errors.Is(err, ErrClosed) {
			t.Errorf("Apply after Close = %v", err)
		}
		if err := s.Live(t.Context(), "stays"); !errors.Is(err, ErrClosed) {
			t.Errorf("Live after Close = %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("second Close = %v", err)
		}
	})
}

func count(srv *mcptest.Server, method string) (n int) {
	for _, m := range srv.Received() {
		if m.Method == method {
			n++
		}
	}
	return n
}

// A changed entry does not run beside its predecessor.
func TestSet_ApplyEndsBeforeItStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		srv := mcptest.New(mcptest.Script{Tools: tools("a")})
		cfg := Config{Name: "x", Dial: func(ctx context.Context) (mcp.Transport, error) {
			if open.Add(1) > 1 {
				t.Error("two sessions at once")
			}
			tr, err := srv.Dial(ctx)
			return closing{tr, sync.OnceFunc(func() { open.Add(-1) })}, err
		}}
		s := NewSet(Options{})
		apply(t, s, cfg)
		live(t, s, "x")
		for _, d := range []string{"one", "two"} {
			cfg.Description = d
			apply(t, s, cfg)
			live(t, s, "x")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n := open.Load(); n != 0 {
			t.Errorf("%d sessions are open at the end", n)
		}
	})
}

// closing tells when a connection was closed.
type closing struct {
	mcp.Transport
	closed func()
}

func (c closing) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := c.Transport.Connect(ctx)
	return &closingConn{conn, c.closed}, err
}

type closingConn struct {
	mcp.Connection
	closed func()
}

func (c *closingConn) Close() error {
	defer c.closed()
	return c.Connection.Close()
}

func TestSet_BrokenAndDisabledEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := mcptest.New(mcptest.Script{Tools: tools("a")})
		off := fake("off", srv)
		off.Enabled = new(false)
		s := NewSet(Options{})
		apply(t, s, fake("good", srv), off, Config{Name: "broken", Broken: errors.New("variable TOKEN is empty (config.yaml:7)")})
		s.Start()
		<-s.Settled()
		if got := s.Snapshot().Servers; len(got) != 2 || got[0].Name != "broken" || got[0].Known || got[1].Name != "good" {
			t.Errorf("Servers = %+v", got)
		}
		st := status(s, "broken")
		if st.State != Failed || st.Err == nil || st.Hint == "" {
			t.Errorf("Status = %+v", st)
		}
		if err := s.Live(t.Context(), "broken"); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "variable TOKEN is empty") {
			t.Errorf("Live() = %v", err)
		}
		if _, err := do(t, s, "good", "a", `{}`); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestSet_SettledWithoutServers(t *testing.T) {
	s := NewSet(Options{})
	defer s.Close()
	select {
	case <-s.Settled():
		t.Error("settled before Start")
	default:
	}
	s.Start()
	s.Start()
	<-s.Settled()
}

// A waiting call does not keep Close from ending.
func TestSet_CloseEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := mcptest.New(mcptest.Script{Tools: tools("never"), Answers: map[string]mcptest.Answer{"never": {Never: true}}})
		s := NewSet(Options{})
		apply(t, s, fake("x", srv), Config{Name: "down", Dial: func(ctx context.Context) (mcp.Transport, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		live(t, s, "x")
		done := make(chan error, 2)
		go func() {
			_, err := s.Do(t.Context(), call(s, "x", "never", `{}`))
			done <- err
		}()
		go func() { done <- s.Live(t.Context(), "down") }()
		synctest.Wait()
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-done; !errors.Is(err, ErrClosed) {
				t.Errorf("ended with %v, want ErrClosed", err)
			}
		}
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("Close took %v", d)
		}
	})
}

func stdio(t *testing.T, name string, script mcptest.Script) Config {
	command, env := mcptest.Command(t, script)
	cfg := Config{Name: name, Command: command, Env: map[string]secret.String{}}
	for k, v := range env {
		cfg.Env[k] = secret.String(v)
	}
	return cfg
}

// noLeaks is mcptest.NoLeaks less the guardian, which the first child brings
// and which lives as long as this process.
func noLeaks(t *testing.T) {
	t.Helper()
	s := NewSet(Options{})
	apply(t, s, stdio(t, "first", mcptest.Script{}))
	live(t, s, "first")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mcptest.NoLeaks(t)
}

// The call that kills its server says how it ended; the next one works.
func TestSet_ChildDiesDuringCall(t *testing.T) {
	noLeaks(t)
	s := NewSet(Options{})
	t.Cleanup(func() { s.Close() })
	apply(t, s, stdio(t, "x", mcptest.Script{
		Tools: tools("die", "echo"), Answers: map[string]mcptest.Answer{"die": {Die: true}},
		ExitCode: 3, StderrBytes: 100,
	}))
	live(t, s, "x")
	_, err := do(t, s, "x", "die", `{}`)
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), `server "x"`) || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "eeee") {
		t.Errorf("call = %v, want the exit status and the last line of stderr", err)
	}
	if _, err := do(t, s, "x", "echo", `{}`); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// Servers that do not want to end are ended side by side, grandchildren too.
func TestSet_CloseEndsStubbornChildren(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals to ignore")
	}
	noLeaks(t)
	pids := filepath.Join(t.TempDir(), "pids")
	s := NewSet(Options{})
	var configs []Config
	for _, name := range []string{"a", "b", "c"} {
		configs = append(configs, stdio(t, name, mcptest.Script{Tools: tools("x"), Stubborn: true, PIDFile: pids}))
	}
	configs = append(configs, stdio(t, "silent", mcptest.Script{Stubborn: true, PIDFile: pids, Methods: map[string]mcptest.Answer{"initialize": {Never: true}}}))
	apply(t, s, configs...)
	s.Start()
	for _, name := range []string{"a", "b", "c"} {
		live(t, s, name)
	}
	all := mcptest.PIDs(t, pids, 8)
	began := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("Close took %v for four servers side by side", d)
	}
	mcptest.Gone(t, time.Second, all...)
}

// After Abort nobody waits for a child that might still end by itself.
func TestSet_AbortCutsCloseShort(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals to ignore")
	}
	noLeaks(t)
	pids := filepath.Join(t.TempDir(), "pids")
	s := NewSet(Options{})
	apply(t, s, stdio(t, "x", mcptest.Script{Tools: tools("x"), Stubborn: true, PIDFile: pids}))
	s.Start()
	live(t, s, "x")
	all := mcptest.PIDs(t, pids, 2)
	s.Abort()
	began := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d > quietGrace {
		t.Errorf("Close took %v after Abort", d)
	}
	mcptest.Gone(t, time.Second, all...)
}

func TestSet_NoisyChild(t *testing.T) {
	noLeaks(t)
	s := NewSet(Options{})
	t.Cleanup(func() { s.Close() })
	apply(t, s, stdio(t, "x", mcptest.Script{
		Tools: tools("echo"), NoiseBefore: []string{"Starting server...", `{"level":"info"}`, "42"}, NoiseBetween: []string{"tick"}, NoiseAfter: []string{"", "tock"},
		NoiseBytes: 2 << 20, StderrBytes: 1 << 20, Unasked: []json.RawMessage{json.RawMessage(`{"jsonrpc":"2.0","id":7,"method":"log","params":{}}`)},
	}))
	live(t, s, "x")
	for range 3 {
		if _, err := do(t, s, "x", "echo", `{}`); err != nil {
			t.Error(err)
		}
	}
	st := status(s, "x")
	if len(st.Warnings) != 1 || !strings.Contains(st.Warnings[0], "Starting server") {
		t.Errorf("warnings = %q, want one with an example of the noise", st.Warnings)
	}
	if n := len(st.Stderr); n == 0 || n > 64<<10 {
		t.Errorf("%d bytes of stderr are kept", n)
	}
}
