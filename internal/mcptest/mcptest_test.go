package mcptest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestMain(m *testing.M) {
	MaybeServe()
	os.Exit(m.Run())
}

// dial connects a raw client to a server in memory.
func dial(t *testing.T, s *Server) *Client {
	t.Helper()
	r, w := s.Pipe()
	t.Cleanup(func() { _ = w.Close(); _ = r.Close() })
	return NewClient(t, r, w)
}

func start(t *testing.T, script Script) *Client {
	t.Helper()
	command, env := Command(t, script)
	cmd := exec.Command(command)
	cmd.Env = os.Environ()
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return Start(t, cmd)
}

func TestServer_SDKClient(t *testing.T) {
	NoLeaks(t)
	ctx := t.Context()
	s := New(Script{Name: "shop", Generate: 3, Answers: map[string]Answer{"update_invoice_0002": {Error: json.RawMessage(`{"code":-32000,"message":"no"}`)}}})
	for _, transport := range map[string]mcp.Transport{
		"memory": func() mcp.Transport { tr, _ := s.Dial(ctx); return tr }(),
		"http":   &mcp.StreamableClientTransport{Endpoint: s.Listen(t)},
	} {
		client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil)
		session, err := client.Connect(ctx, transport, nil)
		if err != nil {
			t.Fatal(err)
		}
		list, err := session.ListTools(ctx, nil)
		if err != nil || len(list.Tools) != 3 {
			t.Fatalf("ListTools = %v, %v, want 3 tools", list, err)
		}
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "list_invoice_0001", Arguments: map[string]any{"a": 1}})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := res.Content[0].(*mcp.TextContent).Text, `{"server":"shop","tool":"list_invoice_0001","arguments":{"a":1}}`; got != want {
			t.Errorf("echo = %s, want %s", got, want)
		}
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "update_invoice_0002"}); err == nil || !strings.Contains(err.Error(), "no") {
			t.Errorf("scripted error = %v, want one with %q", err, "no")
		}
		_ = session.Close()
	}
}

func TestServer_DelayProgressAndCancelAreVirtual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Script{Tools: []json.RawMessage{Tool("slow", "", ""), Tool("late", "", "")}, Answers: map[string]Answer{
			"slow": {Delay: time.Hour, Progress: 2, Text: "done"},
			"late": {Delay: time.Hour, Late: true, Text: "late"},
		}})
		c := dial(t, s)
		c.Timeout = 10 * time.Hour
		c.Initialize("t")
		from := time.Now()
		c.Result("tools/call", `{"name":"slow","_meta":{"progressToken":"p"}}`)
		if took := time.Since(from); took < time.Hour-time.Second || took > time.Hour {
			t.Errorf("the answer took %v, want an hour", took)
		}
		progress := 0
		for _, m := range c.Messages() {
			if m.Method == "notifications/progress" {
				progress++
			}
		}
		if progress != 2 {
			t.Errorf("progress notifications = %d, want 2", progress)
		}

		slow := c.Request("tools/call", `{"name":"slow"}`)
		late := c.Request("tools/call", `{"name":"late"}`)
		c.Notify("notifications/cancelled", `{"requestId":`+slow+`}`)
		c.Notify("notifications/cancelled", `{"requestId":`+late+`}`)
		c.Answer(late)
		for _, m := range c.Messages() {
			if string(m.ID) == slow {
				t.Errorf("a cancelled request was answered: %s", m.Raw)
			}
		}
		_ = c.Close()
		c.AwaitEnd()
	})
}

func TestServer_ListChangesAndCursors(t *testing.T) {
	more := []json.RawMessage{Tool("a", "", ""), Tool("b", "", "")}
	s := New(Script{Tools: more[:1], PageSize: 1, Cursor: "empty", Answers: map[string]Answer{"a": {Tools: more, Notify: true}}})
	c := dial(t, s)
	c.Initialize("t")
	if got, want := string(c.Result("tools/list", "")), `{"tools":[{"description":"","name":"a"}],"nextCursor":""}`; got != want {
		t.Errorf("tools/list = %s, want %s", got, want)
	}
	c.Result("tools/call", `{"name":"a"}`)
	c.Next("list_changed", func(m Message) bool { return m.Method == "notifications/tools/list_changed" })
	if got := string(c.Result("tools/list", "")); !strings.Contains(got, `"nextCursor":"1"`) {
		t.Errorf("tools/list = %s, want a cursor to the second page", got)
	}
	if got := string(c.Result("tools/list", `{"cursor":"1"}`)); !strings.Contains(got, `"name":"b"`) {
		t.Errorf("second page = %s, want tool b", got)
	}
}

func TestChild_NoiseAndExit(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	c := start(t, Script{NoiseBefore: []string{"Starting"}, NoiseBytes: 2 << 20, NoiseAfter: []string{"after"}, StderrBytes: 1 << 20, Record: record, Exit: "initialized", ExitCode: 3})
	c.Request("initialize", `{"protocolVersion":"2025-11-25"}`)
	c.Answer("1")
	c.AwaitEnd()
	broken := c.Broken()
	if len(broken) != 3 || broken[0] != "Starting\n" || len(broken[1]) != 2<<20+1 || broken[2] != "after\n" {
		t.Errorf("%d lines of noise, want Starting, 2 MB and after", len(broken))
	}
	got, err := os.ReadFile(record)
	if err != nil || !strings.Contains(string(got), `"method":"initialize"`) {
		t.Errorf("record = %q, %v, want the initialize request", got, err)
	}
}

func TestChild_StubbornOutlivesItsClient(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pids")
	c := start(t, Script{Stubborn: true, PIDFile: pidFile})
	pids := PIDs(t, pidFile, 2)
	t.Cleanup(func() { Gone(t, 5*time.Second, pids...) })
	for _, pid := range pids {
		p, err := os.FindProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Kill() })
	}
	c.Initialize("t")
	_ = c.Close()
	for _, pid := range pids {
		if !Alive(pid) {
			t.Errorf("process %d ended with its stdin", pid)
		}
	}
}

func TestServer_AwaitGivesUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := New(Script{}).Await(ctx, "ping", 1); err == nil {
		t.Error("Await = nil, want an error at the end of the context")
	}
}
