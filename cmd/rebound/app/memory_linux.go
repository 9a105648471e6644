package app

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// addressLimit returns the free part of the process's limited address space (ulimit -v), or 0
// without a limit. The runtime reserves much address space at the start.
func addressLimit() int64 {
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &lim); err != nil || lim.Cur >= 1<<50 {
		return 0
	}
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	size, _, _ := strings.Cut(string(raw), " ")
	pages, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		return 0
	}
	return max(int64(lim.Cur)-pages*int64(os.Getpagesize()), 1)
}
