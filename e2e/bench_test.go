package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
)

// The goals of docs/benchmarks.md:
//
//	go test ./e2e -run '^$' -bench . -benchtime 1x
//
// Each benchmark measures many repetitions by itself and reports the median,
// so one iteration is enough. What is compared is measured in alternation.

// median of a sample, which it sorts.
func median[T int | float64 | time.Duration](sample []T) T {
	slices.Sort(sample)
	return sample[len(sample)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// firstAnswer is the time from the start of the process until initialize and
// tools/list are answered.
func firstAnswer(t testing.TB, h *home) time.Duration {
	t.Helper()
	start := time.Now()
	p := h.connect()
	p.Result("tools/list", "")
	took := time.Since(start)
	left := children(p.cmd.Process.Pid)
	_ = p.cmd.Process.Kill()
	p.AwaitEnd()
	mcptest.Gone(t, 10*time.Second, left...) // their end must not slow the next down
	return took
}

// slowServers are n servers that answer initialize after ten seconds.
func slowServers(t testing.TB, n int, pidFile string) object {
	t.Helper()
	servers := object{}
	for i := range n {
		servers[fmt.Sprintf("slow%d", i)] = fake(t, mcptest.Script{PIDFile: pidFile, Methods: map[string]mcptest.Answer{"initialize": {Delay: 10 * time.Second}}})
	}
	return servers
}

// BenchmarkFirstAnswer: beside no server, and beside 20 that take 10 s.
func BenchmarkFirstAnswer(b *testing.B) {
	none, slow := newHome(b, object{}, nil), newHome(b, slowServers(b, 20, ""), nil)
	firstAnswer(b, none) // from now on the binary is in the page cache
	for b.Loop() {
		var without, beside []time.Duration
		for range 9 {
			without = append(without, firstAnswer(b, none))
			beside = append(beside, firstAnswer(b, slow))
		}
		b.ReportMetric(ms(median(without)), "none-ms")
		b.ReportMetric(ms(median(beside)), "20-slow-ms")
		b.ReportMetric(ms(median(beside)-median(without)), "added-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// TestFirstAnswer: slow servers do not delay the first answers, and none is
// started before a client has said initialize.
func TestFirstAnswer(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pids")
	none, slow := newHome(t, object{}, nil), newHome(t, slowServers(t, 20, pidFile), nil)

	p := slow.serve()
	p.Result("ping", "") // it runs and reads
	if b, err := os.ReadFile(pidFile); err == nil {
		t.Errorf("servers were started before initialize: process ids %q", b)
	}
	p.Initialize("e2e")
	pids := mcptest.PIDs(t, pidFile, 20)
	_ = p.cmd.Process.Kill()
	p.AwaitEnd()
	mcptest.Gone(t, 10*time.Second, pids...)

	var without, beside []time.Duration
	for range 5 {
		without = append(without, firstAnswer(t, none))
		beside = append(beside, firstAnswer(t, slow))
	}
	// The servers take ten seconds each: waiting for one would show.
	if w, b := median(without), median(beside); b > 3*w+time.Second {
		t.Errorf("first answers after %v beside slow servers, %v without", b, w)
	}
}

// cpuSeconds is the processor time of a process so far.
func cpuSeconds(t testing.TB, pid int) float64 {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		t.Skip("skipped: needs /proc of Linux")
	}
	sum := 0.0
	for _, task := range tasks {
		b, _ := os.ReadFile(task)
		if f := strings.Fields(string(b)); len(f) > 0 {
			ns, _ := strconv.ParseFloat(f[0], 64)
			sum += ns
		}
	}
	return sum / 1e9
}

// mib is the memory of a process: Rss is what is resident; Pss counts pages
// that n processes share (the program's own code) as an nth, so that it can be
// added up over processes.
func mib(t testing.TB, pid int, kind string) float64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Skip("skipped: needs /proc of Linux")
	}
	_, after, _ := strings.Cut(string(b), "\n"+kind+":")
	kb, _ := strconv.ParseFloat(strings.Fields(after)[0], 64)
	return kb / 1024
}

// children returns the living children of a process.
func children(pid int) []int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var out []int
	for _, task := range tasks {
		b, _ := os.ReadFile(task)
		for f := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(f); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}

// hop is one way to a server, direct or through us.
type hop struct {
	session *mcp.ClientSession
	params  *mcp.CallToolParams
	cmd     *exec.Cmd
}

func connectHop(b *testing.B, cmd *exec.Cmd, params *mcp.CallToolParams) *hop {
	b.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	h := &hop{s, params, cmd}
	for range 200 { // warm up
		h.call(b)
	}
	return h
}

func (h *hop) call(b *testing.B) time.Duration {
	start := time.Now()
	if r, err := h.session.CallTool(b.Context(), h.params); err != nil || r.IsError {
		b.Fatalf("call: %v %v", r, err)
	}
	return time.Since(start)
}

// BenchmarkCall: what one hop through us adds to a small stdio call.
func BenchmarkCall(b *testing.B) {
	server := fake(b, mcptest.Script{Name: "s", Tools: []json.RawMessage{mcptest.Tool("echo", "Echoes", echoSchema)}, Answers: map[string]mcptest.Answer{"echo": {Text: "hello"}}})
	args := object{"text": "hello"}
	for _, mode := range []string{"tools", "off"} {
		b.Run(mode, func(b *testing.B) {
			direct := exec.Command(server["command"].(string))
			direct.Env = os.Environ()
			for k, v := range server["env"].(map[string]string) {
				direct.Env = append(direct.Env, k+"="+v)
			}
			d := connectHop(b, direct, &mcp.CallToolParams{Name: "echo", Arguments: args})
			h := newHome(b, object{"s": server}, object{"toolSearch": object{"mode": mode}})
			cmd, _ := h.command("serve", "--config", h.Config)
			params := &mcp.CallToolParams{Name: "tool_call", Arguments: object{"id": "mcp:s:echo", "args": args}}
			if mode == "off" {
				params = &mcp.CallToolParams{Name: "s__echo", Arguments: args}
			}
			p := connectHop(b, cmd, params)

			const rounds, calls = 11, 300
			us := os.Getpid()
			for b.Loop() {
				var ratios, added []float64
				for range rounds {
					var directly, proxied []time.Duration
					ours, theirs := cpuSeconds(b, us), cpuSeconds(b, d.cmd.Process.Pid)
					for range calls {
						directly = append(directly, d.call(b))
					}
					cost := cpuSeconds(b, us) - ours + cpuSeconds(b, d.cmd.Process.Pid) - theirs
					share := cpuSeconds(b, p.cmd.Process.Pid)
					for range calls {
						proxied = append(proxied, p.call(b))
					}
					share = cpuSeconds(b, p.cmd.Process.Pid) - share
					ratios = append(ratios, share/cost)
					added = append(added, ms(median(proxied)-median(directly)))
				}
				b.ReportMetric(median(ratios), "cpu-ratio")
				b.ReportMetric(median(added), "added-p50-ms")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkMemory: resident memory with 1,000 tools, and with a warm worker.
func BenchmarkMemory(b *testing.B) {
	servers := object{}
	for i := range 10 {
		servers[fmt.Sprintf("s%d", i)] = fake(b, mcptest.Script{Generate: 100})
	}
	for b.Loop() {
		p := newHome(b, servers, object{"toolSearch": object{"mode": "tools"}}).connect()
		for i := range 10 {
			search(b, p.Client, fmt.Sprintf("update invoice of customer %d", i), 8)
		}
		b.ReportMetric(mib(b, p.cmd.Process.Pid, "Rss"), "1000-tools-MiB")
		_ = p.Close()
		p.AwaitEnd()

		p = newHome(b, servers, nil).connectCode()
		if run := script(b, p.Client, `return (await openclaw.tools.search("update invoice")).length`); !run.OK {
			b.Fatalf("script: %+v", run)
		}
		sum := mib(b, p.cmd.Process.Pid, "Pss")
		for _, child := range children(p.cmd.Process.Pid) {
			if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", child)); err == nil && exe == binary(b) {
				sum += mib(b, child, "Pss") // the worker and the guardian, not the servers
			}
		}
		b.ReportMetric(sum, "with-worker-MiB")
		_ = p.Close()
		p.AwaitEnd()
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkToolsList: bytes of tools/list by mode and number of tools.
func BenchmarkToolsList(b *testing.B) {
	for _, n := range []int{1, 100, 500, 2902} {
		for _, mode := range []string{"code", "tools", "directory", "off"} {
			b.Run(fmt.Sprintf("tools=%d/%s", n, mode), func(b *testing.B) {
				var servers object
				if n == 2902 {
					_, servers = playCatalogs(b, nil)
				} else {
					servers = object{"s": fake(b, mcptest.Script{Generate: n})}
				}
				h := newHome(b, servers, nil)
				h.check()
				for b.Loop() {
					start := h.connect
					if mode == "code" {
						start = h.connectCode
					}
					p := start("--mode", mode)
					_, size := listed(b, p.Client)
					b.ReportMetric(float64(size), "bytes")
					_ = p.Close()
					p.AwaitEnd()
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkScript: warm scripts, parallel calls in one, and a return after
// the limit.
func BenchmarkScript(b *testing.B) {
	tools := []json.RawMessage{mcptest.Tool("wait", "Waits", echoSchema)}
	slow := fake(b, mcptest.Script{Tools: tools, Answers: map[string]mcptest.Answer{"wait": {Delay: 100 * time.Millisecond, Text: "done"}}})
	h := newHome(b, object{"slow": with(slow, "supportsParallelToolCalls", true)}, object{"toolSearch": object{"codeTimeoutMs": 1000}})
	p := h.connectCode()
	script(b, p.Client, `return (await openclaw.tools.call("mcp:slow:wait", {})).result.details`)

	timed := func(b *testing.B, n int, code, kind string) time.Duration {
		b.Helper()
		var sample []time.Duration
		for range n {
			start := time.Now()
			run := script(b, p.Client, code)
			sample = append(sample, time.Since(start))
			if run.Error.Kind != kind {
				b.Fatalf("script: %+v, want kind %q", run, kind)
			}
		}
		return median(sample)
	}
	b.Run("trivial", func(b *testing.B) {
		for b.Loop() {
			b.ReportMetric(ms(timed(b, 200, `return 1`, "")), "p50-ms")
		}
		b.ReportMetric(0, "ns/op")
	})
	b.Run("10-parallel-calls-of-100ms", func(b *testing.B) {
		for b.Loop() {
			code := `return await Promise.all(Array.from({length: 10}, () => openclaw.tools.call("mcp:slow:wait", {})))`
			b.ReportMetric(ms(timed(b, 11, code, "")), "p50-ms")
		}
		b.ReportMetric(0, "ns/op")
	})
	b.Run("over-the-limit", func(b *testing.B) {
		for b.Loop() {
			took := timed(b, 3, `while (true) {}`, "timeout")
			b.ReportMetric(ms(took)-1000, "after-limit-ms")
		}
		b.ReportMetric(0, "ns/op")
	})
}

// BenchmarkKill: processes left after kill -9, and how long they take to end.
func BenchmarkKill(b *testing.B) {
	for b.Loop() {
		p, pids := stubbornTree(b)
		start := time.Now()
		_ = p.cmd.Process.Kill()
		p.AwaitEnd()
		mcptest.Gone(b, 10*time.Second, pids...)
		b.ReportMetric(ms(time.Since(start)), "gone-after-ms")
		left := 0
		for _, pid := range pids {
			if mcptest.Alive(pid) {
				left++
			}
		}
		b.ReportMetric(float64(left), "left")
	}
	b.ReportMetric(0, "ns/op")
}

// TestToolsListBytes holds the sizes that are promised, whatever the catalog.
func TestToolsListBytes(t *testing.T) {
	for _, n := range []int{1, 100, 500} {
		servers := object{}
		for i := range min(n, 25) { // names and descriptions of many servers press on the overview
			name := fmt.Sprintf("department-of-%c-affairs", 'a'+i)
			servers[name] = with(fake(t, mcptest.Script{Title: name, Generate: n / min(n, 25)}), "description", strings.Repeat("what this is good for ", 5))
		}
		h := newHome(t, servers, nil)
		h.check()
		for mode, most := range map[string]int{"code": 2000, "tools": 3000} {
			start := h.connect
			if mode == "code" {
				start = h.connectCode
			}
			p := start("--mode", mode)
			names, size := listed(t, p.Client)
			if size > most+len(`{"tools":[]}`) || !slices.Equal(slices.Sorted(slices.Values(names)), controlTools(mode)) {
				t.Errorf("mode %s with %d tools: tools/list has %d bytes and %v, want at most %d", mode, n, size, names, most)
			}
			_ = p.Close()
			p.AwaitEnd()
		}
	}
}
