package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// The statuses of a call that did not succeed (contract 4).
const (
	statusBlocked     = "blocked"
	statusTimedOut    = "timed_out"
	statusCancelled   = "cancelled"
	statusUnavailable = "unavailable"
	statusInvalid     = "invalid_arguments"
	statusUnknown     = "unknown_tool"
	statusFailed      = "failed"
)

// failure is a call that did not succeed, in words for the model: what
// happened; what to do next. Causes, addresses and traces stay in the log.
type failure struct {
	status string
	text   string
	tool   *upstreams.Tool     // nil if the selector named none
	rpc    *upstreams.RPCError // the upstream's own JSON-RPC error, if it is one
}

func (f *failure) Error() string { return f.status + ": " + f.text }

// unknownTool says that a selector names nothing, and what to do.
func unknownTool(err error, selector string, p phrases) *failure {
	f := &failure{status: statusUnknown}
	var near *directory.ResolveError
	errors.As(err, &near)
	shown := directory.OneLine(selector, 120)
	if near != nil && len(near.Ambiguous) > 0 {
		f.text = fmt.Sprintf("%q is the name of several tools; use one of these ids: %s", shown, directory.JoinNames(clean(near.Ambiguous), 600))
		return f
	}
	f.text = fmt.Sprintf("there is no tool %q", shown)
	if near != nil && len(near.Near) > 0 {
		f.text += "; did you mean " + strings.Join(clean(near.Near), ", ") + "?"
		them := "it"
		if len(near.Near) > 1 {
			them = "one of them"
		}
		f.text += fmt.Sprintf(" Call %s by %s; else %s", them, p.call, p.next(wordsOf(selector)))
		return f
	}
	f.text += "; " + p.next(wordsOf(selector))
	return f
}

func clean(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = directory.OneLine(n, 120)
	}
	return out
}

// wordsOf turns a selector into words to search for.
func wordsOf(selector string) string {
	selector = strings.TrimPrefix(strings.TrimSpace(selector), "mcp:")
	words := strings.FieldsFunc(directory.OneLine(selector, 80), func(r rune) bool {
		return strings.ContainsRune("_-:./ \t\"'\\{}[]()<>", r)
	})
	if len(words) == 0 {
		return "what the tool should do"
	}
	return strings.Join(words, " ")
}

// directOnly says that a tool is not for the catalog.
func directOnly(t *upstreams.Tool) *failure {
	return &failure{status: statusUnknown, tool: t,
		text: fmt.Sprintf("%s is not in the catalog: it is listed as %s, call it directly", shownID(t), t.FullName)}
}

// shownID is the id of a tool as a text may show it.
func shownID(t *upstreams.Tool) string {
	return directory.OneLine(t.ID, 160)
}

// translate turns what came up the chain into words. It is the only place
// where an error becomes text for a model.
func translate(ctx context.Context, err error, t *upstreams.Tool, p phrases) *failure {
	var (
		f         *failure
		denied    *policy.DeniedError
		blocked   *policy.BlockedError
		arguments *upstreams.ArgumentsError
		output    *upstreams.OutputError
		rpc       *upstreams.RPCError
	)
	fail := func(status, format string, args ...any) *failure {
		return &failure{status: status, tool: t, text: fmt.Sprintf(format, args...)}
	}
	server, id := directory.OneLine(t.Server, 60), shownID(t)
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &denied):
		return unknownTool(nil, id, p)
	case errors.As(err, &blocked):
		return fail(statusBlocked, "%s was blocked before it ran: %s; do not try it another way, tell the user", id, directory.Clean(blocked.Reason))
	case errors.As(err, &arguments):
		return fail(statusInvalid, "the arguments do not fit %s, nothing was called: %s; expected: %s",
			id, directory.Clean(strings.Join(arguments.Problems, "; ")), directory.InputSignature(t.InputSchema))
	case errors.As(err, &output):
		return fail(statusFailed, "%s has run, but its result breaks its own outputSchema: %s; check what it did before you call it again",
			id, directory.Clean(strings.Join(output.Problems, "; ")))
	case errors.As(err, &rpc):
		f := fail(statusFailed, "server %q answered with an error: %s (code %d)", server, cut(directory.Clean(rpc.Message), 4000), rpc.Code)
		if d := rpc.Data; !rawjson.IsNull(d) && len(d) <= 1000 {
			f.text += "; data: " + directory.Clean(string(d))
		}
		f.rpc = rpc
		return f
	case errors.Is(ctx.Err(), context.Canceled):
		return fail(statusCancelled, "the call of %s was cancelled; it may have acted already", id)
	case ctx.Err() != nil, errors.Is(err, upstreams.ErrTimedOut):
		return fail(statusTimedOut, "%s did not answer within the time limit and was cancelled; it may have acted already, so check before you call it again", id)
	case errors.Is(err, upstreams.ErrUnknownTool):
		f := fail(statusUnknown, "server %q no longer has the tool %s; %s", server, id, p.next(wordsOf(t.Name)))
		return f
	case errors.Is(err, upstreams.ErrNeedsAuth):
		return fail(statusUnavailable, "server %q needs credentials or a login; nothing was called; tell the user to run toolsearch-mcp check", server)
	case errors.Is(err, upstreams.ErrLost):
		return fail(statusUnavailable, "the connection to server %q broke during the call of %s; it may have acted already, so check before you call it again", server, id)
	case errors.Is(err, upstreams.ErrTooLarge):
		return fail(statusFailed, "%s has run, but its result was larger than maxResultBytes of server %q and was dropped; ask for less at a time", id, server)
	case errors.Is(err, upstreams.ErrClosed):
		return fail(statusUnavailable, "server %q is closed; nothing was called", server)
	case errors.Is(err, upstreams.ErrUnavailable):
		return fail(statusUnavailable, "server %q cannot be reached now; nothing was called; try again later, or tell the user to run toolsearch-mcp check", server)
	}
	return fail(statusFailed, "%s failed inside toolsearch-mcp; its log has the cause", id)
}

// notLive says that the server which has, or may have, what a selector names
// did not come up. Nothing was sent. t is nil if the tool is not known.
func notLive(ctx context.Context, err error, server, selector string, t *upstreams.Tool) *failure {
	f := &failure{status: statusUnavailable, tool: t}
	server, selector = directory.OneLine(server, 60), directory.OneLine(selector, 120)
	owns := "whose tool this is"
	if t == nil {
		owns = "which may have it"
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		f.status, f.text = statusCancelled, fmt.Sprintf("%s was cancelled before it was called", selector)
	case errors.Is(err, upstreams.ErrNeedsAuth):
		f.text = fmt.Sprintf("%s cannot be called: server %q, %s, needs credentials or a login; tell the user to run toolsearch-mcp check", selector, server, owns)
	default:
		f.text = fmt.Sprintf("%s cannot be called now: server %q, %s, is not ready; nothing was called; try again in a moment, or tell the user to run toolsearch-mcp check", selector, server, owns)
	}
	return f
}

// result is the failure as the result of a call through a control tool, or of
// a direct or hydrated one.
func (f *failure) result() json.RawMessage {
	return rawjson.Object{
		{Name: "content", Value: content(f.text)},
		{Name: "isError", Value: json.RawMessage("true")},
		{Name: "_meta", Value: metaMember(nil, callMeta(f.tool, f.status, ""))},
	}.Bytes()
}

// passthrough returns the error that the client must see as it is, if f is
// one: on direct calls every JSON-RPC error of the upstream, else those that
// only the client can act on.
func (f *failure) passthrough(direct bool) error {
	if f.rpc == nil || (!direct && f.rpc.Code != upstreams.CodeURLElicitation) {
		return nil
	}
	return &wire.Error{Code: f.rpc.Code, Message: f.rpc.Message, Data: f.rpc.Data}
}

// callMeta is the value of _meta["toolsearch/call"].
func callMeta(t *upstreams.Tool, status, note string) json.RawMessage {
	var o rawjson.Object
	add := func(name, value string) {
		if value != "" {
			o = append(o, rawjson.Member{Name: name, Value: quote(value)})
		}
	}
	if t != nil {
		add("id", t.ID)
		add("name", t.FullName)
		add("source", sourceMCP)
	}
	add("status", status)
	add("note", note)
	return o.Bytes()
}

const (
	sourceMCP   = "mcp"
	callMetaKey = "toolsearch/call"
)

// metaMember adds ours to the _meta of a result, whose other members stay.
// withoutOurs removes from a result what only we may say of a call.
func withoutOurs(o rawjson.Object) (rawjson.Object, bool) {
	meta, err := rawjson.Parse(o.Get("_meta"))
	if err != nil || !meta.Has(callMetaKey) {
		return o, false
	}
	if len(meta) == 1 {
		return o.Without("_meta"), true
	}
	return o.With("_meta", meta.Without(callMetaKey).Bytes()), true
}

func metaMember(meta, ours json.RawMessage) json.RawMessage {
	o, err := rawjson.Parse(meta)
	if err != nil {
		o = nil // absent, null or no object
	}
	return o.With(callMetaKey, ours).Bytes()
}
