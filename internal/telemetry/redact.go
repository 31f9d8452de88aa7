package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	redacted = "[redacted]"
	// minSecret is the shortest value that is redacted: shorter ones occur in
	// ordinary words.
	minSecret = 4
)

// Redactor replaces secret values, wherever they stand in a text, by
// "[redacted]": by their value, not by the name of a key. The zero value
// redacts nothing; a nil *Redactor too. It is safe for concurrent use.
type Redactor struct {
	current atomic.Pointer[forms] // nil: nothing to redact

	// mu guards the following
	mu     sync.Mutex
	values map[string]bool
}

// forms are the values and what they look like elsewhere, immutable.
type forms struct {
	sorted   []string // the longest first
	replacer *strings.Replacer
}

// Add registers values as they are, and as they look in URLs and in JSON. A
// value that is a scheme and a credential ("Bearer abc") counts as a whole and
// as the credential alone. Values of less than 4 bytes are not redacted.
func (r *Redactor) Add(values ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values == nil {
		r.values = make(map[string]bool)
	}
	for _, v := range values {
		v = strings.TrimSpace(v)
		r.addLocked(v)
		if scheme, credential, ok := strings.Cut(v, " "); ok && !strings.Contains(credential, " ") {
			switch strings.ToLower(scheme) {
			case "bearer", "basic", "token", "digest":
				r.addLocked(credential)
			}
		}
	}
	// At one place the longest value wins: it may contain another.
	sorted := make([]string, 0, len(r.values))
	for v := range r.values {
		sorted = append(sorted, v)
	}
	slices.SortFunc(sorted, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(sorted))
	for _, v := range sorted {
		pairs = append(pairs, v, redacted)
	}
	r.current.Store(&forms{sorted, strings.NewReplacer(pairs...)})
}

func (r *Redactor) addLocked(v string) {
	if len(v) < minSecret {
		return
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		panic(err) // a string always encodes
	}
	inside := func(quoted string) string { return quoted[1 : len(quoted)-1] }
	plain := inside(strconv.Quote(v))
	for _, form := range []string{
		v, url.QueryEscape(v), url.PathEscape(v), inside(string(encoded)), plain,
		strings.ReplaceAll(plain, "/", `\/`), // JSON of PHP
	} {
		if len(form) >= minSecret {
			r.values[form] = true
		}
	}
}

// String returns s with all registered values replaced, also where URLs and
// JSON escape more of them than they need to.
func (r *Redactor) String(s string) string {
	if r == nil {
		return s
	}
	f := r.current.Load()
	if f == nil {
		return s
	}
	s = f.replacer.Replace(s)
	if strings.Contains(s, "%") {
		s = f.replaceEscaped(s, unescapeURL)
	}
	if strings.Contains(s, `\`) {
		s = f.replaceEscaped(s, unescapeJSON)
	}
	return s
}

// replaceEscaped replaces what is a value once it is unescaped. Unescape gives
// what a text begins with and how many bytes of the text that is.
func (f *forms) replaceEscaped(s string, unescape func(string) (string, int)) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		text, n := unescape(s[i:])
		b.WriteString(text)
		i += n
	}
	type span struct{ from, to int }
	var found []span // in the unescaped text
	plain := b.String()
	for _, v := range f.sorted {
		for at := 0; ; {
			i := strings.Index(plain[at:], v)
			if i < 0 {
				break
			}
			at += i + len(v)
			found = append(found, span{at - len(v), at})
		}
	}
	if found == nil {
		return s
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var out strings.Builder
	hidden := 0 // up to where the unescaped text is redacted
	for i, at := 0, 0; i < len(s); {
		text, n := unescape(s[i:])
		for len(found) > 0 && found[0].from < at+len(text) {
			if found[0].from >= hidden {
				out.WriteString(redacted)
			}
			hidden = max(hidden, found[0].to)
			found = found[1:]
		}
		if at >= hidden {
			out.WriteString(s[i : i+n])
		}
		i, at = i+n, at+len(text)
	}
	return out.String()
}

// unescapeURL reads %41, else one byte.
func unescapeURL(s string) (string, int) {
	if s[0] == '%' && len(s) >= 3 {
		if b, err := strconv.ParseUint(s[1:3], 16, 8); err == nil {
			return string([]byte{byte(b)}), 3
		}
	}
	return s[:1], 1
}

// unescapeJSON reads \u0041, a pair of those, and \/ and its like, else one
// byte. In JSON inside of JSON they have more backslashes.
func unescapeJSON(s string) (string, int) {
	const deepest = 7 // what three levels need
	n := 0
	for n < min(len(s), deepest) && s[n] == '\\' {
		n++
	}
	if n > 1 && n < len(s) && strings.IndexByte(`u"/`, s[n]) >= 0 {
		text, rest := unescapeOnce(s[n-1:])
		return text, n - 1 + rest
	}
	return unescapeOnce(s)
}

func unescapeOnce(s string) (string, int) {
	if s[0] != '\\' || len(s) < 2 {
		return s[:1], 1
	}
	if s[1] != 'u' {
		if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
			return "\"\\/\b\f\n\r\t"[i : i+1], 2
		}
		return s[:1], 1
	}
	unit := func(at int) rune {
		if len(s) >= at+6 && s[at:at+2] == `\u` {
			if n, err := strconv.ParseUint(s[at+2:at+6], 16, 16); err == nil {
				return rune(n)
			}
		}
		return -1
	}
	first := unit(0)
	if first < 0 {
		return s[:1], 1
	}
	if pair := utf16.DecodeRune(first, unit(6)); pair != utf8.RuneError {
		return string(pair), 12
	}
	return string(first), 6
}

// Handler returns a handler that redacts messages and attributes, those of
// errors and of nested groups too, before next sees them.
func (r *Redactor) Handler(next slog.Handler) slog.Handler {
	if r == nil {
		return next
	}
	return &handler{r, next}
}

type handler struct {
	redactor *Redactor
	next     slog.Handler
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, rec slog.Record) error {
	clean := slog.NewRecord(rec.Time, rec.Level, h.redactor.String(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.redactor, h.next.WithAttrs(h.attrs(attrs))}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.redactor, h.next.WithGroup(name)}
}

func (h *handler) attrs(attrs []slog.Attr) []slog.Attr {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return clean
}

func (h *handler) attr(a slog.Attr) slog.Attr {
	a.Key = h.redactor.String(a.Key)
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(h.redactor.String(a.Value.String()))
	case slog.KindGroup:
		a.Value = slog.GroupValue(h.attrs(a.Value.Group())...)
	case slog.KindAny:
		a.Value = h.any(a.Value)
	}
	return a
}

// any redacts a value of which only the text is known; one whose text holds
// no secret is passed on as it is.
func (h *handler) any(v slog.Value) slog.Value {
	x := v.Any()
	if x == nil || h.redactor.current.Load() == nil {
		return v
	}
	if b, ok := x.([]byte); ok {
		x = string(b)
	}
	// The text handler prints what fmt prints (which, unlike a call of Error or
	// String, bears nil pointers), the JSON handler what encoding/json does.
	texts := []string{fmt.Sprint(x), fmt.Sprintf("%+v", x)}
	if b, err := json.Marshal(x); err == nil {
		texts = append(texts, string(b))
	}
	for _, text := range texts {
		if clean := h.redactor.String(text); clean != text {
			return slog.StringValue(clean)
		}
	}
	return v
}
