package upstreams

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

func lists(srv *mcptest.Server) (n int) {
	for _, m := range srv.Received() {
		if m.Method == "tools/list" {
			n++
		}
	}
	return n
}

func TestList_Pages(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Generate: 120, PageSize: 50})
	bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
		live(t, s, "x")
		if got := len(names(s, "x")); got != 120 {
			t.Errorf("%d tools of 120 in pages of 50", got)
		}
	})
}

func TestList_MisusedCursors(t *testing.T) {
	for _, c := range []struct{ cursor, warning string }{
		{"repeat", "repeats a"},
		{"fresh", "repeats a page"},
		{"empty", ""},
	} {
		t.Run(c.cursor, func(t *testing.T) {
			srv := mcptest.New(mcptest.Script{Generate: 10, Cursor: c.cursor})
			bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
				live(t, s, "x")
				st := status(s, "x")
				if st.Tools != 10 || lists(srv) > 3 {
					t.Errorf("%d tools after %d requests, want 10", st.Tools, lists(srv))
				}
				if got := strings.Join(st.Warnings, "\n"); !strings.Contains(got, c.warning) || (got == "") != (c.warning == "") {
					t.Errorf("warnings = %q, want %q", got, c.warning)
				}
			})
		})
	}
}

func TestList_ThousandsOfTools(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Generate: 5000})
	bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
		live(t, s, "x")
		if st := status(s, "x"); st.Tools != 5000 || len(st.Warnings) > 0 {
			t.Errorf("Status = %d tools, %v", st.Tools, st.Warnings)
		}
	})
}

// Broken tools cost themselves alone.
func TestList_BrokenTools(t *testing.T) {
	raw := func(items ...string) (out []json.RawMessage) {
		for _, i := range items {
			out = append(out, json.RawMessage(i))
		}
		return out
	}
	long := strings.Repeat("n", 300)
	srv := mcptest.New(mcptest.Script{Tools: raw(
		`null`, `7`, `"x"`, `{}`, `{"name":""}`, `{"name":7}`, `{"name":null}`, `{"name":"line\nbreak"}`, `{"name":"rtl\u202e"}`,
		`{"name":"`+strings.Repeat("n", 2000)+`"}`,
		`{"name":"twice","description":"first"}`, `{"name":"twice","description":"second"}`, `{"name":"double","name":"key"}`,
		`{"name":"`+long+`"}`, `{"name":"no_description","description":null,"inputSchema":null,"annotations":[],"_meta":"?"}`,
		`{"name":"odd","title":7,"description":[],"inputSchema":"none","annotations":{"title":"Odd","readOnlyHint":"yes","destructiveHint":false,"category":{}}}`,
		`{"name":"schemaless"}`, `{"name":"typeless","inputSchema":{"$schema":"x"}}`, `{"name":"repos/delete","inputSchema":{"$ref":"#/nowhere"}}`,
		`{"name":"tool_search","inputSchema":{"type":"object"}}`,
		`{"name":"ui","_meta":{"ui":{"visibility":["app"]}}}`, `{"name":"both","_meta":{"ui":{"visibility":["model","app"]}}}`,
		`{"name":"task","execution":{"taskSupport":"required"}}`, `{"name":"taskless","execution":{"taskSupport":"forbidden"}}`,
	)})
	bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
		live(t, s, "x")
		want := []string{"both", long, "no_description", "odd", "repos/delete", "schemaless", "task", "taskless", "tool_search", "twice", "typeless", "ui"}
		got := names(s, "x")
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("tools = %q, want %q", got, want)
		}
		snap := s.Snapshot()
		for id, hidden := range map[string]string{"mcp:x:ui": hiddenApp, "mcp:x:both": "", "mcp:x:task": hiddenTask, "mcp:x:taskless": "", "mcp:x:odd": ""} {
			if tool := find(snap, id); tool.Hidden != hidden {
				t.Errorf("%s: Hidden = %q, want %q", id, tool.Hidden, hidden)
			}
		}
		odd := find(snap, "mcp:x:odd")
		if odd.Title != "Odd" || odd.Description != "" || odd.Annotations.ReadOnly != nil || odd.Annotations.Destructive == nil || *odd.Annotations.Destructive {
			t.Errorf("odd = %+v", odd)
		}
		if tool := find(snap, "mcp:x:no_description"); tool.InputSchema != nil || tool.OutputSchema != nil {
			t.Errorf("no_description = %+v", tool)
		}
		if find(snap, "mcp:x:twice").Description != "first" {
			t.Error("the second definition of a name won")
		}
		if n := len(status(s, "x").Warnings); n != 12 {
			t.Errorf("%d warnings, want one for each broken item: %q", n, status(s, "x").Warnings)
		}
		for _, name := range want {
			if name == "ui" || name == "task" {
				continue
			}
			if _, err := do(t, s, "x", name, `{}`); err != nil {
				t.Errorf("call of %q: %v", name, err)
			}
		}
	})
}

func TestList_FollowsListChanged(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Tools: tools("a", "unlock")})
	bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
		live(t, s, "x")
		drain(s)
		before := s.Snapshot()
		srv.Notify("notifications/tools/list_changed", nil)
		time.Sleep(5 * time.Second)
		if s.Snapshot() != before {
			t.Error("nothing changed, but the snapshot is another one")
		}
		select {
		case <-s.Changed():
			t.Error("nothing changed, but Changed said so")
		default:
		}
		srv.SetTools(tools("a", "vault"), true)
		time.Sleep(time.Second)
		if got := names(s, "x"); !slices.Equal(got, []string{"a", "vault"}) {
			t.Errorf("a second after the notice the tools are %v", got)
		}
		<-s.Changed()
		if find(before, "mcp:x:a") != find(s.Snapshot(), "mcp:x:a") {
			t.Error("the tool that stayed is another one")
		}
	})
}

func drain(s *Set) {
	synctest.Wait()
	select {
	case <-s.Changed():
	default:
	}
}

func TestList_StormOfListChanged(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Tools: tools("a")})
	bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
		live(t, s, "x")
		for range 200 {
			srv.Notify("notifications/tools/list_changed", nil)
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		if n := lists(srv); n > 4 {
			t.Errorf("%d lists for 200 notices in a second", n)
		}
		before := lists(srv)
		for range 180 {
			srv.Notify("notifications/tools/list_changed", nil)
			time.Sleep(time.Second / 3)
		}
		if n := lists(srv) - before; n > 12 {
			t.Errorf("%d lists in a minute of empty notices", n)
		}
		time.Sleep(2 * time.Minute)
		srv.SetTools(tools("b"), true)
		time.Sleep(time.Second)
		if got := names(s, "x"); !slices.Equal(got, []string{"b"}) {
			t.Errorf("a true change after the storm was not followed within a second: %v", got)
		}
	})
}

// A notice every 100 ms for ever must not put the reading off for ever.
func TestList_UpperBound(t *testing.T) {
	srv := mcptest.New(mcptest.Script{Tools: tools("a")})
	bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
		live(t, s, "x")
		srv.SetTools(tools("b"), false)
		for range 25 {
			srv.Notify("notifications/tools/list_changed", nil)
			time.Sleep(100 * time.Millisecond)
		}
		if got := names(s, "x"); !slices.Equal(got, []string{"b"}) {
			t.Errorf("after 2.5 s of notices the tools are %v", got)
		}
	})
}

// A server that says nothing of changes is read again after calls.
func TestList_ChangesWithoutNotice(t *testing.T) {
	srv := mcptest.New(mcptest.Script{
		Capabilities: json.RawMessage(`{"tools":{}}`),
		Tools:        tools("enable"),
		Answers:      map[string]mcptest.Answer{"enable": {Tools: tools("enable", "issues")}},
	})
	bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
		if _, err := do(t, s, "x", "enable", `{}`); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := names(s, "x"); !slices.Equal(got, []string{"enable", "issues"}) {
			t.Errorf("tools = %v", got)
		}
	})
}

// A tool that went away without a notice is found out by the answer.
func TestList_UnknownToolAnswers(t *testing.T) {
	for _, a := range []mcptest.Answer{
		{Error: json.RawMessage(`{"code":-32602,"message":"Unknown tool: gone"}`)},
		{Error: json.RawMessage(`{"code":-32603,"message":"Tool gone not found"}`)},
		{Error: json.RawMessage(`{"code":-32601,"message":"?"}`)},
		{Result: json.RawMessage(`{"isError":true,"content":[{"type":"text","text":"MCP error -32602: Tool gone not found"}]}`)},
		{Result: json.RawMessage(`{"content":[{"type":"text","text":"{\"error\":\"Unknown tool: gone\"}"}]}`)},
		{Result: json.RawMessage(`{"toolResult":{"content":[{"type":"text","text":"Unknown tool: gone"}],"isError":true}}`)},
	} {
		srv := mcptest.New(mcptest.Script{Tools: tools("gone", "stays"), Answers: map[string]mcptest.Answer{"gone": a}})
		bubble(t, map[string]*mcptest.Server{"x": srv}, func(t *testing.T, s *Set) {
			live(t, s, "x")
			answered, err := do(t, s, "x", "gone", `{}`)
			if err == nil && !strings.Contains(answered, "gone") {
				t.Errorf("the server's own answer was not passed on: %s", answered)
			}
			before := lists(srv)
			time.Sleep(time.Second)
			if n := lists(srv) - before; n != 1 {
				t.Errorf("%d lists after the answer %s%s", n, a.Error, a.Result)
			}
		})
	}
}

// A list that never ends, with a new tool on each page, is cut.
func TestList_Endless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := mcp.NewServer(&mcp.Implementation{Name: "endless"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
		var page atomic.Int64
		srv.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method != "tools/list" {
					return next(ctx, method, req)
				}
				n := strconv.FormatInt(page.Add(1), 10)
				return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t" + n}}, NextCursor: n}, nil
			}
		})
		s := NewSet(Options{})
		apply(t, s, inMemory("x", srv))
		live(t, s, "x")
		if st := status(s, "x"); st.Tools != maxListPages || len(st.Warnings) != 1 || !strings.Contains(st.Warnings[0], "too long") {
			t.Errorf("Status = %d tools, %q", st.Tools, st.Warnings)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func inMemory(name string, srv *mcp.Server) Config {
	return Config{Name: name, Dial: func(context.Context) (mcp.Transport, error) {
		client, server := mcp.NewInMemoryTransports()
		_, err := srv.Connect(context.Background(), server, nil)
		return client, err
	}}
}

func TestList_WarnsOfMisspeltNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fake("x", mcptest.New(mcptest.Script{Tools: tools("read_file", "admin_reset")}))
		cfg.Tools = map[string]ToolConfig{"read_file": {}, "raed_file": {}}
		cfg.ToolFilter = ToolFilter{Include: []string{"*"}, Exclude: []string{"admin_*", "amdin_*"}}
		s := NewSet(Options{})
		apply(t, s, cfg)
		live(t, s, "x")
		want := []string{`toolFilter.exclude has "amdin_*", which matches no tool of the server`, "tools.raed_file speaks of a tool that the server does not list"}
		if got := status(s, "x").Warnings; !slices.Equal(got, want) {
			t.Errorf("warnings = %q, want %q", got, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// When a later page fails, the earlier ones are used and it is tried again.
func TestList_MissingPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := mcp.NewServer(&mcp.Implementation{Name: "paged"}, &mcp.ServerOptions{PageSize: 2})
		for _, name := range []string{"a", "b", "c", "d"} {
			srv.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
		}
		var failing atomic.Bool
		failing.Store(true)
		srv.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if p, ok := req.GetParams().(*mcp.ListToolsParams); ok && p.Cursor != "" && failing.Load() {
					return nil, errors.New("database is locked")
				}
				return next(ctx, method, req)
			}
		})
		s := NewSet(Options{})
		apply(t, s, inMemory("x", srv))
		s.Start()
		<-s.Settled()
		if got := names(s, "x"); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("tools = %v, want the first page", got)
		}
		if got := status(s, "x"); got.State != Ready || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "page 2") || !strings.Contains(got.Warnings[0], "database is locked") {
			t.Errorf("Status = %+v, want a warning of the gap", got)
		}
		failing.Store(false)
		time.Sleep(2 * time.Second)
		if got := names(s, "x"); !slices.Equal(got, []string{"a", "b", "c", "d"}) || len(status(s, "x").Warnings) > 0 {
			t.Errorf("tools = %v, %v, want all of them and no warning", got, status(s, "x").Warnings)
		}
		failing.Store(true) // what was known before stays
		srv.AddTool(&mcp.Tool{Name: "aa", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
		time.Sleep(time.Second)
		if got := names(s, "x"); !slices.Equal(got, []string{"a", "aa", "b", "c", "d"}) {
			t.Errorf("tools = %v, want those of the first page and those known before", got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCache(t *testing.T) {
	dir := t.TempDir()
	srv := mcptest.New(mcptest.Script{Title: "Files", Instructions: "Mind.", Tools: []json.RawMessage{json.RawMessage(`{"name":"a","description":"<b> & 日本","n":9007199254740993}`)}})
	first := NewSet(Options{CacheDir: dir})
	cfg := fake("files", srv)
	apply(t, first, cfg)
	first.Start()
	live(t, first, "files")
	if err := first.Close(); err != nil { // the catalog is written by then
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Fatalf("cache folder holds %v, %v, want a key and a catalog", entries, err)
	}
	for _, e := range entries {
		if info, _ := e.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", e.Name(), info.Mode())
		}
	}

	second := NewSet(Options{CacheDir: dir})
	apply(t, second, cfg)
	defer second.Close()
	want := []ServerInfo{{Name: "files", Safe: "files", Title: "Files", Instructions: "Mind.", Known: true}}
	if got := second.Snapshot(); !slices.Equal(got.Servers, want) || len(got.Tools) != 1 || string(got.Tools[0].Raw) != string(srv.Tools()[0]) {
		t.Errorf("Snapshot() from the cache = %+v", got)
	}
	if st := status(second, "files"); st.State != Cached || st.Tools != 1 {
		t.Errorf("Status() from the cache = %+v", st)
	}
	cached := second.Snapshot().Tools[0]
	if _, err := do(t, second, "files", "a", `{}`); err != nil { // starts it, without Start
		t.Errorf("call of a cached server: %v", err)
	}
	if st := status(second, "files"); st.State != Ready || second.Snapshot().Tools[0] != cached {
		t.Errorf("after the call: %s, same tool: %v", st.State, second.Snapshot().Tools[0] == cached)
	}

	other := cfg
	other.Env = map[string]secret.String{"TOKEN": "other"}
	third := NewSet(Options{CacheDir: dir})
	apply(t, third, other)
	defer third.Close()
	if len(third.Snapshot().Tools) > 0 {
		t.Error("another configuration got the catalog")
	}
	for _, e := range entries {
		if err := os.WriteFile(filepath.Join(dir, e.Name()), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fourth := NewSet(Options{CacheDir: dir})
	apply(t, fourth, cfg)
	defer fourth.Close()
	if len(fourth.Snapshot().Tools) > 0 {
		t.Error("a damaged cache gave tools")
	}
}

// Several processes begin with one empty folder at the same time.
func TestCache_Shared(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Name: "x", Command: "a"}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			c, err := openCache(dir)
			if err != nil {
				t.Error(err)
				return
			}
			for range 20 {
				if err := c.store(&cfg, &listing{Tools: tools("a", "b")}); err != nil {
					t.Error(err)
				}
				if l := c.load(&cfg); l == nil || len(l.Tools) != 2 {
					t.Errorf("load() = %+v", l)
				}
			}
		})
	}
	wg.Wait()
	c, err := openCache(dir)
	if err != nil || c.store(&cfg, &listing{Tools: tools("a")}) != nil || c.load(&cfg) == nil {
		t.Errorf("afterwards the cache does not work: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A folder that cannot be used costs the cache, not the servers.
func TestCache_Unusable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := NewSet(Options{CacheDir: filepath.Join(file, "below")})
	apply(t, s, fake("x", mcptest.New(mcptest.Script{Tools: tools("a")})))
	defer s.Close()
	live(t, s, "x")
}

func apply(t *testing.T, s *Set, configs ...Config) {
	t.Helper()
	if err := s.Apply(configs); err != nil {
		t.Fatalf("Apply() = %v", err)
	}
}
