package upstreams

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/secret"
)

// Config is one entry of mcpServers after loading: variables replaced, paths
// absolute, other programs' spellings translated (package internal/config).
// Zero values mean the defaults named in the comments.
type Config struct {
	Name string `yaml:"-"` // the key in mcpServers

	// A stdio server.
	Command    string                   `yaml:"command"`
	Args       []secret.String          `yaml:"args"`
	Env        map[string]secret.String `yaml:"env"`
	InheritEnv []string                 `yaml:"inheritEnv"` // names, or ["*"]
	Cwd        string                   `yaml:"cwd"`

	// A server over HTTP.
	URL       secret.String            `yaml:"url"`
	Transport string                   `yaml:"transport"` // http or sse; "": http, falling back to sse
	Headers   map[string]secret.String `yaml:"headers"`

	Enabled                   *bool                 `yaml:"enabled"` // nil: true
	Description               string                `yaml:"description"`
	Trust                     Trust                 `yaml:"trust"`       // "": TrustSchema
	CatalogMode               string                `yaml:"catalogMode"` // search or direct-only; "": search
	Tools                     map[string]ToolConfig `yaml:"tools"`       // by upstream name
	ToolFilter                ToolFilter            `yaml:"toolFilter"`
	ValidateArguments         string                `yaml:"validateArguments"` // error, warn, off; "": error
	SupportsParallelToolCalls bool                  `yaml:"supportsParallelToolCalls"`
	MaxConcurrentCalls        int                   `yaml:"maxConcurrentCalls"` // 0: no limit
	MaxResultBytes            int                   `yaml:"maxResultBytes"`     // 0: DefaultMaxResultBytes
	StartTimeoutMs            int                   `yaml:"startTimeoutMs"`     // 0: DefaultStartTimeoutMs
	CallTimeoutMs             *int                  `yaml:"callTimeoutMs"`      // nil: DefaultCallTimeoutMs; 0: none

	// Broken is why this entry alone cannot work (a missing variable, …): the
	// server is Failed and is never started.
	Broken error `yaml:"-"`
	// Hidden are further values that must not be shown, besides what Secrets
	// finds in the fields above: those of variables that went into them.
	Hidden []secret.String `yaml:"-"`
	// Dial replaces Command and URL: in-process servers of demo and of tests.
	Dial func(context.Context) (mcp.Transport, error) `yaml:"-"`
}

// ToolConfig is what the configuration says of one tool.
type ToolConfig struct {
	CatalogMode string `yaml:"catalogMode"` // "": the server's
}

// ToolFilter narrows a server's tools by upstream name; * is any run of
// characters. Include comes first, then Exclude. Nil Include means all.
type ToolFilter struct {
	Include []string `yaml:"include"`
	Exclude []string `yaml:"exclude"`
}

// Defaults of the fields of [Config].
const (
	DefaultMaxResultBytes = 16 << 20
	DefaultStartTimeoutMs = 60_000
	DefaultCallTimeoutMs  = 600_000
)

// The values of catalogMode and validateArguments.
const (
	catalogSearch     = "search"
	catalogDirectOnly = "direct-only"

	validateError = "error"
	validateWarn  = "warn"
	validateOff   = "off"
)

// Validate reports everything that is wrong with the entry, one sentence each
// (joined by [errors.Join]). A Broken entry is fine: it costs itself alone.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("server %q: "+format, append([]any{c.Name}, args...)...))
	}
	if strings.TrimSpace(c.Name) == "" {
		bad("a server needs a name")
	}
	if c.Broken == nil {
		c.validateWay(bad)
	}
	oneOf := func(key, value string, allowed ...string) {
		if value != "" && !slices.Contains(allowed, value) {
			bad("%s is %q, want %s", key, value, strings.Join(allowed, " or "))
		}
	}
	oneOf("trust", string(c.Trust), string(TrustNone), string(TrustSchema), string(TrustFull))
	oneOf("catalogMode", c.CatalogMode, catalogSearch, catalogDirectOnly)
	oneOf("validateArguments", c.ValidateArguments, validateError, validateWarn, validateOff)
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		oneOf(fmt.Sprintf("tools.%s.catalogMode", name), c.Tools[name].CatalogMode, catalogSearch, catalogDirectOnly)
	}
	notNegative := func(key string, n int) {
		if n < 0 {
			bad("%s is %d, want 0 or more", key, n)
		}
	}
	notNegative("maxConcurrentCalls", c.MaxConcurrentCalls)
	notNegative("maxResultBytes", c.MaxResultBytes)
	notNegative("startTimeoutMs", c.StartTimeoutMs)
	if c.CallTimeoutMs != nil {
		notNegative("callTimeoutMs", *c.CallTimeoutMs)
	}
	return errors.Join(errs...)
}

// validateWay checks how the server is reached: exactly one of command and
// url (or Dial), with the keys that belong to it.
func (c *Config) validateWay(bad func(string, ...any)) {
	command, byURL := c.Command != "", c.URL != ""
	switch {
	case c.Dial != nil && (command || byURL):
		bad("an in-process server has neither command nor url")
	case c.Dial != nil:
	case command && byURL:
		bad("it has both command and url, keep the one that is meant")
	case !command && !byURL:
		bad("it has neither command nor url, write one of them")
	case command:
		if c.Transport != "" {
			bad("transport belongs to url, remove it: a command speaks over stdin and stdout")
		}
		if len(c.Headers) > 0 {
			bad("headers belong to url; give a command its secrets in env")
		}
	case byURL:
		if len(c.Args) > 0 || len(c.Env) > 0 || len(c.InheritEnv) > 0 || c.Cwd != "" {
			bad("args, env, inheritEnv and cwd belong to command, not to url")
		}
		if c.Transport != "" && c.Transport != "http" && c.Transport != "sse" {
			bad("transport is %q, want http or sse", c.Transport)
		}
		u, err := url.Parse(c.URL.Reveal())
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			bad("url must begin with http:// or https:// and name a host") // without the text: it may hold a token
		}
	}
}

// validateAll checks the entries together: every name once, also when case is
// ignored and when made safe, so that no neighbour can take a name over.
func validateAll(configs []Config) error {
	var errs []error
	names, safes := map[string]string{}, map[string]string{}
	for i := range configs {
		c := &configs[i]
		errs = append(errs, c.Validate())
		folded, safe := strings.ToLower(c.Name), strings.ToLower(SafeName(c.Name))
		switch other, taken := names[folded]; {
		case taken && other == c.Name:
			errs = append(errs, fmt.Errorf("server %q is configured twice", c.Name))
		case taken:
			errs = append(errs, fmt.Errorf("servers %q and %q differ only by case: rename one of them", other, c.Name))
		default:
			if other, taken := safes[safe]; taken {
				errs = append(errs, fmt.Errorf("servers %q and %q have the same safe name %q: rename one of them", other, c.Name, SafeName(c.Name)))
			}
		}
		names[folded], safes[safe] = c.Name, c.Name
	}
	return errors.Join(errs...)
}

func (c *Config) enabled() bool { return c.Enabled == nil || *c.Enabled }

func (c *Config) trust() Trust {
	if c.Trust == "" {
		return TrustSchema
	}
	return c.Trust
}

func (c *Config) catalogMode(tool string) string {
	if m := c.Tools[tool].CatalogMode; m != "" {
		return m
	}
	if c.CatalogMode != "" {
		return c.CatalogMode
	}
	return catalogSearch
}

func (c *Config) validateMode() string {
	if c.ValidateArguments == "" {
		return validateError
	}
	return c.ValidateArguments
}

func (c *Config) maxResultBytes() int {
	if c.MaxResultBytes == 0 {
		return DefaultMaxResultBytes
	}
	return c.MaxResultBytes
}

func (c *Config) startTimeout() time.Duration {
	if c.StartTimeoutMs == 0 {
		return DefaultStartTimeoutMs * time.Millisecond
	}
	return time.Duration(c.StartTimeoutMs) * time.Millisecond
}

// callTimeout returns how long a call may stay without a sign of life; 0 is
// for ever.
func (c *Config) callTimeout() time.Duration {
	if c.CallTimeoutMs == nil {
		return DefaultCallTimeoutMs * time.Millisecond
	}
	return time.Duration(*c.CallTimeoutMs) * time.Millisecond
}

// equal tells whether a running server of configuration c can stay as it is
// under d. Two Dial functions count as equal: a Go program cannot compare
// them, and the entry's name says what they reach.
func (c *Config) equal(d *Config) bool {
	return bytes.Equal(c.fingerprint(), d.fingerprint())
}

// fingerprint writes the whole configuration, secrets included, in one way.
// It is for comparing and hashing only. New fields are in it by themselves.
func (c *Config) fingerprint() []byte {
	b, err := json.Marshal(revealed(reflect.ValueOf(*c)))
	if err != nil {
		panic(err) // plain data always encodes
	}
	return b
}

// revealed turns a value into maps, slices and plain strings: the methods by
// which a secret.String hides itself are lost on the way.
func revealed(v reflect.Value) any {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Struct:
		m := map[string]any{}
		for i := range v.NumField() {
			m[v.Type().Field(i).Name] = revealed(v.Field(i))
		}
		return m
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		s := []any{}
		for i := range v.Len() {
			s = append(s, revealed(v.Index(i)))
		}
		return s
	case reflect.Map:
		m := map[string]any{}
		for it := v.MapRange(); it.Next(); {
			m[it.Key().String()] = revealed(it.Value())
		}
		return m
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return revealed(v.Elem())
	case reflect.Func:
		return !v.IsNil()
	case reflect.Interface: // Broken
		if err, ok := reflect.TypeAssert[error](v); ok {
			return err.Error()
		}
		return nil
	default:
		return v.Interface()
	}
}

// admits tells whether the filter lets a tool through.
func (f *ToolFilter) admits(tool string) bool {
	matches := func(pattern string) bool { return MatchPattern(pattern, tool) }
	return (f.Include == nil || slices.ContainsFunc(f.Include, matches)) && !slices.ContainsFunc(f.Exclude, matches)
}

// unmatched tells of names and patterns of the entry that speak of no tool of
// the server: most likely they are misspelt.
func (c *Config) unmatched(tools map[string]*Tool) (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		if tools[name] == nil {
			warnings = append(warnings, fmt.Sprintf("tools.%s speaks of a tool that the server does not list", name))
		}
	}
	for key, patterns := range map[string][]string{"include": c.ToolFilter.Include, "exclude": c.ToolFilter.Exclude} {
		for _, p := range patterns {
			matched := false
			for name := range tools {
				matched = matched || MatchPattern(p, name)
			}
			if !matched {
				warnings = append(warnings, fmt.Sprintf("toolFilter.%s has %q, which matches no tool of the server", key, p))
			}
		}
	}
	slices.Sort(warnings)
	return warnings
}

// MatchPattern tells whether a pattern of the configuration matches the whole
// of s: "*" is any run of characters, also none, also ":" and "/"; everything
// else is itself, and case counts (contract 7).
func MatchPattern(pattern, s string) bool {
	part, rest, star := strings.Cut(pattern, "*")
	s, ok := strings.CutPrefix(s, part)
	if !star {
		return ok && s == ""
	}
	for ok {
		// The first place is as good as any: a star follows that takes the rest.
		if part, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(s, part)
		}
		_, s, ok = strings.Cut(s, part)
	}
	return false
}
