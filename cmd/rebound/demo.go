package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/cmd/rebound/demo"
)

// demoCommand runs the demo.
func (p *program) demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show faults without and with the gateway, side by side",
		Long: `Starts a scripted faulty upstream and a gateway, runs a small agent through every fault
with and without the gateway, and prints what happens. It needs no API key and no
network.

Exit code: 0 every row through the gateway has the expected result, 1 one has not, 2
wrong command line.`,
		Args: usageArgs(cobra.NoArgs),
	}
	page := cmd.Flags().Bool("page", false, "after the table, keep producing faults for the status page until Ctrl-C")
	listen := cmd.Flags().String("listen", "", "`ADDRESS` of the gateway and its page, implies --page; with --page the default is 127.0.0.1:8080")
	verbose := cmd.Flags().BoolP("verbose", "v", false, "also print the gateway's events for each fault")
	cmd.RunE = func(*cobra.Command, []string) error { return runDemo(*page, *verbose, *listen, p.stdout) }
	return cmd
}

// runDemo prints the table of faults and then, with an address, serves the page until it is interrupted.
func runDemo(page, verbose bool, listen string, stdout io.Writer) error {
	if page && listen == "" {
		listen = "127.0.0.1:8080"
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	asExpected, err := demo.Run(ctx, stdout, demo.Options{
		Verbose: verbose, Colour: wantsColour(stdout), Version: buildVersion(), Listen: listen,
	})
	if err == nil && !asExpected {
		return exit(1)
	}
	return err
}

// wantsColour reports whether w is a terminal and neither NO_COLOR (no-color.org) nor
// TERM=dumb asks for plain text.
func wantsColour(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
