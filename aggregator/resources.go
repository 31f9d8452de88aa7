package aggregator

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

// directoryURI is the only resource: the directory as a text.
const directoryURI = "toolsearch://directory"

// listResources answers resources/list: the directory, in directory mode.
func (s *Server) listResources(_ context.Context, r *request) (json.RawMessage, error) {
	if err := s.inDirectoryMode(r.session, methodListResources); err != nil {
		return nil, err
	}
	if err := noCursor(r.params); err != nil {
		return nil, err
	}
	return encode(map[string]any{"resources": []map[string]string{{
		"uri": directoryURI, "name": "directory", "title": "Tool directory",
		"description": "The tools behind this server, one a line", "mimeType": "text/plain",
	}}}), nil
}

// listTemplates answers resources/templates/list: there are none.
func (s *Server) listTemplates(_ context.Context, r *request) (json.RawMessage, error) {
	if err := s.inDirectoryMode(r.session, methodListTemplates); err != nil {
		return nil, err
	}
	return json.RawMessage(`{"resourceTemplates":[]}`), nil
}

// codeNotFound: "Resource not found: -32002" (MCP 2025-11-25, resources).
const codeNotFound = -32002

// readResource answers resources/read.
func (s *Server) readResource(_ context.Context, r *request) (json.RawMessage, error) {
	if err := s.inDirectoryMode(r.session, methodReadResource); err != nil {
		return nil, err
	}
	params, err := rawjson.Parse(r.params)
	if err != nil {
		return nil, invalidParams("resources/read: params: %v", err)
	}
	uri, ok := params.Text("uri")
	if !ok {
		return nil, invalidParams("resources/read: uri must be a string")
	}
	if uri != directoryURI {
		return nil, &wire.Error{Code: codeNotFound, Message: "resource not found; there is only " + directoryURI, Data: encode(map[string]string{"uri": uri})}
	}
	return encode(map[string]any{"contents": []map[string]string{{
		"uri": directoryURI, "mimeType": "text/plain", "text": s.faceFor(r.session.face()).directory,
	}}}), nil
}

// inDirectoryMode refuses what is not advertised in other modes.
func (s *Server) inDirectoryMode(c *session, method string) error {
	if c.face().mode == ModeDirectory {
		return nil
	}
	return &wire.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + ": not supported, except in directory mode"}
}
