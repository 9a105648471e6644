//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/rebound-llm/rebound/e2e/bench/mock"
	"github.com/rebound-llm/rebound/e2e/bench/reverseproxy"
)

var errGates = errors.New("not every gate is met")

func main() {
	// The program is also the two servers that it starts.
	if len(os.Args) > 2 && (os.Args[1] == "mock" || os.Args[1] == "reverseproxy") {
		fmt.Fprintln(os.Stderr, serve(os.Args[1], os.Args[2], os.Args[3:]...))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errGates):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

// serve runs one of the program's own servers.
func serve(role, addr string, upstream ...string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	if role == "mock" {
		debug.SetGCPercent(400)
		return mock.Serve(l)
	}
	u, err := url.Parse(strings.Join(upstream, ""))
	if err != nil {
		return err
	}
	return reverseproxy.Serve(l, u)
}

// options are the command's flags.
type options struct {
	quick    bool
	watched  bool
	gate     bool
	rounds   int
	targets  string
	only     string
	binary   string
	json     string
	markdown string
}

func parseFlags(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.BoolVar(&o.quick, "quick", false, "one round of short phases, unless -rounds says more")
	fs.BoolVar(&o.watched, "watched", false, "measure instead what events, an open page and traces cost, in 240 rounds, unless -rounds says otherwise")
	fs.BoolVar(&o.gate, "gate", false, "exit with 1 unless every gate is measured and met")
	fs.IntVar(&o.rounds, "rounds", 0, "rounds, each driving every target; 3 by default")
	fs.StringVar(&o.targets, "targets", "direct,nginx,reverseproxy,rebound", "what to compare; direct is always measured")
	fs.StringVar(&o.only, "scenarios", "", "run only those whose key contains one of these, comma-separated")
	fs.StringVar(&o.binary, "rebound", "", "use this binary instead of building ./cmd/rebound")
	fs.StringVar(&o.json, "o", "", "write every figure to this file, as JSON")
	fs.StringVar(&o.markdown, "md", "", "write the tables to this file, as Markdown; if it exists, only between its markers")
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	if fs.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if o.rounds < 0 {
		return options{}, fmt.Errorf("%d rounds", o.rounds)
	}
	for name := range strings.SplitSeq(o.targets, ",") {
		if !listed(direct+","+nginx+","+reverseProxy+","+rebound, name) {
			return options{}, fmt.Errorf("unknown target %q", name)
		}
	}
	if o.rounds == 0 && o.watched {
		o.rounds = 240
	} else if o.rounds == 0 && o.quick {
		o.rounds = 1
	} else if o.rounds == 0 {
		o.rounds = 3
	}
	return o, nil
}

// command is how to run the same again, without where the figures went.
func (o options) command() string {
	c := fmt.Sprintf("go run ./e2e/bench -rounds %d", o.rounds)
	if o.quick {
		c += " -quick"
	}
	return c
}

func run(ctx context.Context, args []string) error {
	o, err := parseFlags(args)
	if err != nil {
		return err
	}
	if err := raiseFileLimit(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rebound-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	if o.watched {
		return watched(ctx, o, dir)
	}
	report := newReport(o)
	field, err := prepare(ctx, o, dir)
	if err != nil {
		return err
	}
	defer field.stop()
	report.describe(field)

	// The timer's thread blocks in the kernel; the rest must not wait for it.
	runtime.GOMAXPROCS(2)
	debug.SetGCPercent(400)
	report.results = newResults()
	before, err := readMeter(field)
	if err != nil {
		return err
	}
	for _, s := range scenarios(o.quick) {
		if !selected(o.only, s.key) {
			continue
		}
		if err = s.run(ctx, field, o, report.results); err != nil {
			break // what was measured until then is still of use
		}
	}
	if after, meterErr := readMeter(field); meterErr == nil { // else a target has ended, as err says
		report.others = after.others(before)
	}
	report.gates = checkGates(report.results)
	report.print(os.Stdout)
	if err != nil {
		return err
	}
	if err := report.save(o); err != nil {
		return err
	}
	if o.gate && !allMet(report.gates) {
		return errGates
	}
	return nil
}

// selected reports whether a list of parts names key; an empty one does.
func selected(parts, key string) bool {
	for part := range strings.SplitSeq(parts, ",") {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}

// raiseFileLimit makes room for 2,000 streams here and in every process that is
// started: the runtime raises the limit only for itself.
func raiseFileLimit() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("reading the limit of open files: %w", err)
	}
	if limit.Max < 6000 {
		return fmt.Errorf("the limit of open files is %d, at least 6000 are needed", limit.Max)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("raising the limit of open files: %w", err)
	}
	return nil
}

// listed reports whether a comma-separated list has name, in any case.
func listed(list, name string) bool {
	for entry := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(entry, name) {
			return true
		}
	}
	return false
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
