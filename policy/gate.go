package policy

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// DeniedError is returned by the Gate; the caller is told "unknown tool", the
// decision is for the log and the telemetry.
type DeniedError struct {
	Call     upstreams.Call
	Decision Decision
}

func (e *DeniedError) Error() string {
	id := "a call without a tool"
	if e.Call.Tool != nil {
		id = e.Call.Tool.ID
	}
	return id + ": " + e.Decision.String()
}

// BlockedError is returned by the Gate for a call that the rules allow but
// that must not be made all the same. Nothing was sent.
type BlockedError struct {
	Call   upstreams.Call
	Reason string // for the model, without full stop
}

func (e *BlockedError) Error() string { return e.Call.Tool.ID + ": " + e.Reason }

// Gate is a Requester in front of another: decide, check the arguments, call,
// check the output. Nothing goes round it.
type Gate struct {
	next   upstreams.Requester
	policy atomic.Pointer[Policy]
}

// NewGate puts a gate in front of next. The policy can be swapped on reload.
func NewGate(p *Policy, next upstreams.Requester) *Gate {
	if p == nil || next == nil {
		panic("policy: NewGate needs a policy and a requester")
	}
	g := &Gate{next: next}
	g.policy.Store(p)
	return g
}

// Swap replaces the policy for calls that have not been decided yet.
func (g *Gate) Swap(p *Policy) {
	if p == nil {
		panic("policy: Swap needs a policy")
	}
	g.policy.Store(p)
}

// Do implements upstreams.Requester. Errors of its own: *DeniedError,
// *BlockedError, *upstreams.ArgumentsError, *upstreams.OutputError (the tool
// has run). All others are next's.
func (g *Gate) Do(ctx context.Context, call upstreams.Call) (*upstreams.Result, error) {
	if err := g.decide(call); err != nil {
		return nil, err
	}
	if err := call.Tool.CheckOutputSchema(); err != nil {
		return nil, &BlockedError{call, fmt.Sprintf("the call was not made because its outputSchema cannot be checked: %v", err)}
	}
	fixed, note, err := call.Tool.CheckArguments(call.Args)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(fixed, call.Args) {
		// What is sent must be what was decided on.
		call.Args = fixed
		if err := g.decide(call); err != nil {
			return nil, err
		}
	}
	res, err := g.next.Do(ctx, call)
	if err != nil {
		return nil, err
	}
	if err := call.Tool.CheckResult(res.Raw); err != nil {
		return nil, err
	}
	if note == "" {
		return res, nil
	}
	noted := *res
	noted.Note = upstreams.JoinNotes(note, res.Note)
	return &noted, nil
}

func (g *Gate) decide(call upstreams.Call) error {
	if d := g.policy.Load().Decide(call); !d.Allowed {
		return &DeniedError{call, d}
	}
	return nil
}
