package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// manyServers makes n servers with names and descriptions of the given text.
func manyServers(n int, text string) []fakeServer {
	var all []fakeServer
	for i := range n {
		all = append(all, fakeServer{
			Name: fmt.Sprintf("%s%d", text, i), Description: strings.Repeat(text+" ", 40),
			Tools: []json.RawMessage{tool("do_it", strings.Repeat(text+" ", 60), `{"type":"object","properties":{}}`)},
		})
	}
	return all
}

func list(t testing.TB, r *rig) json.RawMessage {
	t.Helper()
	tools, err := r.Local("").List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// The limits of contract 3, "Sizes", whatever servers there are.
func TestSurface_Sizes(t *testing.T) {
	for _, servers := range [][]fakeServer{
		nil,
		manyServers(1, "calendar"),
		manyServers(20, "calendar"),
		manyServers(300, "calendar"),
		manyServers(40, "日本語サーバー"),
		manyServers(40, `"quoted\`),
	} {
		for mode, limit := range map[Mode]struct{ bytes, description int }{
			ModeCode:      {2000, 1000},
			ModeTools:     {3000, 1000},
			ModeDirectory: {1 << 20, 2048},
		} {
			r := newRig(t, newFakeServers(servers...), rigOptions{settings: Settings{Mode: string(mode)}})
			raw := list(t, r)
			if len(raw) > limit.bytes {
				t.Errorf("%d servers, mode %s: tools/list has %d bytes, want at most %d", len(servers), mode, len(raw), limit.bytes)
			}
			var tools struct {
				Tools []struct{ Name, Description string }
			}
			if err := json.Unmarshal(raw, &tools); err != nil {
				t.Fatal(err)
			}
			for _, tool := range tools.Tools {
				if n := utf8.RuneCountInString(tool.Description); n > limit.description {
					t.Errorf("%d servers, mode %s: description of %s has %d characters, want at most %d", len(servers), mode, tool.Name, n, limit.description)
				}
			}
			f := r.faceFor(faceKey{"", mode})
			if n := utf8.RuneCountInString(f.instructions); n > maxInstructions {
				t.Errorf("%d servers, mode %s: instructions have %d characters", len(servers), mode, n)
			}
			if n := utf8.RuneCountInString(f.directory); n > DefaultDirectoryChars {
				t.Errorf("%d servers, mode %s: the directory has %d characters", len(servers), mode, n)
			}
		}
	}
}

// The bytes of the surface are the product: this fails on any change.
func TestSurface_Golden(t *testing.T) {
	var got strings.Builder
	for _, mode := range []Mode{ModeCode, ModeTools, ModeDirectory, ModeOff} {
		r := newRig(t, newFakeServers(
			fakeServer{Name: "calendar", Description: "appointments and rooms", Tools: []json.RawMessage{tool("create_event", "Create an event.", "")}},
			fakeServer{Name: "files", Description: "notes and drafts", Tools: []json.RawMessage{tool("read_file", "Read a file.", "")}},
		), rigOptions{settings: Settings{Mode: string(mode)}})
		raw := list(t, r)
		fmt.Fprintf(&got, "## %s: %d bytes\n%s\n\n%s\n\n", mode, len(raw), raw, r.faceFor(faceKey{"", mode}).instructions)
	}
	const file = "testdata/surface.golden"
	want, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		if *update {
			if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("the surface has changed; look at the difference, then run with -update. got:\n%s", got.String())
	}
}

// Our own schemas use the subset that every vendor takes (B016, B019).
func TestSurface_SchemasAreCommon(t *testing.T) {
	for _, c := range controls {
		o, err := rawjson.Parse(json.RawMessage(c.input))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if kind, _ := o.Text("type"); kind != "object" || !o.Has("properties") {
			t.Errorf("%s: the input schema is %s, want an object with properties", c.name, c.input)
		}
		for _, word := range []string{"$schema", "const", "exclusive", "anyOf", "oneOf", "allOf", "not", "additionalProperties", "outputSchema"} {
			if strings.Contains(c.input, `"`+word) {
				t.Errorf("%s: the input schema has %s", c.name, word)
			}
		}
	}
}

func TestInstructions_FirstSentence(t *testing.T) {
	for mode, call := range map[Mode]string{ModeCode: nameCode, ModeTools: nameSearch, ModeDirectory: nameSearch} {
		text := instructions(mode, []string{"calendar", "files"})
		first, _, _ := strings.Cut(text, ". ")
		if !strings.Contains(first, "2 MCP servers (calendar, files)") || !strings.Contains(first, call) {
			t.Errorf("instructions(%s) begin with %q, want the servers and %s", mode, first, call)
		}
	}
	if text := instructions(ModeOff, []string{"calendar"}); text != "" {
		t.Errorf("instructions(off) = %q, want none", text)
	}
}

// What is frozen stays as servers come and go; only the tools that are listed
// themselves follow.
func TestSurface_Frozen(t *testing.T) {
	calendar := fakeServer{Name: "calendar", Tools: []json.RawMessage{tool("create_event", "Create an event.", "")}}
	f := newFakeServers(calendar)
	r := newRig(t, f, rigOptions{})
	before := list(t, r)
	f.set(calendar, fakeServer{Name: "files", Tools: []json.RawMessage{tool("read_file", "Read.", ""), tool("shot", "Picture.", "")}, DirectOnly: []string{"shot"}})
	after := list(t, r)
	if !strings.Contains(string(after), `"files__shot"`) {
		t.Errorf("tools/list = %s, want the new direct-only tool", after)
	}
	if strings.Contains(string(after), "files (") {
		t.Errorf("tools/list = %s, want the overview as it was", after)
	}
	f.set(calendar)
	if again := list(t, r); string(again) != string(before) {
		t.Errorf("tools/list = %s, want %s", again, before)
	}
	f.set(calendar, fakeServer{Name: "files", Tools: []json.RawMessage{tool("read_file", "Read.", "")}})
	r.Reload(Settings{}, nil)
	if again := list(t, r); !strings.Contains(string(again), "files (1 tool)") {
		t.Errorf("tools/list after a reload = %s, want a new overview", again)
	}
}

func TestSurface_PinnedAtMostTwelve(t *testing.T) {
	var tools []json.RawMessage
	for i := range 20 {
		tools = append(tools, tool(fmt.Sprintf("t%02d", i), "d", ""))
	}
	r := newRig(t, newFakeServers(fakeServer{Name: "s", Tools: tools}), rigOptions{settings: Settings{Mode: "directory", Directory: DirectorySettings{Pinned: []string{"mcp:s:*"}}}})
	var got struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(list(t, r), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Tools) != 3+MaxPinned || got.Tools[3].Name != "s__t00" || got.Tools[14].Name != "s__t11" {
		t.Errorf("tools = %v, want the three and s__t00 to s__t11", got.Tools)
	}
}

// Publishing never touches what it need not: all tools of the real catalogs.
func TestPublish_RealCatalogs(t *testing.T) {
	forCatalogs(t, func(server string, raw json.RawMessage) {
		tl := fakeServer{Name: server}.tool(raw)
		o, err := rawjson.Parse(publish(tl))
		if err != nil {
			t.Fatalf("publish(%s): %v", tl.ID, err)
		}
		in, err := rawjson.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range in {
			got := o.Get(m.Name)
			switch m.Name {
			case "name":
				continue
			case "outputSchema":
				if got == nil {
					continue // withheld, which other tests decide
				}
			case "inputSchema":
				schema, err := rawjson.Parse(m.Value)
				if err != nil {
					t.Fatal(err)
				}
				if !schema.Has("type") || !schema.Has("properties") {
					continue
				}
			}
			if !sameJSON(got, m.Value) {
				t.Errorf("publish(%s): %s = %s, want %s", tl.ID, m.Name, got, m.Value)
			}
		}
	})
}

// A field that clients cannot read costs them the whole list, so it is left out.
func TestPublish_BrokenFields(t *testing.T) {
	const schema = `{"type":"object","properties":{}}`
	for _, c := range []struct{ field, want string }{
		{`"description":5`, ``},
		{`"description":null`, ``},
		{`"description":"fine","title":["x"]`, `"description":"fine",`},
		{`"icons":{},"_meta":[],"execution":"x"`, ``},
		{`"icons":[],"_meta":{"a":1},"execution":{}`, `"icons":[],"_meta":{"a":1},"execution":{},`},
		{`"annotations":"x"`, ``},
		{`"annotations":{"title":1,"readOnlyHint":"yes","destructiveHint":false,"more":5}`, `"annotations":{"destructiveHint":false,"more":5},`},
		{`"annotations":{"readOnlyHint":true},"more":[5]`, `"annotations":{"readOnlyHint":true},"more":[5],`},
	} {
		raw := json.RawMessage(`{"name":"t",` + c.field + `,"inputSchema":` + schema + `}`)
		want := `{"name":"s__t",` + c.want + `"inputSchema":` + schema + `}`
		if got := string(publish(fakeServer{Name: "s"}.tool(raw))); got != want {
			t.Errorf("publish(%s) = %s, want %s", raw, got, want)
		}
	}
}

// What clients demand of a schema's root: properties are objects, required is
// a list of names.
func TestPublish_BrokenSchemas(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type":"object","properties":{"a":false,"b":true}}`, `{"type":"object","properties":{"a":{"not":{}},"b":{}}}`},
		{`{"type":"object","properties":{"a":null,"b":"string","c":{}}}`, `{"type":"object","properties":{"a":{},"b":{},"c":{}}}`},
		{`{"type":"object","properties":["a"]}`, `{"type":"object","properties":{}}`},
		{`{"type":"object","properties":{},"required":true}`, `{"type":"object","properties":{}}`},
		{`{"type":"object","properties":{},"required":["a",5]}`, `{"type":"object","properties":{}}`},
		{`{"type":"object","properties":{},"required":["a"]}`, `{"type":"object","properties":{},"required":["a"]}`},
	} {
		if got := string(publishedSchema(json.RawMessage(c.schema))); got != c.want {
			t.Errorf("publishedSchema(%s) = %s, want %s", c.schema, got, c.want)
		}
	}
}

// forCatalogs visits the tools of the real catalogs.
func forCatalogs(t testing.TB, visit func(server string, raw json.RawMessage)) {
	t.Helper()
	root := os.Getenv("TOOLSEARCH_DATA")
	if root == "" {
		t.Skip("TOOLSEARCH_DATA is not set: no real catalogs")
	}
	files, err := filepath.Glob(filepath.Join(root, "catalogs", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no catalogs in %s: %v", root, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var catalog struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(b, &catalog); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, raw := range catalog.Tools {
			visit(strings.TrimSuffix(filepath.Base(file), ".json"), raw)
		}
	}
}

var _ Servers = (*upstreams.Set)(nil)
