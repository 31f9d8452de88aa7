package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
)

// Envelope is one JSON-RPC message, with everything inside it as the bytes
// that were read.
type Envelope struct {
	ID      json.RawMessage // nil in a notification; never the JSON null in a request
	Method  string
	Request bool            // a request or notification, else a response
	Raw     bool            // of EnvelopeOf: the SDK's method had RawSuffix
	Params  json.RawMessage // nil if absent or null
	Result  json.RawMessage
	Error   json.RawMessage
}

// ErrNotJSON and ErrNotRPC are what ParseEnvelope refuses: bytes that are no
// JSON, and JSON that is no JSON-RPC 2.0 message.
var (
	ErrNotJSON = errors.New("not JSON")
	ErrNotRPC  = errors.New("not a JSON-RPC 2.0 message")

	errEmpty = fmt.Errorf(`%w: none of "method", "result" and "error" is there`, ErrNotRPC)
)

// ParseEnvelope reads one message. It compares keys byte for byte after
// unescaping, so "Method" is an unknown key, and refuses a message that has a
// key of JSON-RPC twice: two readers could take it for two messages. The
// envelope aliases b. With ErrNotRPC the ID is set if it is usable.
func ParseEnvelope(b []byte) (Envelope, error) {
	if !json.Valid(b) {
		return Envelope{}, ErrNotJSON
	}
	b = bytes.TrimSpace(b)
	if b[0] != '{' {
		what := rawjson.Kind(b)
		if b[0] == '[' {
			what += " (batches are not supported)"
		}
		return Envelope{}, fmt.Errorf("%w: %s", ErrNotRPC, what)
	}
	var (
		e       Envelope
		version string
		method  json.RawMessage
		slots   = [...]struct {
			key   string
			value *json.RawMessage
		}{{"id", &e.ID}, {"method", &method}, {"params", &e.Params}, {"result", &e.Result}, {"error", &e.Error}}
		twice string
	)
	for key, value := range rawjson.Members(b) {
		if key == "jsonrpc" {
			if version != "" {
				twice = key
			}
			version = string(value)
			continue
		}
		for _, s := range slots {
			if s.key == key {
				if *s.value != nil {
					twice = key
				}
				*s.value = value
			}
		}
	}
	hasID := e.ID != nil
	if !usableID(e.ID) {
		e.ID = nil
	}
	bad := func(why string) (Envelope, error) {
		return Envelope{ID: e.ID}, fmt.Errorf("%w: %s", ErrNotRPC, why)
	}
	switch {
	case twice != "":
		e.ID = nil // it could be the one that is there twice
		return bad("the key " + strconv.Quote(twice) + " is there twice")
	case version != `"2.0"`:
		return bad(`"jsonrpc" is not "2.0"`)
	case method != nil:
		if method[0] != '"' {
			return bad(`"method" is not a string`)
		}
		if hasID && e.ID == nil {
			return bad(`"id" is neither a string nor a number`)
		}
		e.Method, e.Request = rawjson.Unquote(method), true
		if string(e.Params) == "null" {
			e.Params = nil
		}
		e.Result, e.Error = nil, nil
		return e, nil
	}
	if string(e.Error) == "null" {
		e.Error = nil
	}
	e.Params = nil
	if e.Result == nil && e.Error == nil {
		return Envelope{ID: e.ID}, errEmpty
	}
	return e, nil
}

// usableID tells whether a request may carry this id: MCP allows strings and
// numbers, not null.
func usableID(id json.RawMessage) bool {
	return len(id) > 0 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9')
}

// Bytes encodes the envelope in one line.
func (e Envelope) Bytes() []byte {
	b := make([]byte, 0, 64+len(e.ID)+len(e.Method)+len(e.Params)+len(e.Result)+len(e.Error))
	b = append(b, `{"jsonrpc":"2.0"`...)
	member := func(key string, value []byte) {
		b = append(b, `,"`...)
		b = append(b, key...)
		b = append(b, `":`...)
		b = append(b, value...)
	}
	if e.ID != nil {
		member("id", e.ID)
	}
	switch {
	case e.Request:
		member("method", rawjson.Quote(e.Method))
		if len(e.Params) > 0 {
			member("params", e.Params)
		}
	case e.Error != nil:
		if e.ID == nil {
			member("id", []byte("null"))
		}
		member("error", e.Error)
	default:
		result := []byte(e.Result)
		if len(result) == 0 {
			result = []byte("{}")
		}
		member("result", result)
	}
	b = append(b, '}')
	if bytes.IndexByte(b, '\n') >= 0 {
		var line bytes.Buffer
		if json.Compact(&line, b) == nil {
			return line.Bytes()
		}
	}
	return b
}

// Inside the SDK, the id of an incoming request is a string that holds its
// JSON text: "7" and 7 stay two ids, and a number keeps all its digits, which
// the SDK's own integers and floats would not. The ids of our own requests are
// the SDK's small integers.

// requestID makes the SDK's id of an incoming request.
func requestID(id json.RawMessage) jsonrpc.ID {
	if id == nil {
		return jsonrpc.ID{}
	}
	out, err := jsonrpc.MakeID(string(id))
	if err != nil {
		panic(err) // strings are always accepted
	}
	return out
}

// responseID makes the SDK's id of an incoming response. Some servers answer
// "1" for 1; that is still our request 1.
func responseID(id json.RawMessage) (jsonrpc.ID, bool) {
	text := string(id)
	if len(id) > 0 && id[0] == '"' {
		text = rawjson.Unquote(id)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != float64(int64(n)) {
		return jsonrpc.ID{}, false
	}
	out, err := jsonrpc.MakeID(n)
	return out, err == nil
}

// Message converts the envelope for the SDK. It fails for a response that
// cannot be one of ours, and for a notifications/cancelled without id.
func (e Envelope) Message() (jsonrpc.Message, error) {
	if e.isCancelled() {
		id, reason := e.cancelled()
		if id == nil {
			return nil, fmt.Errorf("%w: a cancellation without id", ErrNotRPC)
		}
		params := append([]byte(`{"requestId":`), rawjson.Quote(string(id))...)
		if reason != nil {
			params = append(append(params, `,"reason":`...), reason...)
		}
		e.Params = append(params, '}')
	}
	if e.Request {
		return &jsonrpc.Request{ID: requestID(e.ID), Method: e.Method, Params: e.Params}, nil
	}
	id, ok := responseID(e.ID)
	if !ok {
		return nil, fmt.Errorf("%w: an answer with the id %s, which was never asked", ErrNotRPC, clip(string(e.ID), 40))
	}
	m := &jsonrpc.Response{ID: id, Result: e.Result}
	if e.Error != nil {
		m.Result, m.Error = nil, ParseError(e.Error)
	}
	return m, nil
}

func (e Envelope) isCancelled() bool {
	return e.Request && e.ID == nil && e.Method == "notifications/cancelled"
}

// cancelled reads what a notifications/cancelled is about; nil: absent.
func (e Envelope) cancelled() (id, reason json.RawMessage) {
	if len(e.Params) == 0 || e.Params[0] != '{' {
		return nil, nil
	}
	for key, value := range rawjson.Members(e.Params) {
		switch {
		case key == "requestId" && usableID(value):
			id = value
		case key == "reason" && value[0] == '"':
			reason = value
		}
	}
	return id, reason
}

// EnvelopeOf converts a message of the SDK, without RawSuffix.
func EnvelopeOf(m jsonrpc.Message) Envelope {
	switch m := m.(type) {
	case *jsonrpc.Request:
		method, raw := strings.CutSuffix(m.Method, RawSuffix)
		return Envelope{ID: ownID(m.ID), Method: method, Request: true, Raw: raw, Params: m.Params}
	case *jsonrpc.Response:
		e := Envelope{Result: m.Result}
		if text, ok := m.ID.Raw().(string); ok {
			e.ID = json.RawMessage(text)
		} else {
			e.ID = ownID(m.ID)
		}
		//nolint:errorlint // the SDK hands on what our handler gave it
		if kept, ok := m.Error.(*answer); ok {
			e.Result = kept.raw
		} else if m.Error != nil {
			e.Result, e.Error = nil, errorBytes(m.Error)
		}
		return e
	}
	panic(fmt.Sprintf("wire: message of type %T", m))
}

func ownID(id jsonrpc.ID) json.RawMessage {
	switch v := id.Raw().(type) {
	case int64:
		return strconv.AppendInt(nil, v, 10)
	case string:
		return rawjson.Quote(v)
	}
	return nil
}

// Error is a JSON-RPC error that keeps its code, message and data on the way
// through the SDK. [errors.As] finds a *jsonrpc.Error in it. It is not one
// itself because the SDK compares those by code, and would take an upstream's
// −32003 for its own "client is closing".
type Error struct {
	Code    int64
	Message string
	Data    json.RawMessage
}

func (e *Error) Error() string { return e.Message }

// As implements the interface that [errors.As] looks for.
func (e *Error) As(target any) bool {
	if t, ok := target.(**jsonrpc.Error); ok {
		*t = &jsonrpc.Error{Code: e.Code, Message: e.Message, Data: e.Data}
		return true
	}
	return false
}

// ParseError reads the error member of a response, also one that is not of
// the shape that JSON-RPC wants.
func ParseError(raw json.RawMessage) *Error {
	e := &Error{Code: jsonrpc.CodeInternalError}
	if len(raw) == 0 || raw[0] != '{' {
		if len(raw) > 0 && raw[0] == '"' {
			e.Message = rawjson.Unquote(raw)
		} else {
			e.Message = string(raw)
		}
		return e
	}
	for key, value := range rawjson.Members(raw) {
		switch {
		case key == "code":
			if n, err := strconv.ParseFloat(string(value), 64); err == nil && n == float64(int64(n)) {
				e.Code = int64(n)
			}
		case key == "message" && value[0] == '"':
			e.Message = rawjson.Unquote(value)
		case key == "data":
			e.Data = value
		}
	}
	if e.Message == "" {
		e.Message = clip(string(raw), 300)
	}
	return e
}

// errorBytes encodes what a handler returned as the error member of a response.
func errorBytes(err error) []byte {
	code, data, message := int64(0), json.RawMessage(nil), err.Error()
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		code, data = rpc.Code, rpc.Data
	}
	if code == 0 {
		code = jsonrpc.CodeInternalError
	}
	message = strings.ReplaceAll(message, RawSuffix, "")
	b := append([]byte(`{"code":`), strconv.FormatInt(code, 10)...)
	b = append(b, `,"message":`...)
	b = append(b, rawjson.Quote(message)...)
	if len(data) > 0 {
		b = append(b, `,"data":`...)
		b = append(b, data...)
	}
	return append(b, '}')
}

// clip cuts s to at most n bytes at a rune boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
