package secret

import (
	"bytes"
	"encoding/json"
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
