package storetest

import (
	"os/exec"
	"syscall"
)

// tie lets the kernel end a server whose test was killed.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
