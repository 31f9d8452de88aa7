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
	zeros := map[string]bool{}
	servers := once("mcpServers", readServers(c))
	toolSearch := once("toolSearch", readToolSearch(&c.ToolSearch, zeros))
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
				"maxOutputBytes": clamped(&bridge.MaxOutputBytes, 1<<10, 1<<20),
				"memoryBytes":    clamped(&bridge.MemoryBytes, 16<<20, 512<<20),
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
	d.clampToolSearch(&c.ToolSearch, zeros)
	bridge.TimeoutMs = c.ToolSearch.CodeTimeoutMs
}

// clamped reads a number and moves it inside its limits with a warning.
func clamped(dst *int, low, high int) field {
	return func(d *decoder, n *yaml.Node, at string) {
		v, ok := d.number(n, at, 0)
		if !ok {
			return
		}
		*dst = min(max(v, low), high)
		if *dst != v {
			d.warn(n.Line, fmt.Sprintf("%s: %d is outside %d to %d, using %d", at, v, low, high, *dst))
		}
	}
}

// readToolSearch reads true, false or a mapping. A number given as 0 is noted
// in zeros, because 0 in Settings means the default.
func readToolSearch(s *aggregator.Settings, zeros map[string]bool) field {
	setting := func(dst *int) field {
		return func(d *decoder, n *yaml.Node, at string) {
			v, ok := d.number(n, at, 0)
			if !ok {
				return
			}
			if *dst = v; v == 0 {
				*dst = -1
				zeros[at] = true
			}
		}
	}
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
			"codeTimeoutMs":      setting(&s.CodeTimeoutMs),
			"searchDefaultLimit": setting(&s.SearchDefaultLimit),
			"maxSearchLimit":     setting(&s.MaxSearchLimit),
			"maxNameLength":      setting(&s.MaxNameLength),
			"maxAnswerChars":     setting(&s.MaxAnswerChars),
			"directory": func(d *decoder, n *yaml.Node, at string) {
				d.object(n, at, fields{
					"maxChars": setting(&s.Directory.MaxChars),
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

func (d *decoder) clampToolSearch(s *aggregator.Settings, zeros map[string]bool) {
	clamped, warnings := s.Clamp()
	*s = clamped
	for _, w := range warnings {
		for at := range zeros {
			w = strings.Replace(w, strings.TrimPrefix(at, "tools.")+": -1 is", strings.TrimPrefix(at, "tools.")+": 0 is", 1)
		}
		d.warn(0, w)
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
