//go:build unix && !linux

package codebridge

import "syscall"

// processAttributes puts a worker into a process group of its own, away from
// the terminal's signals.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
