package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestString_IsNeverPrinted(t *testing.T) {
	const plain = "hunter2-hunter2"
	type config struct {
		Key  String
		Env  map[string]String
		Args []String
	}
	c := config{plain, map[string]String{"K": plain}, []String{plain}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s"} {
		for _, v := range []any{c.Key, c, &c, []any{c}} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, plain) || strings.Contains(strings.ToLower(got), fmt.Sprintf("%x", plain)) {
				t.Errorf("Sprintf(%q, %T) = %q, want it redacted", verb, v, got)
			}
		}
	}
	if b, err := json.Marshal(c); err != nil || bytes.Contains(b, []byte(plain)) {
		t.Errorf("json.Marshal = %s, %v, want it redacted", b, err)
	}
	var buf bytes.Buffer
	slog.New(slog.NewTextHandler(&buf, nil)).Info("x", "k", c.Key, "c", c)
	slog.New(slog.NewJSONHandler(&buf, nil)).Info("x", "k", c.Key, "c", c)
	if strings.Contains(buf.String(), plain) {
		t.Errorf("slog = %q, want it redacted", buf.String())
	}
	if c.Key.Reveal() != plain {
		t.Errorf("Reveal() = %q, want %q", c.Key.Reveal(), plain)
	}
}

func TestRedactor_Redact(t *testing.T) {
	var r Redactor
	if got := r.Redact("as it was"); got != "as it was" {
		t.Errorf("zero Redactor: Redact = %q", got)
	}
	r.Swap([]string{"s3cr3t-ONE", "s3cr3t-ONE-and-more", "tiny", `p"ä/ss wörd`, ""})
	tests := []struct{ in, want string }{
		{"key s3cr3t-ONE.", "key [redacted]."},
		{"key s3cr3t-ONE-and-more.", "key [redacted]."},
		{"tiny stays", "tiny stays"},
		{`raw p"ä/ss wörd`, "raw [redacted]"},
		{`json {"k":"p\"ä/ss wörd"}`, `json {"k":"[redacted]"}`},
		{"query ?k=p%22%C3%A4%2Fss+w%C3%B6rd", "query ?k=[redacted]"},
	}
	for _, tt := range tests {
		if got := r.Redact(tt.in); got != tt.want {
			t.Errorf("Redact(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestRedactor_Handler(t *testing.T) {
	var r Redactor
	var buf bytes.Buffer
	log := slog.New(r.Handler(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug})))
	r.Swap([]string{"s3cr3t-ONE"})
	log.With("url", "http://x/?s3cr3t-ONE").WithGroup("g").Debug("msg s3cr3t-ONE",
		"err", errors.New("dial s3cr3t-ONE"), slog.Group("in", "v", "s3cr3t-ONE"), "n", 3)
	got := buf.String()
	if strings.Contains(got, "s3cr3t") || strings.Count(got, redacted) != 4 || !strings.Contains(got, "g.n=3") {
		t.Errorf("log = %q, want four values redacted", got)
	}
}
