package secret

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
)

// MinLength is the length in bytes from which a configured value is looked for
// in texts. Shorter ones ("1", "warn", "true") are in every second log line
// and too short to be credentials.
const MinLength = 6

// Redactor replaces known secret values in texts of others: what a server
// wrote to stderr, errors of the network, log lines. It looks for values, not
// for names that sound secret. The zero value knows none. It is safe for
// concurrent use.
type Redactor struct {
	values atomic.Pointer[strings.Replacer]
}

// Swap replaces the values that the redactor knows.
func (r *Redactor) Swap(values []string) {
	seen := map[string]bool{}
	for _, v := range values {
		for _, form := range forms(v) {
			if len(form) >= MinLength {
				seen[form] = true
			}
		}
	}
	// Longest first: a value may be the beginning of another.
	sorted := make([]string, 0, len(seen))
	for v := range seen {
		sorted = append(sorted, v)
	}
	slices.SortFunc(sorted, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(sorted))
	for _, v := range sorted {
		pairs = append(pairs, v, redacted)
	}
	r.values.Store(strings.NewReplacer(pairs...))
}

// forms are the ways in which a value shows up in texts: as it is, in JSON, in
// quotes, in a query.
func forms(v string) []string {
	out := []string{v, url.QueryEscape(v), url.PathEscape(v)}
	if b, err := json.Marshal(v); err == nil {
		out = append(out, string(b[1:len(b)-1]))
	}
	q := fmt.Sprintf("%q", v)
	return append(out, q[1:len(q)-1])
}

// Redact returns s with every known secret value replaced.
func (r *Redactor) Redact(s string) string {
	if p := r.values.Load(); p != nil {
		return p.Replace(s)
	}
	return s
}

// Handler returns a handler that redacts messages, keys and values before
// next sees them.
func (r *Redactor) Handler(next slog.Handler) slog.Handler { return &handler{r, next} }

type handler struct {
	r    *Redactor
	next slog.Handler
}

func (h *handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h *handler) Handle(ctx context.Context, rec slog.Record) error {
	clean := slog.NewRecord(rec.Time, rec.Level, h.r.Redact(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return &handler{h.r, h.next.WithAttrs(clean)}
}

func (h *handler) WithGroup(name string) slog.Handler { return &handler{h.r, h.next.WithGroup(name)} }

func (h *handler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(h.r.Redact(v.String()))
	case slog.KindGroup:
		group := v.Group()
		clean := make([]slog.Attr, len(group))
		for i, g := range group {
			clean[i] = h.attr(g)
		}
		v = slog.GroupValue(clean...)
	case slog.KindAny:
		// Errors, URLs, structs: only their text is known to be printable.
		v = slog.StringValue(h.r.Redact(fmt.Sprint(v.Any())))
	}
	return slog.Attr{Key: h.r.Redact(a.Key), Value: v}
}
