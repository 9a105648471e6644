package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/rebound-llm/rebound/cmd/rebound/demo"
)

// runDemo shows faults, straight and through the gateway, side by side. It
// returns 0 if every row through the gateway is as promised, else 1.
func runDemo(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("rebound demo", flag.ContinueOnError)
	fs.SetOutput(stderr)
	page := fs.Bool("page", false, "go on with faults after the table, to be watched on the gateway's page, until Ctrl-C")
	listen := fs.String("listen", "", "`ADDRESS` to listen on, with --page (which it implies); 127.0.0.1:8080 if it is not given")
	verbose := fs.Bool("v", false, "also print the gateway's events for each fault")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "rebound demo: unexpected argument %q\n", fs.Arg(0))
		return 2
	}
	if *page && *listen == "" {
		*listen = "127.0.0.1:8080"
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	kept, err := demo.Run(ctx, stdout, demo.Options{
		Verbose: *verbose, Colour: wantsColour(stdout), Version: buildVersion(), Listen: *listen,
	})
	if err != nil {
		fmt.Fprintln(stderr, "rebound demo:", err)
		return 1
	}
	if !kept {
		return 1
	}
	return 0
}

// wantsColour reports whether w is a terminal whose user did not ask for plain
// text (see no-color.org).
func wantsColour(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
