package aggregator

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
)

// FuzzSchemas: whatever a server lists, its description keeps the budget and
// each part that was cut can be fetched; what is published has an object
// schema.
func FuzzSchemas(f *testing.F) {
	f.Add("a tool", deep(4, 4), 4000)
	f.Add("", `{"type":"object","properties":{"x":true,"a/b~":{"enum":[1,2,[3]]}},"anyOf":[{"$ref":"#/properties/x"},true]}`, 500)
	f.Add("\u202e\"", `[["deep"],{"":{"":{}}}]`, 300)
	f.Add("x", `"a string that is longer than the budget allows for it to be shown here"`, 200)
	f.Add("deep", strings.Repeat("[", 5000)+strings.Repeat("]", 5000), 4000)
	f.Fuzz(func(t *testing.T, text, schema string, budget int) {
		if root := parseTree(json.RawMessage(schema)); root == nil || rawjson.CheckDuplicates([]byte(schema)) != nil {
			return // upstreams refuses such tools
		}
		budget = 1000 + max(0, budget)%40_000
		raw := rawjson.Object{
			{Name: "name", Value: quote("t")}, {Name: "description", Value: quote(text)},
			{Name: "inputSchema", Value: json.RawMessage(schema)}, {Name: "outputSchema", Value: json.RawMessage(schema)},
		}.Bytes()
		tl := fakeServer{Name: "s"}.tool(raw)

		answer := description(directory.NewHit(tl), budget)
		if n := chars(content(string(answer))); n > budget {
			t.Errorf("description has %d characters, want at most %d", n, budget)
		}
		var d described
		if err := json.Unmarshal(answer, &d); err != nil {
			t.Fatalf("description = %s: %v", answer, err)
		}
		for _, pointer := range d.Truncated {
			got, fail := part(tl, pointer, budget)
			if fail != nil {
				t.Errorf("part %q: %s", pointer, fail.text)
			} else if n := chars(content(string(got))); n > budget+12*len(pointer) {
				t.Errorf("part %q has %d characters, want at most %d", pointer, n, budget)
			}
		}

		var shown struct {
			Name        string
			InputSchema struct{ Type string }
		}
		if err := json.Unmarshal(publish(tl), &shown); err != nil || shown.Name != "s__t" || shown.InputSchema.Type != "object" {
			t.Errorf("publish(%s) = %s: %v", raw, publish(tl), err)
		}
	})
}
