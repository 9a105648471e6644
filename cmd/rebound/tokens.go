package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/tokenizer"
)

// defaultTextModel is the model for --text without --model.
const defaultTextModel = "gpt-4o"

// tokensResult is the output.
type tokensResult struct {
	Tokens   int    `json:"tokens"`
	Exact    bool   `json:"exact"`
	Encoding string `json:"encoding"`
}

// tokensCommand counts the tokens of a request or a text.
func (p *program) tokensCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tokens [FILE|-]",
		Short: "Count the tokens of a request or a text",
		Long: `Counts the tokens of a request of any format, or with --text of any text, as the
gateway does. It writes {"tokens", "exact", "encoding"}. Without a file, or with -, it
reads standard input.

The count of a request is the whole prompt: messages, tool calls, tool definitions,
images and framing. exact is true if the provider counts the same: for text with OpenAI
models, and for plain conversations with models whose framing is published. Otherwise
the count is an estimate.

Exit code: 0 done, 1 the request has no messages, 2 no such file, not a request, or
wrong command line.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
	}
	model := cmd.Flags().String("model", "", "`MODEL` whose tokens to count; the default is the request's, or gpt-4o with --text")
	text := cmd.Flags().Bool("text", false, "count the input as plain text, not as a request")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		raw, err := p.readAll(args, maxRequestInput)
		if err != nil {
			return err
		}
		var result tokensResult
		var missing error
		if *text {
			result = textTokens(raw, *model)
		} else if result, missing, err = requestTokens(raw, *model); err != nil {
			return inputError(err)
		}
		if err := json.NewEncoder(p.stdout).Encode(result); err != nil {
			return inputError(fmt.Errorf("writing: %w", err))
		}
		return missing
	}
	return cmd
}

// textTokens counts a text.
func textTokens(raw []byte, model string) tokensResult {
	if model == "" {
		model = defaultTextModel
	}
	e, exact := tokenizer.ForModel(model)
	return tokensResult{Tokens: e.Count(string(raw)), Exact: exact, Encoding: e.Name()}
}

// requestTokens counts a request. Without messages it counts the rest and returns missing.
func requestTokens(raw []byte, model string) (result tokensResult, missing, err error) {
	b, err := transcript.ParseAny(raw, transcript.Limits{})
	if err != nil {
		return tokensResult{}, nil, fmt.Errorf("not a request: %w", err)
	}
	if len(b.Messages()) == 0 {
		missing = errors.New("the request has no messages")
	}
	if model == "" {
		model = b.Model()
	}
	c := count.NewMeter().Measure(b, model)
	return tokensResult{Tokens: c.Total, Exact: c.Exact && missing == nil, Encoding: c.Encoding}, missing, nil
}
