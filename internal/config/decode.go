package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// decoder walks the tree of one file and collects what is wrong with it.
type decoder struct {
	// fixed at creation
	path, dir, home, exe string
	lookup               func(string) (string, bool)

	nodes    int // how many more nodes flatten may make
	problems []Problem
	warnings []string
	secrets  map[string]bool
	server   *entry // the mcpServers entry that is being read, nil outside
}

func (d *decoder) problem(line int, text string) {
	d.problems = append(d.problems, Problem{line, text})
}

func (d *decoder) warn(line int, text string) {
	d.warnings = append(d.warnings, place(d.path, line)+": "+text)
}

// value is a fault of a value rather than of the file's shape: inside of
// mcpServers it costs that server alone.
func (d *decoder) value(line int, text string) {
	if d.server == nil {
		d.problem(line, text)
		return
	}
	d.server.faults = append(d.server.faults, place(d.path, line)+": "+text)
}

// field reads the value of one key. at is its path, for messages.
type field func(d *decoder, n *yaml.Node, at string)

// fields are the known keys of a mapping.
type fields map[string]field

// object reads a mapping with known keys.
func (d *decoder) object(n *yaml.Node, at string, known fields) {
	if !d.is(n, at, yaml.MappingNode, "a mapping") {
		return
	}
	settings := at == "" && othersSettings(n, known)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, ok := known[key.Value]
		switch {
		case !ok && settings:
			d.problem(key.Line, fmt.Sprintf("unknown key %q: paste only the mcpServers block of another program's settings", key.Value))
			continue
		case !ok:
			d.unknown(key, value, at, known)
			continue
		}
		read(d, value, join(at, key.Value))
	}
}

// othersSettings tells whether a file is the whole settings of another program,
// such as ~/.claude.json: servers among many keys that are not ours.
func othersSettings(n *yaml.Node, known fields) bool {
	const many = 3 // more than one misspells
	servers, foreign := false, 0
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		servers = servers || key == "mcpServers"
		if known[key] == nil && !notYet[key] && nearest(key, slices.Sorted(maps.Keys(known))) == "" {
			foreign++
		}
	}
	return servers && foreign >= many
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// notYet are keys of later versions: what to say instead of "unknown".
var notYet = map[string]bool{
	"http": true, "audit": true,
	"policy.approve": true, "policy.approvalTimeoutMs": true, "policy.hooks": true, "policy.toolChanges": true,
	"mcpServers.lazy": true, "mcpServers.idleStopMs": true, "mcpServers.protocol": true,
	"mcpServers.sessions": true, "mcpServers.passthrough": true,
}

const noLogin = `this version has no login; write headers: {Authorization: "Bearer ${TOKEN}"}`

// instead are keys of other programs that have no counterpart of the same
// meaning, and what to write.
var instead = map[string]string{
	"inputs":                         `write ${NAME} in place of ${input:…} and set NAME in the environment`,
	"mcp":                            `write its servers under "mcpServers"`,
	"context_servers":                `write "mcpServers"`,
	"mcp_servers":                    `write "mcpServers"`,
	"mcpServers.headersHelper":       `write headers: {Authorization: "Bearer ${TOKEN}"} and set TOKEN in the environment`,
	"mcpServers.environment":         `write "env"`,
	"mcpServers.bearerTokenEnvVar":   `write headers: {Authorization: "Bearer ${NAME}"}`,
	"mcpServers.startup_timeout_sec": `write "startTimeoutMs", in milliseconds`,
	"mcpServers.tool_timeout_sec":    `write "callTimeoutMs", in milliseconds`,
	"mcpServers.enabled_tools":       `write toolFilter: {include: [...]}`,
	"mcpServers.disabled_tools":      `write toolFilter: {exclude: [...]}`,
	"mcpServers.disabledTools":       `write toolFilter: {exclude: [...]}`,
	"mcpServers.auth":                noLogin,
	"mcpServers.oauth":               noLogin,
}

func (d *decoder) unknown(key, value *yaml.Node, at string, known fields) {
	full := join(at, key.Value)
	lookup := full
	if d.server != nil && at == d.server.at {
		lookup = "mcpServers." + key.Value
	}
	text := fmt.Sprintf("unknown key %q", full)
	switch near := nearest(key.Value, slices.Sorted(maps.Keys(known))); {
	case notYet[lookup]:
		text += ": this version does not have it yet; remove it"
	case instead[lookup] != "":
		text += ": " + instead[lookup]
	case near != "":
		text += fmt.Sprintf("; did you mean %q?", near)
	case at == "" && looksLikeServer(value):
		text += `: it looks like a server; write it under "mcpServers"`
	default:
		text += ": known here are " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	}
	d.problem(key.Line, text)
}

func looksLikeServer(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		if k := n.Content[i].Value; k == "command" || k == "url" {
			return true
		}
	}
	return false
}

// is reports a node of another kind.
func (d *decoder) is(n *yaml.Node, at string, kind yaml.Kind, want string) bool {
	if n.Kind == kind && !isNull(n) {
		return true
	}
	if isNull(n) {
		d.problem(n.Line, fmt.Sprintf("%s has no value: write %s, or remove the key", at, want))
	} else {
		d.problem(n.Line, fmt.Sprintf("%s must be %s, not %s", at, want, kindOf(n)))
	}
	return false
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!bool":
		return n.Value
	}
	return "a text"
}

// text reads a string and replaces its variables. expanded tells whether there
// were any.
func (d *decoder) text(n *yaml.Node, at, want string) (s string, expanded, ok bool) {
	if !d.is(n, at, yaml.ScalarNode, want) {
		return "", false, false
	}
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return d.expand(n, at)
	}
	d.problem(n.Line, fmt.Sprintf("%s must be %s, not %s; put it in quotes if it is meant as text", at, want, kindOf(n)))
	return "", false, false
}

// written reads any scalar as the text that stands in the file: 01234 stays
// 01234, NO stays NO. It is for what becomes an argument, a variable or a
// header, where YAML's types have no meaning.
func (d *decoder) written(n *yaml.Node, at string) (string, bool) {
	if isNull(n) {
		d.problem(n.Line, fmt.Sprintf(`%s has no value: write "" for an empty text, or remove it`, at))
		return "", false
	}
	if !d.is(n, at, yaml.ScalarNode, "a text or a number") {
		return "", false
	}
	s, _, ok := d.expand(n, at)
	return s, ok
}

func text[S ~string](dst *S) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if s, _, ok := d.text(n, at, "a text"); ok {
			*dst = S(s)
		}
	}
}

// word reads one of a few words.
func word[S ~string](dst *S, words ...string) field {
	return func(d *decoder, n *yaml.Node, at string) {
		want := "one of " + strings.Join(words, ", ")
		s, _, ok := d.text(n, at, want)
		if !ok {
			return
		}
		if !slices.Contains(words, s) {
			text := fmt.Sprintf("%s: %q is unknown, want %s", at, s, want)
			if near := nearest(s, words); near != "" {
				text += fmt.Sprintf("; did you mean %q?", near)
			}
			d.problem(n.Line, text)
			return
		}
		*dst = S(s)
	}
}

// number reads a whole number of at least low. A text counts only if a
// variable made it.
func (d *decoder) number(n *yaml.Node, at string, low int) (v int, ok bool) {
	const want = "a whole number"
	if !d.is(n, at, yaml.ScalarNode, want) {
		return 0, false
	}
	switch n.ShortTag() {
	case "!!int":
		if n.Decode(&v) != nil {
			d.problem(n.Line, fmt.Sprintf("%s: %s is too large", at, n.Value))
			return 0, false
		}
	case "!!str":
		s, expanded, ok := d.expand(n, at)
		if !ok {
			return 0, false
		}
		i, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || !expanded {
			report := d.problem
			if expanded {
				report = d.value
			}
			report(n.Line, fmt.Sprintf("%s must be %s, not the text %q", at, want, s))
			return 0, false
		}
		v = i
	default:
		d.problem(n.Line, fmt.Sprintf("%s must be %s, not %s", at, want, kindOf(n)))
		return 0, false
	}
	if v < low {
		d.problem(n.Line, fmt.Sprintf("%s must be at least %d, not %d", at, low, v))
		return 0, false
	}
	return v, true
}

func number(dst *int) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if v, ok := d.number(n, at, 0); ok {
			*dst = v
		}
	}
}

// boolean reads true or false. A text counts only if a variable made it.
func (d *decoder) boolean(n *yaml.Node, at string) (v, ok bool) {
	const want = "true or false"
	if !d.is(n, at, yaml.ScalarNode, want) {
		return false, false
	}
	switch n.ShortTag() {
	case "!!bool":
		return strings.EqualFold(n.Value, "true"), true
	case "!!str":
		s, expanded, ok := d.expand(n, at)
		if !ok {
			return false, false
		}
		if expanded && (s == "true" || s == "false") {
			return s == "true", true
		}
		report := d.problem
		if expanded {
			report = d.value
		}
		report(n.Line, fmt.Sprintf("%s must be %s, not the text %q", at, want, s))
		return false, false
	}
	d.problem(n.Line, fmt.Sprintf("%s must be %s, not %s", at, want, kindOf(n)))
	return false, false
}

func boolean(dst *bool) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if v, ok := d.boolean(n, at); ok {
			*dst = v
		}
	}
}

// texts reads a list of strings; an empty list is not nil.
func texts(dst *[]string) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if !d.is(n, at, yaml.SequenceNode, `a list of texts such as ["a", "b"]`) {
			return
		}
		list := make([]string, 0, len(n.Content))
		for i, item := range n.Content {
			if s, _, ok := d.text(item, fmt.Sprintf("%s[%d]", at, i), "a text"); ok {
				list = append(list, s)
			}
		}
		*dst = list
	}
}

// patternList reads a list of policy patterns.
func patternList(dst *[]string) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if isNull(n) {
			d.problem(n.Line, at+` has no value: write [] for nothing, ["*"] for everything, or remove the key`)
			return
		}
		texts(dst)(d, n, at)
		for i, s := range *dst {
			if s == "" || strings.TrimSpace(s) != s {
				d.problem(n.Line, fmt.Sprintf("%s[%d]: the pattern %q is empty or has blanks around it", at, i, s))
			}
		}
	}
}

// writtenList reads a list of scalars as written; nothing is an empty list.
func writtenList[S ~string](dst *[]S) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if isNull(n) || !d.is(n, at, yaml.SequenceNode, `a list such as ["-y", "package"]`) {
			return
		}
		for i, item := range n.Content {
			if s, ok := d.written(item, fmt.Sprintf("%s[%d]", at, i)); ok {
				*dst = append(*dst, S(s))
			}
		}
	}
}

// writtenMap reads a mapping of scalars as written; nothing is an empty one.
// line is told where each value stands.
func writtenMap[S ~string](dst *map[string]S, line map[string]int) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if isNull(n) || !d.is(n, at, yaml.MappingNode, "a mapping of names to texts") {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			s, ok := d.written(value, join(at, key.Value))
			if !ok {
				continue
			}
			if *dst == nil {
				*dst = map[string]S{}
			}
			(*dst)[key.Value] = S(s)
			line[key.Value] = value.Line
		}
	}
}

// file reads a path: "~/" is the home folder, a relative one is relative to
// the configuration file.
func filePath(dst *string) field {
	return func(d *decoder, n *yaml.Node, at string) {
		s, _, ok := d.text(n, at, "a path")
		if !ok || s == "" {
			return
		}
		*dst = d.abs(s)
	}
}

func (d *decoder) abs(path string) string {
	path = d.tilde(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.dir, path)
	}
	return filepath.Clean(path)
}

func (d *decoder) tilde(path string) string {
	if d.home != "" && (path == "~" || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`)) {
		return filepath.Join(d.home, path[1:])
	}
	return path
}

// nearest returns the known word that s is most likely a misspelling of, "" if
// none is near.
func nearest(s string, known []string) string {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	best, at := "", max(1, len(s)/3)+1
	for _, k := range known {
		if dist := distance(plain(s), plain(k)); dist < at {
			best, at = k, dist
		}
	}
	return best
}

// distance counts the inserted, deleted, changed and swapped bytes between two
// short words.
func distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
