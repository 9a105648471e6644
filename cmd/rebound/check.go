package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/upstream"
)

// checkCommand validates a configuration.
func (p *program) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Validate a configuration",
		Long: `Reads a configuration file as the gateway does, with the environment variables and
files that it names, and prints every problem. It does not start the gateway.

Exit code: 0 valid, 1 problems (with --strict also warnings), 2 the file cannot be
read, or wrong command line.`,
		Args: usageArgs(cobra.ExactArgs(1)),
	}
	verbose := cmd.Flags().BoolP("verbose", "v", false, "also print the complete configuration that results, without secrets")
	noSecrets := cmd.Flags().Bool("no-secrets", false, "accept missing secrets and certificates, to check on a machine that has none")
	strict := cmd.Flags().Bool("strict", false, "treat warnings as problems")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return exit(check(args[0], *verbose, *noSecrets, *strict, p.env, p.stdout, p.stderr))
	}
	return cmd
}

// check prints the problems of a configuration, or a summary of a valid one, and returns the exit code.
func check(file string, verbose, noSecrets, strict bool, env configs.Env, stdout, stderr io.Writer) int {
	c, warnings, err := configs.Check(file, env, noSecrets)
	var problems configs.Errors
	switch {
	case errors.As(err, &problems):
		fmt.Fprintln(stderr, problems.Detail())
		for _, w := range warnings {
			fmt.Fprintf(stderr, "warning: %s\n", w)
		}
		noun := "problems"
		if len(problems) == 1 {
			noun = "problem"
		}
		fmt.Fprintf(stderr, "\n%d %s in %s\n", len(problems), noun, file)
		return 1
	case err != nil:
		fmt.Fprintf(stderr, "rebound check: %s\n", err)
		return 2
	}
	fmt.Fprintf(stdout, "ok: %s\n", file)
	summarize(stdout, c)
	for _, w := range warnings {
		fmt.Fprintf(stdout, "  warning: %s\n", w)
	}
	if verbose {
		fmt.Fprintf(stdout, "\n%s", c.Redacted())
	}
	if strict && len(warnings) > 0 {
		return 1
	}
	return 0
}

// summarize prints the addresses, upstreams, models, clients and store of a configuration.
func summarize(out io.Writer, c *configs.Config) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	row := func(title, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", title, fmt.Sprintf(format, args...))
	}
	row("listen", "%s", c.Listen())
	title := "upstreams"
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		note := ""
		if name == c.DefaultUpstream {
			note = "; default"
		}
		u := c.Upstreams[name]
		row(title, "%s: %s (%s; prefill %s; %s%s)", name, u.URL, profile(u), u.Prefills(), credential(u, len(c.Proxy.Auth.Keys) > 0), note)
		title = ""
	}
	title = "models"
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		var targets []string
		for _, t := range c.Models[name].Targets {
			targets = append(targets, t.Upstream+"/"+cmp.Or(t.Model, name))
		}
		row(title, "%s -> %s", name, strings.Join(targets, ", "))
		title = ""
	}
	var clients []string
	for _, k := range c.Proxy.Auth.Keys {
		clients = append(clients, k.Name)
	}
	if len(clients) == 0 {
		row("clients", "everyone who can connect")
	} else {
		row("clients", "keys %s", strings.Join(clients, ", "))
	}
	if c.Proxy.Auth.AdminToken == "" {
		row("admin", "this machine only")
	} else {
		row("admin", "this machine, or the admin token")
	}
	state := "memory"
	if c.Store.Redis.Enabled() {
		state = "redis"
	}
	row("state", "%s", state)
}

// profile returns "local", where slow first tokens are normal, or "hosted".
func profile(u upstream.Config) string {
	if u.Local() {
		return "local"
	}
	return "hosted"
}

// credential names the credential that an upstream receives.
func credential(u upstream.Config, gatewayKeys bool) string {
	if len(u.Keys) > 0 {
		var names []string
		for _, k := range u.Keys {
			names = append(names, k.Name)
		}
		if len(names) == 1 {
			return "key " + names[0]
		}
		return "keys " + strings.Join(names, ", ")
	}
	switch {
	case u.Passthrough && gatewayKeys:
		return "no credential: gateway keys are never passed on"
	case u.Passthrough:
		return "the client's credential"
	}
	return "no credential"
}
