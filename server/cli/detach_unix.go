//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// detach gives a process a session of its own, so that no terminal's or editor's end
// reaches it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
