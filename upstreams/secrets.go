package upstreams

import (
	"net/url"
	"slices"
	"strings"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
)

// secretsOf knows the values of cfg that must not show up in errors, noise
// and stderr: those of env and headers, of flags (--token=value), and all of
// the URL but its host.
func secretsOf(cfg Config) *telemetry.Redactor {
	var values []string
	for name, v := range cfg.Env {
		if name != "PATH" { // named in errors, and no secret
			values = append(values, v.Reveal())
		}
	}
	for _, v := range cfg.Headers {
		values = append(values, v.Reveal())
	}
	for _, v := range cfg.Args {
		if flag, value, ok := strings.Cut(v.Reveal(), "="); ok && strings.HasPrefix(flag, "-") {
			values = append(values, value)
		}
	}
	if u, err := url.Parse(cfg.URL.Reveal()); err == nil {
		password, _ := u.User.Password()
		values = append(values, u.RequestURI(), u.RawQuery, u.Fragment, u.User.Username(), password)
		for _, vs := range u.Query() {
			values = append(values, vs...)
		}
	}
	r := new(telemetry.Redactor)
	r.Add(slices.DeleteFunc(values, func(v string) bool { return len(v) < minSecret })...)
	return r
}

// minSecret spares the words that stand in env and are in every second line
// of a log: warn, true, debug.
const minSecret = 6

// redacted returns report with secrets taken out of the texts, and what is
// long cut after that, so that no half of a secret is left; nil for nil.
func redacted(r *telemetry.Redactor, report func(string)) func(string) {
	if report == nil {
		return nil
	}
	return func(text string) { report(clipText(r.String(text), 200)) }
}
