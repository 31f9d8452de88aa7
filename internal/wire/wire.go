// Package wire carries JSON-RPC messages as bytes: a tolerant line transport
// for both ends of a stdio connection, and parameters and results that pass
// through the SDK unchanged.
//
// It knows nothing of tools, servers or policy.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
)

// RawSuffix marks a method whose params and result stay bytes inside the SDK,
// which knows no such method. Transports of this package add it to incoming
// and strip it from outgoing requests.
const RawSuffix = "!raw"

// RawParams are request parameters kept as bytes: a JSON object. What the SDK
// sets in _meta is spliced into them; all other bytes stay.
type RawParams struct {
	mcp.ParamsBase // its Meta is nil until somebody asks for it or sets it
	Raw            json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *RawParams) UnmarshalJSON(b []byte) error { return keep(&p.Raw, b) }

// MarshalJSON implements [json.Marshaler].
func (p *RawParams) MarshalJSON() ([]byte, error) { return splice(p.Raw, p.Meta) }

// GetMeta implements [mcp.Params]. Changes of the map show in MarshalJSON.
func (p *RawParams) GetMeta() map[string]any {
	if p == nil {
		return nil
	}
	if p.Meta == nil {
		p.Meta = metaOf(p.Raw)
	}
	return p.Meta
}

// SetMeta implements [mcp.Params].
func (p *RawParams) SetMeta(m map[string]any) { p.Meta = orEmpty(m) }

// RawResult is a result kept as bytes: a JSON object. What the SDK sets in
// _meta is spliced into it; all other bytes stay.
type RawResult struct {
	mcp.ResultBase // its Meta is nil until somebody asks for it or sets it
	Raw            json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *RawResult) UnmarshalJSON(b []byte) error { return keep(&r.Raw, b) }

// MarshalJSON implements [json.Marshaler].
func (r *RawResult) MarshalJSON() ([]byte, error) { return splice(r.Raw, r.Meta) }

// GetMeta implements [mcp.Result]. Changes of the map show in MarshalJSON.
func (r *RawResult) GetMeta() map[string]any {
	if r.Meta == nil {
		r.Meta = metaOf(r.Raw)
	}
	return r.Meta
}

// SetMeta implements [mcp.Result].
func (r *RawResult) SetMeta(m map[string]any) { r.Meta = orEmpty(m) }

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

func keep(to *json.RawMessage, b []byte) error {
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' {
		return fmt.Errorf("%w: %s", rawjson.ErrNotObject, clip(string(b), 40))
	}
	*to = bytes.Clone(b)
	return nil
}

// metaOf decodes the _meta of an object; nil if there is none. Numbers keep
// their digits.
func metaOf(raw json.RawMessage) map[string]any {
	if !bytes.Contains(raw, []byte(`_meta`)) && !bytes.Contains(raw, []byte(`\u`)) || !json.Valid(raw) {
		return nil
	}
	var meta map[string]any
	for key, value := range rawjson.Members(raw) {
		if key == "_meta" && value[0] == '{' {
			if v, err := decode(value); err == nil {
				meta, _ = v.(map[string]any)
			}
		}
	}
	return meta
}

func decode(b []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

// splice returns raw with the members of meta in its _meta. Members that meta
// did not change keep their bytes and their place.
func splice(raw json.RawMessage, meta map[string]any) (json.RawMessage, error) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if meta == nil {
		return raw, nil
	}
	o, err := rawjson.Parse(raw)
	if err != nil {
		return nil, err
	}
	var old rawjson.Object
	if v := o.Get("_meta"); len(v) > 0 && v[0] == '{' {
		if old, err = rawjson.Parse(v); err != nil {
			return nil, err
		}
	}
	if len(meta) == 0 && len(old) == 0 {
		return raw, nil
	}
	out := old
	for _, m := range old {
		now, kept := meta[m.Name]
		if !kept {
			out = out.Without(m.Name)
			continue
		}
		if was, err := decode(m.Value); err == nil && reflect.DeepEqual(was, now) {
			continue
		}
		value, err := marshal(now)
		if err != nil {
			return nil, err
		}
		out = out.With(m.Name, value)
	}
	for _, name := range slices.Sorted(maps.Keys(meta)) {
		if old.Has(name) {
			continue
		}
		value, err := marshal(meta[name])
		if err != nil {
			return nil, err
		}
		out = out.With(name, value)
	}
	if reflect.DeepEqual(out, old) {
		return raw, nil
	}
	return o.With("_meta", out.Bytes()).Bytes(), nil
}

func marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(buf.Bytes(), "\n"), err
}

// RegisterRaw lets sessions of c send these methods with [CallRaw].
func RegisterRaw(c *mcp.Client, methods ...string) {
	for _, m := range methods {
		if err := mcp.AddSendingCustomMethod[*RawParams, *RawResult](c, m+RawSuffix); err != nil {
			panic(err) // no standard method ends in RawSuffix
		}
	}
}

// CallRaw sends a request of a method that was registered with [RegisterRaw]
// and returns the result as the server wrote it. Params is a JSON object; nil
// means {}. An error that the server answered comes back with code, message
// and data: errors.As finds a *jsonrpc.Error.
func CallRaw(ctx context.Context, s *mcp.ClientSession, method string, params json.RawMessage) (json.RawMessage, error) {
	kept := new(answer)
	res, err := mcp.CallCustomMethod[*RawParams, *RawResult](context.WithValue(ctx, answerKey{}, kept), s, method+RawSuffix, &RawParams{Raw: params})
	if err == nil && kept.raw == nil {
		return res.Raw, nil
	}
	if err == nil || errors.As(err, &kept) {
		if len(kept.raw) == 0 || kept.raw[0] != '{' {
			return nil, fmt.Errorf("%s: %w: %s", method, rawjson.ErrNotObject, clip(string(kept.raw), 40))
		}
		return kept.raw, nil
	}
	if answered, ok := errors.AsType[*Error](err); ok {
		return nil, answered
	}
	if inner := errors.Unwrap(err); inner != nil { // the SDK's text names method!raw
		err = inner
	}
	//nolint:errorlint // itself, and not the cause of another
	if rpc, ok := err.(*jsonrpc.Error); ok {
		return nil, &Error{Code: rpc.Code, Message: rpc.Message, Data: rpc.Data}
	}
	return nil, fmt.Errorf("%s: %w", method, err)
}

// ReceiveRaw lets s accept these methods with params and results kept as
// bytes: its receiving middleware sees the method with RawSuffix and a
// *RawParams, and must answer; a call that reaches the end of the middleware
// is refused. It is called once, after that middleware was added.
func ReceiveRaw(s *mcp.Server, methods ...string) {
	for _, m := range methods {
		err := mcp.AddReceivingCustomMethod(s, m+RawSuffix, func(context.Context, *mcp.ServerSession, *RawParams) (*RawResult, error) {
			return nil, &Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not supported", m)}
		})
		if err != nil {
			panic(err) // no standard method ends in RawSuffix
		}
	}
	s.AddReceivingMiddleware(outOfExtra)
}

// Pipe returns two ends of a connection in memory, with raw methods on both
// sides; none means tools/list and tools/call. Connect the server first.
func Pipe(rawMethods ...string) (client, server mcp.Transport) {
	if len(rawMethods) == 0 {
		rawMethods = []string{"tools/list", "tools/call"}
	}
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	return NewClientTransport(toClient, fromClient, Options{}),
		NewServerTransport(toServer, fromServer, Options{RawMethods: rawMethods})
}
