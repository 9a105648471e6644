package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/cmd/rebound/app"
	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy"
)

// runCommand runs one program behind a private gateway.
func (p *program) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [flags] -- PROGRAM [ARGUMENT...]",
		Short: "Run one program behind a private gateway, which ends with it",
		Long: `Starts a gateway on a free port of this machine, and then the program with its base
URL set to that gateway. It writes nothing to the program's configuration and passes
the program's credential through. The address contains a random token, so that other
users of the machine cannot use the gateway, unless the program gets the address as an
argument (--list). Requests go to the provider in --upstream, in the program's own
settings or variables, or in OPENAI_BASE_URL or ANTHROPIC_BASE_URL, or else to OpenAI
and Anthropic; if a configuration file has keys, to its upstreams. --list shows how each
known program is configured.

Exit code: that of the program, 127 if it cannot be found, 126 if it cannot be
started, 1 if the gateway cannot be started, 2 for a wrong command line or a login
that the gateway cannot serve.`,
		Args: cobra.ArbitraryArgs,
	}
	var o runOptions
	cmd.Flags().SetInterspersed(false) // flags after the program are the program's
	cmd.Flags().StringVar(&o.config, "config", "", "configuration `FILE` (YAML); the default is the built-in configuration")
	cmd.Flags().StringVar(&o.upstream, "upstream", "", "base `URL` of the provider; overrides the environment")
	cmd.Flags().StringVar(&o.log, "log", "", "append the gateway's log to this `FILE`; the default is no log")
	cmd.Flags().BoolVar(&o.page, "page", false, "print the address of the gateway's status page")
	cmd.Flags().BoolVar(&o.quiet, "quiet", false, "do not print at the end what was recovered")
	list := cmd.Flags().Bool("list", false, "list the known programs and how each is configured for the gateway")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		switch {
		case *list:
			return listPrograms(p.stdout)
		case len(args) == 0:
			return usageError{errors.New("no program given: write it after --, as in \"rebound run -- codex\"")}
		}
		return p.runProgram(o, args)
	}
	return cmd
}

// runOptions holds the flags of rebound run.
type runOptions struct {
	config, upstream, log string
	page, quiet           bool
}

// runProgram runs a program behind a private gateway. Both end together.
func (p *program) runProgram(o runOptions, args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		code := 127
		if errors.Is(err, fs.ErrPermission) {
			code = 126
		}
		return exitError{code: code, err: fmt.Errorf("%s: %w", args[0], errors.Unwrap(err))}
	}
	how := integrationFor(path)
	if how.unsupported != nil {
		if why := how.unsupported(p.env); why != "" {
			return inputError(errors.New(why))
		}
	}
	own := args[1:] // the program's arguments
	if how.extension != "" {
		dir, err := os.MkdirTemp("", "rebound-run-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		file := filepath.Join(dir, "rebound.ts")
		if err := os.WriteFile(file, []byte(how.extension), 0o600); err != nil {
			return err
		}
		own = append([]string{"-e", file}, own...)
	}
	token := rand.Text()
	done := &tally{}
	gateway, err := p.privateGateway(o, how, token, done)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- gateway.Run(ctx) }()
	defer func() {
		stop()
		<-served
		if text := done.String(); text != "" && !o.quiet {
			fmt.Fprintln(p.stderr, "rebound:", text)
		}
	}()
	if o.page {
		fmt.Fprintf(p.stderr, "rebound: the status page is http://%s/%s/rebound/\n", gateway.Addr(), token)
	}
	base := fmt.Sprintf("http://%s/%s/v1", gateway.Addr(), token)
	arguments, extra := how.configure(own, base, p.env)
	child := exec.Command(path, arguments...)
	child.Stdin, child.Stdout, child.Stderr = p.stdin, p.stdout, p.stderr
	child.Env = os.Environ()
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		child.Env = append(child.Env, name+"="+extra[name])
	}
	return exit(runChild(child))
}

// privateGateway returns a gateway that only answers below the path /token.
func (p *program) privateGateway(o runOptions, how integration, token string, done *tally) (*app.App, error) {
	given := p.providers(o, how)
	cfg, err := loadConfig(o.config, override(p.env, given))
	if err != nil {
		fmt.Fprintln(p.stderr, describe(err, given))
		return nil, exit(1)
	}
	if o.config != "" && o.upstream == "" { // keys of the file go only where the file says
		file, err := loadConfig(o.config, p.env)
		if err != nil {
			fmt.Fprintln(p.stderr, describe(err, nil))
			return nil, exit(1)
		}
		for name, u := range cfg.Upstreams {
			if len(u.Keys) > 0 {
				u.URL = file.Upstreams[name].URL
				cfg.Upstreams[name] = u
			}
		}
	}
	cfg.Proxy.Prefix, cfg.Proxy.Drain = "/"+token, time.Second // the only client has ended
	// The file may be that of a server, which may be running: the program gets an http URL and no further address.
	cfg.Proxy.TLS, cfg.Proxy.Admin = proxy.TLSConfig{}, proxy.AdminConfig{}
	cfg.Log.Format, cfg.Log.Requests = "json", true // done reads it
	if cfg.Log.Level != "debug" {
		cfg.Log.Level = "info"
	}
	if o.log != "" {
		f, err := os.OpenFile(o.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		done.log = f // stays open until the process ends
	}
	return app.New(cfg, done, buildVersion())
}

// providers returns the upstreams for a program's requests, as variables of the gateway.
func (p *program) providers(o runOptions, how integration) map[string]setting {
	first := func(names ...string) setting {
		for _, name := range names {
			if v, _ := p.env(name); v != "" {
				return setting{v, name}
			}
		}
		return setting{}
	}
	given := map[string]setting{configs.EnvListen: {value: "127.0.0.1:0"}, configs.EnvUpstream: first("OPENAI_BASE_URL", "OPENAI_API_BASE"), configs.EnvAnthropic: first(anthropicBase)}
	variable, own := configs.EnvUpstream, setting{}
	if how.provider != nil {
		variable, own = how.provider(p.env)
	}
	switch {
	case o.upstream != "":
		own = setting{o.upstream, "--upstream"}
	case own.value == "":
		own = given[variable]
	}
	given[variable] = own
	if o.config == "" { // a program may use both APIs, even if only one provider is named
		given[configs.EnvAnthropic] = cmp.Or(given[configs.EnvAnthropic], first(configs.EnvAnthropic), setting{value: configs.Defaults().Upstreams["anthropic"].URL})
	}
	return given
}

// runChild runs the program to its end, forwards signals to it, and returns its exit code.
func runChild(child *exec.Cmd) int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	in, _ := child.Stdin.(io.Writer) // a file, if it is one
	terminal := isTerminal(in) || isTerminal(child.Stdout) || isTerminal(child.Stderr)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		fmt.Fprintln(child.Stderr, "rebound run:", err)
		return 126
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case s := <-signals:
			if s != syscall.SIGINT || !terminal { // a terminal sends SIGINT to the program itself
				_ = child.Process.Signal(s)
			}
		case <-ended:
			status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
			if ok && status.Signaled() {
				return 128 + int(status.Signal())
			}
			return child.ProcessState.ExitCode()
		}
	}
}

// tally reads the gateway's log and counts what was recovered.
type tally struct {
	mu       sync.Mutex
	log      io.Writer // where the log is copied to; nil discards it
	rest     []byte    // the start of an incomplete line
	requests int
	count    map[string]int
	saved    int // tokens removed from histories
}

// recovered lists the counted events, with the text for one and for several of them.
var recovered = []struct{ event, strategy, one, several string }{
	{"stream_resumed", "", "cut stream continued", "cut streams continued"},
	{"error_recovery_attempt", "wait", "rate limit waited for", "rate limits waited for"},
	{"error_recovery_attempt", "resend", "failed request sent again", "failed requests sent again"},
	{"error_recovery_attempt", "move", "request moved to another target", "requests moved to another target"},
	{"trajectory_compressed", "", "history shortened", "histories shortened"},
	{"tool_call_repaired", "", "answer repaired", "answers repaired"},
	{"error_recovery_attempt", "reask", "unusable answer asked for again", "unusable answers asked for again"},
	{"error_recovery_attempt", "adapt_parameter", "request adapted to its target", "requests adapted to their target"},
	{"guidance_injected", "", "note about a failing tool", "notes about failing tools"},
	{"error_recovery_failed", "", "request failed despite recovery", "requests failed despite recovery"},
}

// Write implements io.Writer for lines of JSON.
func (t *tally) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rest = append(t.rest, b...)
	for {
		line, rest, whole := bytes.Cut(t.rest, []byte("\n"))
		if !whole {
			break
		}
		t.rest = rest
		var ev struct {
			Event    string `json:"event"`
			Strategy string `json:"strategy"`
			Observed bool   `json:"observed"`
			HeldOut  bool   `json:"held_out"`
			Withheld bool   `json:"withheld"`
			Before   int    `json:"original_tokens"`
			After    int    `json:"compressed_tokens"`
		}
		if json.Unmarshal(line, &ev) != nil {
			continue
		}
		if ev.Event == "request_done" {
			t.requests++
		}
		if ev.Observed || ev.HeldOut || ev.Withheld {
			continue
		}
		t.saved += max(0, ev.Before-ev.After)
		for _, r := range recovered {
			if r.event == ev.Event && (r.strategy == "" || r.strategy == ev.Strategy) {
				if t.count == nil {
					t.count = map[string]int{}
				}
				t.count[r.one]++
			}
		}
	}
	if t.log != nil {
		_, _ = t.log.Write(b)
	}
	return len(b), nil
}

// String lists what was recovered. It is "" if nothing was, but says so if the program did not use the gateway.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.requests == 0 {
		return "no request came through the gateway (rebound run --list shows how programs are configured)"
	}
	var list []string
	for _, r := range recovered {
		switch n := t.count[r.one]; {
		case n == 1:
			list = append(list, "1 "+r.one)
		case n > 1:
			list = append(list, fmt.Sprintf("%d %s", n, r.several))
		}
	}
	if t.saved >= 1000 {
		list = append(list, fmt.Sprintf("about %d,000 tokens not sent", t.saved/1000))
	}
	return strings.Join(list, ", ")
}

// listPrograms prints the known programs.
func listPrograms(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROGRAM\tCONFIGURED BY")
	for _, p := range programs {
		fmt.Fprintf(w, "%s\t%s\n", p.name, p.how)
	}
	return w.Flush()
}
