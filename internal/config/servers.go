package config

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// entry is one server of mcpServers while it is read.
type entry struct {
	at     string // mcpServers.<name>
	line   int
	config upstreams.Config
	faults []string       // why it alone cannot work
	lines  map[string]int // of env and header values

	// Other programs' keys.
	kind, httpURL, serverURL, envFile string
	disabled                          *bool
	include, exclude                  []string
	timeout                           int
	ignored                           []string
}

func readServers(c *Config) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if isNull(n) { // every server is commented out
			return
		}
		if !d.is(n, at, yaml.MappingNode, "a mapping of server names") {
			return
		}
		folded := map[string]string{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, value := n.Content[i], n.Content[i+1]
			if strings.TrimSpace(name.Value) == "" {
				d.problem(name.Line, at+": a server has no name")
				continue
			}
			for _, form := range []string{name.Value, upstreams.SafeName(name.Value)} {
				if other, ok := folded[strings.ToLower(form)]; ok && other != name.Value {
					d.problem(name.Line, fmt.Sprintf("%s: the names %q and %q differ only by case or become one name in tool ids; rename one", at, other, name.Value))
					break
				}
				folded[strings.ToLower(form)] = name.Value
			}
			c.Servers = append(c.Servers, d.readServer(name, join(at, name.Value), value))
		}
	}
}

func (d *decoder) readServer(name *yaml.Node, at string, n *yaml.Node) upstreams.Config {
	e := &entry{at: at, line: name.Line, config: upstreams.Config{Name: name.Value}, lines: map[string]int{}}
	d.server = e
	defer func() { d.server = nil }()

	c := &e.config
	before := len(d.problems)
	known := fields{
		"command":                   d.readCommand(c),
		"args":                      writtenList(&c.Args),
		"env":                       writtenMap(&c.Env, e.lines),
		"inheritEnv":                texts(&c.InheritEnv),
		"cwd":                       filePath(&c.Cwd),
		"url":                       text(&c.URL),
		"transport":                 text(&c.Transport),
		"headers":                   writtenMap(&c.Headers, e.lines),
		"enabled":                   optional(&c.Enabled),
		"description":               text(&c.Description),
		"trust":                     readTrust(&c.Trust),
		"catalogMode":               word(&c.CatalogMode, "search", "direct-only"),
		"tools":                     readTools(&c.Tools),
		"toolFilter":                readFilter(&c.ToolFilter),
		"validateArguments":         word(&c.ValidateArguments, "error", "warn", "off"),
		"supportsParallelToolCalls": boolean(&c.SupportsParallelToolCalls),
		"maxConcurrentCalls":        number(&c.MaxConcurrentCalls),
		"maxResultBytes":            number(&c.MaxResultBytes),
		"startTimeoutMs":            number(&c.StartTimeoutMs),
		"callTimeoutMs":             readCallTimeout(&c.CallTimeoutMs),
	}
	e.addForeign(known)
	d.object(n, at, known)
	if len(d.problems) == before {
		d.translate(e)
		d.checkServer(e)
	}
	return *c
}

// readCommand reads the program of a stdio server: a bare name is looked up in
// PATH, a relative path is relative to the file.
func (d *decoder) readCommand(c *upstreams.Config) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if n.Kind == yaml.SequenceNode {
			d.problem(n.Line, at+" must be a text: write the program here and the rest of the list under args")
			return
		}
		s, _, ok := d.text(n, at, "a text")
		if !ok {
			return
		}
		s = d.tilde(s)
		hasDir := strings.ContainsRune(s, '/') || runtime.GOOS == "windows" && strings.ContainsRune(s, '\\')
		if hasDir && !filepath.IsAbs(s) {
			s = filepath.Join(d.dir, s)
		}
		c.Command = s
	}
}

func optional(dst **bool) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if v, ok := d.boolean(n, at); ok {
			*dst = &v
		}
	}
}

func readCallTimeout(dst **int) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if v, ok := d.number(n, at, 0); ok {
			*dst = &v
		}
	}
}

func readTrust(dst *upstreams.Trust) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" {
			// Gemini's "trust" skips confirmations, which is not ours to decide.
			d.problem(n.Line, at+" is no switch here: write none, schema or full (how far the server's own words are believed), or remove it")
			return
		}
		word(dst, string(upstreams.TrustNone), string(upstreams.TrustSchema), string(upstreams.TrustFull))(d, n, at)
	}
}

func readTools(dst *map[string]upstreams.ToolConfig) field {
	return func(d *decoder, n *yaml.Node, at string) {
		if !d.is(n, at, yaml.MappingNode, "a mapping of tool names") {
			return
		}
		*dst = map[string]upstreams.ToolConfig{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			var t upstreams.ToolConfig
			name := n.Content[i].Value
			d.object(n.Content[i+1], join(at, name), fields{"catalogMode": word(&t.CatalogMode, "search", "direct-only")})
			(*dst)[name] = t
		}
	}
}

func readFilter(f *upstreams.ToolFilter) field {
	return func(d *decoder, n *yaml.Node, at string) {
		d.object(n, at, fields{"include": patternList(&f.Include), "exclude": patternList(&f.Exclude)})
	}
}

// checkServer checks what concerns several keys, and notes the secrets.
func (d *decoder) checkServer(e *entry) {
	c := &e.config
	for name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			d.problem(e.lines[name], fmt.Sprintf("%s.env: %q cannot be the name of a variable", e.at, name))
		}
	}
	if len(e.faults) == 0 { // else a key may be empty because of its missing variable
		d.checkHeaders(e)
		if c.URL != "" {
			d.checkURL(e)
		}
		if why := d.startsUs(c); why != "" {
			d.value(e.line, e.at+": "+why+": a toolsearch-mcp among its own servers would start itself for ever; remove the entry")
		}
	}
	if len(e.faults) > 0 {
		c.Broken = &upstreams.AdvisedError{Err: errors.New(strings.Join(e.faults, "; "))}
	}
	if err := c.Validate(); err != nil {
		d.problem(e.line, err.Error())
	}
	for _, v := range c.Secrets() {
		d.secrets[v] = true
	}
}

func (d *decoder) checkHeaders(e *entry) {
	for name, v := range e.config.Headers {
		value := v.Reveal()
		switch {
		case !validHeaderName(name):
			d.problem(e.lines[name], fmt.Sprintf("%s.headers: %q cannot be the name of a header", e.at, name))
		case strings.ContainsAny(value, "\r\n\x00"):
			d.value(e.lines[name], fmt.Sprintf("%s.headers.%s holds a line break; remove it", e.at, name))
		case http.CanonicalHeaderKey(name) == "Authorization" && emptyCredentials(value):
			d.value(e.lines[name], fmt.Sprintf("%s.headers.%s has no credentials after the scheme; write the token or ${NAME}", e.at, name))
		case strings.EqualFold(name, upstreams.DepthHeader):
			d.value(e.lines[name], fmt.Sprintf("%s.headers.%s is ours, to see whether we call ourselves; remove it", e.at, name))
		}
	}
}

func validHeaderName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

// emptyCredentials reports an Authorization value such as "", "Bearer" or
// "Bearer ", which is what a lost token leaves behind.
func emptyCredentials(value string) bool {
	words := strings.Fields(value)
	return len(words) == 0 || len(words) == 1 && (strings.EqualFold(words[0], "Bearer") || strings.EqualFold(words[0], "Basic") || strings.EqualFold(words[0], "Token"))
}

func (d *decoder) checkURL(e *entry) {
	u, err := url.Parse(e.config.URL.Reveal())
	switch {
	case err != nil: // its text would hold the URL
		d.value(e.line, e.at+".url cannot be read; write an address such as https://host/mcp")
	case u.Scheme == "":
		d.value(e.line, e.at+".url must begin with http:// or https://, it has neither")
	case u.Scheme != "http" && u.Scheme != "https":
		d.value(e.line, fmt.Sprintf("%s.url must begin with http:// or https://, not %q", e.at, u.Scheme+":"))
	case u.Host == "":
		d.value(e.line, e.at+".url names no host; write an address such as https://host/mcp")
	}
}
