// Package config reads the configuration file: the packages' own settings put
// together, strictly checked, with variables replaced and the spellings of
// other programs' files translated.
//
// It decides nothing at run time: it starts no server, watches no file and
// never writes one.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolsearch-mcp/toolsearch-mcp/aggregator"
	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// Config is a loaded file. Numbers are inside their limits and paths are
// absolute.
type Config struct {
	Path       string // absolute
	ToolSearch aggregator.Settings
	CodeBridge codebridge.Config
	Servers    []upstreams.Config // in file order, disabled ones included
	Policy     policy.Rules
	Telemetry  Telemetry

	Warnings []string // "file:line: …", for the log and for check
	Secrets  []string // values that must not be shown, for a telemetry.Redactor
}

// Telemetry is the telemetry section.
type Telemetry struct {
	Log string `yaml:"log"` // a JSON Lines file; "": none
}

// Options of Load. The zero value reads the process's own environment.
type Options struct {
	Path       string                           // as given by --config; "": looked up
	LookupEnv  func(name string) (string, bool) // nil: os.LookupEnv
	Executable string                           // this program, to refuse entries that start it again; "": not compared
}

// EnvPath names the variable that holds the path of the file.
const EnvPath = "TOOLSEARCH_MCP_CONFIG"

// NotFoundError: there is no file at any of the places that were looked at.
type NotFoundError struct{ Looked []string }

func (e *NotFoundError) Error() string {
	return "no configuration found at " + strings.Join(e.Looked, ", ")
}

// Error is everything that is wrong in a file, in the order of its lines.
type Error struct {
	Path     string
	Problems []Problem
}

// Problem is one fault of a file.
type Problem struct {
	Line int // 0: the file as a whole
	Text string
}

func (e *Error) Error() string {
	const most = 10
	var lines []string
	for i, p := range e.Problems {
		if i == most {
			lines = append(lines, fmt.Sprintf("%s: and %d more", e.Path, len(e.Problems)-most))
			break
		}
		lines = append(lines, place(e.Path, p.Line)+": "+p.Text)
	}
	return strings.Join(lines, "\n")
}

func place(path string, line int) string {
	if line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, line)
}

// Find returns the path of the configuration: what --config gave, else
// $TOOLSEARCH_MCP_CONFIG, else config.yaml in the user's configuration folder.
// The working folder is never looked at: a cloned repository must not start
// commands. The error is a *NotFoundError.
func Find(o Options) (string, error) {
	path := o.Path
	if path == "" {
		path, _ = o.lookup(EnvPath)
	}
	if path == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return "", &NotFoundError{[]string{"--config", "$" + EnvPath, "the user configuration folder (" + err.Error() + ")"}}
		}
		path = filepath.Join(dir, "toolsearch-mcp", "config.yaml")
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return "", &NotFoundError{[]string{"--config (not given)", "$" + EnvPath + " (not set)", path}}
		}
		return path, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(abs); errors.Is(err, os.ErrNotExist) {
		return "", &NotFoundError{[]string{abs}}
	}
	return abs, nil
}

func (o Options) lookup(name string) (string, bool) {
	if o.LookupEnv == nil {
		return os.LookupEnv(name)
	}
	return o.LookupEnv(name)
}

// maxFileBytes is far above any real configuration.
const maxFileBytes = 8 << 20

// Load finds, reads and checks the file. Errors: *NotFoundError, *Error, or
// why the file cannot be read. A fault that concerns one server's values alone
// (a missing variable, an address that is none) is in that server's Broken.
func Load(o Options) (*Config, error) {
	path, err := Find(o)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return nil, &Error{path, []Problem{{0, "is a folder; name the file in it"}}}
	}
	if err == nil && info.Size() > maxFileBytes {
		return nil, &Error{path, []Problem{{0, fmt.Sprintf("is larger than %d bytes", maxFileBytes)}}}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return parse(path, data, o)
}

func parse(path string, data []byte, o Options) (*Config, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	d := &decoder{
		path: path, dir: filepath.Dir(path), home: home, exe: o.Executable,
		lookup: o.lookup, secrets: map[string]bool{},
	}
	c := &Config{Path: path}
	if root := d.read(data); root != nil {
		d.file(c, root)
	}
	if len(d.problems) > 0 {
		if line := jsonComment(data); line > 0 {
			d.problems = []Problem{{line, `comments begin with "#" here: "//" and "/*" are not understood`}}
		}
		slices.SortStableFunc(d.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
		return nil, &Error{path, d.problems}
	}
	c.Warnings = d.warnings
	for v := range d.secrets {
		c.Secrets = append(c.Secrets, v)
	}
	slices.Sort(c.Secrets)
	return c, nil
}
