//go:build unix

package upstreams

import (
	"context"
	"os/exec"
	"syscall"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/guardian"
)

// group is the process group of a child.
type group struct{ pgid int }

// prepare makes the command the leader of a group of its own.
func prepare(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return nil
}

// adopt puts the started command's group under watch.
func adopt(cmd *exec.Cmd) (*group, error) {
	return &group{cmd.Process.Pid}, guardian.Watch(cmd.Process.Pid)
}

// end returns when no process of the group is left.
func (g *group) end(ctx context.Context) error {
	if err := guardian.End(ctx, g.pgid, quietGrace, termGrace); err != nil {
		return err // still under watch
	}
	guardian.Unwatch(g.pgid)
	return nil
}
