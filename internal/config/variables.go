package config

import (
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/secret"
)

// variable is NAME, NAME:-default, env:NAME or env:NAME:-default.
var variable = regexp.MustCompile(`^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-(.*))?$`)

// expand replaces the variables of a scalar, once: what a variable holds is
// not looked at again. "$${" is a literal "${"; any other "$" is itself. A
// missing or empty variable without a default is reported.
func (d *decoder) expand(n *yaml.Node, at string) (s string, expanded, ok bool) {
	var out strings.Builder
	ok = true
	for rest := n.Value; ; {
		before, after, found := strings.Cut(rest, "${")
		out.WriteString(before)
		if !found {
			return out.String(), expanded, ok
		}
		if strings.HasSuffix(before, "$") {
			// The first "$" is in out already: it and the brace are the literal.
			out.WriteString("{")
			rest = after
			continue
		}
		name, tail, closed := strings.Cut(after, "}")
		rest = tail
		expanded = true
		value, problem, broken := d.lookupVariable(name, closed)
		switch {
		case problem != "":
			d.problem(n.Line, at+": "+problem)
			ok = false
		case broken != "":
			d.value(n.Line, at+": "+broken)
			ok = false
		}
		out.WriteString(value)
		if !closed {
			return "", true, false
		}
	}
}

// lookupVariable returns the value of what stands between "${" and "}". A
// problem is a mistake in the file, broken is a variable without a value.
func (d *decoder) lookupVariable(name string, closed bool) (value, problem, broken string) {
	if !closed {
		return "", `"${" has no "}": write ${NAME}, or $${ for a literal ${`, ""
	}
	if what, ok := strings.CutPrefix(name, "input:"); ok {
		return "", fmt.Sprintf("${input:%s} asks for a value, which a server cannot do: write ${NAME} and set NAME in the environment", what), ""
	}
	if strings.HasPrefix(name, "workspaceFolder") || strings.HasPrefix(name, "workspaceRoot") {
		return "", fmt.Sprintf("${%s} is known to editors alone: write the path itself", name), ""
	}
	if name == "userHome" {
		return "", "${userHome} is known to editors alone: write ~/ or ${HOME}", ""
	}
	m := variable.FindStringSubmatch(name)
	if m == nil || strings.Contains(m[3], "${") {
		return "", fmt.Sprintf("${%s} is no variable: write ${NAME}, ${NAME:-default} or ${env:NAME}, or $${ for a literal ${", name), ""
	}
	if v, ok := d.lookup(m[1]); ok && v != "" {
		if secret.Plausible(m[1], v) {
			d.secrets[v] = true
			if d.server != nil {
				d.server.config.Hidden = append(d.server.config.Hidden, secret.String(v))
			}
		}
		return v, "", ""
	}
	if m[2] != "" {
		return m[3], "", ""
	}
	return "", "", fmt.Sprintf("the variable ${%s} is not set or empty: set %[1]s in the environment, or write ${%[1]s:-default}", m[1])
}
