// Package guardian ends the process groups of our children when we are gone,
// also after kill -9.
//
// The guardian is this program, started again as a small process of its own
// that holds a pipe from us. It is told which process groups are ours, and
// when the pipe breaks, because we ended in whatever way, it ends the groups
// that are left. On Windows a job object does this (package upstreams), and
// Watch does nothing.
//
// It does not start children and does not end them while we live, except
// through [End], which the orderly way uses too.
package guardian
