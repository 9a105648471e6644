package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/cmd/rebound/demo"
)

// crashtestCommand runs the demo's faults against any gateway.
func (p *program) crashtestCommand() *cobra.Command {
	o := demo.CrashOptions{Version: buildVersion(), Progress: p.stderr}
	cmd := &cobra.Command{
		Use:   "crashtest URL",
		Short: "Run provider faults against any LLM gateway",
		Long: `Runs provider faults against the gateway with the base URL URL. For each fault it prints
what a client gets with and without the gateway, the number of requests, and the time.

The command is both the client and the provider. Configure the gateway to use the
scripted upstream at --listen as its provider; the command waits for the gateway's first
request. Each fault is a model (crash-...), so the gateway must forward unknown model
names.

Faults run one after another. The next one starts when the gateway serves a healthy model
again. docs/crashtest.md describes each fault and the correct outcome.

Exit code: 0 all faults ran, whatever their outcome, 1 they cannot run, 2 wrong command
line.`,
		Args: usageArgs(cobra.ExactArgs(1)),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Listen, "listen", "127.0.0.1:9009", "`ADDRESS` of the scripted upstream")
	flags.StringVar(&o.Format, "format", "chat", "`API` that the client uses: chat, responses or messages")
	flags.DurationVar(&o.Timeout, "timeout", 90*time.Second, "how long the client waits for an answer, including its own retries")
	flags.DurationVar(&o.Wait, "wait", time.Minute, "how long to wait for the gateway's first request to the upstream")
	flags.IntVar(&o.Parallel, "parallel", 1, "number of faults to run at the same time; above 1 they may affect each other")
	flags.StringVar(&o.Prefix, "prefix", "", "`TEXT` before model names that the gateway removes, such as openai/")
	key := flags.String("key-env", "", "environment `VARIABLE` that holds the gateway's API key")
	headers := flags.StringArray("header", nil, "`HEADER` to send with each request to the gateway, such as 'x-provider: openai'; may be repeated")
	asJSON := flags.Bool("json", false, "print the result as JSON")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		var err error
		if o.Gateway, err = baseURL(args[0]); err != nil {
			return usageError{err}
		}
		if o.Header, err = headersOf(*headers); err != nil {
			return usageError{err}
		}
		if formats := demo.CrashFormats(); !slices.Contains(formats, o.Format) {
			return usageError{fmt.Errorf("--format is one of %s, not %q", strings.Join(formats, ", "), o.Format)}
		}
		if o.Timeout <= 0 || o.Parallel < 1 {
			return usageError{errors.New("--timeout and --parallel must be above 0")}
		}
		o.Key = "sk-crashtest"
		if *key != "" {
			var ok bool
			if o.Key, ok = p.env(*key); !ok {
				return usageError{fmt.Errorf("--key-env: the variable %s is not set", *key)}
			}
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		card, err := demo.Crash(ctx, o)
		if err != nil {
			return err
		}
		if *asJSON {
			enc := json.NewEncoder(p.stdout)
			enc.SetIndent("", "  ")
			return enc.Encode(card)
		}
		return card.Print(p.stdout, wantsColour(p.stdout))
	}
	return cmd
}

// baseURL checks the base URL of a gateway. It adds /v1 if there is no path.
func baseURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is not a base URL: write it as http://HOST:PORT/v1", text)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1"
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// headersOf parses lines of the form "Name: value".
func headersOf(lines []string) (http.Header, error) {
	h := http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("--header %q: write it as 'NAME: VALUE'", line)
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}
