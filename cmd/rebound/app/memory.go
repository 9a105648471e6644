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

// What the process may use is shared out: request bodies get an eighth, since what is read from
// them may need several times as much, and half where an operator wants more than the default or less.
const (
	bodiesShare = 8
	chosenShare = 2
	leastBodies = 16 << 20
	// softShare is the part up to which the collector lets the heap grow, in tenths.
	softShare = 8
)

// allowedMemory is how many bytes this process may use, 0 where nothing limits it: GOMEMLIMIT, its
// control group, or its address space.
func allowedMemory() int64 {
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

// groupLimit is the limit of the control group that a file names, in the tree at root; 0 for none.
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
		for path := filepath.Clean("/" + parts[2]); ; path = filepath.Dir(path) { // those above hold, too
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

// within lowers the memory of bodies to what the process can afford.
func within(lim proxy.LimitsConfig, allowed int64) proxy.LimitsConfig {
	if allowed > 0 {
		share := int64(bodiesShare)
		if lim.Memory != proxy.Defaults().Limits.Memory {
			share = chosenShare
		}
		lim.Memory = min(lim.Memory, max(allowed/share, leastBodies))
		lim.Body = min(lim.Body, lim.Memory)
	}
	return lim
}

// keepWithin has the collector heed the limit, unless GOMEMLIMIT says when.
func keepWithin(allowed int64) {
	if allowed > 0 && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(allowed / 10 * softShare)
	}
}
