package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rebound-llm/rebound/cmd/rebound/app"
	"github.com/rebound-llm/rebound/configs"
)

// runServe starts the gateway and stops it on SIGTERM or SIGINT.
func runServe(args []string, env configs.Env, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("rebound serve", flag.ContinueOnError)
	fs.SetOutput(stderr)
	file := fs.String("config", "", "configuration `FILE` (YAML); without one the built-in defaults apply")
	listen := fs.String("listen", "", "`ADDRESS` to listen on, like 127.0.0.1:8081; wins over the environment and the file")
	upstream := fs.String("upstream", "", "base `URL` of the default upstream, like https://api.openai.com/v1; wins over the environment and the file")
	reference := fs.Bool("print-defaults", false, "print the built-in configuration, which is the reference, and exit")
	chains := fs.Bool("print-chains", false, "print the recovery chains, with what they are made of, and exit")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "rebound serve: unexpected argument %q\n", fs.Arg(0))
		return 2
	}
	if *chains {
		fmt.Fprint(stdout, configs.ChainsReference())
		return 0
	}
	if *reference {
		fmt.Fprint(stdout, configs.Reference())
		return 0
	}
	env = override(env, map[string]string{configs.EnvListen: *listen, configs.EnvUpstream: *upstream})
	cfg, err := loadConfig(*file, env)
	if err != nil {
		fmt.Fprintln(stderr, describe(err))
		return 1
	}
	// The reader of the log may end before the gateway does (a log shipper is restarted).
	// Without this the runtime ends the process at the next line (package os/signal, SIGPIPE).
	signal.Ignore(syscall.SIGPIPE)
	tuneGC(env)
	a, err := app.New(cfg, stderr, buildVersion())
	if err != nil {
		fmt.Fprintln(stderr, "rebound:", err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the drain, too
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		a.Watch(ctx, env, hangups(ctx))
	}()
	// Not at once: the first request may be there already.
	time.AfterFunc(200*time.Millisecond, a.Warm)
	err = a.Run(ctx)
	stop()
	<-watched
	if err != nil {
		fmt.Fprintln(stderr, "rebound:", err)
		return 1
	}
	return 0
}

func loadConfig(file string, env configs.Env) (*configs.Config, error) {
	if file == "" {
		return configs.Default(env)
	}
	return configs.Load(file, env)
}

// override is env with the values that flags gave; an empty one is not given.
func override(env configs.Env, given map[string]string) configs.Env {
	return func(name string) (string, bool) {
		if v := given[name]; v != "" {
			return v, true
		}
		return env(name)
	}
}

// describe renders configuration problems with the lines they are about.
func describe(err error) string {
	var problems configs.Errors
	if errors.As(err, &problems) {
		return problems.Detail()
	}
	return "rebound: " + err.Error()
}

// hangups turns SIGHUP into values until ctx ends.
func hangups(ctx context.Context) <-chan struct{} {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	out := make(chan struct{})
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case <-signals:
				select {
				case out <- struct{}{}:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

const healthcheckUsage = `usage: rebound healthcheck [URL]

Asks the gateway of this machine (REBOUND_LISTEN, else 127.0.0.1:8080) whether it
lives; a URL asks something else, like http://127.0.0.1:8080/readyz. It is for
containers that have no other program to ask with.

Exit code: 0 it answered with 200, 1 it did not, 2 wrong use.
`

// runHealthcheck is "rebound healthcheck"; it returns the exit code.
func runHealthcheck(args []string, env configs.Env, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("healthcheck", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, healthcheckUsage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "rebound healthcheck: %v\n\n%s", err, healthcheckUsage)
		return 2
	case flags.NArg() > 1:
		fmt.Fprint(stderr, healthcheckUsage)
		return 2
	}
	url := flags.Arg(0)
	if url == "" {
		base, err := ownURL(env)
		if err != nil {
			fmt.Fprintln(stderr, "rebound healthcheck:", err)
			return 2
		}
		url = base + "/healthz"
	}
	// It asks whether a gateway answers, and sends no secret: whose certificate that
	// has does not matter, and on this machine it is for another name.
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := client.Get(url)
	if err != nil {
		fmt.Fprintln(stderr, "rebound healthcheck:", err)
		return 1
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		fmt.Fprintln(stderr, "rebound healthcheck:", resp.Status)
		return 1
	}
	return 0
}

// ownURL is where the gateway of this machine listens, as far as the
// environment tells.
func ownURL(env configs.Env) (string, error) {
	listen, ok := env(configs.EnvListen)
	if !ok || listen == "" {
		listen = "127.0.0.1:8080"
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}
