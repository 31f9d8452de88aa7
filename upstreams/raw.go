package upstreams

import "github.com/modelcontextprotocol/go-sdk/mcp"

// dialedLink makes a link of a transport that somebody else opened.
func dialedLink(t mcp.Transport, ev linkEvents) *link {
	panic("todo")
}
