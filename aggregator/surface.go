package aggregator

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// control is one of our own tools. The texts are what a model reads, so each
// byte is paid for in every conversation.
type control struct {
	name        string
	description string
	input       string // JSON Schema, the subset that every vendor takes
	annotations string
	meta        string
	handle      func(*Server, context.Context, *controlCall) (json.RawMessage, error)
}

const (
	nameCode     = "tool_search_code"
	nameSearch   = "tool_search"
	nameDescribe = "tool_describe"
	nameCall     = "tool_call"
)

// controlNames are the names of all controls.
var controlNames = []string{nameCode, nameSearch, nameDescribe, nameCall}

const (
	annotationsReading = `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`
	annotationsActing  = `{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}`
	metaReading        = `{"anthropic/alwaysLoad":true}`
	metaActing         = `{"anthropic/alwaysLoad":true,"anthropic/maxResultSizeChars":200000}`
)

// controls is the whole of our own surface.
var controls = []*control{
	{
		name: nameCode,
		description: "Find and call the tools of many MCP servers with JavaScript (the body of an async function):\n" +
			"const hits = await openclaw.tools.search(\"create calendar event\", {limit: 5}); // [{id, name, description, input}]\n" +
			"const r = await openclaw.tools.call(hits[0].id, {title: \"Tea\"}); // args as hit.input says\n" +
			"return r.result.details; // the tool's data: parsed JSON, or text\n" +
			"openclaw.tools.describe(id) gives the full schema. A failed call throws ToolError {code, message}. Promise.all for independent calls. Return only what is needed. No imports, network or timers. Query in English: product, action, object.",
		input:       `{"type":"object","properties":{"code":{"type":"string"}},"required":["code"]}`,
		annotations: annotationsActing, meta: metaActing,
		handle: (*Server).controlCode,
	},
	{
		name: nameSearch,
		description: "Find tools of many MCP servers by what they do, before you say that something cannot be done. Query in English: product, action, object, e.g. \"create calendar event\". " +
			"Hits have id, description and input (the arguments); call one by tool_call {id, args}. queries: [{query}] searches several at once.",
		input: `{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"},"queries":{"type":"array",` +
			`"items":{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}}}}`,
		annotations: annotationsReading, meta: metaReading,
		handle: (*Server).controlSearch,
	},
	{
		name:        nameDescribe,
		description: "The full input schema of one tool, by the id of a tool_search hit, when the hit's input is not enough. path fetches a part that was cut, e.g. /parameters/properties/filter.",
		input:       `{"type":"object","properties":{"id":{"type":"string"},"path":{"type":"string"}},"required":["id"]}`,
		annotations: annotationsReading, meta: metaReading,
		handle: (*Server).controlDescribe,
	},
	{
		name:        nameCall,
		description: "Call a tool: {\"id\": the id of a tool_search hit, \"args\": {its arguments}}. Returns the tool's own result.",
		input:       `{"type":"object","properties":{"id":{"type":"string"},"args":{"type":"object"}},"required":["id"]}`,
		annotations: annotationsActing, meta: metaActing,
		handle: (*Server).controlCall,
	},
}

func controlNamed(name string) *control {
	for _, c := range controls {
		if c.name == name {
			return c
		}
	}
	return nil
}

// listedIn tells in which modes a control tool is listed.
func (c *control) listedIn(m Mode) bool {
	switch m {
	case ModeCode:
		return c.name == nameCode
	case ModeTools, ModeDirectory:
		return c.name != nameCode
	}
	return false
}

// The limits of contract 3, "Sizes". Descriptions are counted in characters,
// definitions in encoded bytes of the whole tools/list result; in code mode
// 2,000 bytes are allowed and 1,500 aimed at.
const (
	maxDescription          = 1000
	maxDescriptionDirectory = 2048
	maxBytesCode            = 1500
	maxBytesTools           = 3000
	maxInstructions         = 1500
)

// faceKey is who sees a face.
type faceKey struct {
	profile string
	mode    Mode
}

// face is what stays frozen for all callers with one profile and mode, from
// the start to the next reload: clients keep it in the model's prompt, where a
// changed byte costs the whole cached prefix.
type face struct {
	// fixed at creation
	definitions  []json.RawMessage // of the control tools, sorted by name
	instructions string
	directory    string // the text of toolsearch://directory

	// mu guards the following
	mu        sync.Mutex
	published map[*upstreams.Tool]json.RawMessage // definitions of the last list
}

// faceFor returns the face of a caller, making it at the first request.
func (s *Server) faceFor(k faceKey) *face {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.faces[k]; f != nil {
		return f
	}
	f := newFace(k.mode, s.dir.View(k.profile), s.cold && !s.thawed, s.settings.Directory.MaxChars)
	s.faces[k] = f
	return f
}

// textView is the part of *directory.View that texts are made of.
type textView interface {
	Overview(max int, namesOnly bool) string
	Text(max int) string
}

func newFace(mode Mode, v *directory.View, namesOnly bool, maxDirectory int) *face {
	var names []string
	for _, info := range v.Servers() {
		names = append(names, directory.OneLine(info.Name, 40))
	}
	f := &face{
		definitions:  definitions(mode, v, namesOnly),
		instructions: instructions(mode, names),
	}
	if mode == ModeDirectory {
		f.directory = v.Text(maxDirectory)
	}
	return f
}

// definitions encodes the control tools of a mode; the text about the servers
// is the last part of the first description, cut to what the limits leave.
func definitions(mode Mode, v textView, namesOnly bool) []json.RawMessage {
	var shown []*control
	for _, c := range controls {
		if c.listedIn(mode) {
			shown = append(shown, c)
		}
	}
	slices.SortFunc(shown, func(a, b *control) int { return strings.Compare(a.name, b.name) })
	encode := func(text string) []json.RawMessage {
		var defs []json.RawMessage
		for _, c := range shown {
			d := c.description
			if text != "" && (c.name == nameCode || c.name == nameSearch) {
				d += "\n" + text
			}
			defs = append(defs, c.definition(d))
		}
		return defs
	}
	switch mode {
	case ModeCode:
		return fit(encode, maxDescription-utf8.RuneCountInString(controlNamed(nameCode).description)-1, maxBytesCode, func(max int) string {
			return overviewText(v, max, namesOnly)
		})
	case ModeTools:
		return fit(encode, maxDescription-utf8.RuneCountInString(controlNamed(nameSearch).description)-1, maxBytesTools, func(max int) string {
			return overviewText(v, max, namesOnly)
		})
	case ModeDirectory:
		text := v.Text(maxDescriptionDirectory - utf8.RuneCountInString(controlNamed(nameSearch).description) - 1)
		return encode(text)
	}
	return nil
}

func overviewText(v textView, max int, namesOnly bool) string {
	const head = "Servers:\n"
	if lines := v.Overview(max-len(head), namesOnly); lines != "" {
		return head + lines
	}
	return ""
}

// fit encodes with the longest text that keeps both limits.
func fit(encode func(string) []json.RawMessage, chars, bytes int, text func(max int) string) []json.RawMessage {
	for {
		if chars <= 0 {
			return encode("")
		}
		defs := encode(text(chars))
		over := len(listResult(defs)) - bytes
		if over <= 0 {
			return defs
		}
		// One character has at most six encoded bytes.
		chars -= max(1, over/6)
	}
}

func (c *control) definition(description string) json.RawMessage {
	return rawjson.Object{
		{Name: "name", Value: quote(c.name)},
		{Name: "description", Value: quote(description)},
		{Name: "inputSchema", Value: json.RawMessage(c.input)},
		{Name: "annotations", Value: json.RawMessage(c.annotations)},
		{Name: "_meta", Value: json.RawMessage(c.meta)},
	}.Bytes()
}

// listResult puts definitions together as the result of tools/list: one page,
// because several clients never ask for the second.
func listResult(defs []json.RawMessage) json.RawMessage {
	return rawjson.Object{{Name: "tools", Value: rawjson.List(defs...)}}.Bytes()
}

//go:embed instructions.md
var instructionsText string

// instructions returns what initialize tells the client about us in a mode.
func instructions(mode Mode, servers []string) string {
	_, text, ok := strings.Cut(instructionsText, "## "+string(mode)+"\n")
	if !ok {
		return ""
	}
	text, _, _ = strings.Cut(text, "\n## ")
	text = strings.TrimSpace(text)
	const place = "{servers}"
	left := maxInstructions - utf8.RuneCountInString(text) + len(place)
	return strings.Replace(text, place, serverNames(servers, left), 1)
}

// serverNames lists names within max characters: "2 MCP servers (a, b)".
func serverNames(names []string, max int) string {
	switch len(names) {
	case 0:
		return "the MCP servers of its configuration"
	case 1:
		return "1 MCP server (" + names[0] + ")"
	}
	head := fmt.Sprintf("%d MCP servers (", len(names))
	return head + directory.JoinNames(names, max-len(head)-1) + ")"
}
