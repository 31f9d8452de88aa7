package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
)

// These commands do what a model does, through the same path: from the cached
// catalogs, with only those servers started that are called.

func (a *app) searchCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find tools as a model would",
		Args:  exactly(1, 1<<10, "QUERY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := map[string]any{"query": strings.Join(args, " ")}
			if limit > 0 {
				params["limit"] = limit
			}
			return a.asModel(cmd.Context(), "tool_search", params, a.printHits)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "most hits, up to toolSearch.maxSearchLimit (default: toolSearch.searchDefaultLimit)")
	return a.modelFlags(cmd)
}

func (a *app) describeCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "describe ID",
		Short: "Show a tool's full definition as a model would get it",
		Args:  exactly(1, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := map[string]any{"id": args[0]}
			if path != "" {
				params["path"] = path
			}
			return a.asModel(cmd.Context(), "tool_describe", params, a.printIndented)
		},
	}
	cmd.Flags().StringVar(&path, "path", "", "JSON pointer of a part that was cut, such as /parameters/properties/filter")
	return a.modelFlags(cmd)
}

func (a *app) callCommand() *cobra.Command {
	return a.modelFlags(&cobra.Command{
		Use:   "call ID [JSON]",
		Short: "Call a tool with a JSON object of arguments (- reads it from stdin)",
		Args:  exactly(1, 2, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := "{}"
			if len(args) == 2 {
				text = args[1]
			}
			if text == "-" {
				b, err := io.ReadAll(a.stdin)
				if err != nil {
					return fmt.Errorf("read the arguments from stdin: %w", err)
				}
				text = string(b)
			}
			if text = strings.TrimSpace(text); !json.Valid([]byte(text)) || text[0] != '{' {
				return &usageError{cmd.CommandPath(), fmt.Errorf(`arguments must be a JSON object such as '{"path": "a.txt"}'`)}
			}
			params := map[string]any{"id": args[0], "args": json.RawMessage(text)}
			return a.asModel(cmd.Context(), "tool_call", params, a.printBlocks)
		},
	})
}

func (a *app) codeCommand() *cobra.Command {
	return a.modelFlags(&cobra.Command{
		Use:   "code [FILE]",
		Short: "Run a JavaScript file as tool_search_code would (- or nothing is stdin)",
		Args:  exactly(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			var source []byte
			var err error
			if len(args) == 0 || args[0] == "-" {
				source, err = io.ReadAll(a.stdin)
			} else {
				source, err = os.ReadFile(args[0])
			}
			if err != nil {
				return fmt.Errorf("read the script: %w", err)
			}
			return a.asModel(cmd.Context(), "tool_search_code", map[string]any{"code": string(source)}, a.printRun)
		},
	})
}

func (a *app) modelFlags(cmd *cobra.Command) *cobra.Command {
	a.profileFlag(cmd)
	a.jsonFlag(cmd)
	cmd.Flags().BoolVar(&a.wait, "wait", false, "start all servers first and wait until they are ready or have failed")
	return cmd
}

// asModel calls one control tool and prints its result: with print for a
// person, with --json the bytes that a model gets.
func (a *app) asModel(ctx context.Context, tool string, params map[string]any, print func(*toolResult) error) error {
	p, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	if tool == "tool_search_code" && p.sandboxErr != nil {
		return fmt.Errorf("scripts cannot run here: %w", p.sandboxErr)
	}
	if a.wait {
		if err := p.settle(ctx); err != nil {
			return err
		}
	}
	args, err := json.Marshal(params)
	if err != nil {
		return err
	}
	raw, err := p.face.Local(a.profile).Call(ctx, tool, args)
	if err != nil {
		return err
	}
	res := &toolResult{raw: raw}
	if err := json.Unmarshal(raw, res); err != nil {
		return fmt.Errorf("%s: result: %w", tool, err)
	}
	if a.json {
		return a.printJSON(tool, res)
	}
	return print(res)
}

// open builds the program for one command. Its log shows errors alone, unless
// asked: the command itself prints what matters.
func (a *app) open(ctx context.Context) (*program, error) {
	if a.logLevel == "" {
		a.logLevel = "error"
	}
	log, redactor, err := a.logger()
	if err != nil {
		return nil, err
	}
	cfg, err := a.load(redactor)
	if err != nil {
		return nil, err
	}
	return a.build(ctx, cfg, redactor, log)
}

// toolResult is a result of tools/call, as far as it is printed.
type toolResult struct {
	raw     json.RawMessage
	Content []struct {
		Type, Text, MimeType, Data, URI string
		Resource                        struct{ URI, Text string }
	} `json:"content"`
	IsError bool `json:"isError"`
	Meta    struct {
		Call struct{ Status, Note string } `json:"toolsearch/call"`
	} `json:"_meta"`
}

// first is the text of the first block.
func (r *toolResult) first() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// failure is the error of an isError result, nil for others.
func (r *toolResult) failure() error {
	if !r.IsError {
		return nil
	}
	status := r.Meta.Call.Status
	if status == "" {
		status = "failed"
	}
	return fmt.Errorf("%s: %s", status, directory.Clean(r.first()))
}

// printJSON prints the result of a call as it is, of the other tools the
// object in their text.
func (a *app) printJSON(tool string, r *toolResult) error {
	text := []byte(r.first())
	if tool == "tool_call" || !json.Valid(text) {
		text = r.raw
	}
	if _, err := fmt.Fprintf(a.stdout, "%s\n", text); err != nil {
		return err
	}
	if r.IsError {
		return errTold
	}
	return nil
}

func (a *app) printHits(r *toolResult) error {
	if err := r.failure(); err != nil {
		return err
	}
	var hits []directory.Hit
	if err := json.Unmarshal([]byte(r.first()), &hits); err != nil {
		return fmt.Errorf("tool_search: %w", err)
	}
	for i, h := range hits {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		fmt.Fprintf(a.stdout, "%s%s\n    %s\n    %s\n", h.ID, bracketed(h.Hints), h.Description, h.Input)
	}
	a.printNotes(r) // of no hits too
	return nil
}

func bracketed(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "  [" + strings.Join(words, ", ") + "]"
}

// printNotes prints what was said beside the answer.
func (a *app) printNotes(r *toolResult) {
	for _, b := range r.Content[min(1, len(r.Content)):] {
		if b.Type == "text" {
			fmt.Fprintln(a.stderr, "note:", directory.Clean(b.Text))
		}
	}
}

func (a *app) printIndented(r *toolResult) error {
	if err := r.failure(); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(r.first()), "", "  "); err != nil {
		return fmt.Errorf("tool_describe: %w", err)
	}
	_, err := fmt.Fprintln(a.stdout, out.String())
	a.printNotes(r)
	return err
}

func (a *app) printBlocks(r *toolResult) error {
	if err := r.failure(); err != nil {
		return err
	}
	if len(r.Content) == 0 {
		fmt.Fprintf(a.stdout, "%s\n", r.raw)
	}
	for _, b := range r.Content {
		a.printBlock(b.Type, b.Text+b.Resource.Text, b.MimeType, b.URI+b.Resource.URI, len(b.Data))
	}
	if r.Meta.Call.Note != "" {
		fmt.Fprintln(a.stderr, "note:", directory.Clean(r.Meta.Call.Note))
	}
	return nil
}

func (a *app) printBlock(kind, text, mime, uri string, encoded int) {
	switch {
	case text != "":
		fmt.Fprintln(a.stdout, a.shown(text))
	case encoded > 0:
		fmt.Fprintf(a.stdout, "[%s %s, %d bytes]\n", kind, directory.OneLine(mime, 60), encoded/4*3)
	default:
		fmt.Fprintf(a.stdout, "[%s %s]\n", kind, directory.OneLine(uri, 200))
	}
}

// shown is a server's text as it is for a program, and without what could
// steer a terminal for a person.
func (a *app) shown(text string) string {
	if isTerminal(a.stdout) {
		return directory.Clean(text)
	}
	return text
}

// printRun prints what a script logged on stderr and what it returned.
func (a *app) printRun(r *toolResult) error {
	var run struct {
		OK    bool
		Value json.RawMessage
		Logs  []string
		Error struct {
			Kind, Message, Stack string
			Line, Column         int
		}
		Calls []struct {
			ID, Status string
			Ms         int64
		}
	}
	if err := json.Unmarshal([]byte(r.first()), &run); err != nil {
		return errors.Join(r.failure(), err) // an input error is plain text
	}
	for _, line := range run.Logs {
		fmt.Fprintln(a.stderr, a.shown(line))
	}
	if run.Value != nil {
		var out bytes.Buffer
		if err := json.Indent(&out, run.Value, "", "  "); err != nil {
			return fmt.Errorf("tool_search_code: value: %w", err)
		}
		fmt.Fprintln(a.stdout, out.String())
	}
	for _, b := range r.Content[1:] {
		a.printBlock(b.Type, b.Text+b.Resource.Text, b.MimeType, b.URI+b.Resource.URI, len(b.Data))
	}
	if run.OK {
		return nil
	}
	for _, c := range run.Calls {
		fmt.Fprintf(a.stderr, "called %s: %s, %d ms\n", c.ID, c.Status, c.Ms)
	}
	where := ""
	if run.Error.Line > 0 {
		where = fmt.Sprintf(" (line %d, column %d)", run.Error.Line, run.Error.Column)
	}
	return fmt.Errorf("%s: %s%s", run.Error.Kind, directory.Clean(run.Error.Message), where)
}
