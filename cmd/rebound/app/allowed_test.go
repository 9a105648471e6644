package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rebound-llm/rebound/proxy"
)

// The limit of a control group is the least of its own and its parents', in both versions.
func TestGroupLimit(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) string {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("memory.max", "max\n")
	write("a/memory.max", "2000000\n")
	write("a/b/memory.max", "3000000\n")
	write("memory/c/memory.limit_in_bytes", "1000000\n")
	write("memory/d/memory.limit_in_bytes", "9223372036854771712\n")
	for groups, want := range map[string]int64{
		"0::/a/b\n": 2000000, "0::/a\n": 2000000, "0::/\n": 0, "0::/gone/b\n": 0, "5:memory:/c\n4:cpu:/a\n": 1000000, "5:memory:/d\n": 0, "nonsense\n": 0, "0::/../../a\n": 2000000,
	} {
		if got := groupLimit(write("groups", groups), root); got != want {
			t.Errorf("%q: %d, want %d", groups, got, want)
		}
	}
	if got := groupLimit(filepath.Join(root, "none"), root); got != 0 {
		t.Errorf("without the file: %d", got)
	}
}

// Bodies get an eighth of the available memory, or up to half of it if limits.memory is set.
func TestWithin(t *testing.T) {
	usual, chosen := proxy.Defaults().Limits, proxy.Defaults().Limits
	chosen.Memory = 96 << 20
	for _, c := range []struct {
		lim          proxy.LimitsConfig
		allowed      int64
		memory, body int64
	}{
		{usual, 0, 512 << 20, 64 << 20}, {usual, 8 << 30, 512 << 20, 64 << 20}, {usual, 1 << 30, 128 << 20, 64 << 20}, {usual, 256 << 20, 32 << 20, 32 << 20}, {usual, 1, 16 << 20, 16 << 20},
		{chosen, 256 << 20, 96 << 20, 64 << 20}, {chosen, 128 << 20, 64 << 20, 64 << 20},
	} {
		if got := fitLimits(c.lim, c.allowed); got.Memory != c.memory || got.Body != c.body {
			t.Errorf("of %d: %d and %d, want %d and %d", c.allowed, got.Memory, got.Body, c.memory, c.body)
		}
	}
}
