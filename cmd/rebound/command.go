package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/configs"
)

// program holds the environment and the standard streams of a command. Tests pass their own.
type program struct {
	env            configs.Env
	stdin          io.Reader
	stdout, stderr io.Writer
}

// exitError ends a command with an exit code. With a nil err the command has already
// reported the reason.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// exit returns the error for an exit code whose reason is already reported, or nil for 0.
func exit(code int) error {
	if code == 0 {
		return nil
	}
	return exitError{code: code}
}

// inputError makes err end the command with exit code 2, for input that it cannot use.
func inputError(err error) error { return exitError{code: 2, err: err} }

// usageError is a mistake in the command line; the usage is printed after it.
type usageError struct{ error }

// run executes the command line and returns the exit code: 0 for success, 2 for a wrong
// command line or unusable input, or else 1.
func (p *program) run(args []string) int {
	root := p.commands()
	root.SetArgs(args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	end := exitError{code: 1}
	if errors.As(err, &end) && end.err == nil {
		return end.code
	}
	fmt.Fprintf(p.stderr, "%s: %v\n", cmd.CommandPath(), err)
	switch wrong := errors.As(err, new(usageError)); {
	case wrong && cmd == root:
		fmt.Fprintln(p.stderr, `Run "rebound help" for the commands and flags.`)
		return 2
	case wrong:
		fmt.Fprintf(p.stderr, "\n%s", cmd.UsageString())
		return 2
	}
	return end.code
}

// commands returns the root command, which serves like `rebound serve`, with all others below it.
func (p *program) commands() *cobra.Command {
	root := p.serveCommand()
	root.Use = "rebound"
	root.Short = "A gateway for OpenAI-compatible APIs and Anthropic's that recovers from failures before the client notices"
	root.Long = `Rebound is a gateway in front of any OpenAI-compatible API and of Anthropic's Messages
API. It recovers from upstream failures before the client notices them. Without a
command it starts the gateway, like "rebound serve".`
	root.Version = buildVersion()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	serve := p.serveCommand()
	serve.Use, serve.Short = "serve", "Start the gateway"
	root.AddGroup(&cobra.Group{ID: "gateway", Title: "Run and check a gateway:"}, &cobra.Group{ID: "ask", Title: "Ask a running gateway:"},
		&cobra.Group{ID: "offline", Title: "Offline tools:"})
	for group, list := range map[string][]*cobra.Command{
		"gateway": {serve, p.runCommand(), p.checkCommand(), p.doctorCommand(), p.demoCommand(), p.crashtestCommand(),
			p.healthcheckCommand()},
		"ask": {p.topCommand(), p.eventsCommand(), p.sessionsCommand(), p.targetsCommand(), p.keysCommand(), p.approvalsCommand(),
			p.learnCommand()},
		"offline": {p.classifyCommand(), p.rulesCommand(), p.inspectCommand(), p.compressCommand(), p.tokensCommand()},
	} {
		for _, c := range list {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.AddCommand(&cobra.Command{Use: "version", Short: "Print the version", Args: usageArgs(cobra.NoArgs), RunE: func(*cobra.Command, []string) error {
		_, err := fmt.Fprintln(p.stdout, "rebound version", buildVersion())
		return err
	}})
	return root
}

// usageArgs turns the errors of an argument check into usage errors that show the right form.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		form := strings.TrimSuffix(cmd.UseLine(), " [flags]")
		switch {
		case len(args) == 0:
			return usageError{fmt.Errorf("an argument is missing: write %q", form)}
		case cmd.HasSubCommands():
			return unknownCommand(cmd, args[0])
		}
		return usageError{fmt.Errorf("too many arguments%s: write %q", configHint(cmd, args[0]), form)}
	}
}

// unknownCommand is the error for a name that no command below cmd has.
func unknownCommand(cmd *cobra.Command, name string) error {
	hint := configHint(cmd, name)
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError{fmt.Errorf("unknown command %q%s", name, hint)}
}

// configHint proposes --config for an argument that looks like a configuration file.
func configHint(cmd *cobra.Command, arg string) string {
	if ext := filepath.Ext(arg); cmd.Flags().Lookup("config") != nil && (ext == ".yaml" || ext == ".yml") {
		return " (did you mean --config " + arg + "?)"
	}
	return ""
}

// open opens the file in args[0]; no argument, or "-", is standard input.
func (p *program) open(args []string) (io.ReadCloser, error) {
	if len(args) == 0 || args[0] == "-" {
		return io.NopCloser(p.stdin), nil
	}
	f, err := os.Open(args[0])
	if err != nil {
		return nil, inputError(err)
	}
	return f, nil
}

// readAll reads a file, or standard input, of at most limit bytes.
func (p *program) readAll(args []string, limit int64) ([]byte, error) {
	in, err := p.open(args)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, limit+1))
	switch {
	case err != nil:
		return nil, inputError(fmt.Errorf("reading: %w", err))
	case int64(len(raw)) > limit:
		return nil, inputError(fmt.Errorf("the input is longer than %d bytes", limit))
	}
	return raw, nil
}
