//go:build !unix

package cli

import "os/exec"

// detach has nothing to do where processes are not bound to a terminal.
func detach(*exec.Cmd) {}
