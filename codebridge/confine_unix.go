//go:build unix && !linux

package codebridge

import (
	"fmt"
	"syscall"
)

// confine gives up what a worker does not need any more: new descriptors
// (files, sockets, pipes), writing files and core dumps. These systems offer
// no more to a program without cgo.
func confine(int) (missing []string, err error) {
	for _, resource := range []int{syscall.RLIMIT_FSIZE, syscall.RLIMIT_CORE, syscall.RLIMIT_NOFILE} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{}); err != nil {
			return nil, fmt.Errorf("limit %d: %w", resource, err)
		}
	}
	return []string{"a filter for system calls"}, nil
}
