// Package upstreams owns everything about the MCP servers behind us: how they
// are reached, their life, what they list, and the words that the rest of the
// program shares (Tool, Call, Result, Requester).
//
// It does not decide who may call what (package policy), does not search
// (package directory) and shows nothing to a client (package aggregator).
package upstreams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Trust tells how far a server's own words are believed (contract 5).
type Trust string

const (
	TrustNone   Trust = "none"   // signatures are "unknown", parameters are not indexed
	TrustSchema Trust = "schema" // the default: structural signatures only
	TrustFull   Trust = "full"   // output hints, output contract, annotations for policy
)

// Annotations are the hints of a tool; nil means that the server said nothing.
type Annotations struct {
	ReadOnly    *bool
	Destructive *bool
	Idempotent  *bool
	OpenWorld   *bool
}

// Tool is one tool of one server, immutable once it is in a [Snapshot].
type Tool struct {
	Server   string // name of the server as configured
	Safe     string // safe server name, the middle part of ID
	Name     string // the upstream's own name, verbatim
	ID       string // mcp:<safe>:<name>
	FullName string // <safe>__<name>, the flat name a client may call

	Title        string          // title, else annotations.title, else ""
	Description  string          // as the server wrote it
	InputSchema  json.RawMessage // exact bytes; nil if the server gave none
	OutputSchema json.RawMessage // exact bytes; nil if the server gave none
	Annotations  Annotations
	Raw          json.RawMessage // the whole definition as the server gave it

	Trust         Trust
	DirectOnly    bool   // listed as it is, never in the catalog
	Hidden        string // why no caller sees it ("app-only tool", …); "" for all others
	ParallelCalls bool   // the server's supportsParallelToolCalls
	Validate      string // the server's validateArguments: error, warn or off

	checker *checker // lazily compiled schemas, shared by equal schemas
}

// ServerInfo is what is known of a server apart from its tools.
type ServerInfo struct {
	Name         string // as configured
	Safe         string
	Title        string // serverInfo.title, else serverInfo.name; "" while unknown
	Instructions string
	Description  string // the configuration's own line, in place of a derived one
	Live         bool   // its tools come from the running session
	Known        bool   // its tools are known, live or from the last start
}

// Snapshot is what all servers offer at one moment. It is immutable, and the
// same pointer as long as nothing in it changed.
type Snapshot struct {
	Tools   []*Tool      // sorted by ID; one entry an ID; hidden ones included
	Servers []ServerInfo // sorted by Name; enabled servers only
}

// State is where a server is in its life.
type State string

const (
	Idle      State = "idle"       // not started yet
	Starting  State = "starting"   // first connect under way, no tools known
	Cached    State = "cached"     // not connected; tools of the last start are known
	Ready     State = "ready"      // connected and listed
	NeedsAuth State = "needs-auth" // refused our credentials, or has none
	Backoff   State = "backoff"    // lost or refused; will be tried again
	Failed    State = "failed"     // its configuration cannot work; not tried again
	Closed    State = "closed"
)

// Status is the health of one server, for check, search notes and errors.
type Status struct {
	Name, Safe string
	State      State
	Tools      int      // tools known, hidden ones included
	ListBytes  int      // bytes of the tools as listed by the server
	Protocol   string   // negotiated protocol version, "" if never connected
	Err        error    // why it is not ready; nil when ready
	Hint       string   // what to do about Err, one sentence; ""
	Stderr     string   // the end of what a stdio server wrote to stderr
	Warnings   []string // skipped tools, noise on stdout, repeated cursor, …
}

// Via is the way by which a call reached us.
type Via string

const (
	ViaToolCall Via = "tool_call"
	ViaCode     Via = "code"
	ViaDirect   Via = "direct"
	ViaHydrated Via = "hydrated"
)

// Caller is who asked. Profile is chosen from a verified token, from our own
// command line, or from the client's name (which may only narrow).
type Caller struct {
	Session string // our id of the MCP session, for telemetry
	Client  string // clientInfo.name, not verified
	Profile string // "" for none
}

// Client is the downstream side of one call: what an upstream may tell or ask
// the client while the call runs. Its methods do not block on the network.
type Client interface {
	// Progress hands on the params of a notifications/progress as the upstream
	// sent them; the progressToken in them is ours, not the client's.
	Progress(params json.RawMessage)
}

// Call is one request that leaves us. It is built in package aggregator and
// passed down the chain of Requesters unchanged, but for Args.
type Call struct {
	ID     string // unique in this process, for telemetry and for Parent
	Parent string // ID of the script's call, "" outside of scripts
	From   Caller
	Via    Via
	Tool   *Tool
	Args   json.RawMessage // a JSON object; nil means {}
	Meta   json.RawMessage // the client's _meta object less its progressToken, or nil
	Client Client          // nil: nobody listens
}

// Result is the upstream's answer.
type Result struct {
	Raw  json.RawMessage // the result object, byte for byte
	Note string          // what we did or saw on the way, for _meta; ""
}

// JoinNotes puts the notes of one result together; blank ones are left out.
func JoinNotes(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return a + "; " + b
}

// Requester carries out calls. The chain is built once, in cmd/toolsearch-mcp.
// Do blocks until the answer is there, ctx ends or a limit of the server is
// reached. Errors are those of this package, of package policy, or ctx's.
type Requester interface {
	Do(ctx context.Context, call Call) (*Result, error)
}

var (
	// ErrUnknownTool: the server is ready and does not have the tool (any more).
	ErrUnknownTool = errors.New("unknown tool")
	// ErrUnavailable: the server cannot be reached now. Its text has the cause.
	ErrUnavailable = errors.New("server unavailable")
	// ErrNeedsAuth: the server wants a login or other credentials.
	ErrNeedsAuth = errors.New("server needs credentials")
	// ErrTimedOut: the server was asked and did not answer within its limit.
	ErrTimedOut = errors.New("no answer within the time limit")
	// ErrLost: the connection broke after the call was sent; it may have run.
	ErrLost = errors.New("connection lost during the call")
	// ErrTooLarge: the answer was over maxResultBytes and was dropped.
	ErrTooLarge = errors.New("result too large")
	// ErrClosed: we are shutting down, or the server left the configuration.
	ErrClosed = errors.New("closed")
)

// RPCError is a JSON-RPC error that the upstream answered, unchanged.
type RPCError struct {
	Code    int64
	Message string
	Data    json.RawMessage
}

func (e *RPCError) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// ArgumentsError says why arguments do not fit a tool's input schema. Nothing
// was sent. Problems are complete sentences without full stop, for the model.
type ArgumentsError struct {
	Tool     *Tool
	Problems []string
}

func (e *ArgumentsError) Error() string {
	return fmt.Sprintf("arguments of %s: %v", e.Tool.ID, e.Problems)
}

// OutputError: the result of a trust: full tool broke its output schema. The
// tool has already run.
type OutputError struct {
	Tool     *Tool
	Problems []string
}

func (e *OutputError) Error() string {
	return fmt.Sprintf("result of %s breaks its outputSchema: %v", e.Tool.ID, e.Problems)
}
