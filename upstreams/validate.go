package upstreams

import "encoding/json"

// checker holds a tool's compiled schemas.
type checker struct{}

// CheckArguments compares arguments with the input schema, if it compiles.
// It returns the arguments to send (null members that the schema does not
// want dropped, JSON strings parsed where only an object or array fits), a
// note for the model ("" if none), and an *ArgumentsError in mode "error".
func (t *Tool) CheckArguments(args json.RawMessage) (fixed json.RawMessage, note string, err error) {
	panic("todo")
}

// CheckOutputSchema reports, for a TrustFull tool, an output schema that does
// not compile. It is asked before the call is made.
func (t *Tool) CheckOutputSchema() error { panic("todo") }

// CheckResult compares a TrustFull tool's structuredContent with its output
// schema: an *OutputError, or nil. Other tools: nil.
func (t *Tool) CheckResult(raw json.RawMessage) error { panic("todo") }
