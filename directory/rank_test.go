package directory

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// ownCatalog reads testdata/rank/catalog.txt.
func ownCatalog(t testing.TB) ([]*upstreams.Tool, []upstreams.ServerInfo) {
	t.Helper()
	var tools []*upstreams.Tool
	var servers []upstreams.ServerInfo
	for _, line := range dataLines(t, "testdata/rank/catalog.txt") {
		head, text, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("catalog.txt: line without a colon: %q", line)
		}
		text = strings.TrimSpace(text)
		if name, ok := strings.CutPrefix(head, "server "); ok {
			servers = append(servers, upstreams.ServerInfo{Name: name, Safe: name, Instructions: text})
			continue
		}
		name, parameters, ok := strings.Cut(strings.TrimSuffix(head, ")"), " (")
		if !ok {
			t.Fatalf("catalog.txt: tool without parameters: %q", line)
		}
		tool := fakeTool(servers[len(servers)-1].Name, name, text)
		tool.InputSchema = schemaOf(t, parameters)
		tools = append(tools, tool)
	}
	return tools, servers
}

func schemaOf(t testing.TB, parameters string) json.RawMessage {
	properties := make(map[string]any)
	for p := range strings.SplitSeq(parameters, ", ") {
		name, values, ok := strings.Cut(p, "=")
		switch {
		case ok:
			properties[name] = map[string]any{"type": "string", "enum": strings.Split(values, "/")}
		case name != "":
			properties[name] = map[string]any{"type": "string"}
		}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// dataLines returns the lines of a file that are neither blank nor comments.
func dataLines(t testing.TB, path string) []string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var lines []string
	for s := bufio.NewScanner(file); s.Scan(); {
		if line := strings.TrimSpace(s.Text()); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

// rankerOf makes an index of tools that is closed at the end of the test.
func rankerOf(t testing.TB, tools []*upstreams.Tool, servers []upstreams.ServerInfo) *ranker {
	t.Helper()
	ix := newIndex(nil)
	t.Cleanup(ix.close)
	r := ix.update(tools, servers)
	t.Cleanup(r.release)
	return r
}

// found returns "server tool" for each hit.
func found(t testing.TB, r *ranker, query string, limit int) []string {
	t.Helper()
	hits, err := r.search(context.Background(), query, limit)
	if err != nil {
		t.Fatalf("search(%q) = %v", query, err)
	}
	var names []string
	for _, h := range hits {
		names = append(names, h.tool.Server+" "+h.tool.Name)
	}
	return names
}

// TestRank_Golden shows every change of ranking as a diff of hits.golden.
func TestRank_Golden(t *testing.T) {
	tools, servers := ownCatalog(t)
	r := rankerOf(t, tools, servers)
	known := make(map[string]bool)
	for _, tool := range tools {
		known[tool.Server+" "+tool.Name] = true
	}
	var out strings.Builder
	for _, line := range dataLines(t, "testdata/rank/queries.txt") {
		query, wanted, ok := strings.Cut(line, "=")
		if !ok {
			t.Fatalf("queries.txt: line without =: %q", line)
		}
		query = strings.TrimSpace(query)
		var right []string
		for name := range strings.SplitSeq(wanted, ",") {
			if name = strings.TrimSpace(name); name != "" {
				right = append(right, name)
				if !known[name] {
					t.Errorf("queries.txt: %q: no tool %q", query, name)
				}
			}
		}
		fmt.Fprintf(&out, "%s\n", query)
		for i, name := range found(t, r, query, 8) {
			mark := " "
			if slices.Contains(right, name) {
				mark = "*"
			}
			fmt.Fprintf(&out, "  %s %d %s\n", mark, i+1, name)
		}
	}
	const golden = "testdata/rank/hits.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("ranking changed; look at the diff, then go test ./directory -run Rank_Golden -update (-want +got):\n%s", diff)
	}
}

// TestRank_NamedToolIsFirst: the typed name of a tool, in any case and with
// any separators, with or without the server, puts a tool of that name first.
// Of names that differ by their separators alone, the one as written is first.
func TestRank_NameAsWrittenIsFirst(t *testing.T) {
	tools := []*upstreams.Tool{
		fakeTool("a", "domain_list", "List all domains of the account, with a domain list."),
		fakeTool("b", "domain-list", "Domains."),
		fakeTool("c", "DomainList", "Domains."),
	}
	r := rankerOf(t, tools, nil)
	for _, tool := range tools {
		for _, query := range []string{tool.Name, " " + tool.Name + "\n", tool.FullName, tool.ID} {
			hits, err := r.search(context.Background(), query, 3)
			if err != nil || len(hits) == 0 || hits[0].tool != tool {
				t.Errorf("search(%q) = %v, %v, want %s first", query, hits, err, tool.ID)
			}
		}
	}
}

func TestRank_NamedToolIsFirst(t *testing.T) {
	tools, servers := ownCatalog(t)
	tools = append(tools, fakeTool("links", "getURLs", "Links of a page."), fakeTool("links", "OAuth2Login", "Sign in."),
		fakeTool("links", "who.am-i", "The account."), fakeTool("日本", "天気予報", "天気"))
	r := rankerOf(t, tools, servers)
	spaced := strings.NewReplacer("_", " ", "-", " ", ".", " ")
	forms := map[string]func(*upstreams.Tool) string{
		"name":                  func(t *upstreams.Tool) string { return t.Name },
		"upper case":            func(t *upstreams.Tool) string { return strings.ToUpper(t.Name) },
		"kebab case":            func(t *upstreams.Tool) string { return strings.ReplaceAll(t.Name, "_", "-") },
		"blanks":                func(t *upstreams.Tool) string { return spaced.Replace(t.Name) },
		"no separators":         func(t *upstreams.Tool) string { return strings.ReplaceAll(t.Name, "_", "") },
		"camel case":            func(t *upstreams.Tool) string { return camel(t.Name) },
		"id":                    func(t *upstreams.Tool) string { return t.ID },
		"full name":             func(t *upstreams.Tool) string { return t.FullName },
		"server, name":          func(t *upstreams.Tool) string { return t.Server + " " + t.Name },
		"server dot name":       func(t *upstreams.Tool) string { return t.Server + "." + t.Name },
		"Server: name":          func(t *upstreams.Tool) string { return strings.ToUpper(t.Server) + ": " + spaced.Replace(t.Name) },
		"quoted":                func(t *upstreams.Tool) string { return "`" + t.Name + "`" },
		"between other blanks":  func(t *upstreams.Tool) string { return "\n\t " + t.Name + " \n" },
		"with a question mark?": func(t *upstreams.Tool) string { return t.Name + "?" },
	}
	for form, write := range forms {
		for _, tool := range tools {
			query := write(tool)
			hits, err := r.search(context.Background(), query, 1)
			if err != nil || len(hits) == 0 || hits[0].tool.Name != tool.Name {
				t.Errorf("%s: search(%q) = %v, %v, want a tool named %q first", form, query, hits, err, tool.Name)
			}
		}
	}
}

func camel(name string) string {
	parts := strings.Split(name, "_")
	for i, p := range parts[1:] {
		if p != "" {
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "")
}

// TestRank_AllNamedTools: who lists several names gets all of them first,
// also beyond the limit.
func TestRank_AllNamedTools(t *testing.T) {
	tools, servers := ownCatalog(t)
	r := rankerOf(t, tools, servers)
	want := []string{"maps plan_route", "shop cancel_order", "browser type_text", "git git_log"}
	for _, query := range []string{
		"plan_route cancel_order type_text git_log",
		"plan_route, cancel_order, type_text, git_log",
		"planRoute cancel-order TYPE_TEXT git.log",
		"maps plan route, cancel order, type text, git log",
		"I need `plan_route` and cancel_order, then type_text and also git_log please",
	} {
		got := found(t, r, query, 3)
		if len(got) < 4 || !slices.Equal(got[:4], want) {
			t.Errorf("search(%q) = %q, want first %q", query, got, want)
		}
	}
}

// TestRank_ServerWordsNarrow: the words of a server's name choose among
// servers, not among its tools; alone they list its tools.
func TestRank_ServerWordsNarrow(t *testing.T) {
	const server = "northern-ports-browser-automation"
	var tools []*upstreams.Tool
	for i := range 24 {
		tools = append(tools, fakeTool(server, fmt.Sprintf("browser_step_%d", i), "Automation of the browser, in northern ports."))
	}
	tools = append(tools, fakeTool(server, "evaluate_script", "Run a piece of code."))
	servers := []upstreams.ServerInfo{{Name: server, Safe: server}, {Name: "tickets", Safe: "tickets"}}
	tools = append(tools, fakeTool("tickets", "create_issue", "Open a ticket."), fakeTool("tickets", "get_issue", "One ticket."))
	r := rankerOf(t, tools, servers)
	if got := found(t, r, server+" evaluate script", 8); got[0] != server+" evaluate_script" {
		t.Errorf("first hit is %q, want evaluate_script", got[0])
	}
	for _, query := range []string{"tickets", "Tickets", "tickets tools", "what can the tickets server do?", "list all tools of tickets"} {
		if got, want := found(t, r, query, 8), []string{"tickets create_issue", "tickets get_issue"}; !slices.Equal(got, want) {
			t.Errorf("search(%q) = %q, want %q", query, got, want)
		}
	}
	if got := found(t, r, server, 50); len(got) != 25 {
		t.Errorf("search(%q) = %d hits, want all 25 tools of the server", server, len(got))
	}
}

// TestRank_NothingHere: what no tool can do finds little or nothing.
func TestRank_NothingHere(t *testing.T) {
	tools, servers := ownCatalog(t)
	r := rankerOf(t, slices.DeleteFunc(tools, func(t *upstreams.Tool) bool {
		return slices.Contains([]string{"chat", "mail", "contacts"}, t.Server)
	}), servers)
	junk := []string{
		"text the customer on a phone messenger",
		"fold proteins with a neural network",
		"knit a pullover for my grandmother",
		"xyzzy plugh",
		"water the tomatoes every morning",
		"which wine goes with a roast duck",
		"tune the piano in our living room",
		"predict the winner of the chess match",
		"teach my parrot to whistle",
		"how deep is the Mariana trench",
		"repair the brakes of a bicycle",
		"sing the baby to sleep",
		"recommend a good dentist near the station",
		"explain why the moon has phases",
	}
	var filled []string
	for _, query := range junk {
		if got := found(t, r, query, 8); len(got) > surelyShown {
			filled = append(filled, fmt.Sprintf("search(%q) = %q", query, got))
		}
	}
	if len(filled) > len(junk)/4 {
		t.Errorf("%d of %d lists are longer than %d hits, want at most a quarter:\n%s", len(filled), len(junk), surelyShown, strings.Join(filled, "\n"))
	}
	for _, query := range []string{"", " ", "\n", "?!", "the of and", "🦀🦀🦀"} {
		if got := found(t, r, query, 8); len(got) != 0 {
			t.Errorf("search(%q) = %q, want nothing", query, got)
		}
	}
}

// TestRank_EveryWording: the same wish in several wordings finds the tool.
func TestRank_EveryWording(t *testing.T) {
	tools, servers := ownCatalog(t)
	tools = append(tools, fakeTool("ledger", "getInvoice", "One invoice (Rechnung)."), fakeTool("ledger", "list_people", "People at a firm."),
		fakeTool("ledger", "café_menu", "Crème brûlée and more."), fakeTool("ledger", "查询天气", "查询城市的天气预报"))
	r := rankerOf(t, tools, servers)
	for query, want := range map[string]string{
		"people at a firm":                  "ledger list_people",
		"persons at the firm":               "ledger list_people",
		"list all open invoices please":     "payments list_invoices",
		"getInvoice":                        "ledger getInvoice",
		"invioce":                           "payments list_invoices",
		"Rechnung":                          "ledger getInvoice",
		"rechnung anzeigen":                 "ledger getInvoice",
		"creme brulee":                      "ledger café_menu",
		"CAFÉ":                              "ledger café_menu",
		"天气":                                "ledger 查询天气",
		"北京的天气预报":                           "ledger 查询天气",
		"ＧＩＴ　ｂｌａｍｅ":                         "git git_blame",
		"pods " + strings.Repeat("x", 5000): "cluster list_pods",
	} {
		if got := found(t, r, query, 3); !slices.Contains(got, want) {
			t.Errorf("search(%.40q) = %q, want %q among them", query, got, want)
		}
	}
}

// TestRank_OppositesApart: a tool that does the opposite is not the answer.
func TestRank_OppositesApart(t *testing.T) {
	tools, servers := ownCatalog(t)
	r := rankerOf(t, tools, servers)
	for query, want := range map[string]string{
		"approve the request for days off": "hr approve_time_off",
		"reject the request for days off":  "hr reject_time_off",
		"lock the front door":              "home lock_door",
		"unlock the front door":            "home unlock_door",
		"delete a table":                   "database drop_table",
		"create a table":                   "database create_table",
		"stop the container":               "containers stop_container",
		"start the instance":               "cloud start_instance",
		"switch the lamp off":              "home turn_off",
		"push my commits":                  "git git_push",
		"pull from the remote":             "git git_pull",
	} {
		if got := found(t, r, query, 1); got[0] != want {
			t.Errorf("search(%q) = %q, want %q", query, got, want)
		}
	}
}

// TestRank_DestructiveToolsLast: on a near tie the tool that destroys comes
// after the others, unless the query asks for it.
func TestRank_DestructiveToolsLast(t *testing.T) {
	destroys, reads := true, true
	wipe := fakeTool("vault", "process_entry_x", "An entry.")
	wipe.Annotations.Destructive = &destroys
	show := fakeTool("vault", "process_entry_y", "An entry.")
	show.Annotations.ReadOnly = &reads
	r := rankerOf(t, []*upstreams.Tool{
		fakeTool("hub", "delete_issue", "An issue."), fakeTool("hub", "list_issue", "An issue."), wipe, show,
		fakeTool("desk", "delete_case", "A case."), fakeTool("desk", "patch_case_field_value", "A case."),
	}, nil)
	for query, want := range map[string]string{
		"issues":           "hub list_issue",
		"delete the issue": "hub delete_issue",
		"entry":            "vault process_entry_y",
		"close the case":   "desk patch_case_field_value",
	} {
		if got := found(t, r, query, 1); got[0] != want {
			t.Errorf("search(%q) = %q, want %q first", query, got, want)
		}
	}
}

// TestRank_SameToolOfManyServers: both of two are shown; many do not fill the list.
func TestRank_SameToolOfManyServers(t *testing.T) {
	tools, servers := ownCatalog(t)
	for i := range 10 {
		tools = append(tools, fakeTool(fmt.Sprintf("mirror%d", i), "web_lookup", "Look things up on the web with a search engine."))
	}
	got := found(t, rankerOf(t, tools, servers), "search the web", 8)
	same := 0
	for _, name := range got {
		if strings.HasSuffix(name, " web_lookup") {
			same++
		}
	}
	if same != 2 || !slices.Contains(got, "websearch web_search") {
		t.Errorf("search = %q, want two of the ten equal tools and web_search", got)
	}
}

// TestRank_TitleTakesNoServersName: a server that calls itself as another is
// called does not get the queries for that one.
func TestRank_TitleTakesNoServersName(t *testing.T) {
	tools := []*upstreams.Tool{fakeTool("aaa", "send_all", "Send."), fakeTool("tickets", "get_issue", "One ticket.")}
	servers := []upstreams.ServerInfo{{Name: "aaa", Safe: "aaa", Title: "Tickets"}, {Name: "tickets", Safe: "tickets"}}
	r := rankerOf(t, tools, servers)
	if got, want := found(t, r, "list all tools of tickets", 8), []string{"tickets get_issue"}; !slices.Equal(got, want) {
		t.Errorf("search = %q, want %q", got, want)
	}
}

// TestRank_TrustNone: what a server without trust says of its parameters is
// not indexed.
func TestRank_TrustNone(t *testing.T) {
	schema := json.RawMessage(`{"properties":{"zeppelin":{"type":"string","description":"a dirigible","enum":["hindenburg"]}}}`)
	tool := fakeTool("a", "go", "Travel.")
	tool.InputSchema = schema
	quiet := *tool
	quiet.Trust = upstreams.TrustNone
	for _, query := range []string{"zeppelin", "dirigible", "hindenburg"} {
		if got := found(t, rankerOf(t, []*upstreams.Tool{tool}, nil), query, 1); len(got) != 1 {
			t.Errorf("search(%q) with trust schema = %q, want the tool", query, got)
		}
		if got := found(t, rankerOf(t, []*upstreams.Tool{&quiet}, nil), query, 1); len(got) != 0 {
			t.Errorf("search(%q) with trust none = %q, want nothing", query, got)
		}
	}
}

func TestRank_NearServers(t *testing.T) {
	tools, servers := ownCatalog(t)
	r := rankerOf(t, tools, servers)
	for query, want := range map[string]string{"wether": "weather", "calender sync": "calendar", "kubernetes": "cluster", "mailbox": "mail"} {
		if got := r.nearServers(query); len(got) == 0 || len(got) > 3 || !slices.Contains(got, want) {
			t.Errorf("nearServers(%q) = %q, want at most 3 with %q", query, got, want)
		}
	}
	if got := r.nearServers("qqqq"); len(got) != 0 {
		t.Errorf("nearServers(qqqq) = %q, want none", got)
	}
}

// TestRank_AnyTextIsAQuery: no text gives an error or more hits than asked for.
func TestRank_AnyTextIsAQuery(t *testing.T) {
	tools, servers := ownCatalog(t)
	r := rankerOf(t, tools, servers)
	for _, query := range hostileQueries() {
		if got := found(t, r, query, 8); len(got) > 8 {
			t.Errorf("search(%.40q) = %d hits, want at most 8", query, len(got))
		}
		r.nearServers(query)
	}
}

func hostileQueries() []string {
	random := rand.New(rand.NewPCG(1, 2))
	var words strings.Builder
	for range 10_000 {
		for range 2 + random.IntN(9) {
			words.WriteByte('a' + byte(random.IntN(26)))
		}
		words.WriteByte(' ')
	}
	return []string{
		"a", "x", strings.Repeat("a", 5000), words.String(), strings.Repeat("create ", 1000),
		"🦀🔥 👩‍👩‍👧‍👦", "東京の天気を調べる", strings.Repeat("天気", 2000), "Покажи погоду в Москве", "ما هو الطقس اليوم", "ขอดูสภาพอากาศ", "हिन्दी में मौसम",
		`+title:"x" AND (y OR -z) ~2 ^3 * ? [a TO b] {} \ / && || !`, `"""'''` + "```", "\x00\x01\x7f", "\xff\xfe invalid \xc3", strings.Repeat("é", 3000),
		strings.Repeat("_", 4000), "a_b_c_d_e_f", "ſİıK", "\u202egnirts\u200b\u2060", "1234567890", "-1 3.14 0x1F", "get" + strings.Repeat("URL", 500),
	}
}

func FuzzRank_AnyTextIsAQuery(f *testing.F) {
	for _, query := range hostileQueries() {
		f.Add(query)
	}
	tools, servers := ownCatalog(f)
	r := rankerOf(f, tools, servers)
	f.Fuzz(func(t *testing.T, query string) {
		first := found(t, r, query, 8)
		if again := found(t, r, query, 8); !slices.Equal(first, again) {
			t.Errorf("search(%q) = %q, then %q", query, first, again)
		}
		r.nearServers(query)
	})
}
