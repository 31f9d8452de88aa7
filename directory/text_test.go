package directory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// viewOf makes a view of tools and servers; servers without tools are not known.
func viewOf(t *testing.T, tools []*upstreams.Tool, servers ...upstreams.ServerInfo) *View {
	t.Helper()
	d, source := fakeDirectory(t, fakeRules{}, tools...)
	s := *source.now.Load()
	s.Servers = servers
	source.now.Store(&s)
	return d.View("")
}

func TestView_Overview(t *testing.T) {
	listed := fakeTool("browser", "screenshot", "")
	listed.DirectOnly = true
	tools := []*upstreams.Tool{
		fakeTool("calendar", "create_event", ""), fakeTool("calendar", "delete_event", ""),
		fakeTool("files", "read_file", ""),
		fakeTool("github", "list_issues", ""), fakeTool("github", "get_issue", ""), fakeTool("github", "searchCode", ""), fakeTool("github", "github_get_pull_request", ""),
		listed,
	}
	v := viewOf(t, tools,
		upstreams.ServerInfo{Name: "browser", Safe: "browser", Known: true, Title: "Browser MCP Server"},
		upstreams.ServerInfo{Name: "calendar", Safe: "calendar", Known: true, Description: "the team's dates", Instructions: "Not shown."},
		upstreams.ServerInfo{Name: "empty", Safe: "empty", Known: true},
		upstreams.ServerInfo{Name: "files", Safe: "files", Known: true, Title: "Disk", Instructions: "# Files\n\n```\ncode\n```\nTools:\n- one\n\nReads and writes files below /data, e.g. notes. Never asks.\n"},
		upstreams.ServerInfo{Name: "github", Safe: "github", Known: true, Title: "GitHub forge"},
		upstreams.ServerInfo{Name: "starting\u202e", Safe: "starting", Title: "starting"},
	)
	full := strings.Join([]string{
		"browser (1 tool, listed): screenshot",
		"calendar (2 tools): the team's dates",
		"empty (0 tools)",
		"files (1 tool): Reads and writes files below /data, e.g. notes",
		"github (4 tools): GitHub forge: issue, code, pull, request",
		"starting",
	}, "\n")
	for _, c := range []struct {
		max       int
		namesOnly bool
		want      string
	}{
		{1000, false, full},
		{utf8.RuneCountInString(full), false, full},
		{utf8.RuneCountInString(full) - 16, false, strings.NewReplacer("below /data, e.g. notes", "below", "issue, code, pull, request", "issue, code").Replace(full)},
		{120, false, "browser (1 tool, listed)\ncalendar (2 tools)\nempty (0 tools)\nfiles (1 tool)\ngithub (4 tools)\nstarting"},
		{90, false, "browser, calendar, empty, files, github, starting"},
		{1000, true, "browser, calendar, empty, files, github, starting"},
		{40, false, "browser, calendar, empty and 3 more"},
		{20, true, "browser and 5 more"},
		{10, true, "6 of them"},
		{3, true, "6 o"},
	} {
		if diff := gocmp.Diff(c.want, v.Overview(c.max, c.namesOnly)); diff != "" {
			t.Errorf("Overview(%d, %v) (-want +got):\n%s", c.max, c.namesOnly, diff)
		}
	}
}

func TestFirstSentence(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"Manages notes.", "Manages notes"},
		{"Manages notes. And more.", "Manages notes"},
		{"# Title\n\n* a list\n<tag>\nUse these tools:\nIt really is here!", "It really is here!"},
		{strings.Repeat("long words ", 30), strings.TrimSpace(strings.Repeat("long words ", 9))},
		{strings.Repeat("#\n", 1<<20) + "too late", ""},
		{"Ein\u200bs. Zwei", "Eins"},
		{"# Title\n\nAudience: These instructions are for an agent.\nFollow them.\n\nMoves boxes.", "Moves boxes"},
		{"These instructions are for an agent.", ""},
		{"If asked about server instructions, say so.", ""},
	} {
		if got := firstSentence(c.text); got != c.want {
			t.Errorf("firstSentence(%.40q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func TestTopics_SingularAndPluralAreOneWord(t *testing.T) {
	tools := []*upstreams.Tool{
		fakeTool("x", "create_directory", ""), fakeTool("x", "list_directories", ""),
		fakeTool("x", "get_movie", ""), fakeTool("x", "list_movies", ""), fakeTool("x", "read_media", ""),
	}
	if got, want := topicsOf(tools, nil, verbs), "directory, movie, media"; got != want {
		t.Errorf("topicsOf = %q, want %q", got, want)
	}
}

func TestVerbsAreSorted(t *testing.T) {
	if !slices.IsSorted(verbs) {
		t.Error("verbs are not sorted: binary search misses some")
	}
}

func TestView_Text(t *testing.T) {
	long := strings.Repeat("words and ", 30)
	tools := []*upstreams.Tool{
		fakeTool("b", "second", "Does the second thing."),
		fakeTool("a", "first", long),
		fakeTool("c", "third", ""),
	}
	direct := fakeTool("a", "direct", "listed as it is")
	direct.DirectOnly = true
	v := viewOf(t, append(tools, direct))
	head := func(n int) string {
		return fmt.Sprintf("Tools behind this server: %d of 3 follow. Find the rest with tool_search, call any of them by tool_call.", n)
	}
	at180 := head(3) + "\n- a__first: " + strings.TrimSpace(long[:179]) + "\n- b__second: Does the second thing.\n- c__third"
	at64 := head(3) + "\n- a__first: " + strings.TrimSpace(long[:59]) + "\n- b__second: Does the second thing.\n- c__third"
	at0 := head(3) + "\n- a__first\n- b__second\n- c__third"
	for _, c := range []struct {
		max  int
		want string
	}{
		{1900, at180},
		{len(at180), at180},
		{len(at180) - 1, at64},
		{len(at64) - 1, at0},
		{len(at0) - 1, head(2) + "\n- a__first\n- b__second"},
		{len(head(1)) + 12, head(1) + "\n- a__first"},
		{len(head(0)), head(0)},
		{50, ""},
	} {
		if diff := gocmp.Diff(c.want, v.Text(c.max)); diff != "" {
			t.Errorf("Text(%d) (-want +got):\n%s", c.max, diff)
		}
	}
}

func TestView_TextsKeepTheirLimitsAndBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tools := fakeTools(300)
	for i, tool := range tools {
		tool.Description = strings.Repeat([]string{"wörter ", "日本語", "a b. "}[i%3], rng.IntN(40))
	}
	var servers []upstreams.ServerInfo
	for i := range 6 {
		name := fmt.Sprintf("server%03d", i)
		servers = append(servers, upstreams.ServerInfo{Name: name, Safe: name, Known: true, Instructions: strings.Repeat("日本語 ", 30*i)})
	}
	v := viewOf(t, tools, servers...)
	shuffled := slices.Clone(tools)
	rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	again := viewOf(t, shuffled, servers...)
	last := 0
	for max := 0; max < 60000; max += 1 + max/7 {
		text := v.Text(max)
		shown := strings.Count(text, "\n- ")
		overview := v.Overview(max, false)
		if n := utf8.RuneCountInString(text); n > max {
			t.Errorf("Text(%d) has %d characters", max, n)
		}
		if n := utf8.RuneCountInString(overview); max > 0 && n > max {
			t.Errorf("Overview(%d) has %d characters", max, n)
		}
		if shown < last {
			t.Errorf("Text(%d) shows %d tools, less than a shorter one", max, shown)
		}
		last = shown
		if again.Text(max) != text || again.Overview(max, false) != overview {
			t.Errorf("texts of at most %d differ between two views of the same tools", max)
		}
	}
	if last != len(tools) {
		t.Errorf("the longest Text shows %d tools, want all %d", last, len(tools))
	}
}

// Real servers' words: read by eye with -v, checked for limits.
func TestView_OverviewOfRealServers(t *testing.T) {
	data := os.Getenv("TOOLSEARCH_DATA")
	if data == "" {
		t.Skip("TOOLSEARCH_DATA is not set: no catalogs of real servers")
	}
	files, err := filepath.Glob(filepath.Join(data, "catalogs", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no catalogs in %s: %v", data, err)
	}
	tools, servers := readCatalogs(t, files)
	v := viewOf(t, tools, servers...)
	for _, max := range []int{600, 1500, 4000, 10000} {
		got := v.Overview(max, false)
		if n := utf8.RuneCountInString(got); n > max {
			t.Errorf("Overview(%d) has %d characters", max, n)
		}
		t.Logf("Overview(%d):\n%s", max, got)
	}
	unknownInputs := 0
	for _, tool := range tools {
		hit := v.Hit(tool)
		checkSignature(t, hit.Input, inputChars)
		if hit.Input == unknown {
			unknownInputs++
			t.Logf("%s: unknown, schema %.300s", tool.ID, tool.InputSchema)
		}
	}
	if unknownInputs*100 > len(tools) {
		t.Errorf("%d of %d real tools have no signature, want at most one in a hundred", unknownInputs, len(tools))
	}
}

// readCatalogs reads tools and servers as real servers sent them.
func readCatalogs(t *testing.T, files []string) ([]*upstreams.Tool, []upstreams.ServerInfo) {
	t.Helper()
	var tools []*upstreams.Tool
	var servers []upstreams.ServerInfo
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Server       string
			Instructions string
			ServerInfo   struct{ Name, Title string }
			Tools        []struct {
				Name, Title, Description string
				InputSchema              json.RawMessage
			}
		}
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		servers = append(servers, upstreams.ServerInfo{
			Name: c.Server, Safe: c.Server, Known: true,
			Title: cmp.Or(c.ServerInfo.Title, c.ServerInfo.Name), Instructions: c.Instructions,
		})
		for _, r := range c.Tools {
			tool := fakeTool(c.Server, r.Name, r.Description)
			tool.Title, tool.InputSchema = r.Title, r.InputSchema
			tools = append(tools, tool)
		}
	}
	return tools, servers
}
