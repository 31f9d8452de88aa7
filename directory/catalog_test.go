package directory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

func TestView_Resolve(t *testing.T) {
	cut := fakeTool("files", "list.items and a name that is much too long", "")
	cut.FullName = "files__a-name-that-is-much-too-long-0a1b2c"
	direct := fakeTool("browser", "screenshot", "")
	direct.DirectOnly = true
	twin := fakeTool("files", "snapshot-1", "") // whose full name another tool took
	twin.FullName = "browser__screenshot"
	hidden := fakeTool("files", "app_only", "")
	hidden.Hidden = "app-only tool"
	invisible := fakeTool("files", "pay\u202eload", "")
	invisible.FullName = "files__payload-0a1b2c"
	d, _ := fakeDirectory(t, fakeRules{hide: []string{"secret"}},
		fakeTool("calendar", "create_event", ""),
		fakeTool("calendar", "calendar__odd", ""),
		fakeTool("calendar", "odd", ""),
		fakeTool("postoffice", "send_item", ""),
		fakeTool("parcelshop", "send_item", ""),
		fakeTool("parcelshop", "screenshot", ""),
		fakeTool("files", "tool_search", ""),
		fakeTool("files", "secret_tool", ""),
		fakeTool("files", "Read", ""),
		fakeTool("files", "read", ""),
		fakeTool("files", "a:b", ""),
		fakeTool("files", "wide ", ""),
		cut, direct, twin, hidden, invisible,
	)
	v := d.View("")
	for _, c := range []struct{ selector, want string }{
		{"mcp:calendar:create_event", "mcp:calendar:create_event"},
		{"  mcp:calendar:create_event\n", "mcp:calendar:create_event"},
		{"calendar__create_event", "mcp:calendar:create_event"},
		{"mcp:calendar:calendar__create_event", "mcp:calendar:create_event"},
		{"create_event", "mcp:calendar:create_event"},
		{" create_event ", "mcp:calendar:create_event"},
		{"mcp:calendar:calendar__odd", "mcp:calendar:calendar__odd"}, // the exact id comes first
		{"files__a-name-that-is-much-too-long-0a1b2c", cut.ID},
		{"mcp:files:files__a-name-that-is-much-too-long-0a1b2c", cut.ID},
		{"mcp:files:files__list.items and a name that is much too long", cut.ID},
		{cut.Name, cut.ID},
		{"a:b", "mcp:files:a:b"},
		{"Read", "mcp:files:Read"},
		{"mcp:files:wide ", "mcp:files:wide "},
		{"mcp:files:wide", "mcp:files:wide "}, // as it is shown
		{"mcp:files:tool_search", "mcp:files:tool_search"},
		{"files__tool_search", "mcp:files:tool_search"},
		{"mcp:browser:screenshot", "mcp:browser:screenshot"},
		{"mcp:files:payload", invisible.ID}, // as it is shown

		{"send_item", "ambiguous: mcp:parcelshop:send_item mcp:postoffice:send_item"},
		{"screenshot", "ambiguous: mcp:parcelshop:screenshot mcp:browser:screenshot"}, // direct-only ones count
		{"browser__screenshot", "ambiguous: mcp:files:snapshot-1 mcp:browser:screenshot"},

		{"tool_search", "unknown"},
		{"READ", "unknown"},
		{"Calendar__create_event", "unknown"},
		{"calendar_create_event", "unknown"},
		{"mcp:calendar:postoffice__send_item", "unknown"},
		{"mcp:calendar:files__tool_search", "unknown"},
		{"mcp:files:secret_tool", "unknown"},
		{"files__secret_tool", "unknown"},
		{"secret_tool", "unknown"},
		{"app_only", "unknown"},
		{"mcp:", "unknown"},
		{"mcp::", "unknown"},
		{"", "unknown"},
	} {
		tool, err := v.Resolve(c.selector)
		got := "unknown"
		var failed *ResolveError
		switch {
		case err == nil:
			got = tool.ID
		case !errors.As(err, &failed):
			t.Errorf("Resolve(%q) = %v, want a *ResolveError", c.selector, err)
		case failed.Ambiguous != nil:
			got = "ambiguous: " + strings.Join(failed.Ambiguous, " ")
		}
		if got != c.want {
			t.Errorf("Resolve(%q) = %s, want %s", c.selector, got, c.want)
		}
	}
}

func TestView_ResolveSuggests(t *testing.T) {
	long := fakeTool("files", "read_text_file_of_the_archive_with_history", "")
	long.FullName = "files__with-history-0a1b2c"
	clash := fakeTool("other", "clash one", "")
	clash.FullName = "other__clash"
	d, _ := fakeDirectory(t, fakeRules{hide: []string{"hidden"}},
		fakeTool("calendar", "create_event", ""),
		fakeTool("calendar", "delete_event", ""),
		fakeTool("calendar", "list_calendars", ""),
		fakeTool("github", "create_issue", ""),
		fakeTool("github", "create_pull_request", ""),
		fakeTool("github", "search_code", ""),
		fakeTool("github", "hidden_create_evnt", ""),
		fakeTool("other", "tool_call", ""),
		fakeTool("other", "clash", ""),
		clash, long,
	)
	v := d.View("")
	for _, c := range []struct {
		selector string
		want     []string
	}{
		{"create_evnt", []string{"calendar__create_event", "github__create_issue", "github__create_pull_request"}},
		{"Create_Event", []string{"calendar__create_event", "calendar__delete_event", "github__create_issue"}},
		{"mcp__toolsearch-mcp__calendar__create_event", []string{"calendar__create_event"}},
		{"calendar.createEvent", []string{"calendar__create_event", "calendar__delete_event"}},
		{"github__serch_code", []string{"github__search_code"}},
		{"mcp:github:serch_code", []string{"mcp:github:search_code"}},
		{"pull_requests", []string{"github__create_pull_request"}},
		{"tool_call", []string{"other__tool_call"}},
		{"read_text_file", []string{"files__with-history-0a1b2c"}},
		{"clash_on", []string{"mcp:other:clash", "mcp:other:clash one"}},
		{"weather_forecast", nil},
		{"", nil},
		{"!!!", nil},
		{strings.Repeat("x", 1<<20), nil},
	} {
		_, err := v.Resolve(c.selector)
		var failed *ResolveError
		if !errors.As(err, &failed) {
			t.Errorf("Resolve(%.50q) = %v, want a *ResolveError", c.selector, err)
			continue
		}
		if len(failed.Near) > maxNear || slices.ContainsFunc(failed.Near, func(n string) bool { return strings.Contains(n, "hidden") }) {
			t.Errorf("Resolve(%.50q) suggests %q", c.selector, failed.Near)
		}
		if diff := cmp.Diff(c.want, failed.Near); diff != "" {
			t.Errorf("Resolve(%.50q) near names (-want +got):\n%s", c.selector, diff)
		}
	}
}

func TestResolveError_Error(t *testing.T) {
	for _, c := range []struct {
		err  ResolveError
		want string
	}{
		{ResolveError{Selector: "x\u202ey\n"}, `unknown tool "xy"`},
		{ResolveError{Selector: "x", Near: []string{"a__x", "b__x"}}, `unknown tool "x"; near names: a__x, b__x`},
		{ResolveError{Selector: "x", Ambiguous: []string{"mcp:a:x", "mcp:b:x"}}, `tool name "x" is ambiguous: mcp:a:x, mcp:b:x`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%#v.Error() = %q, want %q", c.err, got, c.want)
		}
	}
}

// Every name that search or an error shows leads back to its tool.
func FuzzView_NamesLeadBack(f *testing.F) {
	f.Add("create_event", "delete_event", "create event")
	f.Add("a:b", "s__a", "tool_call")
	f.Add("pay\u202eload", "payload", "mcp:s:x")
	f.Fuzz(func(t *testing.T, a, b, selector string) {
		one, two := fakeTool("s", a, ""), fakeTool("s2", b, "")
		c := newCatalog([]*upstreams.Tool{one, two})
		for _, tool := range []*upstreams.Tool{one, two} {
			if strings.TrimSpace(tool.ID) == tool.ID {
				if got, err := c.resolve(tool.ID); got != tool {
					t.Errorf("resolve(%q) = %v, %v", tool.ID, got, err)
				}
			}
			if got, err := c.resolve(NewHit(tool).ID); got != tool {
				t.Errorf("resolve(%q) = %v, %v, want %q", NewHit(tool).ID, got, err, tool.ID)
			}
		}
		got, err := c.resolve(selector)
		if (got == nil) == (err == nil) {
			t.Errorf("resolve(%q) = %v, %v, want one of them", selector, got, err)
		}
	})
}

func BenchmarkView_ResolveUnknown(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("tools=%d", n), func(b *testing.B) {
			c := newCatalog(fakeTools(n))
			for b.Loop() {
				if _, err := c.resolve("delete_the_invoice"); err == nil {
					b.Fatal("resolved")
				}
			}
		})
	}
}
