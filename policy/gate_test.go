package policy

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// next is the end of the chain: it records what reached it.
type next struct {
	calls  []upstreams.Call
	result upstreams.Result
	err    error
}

func (n *next) Do(_ context.Context, call upstreams.Call) (*upstreams.Result, error) {
	n.calls = append(n.calls, call)
	if n.err != nil {
		return nil, n.err
	}
	return &n.result, nil
}

func checked(schema string) *upstreams.Tool {
	t := tool("depot", "wipe")
	t.InputSchema = json.RawMessage(schema)
	t.Validate = "error"
	return t
}

const boxSchema = `{"type":"object","properties":{"box":{"type":"string"},"why":{"type":"string"}},"required":["box"],"additionalProperties":false}`

func TestGate_DeniesBeforeTheServerIsAsked(t *testing.T) {
	n := &next{}
	g := NewGate(mustCompile(t, Rules{Deny: []string{"mcp:depot:wipe"}}), n)
	_, err := g.Do(t.Context(), upstreams.Call{Tool: checked(boxSchema), Args: json.RawMessage(`{"box":1}`)})
	var denied *DeniedError
	if !errors.As(err, &denied) || denied.Decision.Rule != "deny mcp:depot:wipe" {
		t.Errorf("Do(denied) = %v, want a *DeniedError that names the rule", err)
	}
	if _, err := g.Do(t.Context(), upstreams.Call{}); !errors.As(err, &denied) {
		t.Errorf("Do(no tool) = %v, want a *DeniedError", err)
	}
	if len(n.calls) != 0 {
		t.Errorf("%d calls reached the server, want none", len(n.calls))
	}
}

func TestGate_SwapHoldsForTheNextCall(t *testing.T) {
	n := &next{result: upstreams.Result{Raw: json.RawMessage(`{"content":[]}`)}}
	g := NewGate(mustCompile(t, Rules{}), n)
	call := upstreams.Call{Tool: checked(boxSchema), Args: json.RawMessage(`{"box":"a"}`)}
	if _, err := g.Do(t.Context(), call); err != nil {
		t.Fatalf("Do(allowed) = %v, want no error", err)
	}
	g.Swap(mustCompile(t, Rules{Allow: []string{}}))
	var denied *DeniedError
	if _, err := g.Do(t.Context(), call); !errors.As(err, &denied) {
		t.Errorf("Do after Swap = %v, want a *DeniedError", err)
	}
}

func TestGate_ChecksArgumentsFirst(t *testing.T) {
	n := &next{}
	g := NewGate(mustCompile(t, Rules{}), n)
	_, err := g.Do(t.Context(), upstreams.Call{Tool: checked(boxSchema), Args: json.RawMessage(`{"bux":"a"}`)})
	var bad *upstreams.ArgumentsError
	if !errors.As(err, &bad) || len(n.calls) != 0 {
		t.Errorf("Do(bad arguments) = %v with %d calls sent, want an *ArgumentsError and none", err, len(n.calls))
	}
}

func TestGate_SendsTheRepairedArguments(t *testing.T) {
	n := &next{result: upstreams.Result{Raw: json.RawMessage(`{"content":[]}`)}}
	g := NewGate(mustCompile(t, Rules{}), n)
	args := json.RawMessage(`{"box":"a","why":null}`)
	if _, err := g.Do(t.Context(), upstreams.Call{Tool: checked(boxSchema), Args: args}); err != nil {
		t.Fatalf("Do(null for an optional property) = %v, want no error", err)
	}
	if got := string(n.calls[0].Args); got != `{"box":"a"}` {
		t.Errorf("sent arguments = %s, want {\"box\":\"a\"}", got)
	}
	if string(args) != `{"box":"a","why":null}` {
		t.Errorf("the caller's arguments became %s, want them untouched", args)
	}
}

func TestGate_JoinsNotesAndLeavesTheServersResultAlone(t *testing.T) {
	n := &next{result: upstreams.Result{Raw: json.RawMessage(`{"content":[]}`), Note: "slow"}}
	g := NewGate(mustCompile(t, Rules{}), n)
	tl := checked(boxSchema)
	tl.Validate = "warn"
	res, err := g.Do(t.Context(), upstreams.Call{Tool: tl, Args: json.RawMessage(`{"bux":"a"}`)})
	if err != nil || len(res.Note) <= len("; slow") || res.Note[len(res.Note)-6:] != "; slow" {
		t.Fatalf("Do(warn) = %+v, %v, want a note that ends in \"; slow\"", res, err)
	}
	if n.result.Note != "slow" {
		t.Errorf("the server's own result has the note %q, want it unchanged", n.result.Note)
	}
}

func TestGate_HoldsFullyTrustedServersToTheirOutputSchema(t *testing.T) {
	n := &next{result: upstreams.Result{Raw: json.RawMessage(`{"content":[],"structuredContent":{"n":"x"}}`)}}
	g := NewGate(mustCompile(t, Rules{}), n)
	tl := checked(`{"type":"object"}`)
	tl.Trust = upstreams.TrustFull
	tl.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	var broken *upstreams.OutputError
	if _, err := g.Do(t.Context(), upstreams.Call{Tool: tl}); !errors.As(err, &broken) || len(n.calls) != 1 {
		t.Errorf("Do(result breaks outputSchema) = %v after %d calls, want an *OutputError after one", err, len(n.calls))
	}

	tl = checked(`{"type":"object"}`)
	tl.Trust = upstreams.TrustFull
	tl.OutputSchema = json.RawMessage(`{"type":"objekt"}`)
	var blocked *BlockedError
	if _, err := g.Do(t.Context(), upstreams.Call{Tool: tl}); !errors.As(err, &blocked) || len(n.calls) != 1 {
		t.Errorf("Do(outputSchema does not compile) = %v after %d calls, want a *BlockedError and no further call", err, len(n.calls))
	}
}

func TestGate_PassesTheServersErrorOn(t *testing.T) {
	n := &next{err: &upstreams.RPCError{Code: -32042, Message: "login"}}
	g := NewGate(mustCompile(t, Rules{}), n)
	_, err := g.Do(t.Context(), upstreams.Call{Tool: checked(`{"type":"object"}`)})
	if !errors.Is(err, n.err) {
		t.Errorf("Do = %v, want the server's own error", err)
	}
}
