package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsearch-mcp/toolsearch-mcp/aggregator"
	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/config"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show tool search on sample servers, without any set-up",
		Args:  exactly(0, 0, ""),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context()) },
	}
}

const (
	demoQuery  = "schedule a meeting"
	demoEvent  = `{"title": "Planning", "start": "2026-06-03T09:30:00+02:00", "end": "2026-06-03T10:30:00+02:00"}`
	demoScript = `const [hit] = await openclaw.tools.search("convert miles to kilometres", {limit: 1});
const legs = [12, 26.2, 100];
const runs = await Promise.all(legs.map(v => openclaw.tools.call(hit.id, {value: v, from: "mi", to: "km"})));
return {tool: hit.id, km: runs.map(r => r.result.details)};`
)

// demo prints one walk through everything for a person.
func (a *app) demo(ctx context.Context) error {
	if a.logLevel == "" {
		a.logLevel = "error"
	}
	log, redactor, err := a.logger()
	if err != nil {
		return err
	}
	settings, _ := aggregator.Settings{}.Clamp()
	bridge, _ := codebridge.Config{}.Clamp()
	cfg := &config.Config{ToolSearch: settings, CodeBridge: bridge, Servers: demo.Servers()}
	p, err := a.build(ctx, cfg, redactor, log)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.settle(ctx); err != nil {
		return err
	}
	w := &walk{app: a, program: p}
	w.sizes(ctx)
	w.search(ctx)
	w.describe(ctx)
	w.call(ctx)
	w.script(ctx)
	return w.err
}

// walk is one demo. After the first error nothing more is done.
type walk struct {
	*app
	program *program
	id      string // of the tool that was found
	err     error
}

func (w *walk) say(format string, args ...any) { fmt.Fprintf(w.stdout, format+"\n", args...) }

// title begins a step with what a model would send.
func (w *walk) title(what, input string) {
	w.say("\n\u25b6 %s\n  %s", what, strings.ReplaceAll(input, "\n", "\n  "))
}

// sizes compares what a client is shown with and without tool search.
func (w *walk) sizes(ctx context.Context) {
	servers := len(w.program.config.Servers)
	direct, tools := w.listed(ctx, aggregator.ModeOff)
	mode := aggregator.ModeCode
	if w.program.sandboxErr != nil {
		mode = aggregator.ModeTools
	}
	search, few := w.listed(ctx, mode)
	if w.err != nil {
		return
	}
	w.say("%d sample servers with %d tools, all inside this process.\n", servers, tools)
	w.say("  what a client is shown        tools    bytes   tokens (about)")
	w.say("  every tool, listed directly   %5d  %7d  %7d", tools, direct, direct/bytesPerToken)
	w.say("  tool search (mode %s)%s %5d  %7d  %7d", mode, strings.Repeat(" ", 12-len(mode)), few, search, search/bytesPerToken)
	w.say("  saved                                %6.1f %%", 100*(1-float64(search)/float64(direct)))
}

// listed returns the size of tools/list in a mode, and how many tools it has.
func (w *walk) listed(ctx context.Context, mode aggregator.Mode) (size, tools int) {
	if w.err != nil {
		return 0, 0
	}
	settings := w.program.config.ToolSearch
	settings.Mode = string(mode)
	w.program.face.Reload(settings, nil)
	size, tools, w.err = w.program.listed(ctx, "")
	return size, tools
}

func (w *walk) do(ctx context.Context, tool string, args any) *toolResult {
	if w.err != nil {
		return nil
	}
	input, err := json.Marshal(args)
	if err != nil {
		w.err = err
		return nil
	}
	raw, err := w.program.face.Local("").Call(ctx, tool, input)
	res := &toolResult{raw: raw}
	if err == nil {
		err = json.Unmarshal(raw, res)
	}
	if err == nil {
		err = res.failure()
	}
	w.err = err
	if err != nil {
		return nil
	}
	return res
}

func (w *walk) search(ctx context.Context) {
	res := w.do(ctx, "tool_search", map[string]any{"query": demoQuery, "limit": 3})
	if res == nil {
		return
	}
	w.title("tool_search", fmt.Sprintf("{%q: %q, %q: 3}", "query", demoQuery, "limit"))
	var hits []directory.Hit
	if w.err = json.Unmarshal([]byte(res.first()), &hits); w.err != nil {
		return
	}
	if len(hits) == 0 {
		w.err = fmt.Errorf("the demo found no tool for %q", demoQuery)
		return
	}
	for _, h := range hits {
		w.say("  %s\n      %s\n      %s", h.ID, h.Description, h.Input)
	}
	w.id = hits[0].ID
}

func (w *walk) describe(ctx context.Context) {
	res := w.do(ctx, "tool_describe", map[string]any{"id": w.id})
	if res == nil {
		return
	}
	w.title("tool_describe", fmt.Sprintf("{%q: %q}", "id", w.id))
	w.say("  %s\n  (%d bytes: the full schema of this one tool)", directory.OneLine(res.first(), 300), len(res.first()))
}

func (w *walk) call(ctx context.Context) {
	res := w.do(ctx, "tool_call", map[string]any{"id": w.id, "args": json.RawMessage(demoEvent)})
	if res == nil {
		return
	}
	w.title("tool_call", fmt.Sprintf("{%q: %q, %q: %s}", "id", w.id, "args", demoEvent))
	w.say("  %s", directory.OneLine(res.first(), 300))
}

func (w *walk) script(ctx context.Context) {
	if w.err == nil && w.program.sandboxErr != nil {
		w.say("\nScripts (tool_search_code) cannot run here: %v", w.program.sandboxErr)
		return
	}
	res := w.do(ctx, "tool_search_code", map[string]any{"code": demoScript})
	if res == nil {
		return
	}
	w.title("tool_search_code: a search and three calls in one turn", demoScript)
	var run struct{ Value, Telemetry json.RawMessage }
	if w.err = json.Unmarshal([]byte(res.first()), &run); w.err != nil {
		return
	}
	var value bytes.Buffer
	if w.err = json.Compact(&value, run.Value); w.err != nil {
		return
	}
	w.say("  %s\n  telemetry: %s", value.String(), run.Telemetry)
	w.say("\nNext: put your servers into a configuration file and run \"toolsearch-mcp check\".")
}
