// Package demo has the sample servers of the command demo: nine small MCP
// servers that run in our own process, so that tool search can be tried
// without any set-up. They are deterministic: no clock, no chance, no network.
//
// What they hold lives in memory and is gone with the process.
package demo

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

//go:embed catalog/*.json
var catalog embed.FS

// handler carries out one tool. Its answer is encoded as JSON, an error
// becomes an isError result.
type handler func(arguments) (any, error)

// Servers returns the sample servers, each with new state that lives as long
// as the returned configuration.
func Servers() []upstreams.Config {
	servers := []struct {
		name     string
		handlers map[string]handler
	}{
		{"calendar", calendarTools()},
		{"contacts", contactTools()},
		{"files", fileTools()},
		{"math", mathTools()},
		{"notes", noteTools()},
		{"text", textTools()},
		{"tickets", ticketTools()},
		{"units", unitTools()},
		{"weather", weatherTools()},
	}
	configs := make([]upstreams.Config, len(servers))
	for i, s := range servers {
		configs[i] = config(s.name, s.handlers)
	}
	return configs
}

// config makes a server of the tools in catalog/name.json. A tool without a
// handler, or the other way round, is a mistake of this package.
func config(name string, handlers map[string]handler) upstreams.Config {
	b, err := catalog.ReadFile("catalog/" + name + ".json")
	if err != nil {
		panic(err)
	}
	var file struct {
		Title, Description string
		Tools              []*mcp.Tool
	}
	if err := json.Unmarshal(b, &file); err != nil {
		panic(fmt.Sprintf("demo server %s: %v", name, err))
	}
	server := mcp.NewServer(&mcp.Implementation{Name: name, Title: file.Title, Version: "1.0.0"}, nil)
	if len(handlers) != len(file.Tools) {
		panic(fmt.Sprintf("demo server %s: %d handlers for %d tools", name, len(handlers), len(file.Tools)))
	}
	for _, tool := range file.Tools {
		h := handlers[tool.Name]
		if h == nil {
			panic(fmt.Sprintf("demo server %s: no handler for tool %s", name, tool.Name))
		}
		server.AddTool(tool, serve(h))
	}
	return upstreams.Config{
		Name:                      name,
		Description:               file.Description,
		SupportsParallelToolCalls: true,
		Dial: func(ctx context.Context) (mcp.Transport, error) {
			client, ours := mcp.NewInMemoryTransports()
			// The session ends with its transport, not with the dial's context.
			if _, err := server.Connect(context.WithoutCancel(ctx), ours, nil); err != nil {
				return nil, err
			}
			return client, nil
		},
	}
}

func serve(h handler) mcp.ToolHandler {
	return func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		args, err := parseArguments(req.Params.Arguments)
		if err != nil {
			return failure(err), nil
		}
		answer, err := h(args)
		if err != nil {
			return failure(err), nil
		}
		text, err := encode(answer)
		if err != nil {
			return failure(err), nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	}
}

func failure(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}
}

// encode writes an answer for a model to read: a string as it is, all else as
// compact JSON without HTML escapes.
func encode(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// object is a JSON object of an answer.
type object = map[string]any

// arguments of one call. Numbers are json.Number: integers stay exact.
type arguments map[string]any

func parseArguments(raw json.RawMessage) (arguments, error) {
	args := arguments{}
	if len(bytes.TrimSpace(raw)) == 0 {
		return args, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&args); err != nil {
		return nil, fmt.Errorf("arguments are not a JSON object: %w", err)
	}
	return args, nil
}

// has tells whether an argument was given.
func (a arguments) has(name string) bool { return a[name] != nil }

// text returns a string argument, "" if it is absent.
func (a arguments) text(name string) string {
	s, _ := a[name].(string)
	return s
}

// or returns a string argument, or otherwise if it is absent or empty.
func (a arguments) or(name, otherwise string) string {
	if s := a.text(name); s != "" {
		return s
	}
	return otherwise
}

// flag returns a boolean argument, or otherwise if it is absent.
func (a arguments) flag(name string, otherwise bool) bool {
	if b, ok := a[name].(bool); ok {
		return b
	}
	return otherwise
}

// count returns an integer argument, or otherwise if it is absent.
func (a arguments) count(name string, otherwise int) int {
	if n, ok := a[name].(json.Number); ok {
		if i, err := n.Int64(); err == nil {
			return int(i)
		}
	}
	return otherwise
}

// texts returns the strings of an array argument.
func (a arguments) texts(name string) []string {
	items, _ := a[name].([]any)
	out := make([]string, 0, len(items))
	for _, item := range items {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
