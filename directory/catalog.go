package directory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// isControlTool tells whether a bare name belongs to one of our own tools: an
// upstream tool of that name is reached by id and full name only.
func isControlTool(name string) bool {
	switch name {
	case "tool_search_code", "tool_search", "tool_describe", "tool_call":
		return true
	}
	return false
}

// catalog resolves selectors over the tools that one caller may see.
type catalog struct {
	tools []*upstreams.Tool // all of them, direct-only ones included, sorted by ID
	ids   map[string]*upstreams.Tool
	full  nameMap
	bare  nameMap
	alias nameMap // ids as they are shown, where cleaning altered them
}

// nameMap finds the tools of a name. Nearly all names have one tool.
type nameMap struct {
	one  map[string]*upstreams.Tool
	more map[string][]*upstreams.Tool // all tools of a name that has several
}

func (m *nameMap) add(name string, t *upstreams.Tool) {
	first, taken := m.one[name]
	if !taken {
		if m.one == nil {
			m.one = make(map[string]*upstreams.Tool)
		}
		m.one[name] = t
		return
	}
	if m.more == nil {
		m.more = make(map[string][]*upstreams.Tool)
	}
	if m.more[name] == nil {
		m.more[name] = []*upstreams.Tool{first}
	}
	m.more[name] = append(m.more[name], t)
}

// find returns the one tool of a name, or all ids if it has several.
func (m *nameMap) find(name string) (t *upstreams.Tool, ids []string) {
	if several := m.more[name]; several != nil {
		for _, t := range several {
			ids = append(ids, OneLine(t.ID, 0))
		}
		return nil, ids
	}
	return m.one[name], nil
}

func newCatalog(tools []*upstreams.Tool) *catalog {
	c := &catalog{
		tools: tools,
		ids:   make(map[string]*upstreams.Tool, len(tools)),
		full:  nameMap{one: make(map[string]*upstreams.Tool, len(tools))},
		bare:  nameMap{one: make(map[string]*upstreams.Tool, len(tools))},
	}
	for _, t := range tools {
		c.ids[t.ID] = t
		c.full.add(t.FullName, t)
		if !isControlTool(t.Name) {
			c.bare.add(t.Name, t)
		}
		if id := OneLine(t.ID, 0); id != t.ID {
			c.alias.add(id, t)
		}
	}
	return c
}

// resolve obeys the order of contract 2. Each step is exact; the first that
// knows the name decides, also when it finds that the name is ambiguous.
func (c *catalog) resolve(selector string) (*upstreams.Tool, error) {
	name := strings.TrimSpace(selector)
	for _, id := range []string{selector, name} { // a tool's own name may end in blanks
		if t := c.ids[id]; t != nil {
			return t, nil
		}
	}
	steps := []func() (*upstreams.Tool, []string){
		func() (*upstreams.Tool, []string) { return c.alias.find(name) },
		func() (*upstreams.Tool, []string) { return c.full.find(name) },
		func() (*upstreams.Tool, []string) { return c.long(name), nil },
		func() (*upstreams.Tool, []string) { return c.bare.find(name) },
	}
	for _, find := range steps {
		switch t, ids := find(); {
		case t != nil:
			return t, nil
		case ids != nil:
			return nil, &ResolveError{Selector: selector, Ambiguous: ids}
		}
	}
	return nil, &ResolveError{Selector: selector, Near: c.near(name)}
}

// long reads the original's form of an id, mcp:<server>:<server>__<tool>,
// where the last part is the tool's own name or the full name of ours.
func (c *catalog) long(name string) *upstreams.Tool {
	rest, ok := strings.CutPrefix(name, "mcp:")
	if !ok {
		return nil
	}
	server, long, ok := strings.Cut(rest, ":")
	if !ok {
		return nil
	}
	tool, ok := strings.CutPrefix(long, server+"__")
	if !ok {
		return nil
	}
	if t := c.ids[upstreams.ToolID(server, tool)]; t != nil {
		return t
	}
	if t, _ := c.full.find(long); t != nil && t.Safe == server {
		return t
	}
	return nil
}

// ResolveError says why a selector names no tool.
type ResolveError struct {
	Selector  string
	Ambiguous []string // ids, when several tools have the name
	Near      []string // at most 3 names or ids to suggest, best first
}

func (e *ResolveError) Error() string {
	name := OneLine(e.Selector, 100)
	switch {
	case len(e.Ambiguous) > 0:
		return fmt.Sprintf("tool name %q is ambiguous: %s", name, strings.Join(e.Ambiguous, ", "))
	case len(e.Near) > 0:
		return fmt.Sprintf("unknown tool %q; near names: %s", name, strings.Join(e.Near, ", "))
	}
	return fmt.Sprintf("unknown tool %q", name)
}

const (
	maxNear     = 3
	maxNearText = 200 // bytes of a selector that suggestions look at
)

// near returns at most 3 names that may be meant, best first: ids if an id is
// asked for or the full name is not unique, else full names.
func (c *catalog) near(name string) []string {
	if len(name) > maxNearText {
		name = strings.ToValidUTF8(name[:maxNearText], "")
	}
	wanted := newWanted(name)
	if len(wanted.words) == 0 {
		return nil
	}
	asID := strings.HasPrefix(name, "mcp:")
	type candidate struct {
		score, distance int
		name            string
	}
	var best []candidate
	safe, server := "", []string(nil)
	for _, t := range c.tools {
		if t.Safe != safe { // tools of one server stand together
			safe, server = t.Safe, nameWords(t.Safe)
		}
		score, distance := wanted.score(t, server)
		if score == 0 {
			continue
		}
		shown := t.FullName
		if asID || c.full.more[shown] != nil {
			shown = OneLine(t.ID, 0)
		}
		best = append(best, candidate{score, distance, shown})
		slices.SortFunc(best, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
		})
		best = best[:min(len(best), maxNear)]
	}
	var names []string
	for _, b := range best {
		names = append(names, b.name)
	}
	return names
}

// wanted is a selector that names no tool, as suggestions see it.
type wanted struct {
	text  string   // lower case
	words []string // its words
}

func newWanted(name string) wanted {
	w := wanted{text: strings.ToLower(name)}
	for _, word := range nameWords(name) {
		if word != "mcp" && word != "tool" && word != "tools" && !slices.Contains(w.words, word) {
			w.words = append(w.words, word)
		}
	}
	return w
}

// score tells how near a tool is, 0 for not at all, with weights like the
// original's; distance is how many letters tell the two names apart. server is
// the words of the tool's server.
func (w wanted) score(t *upstreams.Tool, server []string) (score, distance int) {
	name := strings.ToLower(t.Name)
	if strings.Contains(w.text, name) && name != "" || strings.Contains(strings.ToLower(t.ID), w.text) {
		score += 40
	}
	if slices.Contains(w.words, name) {
		score += 40
	}
	own := nameWords(t.Name)
	shared := 0
	for _, word := range w.words {
		if slices.Contains(own, word) {
			shared += 2
		} else if slices.Contains(server, word) {
			shared++
		}
	}
	if shared >= len(w.words) { // half of the words, or all as the server's
		score += 6 * shared
	}
	last := w.text[strings.LastIndexAny(w.text, ":./")+1:]
	if i := strings.LastIndex(last, "__"); i >= 0 {
		last = last[i+2:]
	}
	longest := max(len(last), len(name))
	distance = longest
	if diff := len(last) - len(name); -3 <= diff && diff <= 3 {
		distance = editDistance(last, name)
		if distance <= min(3, max(1, (longest+2)/3)) {
			score += 36 - 6*distance
		}
	}
	if score == 0 && len(w.text) >= 4 && strings.Contains(strings.ToLower(t.Title), w.text) {
		score = 8
	}
	return score, distance
}

// editDistance counts the single-letter changes between two short names.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// nameWords splits a name at case changes and at everything that is no letter
// or digit; the words are in lower case.
func nameWords(name string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, string(word))
			word = word[:0]
		}
	}
	lower := false
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			lower = false
			continue
		}
		if unicode.IsUpper(r) && lower {
			flush()
		}
		lower = !unicode.IsUpper(r)
		word = append(word, unicode.ToLower(r))
	}
	flush()
	return words
}
