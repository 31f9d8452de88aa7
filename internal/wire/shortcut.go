package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
)

// The SDK decodes and encodes params and results several times on their way,
// each time with a new buffer of 32 KB: nine tenths of what a small call costs
// us, and several copies of a large one. Nothing of that is wanted for bytes
// that only pass through. So they travel where the SDK does not look: params
// in the request's Extra, results in an error.
//
// Requests of revision 2026-07-28 say in their _meta what others said once, in
// initialize: the SDK has to see that, and sees it once too.

// answer is a result on its way through the SDK.
type answer struct{ raw json.RawMessage }

func (*answer) Error() string { return "a result that passes through as bytes" }

// KeepRaw makes the result of a raw request pass the SDK undecoded. It is for
// transports; [CallRaw] takes it up again.
func KeepRaw(r *jsonrpc.Response) {
	if r.Error == nil {
		r.Result, r.Error = nil, &answer{r.Result}
	}
}

type answerKey struct{}

// Keep hands [CallRaw] the result of the request in whose ctx it is called, and
// reports false if that is not a raw one. It is for what stands below a
// transport of the SDK, which then gets any other result.
func Keep(ctx context.Context, result json.RawMessage) bool {
	a, ok := ctx.Value(answerKey{}).(*answer)
	if ok {
		a.raw = result
	}
	return ok
}

// paramsKey is no name that a header can have.
const paramsKey = "raw params"

// inExtra moves params into Extra.
func inExtra(r *jsonrpc.Request) {
	r.Extra = &mcp.RequestExtra{Header: http.Header{paramsKey: {string(r.Params)}}}
	r.Params = nil
}

// peerOf returns what params of revision 2026-07-28 say of their connection,
// as it is written: all that the SDK judges a raw request by. Others say "".
func peerOf(params json.RawMessage) string {
	const vendor = "io.modelcontextprotocol"
	if len(params) == 0 || params[0] != '{' {
		return ""
	}
	if !bytes.Contains(params, []byte(vendor)) && !bytes.Contains(params, []byte(`\u`)) { // names may be escaped
		return ""
	}
	var peer []byte
	for key, meta := range rawjson.Members(params) {
		if key != "_meta" || meta[0] != '{' {
			continue
		}
		for key, value := range rawjson.Members(meta) {
			if strings.HasPrefix(key, vendor+"/") {
				peer = append(append(append(peer, rawjson.Quote(key)...), ':'), value...)
			}
		}
	}
	return string(peer)
}

// isResult tells whether an answer of ours is a result, raw or not.
func isResult(r *jsonrpc.Response) bool {
	_, raw := r.Error.(*answer) //nolint:errorlint // the SDK hands on what our handler gave it
	return raw || r.Error == nil
}

// outOfExtra is the outermost middleware of a server with raw methods: it
// takes up what inExtra did, and sends results the same way.
func outOfExtra(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		r, ok := req.(*mcp.ServerRequest[*RawParams])
		if !ok || r.Params != nil || r.Extra == nil || len(r.Extra.Header[paramsKey]) == 0 {
			return next(ctx, method, req)
		}
		params := []byte(r.Extra.Header[paramsKey][0])
		r.Params, r.Extra = new(RawParams), nil
		if err := r.Params.UnmarshalJSON(params); err != nil {
			return nil, &Error{Code: jsonrpc.CodeInvalidParams, Message: "params: " + err.Error()}
		}
		res, err := next(ctx, method, req)
		if raw, ok := res.(*RawResult); ok && err == nil && raw != nil && raw.Meta == nil {
			return nil, &answer{raw.Raw}
		}
		return res, err
	}
}
