package directory

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

func TestNewHit(t *testing.T) {
	yes, no := true, false
	closed := json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","description":"secret advice"}},"required":["id"],"additionalProperties":false}`)
	base := func(change func(*upstreams.Tool)) *upstreams.Tool {
		tool := fakeTool("calendar", "create_event", "Creates an event.")
		tool.InputSchema, tool.OutputSchema = closed, closed
		change(tool)
		return tool
	}
	want := func(change func(*Hit)) Hit {
		h := Hit{ID: "mcp:calendar:create_event", Source: "mcp", SourceName: "calendar", Name: "calendar__create_event", Description: "Creates an event.", Input: "{ id: string }"}
		change(&h)
		return h
	}
	long := strings.Repeat("One sentence of text. ", 20)
	for name, c := range map[string]struct {
		tool *upstreams.Tool
		want Hit
	}{
		"trust schema": {base(func(*upstreams.Tool) {}), want(func(*Hit) {})},
		"trust none": {
			base(func(t *upstreams.Tool) { t.Trust = upstreams.TrustNone }),
			want(func(h *Hit) { h.Input = "unknown" }),
		},
		"trust full": {
			base(func(t *upstreams.Tool) { t.Trust = upstreams.TrustFull }),
			want(func(h *Hit) { h.Output = "{ id: string }" }),
		},
		"trust full, open output": {
			base(func(t *upstreams.Tool) {
				t.Trust, t.OutputSchema = upstreams.TrustFull, json.RawMessage(`{"type":"object"}`)
			}),
			want(func(*Hit) {}),
		},
		"label": {
			base(func(t *upstreams.Tool) { t.Title = " New\nevent " }),
			want(func(h *Hit) { h.Label = "New event" }),
		},
		"label that says nothing new": {
			base(func(t *upstreams.Tool) { t.Title = "create_event" }),
			want(func(*Hit) {}),
		},
		"hints": {
			base(func(t *upstreams.Tool) {
				t.Annotations = upstreams.Annotations{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &yes}
			}),
			want(func(h *Hit) { h.Hints = []string{"read-only", "idempotent"} }),
		},
		"destructive": {
			base(func(t *upstreams.Tool) { t.Annotations = upstreams.Annotations{ReadOnly: &no, Destructive: &yes} }),
			want(func(h *Hit) { h.Hints = []string{"destructive"} }),
		},
		"long description": {
			base(func(t *upstreams.Tool) { t.Description = long }),
			want(func(h *Hit) { h.Description = strings.TrimSpace(long[:175]) }),
		},
		"hidden characters": {
			base(func(t *upstreams.Tool) {
				t.Description, t.Server, t.ID = "a\u202eb\n\U000E0041c", "my\u200b calendar", "mcp:calendar:create\u200b_event"
			}),
			want(func(h *Hit) { h.Description, h.SourceName = "ab c", "my calendar" }),
		},
		"embedding program": {
			base(func(t *upstreams.Tool) { t.ID = "core:files:read" }),
			want(func(h *Hit) { h.ID, h.Source = "core:files:read", "core" }),
		},
		"no schema": {
			base(func(t *upstreams.Tool) { t.InputSchema = nil }),
			want(func(h *Hit) { h.Input = "unknown" }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := NewHit(c.tool)
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(Hit{}, "Tool")); diff != "" {
				t.Errorf("NewHit (-want +got):\n%s", diff)
			}
			if got.Tool != c.tool {
				t.Error("NewHit().Tool is another tool")
			}
		})
	}
}

func TestHit_JSONLeavesOutWhatIsNotThere(t *testing.T) {
	got, err := json.Marshal(NewHit(fakeTool("a", "b", "c")))
	want := `{"id":"mcp:a:b","source":"mcp","sourceName":"a","name":"a__b","description":"c","input":"unknown"}`
	if err != nil || string(got) != want {
		t.Errorf("hit = %s, %v, want %s", got, err, want)
	}
}
