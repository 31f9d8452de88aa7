package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/secret"
)

// ignoredKeys are other programs' settings that say nothing to us.
var ignoredKeys = []string{"alwaysLoad", "alwaysAllow", "autoApprove", "gallery", "dev", "version", "icon"}

// addForeign adds the keys by which other programs say what we say otherwise.
func (e *entry) addForeign(known fields) {
	known["type"] = text(&e.kind)
	known["disabled"] = optional(&e.disabled)
	known["httpUrl"] = text(&e.httpURL)
	known["serverUrl"] = text(&e.serverURL)
	known["includeTools"] = patternList(&e.include)
	known["excludeTools"] = patternList(&e.exclude)
	known["envFile"] = filePath(&e.envFile)
	known["timeout"] = number(&e.timeout)
	for _, key := range ignoredKeys {
		known[key] = func(*decoder, *yaml.Node, string) { e.ignored = append(e.ignored, key) }
	}
}

// translate turns the other programs' keys into ours. A key that is there in
// both spellings with different values is a problem.
func (d *decoder) translate(e *entry) {
	c := &e.config
	clash := func(a, b string) {
		d.problem(e.line, fmt.Sprintf("%s has both %s and %s, which are the same setting: write only %q", e.at, a, b, a))
	}

	kind := transportOf(e.kind)
	if given := transportOf(c.Transport); c.Transport != "" && e.kind != "" && given != kind {
		clash("transport", "type")
	} else if c.Transport != "" {
		kind = given
	}
	spelling := c.Transport + e.kind
	c.Transport = ""
	switch kind {
	case "":
	case "stdio":
		if c.Command == "" && len(e.faults) == 0 {
			d.problem(e.line, fmt.Sprintf("%s says %q but has no command", e.at, spelling))
		}
	case "http", "sse":
		if c.Command != "" {
			d.problem(e.line, fmt.Sprintf("%s says %q but has a command: write url, or remove the type", e.at, spelling))
		}
		c.Transport = kind
	case "remote":
		if c.Command != "" {
			d.problem(e.line, fmt.Sprintf("%s says %q but has a command: write url, or remove the type", e.at, spelling))
		}
	default:
		d.problem(e.line, fmt.Sprintf("%s: the transport %q is unknown, want http or sse, or a command for stdio", e.at, spelling))
	}

	if e.disabled != nil {
		enabled := !*e.disabled
		if c.Enabled != nil && *c.Enabled != enabled {
			clash("enabled", "disabled")
		}
		c.Enabled = &enabled
	}
	for _, other := range []struct{ key, url string }{{"httpUrl", e.httpURL}, {"serverUrl", e.serverURL}} {
		if other.url == "" {
			continue
		}
		if c.URL != "" && c.URL.Reveal() != other.url {
			clash("url", other.key)
		}
		c.URL = secret.String(other.url)
	}
	if e.include != nil {
		if c.ToolFilter.Include != nil {
			clash("toolFilter", "includeTools")
		}
		c.ToolFilter.Include = e.include
	}
	if e.exclude != nil {
		if c.ToolFilter.Exclude != nil {
			clash("toolFilter", "excludeTools")
		}
		c.ToolFilter.Exclude = e.exclude
	}
	if e.timeout > 0 {
		ms := e.timeout
		if ms < 1000 { // seconds in some programs, milliseconds in others
			ms *= 1000
		}
		if c.CallTimeoutMs != nil && *c.CallTimeoutMs != ms {
			clash("callTimeoutMs", "timeout")
		}
		c.CallTimeoutMs = &ms
	}
	if e.envFile != "" {
		d.readEnvFile(e)
	}
	if len(e.ignored) > 0 {
		slices.Sort(e.ignored)
		rest := "has no meaning here and is ignored"
		if len(e.ignored) > 1 {
			rest = "have no meaning here and are ignored"
		}
		d.warn(e.line, fmt.Sprintf("%s: %s of another program %s", e.at, strings.Join(e.ignored, ", "), rest))
	}
}

// transportOf reads a transport in any spelling: "" for none, "remote" for
// HTTP of either kind, the text itself if it is unknown.
func transportOf(s string) string {
	switch plain := strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(s)); plain {
	case "", "remote", "sse", "stdio", "http":
		return plain
	case "local":
		return "stdio"
	case "streamablehttp":
		return "http"
	}
	return s
}

// readEnvFile adds the NAME=value lines of a file to the environment; env
// itself wins. Nothing in the file is expanded.
func (d *decoder) readEnvFile(e *entry) {
	data, err := os.ReadFile(e.envFile)
	if err != nil {
		d.value(e.line, fmt.Sprintf("%s.envFile: %v; correct the path, or remove it", e.at, err))
		return
	}
	for i, line := range strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(name, " \t\"'") {
			// The line is not shown: it may be a secret.
			d.value(e.line, fmt.Sprintf("%s.envFile: line %d of %s is not NAME=value; correct it", e.at, i+1, e.envFile))
			return
		}
		if _, ok := e.config.Env[name]; ok {
			continue
		}
		if e.config.Env == nil {
			e.config.Env = map[string]secret.String{}
		}
		e.config.Env[name] = secret.String(unquoteEnv(strings.TrimSpace(value)))
	}
}

// unquoteEnv takes the quotes off a value, and a comment after a blank off a
// value without quotes.
func unquoteEnv(v string) string {
	if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') {
		if end := strings.LastIndexByte(v, v[0]); end > 0 {
			return v[1:end]
		}
	}
	if i := strings.Index(v, " #"); i >= 0 {
		v = strings.TrimSpace(v[:i])
	}
	return v
}
