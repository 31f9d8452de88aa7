package codebridge

import "syscall"

// blank makes guest memory zero. What is long is given back to the system,
// which hands out zeros: even reading it would make it take real memory again
// on some kernels. The part must begin and end with a page.
func blank(part []byte) {
	const long = 64 << 10
	if len(part) < long || syscall.Madvise(part, syscall.MADV_DONTNEED) != nil {
		clearPages(part)
	}
}
