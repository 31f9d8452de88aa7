package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

func tool(safe, name string) *upstreams.Tool {
	return &upstreams.Tool{Server: safe, Safe: safe, Name: name, ID: upstreams.ToolID(safe, name)}
}

func mustCompile(t testing.TB, r Rules) *Policy {
	t.Helper()
	p, err := Compile(r)
	if err != nil {
		t.Fatalf("Compile(%+v) = %v, want no error", r, err)
	}
	return p
}

func TestPattern_Match(t *testing.T) {
	tests := []struct {
		pattern, id string
		want        bool
	}{
		{"*", "", true},
		{"*", "mcp:a:b", true},
		{"", "", true},
		{"", "a", false},
		{"mcp:files:write_*", "mcp:files:write_file", true},
		{"mcp:files:write_*", "mcp:files:write_", true},
		{"mcp:files:write_*", "mcp:files:Write_file", false},
		{"mcp:files:write_*", "xmcp:files:write_file", false},
		{"mcp:*:delete_*", "mcp:repos:delete_branch", true},
		{"mcp:*:delete_*", "mcp:repos:undelete_branch", false},
		{"mcp:*:delete_*", "mcp:a:b:delete_c", true}, // * takes ":" too
		{"mcp:repos:*", "mcp:repos:repos/delete", true},
		{"*:read", "mcp:a:read", true},
		{"*:read", "mcp:a:readme", false},
		{"a*b*c", "aXbYbZc", true},
		{"a*b*c", "aXc", false},
		{"a**c", "ac", true},
		{"a?c", "abc", false}, // only * is special
		{"a[b]c", "abc", false},
		{"a[b]c", "a[b]c", true},
		{`a\*c`, "a*c", false}, // there is no escape
		{"mcp:depot:wipe", "mcp:depot:wipe ", false},
		{"mcp:depot:wipe", "mcp:depot:wipе", false}, // Cyrillic е
		{strings.Repeat("*a", 50), strings.Repeat("a", 10000) + "b", false},
	}
	for _, tt := range tests {
		if got := pattern(tt.pattern).match(tt.id); got != tt.want {
			t.Errorf("pattern(%q).match(%.40q) = %v, want %v", tt.pattern, tt.id, got, tt.want)
		}
	}
}

func TestPattern_Covers(t *testing.T) {
	tests := []struct {
		p, q string
		want bool
	}{
		{"*", "mcp:a:*", true},
		{"mcp:*", "mcp:a:*", true},
		{"mcp:a:*", "mcp:a:*", true},
		{"mcp:a:*", "mcp:a:b*c", true},
		{"mcp:a:x*", "mcp:a:*", false},
		{"mcp:*:x", "mcp:a:*", false},
		{"mcp:a:", "mcp:a:*", false},
		{"*:*", "mcp:a:*", true},
	}
	for _, tt := range tests {
		if got := pattern(tt.p).covers(pattern(tt.q)); got != tt.want {
			t.Errorf("pattern(%q).covers(%q) = %v, want %v", tt.p, tt.q, got, tt.want)
		}
	}
}

func TestPolicy_Decide(t *testing.T) {
	rules := Rules{
		Allow: []string{"mcp:depot:*", "mcp:files:read_*"},
		Deny:  []string{"mcp:depot:wipe"},
		Profiles: []Profile{
			{Name: "reviewer", Deny: []string{"mcp:*:create_*"}},
			{Name: "narrow", Allow: []string{"mcp:depot:list", "mcp:depot:wipe", "mcp:other:*"}},
			{Name: "nothing", Allow: []string{}},
		},
	}
	tests := []struct {
		profile, id string
		want        Decision
	}{
		{"", "mcp:depot:list", Decision{true, "policy", "allow mcp:depot:*"}},
		{"", "mcp:depot:wipe", Decision{false, "policy", "deny mcp:depot:wipe"}},
		{"", "mcp:other:list", Decision{false, "policy", "not in allow"}},
		{"reviewer", "mcp:depot:list", Decision{true, "profile reviewer", "no allow list"}},
		{"reviewer", "mcp:depot:create_box", Decision{false, "profile reviewer", "deny mcp:*:create_*"}},
		{"narrow", "mcp:depot:list", Decision{true, "profile narrow", "allow mcp:depot:list"}},
		{"narrow", "mcp:depot:wipe", Decision{false, "policy", "deny mcp:depot:wipe"}},
		{"narrow", "mcp:other:list", Decision{false, "policy", "not in allow"}},
		{"narrow", "mcp:files:read_x", Decision{false, "profile narrow", "not in allow"}},
		{"nothing", "mcp:depot:list", Decision{false, "profile nothing", "not in allow"}},
		{"gone", "mcp:depot:list", Decision{false, "policy", `no profile is called "gone"`}},
	}
	p := mustCompile(t, rules)
	for _, tt := range tests {
		call := upstreams.Call{From: upstreams.Caller{Profile: tt.profile}, Tool: &upstreams.Tool{ID: tt.id}}
		if got := p.Decide(call); got != tt.want {
			t.Errorf("Decide(%s by %q) = %+v, want %+v", tt.id, tt.profile, got, tt.want)
		}
	}
}

func TestPolicy_EmptyAllowAllowsNothingAndAbsentAllowsAll(t *testing.T) {
	call := upstreams.Call{Tool: tool("depot", "list")}
	if d := mustCompile(t, Rules{Allow: []string{}}).Decide(call); d.Allowed {
		t.Errorf("Decide with allow: [] = %v, want denied", d)
	}
	if d := mustCompile(t, Rules{}).Decide(call); !d.Allowed {
		t.Errorf("Decide without allow = %v, want allowed", d)
	}
}

func TestPolicy_DeniesWhatIsNoTool(t *testing.T) {
	p := mustCompile(t, Rules{})
	hidden := tool("depot", "list")
	hidden.Hidden = "app-only tool"
	for name, tl := range map[string]*upstreams.Tool{"nil": nil, "zero": {}, "hidden": hidden} {
		if d := p.Decide(upstreams.Call{Tool: tl}); d.Allowed {
			t.Errorf("Decide(%s tool) = %v, want denied", name, d)
		}
	}
	if got := p.Filter("", []*upstreams.Tool{hidden, nil}); len(got) != 0 {
		t.Errorf("Filter(hidden, nil) = %v, want none", got)
	}
}

func TestPolicy_SeesServer(t *testing.T) {
	tests := []struct {
		name  string
		rules Rules
		want  bool
	}{
		{"no rules", Rules{}, true},
		{"all denied", Rules{Deny: []string{"mcp:depot:*"}}, false},
		{"everything denied", Rules{Deny: []string{"*"}}, false},
		{"some denied", Rules{Deny: []string{"mcp:depot:w*", "mcp:*:x"}}, true},
		{"another denied", Rules{Deny: []string{"mcp:depot2:*"}}, true},
		{"nothing allowed", Rules{Allow: []string{}}, false},
		{"another allowed", Rules{Allow: []string{"mcp:files:*"}}, false},
		{"one tool allowed", Rules{Allow: []string{"mcp:depot:list"}}, true},
		{"tools everywhere allowed", Rules{Allow: []string{"*:list"}}, true},
		{"one tool allowed and denied", Rules{Allow: []string{"mcp:depot:list"}, Deny: []string{"*:list"}}, false},
		{"prefix of the name allowed", Rules{Allow: []string{"mcp:dep*"}}, true},
		{"profile denies", Rules{Profiles: []Profile{{Name: "p", Deny: []string{"mcp:d*"}}}}, false},
		{"profile allows nothing here", Rules{Profiles: []Profile{{Name: "p", Allow: []string{"mcp:files:*"}}}}, false},
		{"profile adds nothing", Rules{Allow: []string{"mcp:files:*"}, Profiles: []Profile{{Name: "p", Allow: []string{"*"}}}}, false},
	}
	for _, tt := range tests {
		profile := ""
		if len(tt.rules.Profiles) > 0 {
			profile = "p"
		}
		if got := mustCompile(t, tt.rules).SeesServer(profile, "depot"); got != tt.want {
			t.Errorf("%s: SeesServer(%q, depot) = %v, want %v", tt.name, profile, got, tt.want)
		}
	}
	if mustCompile(t, Rules{}).SeesServer("unknown", "depot") {
		t.Error("SeesServer with an unknown profile = true, want false")
	}
}

func TestPolicy_ProfileFor(t *testing.T) {
	p := mustCompile(t, Rules{Profiles: []Profile{
		{Name: "reviewer", Clients: []string{"cursor*"}, Mode: "tools"},
		{Name: "late", Clients: []string{"*"}},
		{Name: "byname"},
	}})
	tests := []struct{ named, client, want string }{
		{"", "cursor-vscode", "reviewer"},
		{"", "Cursor", "late"}, // case counts
		{"byname", "cursor", "byname"},
	}
	for _, tt := range tests {
		got, err := p.ProfileFor(tt.named, tt.client)
		if err != nil || got.Name != tt.want {
			t.Errorf("ProfileFor(%q, %q) = %q, %v, want %q", tt.named, tt.client, got.Name, err, tt.want)
		}
	}
	if _, err := p.ProfileFor("revewer", ""); err == nil || !strings.Contains(err.Error(), "reviewer, late, byname") {
		t.Errorf("ProfileFor(unknown) = %v, want an error with the names", err)
	}
	if got, err := mustCompile(t, Rules{}).ProfileFor("", "cursor"); err != nil || got.Name != "" {
		t.Errorf("ProfileFor without profiles = %q, %v, want none", got.Name, err)
	}
}

func TestCompile_RefusesWhatCannotBeMeant(t *testing.T) {
	for _, r := range []Rules{
		{Allow: []string{""}},
		{Deny: []string{" mcp:a:*"}},
		{Profiles: []Profile{{Name: ""}}},
		{Profiles: []Profile{{Name: "a"}, {Name: "a"}}},
		{Profiles: []Profile{{Name: "a", Deny: []string{""}}}},
	} {
		if _, err := Compile(r); err == nil {
			t.Errorf("Compile(%+v) = nil, want an error", r)
		}
	}
}

func TestPolicy_Unmatched(t *testing.T) {
	p := mustCompile(t, Rules{
		Allow:    []string{"mcp:depot:*"},
		Deny:     []string{"mcp:depot:wype", "depot.wipe"},
		Profiles: []Profile{{Name: "p", Allow: []string{"mcp:depo:*"}}},
	})
	want := []string{
		`policy: deny pattern "mcp:depot:wype" matches no known tool`,
		`policy: deny pattern "depot.wipe" matches no known tool; the id of a tool looks like mcp:server:tool`,
		`profile p: allow pattern "mcp:depo:*" matches no known tool`,
	}
	if diff := cmp.Diff(want, p.Unmatched([]*upstreams.Tool{tool("depot", "wipe")})); diff != "" {
		t.Errorf("Unmatched() (-want +got):\n%s", diff)
	}
}

// FuzzPolicy_FilterAgreesWithDecide: what cannot be called cannot be found,
// whatever the rules, and neither panics.
func FuzzPolicy_FilterAgreesWithDecide(f *testing.F) {
	f.Add("mcp:*:a,*", "mcp:d*", "*", "mcp:depot:*", "depot", "wipe", "p")
	f.Add("", "**", "a*b", "", "x", "y:z/*", "")
	f.Fuzz(func(t *testing.T, allow, deny, pAllow, pDeny, safe, name, profile string) {
		p, err := Compile(Rules{
			Allow: split(allow), Deny: split(deny),
			Profiles: []Profile{{Name: "p", Allow: split(pAllow), Deny: split(pDeny)}},
		})
		if err != nil {
			return
		}
		hidden := tool(safe, name)
		hidden.Hidden = "why"
		tools := []*upstreams.Tool{tool(safe, name), hidden, {}, tool("depot", "wipe")}
		found := p.Filter(profile, tools)
		for i, tl := range tools {
			d := p.Decide(upstreams.Call{From: upstreams.Caller{Profile: profile}, Tool: tl})
			if slices.Contains(found, tl) != d.Allowed {
				t.Fatalf("Filter and Decide disagree on tool %d (%v)", i, d)
			}
			if d.Allowed && (tl.Hidden != "" || tl.ID == "") {
				t.Fatalf("Decide allows the unknown or hidden tool %d", i)
			}
			if d.Allowed && profile != "" && profile != "p" {
				t.Fatalf("Decide allows a caller with the unknown profile %q", profile)
			}
			if d.Allowed && !p.SeesServer(profile, tl.Safe) {
				t.Fatalf("Decide allows %q, but SeesServer(%q) = false", tl.ID, tl.Safe)
			}
		}
	})
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func ExampleCompile() {
	p, err := Compile(Rules{Deny: []string{"mcp:files:write_*"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []string{"mcp:files:read_file", "mcp:files:write_file"} {
		fmt.Println(id, p.Decide(upstreams.Call{Tool: &upstreams.Tool{ID: id}}))
	}
	// Output:
	// mcp:files:read_file allowed by policy: no allow list
	// mcp:files:write_file denied by policy: deny mcp:files:write_*
}
