//go:build unix

package e2e

import (
	"os"
	"syscall"
)

func terminate(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }
