package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/cmd/rebound/app"
	"github.com/rebound-llm/rebound/configs"
)

// serveCommand starts the gateway and stops it on SIGTERM or SIGINT.
func (p *program) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Args: words(cobra.NoArgs),
		Long: `Starts the gateway: without a file at http://127.0.0.1:8080/v1, in front of
https://api.openai.com/v1. Its configuration reference: --print-defaults. Its log
is JSON; on a terminal it is lines for people.

Environment: REBOUND_LISTEN, OPENAI_UPSTREAM_URL, REBOUND_REDIS_URL,
REBOUND_ADMIN_TOKEN and REBOUND_LOG_LEVEL win over the file, flags over both.

Exit code: 0 stopped or drained, 1 it could not start, 2 wrong use.`,
	}
	file := cmd.Flags().String("config", "", "configuration `FILE` (YAML); without one the built-in defaults apply")
	listen := cmd.Flags().String("listen", "", "`ADDRESS` to listen on, like 127.0.0.1:8081; overrides the environment and the file")
	upstream := cmd.Flags().String("upstream", "", "base `URL` of the default upstream, like https://api.openai.com/v1; overrides the environment and the file")
	reference := cmd.Flags().Bool("print-defaults", false, "print the built-in configuration, which is the reference, and exit")
	chains := cmd.Flags().Bool("print-chains", false, "print the recovery chains, with what they are made of, and exit")
	cmd.RunE = func(*cobra.Command, []string) error {
		switch {
		case *chains:
			fmt.Fprint(p.stdout, configs.ChainsReference())
			return nil
		case *reference:
			fmt.Fprint(p.stdout, configs.Reference())
			return nil
		}
		return exit(serve(*file, *listen, *upstream, p.env, p.stderr))
	}
	return cmd
}

// serve runs the gateway until it is stopped and returns the exit code.
func serve(file, listen, upstream string, env configs.Env, stderr io.Writer) int {
	env = override(env, map[string]string{configs.EnvListen: listen, configs.EnvUpstream: upstream})
	cfg, err := loadConfig(file, env)
	if err != nil {
		why := describe(err)
		for flag, from := range map[string][2]string{"--listen": {configs.EnvListen, listen}, "--upstream": {configs.EnvUpstream, upstream}} {
			if from[1] != "" { // it is in the variable's place
				why = strings.ReplaceAll(why, "(set by "+from[0]+")", "(set by "+flag+")")
			}
		}
		fmt.Fprintln(stderr, why)
		return 1
	}
	// The reader of the log may end before the gateway does (a log shipper is restarted).
	// Without this the runtime ends the process at the next line (package os/signal, SIGPIPE).
	signal.Ignore(syscall.SIGPIPE)
	log, read := stderr, isTerminal(stderr) && cfg.Log.Format == "json"
	if read {
		log = people{stderr}
	}
	a, err := app.New(cfg, log, buildVersion())
	if err != nil {
		fmt.Fprintln(stderr, "rebound:", err)
		return 1
	}
	if read {
		greet(stderr, cfg, a)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the drain, too
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		a.Watch(ctx, env, hangups(ctx))
	}()
	// Warming up waits: the first request may be there already.
	time.AfterFunc(200*time.Millisecond, func() {
		collectOften(env)
		a.Warm()
		tuneGC(env)
	})
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

// healthcheckCommand asks whether a gateway answers.
func (p *program) healthcheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "healthcheck [URL]",
		Short: "Exit 0 if the gateway on this machine answers",
		Long: `Asks the gateway of this machine (REBOUND_LISTEN, else 127.0.0.1:8080) whether it
lives; a URL asks something else, like http://127.0.0.1:8080/readyz. It is for
containers that have no other program to ask with.

Exit code: 0 it answered with 200, 1 it did not, 2 wrong use.`,
		Args: words(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return healthy(args[0])
			}
			base, err := ownURL(p.env)
			if err != nil {
				return unusable(err)
			}
			return healthy(base + "/healthz")
		},
	}
}

// healthy reports why a URL does not answer with 200.
func healthy(url string) error {
	// It asks whether a gateway answers, and sends no secret: whose certificate that
	// has does not matter, and on this machine it is for another name.
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// ownURL is where the gateway of this machine listens, as far as the
// environment tells.
func ownURL(env configs.Env) (string, error) {
	listen, ok := env(configs.EnvListen)
	if !ok || listen == "" {
		listen = "127.0.0.1:8080"
	}
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return "", err
	}
	return "http://" + reachable(listen), nil
}
