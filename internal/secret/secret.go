// Package secret keeps configured credentials out of logs, errors and status.
//
// It tells what may be one and prints none; it does not encrypt, store or fetch secrets.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// String is a text that must not be printed: fmt, slog, JSON and YAML show
// "[redacted]" in its place. Reveal gives the text itself.
type String string

// Reveal returns the secret text. Use it only where the secret is sent to its owner.
func (s String) Reveal() string { return string(s) }

// Format implements [fmt.Formatter], because with a [fmt.Stringer] alone the
// verbs that do not fit a string would print it: %d gives "%!d(… =hunter2)".
func (s String) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

func (s String) String() string               { return redacted }
func (s String) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (s String) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
func (s String) MarshalYAML() (any, error)    { return redacted, nil }
