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
		Short: "Run faults against any OpenAI-compatible gateway",
		Long: `Runs faults of a provider against the gateway whose base URL is URL, and prints a card:
what a client got through it and without it, how many requests that took, and how long.
The command is the client and the provider: a scripted upstream on --listen, to which the
gateway has to be pointed first. It waits for that. Every fault is a model of its own
(crash-...), so the gateway has to pass on names of models that it does not know.

One fault runs after the other, and the next one begins when the gateway serves a healthy
model again. docs/crashtest.md says what each fault is, and what is right.

Exit code: 0 the faults ran, whatever came of them, 1 they could not run, 2 wrong use.`,
		Args: words(cobra.ExactArgs(1)),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Listen, "listen", "127.0.0.1:9009", "`ADDRESS` of the scripted upstream")
	flags.StringVar(&o.Format, "format", "chat", "the `API` in which the client asks: chat, responses or messages")
	flags.DurationVar(&o.Timeout, "timeout", 90*time.Second, "how long the client waits for an answer, its own retries included")
	flags.DurationVar(&o.Wait, "wait", time.Minute, "how long the gateway may take to reach the upstream at first")
	flags.IntVar(&o.Parallel, "parallel", 1, "how many faults run at the same time; above 1 they may disturb each other")
	flags.StringVar(&o.Prefix, "prefix", "", "`TEXT` before the names of models, which the gateway takes away, such as openai/")
	key := flags.String("key-env", "", "the `VARIABLE` that holds the key of the gateway")
	headers := flags.StringArray("header", nil, "a `HEADER` for each request to the gateway, such as 'x-provider: openai'; again for another")
	asJSON := flags.Bool("json", false, "print the card as JSON")
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

// baseURL is a gateway's address as clients are given it: /v1 is added where there is no path.
func baseURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is not the URL of a gateway: write it as http://HOST:PORT/v1", text)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1"
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// headersOf reads lines of the form "Name: value".
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
