package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/cmd/rebound/doctor"
	"github.com/rebound-llm/rebound/configs"
)

// doctorCommand tests what the configured targets support.
func (p *program) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [MODEL]",
		Short: "Test the configured targets: what works, and what can be recovered",
		Long: `Sends each configured target at most ten requests of about 200 tokens, directly and
with the gateway's credentials, and prints what works: credentials, models, the context
window if the provider states it, streams, tool calls, continuing a given beginning,
refused parameters, the clock. It also checks Redis, and that no upstream leads back to
the gateway. Then it prints what the gateway recovers there and how, what it does not
recover, and a suitable configuration.

If clients send their own credentials, it uses OPENAI_API_KEY and ANTHROPIC_API_KEY.
MODEL is a model name as clients use it. Without it, the command tests all configured
models, or the first that each upstream lists. No gateway needs to run.

Exit code: 0 no problems, 1 a problem that users would notice, 2 wrong command line or
invalid configuration.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
	}
	o := doctor.Options{Env: p.env}
	config := cmd.Flags().String("config", "", "configuration `FILE` (YAML); the default is the built-in configuration")
	upstream := cmd.Flags().String("upstream", "", "base `URL` of the default upstream; overrides the environment and the file")
	cmd.Flags().BoolVar(&o.Window, "window", false, "also send long prompts to test the whole context window; prints the cost first and asks")
	yes := cmd.Flags().Bool("yes", false, "accept the cost of --window without asking")
	asJSON := cmd.Flags().Bool("json", false, "print the report as JSON")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", time.Minute, "time limit of one request")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if o.Timeout <= 0 {
			return usageError{errors.New("--timeout must be positive")}
		}
		var err error
		given := map[string]setting{configs.EnvUpstream: {*upstream, "--upstream"}}
		if o.Config, err = loadConfig(*config, override(p.env, given)); err != nil {
			fmt.Fprintln(p.stderr, describe(err, given))
			return exit(2)
		}
		if len(args) == 1 {
			o.Model = args[0]
		}
		o.Ask = func(question string) bool { return *yes || p.confirm(question) }
		if isTerminal(p.stderr) {
			o.Progress = func(target string) { fmt.Fprintf(p.stderr, "testing %s ...\n", target) }
		}
		r := doctor.Run(cmd.Context(), o)
		show := r.Print
		if *asJSON {
			show = r.JSON
		}
		if err := show(p.stdout); err != nil {
			return err
		}
		if r.Count(doctor.Problem) > 0 {
			return exit(1)
		}
		return nil
	}
	return cmd
}

// confirm asks a question on standard error. Any answer but y or yes on standard input is a no.
func (p *program) confirm(question string) bool {
	fmt.Fprint(p.stderr, question, " [y/N] ")
	line, _ := bufio.NewReader(p.stdin).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
