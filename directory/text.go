package directory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

const (
	maxServerName = 40  // characters of a server's name in the overview
	maxPurpose    = 100 // characters of what a server is for
)

// Overview returns the lines "name (n tools): what it is for", one a server,
// within max characters. If they do not fit, what the servers are for is
// shortened, then left out, then the names stand in one line that may end in
// "and N more". namesOnly is for a start without any cache.
func (v *View) Overview(max int, namesOnly bool) string {
	if len(v.servers) == 0 {
		return ""
	}
	names := make([]string, len(v.servers))
	for i, s := range v.servers {
		names[i] = OneLine(s.Name, maxServerName)
	}
	if !namesOnly {
		purposes := v.purposes()
		for _, width := range []int{maxPurpose, 60, 30, 0} {
			var b strings.Builder
			for i, s := range v.servers {
				if i > 0 {
					b.WriteByte('\n')
				}
				b.WriteString(names[i] + v.size(s))
				if purpose := OneLine(purposes[i], width); width > 0 && purpose != "" {
					b.WriteString(": " + purpose)
				}
			}
			if utf8.RuneCountInString(b.String()) <= max {
				return b.String()
			}
		}
	}
	return JoinNames(names, max)
}

// JoinNames puts as many names in a line as max characters hold: "a, b and 3
// more".
func JoinNames(names []string, max int) string {
	if all := strings.Join(names, ", "); utf8.RuneCountInString(all) <= max {
		return all
	}
	for n := len(names) - 1; n > 0; n-- {
		line := fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
		if utf8.RuneCountInString(line) <= max {
			return line
		}
	}
	return OneLine(fmt.Sprintf("%d of them", len(names)), max)
}

// size tells how many tools of a server there are, "" if that is not known.
func (v *View) size(s upstreams.ServerInfo) string {
	n, listed := v.known[s.Name], ""
	if n == 0 {
		for _, t := range v.direct {
			if t.Server == s.Name {
				n, listed = n+1, ", listed"
			}
		}
	}
	switch {
	case n == 0 && !s.Known:
		return ""
	case n == 1:
		return " (1 tool" + listed + ")"
	}
	return fmt.Sprintf(" (%d tools%s)", n, listed)
}

// purposes says what each server is for: the configuration's words, else the
// server's own, else what its tools' names speak of.
func (v *View) purposes() []string {
	tools := make(map[string][]*upstreams.Tool)
	for _, t := range v.seen() {
		tools[t.Server] = append(tools[t.Server], t)
	}
	purposes := make([]string, len(v.servers))
	for i, s := range v.servers {
		purposes[i] = cmp.Or(
			OneLine(s.Description, maxPurpose),
			firstSentence(s.Instructions),
			titleAndTopics(s, tools[s.Name]),
		)
	}
	return purposes
}

// firstSentence returns the first sentence of instructions that says
// something: no headings, markup, introductions to a list or paragraphs about
// the instructions themselves.
func firstSentence(instructions string) string {
	const maxRead = 4096
	if len(instructions) > maxRead {
		instructions = strings.ToValidUTF8(instructions[:maxRead], "")
	}
	code, skip := false, false
	for line := range strings.Lines(Clean(instructions)) {
		line = OneLine(line, 0)
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		skip = line != "" && (skip || strings.Contains(strings.ToLower(line), "instructions"))
		if code || skip || line == "" || strings.ContainsRune("#<`|-=*", rune(line[0])) || strings.HasSuffix(line, ":") {
			continue
		}
		for i := range len(line) {
			if line[i] == ' ' && endsSentence(line[:i], line[i+1:]) {
				line = line[:i]
				break
			}
		}
		return OneLine(strings.TrimSuffix(line, "."), maxPurpose)
	}
	return ""
}

// titleAndTopics joins a server's title, if it says more than the name and is
// no program's name, and what its tools are about.
func titleAndTopics(s upstreams.ServerInfo, tools []*upstreams.Tool) string {
	title := OneLine(s.Title, maxPurpose)
	said := nameWords(s.Name)
	isNew := func(word string) bool { return !slices.Contains(said, word) && word != "mcp" && word != "server" }
	if !strings.Contains(title, " ") || !slices.ContainsFunc(nameWords(title), isNew) {
		title = ""
	}
	topics := topicsOf(tools, said, verbs)
	if topics == "" {
		topics = topicsOf(tools, said, nil)
	}
	if title != "" && topics != "" {
		return title + ": " + topics
	}
	return title + topics
}

// verbs are words of tool names that say what is done, not with what.
var verbs = strings.Fields(`add all and apply batch bulk by call cancel check clear close copy count create delete
	describe disable edit enable execute export fetch find for from get import in info insert list
	make mcp move new of on open or patch post put query read remove rename replace reset resume
	run save search select send set start stop submit sync test the to tool update upload upsert
	use view with write`)

// topicsOf returns the words that most of the tools' names share, without
// those said before and these (sorted) others; "" if there are none. It is the
// same for the same tools.
func topicsOf(tools []*upstreams.Tool, said, others []string) string {
	const maxTopics, maxChars = 6, 60
	count := make(map[string]int)   // by singular
	form := make(map[string]string) // the shortest form seen
	for _, t := range tools {
		words := nameWords(t.Name)
		slices.Sort(words)
		for _, word := range slices.Compact(words) {
			one := singular(word)
			isOne := func(s string) bool { return singular(s) == one }
			if _, found := slices.BinarySearch(others, word); found || len(word) <= 2 || slices.ContainsFunc(said, isOne) {
				continue
			}
			count[one]++
			if form[one] == "" || len(word) < len(form[one]) {
				form[one] = word
			}
		}
	}
	words := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b))
	})
	var chosen []string
	chars := 0
	for _, word := range words[:min(len(words), maxTopics)] {
		word = OneLine(form[word], 0)
		if chars += len(word) + 2; chars > maxChars {
			break
		}
		chosen = append(chosen, word)
	}
	return strings.Join(chosen, ", ")
}

// singular maps a word and its plural to the same text, which need be no word.
func singular(word string) string {
	word = strings.TrimSuffix(word, "s")
	if root, ok := strings.CutSuffix(word, "ie"); ok {
		return root + "y"
	}
	return word
}

// Text returns the directory text within max characters (contract 3): a first
// line that says what it is and how many of the tools follow, then a line a
// tool, sorted by name. If they do not fit, descriptions are shortened,
// then left out, then lines are dropped from the end. It is the same, byte for
// byte, for the same tools.
func (v *View) Text(max int) string {
	tools := slices.SortedFunc(slices.Values(v.tools), func(a, b *upstreams.Tool) int {
		return cmp.Or(strings.Compare(a.FullName, b.FullName), strings.Compare(a.ID, b.ID))
	})
	lines := make([]string, len(tools))
	for _, width := range []int{180, 64, 0} {
		size := 0
		for i, t := range tools {
			lines[i] = "\n- " + t.FullName
			if width > 0 {
				if description := summary(t.Description, width); description != "" {
					lines[i] += ": " + description
				}
			}
			if size += utf8.RuneCountInString(lines[i]); size > max {
				break
			}
		}
		if head := directoryHead(len(tools), len(tools)); size+len(head) <= max {
			return head + strings.Join(lines, "")
		}
	}
	size, shown := 0, 0
	for shown < len(tools) {
		size += utf8.RuneCountInString("\n- " + tools[shown].FullName)
		if size+len(directoryHead(shown+1, len(tools))) > max {
			break
		}
		shown++
	}
	head := directoryHead(shown, len(tools))
	if len(head) > max {
		return ""
	}
	var b strings.Builder
	b.WriteString(head)
	for _, t := range tools[:shown] {
		b.WriteString("\n- " + t.FullName)
	}
	return b.String()
}

func directoryHead(shown, of int) string {
	return fmt.Sprintf("Tools behind this server: %d of %d follow. Find the rest with tool_search, call any of them by tool_call.", shown, of)
}
