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
		Args: usageArgs(cobra.NoArgs),
		Long: `Starts the gateway. Without a configuration file it listens at
http://127.0.0.1:8080/v1 and sends requests to https://api.openai.com/v1. Run it
with --print-defaults for the configuration reference. The log is JSON; on a
terminal it is plain text.

The environment variables REBOUND_LISTEN, OPENAI_UPSTREAM_URL, ANTHROPIC_UPSTREAM_URL,
REBOUND_REDIS_URL, REBOUND_ADMIN_TOKEN and REBOUND_LOG_LEVEL override the file. Flags
override both.

Exit code: 0 stopped or drained, 1 cannot start or failed, 2 wrong command line.`,
	}
	file := cmd.Flags().String("config", "", "configuration `FILE` (YAML); the default is the built-in configuration")
	listen := cmd.Flags().String("listen", "", "`ADDRESS` to listen on, such as 127.0.0.1:8081; overrides the environment and the file")
	upstream := cmd.Flags().String("upstream", "", "base `URL` of the default upstream, such as https://api.openai.com/v1; overrides the environment and the file")
	reference := cmd.Flags().Bool("print-defaults", false, "print the built-in configuration, which documents every key, and exit")
	chains := cmd.Flags().Bool("print-chains", false, "print the recovery chains and their strategies, and exit")
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
	given := map[string]setting{configs.EnvListen: {listen, "--listen"}, configs.EnvUpstream: {upstream, "--upstream"}}
	env = override(env, given)
	cfg, err := loadConfig(file, env)
	if err != nil {
		fmt.Fprintln(stderr, describe(err, given))
		return 1
	}
	// The reader of the log may end before the gateway, for example when a log shipper restarts.
	// Without this the runtime would end the process at the next line (package os/signal, SIGPIPE).
	signal.Ignore(syscall.SIGPIPE)
	log, read := stderr, isTerminal(stderr) && cfg.Log.Format == "json"
	if read {
		log = terminalLog{stderr}
	}
	tuneGC(env)
	a, err := app.New(cfg, log, buildVersion())
	if err != nil {
		fmt.Fprintln(stderr, "rebound:", err)
		return 1
	}
	if read {
		printBanner(stderr, cfg, a)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once, without the drain
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		a.Watch(ctx, env, hup)
	}()
	// Warming up waits, because the first request may have arrived already.
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

// setting is a value for one of the gateway's variables, and the flag or the variable that gives it.
type setting struct{ value, source string }

// override returns env with the given variables in place of its own. An empty value overrides nothing.
func override(env configs.Env, given map[string]setting) configs.Env {
	return func(name string) (string, bool) {
		if v := given[name].value; v != "" {
			return v, true
		}
		return env(name)
	}
}

// describe formats an error; configuration problems come with the lines of the file, and name
// the source of a given variable.
func describe(err error, given map[string]setting) string {
	var problems configs.Errors
	if !errors.As(err, &problems) {
		return "rebound: " + err.Error()
	}
	text := problems.Detail()
	for name, s := range given {
		if s.value != "" {
			text = strings.ReplaceAll(text, "(set by "+name+")", "(set by "+s.source+")")
		}
	}
	return text
}

// healthcheckCommand checks that a gateway answers.
func (p *program) healthcheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "healthcheck [URL]",
		Short: "Exit 0 if the gateway on this machine answers",
		Long: `Checks that the gateway on this machine (at REBOUND_LISTEN, or else at
127.0.0.1:8080) is alive. With a URL it checks that instead, for example
http://127.0.0.1:8080/readyz. Use it in containers that have no HTTP client.

Exit code: 0 the answer is 200, 1 it is not or there is none, 2 wrong command line.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return checkHealth(args[0])
			}
			base, err := localURL(p.env)
			if err != nil {
				return inputError(err)
			}
			url := base + "/healthz"
			if err = checkHealth(url); err != nil && checkHealth("https"+strings.TrimPrefix(url, "http")) == nil {
				return nil // the address does not tell whether the gateway serves TLS
			}
			return err
		},
	}
}

// checkHealth returns an error unless the URL answers with 200.
func checkHealth(url string) error {
	// The certificate need not be valid: the check sends no secret, and on this machine
	// the certificate is for another name.
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

// localURL returns the URL of the gateway on this machine, from REBOUND_LISTEN or the
// default address. It does not read a configuration file.
func localURL(env configs.Env) (string, error) {
	listen, ok := env(configs.EnvListen)
	if !ok || listen == "" {
		listen = "127.0.0.1:8080"
	}
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return "", err
	}
	return "http://" + localAddress(listen), nil
}
