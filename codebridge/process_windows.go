package codebridge

import (
	"os"
	"syscall"
)

// processAttributes puts a worker into a process group of its own, away from
// the console's signals, without a window.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// private tells whether a folder is ours and closed to others. The user's
// cache folder is, on Windows, by inheritance.
func private(os.FileInfo) bool { return true }
