package upstreams

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestSafeName(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"calendar", "calendar"},
		{"My-Server_2", "My-Server_2"},
		{strings.Repeat("a", 30), strings.Repeat("a", 30)},
		{"Harbour Tools", "Harbour-Tools-" + nameHash("Harbour Tools")},
		{"仓库", "mcp-" + nameHash("仓库")},
		{"Zoë", "Zo-" + nameHash("Zoë")},
		{"9x", "mcp-9x-" + nameHash("9x")},
		{"crane_", "crane-" + nameHash("crane_")},
		{"crane__a", "crane_a-" + nameHash("crane__a")},
		{"a____b", "a_b-" + nameHash("a____b")},
		{"", "mcp-" + nameHash("")},
		{"harbour-freight-and-customs-insights", "harbour-freight-and-cus-" + nameHash("harbour-freight-and-customs-insights")},
	} {
		if got := SafeName(c.name); got != c.want {
			t.Errorf("SafeName(%q) = %q, want %q", c.name, got, c.want)
		}
	}
}

func TestFullName(t *testing.T) {
	hash := func(safe, tool string) string { return nameHash(ToolID(safe, tool)) }
	for _, c := range []struct {
		safe, tool string
		limit      int
		want       string
	}{
		{"calendar", "create_event", 42, "calendar__create_event"},
		{"crane", "_lift", 42, "crane___lift"},
		{"gh", "repos/delete", 42, "gh__repos-delete-" + hash("gh", "repos/delete")},
		{"a", strings.Repeat("x", 39), 42, "a__" + strings.Repeat("x", 39)},
		// Cut: the server's part to 12, the tool's to its last words.
		{"customs", "list_pending_clearance_declarations_by_port_and_week", 42,
			"customs__by_port_and_week-" + hash("customs", "list_pending_clearance_declarations_by_port_and_week")},
		{"harbour-freight-and-cus-123456", "list_pending_clearance_declarations_by_port_and_week", 42,
			"harbour-frei__by_port_and_week-" + hash("harbour-freight-and-cus-123456", "list_pending_clearance_declarations_by_port_and_week")},
		{"harbour-freight-and-customs", "get_week_report", 42,
			"harbour-frei__get_week_report-" + hash("harbour-freight-and-customs", "get_week_report")},
		{"twilio", "TwilioApiV2010--CreateSipAuthRegistrationsCredentialListMapping", 42,
			"twilio__CredentialListMapping-" + hash("twilio", "TwilioApiV2010--CreateSipAuthRegistrationsCredentialListMapping")},
		{"a", "b", 0, "a__b"},
	} {
		if got := FullName(c.safe, c.tool, c.limit); got != c.want {
			t.Errorf("FullName(%q, %q, %d) = %q, want %q", c.safe, c.tool, c.limit, got, c.want)
		}
	}
}

// Two servers and tools whose joined names look alike must not meet.
func TestFullName_SeparatorIsUnambiguous(t *testing.T) {
	pairs := [][2]string{
		{"crane_", "lift"}, {"crane", "_lift"}, {"crane", "a__b"}, {"crane__a", "b"}, {"crane_a", "b"},
		{"a", strings.Repeat("x", 63) + "1"}, {"a", strings.Repeat("x", 63) + "2"},
		{"x", "list.items"}, {"x", "list-items"}, {"x", "list items"},
	}
	seen := map[string][2]string{}
	for _, p := range pairs {
		name := FullName(SafeName(p[0]), p[1], 42)
		if other, ok := seen[name]; ok {
			t.Errorf("FullName of %q and %q are both %q", other, p, name)
		}
		seen[name] = p
	}
}

var (
	safeNameRE = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,29}$`)
	fullNameRE = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
)

func FuzzNames(f *testing.F) {
	f.Add("crane_", "_lift", "crane", "__lift", 42)
	f.Add("仓库", "a/b", "仓库2", "a-b", 32)
	f.Add(strings.Repeat("Ab_", 20), strings.Repeat("CamelCase", 9), "x", strings.Repeat("-", 70), 64)
	f.Fuzz(func(t *testing.T, server1, tool1, server2, tool2 string, limit int) {
		names := map[string]bool{}
		for _, p := range [][2]string{{server1, tool1}, {server2, tool2}} {
			safe := SafeName(p[0])
			if !safeNameRE.MatchString(safe) || strings.HasSuffix(safe, "_") || strings.Contains(safe, "__") {
				t.Fatalf("SafeName(%q) = %q", p[0], safe)
			}
			if again := SafeName(safe); again != safe {
				t.Fatalf("SafeName(%q) = %q, not itself", safe, again)
			}
			full := FullName(safe, p[1], limit)
			if !fullNameRE.MatchString(full) || len(full) > clampNameLength(limit) {
				t.Fatalf("FullName(%q, %q, %d) = %q", safe, p[1], limit, full)
			}
			names[full] = true
		}
		same := SafeName(server1) == SafeName(server2) && tool1 == tool2
		if len(names) == 1 && !same && !endsInHash(server1, tool1) && !endsInHash(server2, tool2) {
			t.Fatalf("(%q, %q) and (%q, %q) share the name %v", server1, tool1, server2, tool2, names)
		}
	})
}

// endsInHash tells whether the input itself spells a hash of ours, which a
// fuzzer may find by feeding our output back.
func endsInHash(server, tool string) bool {
	re := regexp.MustCompile(`-[0-9a-f]{6}$`)
	return re.MatchString(server) || re.MatchString(tool)
}

func BenchmarkFullName(b *testing.B) {
	for _, tool := range []string{"create_event", "list_pending_clearance_declarations_by_port_and_week"} {
		b.Run(fmt.Sprintf("len=%d", len(tool)), func(b *testing.B) {
			for b.Loop() {
				FullName("calendar", tool, 42)
			}
		})
	}
}
