//go:build unix

package codebridge

import (
	"os"
	"syscall"
)

// private tells whether a folder is ours and closed to others.
func private(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
