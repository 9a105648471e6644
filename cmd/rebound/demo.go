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

// demoCommand shows faults without and with the gateway, side by side.
func (p *program) demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show faults without and with the gateway, side by side",
		Long: `Starts a scripted faulty upstream and the gateway, runs a small agent through every
fault, straight and through the gateway, and prints what happened. It needs no key
and no network.

Exit code: 0 every row through the gateway is as promised, 1 one is not, 2 wrong use.`,
		Args: words(cobra.NoArgs),
	}
	page := cmd.Flags().Bool("page", false, "keep producing faults after the table, to watch on the page, until Ctrl-C")
	listen := cmd.Flags().String("listen", "", "`ADDRESS` to listen on, with --page (which it implies); 127.0.0.1:8080 if it is not given")
	verbose := cmd.Flags().BoolP("verbose", "v", false, "also print the gateway's events for each fault")
	cmd.RunE = func(*cobra.Command, []string) error { return runDemo(*page, *verbose, *listen, p.stdout) }
	return cmd
}

// runDemo prints the table of faults and then, with an address, keeps the page open.
func runDemo(page, verbose bool, listen string, stdout io.Writer) error {
	if page && listen == "" {
		listen = "127.0.0.1:8080"
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	kept, err := demo.Run(ctx, stdout, demo.Options{
		Verbose: verbose, Colour: wantsColour(stdout), Version: buildVersion(), Listen: listen,
	})
	if err == nil && !kept {
		return exit(1)
	}
	return err
}

// wantsColour reports whether w is a terminal whose user did not ask for plain
// text (see no-color.org).
func wantsColour(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
