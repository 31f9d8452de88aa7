package upstreams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/secret"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

const roleEnv = "UPSTREAMS_TEST_ROLE"

// maybePlay is a child process of a test here that mcptest has no script for.
func maybePlay() {
	switch role, arg, _ := strings.Cut(os.Getenv(roleEnv), " "); role {
	case "":
		return
	case "env": // print the environment, as an answer to anything
		env, _ := json.Marshal(os.Environ())
		fmt.Printf(`{"jsonrpc":"2.0","id":1,"result":{"env":%s}}`+"\n", env)
	case "deaf": // never read stdin
		time.Sleep(time.Minute)
	case "orphan": // end at once, while a child holds stdout
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{roleEnv + "=deaf"}
		cmd.Stdout = os.Stdout
		if err := cmd.Start(); err != nil {
			fmt.Println(err)
		}
		os.Exit(3)
	case "parent": // hold a link to a stubborn server until killed
		exe, script, _ := strings.Cut(arg, " ")
		cfg := Config{Name: "s", Command: exe, Env: map[string]secret.String{"MCPTEST_SCRIPT": secret.String(script)}}
		if _, err := dial(context.Background(), cfg, linkEvents{}, nil); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		select {}
	}
	os.Exit(0)
}

// scripted is the configuration of a child that plays the script.
func scripted(t *testing.T, script mcptest.Script) Config {
	t.Helper()
	for _, name := range []string{"echo", "big", "die"} {
		script.Tools = append(script.Tools, mcptest.Tool(name, "", `{"type":"object"}`))
	}
	exe, env := mcptest.Command(t, script)
	cfg := Config{Name: "fake", Command: exe, Env: map[string]secret.String{}}
	for k, v := range env {
		cfg.Env[k] = secret.String(v)
	}
	return cfg
}

func role(t *testing.T, name string) Config {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Config{Name: "fake", Command: exe, Env: map[string]secret.String{roleEnv: secret.String(name)}}
}

// openLink dials cfg and starts a session over the link. Both end with the test.
func openLink(t *testing.T, cfg Config, ev linkEvents) (*link, *mcp.ClientSession) {
	t.Helper()
	l := dialTest(t, cfg, ev)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := testClient().Connect(ctx, l.transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatalf("connect: %v; stderr: %s", err, l.stderr())
	}
	return l, s
}

func dialTest(t *testing.T, cfg Config, ev linkEvents) *link {
	t.Helper()
	l, err := dial(t.Context(), cfg, ev, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := l.close(ctx); err != nil {
			t.Error(err)
		}
	})
	return l
}

func testClient() *mcp.Client {
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, nil)
	wire.RegisterRaw(c, "tools/list", "tools/call")
	return c
}

func callTool(t *testing.T, s *mcp.ClientSession, name string) (json.RawMessage, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return wire.CallRaw(ctx, s, "tools/call", json.RawMessage(`{"name":`+strconv.Quote(name)+`,"arguments":{"n":9007199254740993},"_meta":{"progressToken":"p"}}`))
}

func TestStdio_NoiseAndProgress(t *testing.T) {
	noisy := []string{"Booting v3...", "", `{"level":"info"}`, "42", "[1]", "token s3cr3t-ONE"}
	cfg := scripted(t, mcptest.Script{
		NoiseBefore: noisy, NoiseBetween: noisy, NoiseAfter: noisy, NoiseBytes: 2 << 20,
		Answers: map[string]mcptest.Answer{"*": {Delay: 20 * time.Millisecond, Progress: 5}},
	})
	cfg.Env["HARBOR_KEY"] = "s3cr3t-ONE"
	var noise, progress []string
	_, s := openLink(t, cfg, linkEvents{
		Noise:    func(l string) { noise = append(noise, l) },
		Progress: func(p json.RawMessage) { progress = append(progress, string(p)) },
	})
	for range 3 {
		progress = nil
		res, err := callTool(t, s, "echo")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(res), "9007199254740993") {
			t.Errorf("result = %s", res)
		}
		if len(progress) != 5 {
			t.Errorf("%d progress notifications before the answer, want 5: %v", len(progress), progress)
		}
	}
	if len(noise) == 0 || !slices.Contains(noise, "Booting v3...") || slices.ContainsFunc(noise, func(l string) bool { return strings.Contains(l, "s3cr3t") }) {
		t.Errorf("noise = %q", noise)
	}
}

func TestStdio_LargeAnswer(t *testing.T) {
	for _, size := range []int{2 << 20, 20 << 20} {
		cfg := scripted(t, mcptest.Script{Answers: map[string]mcptest.Answer{"big": {Bytes: size}}})
		_, s := openLink(t, cfg, linkEvents{})
		res, err := callTool(t, s, "big")
		if err != nil || len(res) < size {
			t.Errorf("call of %d bytes = %d bytes, %v", size, len(res), err)
		}
	}
}

func TestStdio_StderrIsDrainedAndKept(t *testing.T) {
	l, s := openLink(t, scripted(t, mcptest.Script{StderrBytes: 300 << 10}), linkEvents{})
	if _, err := callTool(t, s, "echo"); err != nil {
		t.Fatal(err)
	}
	if n := len(l.stderr()); n != stderrKept {
		t.Errorf("%d bytes of stderr kept, want %d", n, stderrKept)
	}
}

func TestStdio_ChildThatDoesNotRead(t *testing.T) {
	l := dialTest(t, role(t, "deaf"), linkEvents{})
	c, err := l.transport.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	big := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	if err := c.Write(ctx, &jsonrpc.Request{Method: "m", Params: big}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Write() = %v, want the deadline", err)
	}
}

func TestStdio_DeathFailsTheCallAtOnce(t *testing.T) {
	cfg := scripted(t, mcptest.Script{ExitCode: 3, StderrBytes: 100, Answers: map[string]mcptest.Answer{"die": {Die: true}}})
	l, s := openLink(t, cfg, linkEvents{})
	_, err := callTool(t, s, "die")
	if err == nil || !errors.Is(callError(err), ErrLost) || errors.Is(callError(err), errNotExecuted) {
		t.Errorf("callError(%v) = %v, want ErrLost and not errNotExecuted", err, callError(err))
	}
	if how, ended := l.exit(); !ended || how != "exit status 3" {
		t.Errorf("exit() = %q, %v, want exit status 3", how, ended)
	}
	if l.stderr() == "" {
		t.Error("nothing kept of stderr")
	}
	if _, err := callTool(t, s, "echo"); !errors.Is(callError(err), errNotExecuted) {
		t.Errorf("callError(%v) = %v, want errNotExecuted", err, callError(err))
	}
}

func TestStdio_GrandchildHoldingStdoutDoesNotHideTheDeath(t *testing.T) {
	l := dialTest(t, role(t, "orphan"), linkEvents{})
	c, err := l.transport.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if m, err := c.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("Read() = %v, %v, want the end of the connection", m, err)
	}
	if how, ended := l.exit(); !ended || how != "exit status 3" {
		t.Errorf("exit() = %q, %v, want exit status 3", how, ended)
	}
}

func TestStdio_CloseEndsStubbornGroups(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	l, s := openLink(t, scripted(t, mcptest.Script{Stubborn: true, PIDFile: pids}), linkEvents{})
	all := mcptest.PIDs(t, pids, 2)
	s.Close()
	if err := l.close(t.Context()); err != nil {
		t.Error(err)
	}
	mcptest.Gone(t, 0, all...)
	if how, ended := l.exit(); !ended {
		t.Errorf("exit() = %q, %v", how, ended)
	}
}

func TestStdio_CloseLetsTheChildEndByItself(t *testing.T) {
	l, s := openLink(t, scripted(t, mcptest.Script{}), linkEvents{})
	s.Close()
	if err := l.close(t.Context()); err != nil {
		t.Error(err)
	}
	if how, _ := l.exit(); how != "exit status 0" {
		t.Errorf("exit() = %q, want exit status 0: closing stdin is enough", how)
	}
}

func TestStdio_Kill9OfUsEndsStubbornChildren(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	cfg := scripted(t, mcptest.Script{Stubborn: true, PIDFile: pids})
	us := exec.Command(cfg.Command)
	us.Env = []string{roleEnv + "=parent " + cfg.Command + " " + cfg.Env["MCPTEST_SCRIPT"].Reveal()}
	us.Stdout = os.Stderr
	if err := us.Start(); err != nil {
		t.Fatal(err)
	}
	all := mcptest.PIDs(t, pids, 2)
	if err := us.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	us.Wait()
	mcptest.Gone(t, 15*time.Second, all...)
}

func TestStdio_Environment(t *testing.T) {
	t.Setenv("A_TOKEN", "secret of another server")
	t.Setenv("B_TOKEN", "asked for")
	t.Setenv("NO_PROXY", "ours")
	t.Setenv("LC_ALL", "C")
	t.Setenv("TZ", "UTC")
	t.Setenv(DepthEnv, "2")
	cfg := role(t, "env")
	cfg.InheritEnv = []string{"B_TOKEN"}
	cfg.Env["no_proxy"] = "its own"
	cfg.Env["TZ"] = "Europe/Rome"
	l := dialTest(t, cfg, linkEvents{})
	c, err := l.transport.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err, l.stderr())
	}
	var answer struct{ Env []string }
	if err := json.Unmarshal(m.(*jsonrpc.Response).Result, &answer); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, kv := range answer.Env {
		k, v, _ := strings.Cut(kv, "=")
		if k != "PATH" && k != "HOME" && k != roleEnv && !isInherited(k) || k == "TZ" || k == "NO_PROXY" || k == "no_proxy" || k == "LC_ALL" {
			got[k] = v
		}
	}
	want := map[string]string{"B_TOKEN": "asked for", "no_proxy": "its own", "TZ": "Europe/Rome", "LC_ALL": "C", DepthEnv: "3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestChildEnv_InheritAll(t *testing.T) {
	cfg := Config{InheritEnv: []string{"*"}, Env: map[string]secret.String{"A": "own"}}
	got := childEnv(cfg, []string{"A=ours", "B=x=y", "HOME=/h", DepthEnv + "=7"})
	if want := []string{"A=own", "B=x=y", "HOME=/h", DepthEnv + "=1"}; !cmp.Equal(got, want) {
		t.Errorf("childEnv() = %q, want %q", got, want)
	}
}

func TestDial_CommandErrors(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths are written for unix")
	}
	dir := t.TempDir()
	write := func(path string, mode os.FileMode) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\ncat\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/serve it", 0o700)
	write("plain", 0o600)
	write("home/.local/bin/frobnicate", 0o700)
	write("home/tool", 0o700)
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("PATH", "/usr/bin:/bin")
	for _, tc := range []struct {
		cfg  Config
		want []string // in the error; nil: it starts
	}{
		{Config{Command: "no-such-command"}, []string{`"no-such-command"`, "(/usr/bin:/bin)", "install it"}},
		{Config{Command: "frobnicate"}, []string{`"frobnicate"`, "(/usr/bin:/bin)", filepath.Join(dir, "home/.local/bin"), "env PATH"}},
		{Config{Command: "uvx", Env: map[string]secret.String{"PATH": "/nowhere"}}, []string{"(/nowhere)", "install uv"}},
		{Config{Command: "npx -y pkg"}, []string{"item of args"}},
		{Config{Command: "serve it", Env: map[string]secret.String{"PATH": secret.String(filepath.Join(dir, "bin"))}}, nil},
		{Config{Command: "serve it", Env: map[string]secret.String{"PATH": "bin:."}, Cwd: dir}, []string{"not found"}},
		{Config{Command: "./bin/serve it", Cwd: dir}, nil},
		{Config{Command: filepath.Join(dir, "home/nothing")}, []string{filepath.Join(dir, "home/nothing"), "does not exist"}},
		{Config{Command: "./bin/node server.js", Cwd: dir}, []string{"does not exist", "the program alone as command and what follows into args"}},
		{Config{Command: "node /srv/x.js"}, []string{"the program alone as command and what follows into args"}},
		{Config{Command: filepath.Join(dir, "plain")}, []string{"may not be executed", "chmod"}},
		{Config{Command: filepath.Join(dir, "home/tool"), Cwd: filepath.Join(dir, "gone")}, []string{"cwd", "is not a folder"}},
		{Config{Command: filepath.Join(dir, "home/tool"), Cwd: dir}, nil},
		{Config{}, []string{"neither command nor url"}},
	} {
		l, err := dial(t.Context(), tc.cfg, linkEvents{}, slog.New(slog.DiscardHandler))
		if tc.want == nil {
			if err != nil {
				t.Errorf("dial(%q) = %v, want a link", tc.cfg.Command, err)
				continue
			}
			if err := l.close(t.Context()); err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil {
			t.Errorf("dial(%q) started, want an error with %q", tc.cfg.Command, tc.want)
			l.close(t.Context())
			continue
		}
		for _, part := range tc.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("dial(%q) = %v, want %q in it", tc.cfg.Command, err, part)
			}
		}
		if got := hint(&tc.cfg, err); got != "" {
			t.Errorf("hint(%v) = %q, want none beside an error that says what to do", err, got)
		}
	}
}

func TestTelling(t *testing.T) {
	for _, tc := range []struct{ stderr, line, what string }{
		{"", "", "last line"},
		{"listening\nbye\n", "bye", "last line"},
		{"x.js:1\nSyntaxError: no\n    at y\n\nNode.js v20.20.2\n", "SyntaxError: no", "last error"},
		{"error: one\r\nERROR two\r\nend", "ERROR two", "last error"},
	} {
		if line, what := telling(tc.stderr); line != tc.line || what != tc.what {
			t.Errorf("telling(%q) = %q, %q, want %q, %q", tc.stderr, line, what, tc.line, tc.what)
		}
	}
}

func TestStdio_SecretsStayOut(t *testing.T) {
	cfg := Config{
		Command: "no-such-command", Args: []secret.String{"--token=s3cr3t-FOUR"},
		Env: map[string]secret.String{"HARBOR_KEY": "s3cr3t-ONE"},
	}
	var log strings.Builder
	_, err := dial(t.Context(), cfg, linkEvents{}, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err == nil || strings.Contains(err.Error()+log.String(), "s3cr3t") {
		t.Errorf("error %v, log %s", err, &log)
	}
	hidden := redactorOf(&Config{
		Args:    cfg.Args,
		Env:     cfg.Env,
		Headers: map[string]secret.String{"X-Team": "s3cr3t-TWO", "Authorization": "Bearer s3cr3t-FIVE"},
		URL:     "https://me:s3cr3t-SIX@host/mcp/s3cr3t-SEVEN?key=s3cr3t-THREE",
	})
	said := "s3cr3t-ONE s3cr3t-TWO key=s3cr3t-THREE --token=s3cr3t-FOUR (s3cr3t-FIVE) s3cr3t-SIX https://host/mcp/s3cr3t-SEVEN?key=s3cr3t-THREE end"
	if got := hidden.String(said); strings.Contains(got, "s3cr3t") || !strings.HasSuffix(got, " end") {
		t.Errorf("redacted = %s", got)
	}
}
