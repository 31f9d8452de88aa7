// Package mcptest has the fakes of this project's tests: a scripted upstream
// MCP server that can misbehave in every way a real one does (in memory, as a
// child process, over HTTP), a client that speaks raw lines to our own side,
// and checks that nothing is left running.
//
// It speaks JSON-RPC itself instead of using the SDK, because the SDK cannot
// be made to misbehave. It is imported by tests only.
package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Script tells what a fake server is and how it behaves. It is plain data, so
// that it can be handed to a child process. The zero value is a well-behaved
// server without tools.
type Script struct {
	Name         string            // serverInfo.name and the "server" of default answers; "": fake
	Title        string            // serverInfo.title
	Instructions string            // "": none
	Protocol     string            // answered to initialize; "": the one that was asked for
	Capabilities json.RawMessage   // nil: {"tools":{"listChanged":true}}
	Tools        []json.RawMessage // raw definitions, sent byte for byte
	ToolsFile    string            // a JSON file with a member "tools", used in addition to Tools
	Generate     int               // so many tools of GenerateTools in addition to Tools
	PageSize     int               // tools on one page of tools/list; 0: all
	Cursor       string            // how cursors misbehave: "", "repeat", "fresh" or "empty"

	Answers map[string]Answer // by tool name; "*" is every tool that has none
	Methods map[string]Answer // answers to other methods; initialize and tools/list included
	Unasked []json.RawMessage // raw messages sent after notifications/initialized

	NoiseBefore  []string // lines written before anything else
	NoiseBetween []string // lines written before each message
	NoiseAfter   []string // lines written after each message
	NoiseBytes   int      // one more line of noise of that many bytes at the start
	StderrBytes  int      // bytes written to stderr at the start (child processes only)

	Exit     string // when it ends by itself: "", "start" or "initialized"
	ExitCode int
	Stubborn bool   // ignores stdin's end and SIGTERM, and has a child that does so too
	PIDFile  string // gets the process ids of this process and its child, one a line
	Record   string // a file that gets every message received, one a line

	HTTPJSON   bool   // over HTTP: answer with application/json instead of an event stream
	HTTPBearer string // over HTTP: 401 without this bearer token
}

// Answer is how a request is answered. The zero value of a tool's answer
// echoes the call: one text block that holds {"server","tool","arguments"}
// with the bytes of the arguments as they came.
type Answer struct {
	Result   json.RawMessage   `json:",omitempty"` // the raw result object
	Text     string            // a result with this text, if Result is nil
	Bytes    int               // a result with a text of that many bytes, if Result is nil
	Error    json.RawMessage   `json:",omitempty"` // a raw JSON-RPC error object in place of a result
	Delay    time.Duration     // waited before the answer
	Progress int               // progress notifications, spread evenly over Delay
	Late     bool              // answer even if the request was cancelled in the meantime
	Never    bool              // do not answer
	Die      bool              // end the connection (and the child process) instead of answering
	Tools    []json.RawMessage // from now on tools/list is this
	Notify   bool              // send notifications/tools/list_changed before the answer
}

// Tool makes a raw tool definition. An empty schema means no inputSchema.
func Tool(name, description, schema string) json.RawMessage {
	t := map[string]any{"name": name, "description": description}
	if schema != "" {
		t["inputSchema"] = json.RawMessage(schema)
	}
	return mustMarshal(t)
}

var (
	verbs = []string{"create", "list", "update", "delete", "search", "archive", "export", "share", "approve", "rename"}
	nouns = []string{"invoice", "customer", "shipment", "report", "campaign", "contract", "device", "booking", "payment", "employee", "warehouse", "subscription"}
)

// GenerateTools makes n tools with distinct names and the usual size of real
// ones. The same n gives the same bytes.
func GenerateTools(n int) []json.RawMessage {
	tools := make([]json.RawMessage, n)
	for i := range tools {
		verb, noun := verbs[i%len(verbs)], nouns[i/len(verbs)%len(nouns)]
		tools[i] = Tool(
			fmt.Sprintf("%s_%s_%04d", verb, noun, i),
			fmt.Sprintf("Use this to %s one %s of department %d. Needs the id of the %s and answers with its state afterwards.", verb, noun, i, noun),
			fmt.Sprintf(`{"type":"object","properties":{"%s_id":{"type":"string","description":"Identifier of the %s"},"mode":{"type":"string","enum":["fast","safe","dry_run"]},"limit":{"type":"integer","minimum":1,"maximum":%d},"tags":{"type":"array","items":{"type":"string"}}},"required":["%s_id"]}`, noun, noun, i+1, noun))
	}
	return tools
}

// load returns all tools of the script.
func (s *Script) load() ([]json.RawMessage, error) {
	tools := append([]json.RawMessage(nil), s.Tools...)
	if s.ToolsFile != "" {
		b, err := os.ReadFile(s.ToolsFile)
		if err != nil {
			return nil, err
		}
		var file struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(b, &file); err != nil {
			return nil, fmt.Errorf("%s: %w", s.ToolsFile, err)
		}
		tools = append(tools, file.Tools...)
	}
	return append(tools, GenerateTools(s.Generate)...), nil
}

func mustMarshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
