package codebridge

import (
	"os"
	"syscall"
)

// processAttributes puts a worker into a process group of its own, away from
// the console's signals, without a window.
func processAttributes() *syscall.SysProcAttr {
	const createNoWindow = 0x08000000 // CREATE_NO_WINDOW: else it would get a console of its own
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | createNoWindow, HideWindow: true}
}

// private tells whether a folder is ours and closed to others. The user's
// cache folder is, on Windows, by inheritance.
func private(os.FileInfo) bool { return true }
