package upstreams

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os/exec"
	"slices"
	"strings"
)

// maxWarnings bounds what Status repeats of one server's odd behaviour.
const maxWarnings = 20

// noise takes a line of stdout that was no message. One example is enough.
func (s *server) noise(line string) {
	const text = "it writes to stdout what is no JSON-RPC message (which is skipped), for example: "
	s.mu.Lock()
	told := slices.ContainsFunc(s.odd, func(w string) bool { return strings.HasPrefix(w, text) })
	s.mu.Unlock()
	if !told {
		s.warn(text + fmt.Sprintf("%q", clipText(line, 120)))
	}
}

// warn keeps a warning for Status and logs it the first time.
func (s *server) warn(text string) {
	s.mu.Lock()
	known := slices.Contains(s.odd, text)
	full := len(s.odd) >= maxWarnings
	switch {
	case known:
	case full:
		s.oddMore++
	default:
		s.odd = append(s.odd, text)
	}
	s.mu.Unlock()
	if !known && !full {
		s.log.Warn("server behaves oddly", "what", text)
	}
}

func (s *server) forgetOddities() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.odd, s.oddMore = nil, 0
}

func clipText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// status returns the server's health.
func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		Name: s.cfg.Name, Safe: s.safe, State: s.state,
		Tools: len(s.known.tools), ListBytes: s.known.bytes, Protocol: s.known.protocol,
		Err: s.err, Stderr: s.stderr,
	}
	if s.err != nil {
		st.Hint = hint(&s.cfg, s.err)
	}
	if s.session != nil {
		st.Stderr = s.session.link.stderr()
	}
	st.Warnings = slices.Concat(s.known.warnings, s.odd)
	more := s.oddMore
	if n := len(st.Warnings) - maxWarnings; n > 0 {
		st.Warnings, more = st.Warnings[:maxWarnings], more+n
	}
	if more > 0 {
		st.Warnings = append(st.Warnings, fmt.Sprintf("and %d more", more))
	}
	return st
}

// view returns the server's part of the Snapshot.
func (s *server) view() (ServerInfo, []*Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ServerInfo{
		Name: s.cfg.Name, Safe: s.safe, Title: s.known.title, Instructions: s.known.instructions,
		Description: s.cfg.Description, Live: s.live, Known: s.known.tools != nil,
	}, s.known.tools
}

// epitaph tells how a child ended and what it said last; "" if nothing is known.
func epitaph(l *link) string {
	var parts []string
	if how, ended := l.exit(); ended {
		parts = append(parts, how)
	}
	if line, what := telling(l.stderr()); line != "" {
		parts = append(parts, fmt.Sprintf("%s on stderr: %q", what, clipText(line, 200)))
	}
	return strings.Join(parts, "; ")
}

// telling picks the line of a child's stderr that says most: the last that
// speaks of an error, for many programs write a trace or their version after
// it, else the last. what says which it is.
func telling(stderr string) (line, what string) {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for _, l := range slices.Backward(lines) {
		if strings.Contains(strings.ToLower(l), "error") {
			return strings.TrimSpace(l), "last error"
		}
	}
	return strings.TrimSpace(lines[len(lines)-1]), "last line"
}

// exitError is the end of a child beneath the error that it caused.
type exitError struct {
	err error
	how string
}

func (e *exitError) Error() string { return fmt.Sprintf("%v (%s)", e.err, e.how) }
func (e *exitError) Unwrap() error { return e.err }

// lastWords adds to an error how the child ended and what it said.
func (s *server) lastWords(l *link, err error) error {
	if how := epitaph(l); how != "" && err != nil {
		return &exitError{err, how}
	}
	return err
}

// AdvisedError is an error whose text says what to do about it, so that
// [Status] has no Hint beside it.
type AdvisedError struct{ Err error }

func (e *AdvisedError) Error() string { return e.Err.Error() }
func (e *AdvisedError) Unwrap() error { return e.Err }

func advised(format string, args ...any) error {
	return &AdvisedError{fmt.Errorf(format, args...)}
}

// hint says in one sentence what a person can do about an error of a server,
// "" if the error says it.
func hint(cfg *Config, err error) string {
	var (
		rpc    *RPCError
		exited *exitError
		netErr net.Error
		slow   slowError
		told   *AdvisedError
	)
	switch {
	case errors.As(err, &told):
		return ""
	case cfg.Broken != nil:
		return "correct its entry in the configuration"
	case errors.Is(err, ErrNeedsAuth) && len(cfg.Headers) == 0:
		return "give it credentials in headers, for example Authorization"
	case errors.Is(err, ErrNeedsAuth):
		return "check the credentials in its headers"
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "install the program, write its full path in command, or set PATH in its env"
	case errors.Is(err, fs.ErrPermission):
		return "make sure that the command may be executed by this user"
	case errors.As(err, &slow) && cfg.URL != "":
		return "check that url is right and that the server answers there"
	case errors.As(err, &slow):
		return "run its command in a terminal to see what it waits for; if it only is slow, raise startTimeoutMs"
	case errors.As(err, &exited):
		return "run its command in a terminal to see why it ends"
	case errors.As(err, &rpc):
		return "the server itself refuses: look into its own log"
	case errors.As(err, &netErr), cfg.URL != "":
		return "check that url is right and that the server is running"
	case cfg.Command != "":
		return "run its command in a terminal to see what is wrong"
	}
	return ""
}
