//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
)

// A hangup reads the file again although it did not change: what it refers to
// may have.
func TestReload_OnHangup(t *testing.T) {
	mcptest.NoLeaks(t)
	s := serveFile(t, "toolSearch: false\n")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.log.wait(t, "configuration reloaded", 1)
}

// The file may be a link, and what it leads to may be changed or replaced.
func TestReload_FollowsALink(t *testing.T) {
	mcptest.NoLeaks(t)
	s := serveFile(t, "toolSearch: false\n")
	target := filepath.Join(t.TempDir(), "real.yaml")
	if err := os.WriteFile(target, []byte("mcpServers: {} # real\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	next := s.file + ".link"
	if err := os.Symlink(target, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, s.file); err != nil {
		t.Fatal(err)
	}
	s.log.wait(t, "configuration reloaded", 1)
	if err := os.WriteFile(target, []byte("mcpServers: {} # changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.log.wait(t, "configuration reloaded", 2)
}
