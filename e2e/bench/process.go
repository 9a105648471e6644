//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// program is something to start.
type program struct {
	name string
	argv []string
	env  []string // all of it: a comparison must not depend on the caller's GOGC
}

// process is a started program.
type process struct {
	pid    int
	log    string
	exited chan struct{}
}

// start runs p on one core (on any if core is negative), with its output in a
// file in dir, which is also its working directory.
func start(p program, core int, dir string) (*process, error) {
	argv := p.argv
	if core >= 0 {
		argv = append([]string{"taskset", "-c", strconv.Itoa(core)}, argv...)
	}
	log, err := os.OpenFile(filepath.Join(dir, p.name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, p.env, log, log
	// A group of its own, so that workers end with their master; and should this
	// program be killed, the kernel ends the other.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	started := &process{pid: cmd.Process.Pid, log: log.Name(), exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(started.exited)
	}()
	return started, nil
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop ends the process and its children, first kindly.
func (p *process) stop() {
	if p == nil {
		return
	}
	_ = syscall.Kill(-p.pid, syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(5 * time.Second):
	}
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	<-p.exited
}

// lastWords is the end of the process's output, for an error's text.
func (p *process) lastWords() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-5):], []byte("\n")))
}

// allowedCores are the cores that this process may use.
func allowedCores() ([]int, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	_, list, _ := strings.Cut(string(b), "Cpus_allowed_list:")
	list, _, _ = strings.Cut(list, "\n")
	return parseCores(strings.TrimSpace(list))
}

// parseCores reads a list such as "0-2,5".
func parseCores(list string) ([]int, error) {
	var cores []int
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		if err != nil {
			return nil, fmt.Errorf("list of cores %q", list)
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(high); err != nil {
				return nil, fmt.Errorf("list of cores %q", list)
			}
		}
		for core := from; core <= to; core++ {
			cores = append(cores, core)
		}
	}
	return cores, nil
}

// pinSelf moves every thread of this process to one core; new threads follow.
func pinSelf(core int) error {
	out, err := exec.Command("taskset", "-a", "-c", "-p", strconv.Itoa(core), strconv.Itoa(os.Getpid())).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pinning to core %d: %w: %s", core, err, bytes.TrimSpace(out))
	}
	return nil
}
