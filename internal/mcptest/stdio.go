package mcptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	scriptEnv     = "MCPTEST_SCRIPT" // the script as JSON, or @ and a file that holds it
	grandchildEnv = "MCPTEST_GRANDCHILD"

	// maxLife ends stubborn processes whatever a broken test does.
	maxLife = 2 * time.Minute
)

// MaybeServe plays a script on stdin and stdout and exits, if this process was
// started by [Command]; else it returns at once. It belongs into TestMain.
func MaybeServe() {
	if os.Getenv(grandchildEnv) != "" {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
		time.Sleep(maxLife)
		os.Exit(0)
	}
	text := os.Getenv(scriptEnv)
	if text == "" {
		return
	}
	if err := serveChild(text); err != nil {
		fmt.Fprintln(os.Stderr, "mcptest:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serveChild(text string) error {
	b := []byte(text)
	if file, ok := strings.CutPrefix(text, "@"); ok {
		var err error
		if b, err = os.ReadFile(file); err != nil {
			return err
		}
	}
	var script Script
	if err := json.Unmarshal(b, &script); err != nil {
		return err
	}
	pids := []int{os.Getpid()}
	if script.Stubborn {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), grandchildEnv+"=1")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr // keeps our pipes open, as real ones do
		if err := child.Start(); err != nil {
			return err
		}
		pids = append(pids, child.Process.Pid)
	}
	if script.PIDFile != "" {
		if err := writePIDs(script.PIDFile, pids); err != nil {
			return err
		}
	}
	if n := script.StderrBytes; n > 0 {
		line := append(bytes.Repeat([]byte("e"), 99), '\n')
		for ; n > 0; n -= len(line) {
			_, _ = os.Stderr.Write(line)
		}
	}
	if New(script).Serve(mortal{os.Stdin, script.ExitCode}, os.Stdout) != nil {
		os.Exit(script.ExitCode)
	}
	if script.Stubborn {
		time.Sleep(maxLife)
	}
	return nil
}

// mortal is the stdin of a child. A read of stdin that waits is not ended by
// closing it, so closing it is the end of the process.
type mortal struct {
	io.Reader
	exitCode int
}

func (m mortal) Close() error {
	os.Exit(m.exitCode)
	return nil
}

// writePIDs appends, so that several children may share a file.
func writePIDs(file string, pids []int) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	var lines strings.Builder
	for _, pid := range pids {
		fmt.Fprintln(&lines, pid)
	}
	_, err = io.WriteString(f, lines.String())
	return err
}

// Command returns how to start a child process that plays the script: this
// test binary, whose TestMain calls [MaybeServe], and its environment.
func Command(t testing.TB, script Script) (command string, env map[string]string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := string(mustMarshal(script))
	if len(text) > 16<<10 { // an environment variable has a limit, and so has a command line on Windows
		file := filepath.Join(t.TempDir(), "script.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		text = "@" + file
	}
	return exe, map[string]string{scriptEnv: text}
}
