package storetest

import (
	"os/exec"
	"syscall"
)

// killWithTest lets the kernel end a server whose test was killed.
func killWithTest(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
