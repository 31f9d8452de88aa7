package codebridge

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// nativeProof runs inside a worker, as native code with all that the process
// still has, and tells what it could do. It is what a program could try that
// broke out of the engine.
func nativeProof([]byte) []byte {
	try := map[string]func() error{
		"read a file":   func() error { f, err := os.Open(os.Args[0]); _ = f; return err },
		"create a file": func() error { f, err := os.Create("x"); _ = f; return err },
		"list a folder": func() error { _, err := os.ReadDir("/"); return err },
		"delete":        func() error { return os.Remove("x") },
		"connect":       func() error { c, err := net.Dial("tcp", "127.0.0.1:1"); _ = c; return err },
		"listen":        func() error { l, err := net.Listen("tcp", "127.0.0.1:0"); _ = l; return err },
		"resolve":       func() error { _, err := net.LookupHost("localhost."); return err },
		"start":         func() error { return exec.Command("/bin/true").Run() },
		"start itself":  func() error { return syscall.Exec("/proc/self/exe", []string{"x"}, nil) },
		"signal parent": func() error { p, _ := os.FindProcess(os.Getppid()); return p.Signal(syscall.SIGTERM) },
		"pipe":          func() error { r, w, err := os.Pipe(); _, _ = r, w; return err },
	}
	got := map[string]string{"environment": fmt.Sprint(os.Environ())}
	for name, f := range try {
		got[name] = "allowed"
		if err := f(); err != nil {
			got[name] = err.Error()
		}
	}
	b, err := json.Marshal(got)
	if err != nil {
		panic(err)
	}
	return b
}

// TestConfinement: inside a worker that could run a program, native code
// cannot open a file or a socket nor start a process.
func TestConfinement(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux confines the worker beyond its empty folder and environment; see docs/security.md")
	}
	e := newEngine(t, Config{Workers: 1})
	w, err := e.start(t.Context())
	if err != nil {
		t.Fatalf("start() = %v", err)
	}
	defer w.kill()
	w.send(encodeFrame(frameTest, nil), nil)
	f, err := w.expect(t.Context(), frameDone)
	if err != nil {
		t.Fatalf("the proof did not answer: %v", err)
	}
	var got map[string]string
	if err := json.Unmarshal(f.payload, &got); err != nil {
		t.Fatalf("the proof says %q: %v", f.payload, err)
	}
	if got["environment"] != "[]" {
		t.Errorf("the worker's environment is %s, want none", got["environment"])
	}
	delete(got, "environment")
	for name, result := range got {
		if result == "allowed" {
			t.Errorf("inside the worker: %s is allowed", name)
		}
	}
	if len(got) < 10 {
		t.Errorf("the proof tried only %d things", len(got))
	}
}
