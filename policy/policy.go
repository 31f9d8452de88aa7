// Package policy answers one question: may this call happen?
//
// Every call passes its Gate; what a caller may not call, Filter also hides.
// It does not find tools, does not talk to servers, and keeps no state.
package policy

import (
	"context"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// Rules are the policy section of the configuration. Every layer only narrows.
type Rules struct {
	Allow    []string  `yaml:"allow"` // nil: everything; empty: nothing
	Deny     []string  `yaml:"deny"`  // wins over Allow
	Profiles []Profile `yaml:"-"`     // in file order
}

// Profile narrows for some callers.
type Profile struct {
	Name    string   `yaml:"-"`
	Clients []string `yaml:"clients"` // patterns of clientInfo.name
	Allow   []string `yaml:"allow"`
	Deny    []string `yaml:"deny"`
	Mode    string   `yaml:"mode"` // "": toolSearch.mode
}

// Policy is compiled Rules: immutable, pure, safe for concurrent use.
type Policy struct{}

// Compile checks and compiles rules.
func Compile(Rules) (*Policy, error) { panic("todo") }

// Decision is the answer for one call. Layer and Rule tell which line decided.
type Decision struct {
	Allowed bool
	Layer   string // "policy", "profile reviewer"
	Rule    string // "deny mcp:files:write_*"
}

// Decide is a pure function of the rules and the call.
func (p *Policy) Decide(upstreams.Call) Decision { panic("todo") }

// Filter returns the tools that callers with this profile may call, in order.
// Hidden tools are left out.
func (p *Policy) Filter(profile string, tools []*upstreams.Tool) []*upstreams.Tool { panic("todo") }

// SeesServer tells whether a server without known tools may be named to
// callers with this profile: unless the rules deny all of mcp:<safe>:*.
func (p *Policy) SeesServer(profile, safe string) bool { panic("todo") }

// ProfileFor returns the profile of a caller: the named one if named is not
// "" (an unknown name is an error), else the first whose clients match.
func (p *Policy) ProfileFor(named, client string) (profile Profile, err error) { panic("todo") }

// DeniedError is returned by the Gate; the caller is told "unknown tool".
type DeniedError struct {
	Call     upstreams.Call
	Decision Decision
}

func (e *DeniedError) Error() string { panic("todo") }

// Gate is a Requester in front of another: decide, check the arguments, call,
// check the output. Nothing goes round it.
type Gate struct{}

// NewGate puts a gate in front of next. The policy can be swapped on reload.
func NewGate(p *Policy, next upstreams.Requester) *Gate { panic("todo") }

// Swap replaces the policy for calls that have not been decided yet.
func (g *Gate) Swap(p *Policy) { panic("todo") }

// Do implements upstreams.Requester.
func (g *Gate) Do(ctx context.Context, call upstreams.Call) (*upstreams.Result, error) { panic("todo") }
