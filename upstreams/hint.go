package upstreams

import (
	"errors"
	"io/fs"
	"net"
	"os/exec"
)

// hint says in one sentence what a person can do about an error of a server.
func hint(cfg *Config, err error) string {
	var (
		rpc    *RPCError
		exited *exitError
		netErr net.Error
	)
	switch {
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
	case errors.Is(err, ErrTimedOut) && cfg.URL != "":
		return "check that url is right and that the server answers there"
	case errors.Is(err, ErrTimedOut):
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
