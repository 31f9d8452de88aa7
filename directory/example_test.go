package directory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// harbour is what the servers of a small port offer.
var harbour = &upstreams.Snapshot{
	Servers: []upstreams.ServerInfo{
		{Name: "berths", Safe: "berths", Known: true, Instructions: "Assigns ships to berths. Ask it first."},
		{Name: "invoices", Safe: "invoices", Known: true},
	},
	Tools: []*upstreams.Tool{
		{
			Server: "berths", Safe: "berths", Name: "assign_berth", ID: "mcp:berths:assign_berth", FullName: "berths__assign_berth",
			Description: "Gives a ship a berth for some days.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"ship":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["ship"],"additionalProperties":false}`),
			Trust:       upstreams.TrustSchema,
		},
		{
			Server: "berths", Safe: "berths", Name: "cancel", ID: "mcp:berths:cancel", FullName: "berths__cancel",
			Description: "Takes a berth back.", Trust: upstreams.TrustSchema,
		},
		{
			Server: "invoices", Safe: "invoices", Name: "cancel", ID: "mcp:invoices:cancel", FullName: "invoices__cancel",
			Description: "Cancels an invoice.", Trust: upstreams.TrustSchema,
		},
		{
			Server: "invoices", Safe: "invoices", Name: "send_invoice", ID: "mcp:invoices:send_invoice", FullName: "invoices__send_invoice",
			Description: "Sends an invoice to the ship's agent.", Trust: upstreams.TrustSchema,
		},
	},
}

// hideInvoices is a policy: guests do not see invoices.
type hideInvoices struct{}

func (hideInvoices) Filter(profile string, tools []*upstreams.Tool) []*upstreams.Tool {
	var seen []*upstreams.Tool
	for _, t := range tools {
		if profile != "guest" || !strings.HasPrefix(t.ID, "mcp:invoices:") {
			seen = append(seen, t)
		}
	}
	return seen
}

func (hideInvoices) SeesServer(profile, safe string) bool {
	return profile != "guest" || safe != "invoices"
}

func open() *directory.Directory {
	return directory.New(directory.Options{
		Source: func() *upstreams.Snapshot { return harbour },
		Rules:  hideInvoices{},
	})
}

func Example() {
	d := open()
	defer d.Close()

	hits, err := d.View("").Search(context.Background(), "assign a berth to a ship", 1)
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range hits {
		fmt.Println(h.Name, h.Input)
		fmt.Println(h.Description)
	}
	// Output:
	// berths__assign_berth { ship: string; days?: number /* integer, >= 1 */ }
	// Gives a ship a berth for some days.
}

func ExampleDirectory_View() {
	d := open()
	defer d.Close()

	for _, profile := range []string{"clerk", "guest"} {
		fmt.Printf("%s:\n%s\n", profile, d.View(profile).Overview(1000, false))
	}
	// Output:
	// clerk:
	// berths (2 tools): Assigns ships to berths
	// invoices (2 tools): cancel, send
	// guest:
	// berths (2 tools): Assigns ships to berths
}

func ExampleView_Resolve() {
	d := open()
	defer d.Close()

	v := d.View("")
	for _, selector := range []string{"mcp:berths:cancel", "berths__cancel", "assign_berth", "cancel", "send_invoce"} {
		tool, err := v.Resolve(selector)
		if failed, ok := errors.AsType[*directory.ResolveError](err); ok {
			fmt.Println(failed)
			continue
		}
		fmt.Println(selector, "is", tool.ID)
	}
	// Output:
	// mcp:berths:cancel is mcp:berths:cancel
	// berths__cancel is mcp:berths:cancel
	// assign_berth is mcp:berths:assign_berth
	// tool name "cancel" is ambiguous: mcp:berths:cancel, mcp:invoices:cancel
	// unknown tool "send_invoce"; near names: invoices__send_invoice
}

func ExampleView_Text() {
	d := open()
	defer d.Close()

	fmt.Println(d.View("guest").Text(1900))
	// Output:
	// Tools behind this server: 2 of 2 follow. Find the rest with tool_search, call any of them by tool_call.
	// - berths__assign_berth: Gives a ship a berth for some days.
	// - berths__cancel: Takes a berth back.
}

func ExampleInputSignature() {
	fmt.Println(directory.InputSignature(json.RawMessage(`{
		"type": "object",
		"properties": {
			"mode": {"enum": ["drip", "flood"]},
			"id":   {"type": "string", "description": "of the valve"}
		},
		"required": ["id"],
		"additionalProperties": false
	}`)))
	// Output:
	// { id: string; mode?: "drip" | "flood" }
}

func ExampleOneLine() {
	fmt.Println(directory.OneLine("Reads\u202e a file.\n\nNever\x1b writes one.", 22))
	// Output:
	// Reads a file. Never
}
