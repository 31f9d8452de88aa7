package aggregator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// repairTools are the tools that the inputs below speak of.
func repairTools() map[string]*upstreams.Tool {
	srv := fakeServer{Name: "pier"}
	tools := make(map[string]*upstreams.Tool)
	for name, schema := range map[string]string{
		"weather": `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}`,
		"reserve": `{"type":"object","properties":{"slot":{"type":"object"},"payload":{"type":"string"}}}`,
		"run":     `{"type":"object","properties":{"command":{"type":"string"},"args":{"type":"array"}},"required":["command"]}`,
		"ask":     `{"type":"object","properties":{"input":{"type":"string"},"name":{"type":"string"}},"required":["input"]}`,
		"nest":    `{"type":"object","properties":{"arguments":{"type":"object"},"args.x":{"type":"string"}},"required":["arguments"]}`,
		"free":    `{"type":"object"}`,
		"either":  `{"anyOf":[{"properties":{"input":{"type":"string"}}},{"$ref":"#/$defs/b"}],"$defs":{"b":{"properties":{"id":{"type":"string"}}}}}`,
	} {
		t := srv.tool(tool(name, "", schema))
		tools[t.ID], tools[t.FullName], tools[t.Name] = t, t, t
	}
	return tools
}

func repairWith(tools map[string]*upstreams.Tool, input string) (*repaired, *failure) {
	return repairCall(json.RawMessage(input), phrasesTools, func(selector string) (*upstreams.Tool, *failure) {
		if t := tools[strings.TrimSpace(selector)]; t != nil {
			return t, nil
		}
		return nil, unknownTool(nil, selector, phrasesTools)
	}, func(name string) *upstreams.Tool {
		if t := tools[name]; t != nil && (t.ID == name || t.FullName == name) {
			return t
		}
		return nil
	})
}

// Each sentence of contract 4 about tool_call's input, and B095 and B096.
func TestRepairCall(t *testing.T) {
	tools := repairTools()
	tests := []struct {
		input string
		tool  string // "" for a refusal
		args  string // or a part of the refusal's text
	}{
		// The plain form.
		{`{"id":"mcp:pier:weather","args":{"city":"Oslo"}}`, "weather", `{"city":"Oslo"}`},
		{`{"id":" weather ","args":null}`, "weather", `{}`},
		{`{"id":"weather"}`, "weather", `{}`},

		// "The first present of id, toolId, name that is a string is the selector, the others are arguments"
		{`{"toolId":"weather","args":{"city":"Oslo"}}`, "weather", `{"city":"Oslo"}`},
		{`{"name":"weather","args":{"city":"Oslo"}}`, "weather", `{"city":"Oslo"}`},
		{`{"id":"ask","name":"Ada","args":{"input":"hi"}}`, "ask", `{"input":"hi","name":"Ada"}`},
		{`{"id":7,"name":"free","args":{}}`, "free", `{"id":7}`},
		{`{"id":null,"name":"weather","args":{"city":"Oslo"}}`, "weather", `{"city":"Oslo"}`},
		{`{"id":"free","toolId":"x-5","name":"y"}`, "free", `{"toolId":"x-5","name":"y"}`},
		// "refused only if one of them is itself the exact id or full name of another tool and the schema declares no such parameter"
		{`{"id":"weather","name":"pier__reserve","args":{}}`, "", "name names another tool, mcp:pier:reserve"},
		{`{"id":"weather","toolId":"mcp:pier:reserve"}`, "", "toolId names another tool"},
		{`{"id":"ask","name":"pier__reserve","args":{"input":"hi"}}`, "ask", `{"input":"hi","name":"pier__reserve"}`},
		{`{"id":"free","name":"weather"}`, "free", `{"name":"weather"}`},

		// "Arguments are in exactly one of args, input, arguments, parameters"
		{`{"id":"weather","input":{"city":"Oslo"}}`, "weather", `{"city":"Oslo"}`},
		{`{"id":"weather","arguments":{"city":"Oslo"}}`, "weather", `{"city":"Oslo"}`},
		{`{"id":"weather","parameters":{"city":"Oslo"}}`, "weather", `{"city":"Oslo"}`},
		{`{"id":"weather","args":{"city":"Oslo"},"input":{"city":"Rome"}}`, "", "arguments stand in both args and input"},
		{`{"id":"weather","args":{"city":"Oslo"},"input":{"city":"Oslo"}}`, "weather", `{"city":"Oslo"}`},
		// "dotted keys are folded in"
		{`{"name":"weather","arguments.city":"Oslo"}`, "weather", `{"city":"Oslo"}`},
		{`{"id":"weather","args":{"days":2},"args.city":"Oslo"}`, "weather", `{"days":2,"city":"Oslo"}`},
		{`{"id":"nest","args.x":"1","args":{"arguments":{}}}`, "nest", `{"arguments":{},"args.x":"1"}`},
		// "with none of them, the remaining keys are the arguments"
		{`{"name":"weather","city":"Oslo"}`, "weather", `{"city":"Oslo"}`},
		// "beside one, leftover keys are merged in"
		{`{"id":"weather","args":{"days":2},"city":"Oslo"}`, "weather", `{"days":2,"city":"Oslo"}`},
		// "an empty container beside a full one is ignored"
		{`{"id":"weather","args":{},"input":{"city":"Oslo"}}`, "weather", `{"city":"Oslo"}`},
		{`{"id":"weather","args":null,"parameters":{"city":"Oslo"},"input":""}`, "weather", `{"city":"Oslo"}`},
		// "a string under one of these names that is no JSON object, when the schema declares that key, is an argument"
		{`{"id":"ask","input":"hello"}`, "ask", `{"input":"hello"}`},
		{`{"id":"ask","input":"hello","args":{"name":"Ada"}}`, "ask", `{"name":"Ada","input":"hello"}`},
		{`{"id":"weather","input":"hello"}`, "", "input must be an object, got a string"},
		{`{"id":"run","command":"ls","args":["-l"]}`, "run", `{"command":"ls","args":["-l"]}`},
		{`{"id":"run","args":{"command":"ls"}}`, "run", `{"command":"ls"}`},
		{`{"id":"weather","args":[1]}`, "", "args must be an object, got an array"},
		{`{"id":"weather","args":5}`, "", "args must be an object, got a number"},
		// "a clash of two values is refused"
		{`{"id":"weather","args":{"city":"Oslo"},"city":"Rome"}`, "", `"city" is given twice`},
		{`{"id":"weather","args":{"city":"Oslo"},"args.city":"Rome"}`, "", `"city" is given twice`},
		{`{"id":"weather","args":{"city":"Oslo"},"city":"Oslo"}`, "weather", `{"city":"Oslo"}`},
		// "A JSON string in place of the object is parsed"
		{`{"id":"reserve","args":"{\"slot\":{\"h\":3}}"}`, "reserve", `{"slot":{"h":3}}`},
		{`"{\"id\":\"weather\",\"args\":{\"city\":\"Oslo\"}}"`, "weather", `{"city":"Oslo"}`},
		{`{"id":"reserve","args":{"payload":"{\"a\":1}"}}`, "reserve", `{"payload":"{\"a\":1}"}`},
		{`{"id":"weather","args":""}`, "weather", `{}`},
		{`{"id":"weather","args":"{broken"}`, "", "args must be an object, got a string"},
		// "a doubled envelope is unwrapped once if the schema declares no such parameter"
		{`{"arguments":{"name":"weather","arguments":{"city":"Oslo"}}}`, "weather", `{"city":"Oslo"}`},
		{`{"name":"weather","arguments":{"name":"weather","arguments":{"city":"Oslo"}}}`, "weather", `{"city":"Oslo"}`},
		{`{"name":"weather","arguments":{"name":"pier__weather","city":"Oslo","args":{"days":1}}}`, "weather", `{"days":1,"city":"Oslo"}`},
		{`{"id":"weather","args":{"args":{"city":"Oslo"}}}`, "weather", `{"city":"Oslo"}`},
		{`{"id":"weather","args":{"args":{"args":{"city":"Oslo"}}}}`, "weather", `{"args":{"city":"Oslo"}}`},
		{`{"id":"weather","args":{"id":"mcp:pier:reserve","args":{"slot":{}}}}`, "", "id names another tool"},
		{`{"id":"nest","arguments":{"arguments":{"k":1}}}`, "nest", `{"arguments":{"k":1}}`},
		{`{"id":"nest","arguments":{"k":1}}`, "nest", `{"arguments":{"k":1}}`},
		{`{"id":"nest","arguments":{}}`, "nest", `{"arguments":{}}`},
		{`{"id":"free","args":{"input":{"k":1}}}`, "free", `{"input":{"k":1}}`},
		{`{"id":"either","args":{"input":"x","id":"y"}}`, "either", `{"input":"x","id":"y"}`},
		// The control tool called through itself.
		{`{"id":"tool_call","args":{"id":"weather","args":{"city":"Oslo"}}}`, "weather", `{"city":"Oslo"}`},
		{`{"name":"mcp__toolsearch__tool_call","arguments":{"name":"weather","city":"Oslo"}}`, "weather", `{"city":"Oslo"}`},
		{`{"name":"mcp__toolsearch__tool_call"}`, "", "needs the id of a tool, got its own name as name"},
		{`{"id":"tool_search","args":{"query":"x"}}`, "", "tool_search is not called through tool_call, use tool_search itself"},
		// "Nothing becomes {} silently", numbers keep their digits, duplicates are refused.
		{`{"id":"weather","args":{"days":9007199254740993,"city":1.0}}`, "weather", `{"days":9007199254740993,"city":1.0}`},
		{`{"id":"weather","args":{"a":{"b":1,"b":2}}}`, "", `duplicate key "b"`},
		{`{"id":"weather","id":"reserve"}`, "", `duplicate key "id"`},
		{`{}`, "", "needs the id of a tool, got an empty object"},
		{`{"city":"Oslo"}`, "", "needs the id of a tool, got only city"},
		{`null`, "", "got no input"},
		{`[]`, "", "must be a JSON object, got an array"},
		{`{"id":"","args":{}}`, "", "needs the id of a tool, got a blank id"},
		{`{"id":["weather"]}`, "", "needs the id of a tool, got an array as id"},
		{`{"id":null,"toolId":{}}`, "", "needs the id of a tool, got an object as toolId"},
		{`{"args":{"id":"weather"},"input":{"id":"reserve"}}`, "", "two calls in one"},
		{`{"id":"nowhere"}`, "", `there is no tool "nowhere"`},
	}
	for _, tt := range tests {
		got, f := repairWith(tools, tt.input)
		if tt.tool == "" {
			if f == nil {
				t.Errorf("repair(%s) = %s %s, want a refusal", tt.input, got.tool.ID, got.args)
			} else if !strings.Contains(f.text, tt.args) {
				t.Errorf("repair(%s) refused with %q, want %q in it", tt.input, f.text, tt.args)
			}
			continue
		}
		if f != nil {
			t.Errorf("repair(%s) refused: %s", tt.input, f.text)
		} else if got.tool.Name != tt.tool || string(got.args) != tt.args {
			t.Errorf("repair(%s) = %s %s, want %s %s", tt.input, got.tool.Name, got.args, tt.tool, tt.args)
		}
	}
}

func TestRepairCall_RefusalShowsTheRightCall(t *testing.T) {
	_, f := repairWith(repairTools(), `{"id":"weather","args":5}`)
	want := `send tool_call {"id":"mcp:pier:weather","args":…}, args being ` + directory.InputSignature(repairTools()["weather"].InputSchema)
	if f == nil || !strings.HasSuffix(f.text, want) || f.status != statusInvalid {
		t.Errorf("repair = %+v, want a refusal that ends in %s", f, want)
	}
}

// "Nothing becomes {} silently"
func TestRepairCall_BlankArgumentsAreNoted(t *testing.T) {
	for input, want := range map[string]string{
		`{"id":"weather","args":" "}`:                        noteBlank,
		`{"id":"weather","args":"","input":{"city":"Oslo"}}`: "",
		`{"id":"weather","args":null}`:                       "",
		`{"id":"weather","args":{}}`:                         "",
	} {
		got, f := repairWith(repairTools(), input)
		if f != nil || got.note != want {
			t.Errorf("repair(%s) = %+v, %v, want the note %q", input, got, f, want)
		}
	}
}

func TestRepairCall_DirectOnly(t *testing.T) {
	tools := repairTools()
	shy := fakeServer{Name: "pier", DirectOnly: []string{"shot"}}.tool(tool("shot", "", ""))
	tools["shot"] = shy
	_, f := repairWith(tools, `{"id":"shot"}`)
	if f == nil || f.status != statusUnknown || !strings.Contains(f.text, "listed as pier__shot, call it directly") {
		t.Errorf("repair of a direct-only tool = %+v", f)
	}
}

// FuzzRepairCall: no panic, and no value of the input disappears: every scalar
// is an argument, part of the selector or the envelope, or the call is refused.
func FuzzRepairCall(f *testing.F) {
	for _, s := range []string{
		`{"id":"weather","args":{"city":"Oslo"},"x":1}`, `{"arguments":{"name":"ask","arguments":{"input":"v"}},"y":"z"}`,
		`{"id":"free","args":{"args":{"a":"b"},"c":"d"},"input":"{\"e\":\"f\"}"}`, `{"name":"nest","arguments":{"q":"r"},"args.s":"t"}`,
		`{"id":"tool_call","args":{"id":"weather","toolId":"w"},"name":"v"}`,
	} {
		f.Add(s)
	}
	tools := repairTools()
	f.Fuzz(func(t *testing.T, input string) {
		if !json.Valid([]byte(input)) {
			return // the JSON of a request was read before
		}
		got, fail := repairWith(tools, input)
		if fail != nil {
			if fail.text == "" || fail.status == "" {
				t.Fatalf("repair(%s): an empty refusal", input)
			}
			return
		}
		if err := checkObject(got.args); err != nil {
			t.Fatalf("repair(%s) = %s: %v", input, got.args, err)
		}
		for _, v := range scalars(json.RawMessage(input)) {
			if tools[strings.TrimSpace(v)] != nil || controlName(v) != "" || strings.TrimSpace(v) == "" {
				continue
			}
			if !strings.Contains(fmt.Sprint(scalars(got.args)), v) {
				t.Errorf("repair(%s) = %s: %q is gone", input, got.args, v)
			}
		}
	})
}

// scalars lists the strings and numbers in a value; strings that hold an
// object are looked into.
func scalars(v json.RawMessage) []string {
	if o, ok := objectText(v); ok {
		v = o
	}
	var out []string
	switch rawjson.Kind(v) {
	case "an object", "an array":
		if t := parseTree(v); t != nil {
			for _, item := range t.items {
				out = append(out, scalars(item.raw)...)
			}
		}
	case "a string":
		s, _ := textOf(v)
		out = append(out, s)
	case "a number":
		out = append(out, strings.TrimSpace(string(v)))
	}
	return out
}
