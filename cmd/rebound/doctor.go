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

// doctorCommand asks the configured targets what recovery can rely on.
func (p *program) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [MODEL]",
		Short: "Ask the configured targets what can be recovered, and how",
		Long: `Sends each configured target at most ten requests of some 200 tokens, straight, with
the gateway's credentials, and says what works there: credentials, models, the
context window as far as it is told, streams, tool calls, the continuation of a given
beginning, refused parameters, the clock; of the gateway itself Redis, and whether
requests come back to it. Then what is recovered, how, what is not, and the
configuration that fits. Where clients bring their own credential it takes
OPENAI_API_KEY and ANTHROPIC_API_KEY. MODEL is what clients call it; without it, all
configured models, or the first that an upstream lists. No gateway has to run.

Exit code: 0 all is well, 1 something would fail users, 2 wrong use or unusable
configuration.`,
		Args: words(cobra.MaximumNArgs(1)),
	}
	o := doctor.Options{Env: p.env}
	config := cmd.Flags().String("config", "", "configuration `FILE` (YAML); without one the built-in defaults apply")
	upstream := cmd.Flags().String("upstream", "", "base `URL` of the default upstream; overrides the environment and the file")
	cmd.Flags().BoolVar(&o.Window, "window", false, "send long prompts, too, to see whether all of the window is read; says the price first and asks")
	yes := cmd.Flags().Bool("yes", false, "agree to the price of --window")
	asJSON := cmd.Flags().Bool("json", false, "print the report as JSON")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", time.Minute, "the longest that one request may take")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if o.Timeout <= 0 {
			return usageError{errors.New("--timeout must be positive")}
		}
		var err error
		if o.Config, err = loadConfig(*config, override(p.env, map[string]string{configs.EnvUpstream: *upstream})); err != nil {
			fmt.Fprintln(p.stderr, describe(err))
			return exit(2)
		}
		if len(args) == 1 {
			o.Model = args[0]
		}
		o.Ask = func(question string) bool { return *yes || p.agree(question) }
		if isTerminal(p.stderr) {
			o.Progress = func(target string) { fmt.Fprintf(p.stderr, "asking %s ...\n", target) }
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

// agree asks a question on standard error; everything but a yes on standard input is a no.
func (p *program) agree(question string) bool {
	fmt.Fprint(p.stderr, question, " [y/N] ")
	line, _ := bufio.NewReader(p.stdin).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
