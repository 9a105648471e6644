//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// family returns the pids of a process and its descendants.
func family(pid int) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	parents := make(map[int]int, len(files))
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		id, parent, err := parseStat(line)
		if err != nil {
			return nil, err
		}
		parents[id] = parent
	}
	if _, found := parents[pid]; !found {
		return nil, fmt.Errorf("process %d has ended", pid)
	}
	var members []int
	for id := range parents {
		for at := id; at > 1; at = parents[at] {
			if at == pid {
				members = append(members, id)
				break
			}
		}
	}
	return members, nil
}

// parseStat reads a process and its parent from /proc/PID/stat. The name between
// them may hold blanks and brackets.
func parseStat(line []byte) (pid, parent int, err error) {
	number, _, _ := bytes.Cut(line, []byte(" "))
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, fmt.Errorf("process state %q", line)
	}
	if pid, err = strconv.Atoi(string(number)); err == nil {
		parent, err = strconv.Atoi(string(fields[1]))
	}
	if err != nil {
		return 0, 0, fmt.Errorf("process state %q: %w", line, err)
	}
	return pid, parent, nil
}

// cpuTime is what a process and its descendants have used, user and system. It
// asks their CPU clocks: /proc/PID/stat has the same figures, but cut to 10 ms
// each, which is a tenth of a short phase.
func cpuTime(pid int) (time.Duration, error) {
	members, err := family(pid)
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, id := range members {
		used, err := clock(id)
		if err != nil {
			return 0, fmt.Errorf("CPU time of process %d: %w", id, err)
		}
		total += used
	}
	return total, nil
}

// clock reads a process's CPU clock, all threads of it, as clock_getcpuclockid(3)
// names it.
func clock(pid int) (time.Duration, error) {
	const scheduled = 2 // the scheduler's exact count, rather than one of sampled ticks
	id := ^pid<<3 | scheduled
	var t syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&t)), 0)
	if errno != 0 {
		return 0, errno
	}
	return time.Duration(t.Nano()), nil
}

// memory is the resident set of a process and its descendants in bytes, now and
// at its highest. Pages that they share count for each, as they do for nginx.
func memory(pid int) (now, highest int64, err error) {
	members, err := family(pid)
	if err != nil {
		return 0, 0, err
	}
	for _, id := range members {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", id))
		if err != nil {
			return 0, 0, err
		}
		now += kilobytes(status, "VmRSS:") << 10
		highest += kilobytes(status, "VmHWM:") << 10
	}
	return now, highest, nil
}

// kilobytes is the value of one line of /proc/PID/status.
func kilobytes(status []byte, name string) int64 {
	_, rest, _ := bytes.Cut(status, []byte("\n"+name))
	fields := bytes.Fields(rest[:min(len(rest), 40)])
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return n
}

// meter tells how much CPU was used between two moments by programs that have no
// part in the run.
type meter struct {
	at   time.Time
	busy time.Duration // of all cores; what a hypervisor took counts too
	own  time.Duration
}

func readMeter(f *field) (meter, error) {
	line, err := os.ReadFile("/proc/stat")
	if err != nil {
		return meter{}, err
	}
	m := meter{at: time.Now()}
	if m.busy, err = parseBusy(line); err != nil {
		return meter{}, err
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} { // children that have ended
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err != nil {
			return meter{}, err
		}
		m.own += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	for _, t := range f.targets {
		used, err := cpuTime(t.process.pid)
		if err != nil {
			return meter{}, err
		}
		m.own += used
	}
	return m, nil
}

// parseBusy reads /proc/stat: "cpu", then user, nice, system, idle, iowait, irq,
// softirq and steal, in hundredths of a second on every architecture of Go's.
func parseBusy(file []byte) (time.Duration, error) {
	line, _, _ := bytes.Cut(file, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 9 || string(fields[0]) != "cpu" {
		return 0, fmt.Errorf("state of the cores %q", line)
	}
	var busy time.Duration
	for i, field := range fields[1:9] {
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("state of the cores %q: %w", line, err)
		}
		if name := i + 1; name != 4 && name != 5 { // idle, iowait
			busy += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return busy, nil
}

// others is the number of cores that other programs kept busy since start.
func (m meter) others(start meter) float64 {
	used := (m.busy - start.busy) - (m.own - start.own)
	return max(0, used.Seconds()/m.at.Sub(start.at).Seconds())
}
