//go:build unix && !linux

package storetest

import "os/exec"

func killWithTest(*exec.Cmd) {} // only Linux offers it: elsewhere a server outlives a test that is killed
