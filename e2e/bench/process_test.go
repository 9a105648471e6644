//go:build linux

package main

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParseCores(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-1": {0, 1}, "2,4-6": {2, 4, 5, 6}} {
		if got, err := parseCores(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	for _, list := range []string{"", "a", "1-"} {
		if got, err := parseCores(list); err == nil {
			t.Errorf("%q: %v", list, got)
		}
	}
}

func TestParseStat(t *testing.T) {
	pid, parent, err := parseStat([]byte("42 (a) b (c)) S 7 42 42 0 -1 4194560"))
	if err != nil || pid != 42 || parent != 7 {
		t.Errorf("%d, %d, %v", pid, parent, err)
	}
	for _, line := range []string{"", "42 (a)", "x (a) S 7", "42 (a) S y"} {
		if _, _, err := parseStat([]byte(line)); err == nil {
			t.Errorf("%q: no error", line)
		}
	}
}

func TestCPUTimeCountsWhatThisProcessUses(t *testing.T) {
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var start, now syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &start)
	burnt := func() time.Duration {
		syscall.Getrusage(syscall.RUSAGE_SELF, &now)
		return time.Duration(now.Utime.Nano() + now.Stime.Nano() - start.Utime.Nano() - start.Stime.Nano())
	}
	for burnt() < 60*time.Millisecond {
	}
	after, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if used := after - before; used < 50*time.Millisecond || used > burnt()+50*time.Millisecond {
		t.Errorf("%v for %v", used, burnt())
	}
}

func TestMemory(t *testing.T) {
	now, highest, err := memory(os.Getpid())
	if err != nil || now < 1<<20 || highest < now/2 {
		t.Errorf("now %d, highest %d, %v", now, highest, err)
	}
}

func TestMeter(t *testing.T) {
	busy, err := parseBusy([]byte("cpu  100 10 50 9999 888 1 2 3 0 0\ncpu0 1 2 3\n"))
	if err != nil || busy != 1660*time.Millisecond {
		t.Errorf("busy for %v, %v", busy, err)
	}
	for _, file := range []string{"", "cpu 1 2", "intr 1 2 3 4 5 6 7 8", "cpu a 2 3 4 5 6 7 8"} {
		if busy, err := parseBusy([]byte(file)); err == nil {
			t.Errorf("%q: %v", file, busy)
		}
	}

	start := meter{at: time.Unix(0, 0), busy: time.Hour, own: time.Minute}
	end := meter{at: time.Unix(10, 0), busy: time.Hour + 12*time.Second, own: time.Minute + 9*time.Second}
	if got := end.others(start); got != 0.3 {
		t.Errorf("others used %v cores, want 0.3", got)
	}
}

// A master that leaves its worker behind must not outlive the run.
func TestStopEndsChildren(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p, err := start(program{name: "family", argv: []string{sh, "-c", `sleep 60 & echo $!; wait`}, env: os.Environ()}, -1, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	var child int
	for end := time.Now().Add(5 * time.Second); child == 0 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		child, _ = strconv.Atoi(strings.TrimSpace(p.lastWords()))
	}
	members, err := family(p.pid)
	if err != nil || !slices.Contains(members, child) || !slices.Contains(members, p.pid) {
		t.Fatalf("family %v without child %d: %v", members, child, err)
	}
	p.stop()
	if p.running() {
		t.Error("still running")
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if syscall.Kill(child, 0) != nil || zombie(child) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the child is still there")
		}
	}
}

func zombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(b), ") Z ")
}
