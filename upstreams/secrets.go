package upstreams

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/secret"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
)

// Secrets returns the values of the entry that must not be shown: those of env
// and headers, of options in args, what the URL carries besides its place, and
// Hidden.
func (c *Config) Secrets() []string {
	var out []string
	add := func(variable, value string) {
		if secret.Plausible(variable, value) {
			out = append(out, value)
		}
	}
	for name, v := range c.Env {
		add(name, v.Reveal())
	}
	for _, v := range c.Headers {
		add("", v.Reveal())
		for _, part := range basicParts(v.Reveal()) {
			add("", part)
		}
	}
	for _, v := range append(optionValues(c.Args), urlValues(c.URL.Reveal())...) {
		add("", v)
	}
	for _, v := range c.Hidden {
		add("", v.Reveal())
	}
	return out
}

// basicParts are what a header of HTTP's basic scheme says: name and password,
// together and the password alone.
func basicParts(header string) []string {
	scheme, encoded, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return nil
	}
	both, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	_, password, ok := strings.Cut(string(both), ":")
	if err != nil || !ok {
		return nil
	}
	return []string{string(both), password}
}

// optionValues are the values in "--key=value" and "--key value", unless they
// look like a path or a package, which messages need.
func optionValues(args []secret.String) []string {
	var out []string
	option := false // the argument before is one without a value
	for _, a := range args {
		arg := a.Reveal()
		_, v, assigned := strings.Cut(arg, "=")
		switch {
		case assigned:
			out = append(out, v)
		case option && !strings.ContainsAny(arg[:min(1, len(arg))], "-/.~@"):
			out = append(out, arg)
		}
		option = !assigned && strings.HasPrefix(arg, "-")
	}
	return out
}

// urlValues are the parts of a URL that may be credentials: who asks, the
// query, and what in the path is no word.
func urlValues(text string) []string {
	u, err := url.Parse(text)
	if err != nil {
		return nil
	}
	password, _ := u.User.Password()
	out := []string{u.User.Username(), password, u.Fragment}
	if password != "" { // as the header that is sent has it
		out = append(out, base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
	}
	for _, values := range u.Query() {
		out = append(out, values...)
	}
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		_, v, _ := strings.Cut(part, "=")
		out = append(out, v)
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		const long = 12
		if len(part) >= long && strings.ContainsAny(part, "0123456789") && !readable.MatchString(part) {
			out = append(out, part)
		}
	}
	return out
}

// readable is the name of something, of words that may end in a number.
var readable = regexp.MustCompile(`^[a-z]+[0-9]{0,4}([-_.~][a-z]+[0-9]{0,4})*$`)

func redactorOf(c *Config) *telemetry.Redactor {
	r := new(telemetry.Redactor)
	r.Add(c.Secrets()...)
	return r
}

// redacted returns report with secrets taken out of the texts, and what is
// long cut after that, so that no half of a secret is left; nil for nil.
func redacted(r *telemetry.Redactor, report func(string)) func(string) {
	if report == nil {
		return nil
	}
	return func(text string) { report(clipText(r.String(text), 200)) }
}

// CodeURLElicitation is the JSON-RPC error by which a server asks the client to
// open a page first.
const CodeURLElicitation = -32042

// withoutSecrets returns err, which is one of callError's, without our own
// secrets, which some servers repeat in their errors: those come before a
// model. The page of an elicitation may need one, such as a client id.
func (s *server) withoutSecrets(err error) error {
	if rpc, ok := errors.AsType[*RPCError](err); ok && rpc.Code != CodeURLElicitation {
		rpc.Message = s.hidden.String(rpc.Message)
		if data := json.RawMessage(s.hidden.String(string(rpc.Data))); json.Valid(data) {
			rpc.Data = data
		} else {
			rpc.Data = nil // the secret was JSON, not in a string
		}
	}
	return err
}
