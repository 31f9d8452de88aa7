package directory

import (
	"strings"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

const (
	hitDescription = 180 // characters (contract 4)
	hitLabel       = 80
)

// Hit is one tool as search shows it (contract 4).
type Hit struct {
	ID          string   `json:"id"`
	Source      string   `json:"source"`
	SourceName  string   `json:"sourceName"`
	Name        string   `json:"name"`
	Label       string   `json:"label,omitempty"`
	Description string   `json:"description"`
	Input       string   `json:"input"`
	Output      string   `json:"output,omitempty"`
	Hints       []string `json:"hints,omitempty"`

	Tool *upstreams.Tool `json:"-"`
}

// NewHit makes the hit of a tool: one line of description, signature, hints.
// How much of the schemas shows depends on the trust in the server
// (contract 5). It parses the schemas: hits of a View are made once a tool.
func NewHit(t *upstreams.Tool) Hit {
	h := Hit{
		ID:          OneLine(t.ID, 0),
		Source:      "mcp",
		SourceName:  OneLine(t.Server, 0),
		Name:        t.FullName,
		Description: summary(t.Description, hitDescription),
		Input:       "unknown",
		Hints:       hints(t.Annotations),
		Tool:        t,
	}
	if source, _, ok := strings.Cut(h.ID, ":"); ok {
		h.Source = source // core and client belong to programs that embed us
	}
	if label := OneLine(t.Title, hitLabel); label != t.Name && label != t.FullName {
		h.Label = label
	}
	if t.Trust != upstreams.TrustNone {
		h.Input = InputSignature(t.InputSchema)
	}
	if t.Trust == upstreams.TrustFull {
		h.Output, _ = OutputSignature(t.OutputSchema)
	}
	return h
}

// hints names what the server itself says of a tool; silence says nothing.
func hints(a upstreams.Annotations) []string {
	var hints []string
	for _, h := range []struct {
		value *bool
		name  string
	}{{a.ReadOnly, "read-only"}, {a.Destructive, "destructive"}, {a.Idempotent, "idempotent"}} {
		if h.value != nil && *h.value {
			hints = append(hints, h.name)
		}
	}
	return hints
}
