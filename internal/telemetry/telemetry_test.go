package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"unicode"
)

func TestNewLogger(t *testing.T) {
	for _, c := range []struct {
		level, format string
		isTerminal    bool
		wantLevel     slog.Level
		wantJSON      bool
	}{
		{"", "", true, slog.LevelInfo, false},
		{"", "", false, slog.LevelWarn, true},
		{"debug", "", false, slog.LevelDebug, true},
		{"ERROR", "json", true, slog.LevelError, true},
		{"", "text", false, slog.LevelWarn, false},
		{"loud", "xml", true, slog.LevelInfo, false},
	} {
		var out bytes.Buffer
		log := NewLogger(&out, c.level, c.format, c.isTerminal)
		log.Log(t.Context(), c.wantLevel-1, "below")
		log.Log(t.Context(), c.wantLevel, "at")
		if got := out.String(); strings.Contains(got, "below") || !strings.Contains(got, "at") || json.Valid(out.Bytes()) != c.wantJSON {
			t.Errorf("NewLogger(%q, %q, %v) wrote %q, want level %v, JSON %v", c.level, c.format, c.isTerminal, got, c.wantLevel, c.wantJSON)
		}
	}
}

func TestNewLogger_ShowsNothingRaw(t *testing.T) {
	const odd = "a\u202eb\u200bc\u2028d\x7fe\u0085f\U000e0041g\x1b[31mh — ü 日 🙂"
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		NewLogger(&out, "", format, false).Warn("m "+odd, "name", odd, odd, 1)
		line := out.String()
		if i := strings.IndexFunc(line, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s: a raw character at %q", format, line[i:])
		}
		if !strings.Contains(line, "— ü 日 🙂") {
			t.Errorf("%s: wrote %s, want printable characters as they are", format, line)
		}
		var got struct{ Name string }
		if format == "json" && (json.Unmarshal(out.Bytes(), &got) != nil || got.Name != odd) {
			t.Errorf("json: %s reads as %q, want %q", line, got.Name, odd)
		}
	}
}

func TestCheckLogging(t *testing.T) {
	for _, c := range []struct{ level, format, want string }{
		{"", "", ""},
		{"Warning", "JSON", ""},
		{"loud", "", `log level "loud" is unknown; use debug, info, warn or error`},
		{"", "xml", `log format "xml" is unknown; use text or json`},
	} {
		got := ""
		if err := CheckLogging(c.level, c.format); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("CheckLogging(%q, %q) = %q, want %q", c.level, c.format, got, c.want)
		}
	}
}

func TestRedactor_String(t *testing.T) {
	var r Redactor
	if got := r.String("s3cr3t-ONE"); got != "s3cr3t-ONE" {
		t.Errorf("empty Redactor: String = %q, want it unchanged", got)
	}
	r.Add("s3cr3t-ONE", "Bearer s3cr3t-TWO", "abc", "", "s3cr3t-ONE-and-more")
	r.Add(`a/b "c"&`, `in "quotes"`, "é😀-key")
	for _, c := range []struct{ text, want string }{
		{"x s3cr3t-ONE y", "x [redacted] y"},
		{"s3cr3t-ONE-and-more", "[redacted]"},
		{"Authorization: Bearer s3cr3t-TWO", "Authorization: [redacted]"},
		{"token=s3cr3t-TWO", "token=[redacted]"},
		{"abc stays: too short", "abc stays: too short"},
		{"?key=" + url.QueryEscape(`a/b "c"&`), "?key=[redacted]"},
		{"/" + url.PathEscape(`a/b "c"&`), "/[redacted]"},
		{`{"a":"a/b \"c\"\u0026"}`, `{"a":"[redacted]"}`},
		{`a/b "c"&`, "[redacted]"},
		{fmt.Sprintf("%q", `a/b "c"&`), `"[redacted]"`},
		{`{"a":"a\/b \"c\"&"}`, `{"a":"[redacted]"}`},
		{`{"a":"in \"quotes\""}`, `{"a":"[redacted]"}`},
		{`{"a":"\u0073\u0033cr3t\u002dONE","b":"\u0041"}`, `{"a":"[redacted]","b":"\u0041"}`}, // as .NET and Gson, which escape +, = and others
		{`{"a":"{\"b\":\"a/b \\\"c\\\"\\u0026\"}"}`, `{"a":"{\"b\":\"[redacted]\"}"}`},
		{`{"a":"{\"b\":\"s3cr3t\\u002DONE\",\"c\":\"\\n\"}"}`, `{"a":"{\"b\":\"[redacted]\",\"c\":\"\\n\"}"}`},
		{"?key=%733cr3t%2dONE&n=%41", "?key=[redacted]&n=%41"},
		{"/" + strings.ToLower(url.PathEscape(`a/b "c"&`)), "/[redacted]"},
		{"?key=a/b%20%22c%22%26", "?key=[redacted]"}, // as Python, which keeps /
		{`100% of \ and \u and \ud83d\ude00 \ud83d stays %`, `100% of \ and \u and \ud83d\ude00 \ud83d stays %`},
		{`{"a":"\u00e9\uD83D\ude00-key"}`, `{"a":"[redacted]"}`}, // as Python
		{`\u0073%733cr3t-ON`, `\u0073%733cr3t-ON`},
	} {
		if got := r.String(c.text); got != c.want {
			t.Errorf("String(%q) = %q, want %q", c.text, got, c.want)
		}
	}
	var none *Redactor
	if got := none.String("text"); got != "text" {
		t.Errorf("nil Redactor: String = %q, want %q", got, "text")
	}
}

type valuer struct{ secret string }

func (v valuer) LogValue() slog.Value { return slog.GroupValue(slog.String("inner", v.secret)) }

type marshaler struct{ secret string }

func (m marshaler) MarshalText() ([]byte, error) { return []byte(m.secret), nil }

func TestRedactor_HandlerLetsNothingThrough(t *testing.T) {
	const secret = "s3cr3t-ONE"
	type nested struct{ Header *string }
	header := secret
	for name, newHandler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			var r Redactor
			log := slog.New(r.Handler(newHandler(&out)))
			r.Add(secret) // after the logger was made, as on a reload
			log = log.With("with", secret).WithGroup("g-name").With("more", secret)
			log.Warn("message "+secret,
				"string", secret,
				"error", fmt.Errorf("dial: %w", errors.New("https://x/?key="+secret)),
				"url", &url.URL{Scheme: "https", Host: "x", RawQuery: "key=" + secret},
				"slice", []string{"--token=" + secret},
				"map", map[string]string{"HARBOR_KEY": secret},
				"struct", nested{&header},
				"bytes", []byte(secret),
				"text", marshaler{secret},
				"valuer", valuer{secret},
				slog.Group("group", "deep", secret),
				"key "+secret, 1,
				"number", 7, "nil", nil, "nil_url", (*url.URL)(nil), "nil_error", (*url.Error)(nil), "plain", []string{"kept"},
			)
			got := out.String()
			if strings.Contains(got, secret) {
				t.Errorf("secret in %s", got)
			}
			for _, want := range []string{"message [redacted]", "dial: https://x/?key=[redacted]", "kept", "g-name"} {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in %s", want, got)
				}
			}
		})
	}
}

func TestRedactor_HandlerKeepsLevels(t *testing.T) {
	var r Redactor
	h := r.Handler(slog.NewTextHandler(&bytes.Buffer{}, &slog.HandlerOptions{Level: slog.LevelError}))
	if h.Enabled(t.Context(), slog.LevelWarn) || !h.Enabled(t.Context(), slog.LevelError) {
		t.Error("Enabled does not follow the handler behind")
	}
}
