//go:build unix

package mcptest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Alive tells whether a process runs. A zombie does not.
func Alive(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return !errors.Is(err, syscall.ESRCH)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !os.IsNotExist(err) || !procMounted()
	}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return len(after) == 0 || after[0] != 'Z' && after[0] != 'X'
}

// procMounted tells systems without /proc from processes that have just gone.
func procMounted() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}
