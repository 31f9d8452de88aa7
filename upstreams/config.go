package upstreams

import (
	"context"

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

const (
	DefaultMaxResultBytes = 16 << 20
	DefaultStartTimeoutMs = 60_000
	DefaultCallTimeoutMs  = 600_000
)
