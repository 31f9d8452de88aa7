package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
)

// logged is a stderr that can be waited on.
type logged struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed and replaced at each write
}

func newLogged() *logged { return &logged{written: make(chan struct{})} }

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.written)
	l.written = make(chan struct{})
	return l.text.Write(b)
}

// wait returns when the text holds word n times.
func (l *logged) wait(t *testing.T, word string, n int) {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		l.mu.Lock()
		text, written := l.text.String(), l.written
		l.mu.Unlock()
		if strings.Count(text, word) >= n {
			return
		}
		select {
		case <-written:
		case <-timeout:
			t.Fatalf("log = %s, want %q %d times", text, word, n)
		}
	}
}

// served is a running serve over a configuration file.
type served struct {
	t      *testing.T
	file   string
	client *mcptest.Client
	log    *logged
}

// serveFile starts serve with this configuration and shakes hands.
func serveFile(t *testing.T, text string) *served {
	t.Helper()
	s := &served{t: t, file: filepath.Join(t.TempDir(), "c.yaml"), log: newLogged()}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s.write(text)
	client, in, out := mcptest.Pipe(t)
	s.client = client
	ended := make(chan int, 1)
	go func() {
		defer out.Close()
		ended <- run(t.Context(), []string{"serve", "--config", s.file}, in, out, s.log)
	}()
	t.Cleanup(func() {
		_ = client.Close()
		if code := <-ended; code != 0 {
			t.Errorf("serve = %d, want 0 at the end of stdin", code)
		}
	})
	client.Initialize("test")
	return s
}

// write replaces the file as editors do: a new one is put in its place.
func (s *served) write(text string) {
	s.t.Helper()
	next := s.file + ".new"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(next, s.file); err != nil {
		s.t.Fatal(err)
	}
}

// tools returns the names that tools/list shows.
func (s *served) tools() string {
	s.t.Helper()
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(s.client.Result("tools/list", ""), &list); err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// waitForTools lists the tools after each list_changed until they are these.
func (s *served) waitForTools(want string) {
	s.t.Helper()
	for s.tools() != want {
		s.client.Next("list_changed before the tools are "+want, func(m mcptest.Message) bool { return m.Method == "notifications/tools/list_changed" })
	}
}

// entry is a line of mcpServers for a fake server with these tools.
func entry(t *testing.T, name string, tools ...string) string {
	t.Helper()
	var script mcptest.Script
	for _, tool := range tools {
		script.Tools = append(script.Tools, mcptest.Tool(tool, "Does "+tool, `{"type":"object"}`))
	}
	command, env := mcptest.Command(t, script)
	encoded, err := json.Marshal(map[string]any{"command": command, "env": env})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("  %s: %s\n", name, encoded)
}

func TestReload(t *testing.T) {
	notes, units := entry(t, "notes", "create_note", "wipe"), entry(t, "units", "convert")
	s := serveFile(t, "toolSearch: false\nmcpServers:\n"+notes)
	if got, want := s.tools(), "notes__create_note notes__wipe"; got != want {
		t.Fatalf("tools = %q, want %q", got, want)
	}

	s.write("toolSearch: false\nmcpServers:\n" + notes + "polcy: {}\n")
	s.log.wait(t, "configuration not reloaded", 1)
	s.log.wait(t, `did you mean \"policy\"?`, 1)
	s.write("")
	s.log.wait(t, "configuration not reloaded", 2)
	if got, want := s.tools(), "notes__create_note notes__wipe"; got != want {
		t.Errorf("tools after an invalid file = %q, want them unchanged: %q", got, want)
	}

	s.write("toolSearch: false\npolicy: {deny: ['*:wipe']}\nmcpServers:\n" + notes)
	s.waitForTools("notes__create_note")
	refused := s.client.Call("tools/call", `{"name":"notes__wipe","arguments":{}}`)
	if refused.Error == nil {
		t.Errorf("call of a tool that is denied now = %s, want an error", refused.Result)
	}

	s.write("toolSearch: false\ncodeBridge: {workers: 1}\nmcpServers:\n" + units)
	s.log.wait(t, "takes effect at the next start", 1)
	s.log.wait(t, "configuration reloaded", 2)
	s.waitForTools("units__convert")
}
