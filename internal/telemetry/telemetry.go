// Package telemetry tells what the program did: it sets up logging, keeps
// configured secrets out of it, and writes the JSON Lines records of
// contract 10.
//
// It imports nothing of the program. Its records cannot hold arguments,
// results or queries, and it decides nothing.
package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// NewLogger returns the program's logger: text at level info on a terminal,
// else JSON at level warn. A level (debug, info, warn, error) and a format
// (text, json) that are not "" are taken instead; see [CheckLogging].
func NewLogger(w io.Writer, level, format string, isTerminal bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelWarn}
	if isTerminal {
		options.Level = slog.LevelInfo
	}
	if l, err := parseLevel(level); err == nil && level != "" {
		options.Level = l
	}
	if f := strings.ToLower(format); f == "text" || f != "json" && isTerminal {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(printable{w}, options))
}

// printable escapes in JSON what a terminal would not show as it is, such as
// marks that turn the direction of writing: the text format does that itself.
type printable struct{ w io.Writer }

func (p printable) Write(line []byte) (int, error) {
	if bytes.IndexFunc(line, hidden) < 0 {
		return p.w.Write(line)
	}
	n := len(line)
	out := make([]byte, 0, n+64)
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		switch {
		case !hidden(r):
			out = append(out, line[:size]...)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		line = line[size:]
	}
	if _, err := p.w.Write(out); err != nil {
		return 0, err
	}
	return n, nil
}

func hidden(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }

// CheckLogging reports a level or format that NewLogger does not know and
// would ignore.
func CheckLogging(level, format string) error {
	if _, err := parseLevel(level); err != nil {
		return err
	}
	switch strings.ToLower(format) {
	case "", "text", "json":
		return nil
	}
	return fmt.Errorf("log format %q is unknown; use text or json", format)
}

func parseLevel(level string) (slog.Level, error) {
	switch strings.ToLower(level) {
	case "debug":
		return slog.LevelDebug, nil
	case "", "info":
		return slog.LevelInfo, nil
	case "warn", "warning":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("log level %q is unknown; use debug, info, warn or error", level)
}
