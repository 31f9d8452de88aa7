package codebridge

import "syscall"

// processAttributes puts a worker into a process group of its own, away from
// the terminal's signals, and lets the kernel end it when the thread that
// started it is gone with us.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
