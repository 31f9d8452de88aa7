package config

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/toolsearch-mcp/toolsearch-mcp/aggregator"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
)

// modes are the words for toolSearch.mode and a profile's mode.
var modes = []string{
	string(aggregator.ModeCode), string(aggregator.ModeTools),
	string(aggregator.ModeDirectory), string(aggregator.ModeOff),
}

// file reads the whole tree into c.
func (d *decoder) file(c *Config, root *yaml.Node) {
	given := map[string]string{} // section: the key that it was given under
	once := func(section string, read field) field {
		return func(d *decoder, n *yaml.Node, at string) {
			if other, ok := given[section]; ok {
				d.problem(n.Line, fmt.Sprintf("%s and %s are the same section: write only %q", other, at, section))
				return
			}
			given[section] = at
			read(d, n, at)
		}
	}
	servers := once("mcpServers", readServers(c))
	toolSearch := once("toolSearch", readToolSearch(&c.ToolSearch))
	bridge := &c.CodeBridge
	d.object(root, "", fields{
		"toolSearch": toolSearch,
		"tools": func(d *decoder, n *yaml.Node, at string) { // OpenClaw's place for it
			d.object(n, at, fields{"toolSearch": toolSearch})
		},
		"codeBridge": func(d *decoder, n *yaml.Node, at string) {
			d.object(n, at, fields{
				"workers":        number(&bridge.Workers),
				"queueMs":        number(&bridge.QueueMs),
				"maxOutputBytes": limit(&bridge.MaxOutputBytes),
				"memoryBytes":    limit(&bridge.MemoryBytes),
			})
		},
		"mcpServers": servers,
		"servers":    servers, // VS Code's name for it
		"policy":     readPolicy(&c.Policy),
		"telemetry": func(d *decoder, n *yaml.Node, at string) {
			d.object(n, at, fields{"log": filePath(&c.Telemetry.Log)})
		},
	})
	if _, ok := given["mcpServers"]; !ok || len(c.Servers) == 0 {
		d.warn(0, `"mcpServers" names no server: there is nothing to search`)
	}
	d.clamp(c)
}

// limit reads a number for which 0 in the packages' settings means the
// default, while 0 in the file is too low: it becomes belowAll.
func limit(dst *int) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if v, ok := d.number(n, at, 0); ok {
			*dst = v
			if v == 0 {
				*dst = belowAll
			}
		}
	}
}

const belowAll = -1

// clamp moves numbers inside their limits, with a warning for each.
func (d *decoder) clamp(c *Config) {
	var moved, more []string
	c.ToolSearch, moved = c.ToolSearch.Clamp()
	c.CodeBridge.TimeoutMs = c.ToolSearch.CodeTimeoutMs
	c.CodeBridge, more = c.CodeBridge.Clamp()
	for _, w := range append(moved, more...) {
		d.warn(0, strings.Replace(w, fmt.Sprintf(": %d is outside", belowAll), ": 0 is outside", 1))
	}
}

// readToolSearch reads true, false or a mapping.
func readToolSearch(s *aggregator.Settings) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if n.Kind == yaml.ScalarNode {
			if isNull(n) || n.ShortTag() != "!!bool" {
				d.problem(n.Line, at+` must be true, false or a mapping such as {mode: tools}`)
				return
			}
			if on, _ := d.boolean(n, at); !on {
				s.Mode = string(aggregator.ModeOff)
			}
			return
		}
		d.object(n, at, fields{
			"mode":               word(&s.Mode, modes...),
			"codeTimeoutMs":      limit(&s.CodeTimeoutMs),
			"searchDefaultLimit": limit(&s.SearchDefaultLimit),
			"maxSearchLimit":     limit(&s.MaxSearchLimit),
			"maxNameLength":      limit(&s.MaxNameLength),
			"maxAnswerChars":     limit(&s.MaxAnswerChars),
			"directory": func(d *decoder, n *yaml.Node, at string) {
				d.object(n, at, fields{
					"maxChars": limit(&s.Directory.MaxChars),
					"pinned": func(d *decoder, n *yaml.Node, at string) {
						patternList(&s.Directory.Pinned)(d, n, at)
						if len(s.Directory.Pinned) > aggregator.MaxPinned {
							d.warn(n.Line, fmt.Sprintf("%s: %d entries, using the first %d", at, len(s.Directory.Pinned), aggregator.MaxPinned))
							s.Directory.Pinned = s.Directory.Pinned[:aggregator.MaxPinned]
						}
					},
				})
			},
		})
	}
}

func readPolicy(r *policy.Rules) field {
	return func(d *decoder, n *yaml.Node, at string) {
		d.object(n, at, fields{
			"allow": patternList(&r.Allow),
			"deny":  patternList(&r.Deny),
			"profiles": func(d *decoder, n *yaml.Node, at string) {
				if !d.is(n, at, yaml.MappingNode, "a mapping of profile names") {
					return
				}
				for i := 0; i+1 < len(n.Content); i += 2 {
					key, value := n.Content[i], n.Content[i+1]
					p := policy.Profile{Name: key.Value}
					if strings.TrimSpace(p.Name) != p.Name || p.Name == "" {
						d.problem(key.Line, fmt.Sprintf("%s: the profile name %q is empty or has blanks around it", at, p.Name))
					}
					d.object(value, join(at, key.Value), fields{
						"clients": patternList(&p.Clients),
						"allow":   patternList(&p.Allow),
						"deny":    patternList(&p.Deny),
						"mode":    word(&p.Mode, modes...),
					})
					r.Profiles = append(r.Profiles, p)
				}
			},
		})
		if len(d.problems) == 0 {
			if _, err := policy.Compile(*r); err != nil {
				d.problem(n.Line, err.Error())
			}
		}
	}
}
