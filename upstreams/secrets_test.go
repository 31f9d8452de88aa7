package upstreams

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/secret"
)

func TestConfig_Secrets(t *testing.T) {
	c := Config{
		Args: []secret.String{"-y", "@scope/package", "--token=one-11", "--key", "two-22", "--dir", "/data", "--port", "8080"},
		Env:  map[string]secret.String{"KEY": "three-33", "PATH": "/opt/bin:/bin", "LOG_LEVEL": "debug", "ROOT": secret.String(t.TempDir())},
		URL:  "https://four-44:five-55@host/v1/streamable-http/0123456789abcdef?key=six%2F66#seven-77",
		Headers: map[string]secret.String{
			"Authorization": "Bearer eight-88",
			"Proxy":         "Basic dGVuOmVsZXZlbi0xMQ==",
		},
		Hidden: []secret.String{"nine-99"},
	}
	want := []string{
		"0123456789abcdef", "Basic dGVuOmVsZXZlbi0xMQ==", "Bearer eight-88", "Zm91ci00NDpmaXZlLTU1", "eleven-11", "five-55", "four-44", "nine-99", "one-11", "seven-77", "six%2F66", "six/66", "ten:eleven-11", "three-33", "two-22",
	}
	got := c.Secrets()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Secrets() (-want +got):\n%s", diff)
	}
}

// TestDo_RepeatsNoSecretOfOurs: what a server says in an error comes before a
// model, and some repeat the request's headers or their environment there.
func TestDo_RepeatsNoSecretOfOurs(t *testing.T) {
	const key = "s3cr3t-ONE"
	echo := func(status int, body string) http.Handler {
		var listed atomic.Bool
		return &rpc{call: func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
			if !listed.Swap(true) {
				reply(w, id, `{"tools":[{"name":"x"}]}`)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, strings.NewReplacer("ID", string(id), "AUTH", r.Header.Get("Authorization")).Replace(body))
		}}
	}
	headers := map[string]secret.String{"Authorization": "Bearer " + key}
	inEnv := func(value, answer string) Config {
		cfg := fake("x", mcptest.New(mcptest.Script{Tools: tools("x"), Answers: map[string]mcptest.Answer{"x": {Error: json.RawMessage(answer)}}}))
		cfg.Env = map[string]secret.String{"KEY": secret.String(value)}
		return cfg
	}
	for name, tc := range map[string]struct {
		cfg  Config
		want RPCError
	}{
		"text":                  {listen(t, echo(400, "AUTH is bad")), RPCError{Code: -32603, Message: "HTTP 400 Bad Request: [redacted] is bad"}},
		"JSON-RPC error in 4xx": {listen(t, echo(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"bad AUTH"}}`)), RPCError{Code: -32005, Message: "bad [redacted]"}},
		"JSON-RPC error": {
			listen(t, echo(200, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32005,"message":"bad AUTH","data":{"n":9007199254740993,"h":"AUTH"}}}`)),
			RPCError{Code: -32005, Message: "bad [redacted]", Data: json.RawMessage(`{"n":9007199254740993,"h":"[redacted]"}`)},
		},
		"env":                 {inEnv(key, `{"code":-32000,"message":"no team has s3cr3t-ONE","data":{"KEY":"s3cr3t-ONE"}}`), RPCError{Code: -32000, Message: "no team has [redacted]", Data: json.RawMessage(`{"KEY":"[redacted]"}`)}},
		"env, escaped":        {inEnv("s3cr3t+ONE==", `{"code":-32000,"message":"no %733cr3t%2bONE%3d%3d","data":{"KEY":"s3cr3t\u002BONE\u003d=","n":1}}`), RPCError{Code: -32000, Message: "no [redacted]", Data: json.RawMessage(`{"KEY":"[redacted]","n":1}`)}},
		"secret that is JSON": {inEnv(`{"a":1}`, `{"code":-32000,"message":"m","data":{"KEY":{"a":1}}}`), RPCError{Code: -32000, Message: "m"}},
		"page to open":        {inEnv(key, `{"code":-32042,"message":"m","data":{"url":"https://h/?client=s3cr3t-ONE"}}`), RPCError{Code: -32042, Message: "m", Data: json.RawMessage(`{"url":"https://h/?client=s3cr3t-ONE"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.cfg.URL != "" {
				tc.cfg.Headers = headers
			}
			s := NewSet(Options{})
			apply(t, s, tc.cfg)
			live(t, s, tc.cfg.Name)
			_, err := s.Do(t.Context(), call(s, tc.cfg.Name, "x", `{}`))
			got, ok := errors.AsType[*RPCError](err)
			if !ok {
				t.Fatalf("Do() = %v, want an *RPCError", err)
			}
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("Do() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConfig_SecretsOfURL: a token in the path is a secret, a readable name is not.
func TestConfig_SecretsOfURL(t *testing.T) {
	for path, hidden := range map[string]bool{
		"kubernetes-flux159":                   false,
		"my_server.v2":                         false,
		"short1":                               false,
		"NzYxMzE0abcdEFGH":                     true,
		"sk-live-4f9a8b7c6d5e":                 true,
		"3f2b8c1e-8f0e-4a53-9d1e-0c7b2a1d4e5f": true,
		"1234-5678-9012-3456":                  true,
	} {
		c := Config{URL: secret.String("https://mcp.example.com/s/" + path + "/mcp")}
		if got := slices.Contains(c.Secrets(), path); got != hidden {
			t.Errorf("%q in the path is a secret: %v, want %v", path, got, hidden)
		}
	}
}
