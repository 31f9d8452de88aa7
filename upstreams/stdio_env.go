package upstreams

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// DepthEnv is set in the environment of our children, and sent as DepthHeader
// to servers over HTTP: how many of our processes are above. A process that
// finds it set was started by one of its own kind.
const (
	DepthEnv    = "TOOLSEARCH_MCP_DEPTH"
	DepthHeader = "Toolsearch-Mcp-Depth"
)

// depth is what our children are told.
func depth() string {
	n, err := strconv.Atoi(os.Getenv(DepthEnv))
	if err != nil || n < 0 {
		n = 0
	}
	return strconv.Itoa(n + 1)
}

// inherited are the variables that every child gets: what a program needs to
// find its files and the network, and nobody's secrets.
var inherited = map[string]bool{
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "SHELL": true,
	"LANG": true, "TZ": true, "TMPDIR": true, "DOCKER_HOST": true,
	"HTTP_PROXY": true, "HTTPS_PROXY": true, "NO_PROXY": true, "ALL_PROXY": true,
	"http_proxy": true, "https_proxy": true, "no_proxy": true, "all_proxy": true,
	"SSL_CERT_FILE": true, "SSL_CERT_DIR": true, "NODE_EXTRA_CA_CERTS": true,
	"REQUESTS_CA_BUNDLE": true, "CURL_CA_BUNDLE": true, "AWS_CA_BUNDLE": true,
}

// inheritedWindows are in addition what Windows programs do not start without.
// Names there are compared without case.
var inheritedWindows = []string{
	"ALLUSERSPROFILE", "APPDATA", "COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432",
	"COMPUTERNAME", "COMSPEC", "DRIVERDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS",
	"OS", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)",
	"PROGRAMW6432", "PSMODULEPATH", "PUBLIC", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERDOMAIN",
	"USERNAME", "USERPROFILE", "WINDIR",
}

func isInherited(name string) bool {
	if runtime.GOOS == "windows" {
		name = strings.ToUpper(name)
		if slices.Contains(inheritedWindows, name) {
			return true
		}
	}
	return inherited[name] || strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_")
}

// childEnv makes the environment of a child out of ours. The server's own env
// wins; of a proxy variable it wins in either spelling.
func childEnv(cfg Config, environ []string) []string {
	own := func(name string) bool {
		for n := range cfg.Env {
			if sameVariable(n, name) || isProxy(n) && strings.EqualFold(n, name) {
				return true
			}
		}
		return false
	}
	all := slices.Contains(cfg.InheritEnv, "*")
	var env []string
	for _, kv := range environ {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" || name == DepthEnv || own(name) {
			continue
		}
		if all || isInherited(name) || slices.ContainsFunc(cfg.InheritEnv, func(n string) bool { return sameVariable(n, name) }) {
			env = append(env, kv)
		}
	}
	for name, value := range cfg.Env {
		if name != DepthEnv {
			env = append(env, name+"="+value.Reveal())
		}
	}
	slices.Sort(env)
	return append(env, DepthEnv+"="+depth())
}

func isProxy(name string) bool { return strings.HasSuffix(strings.ToLower(name), "_proxy") }

// sameVariable compares names as the system does.
func sameVariable(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}

// lookEnv returns a variable of env.
func lookEnv(env []string, name string) string {
	for _, kv := range env {
		n, v, _ := strings.Cut(kv, "=")
		if sameVariable(n, name) {
			return v
		}
	}
	return ""
}

// lookCommand finds the file of a command. A bare name is looked for in the
// PATH of the child's own environment; a relative path starts at its cwd.
func lookCommand(name, dir string, env []string) (string, error) {
	if filepath.Base(name) != name || name == "." || name == ".." {
		path, err := filepath.Abs(name)
		if dir != "" && !filepath.IsAbs(name) {
			path, err = filepath.Abs(filepath.Join(dir, name))
		}
		if err != nil {
			return "", err
		}
		found, err := exec.LookPath(path)
		switch {
		case err == nil:
			return found, nil
		case errors.Is(err, os.ErrPermission):
			return "", advised("command %s may not be executed: make it executable (chmod +x), or write the program that runs it as command and the file as its first argument", path)
		case strings.ContainsAny(name, " \t"):
			return "", advised("command %s does not exist: write the program alone as command and what follows into args, or correct the path", path)
		default:
			return "", advised("command %s does not exist: correct the path, or write the name alone to have it looked up in PATH", path)
		}
	}
	searched := lookEnv(env, "PATH")
	for _, d := range filepath.SplitList(searched) {
		if !filepath.IsAbs(d) {
			continue // the working folder must not decide what is started
		}
		if found, err := exec.LookPath(filepath.Join(d, name)); err == nil {
			return found, nil
		}
	}
	return "", advised("command %q was not found in PATH (%s): %s", name, searched, commandHint(name, searched))
}

// commandHint tells what to do about a command that is not in PATH: programs
// that are started from a desktop have a short PATH, and version managers
// change that of the shell alone.
func commandHint(name, searched string) string {
	home, _ := os.UserHomeDir()
	places := []string{"/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/snap/bin"}
	if home != "" {
		for _, p := range []string{".local/bin", "bin", ".cargo/bin", ".bun/bin", ".deno/bin", ".volta/bin", ".asdf/shims", ".local/share/mise/shims", ".nodenv/shims", ".pyenv/shims", "go/bin"} {
			places = append(places, filepath.Join(home, p))
		}
		for _, pattern := range []string{".nvm/versions/node/*/bin", ".local/share/fnm/node-versions/*/installation/bin"} {
			found, _ := filepath.Glob(filepath.Join(home, pattern)) // the patterns are well-formed
			slices.Sort(found)
			slices.Reverse(found) // the newest version first, nearly always
			places = append(places, found...)
		}
	}
	for _, d := range places {
		if _, err := exec.LookPath(filepath.Join(d, name)); err == nil {
			return fmt.Sprintf("it is in %s: set env PATH to %q", d, d+string(filepath.ListSeparator)+searched)
		}
	}
	advice := "install it, or write its whole path as command"
	switch name {
	case "node", "npx", "npm":
		advice = "install Node.js, or write the whole path of " + name + " as command and its folder into env PATH"
	case "uv", "uvx":
		advice = "install uv, or write the whole path of " + name + " as command"
	case "docker", "podman":
		advice = "install " + name + ", or write its whole path as command"
	}
	if strings.ContainsAny(name, " \t") {
		advice = "write the program alone as command and each argument as an item of args"
	}
	return advice
}
