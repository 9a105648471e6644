//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/e2e/bench/load"
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// The names of the targets, as the tables show them.
const (
	direct       = "direct"
	nginx        = "nginx"
	reverseProxy = "ReverseProxy"
	rebound      = "Rebound"
)

// target is an address that takes chat completions, and the process behind it.
type target struct {
	name    string
	addr    string
	version string
	core    int
	dir     string
	program program
	process *process
}

// restart starts the target, ending it first if it runs, and returns the time
// from then until it gave its first answer through the upstream.
func (t *target) restart(ctx context.Context) (time.Duration, error) {
	t.process.stop()
	t.process = nil
	began := time.Now()
	process, err := start(t.program, t.core, t.dir)
	if err != nil {
		return 0, err
	}
	t.process = process
	for ctx.Err() == nil {
		err := load.Ask(t.addr, time.Second)
		took := time.Since(began)
		switch {
		case err == nil:
			return took, nil
		case !process.running():
			return 0, fmt.Errorf("%s ended instead of serving:\n%s", t.name, process.lastWords())
		case took > 20*time.Second:
			return 0, fmt.Errorf("%s gives no answer: %w\n%s", t.name, err, process.lastWords())
		}
		time.Sleep(time.Millisecond)
	}
	return 0, ctx.Err()
}

// field is everything that is compared in a run.
type field struct {
	targets []*target // direct first
	skipped []skip
	pinned  bool
}

// skip is a target that could not take part.
type skip struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

func (f *field) stop() {
	for _, t := range f.targets {
		t.process.stop()
	}
}

// prepare builds, configures and starts what o asks for; dir is for files.
func prepare(ctx context.Context, o options, dir string) (_ *field, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addrs, err := freeAddrs(4)
	if err != nil {
		return nil, err
	}
	upstream := addrs[0]
	environment := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	f := &field{targets: []*target{{
		name: direct, addr: upstream, version: "hand-written mock upstream",
		program: program{name: direct, argv: []string{self, "mock", upstream}, env: environment},
	}}}
	wanted := func(name string) bool { return listed(o.targets, name) }

	if wanted(nginx) {
		if binary, err := findNginx(ctx); err != nil {
			f.skip(nginx, err)
		} else if t, err := nginxTarget(ctx, binary, addrs[1], upstream, dir); err != nil {
			return nil, err
		} else {
			f.targets = append(f.targets, t)
		}
	}
	if wanted(reverseProxy) {
		f.targets = append(f.targets, &target{
			name: reverseProxy, addr: addrs[2], version: "net/http/httputil of " + runtime.Version(),
			program: program{name: reverseProxy, argv: []string{self, "reverseproxy", addrs[2], "http://" + upstream}, env: environment},
		})
	}
	if wanted(rebound) {
		binary, err := findRebound(ctx, o.binary, dir)
		if errors.Is(err, errNoRebound) {
			f.skip(rebound, err)
		} else if err != nil {
			return nil, fmt.Errorf("%w\n(leave it out with -targets direct,nginx,reverseproxy)", err)
		} else {
			f.targets = append(f.targets, &target{
				name: rebound, addr: addrs[3], version: "this checkout, default configuration",
				program: program{name: rebound, argv: []string{binary, "serve"}, env: append(environment,
					"REBOUND_LISTEN="+addrs[3], "OPENAI_UPSTREAM_URL=http://"+upstream+"/v1")},
			})
		}
	}

	gatewayCore, otherCore, err := chooseCores()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: nothing is pinned to a core:", err)
	}
	f.pinned = err == nil
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	for _, t := range f.targets {
		t.core, t.dir = gatewayCore, dir
		if t.name == direct {
			t.core = otherCore
		}
		if _, err := t.restart(ctx); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *field) skip(name string, err error) {
	fmt.Fprintf(os.Stderr, "bench: skipping %s: %v\n", name, err)
	f.skipped = append(f.skipped, skip{name, err.Error()})
}

// chooseCores pins this process to the second core and returns both, or -1 for
// each with the reason why not.
func chooseCores() (gateway, others int, err error) {
	cores, err := allowedCores()
	if err == nil && len(cores) < 2 {
		err = errors.New("two cores are needed")
	}
	if err == nil {
		err = pinSelf(cores[1])
	}
	if err != nil {
		return -1, -1, err
	}
	return cores[0], cores[1], nil
}

// freeAddrs returns n loopback addresses that nobody listens on right now.
func freeAddrs(n int) ([]string, error) {
	var addrs []string
	for len(addrs) < n {
		addr, err := upstreamtest.FreeAddr()
		if err != nil {
			return nil, err
		}
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs, nil
}

const reboundPackage = "github.com/rebound-llm/rebound/cmd/rebound"

var errNoRebound = errors.New("there is no ./cmd/rebound in this checkout")

// findRebound builds the gateway as it is released, unless a binary is given.
func findRebound(ctx context.Context, binary, dir string) (string, error) {
	if binary != "" {
		return filepath.Abs(binary)
	}
	if name, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Name}}", reboundPackage).Output(); err != nil || strings.TrimSpace(string(name)) != "main" {
		return "", errNoRebound
	}
	binary = filepath.Join(dir, "rebound")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", binary, reboundPackage)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building rebound: %w\n%s", err, out)
	}
	return binary, nil
}
