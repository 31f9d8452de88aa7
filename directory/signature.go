package directory

import "encoding/json"

// InputSignature renders an input schema as TypeScript-like text of at most
// 300 characters (contract 5, facts/openclaw.md section 4); "unknown" if it
// cannot.
func InputSignature(schema json.RawMessage) string { panic("todo") }

// OutputSignature renders a complete, closed output schema, else ok is false.
func OutputSignature(schema json.RawMessage) (sig string, ok bool) { panic("todo") }
