package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolsearch-mcp/toolsearch-mcp/aggregator"
	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// bytesPerToken is the usual estimate for JSON and English text.
const bytesPerToken = 4

// longName is the longest tool name that every known client takes, with
// "mcp__toolsearch-mcp__" before it.
const longName = upstreams.DefaultMaxNameLength

// report is what check found.
type report struct {
	OK       bool           `json:"ok"`
	Error    string         `json:"error,omitempty"` // why nothing could be checked
	Config   string         `json:"config,omitempty"`
	Mode     string         `json:"mode,omitempty"`
	Servers  []serverReport `json:"servers"`
	Listed   listReport     `json:"listed"`   // what a client's tools/list gets
	Hidden   []hiddenReport `json:"hidden"`   // tools that no caller sees, and why
	Warnings []string       `json:"warnings"` // of the configuration, names, patterns, limits
}

type serverReport struct {
	Name      string   `json:"name"`
	Transport string   `json:"transport"`
	State     string   `json:"state"`
	Protocol  string   `json:"protocol,omitempty"`
	Tools     int      `json:"tools"`
	Bytes     int      `json:"bytes"`
	Tokens    int      `json:"tokens"`
	Problem   string   `json:"problem,omitempty"`
	Hint      string   `json:"hint,omitempty"`
	Stderr    string   `json:"stderr,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
}

type listReport struct {
	Tools int `json:"tools"`
	Bytes int `json:"bytes"`
}

type hiddenReport struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

func (a *app) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration, connect to every server and fill the cache",
		Args:  exactly(0, 0, ""),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.check(cmd.Context()) },
	}
	a.profileFlag(cmd)
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) check(ctx context.Context) error {
	a.checking = true
	p, err := a.open(ctx)
	if err != nil {
		if _, usage := errors.AsType[*usageError](err); a.json && !usage {
			text, encodeErr := encodeIndented(report{Error: err.Error()})
			fmt.Fprint(a.stdout, text)
			return errors.Join(err, encodeErr)
		}
		return err
	}
	defer p.close()
	if isTerminal(a.stderr) {
		fmt.Fprintf(a.stderr, "connecting to %s\n", counted(len(p.config.Servers), "server"))
	}
	if err := p.settle(ctx); err != nil {
		return err
	}

	r, err := p.report(ctx)
	if err != nil {
		return err
	}
	text := r.text()
	if a.json {
		if text, err = encodeIndented(r); err != nil {
			return err
		}
	}
	_, err = io.WriteString(a.stdout, p.redactor.String(text))
	if err == nil && !r.OK {
		var down []string
		for _, s := range r.Servers {
			if s.Problem != "" {
				down = append(down, s.Name)
			}
		}
		err = fmt.Errorf("not ready: %s; the table above says what to do", strings.Join(down, ", "))
	}
	return err
}

func encodeIndented(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.String(), err
}

// report looks at everything once all servers have settled.
func (p *program) report(ctx context.Context) (*report, error) {
	snapshot := p.set.Snapshot()
	r := &report{
		OK: true, Config: p.config.Path, Mode: p.config.ToolSearch.Mode,
		Servers: []serverReport{}, Hidden: []hiddenReport{}, Warnings: append([]string{}, p.config.Warnings...),
	}
	if p.sandboxErr != nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("scripts cannot run here, mode code becomes mode tools: %v", p.sandboxErr))
	}
	status := map[string]upstreams.Status{}
	for _, s := range p.set.Status() {
		status[s.Name] = s
	}
	for _, c := range p.config.Servers {
		s := describeServer(c, status[c.Name])
		r.OK = r.OK && s.Problem == ""
		r.Servers = append(r.Servers, s)
	}
	for _, t := range snapshot.Tools {
		if t.Hidden != "" {
			r.Hidden = append(r.Hidden, hiddenReport{t.ID, t.Hidden})
		}
	}
	r.Warnings = append(r.Warnings, nameWarnings(snapshot.Tools)...)
	if r.OK { // else a pattern may be meant for a server that is not there
		r.Warnings = append(r.Warnings, p.policy.Unmatched(snapshot.Tools)...)
	}

	size, tools, err := p.listed(ctx, p.app.profile)
	if err != nil {
		return nil, err
	}
	r.Listed = listReport{tools, size}
	if tools > aggregator.ManyTools {
		r.Warnings = append(r.Warnings, fmt.Sprintf("clients are shown %d tools: above %d some refuse or lose tools; use mode code or tools, or fewer direct-only tools", tools, aggregator.ManyTools))
	}
	return r, nil
}

func describeServer(c upstreams.Config, s upstreams.Status) serverReport {
	out := serverReport{
		Name: c.Name, Transport: transportName(c), State: string(s.State), Protocol: s.Protocol,
		Tools: s.Tools, Bytes: s.ListBytes, Tokens: s.ListBytes / bytesPerToken, Warnings: s.Warnings,
	}
	switch {
	case c.Enabled != nil && !*c.Enabled:
		out.State = "disabled"
		out.Warnings = nil
	case s.State == upstreams.Ready:
	case s.Err != nil:
		out.Problem, out.Hint, out.Stderr = s.Err.Error(), s.Hint, s.Stderr
	default:
		out.Problem, out.Hint, out.Stderr = "not ready: "+string(s.State), s.Hint, s.Stderr
	}
	return out
}

func transportName(c upstreams.Config) string {
	switch {
	case c.Dial != nil:
		return "in-process"
	case c.Command != "":
		return "stdio"
	case c.Transport != "":
		return c.Transport
	case c.URL != "":
		return "http"
	}
	return "-" // its variable is missing
}

// nameWarnings names the tools whose names clients see altered, or may refuse.
func nameWarnings(tools []*upstreams.Tool) []string {
	var altered, long []string
	for _, t := range tools {
		if t.Hidden != "" {
			continue
		}
		if t.FullName != t.Safe+"__"+t.Name {
			altered = append(altered, fmt.Sprintf("%s is %s", t.ID, t.FullName))
		}
		if len(t.FullName) > longName {
			long = append(long, t.FullName)
		}
	}
	var out []string
	if len(altered) > 0 {
		out = append(out, "names too long or with characters that clients refuse were altered; search, describe and call take both forms: "+some(altered))
	}
	if len(long) > 0 {
		out = append(out, fmt.Sprintf("names of more than %d characters (toolSearch.maxNameLength) are refused or cut by some clients: %s", longName, some(long)))
	}
	return out
}

// some joins the first of many, as many as a line of the report holds.
func some(list []string) string {
	const most, maxChars = 10, 700
	shown, chars := 0, 0
	for shown < min(len(list), most) {
		if chars += len(list[shown]) + len(", "); chars > maxChars && shown > 0 {
			break
		}
		shown++
	}
	text := strings.Join(list[:shown], ", ")
	if shown < len(list) {
		text += fmt.Sprintf(" and %d more", len(list)-shown)
	}
	return text
}

// counted is a number and what it counts.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func (r *report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, mode %s\n\n", r.Config, r.Mode)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SERVER\tTRANSPORT\tSTATE\tTOOLS\tBYTES\tTOKENS\tPROBLEM")
	var tools, size int
	for _, s := range r.Servers {
		problem := directory.OneLine(s.Problem, 400)
		if s.Hint != "" {
			problem += "; " + directory.OneLine(s.Hint, 400)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%s\n", directory.OneLine(s.Name, 40), s.Transport, s.State, s.Tools, s.Bytes, s.Tokens, problem)
		tools += s.Tools
		size += s.Bytes
	}
	fmt.Fprintf(table, "all\t\t\t%d\t%d\t%d\t\n", tools, size, size/bytesPerToken)
	_ = table.Flush() // a strings.Builder does not fail
	fmt.Fprintf(&b, "\nclients are shown %s, %d bytes, about %d tokens\n", counted(r.Listed.Tools, "tool"), r.Listed.Bytes, r.Listed.Bytes/bytesPerToken)

	for _, s := range r.Servers {
		if s.Stderr != "" {
			fmt.Fprintf(&b, "\n%s wrote to stderr:\n", directory.OneLine(s.Name, 40))
			for line := range strings.Lines(directory.Clean(s.Stderr)) {
				fmt.Fprintf(&b, "    %s\n", strings.TrimRight(line, "\r\n"))
			}
		}
	}
	warnings := slices.Clone(r.Warnings)
	for _, s := range r.Servers {
		for _, w := range s.Warnings {
			warnings = append(warnings, s.Name+": "+w)
		}
	}
	if len(warnings) > 0 {
		b.WriteString("\nwarnings:\n")
		for _, w := range warnings {
			fmt.Fprintf(&b, "    %s\n", directory.OneLine(w, 1000))
		}
	}
	if len(r.Hidden) > 0 {
		b.WriteString("\nhidden tools:\n")
		for _, h := range r.Hidden {
			fmt.Fprintf(&b, "    %s: %s\n", directory.OneLine(h.ID, 200), directory.OneLine(h.Why, 200))
		}
	}
	return b.String()
}
