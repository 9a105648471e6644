package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// maxRequestInput is the limit of the input in bytes, far above any context window.
const maxRequestInput = 256 << 20

// compressCommand makes a request fit a context window.
func (p *program) compressCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compress --limit N [FILE|-]",
		Short: "Make a request fit a context window",
		Long: `Makes a request of any format fit a context window, as the gateway does after an
overflow, but without a summariser: if shortening is not enough, a digest of
quotations replaces the oldest turns. It writes the new request to standard output and
a report to standard error: {"tokens_before", "tokens_after", "tiers",
"steps_compressed", "original_chars", "compressed_chars"}. A request that fits is
written unchanged. Without a file, or with -, it reads standard input.

Exit code: 0 done, 1 the request cannot be made to fit and is written unchanged, 2 no
such file, not a request, or wrong command line.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
	}
	limit := cmd.Flags().Uint("limit", 0, "size of the context window in `TOKENS`; required")
	model := cmd.Flags().String("model", "", "`MODEL` whose tokens to count; the default is the request's")
	reserve := cmd.Flags().Uint("reserve", 0, "`TOKENS` of the window to keep for the answer; the default is the request's output limit, but at most a quarter of the window, or without one an eighth, at most 4096")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *limit == 0 || *limit > math.MaxInt32 || *reserve > math.MaxInt32 {
			return usageError{errors.New("--limit is required: give the size of the window in tokens")}
		}
		keep := -1 // the default
		if cmd.Flags().Changed("reserve") {
			keep = int(*reserve)
		}
		raw, err := p.readAll(args, maxRequestInput)
		if err != nil {
			return err
		}
		return compress(raw, *model, int(*limit), keep, p.stdout, p.stderr)
	}
	return cmd
}

// compress writes the fitted request to stdout and the report to stderr. A negative reserve
// is the default.
func compress(raw []byte, model string, limit, reserve int, stdout, stderr io.Writer) error {
	body, err := transcript.ParseAny(raw, transcript.Limits{})
	switch {
	case err != nil:
		return inputError(fmt.Errorf("not a request: %w", err))
	case len(body.Messages()) == 0:
		return inputError(errors.New("the request has no messages"))
	}
	if model == "" {
		model = body.Model()
	}
	out, report, ok := fit.Compress(fit.Defaults(), body, count.NewMeter(), model, limit, reserve)
	if _, err := stdout.Write(out.Raw()); err != nil {
		return inputError(fmt.Errorf("writing: %w", err))
	}
	if err := json.NewEncoder(stderr).Encode(report); err != nil {
		return inputError(fmt.Errorf("writing: %w", err))
	}
	if !ok {
		return exit(1)
	}
	return nil
}
