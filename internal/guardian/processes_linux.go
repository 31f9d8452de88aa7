package guardian

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// process is a line of the process table.
type process struct {
	pid, parent, group int
	state              string
	started            string // with pid, one process for ever
}

func (p process) runs() bool { return p.state != "Z" && p.state != "X" }

// processes reads the process table.
func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var all []process
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := lookUp(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

func lookUp(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false // it has ended
	}
	// PID (NAME) STATE PPID PGRP … STARTTIME (22nd); the name may hold anything
	stat := string(b)
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(f) < 20 {
		return process{}, false
	}
	p := process{pid: pid, state: f[0], started: f[19]}
	if p.parent, err = strconv.Atoi(f[1]); err != nil {
		return process{}, false
	}
	p.group, err = strconv.Atoi(f[2])
	return p, err == nil
}

// strays are descendants of a group that have left it, such as browsers,
// which are started into a session of their own.
type strays map[int]process

// look tells whether a process of the group runs, and adds the strays that can
// be seen now: after their parents have ended they cannot be told from any
// other process. A zombie does not run: a container whose first process does
// not collect orphans keeps them for ever.
func (s strays) look(pgid int) (running bool) {
	all := processes()
	if all == nil {
		return !errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) // no /proc
	}
	children := map[int][]process{}
	var next []process
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
		if p.group == pgid {
			next = append(next, p)
			running = running || p.runs()
		}
	}
	for len(next) > 0 {
		p := next[0]
		next = next[1:]
		for _, c := range children[p.pid] {
			if _, known := s[c.pid]; c.group == pgid || known {
				continue
			}
			s[c.pid] = c
			next = append(next, c)
		}
	}
	return running
}

func (s strays) alive() bool {
	for pid, was := range s {
		if p, ok := lookUp(pid); ok && p.runs() && p.started == was.started {
			return true
		}
		delete(s, pid)
	}
	return false
}

func (s strays) signal(sig syscall.Signal) {
	for pid, was := range s {
		if p, ok := lookUp(pid); ok && p.started == was.started {
			_ = syscall.Kill(pid, sig) // it may have ended meanwhile
		}
	}
}
