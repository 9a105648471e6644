//go:build unix && !linux

package storetest

import "os/exec"

func killWithTest(*exec.Cmd) {} // only Linux can: elsewhere the server of a killed test stays
