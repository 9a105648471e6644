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

// maxTokensInput bounds what is read: far beyond what any window holds.
const maxTokensInput = 256 << 20

// defaultTextModel is whose encoding counts a text when no model is named.
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
		Long: `Counts the tokens of a request of any format, or with --text of any text, as
the gateway does. Writes {"tokens", "exact", "encoding"}. No file, or -, is standard
input.

A request's tokens are its whole prompt: messages, calls, tools, pictures, framing.
exact says that the model's provider counts the same: the text of OpenAI's
models, and plain conversations of those whose framing is published. Otherwise
the number is an estimate.

Exit code: 0 done, 1 the request has no messages, 2 no such file, not a request,
or wrong use.`,
		Args: words(cobra.MaximumNArgs(1)),
	}
	model := cmd.Flags().String("model", "", "the `MODEL` to count for; otherwise the request's own, or gpt-4o for a text")
	text := cmd.Flags().Bool("text", false, "the input is text, not a request")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		raw, err := p.readAll(args, maxTokensInput)
		if err != nil {
			return err
		}
		var result tokensResult
		var missing error
		if *text {
			result = textTokens(raw, *model)
		} else if result, missing, err = requestTokens(raw, *model); err != nil {
			return unusable(err)
		}
		if err := json.NewEncoder(p.stdout).Encode(result); err != nil {
			return unusable(fmt.Errorf("writing: %w", err))
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

// requestTokens counts a request. Where that has no messages missing says so, and the
// rest is counted.
func requestTokens(raw []byte, model string) (result tokensResult, missing, err error) {
	b, err := transcript.ParseAny(raw, transcript.Limits{})
	if err != nil {
		return tokensResult{}, nil, fmt.Errorf("not a chat request: %w", err)
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
