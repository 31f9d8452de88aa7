package codebridge

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/landlock-lsm/go-landlock/landlock"
)

// allowedCalls is all that the Go runtime, the engine and two pipes need
// once everything is loaded. Whatever is not here is refused: opening,
// creating or removing files, sockets, new processes, signals to others,
// tracing, mounts, io_uring, bpf, user namespaces.
const allowedCalls = `
	read write readv writev close fcntl
	mmap munmap mremap mprotect madvise brk mincore membarrier
	futex nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time
	sched_yield sched_getaffinity getcpu gettid getpid
	rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall
	setitimer timer_create timer_settime timer_delete
	epoll_wait epoll_pwait epoll_pwait2 epoll_ctl ppoll poll
	getrandom getrlimit rseq set_robust_list
	exit exit_group`

// confine gives up, for all threads, what a worker does not need any more.
// missing names what this kernel does not have.
func confine(memory int) (missing []string, err error) {
	limits := []struct {
		resource int
		value    uint64
	}{
		{syscall.RLIMIT_DATA, 512<<20 + 2*uint64(memory)}, // not AS: Go and wazero reserve more than they use
		{syscall.RLIMIT_FSIZE, 0},
		{syscall.RLIMIT_CORE, 0},
		{syscall.RLIMIT_NOFILE, 0}, // what is open stays open
	}
	if err := landlock.V5.BestEffort().Restrict(); err != nil {
		missing = append(missing, "landlock: "+err.Error())
	}
	for _, l := range limits {
		if underRace && l.resource == syscall.RLIMIT_DATA {
			continue
		}
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			return missing, fmt.Errorf("limit %d: %w", l.resource, err)
		}
	}
	if err := filterCalls(); err != nil {
		missing = append(missing, "seccomp: "+err.Error())
	}
	return missing, nil
}

func filterCalls() error {
	if !seccomp.Supported() {
		return fmt.Errorf("not supported by this kernel")
	}
	here, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	var names []string
	for name := range strings.FieldsSeq(allowedCalls) {
		if _, ok := here.SyscallNames[name]; ok { // not every processor has the old ones
			names = append(names, name)
		}
	}
	only := func(name string, arg uint32, op seccomp.Operation, value uint64) seccomp.NameWithConditions {
		return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{{Argument: arg, Operation: op, Value: value}}}
	}
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionErrno,
			Syscalls: []seccomp.SyscallGroup{{
				Action: seccomp.ActionAllow,
				Names:  names,
				NamesWithCondtions: []seccomp.NameWithConditions{
					only("clone", 0, seccomp.BitsSet, syscall.CLONE_THREAD),
					only("tgkill", 0, seccomp.Equal, uint64(os.Getpid())), // the runtime interrupts its own threads
				},
			}, {
				// The flags of clone3 are out of a filter's sight. A C library
				// turns to clone if it is told that there is no clone3.
				Action: seccomp.ActionErrno | seccomp.Action(syscall.ENOSYS),
				Names:  []string{"clone3"},
			}},
		},
	})
}
