package config

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// ourName is what our executable is called wherever it is installed.
const ourName = "toolsearch-mcp"

// startsUs tells why an entry would start this program again, "" if it does
// not. Ways that cannot be seen here (a shell script) are caught by the depth
// that our children carry in their environment.
func (d *decoder) startsUs(c *upstreams.Config) string {
	if _, ok := c.Env[upstreams.DepthEnv]; ok {
		return "env sets " + upstreams.DepthEnv
	}
	switch {
	case c.Command == "":
		return ""
	case programName(c.Command) == ourName:
		return "the command is this program"
	case goRunsUs(c):
		return `"go run" starts this program`
	case d.exe != "" && sameFile(findCommand(c), d.exe):
		return "the command is this program under another name"
	}
	return ""
}

func programName(path string) string {
	base := filepath.Base(strings.ReplaceAll(path, `\`, "/"))
	return strings.TrimSuffix(strings.ToLower(base), ".exe")
}

// goRunsUs recognises "go run …/cmd/toolsearch-mcp", with and without a
// version, and "go run ." in that folder.
func goRunsUs(c *upstreams.Config) bool {
	if programName(c.Command) != "go" || len(c.Args) < 2 || c.Args[0].Reveal() != "run" {
		return false
	}
	for _, a := range c.Args[1:] {
		pkg, _, _ := strings.Cut(a.Reveal(), "@")
		if pkg == "." {
			pkg = c.Cwd
		}
		if programName(pkg) == ourName {
			return true
		}
	}
	return false
}

// findCommand returns the file that the entry starts, "" if there is none.
func findCommand(c *upstreams.Config) string {
	path, own := c.Env["PATH"]
	if !own || strings.ContainsAny(c.Command, `/\`) {
		found, err := exec.LookPath(c.Command)
		if err != nil {
			return ""
		}
		return found
	}
	for _, dir := range filepath.SplitList(path.Reveal()) {
		if found, err := exec.LookPath(filepath.Join(dir, c.Command)); err == nil {
			return found
		}
	}
	return ""
}

// sameFile follows links, hard ones too.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	ai, err := os.Stat(a)
	if err != nil {
		return false
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}
