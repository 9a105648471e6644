package app

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/proxy"
)

// Request bodies may use an eighth of the process's memory, because parsed bodies may need several
// times their size; or half of it, if the operator sets limits.memory.
const (
	bodiesShare     = 8
	configuredShare = 2
	minBodies       = 16 << 20
	// softShare is the runtime's memory limit in tenths of the available memory.
	softShare = 8
)

// availableMemory returns how many bytes this process may use, 0 if unlimited: the least of
// GOMEMLIMIT, its control group and its address space.
func availableMemory() int64 {
	least := debug.SetMemoryLimit(-1)
	for _, n := range [...]int64{groupLimit("/proc/self/cgroup", "/sys/fs/cgroup"), addressLimit()} {
		if n > 0 {
			least = min(least, n)
		}
	}
	if least >= 1<<50 {
		return 0
	}
	return least
}

// groupLimit returns the limit of the control group that a file names, in the tree at root, or 0.
func groupLimit(file, root string) int64 {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	least := int64(math.MaxInt64)
	for line := range strings.Lines(string(raw)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		at, name := root, "memory.max"
		if parts[0] != "0" { // version 1
			if parts[1] != "memory" {
				continue
			}
			at, name = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		}
		for path := filepath.Clean("/" + parts[2]); ; path = filepath.Dir(path) { // the limits of parent groups apply, too
			if raw, err := os.ReadFile(filepath.Join(at, path, name)); err == nil {
				if n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && n > 0 {
					least = min(least, n)
				}
			}
			if path == "/" {
				break
			}
		}
	}
	if least >= 1<<50 {
		return 0
	}
	return least
}

// fitLimits lowers the limits of request bodies to their share of the available memory.
func fitLimits(lim proxy.LimitsConfig, allowed int64) proxy.LimitsConfig {
	if allowed > 0 {
		share := int64(bodiesShare)
		if lim.Memory != proxy.Defaults().Limits.Memory {
			share = configuredShare
		}
		lim.Memory = min(lim.Memory, max(allowed/share, minBodies))
		lim.Body = min(lim.Body, lim.Memory)
	}
	return lim
}

// setMemoryLimit makes the garbage collector respect the limit, unless GOMEMLIMIT is set.
func setMemoryLimit(allowed int64) {
	if allowed > 0 && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(allowed / 10 * softShare)
	}
}
