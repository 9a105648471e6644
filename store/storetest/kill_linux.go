package storetest

import (
	"os/exec"
	"syscall"
)

// killWithTest has the kernel kill a server whose test was killed.
func killWithTest(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
