// Command mockllm is an OpenAI-compatible mock upstream. The requested model name
// contains a script of the answers, good and bad:
//
//	mockllm -addr 127.0.0.1:9000
//	curl 127.0.0.1:9000/v1/chat/completions -d '{"model":"demo@429,retry-after=2/ok","messages":[]}'
//
// "mockllm -help" documents the script language.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("mockllm: ")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Print(err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("mockllm", flag.ContinueOnError)
	var opts upstreamtest.Options
	addr := fs.String("addr", "127.0.0.1:9000", "address to listen on")
	script := fs.String("script", "", "JSON file that maps model names to scripts")
	fs.DurationVar(&opts.Latency, "latency", 0, "time before every answer")
	fs.DurationVar(&opts.Gap, "gap", 0, "time between the content chunks of a stream")
	fs.IntVar(&opts.Chunks, "chunks", 20, "content chunks of a stream")
	fs.IntVar(&opts.Bytes, "bytes", 600, "bytes of content in an answer")
	fs.IntVar(&opts.KeepRequests, "keep", 1000, "requests that /mock/requests remembers; -1 for none")
	fs.Int64Var(&opts.MaxBody, "max-body", 64<<20, "largest request body in bytes")
	fs.StringVar(&opts.As, "as", "", "imitate a known server: "+strings.Join(upstreamtest.Disguises(), ", "))
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), "An OpenAI-compatible mock upstream. The requested model name contains a script of the answers, good and bad.\n\n")
		fs.PrintDefaults()
		fmt.Fprintf(fs.Output(), "\n%s", upstreamtest.Language())
	}
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if opts.As != "" && !slices.Contains(upstreamtest.Disguises(), opts.As) {
		return fmt.Errorf("-as: %q is none of %s", opts.As, strings.Join(upstreamtest.Disguises(), ", "))
	}
	s := upstreamtest.New(opts)
	if *script != "" {
		if err := load(s, *script); err != nil {
			return err
		}
	}
	running, err := s.Listen(*addr)
	if err != nil {
		return err
	}
	defer running.Close()
	log.Printf("listening on %s", running.URL())
	<-ctx.Done()
	return nil
}

// load sets the scripts from a JSON file that maps model names to scripts.
func load(s *upstreamtest.Server, name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("reading scripts: %w", err)
	}
	var scripts map[string]string
	if err := json.Unmarshal(b, &scripts); err != nil {
		return fmt.Errorf("reading scripts of %s: %w", name, err)
	}
	for model, steps := range scripts {
		if err := s.Script(model, steps); err != nil {
			return fmt.Errorf("reading scripts of %s: %w", name, err)
		}
	}
	return nil
}
