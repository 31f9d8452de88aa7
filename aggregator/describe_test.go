package aggregator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

type described struct {
	ID, Description, Path string
	Parameters            json.RawMessage
	OutputSchema          json.RawMessage
	OutputSchemaTrusted   *bool
	Annotations           map[string]bool
	Truncated             []string
	Value                 json.RawMessage
	Keys                  []string
}

func describe(t testing.TB, r *rig, args string) described {
	t.Helper()
	a := decode(t, r.local(t, nameDescribe, args))
	if a.IsError {
		t.Fatalf("tool_describe %s: %s", args, a.text())
	}
	var d described
	if err := json.Unmarshal([]byte(a.text()), &d); err != nil {
		t.Fatalf("tool_describe %s = %s: %v", args, a.text(), err)
	}
	return d
}

func TestDescribe(t *testing.T) {
	schema := `{"type":"object","properties":{"b":{"type":"string","default":1.0},"a":{"maximum":12345678901234567890}}}`
	def := func(name string) json.RawMessage {
		return json.RawMessage(`{"name":"` + name + `","description":"line one\nline two","inputSchema":` + schema + `,"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"openWorldHint":false,"title":"x"}}`)
	}
	r := newRig(t, newFakeServers(
		fakeServer{Name: "s", Tools: []json.RawMessage{def("one"), tool("bare", "d", "")}},
		fakeServer{Name: "full", Trust: upstreams.TrustFull, Tools: []json.RawMessage{def("two")}},
		fakeServer{Name: "none", Trust: upstreams.TrustNone, Tools: []json.RawMessage{def("three")}},
		fakeServer{Name: "off", State: upstreams.Failed},
	), rigOptions{rules: policy.Rules{Deny: []string{"mcp:s:hidden"}}})

	for _, args := range []string{`{"id":"mcp:s:one"}`, `{"toolId":"s__one"}`, `{"name":"one"}`, `{"args":{"id":"one"}}`, `{"id":"one","path":null}`, `"{\"id\":\"one\"}"`} {
		d := describe(t, r, args)
		if d.ID != "mcp:s:one" || string(d.Parameters) != schema || d.Description != "line one\nline two" || d.Truncated != nil {
			t.Errorf("tool_describe %s = %+v", args, d)
		}
		if d.OutputSchemaTrusted == nil || *d.OutputSchemaTrusted || !d.Annotations["readOnlyHint"] || len(d.Annotations) != 2 {
			t.Errorf("tool_describe %s: trusted %v, annotations %v", args, d.OutputSchemaTrusted, d.Annotations)
		}
	}
	if d := describe(t, r, `{"id":"two"}`); d.OutputSchemaTrusted == nil || !*d.OutputSchemaTrusted {
		t.Errorf("of a trusted server: %+v", d)
	}
	if d := describe(t, r, `{"id":"three"}`); d.OutputSchema != nil || d.OutputSchemaTrusted != nil || string(d.Parameters) != schema {
		t.Errorf("of a server that is not trusted: %+v", d)
	}
	if d := describe(t, r, `{"id":"bare"}`); string(d.Parameters) != "{}" {
		t.Errorf("without a schema: %+v", d)
	}
	if d := describe(t, r, `{"id":"one","path":"/parameters/properties/a"}`); string(d.Value) != `{"maximum":12345678901234567890}` || d.Path != "/parameters/properties/a" {
		t.Errorf("a part: %+v", d)
	}
	for args, want := range map[string]string{
		`{}`:                                  "needs the id of a tool",
		`{"id":7}`:                            "needs the id of a tool",
		`[]`:                                  "must be an object",
		`{"id":"nowhere"}`:                    `there is no tool "nowhere"; find it first: `,
		`{"id":"on"}`:                         "there is no tool",
		`{"id":"one","path":5}`:               "path must be a string",
		`{"id":"one","path":"/parameters/x"}`: `/parameters has no "x"; it has type, properties`,
		`{"id":"one","path":"/x"}`:            `the root has no "x"; it has parameters, outputSchema`,
		`{"id":"mcp:off:x"}`:                  `server "off", which may have it, is not ready`,
		`{"id":"mcp:s:hidden"}`:               "there is no tool",
	} {
		if a := decode(t, r.local(t, nameDescribe, args)); !a.IsError || !strings.Contains(a.text(), want) {
			t.Errorf("tool_describe %s = %q, want an error with %q", args, a.text(), want)
		}
	}
}

// deep makes a schema of n properties that go depth levels down.
func deep(n, depth int) string {
	if depth == 0 {
		return `{"type":"string","description":"` + strings.Repeat("d", 60) + `"}`
	}
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"p%d~/%d":%s`, depth, i, deep(n, depth-1)))
	}
	return `{"type":"object","properties":{` + strings.Join(members, ",") + `}}`
}

// What is too large is cut at the deepest levels; each cut part can be fetched
// by its pointer, and all parts together are the schema.
func TestDescribe_Cut(t *testing.T) {
	long := strings.Repeat(`a "long" description, `, 3000)
	for name, schema := range map[string]string{
		"deep": deep(4, 4),
		"wide": deep(300, 1),
		"text": `{"type":"object","description":` + string(quote(long)) + `,"properties":{"a":{"type":"string","description":` + string(quote(long)) + `}}}`,
		"list": `{"type":"object","properties":{"e":{"enum":[` + strings.Repeat(`"value",`, 3000) + `"end"]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newFakeServers(fakeServer{Name: "s", Tools: []json.RawMessage{tool("big", long, schema)}}), rigOptions{})
			budget := DefaultMaxAnswerChars
			fetch := func(args string) described {
				var result struct{ Content json.RawMessage }
				if err := json.Unmarshal(r.local(t, nameDescribe, args), &result); err != nil {
					t.Fatal(err)
				}
				if n := chars(result.Content); n > budget {
					t.Errorf("tool_describe %s has %d characters, want at most %d", args, n, budget)
				}
				return describe(t, r, args)
			}
			d := fetch(`{"id":"big"}`)
			if len(d.Truncated) == 0 {
				t.Fatalf("nothing is truncated")
			}
			if len([]rune(d.Description)) > budget/4 || len(d.Description) < budget/8 {
				t.Errorf("description has %d characters, want close to %d", len(d.Description), budget/4)
			}
			// Puts the parts together again.
			var whole func(value json.RawMessage, at string, cut []string) json.RawMessage
			fetched := 0
			whole = func(value json.RawMessage, at string, cut []string) json.RawMessage {
				for _, pointer := range cut {
					if pointer == at {
						if fetched++; fetched > 2000 {
							t.Fatal("fetching does not end")
						}
						part := fetch(fmt.Sprintf(`{"id":"big","path":%s}`, quote(at)))
						if len(part.Truncated) == 1 && part.Truncated[0] == at {
							if rawjson.Kind(part.Value) != "an object" {
								return part.Value // longer than an answer: its beginning
							}
							var o rawjson.Object
							for _, key := range part.Keys {
								member := fetch(fmt.Sprintf(`{"id":"big","path":%s}`, quote(at+"/"+escape(key))))
								o = append(o, rawjson.Member{Name: key, Value: whole(member.Value, member.Path, member.Truncated)})
							}
							return o.Bytes()
						}
						return whole(part.Value, at, part.Truncated)
					}
				}
				switch rawjson.Kind(value) {
				case "an object":
					o, err := rawjson.Parse(value)
					if err != nil {
						t.Fatal(err)
					}
					for i := range o {
						o[i].Value = whole(o[i].Value, at+"/"+escape(o[i].Name), cut)
					}
					return o.Bytes()
				case "an array":
					items, _ := rawjson.Array(value)
					for i := range items {
						items[i] = whole(items[i], fmt.Sprintf("%s/%d", at, i), cut)
					}
					return rawjson.List(items...)
				}
				return value
			}
			got := whole(d.Parameters, "/parameters", d.Truncated)
			switch name {
			case "deep", "wide":
				if string(got) != schema {
					t.Errorf("the parts are not the schema: %d bytes, want %d", len(got), len(schema))
				}
			case "list":
				if !strings.HasPrefix(schema, strings.TrimSuffix(string(got), "]}}}")) || len(got) < budget/2 {
					t.Errorf("the parts are not the beginning of the schema: %d bytes of %d", len(got), len(schema))
				}
			}
			if name == "text" {
				part := fetch(`{"id":"big","path":"/parameters/description"}`)
				if text, ok := textOf(part.Value); !ok || len(text) < budget/2 || !strings.HasPrefix(long, strings.TrimSuffix(text, "…")) {
					t.Errorf("a long string = %.80s…, want its beginning", part.Value)
				}
			}
		})
	}
}

func TestDescribe_RealCatalogs(t *testing.T) {
	byServer := map[string]*fakeServer{}
	forCatalogs(t, func(server string, raw json.RawMessage) {
		if byServer[server] == nil {
			byServer[server] = &fakeServer{Name: server}
		}
		byServer[server].Tools = append(byServer[server].Tools, raw)
	})
	var servers []fakeServer
	for _, s := range byServer {
		servers = append(servers, *s)
	}
	r := newRig(t, newFakeServers(servers...), rigOptions{settings: Settings{MaxAnswerChars: 4000}})
	view := r.dir.View("")
	for _, tl := range view.Tools() {
		text := description(view.Hit(tl), 4000)
		if n := chars(content(string(text))); n > 4000 {
			t.Errorf("description(%s) has %d characters", tl.ID, n)
		}
		var d described
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("description(%s): %v", tl.ID, err)
		}
		if d.Truncated == nil && !sameJSON(d.Parameters, tl.InputSchema) {
			t.Errorf("description(%s): parameters differ from the schema", tl.ID)
		}
	}
}
