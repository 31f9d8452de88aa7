package demo

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

func connect(t *testing.T, config upstreams.Config) *mcp.ClientSession {
	t.Helper()
	transport, err := config.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// TestServers_EveryToolAnswers calls each tool with arguments made from its
// own schema: whatever it says, it says it as a tool result.
func TestServers_EveryToolAnswers(t *testing.T) {
	mcptest.NoLeaks(t)
	servers := Servers()
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	total := 0
	for _, config := range servers {
		session := connect(t, config)
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			total++
			if !name.MatchString(tool.Name) || len(tool.Description) < 20 || tool.Title == "" || tool.Annotations == nil {
				t.Errorf("%s/%s: name, title, description or annotations are not what a real tool has", config.Name, tool.Name)
			}
			c := jsonschema.NewCompiler()
			schema := tool.InputSchema.(map[string]any)
			if err := c.AddResource("s.json", schema); err != nil {
				t.Fatal(err)
			}
			compiled, err := c.Compile("s.json")
			if err != nil {
				t.Errorf("%s/%s: schema: %v", config.Name, tool.Name, err)
				continue
			}
			args := example(schema).(map[string]any)
			if err := compiled.Validate(roundTrip(t, args)); err != nil {
				t.Errorf("%s/%s: example arguments %v: %v", config.Name, tool.Name, args, err)
			}
			res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name, Arguments: args})
			if err != nil || len(res.Content) != 1 {
				t.Errorf("%s/%s(%v) = %v, %v, want one content block", config.Name, tool.Name, args, res, err)
			}
		}
	}
	if len(servers) < 6 || total < 120 {
		t.Errorf("%d servers with %d tools, want at least 6 and 120", len(servers), total)
	}
}

func roundTrip(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// example makes the simplest value of a schema, required members only.
func example(schema map[string]any) any {
	if enum, ok := schema["enum"].([]any); ok {
		return enum[0]
	}
	switch schema["type"] {
	case "object":
		out := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		for _, name := range required {
			out[name.(string)] = example(properties[name.(string)].(map[string]any))
		}
		return out
	case "array":
		items := schema["items"].(map[string]any)
		return []any{example(items), example(items)}
	case "integer", "number":
		if least, ok := schema["minimum"].(float64); ok && least > 0 {
			return least
		}
		return 3
	case "boolean":
		return true
	}
	return "x"
}

func TestTools(t *testing.T) {
	tests := []struct{ server, tool, args, want string }{
		{"math", "add", `{"numbers":[9007199254740993,1]}`, `{"result":9007199254740994}`},
		{"math", "add", `{"numbers":[0.1,0.2]}`, `{"result":0.3}`},
		{"math", "divide", `{"a":1,"b":3}`, `{"fraction":"1/3","result":0.3333333333}`},
		{"math", "divide", `{"a":1,"b":0}`, `error: division by zero`},
		{"math", "integer_divide", `{"a":-7,"b":2}`, `{"quotient":-4,"remainder":1}`},
		{"math", "power", `{"base":2,"exponent":100}`, `{"result":1267650600228229401496703205376}`},
		{"math", "square_root", `{"x":2,"digits":20}`, `{"result":1.4142135623730950488}`},
		{"math", "least_common_multiple", `{"numbers":[4,6,10]}`, `{"result":60}`},
		{"math", "prime_factors", `{"n":360}`, `{"factors":[2,2,2,3,3,5]}`},
		{"math", "median", `{"numbers":[5,1,3,2]}`, `{"result":2.5}`},
		{"math", "convert_base", `{"digits":"ff","from":16,"to":2}`, `{"digits":"11111111"}`},
		{"units", "convert_length", `{"value":26.2,"from":"mi","to":"km"}`, `{"unit":"km","value":42.1648128}`},
		{"units", "convert_temperature", `{"value":98.6,"from":"F","to":"C"}`, `{"unit":"C","value":37}`},
		{"units", "convert_temperature", `{"value":-300,"from":"C","to":"K"}`, `error: that is below absolute zero`},
		{"units", "convert_mass", `{"value":1,"from":"ton","to":"kg"}`, `error: "ton" is not one of the units [g kg lb mg oz st t]`},
		{"text", "slugify", `{"text":"Straße & Über-Mut!"}`, `straße-über-mut`},
		{"text", "change_case", `{"text":"make it so","case":"camel"}`, `makeItSo`},
		{"text", "compare_texts", `{"left":"kitten","right":"sitting"}`, `{"distance":3,"similarity":0.5714285714285714}`},
		{"text", "truncate_text", `{"text":"one two three","max":9}`, `one two…`},
		{"text", "format_json", `{"json":"{\"a\": 12345678901234567890}","indent":0}`, `{"a":12345678901234567890}`},
		{"text", "hash_text", `{"text":"abc","algorithm":"crc32"}`, `352441c2`},
		{"calendar", "day_of_week", `{"date":"2026-11-29"}`, `{"day":"Sunday","iso_week":48}`},
		{"calendar", "days_between", `{"from":"2024-02-28","to":"2024-03-01"}`, `{"days":2}`},
		{"calendar", "find_free_slot", `{"from":"2026-06-01T08:50:00Z","to":"2026-06-01T12:00:00Z","minutes":30}`, `{"end":"2026-06-01T09:45:00Z","start":"2026-06-01T09:15:00Z"}`},
		{"calendar", "create_event", `{"title":"x","start":"2026-06-02T10:00:00Z","end":"2026-06-01T10:00:00Z"}`, `error: the end 2026-06-01T10:00:00Z is not after the start 2026-06-02T10:00:00Z`},
		{"weather", "current_weather", `{"city":"lisbon","units":"imperial"}`, `{"city":"Lisbon","humidity_percent":55,"sky":"clear","temperature":"75 °F","wind_kmh":14}`},
		{"contacts", "export_vcard", `{"id":"contact-1"}`, "BEGIN:VCARD\r\nVERSION:4.0\r\nFN:Ana Ferreira\r\nORG:Tejo Logistics\r\nEMAIL:ana@example.com\r\nTEL:+351 555 0101\r\nEND:VCARD"},
		{"tickets", "ticket_statistics", `{"by":"priority"}`, `{"high":1,"low":1,"normal":1}`},
	}
	sessions := map[string]*mcp.ClientSession{}
	for _, config := range Servers() {
		sessions[config.Name] = connect(t, config)
	}
	for _, test := range tests {
		if got := call(t, sessions[test.server], test.tool, test.args); got != test.want {
			t.Errorf("%s/%s(%s) = %s, want %s", test.server, test.tool, test.args, got, test.want)
		}
	}
}

func call(t *testing.T, session *mcp.ClientSession, tool, args string) string {
	t.Helper()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if res.IsError {
		return "error: " + text
	}
	return text
}

func TestServers_StateOutlivesAConnection(t *testing.T) {
	var files, notes upstreams.Config
	for _, c := range Servers() {
		switch c.Name {
		case "files":
			files = c
		case "notes":
			notes = c
		}
	}
	session := connect(t, files)
	call(t, session, "write_file", `{"path":"/a/b.txt","content":"one\ntwo\n"}`)
	call(t, session, "edit_file", `{"path":"/a/b.txt","old_text":"two","new_text":"three"}`)
	if got, want := call(t, connect(t, files), "read_file", `{"path":"a/b.txt"}`), "one\nthree\n"; got != want {
		t.Errorf("read_file on a new connection = %q, want %q", got, want)
	}
	if got, want := call(t, session, "list_directory", `{}`), `["README.md","a/","config/","reports/"]`; got != want {
		t.Errorf("list_directory = %s, want %s", got, want)
	}

	session = connect(t, notes)
	call(t, session, "create_note", `{"title":"Trip","body":"a","tags":["travel"]}`)
	call(t, session, "append_to_note", `{"id":"note-4","text":"b"}`)
	if diff := cmp.Diff(`[{"body":"a","title":"Trip"}]`, call(t, session, "note_history", `{"id":"note-4"}`)); diff != "" {
		t.Errorf("note_history (-want +got):\n%s", diff)
	}
	call(t, session, "delete_note", `{"id":"note-4"}`)
	if got := call(t, session, "get_note", `{"id":"note-4"}`); !strings.HasPrefix(got, "error: there is no note") {
		t.Errorf("get_note of a deleted note = %s, want an error", got)
	}
}
