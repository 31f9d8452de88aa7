package wire

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Wrap makes a client transport of somebody else fit for raw calls: it strips
// [RawSuffix] from outgoing requests and gives progress (nil: not wanted) the
// params of each notifications/progress in the order of arrival. It is not for
// the SDK's streamable HTTP transport, which must not be wrapped.
func Wrap(t mcp.Transport, progress func(params json.RawMessage)) mcp.Transport {
	return &wrapped{t, progress}
}

type wrapped struct {
	mcp.Transport
	progress func(json.RawMessage)
}

func (w *wrapped) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := w.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &wrappedConn{c, w.progress}, nil
}

type wrappedConn struct {
	mcp.Connection
	progress func(json.RawMessage)
}

func (c *wrappedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *jsonrpc.Request:
			if c.progress != nil && m.Method == "notifications/progress" {
				c.progress(m.Params)
				continue
			}
		case *jsonrpc.Response:
			//nolint:errorlint // as the transport read it
			if rpc, ok := m.Error.(*jsonrpc.Error); ok {
				m.Error = &Error{Code: rpc.Code, Message: rpc.Message, Data: rpc.Data}
			}
		}
		return m, nil
	}
}

func (c *wrappedConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok && strings.HasSuffix(r.Method, RawSuffix) {
		m = &jsonrpc.Request{ID: r.ID, Method: strings.TrimSuffix(r.Method, RawSuffix), Params: r.Params, Extra: r.Extra}
	}
	return c.Connection.Write(ctx, m)
}
