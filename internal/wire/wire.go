// Package wire carries JSON-RPC messages as bytes: a tolerant line transport
// for both ends of a stdio connection, and parameters and results that pass
// through the SDK unchanged.
//
// It knows nothing of tools, servers or policy.
package wire

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// RawSuffix marks a method whose params and result stay bytes inside the SDK,
// which knows no such method. Transports of this package add it to incoming
// and strip it from outgoing requests.
const RawSuffix = "!raw"

// RawParams are request parameters kept as bytes.
type RawParams struct {
	mcp.ParamsBase
	Raw json.RawMessage
}

// RawResult is a result kept as bytes.
type RawResult struct {
	mcp.ResultBase
	Raw json.RawMessage
}
