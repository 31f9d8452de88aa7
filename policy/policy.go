// Package policy answers one question: may this call happen?
//
// Every call passes its Gate; what a caller may not call, Filter also hides.
// It does not find tools, does not talk to servers, and keeps no state.
package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// Rules are the policy section of the configuration. Every layer only narrows:
// a profile cannot allow what Allow or Deny of all callers refuse.
//
// Patterns match a whole id such as mcp:calendar:create_event. "*" is any run
// of characters, everything else is itself, and case counts.
type Rules struct {
	Allow    []string  `yaml:"allow"` // nil: everything; empty: nothing
	Deny     []string  `yaml:"deny"`  // wins over Allow
	Profiles []Profile `yaml:"-"`     // in file order
}

// Profile narrows for some callers.
type Profile struct {
	Name    string   `yaml:"-"`
	Clients []string `yaml:"clients"` // patterns of clientInfo.name
	Allow   []string `yaml:"allow"`   // nil: everything; empty: nothing
	Deny    []string `yaml:"deny"`
	Mode    string   `yaml:"mode"` // "": toolSearch.mode
}

// Policy is compiled Rules: immutable, pure, safe for concurrent use.
type Policy struct {
	base     layer
	profiles []profile // in file order
}

type profile struct {
	layer
	Profile
	clients []pattern
}

// layer is one pair of allow and deny lists.
type layer struct {
	name  string // as Decision.Layer tells it
	all   bool   // no allow list: everything not denied
	allow []pattern
	deny  []pattern
}

func newLayer(name string, allow, deny []string) layer {
	return layer{name: name, all: allow == nil, allow: patterns(allow), deny: patterns(deny)}
}

// Compile checks and compiles rules. Errors: an empty pattern, a profile
// without a name, two profiles with one name.
func Compile(r Rules) (*Policy, error) {
	p := &Policy{base: newLayer("policy", r.Allow, r.Deny)}
	if err := checkPatterns("policy", r.Allow, r.Deny); err != nil {
		return nil, err
	}
	for _, pr := range r.Profiles {
		if pr.Name == "" {
			return nil, fmt.Errorf("policy: a profile has no name")
		}
		if _, ok := p.profile(pr.Name); ok {
			return nil, fmt.Errorf("policy: two profiles are called %q", pr.Name)
		}
		name := "profile " + pr.Name
		if err := checkPatterns(name, pr.Allow, pr.Deny, pr.Clients); err != nil {
			return nil, err
		}
		p.profiles = append(p.profiles, profile{
			layer:   newLayer(name, pr.Allow, pr.Deny),
			Profile: pr,
			clients: patterns(pr.Clients),
		})
	}
	return p, nil
}

func checkPatterns(layer string, lists ...[]string) error {
	for _, list := range lists {
		for _, s := range list {
			if strings.TrimSpace(s) != s || s == "" {
				return fmt.Errorf("%s: pattern %q is empty or has blanks around it", layer, s)
			}
		}
	}
	return nil
}

// Decision is the answer for one call. Layer and Rule tell which line decided.
type Decision struct {
	Allowed bool
	Layer   string // "policy", "profile reviewer", "server" for hidden tools
	Rule    string // "deny mcp:files:write_*"
}

// String is the decision for the log and for the operator.
func (d Decision) String() string {
	verb := "denied"
	if d.Allowed {
		verb = "allowed"
	}
	return fmt.Sprintf("%s by %s: %s", verb, d.Layer, d.Rule)
}

// Decide is a pure function of the rules and the call. It fails closed: a call
// without a tool, with a tool that no caller sees, or by a caller whose
// profile does not exist is denied.
func (p *Policy) Decide(call upstreams.Call) Decision {
	return p.decide(call.From.Profile, call.Tool)
}

func (p *Policy) decide(profileName string, t *upstreams.Tool) Decision {
	switch {
	case t == nil || t.ID == "":
		return Decision{Layer: "policy", Rule: "no such tool"}
	case t.Hidden != "":
		return Decision{Layer: "server", Rule: t.Hidden}
	}
	d := p.base.decide(t.ID)
	if profileName == "" || !d.Allowed {
		return d
	}
	pr, ok := p.profile(profileName)
	if !ok {
		return Decision{Layer: "policy", Rule: fmt.Sprintf("no profile is called %q", profileName)}
	}
	return pr.decide(t.ID)
}

func (l *layer) decide(id string) Decision {
	if rule, ok := first(l.deny, id); ok {
		return Decision{Layer: l.name, Rule: "deny " + string(rule)}
	}
	if l.all {
		return Decision{Allowed: true, Layer: l.name, Rule: "no allow list"}
	}
	if rule, ok := first(l.allow, id); ok {
		return Decision{Allowed: true, Layer: l.name, Rule: "allow " + string(rule)}
	}
	return Decision{Layer: l.name, Rule: "not in allow"}
}

// Filter returns the tools that callers with this profile may call, in order.
// It agrees with Decide on every tool.
func (p *Policy) Filter(profile string, tools []*upstreams.Tool) []*upstreams.Tool {
	var out []*upstreams.Tool
	for _, t := range tools {
		if p.decide(profile, t).Allowed {
			out = append(out, t)
		}
	}
	return out
}

// SeesServer tells whether a server without known tools may be named to
// callers with this profile: unless the rules deny all of mcp:<safe>:*.
func (p *Policy) SeesServer(profile, safe string) bool {
	layers := []*layer{&p.base}
	if profile != "" {
		pr, ok := p.profile(profile)
		if !ok {
			return false
		}
		layers = append(layers, &pr.layer)
	}
	prefix := upstreams.ToolID(safe, "")
	denied := func(q pattern) bool {
		return slices.ContainsFunc(layers, func(l *layer) bool {
			return slices.ContainsFunc(l.deny, func(d pattern) bool { return d.covers(q) })
		})
	}
	for _, l := range layers {
		allow := l.allow
		if l.all {
			allow = []pattern{"*"}
		}
		sees := slices.ContainsFunc(allow, func(a pattern) bool {
			return slices.ContainsFunc(a.within(prefix), func(q pattern) bool { return !denied(q) })
		})
		if !sees {
			return false
		}
	}
	return true
}

// ProfileFor returns the profile of a caller: the named one if named is not
// "" (an unknown name is an error), else the first whose clients match. The
// zero Profile means none.
func (p *Policy) ProfileFor(named, client string) (Profile, error) {
	if named != "" {
		pr, ok := p.profile(named)
		if !ok {
			return Profile{}, fmt.Errorf("no profile is called %q: %s", named, p.profileNames())
		}
		return pr.Profile, nil
	}
	for i := range p.profiles {
		if _, ok := first(p.profiles[i].clients, client); ok {
			return p.profiles[i].Profile, nil
		}
	}
	return Profile{}, nil
}

func (p *Policy) profile(name string) (*profile, bool) {
	for i := range p.profiles {
		if p.profiles[i].Name == name {
			return &p.profiles[i], true
		}
	}
	return nil, false
}

func (p *Policy) profileNames() string {
	if len(p.profiles) == 0 {
		return "policy.profiles has none"
	}
	names := make([]string, len(p.profiles))
	for i := range p.profiles {
		names[i] = p.profiles[i].Name
	}
	return "policy.profiles has " + strings.Join(names, ", ")
}

// Unmatched returns a sentence for every pattern that matches none of the
// known tools. Nothing else is wrong with such a pattern: its tools may be
// listed later.
func (p *Policy) Unmatched(tools []*upstreams.Tool) []string {
	var out []string
	report := func(l *layer, kind string, list []pattern) {
		for _, p := range list {
			if slices.ContainsFunc(tools, func(t *upstreams.Tool) bool { return p.match(t.ID) }) {
				continue
			}
			text := fmt.Sprintf("%s: %s pattern %q matches no known tool", l.name, kind, string(p))
			if !strings.HasPrefix(string(p), "mcp:") && !strings.HasPrefix(string(p), "*") {
				text += "; the id of a tool looks like mcp:server:tool"
			}
			out = append(out, text)
		}
	}
	layers := []*layer{&p.base}
	for i := range p.profiles {
		layers = append(layers, &p.profiles[i].layer)
	}
	for _, l := range layers {
		report(l, "allow", l.allow)
		report(l, "deny", l.deny)
	}
	return out
}
