package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/tokenizer"
)

const tokensUsage = `usage: rebound tokens [--model M] [--text] [FILE|-]

Counts the tokens of a chat or Responses request, or with --text of any text, as the gateway
does. Writes {"tokens", "exact", "encoding"}. No file, or -, is standard input.

  --model M  the model to count for; otherwise the request's own, or gpt-4o for a text
  --text     the input is text, not a request

A request's tokens are its whole prompt: messages, calls, tools, pictures, framing.
exact says that the model's provider counts the same: the text of OpenAI's
models, and plain conversations of those whose framing is published. Otherwise
the number is an estimate.

Exit code: 0 done, 1 the request has no messages, 2 no such file, not a request,
or wrong use.
`

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

// tokensOptions is the command line.
type tokensOptions struct {
	model, file string
	text, help  bool
}

func parseTokensArgs(args []string) (o tokensOptions, err error) {
	for i := 0; i < len(args); i++ {
		name, value, assigned := strings.Cut(args[i], "=")
		switch name {
		case "-h", "-help", "--help":
			o.help = true
			continue
		case "-text", "--text":
			if o.text = true; assigned {
				return o, errors.New("--text takes no value")
			}
			continue
		case "-model", "--model":
			if !assigned {
				if i++; i == len(args) {
					return o, errors.New("--model needs a name")
				}
				value = args[i]
			}
			if o.model = value; value == "" {
				return o, errors.New("--model needs a name")
			}
			continue
		}
		switch {
		case len(args[i]) > 1 && args[i][0] == '-':
			return o, fmt.Errorf("unknown option %s", args[i])
		case o.file != "":
			return o, errors.New("more than one file")
		case args[i] == "":
			return o, errors.New("an empty file name")
		}
		o.file = args[i]
	}
	return o, nil
}

// runTokens is `rebound tokens [--model M] [--text] [FILE|-]`: it counts the
// tokens of a chat request or a text. It returns the exit code: 0 done, 1 the
// request has no messages (the rest is counted), 2 unusable input.
func runTokens(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fail := func(code int, format string, a ...any) int {
		fmt.Fprintf(stderr, "rebound tokens: "+format+"\n", a...)
		return code
	}
	o, err := parseTokensArgs(args)
	switch {
	case o.help:
		fmt.Fprint(stdout, tokensUsage)
		return 0
	case err != nil:
		code := fail(2, "%v", err)
		fmt.Fprint(stderr, tokensUsage)
		return code
	}
	in := stdin
	if o.file != "" && o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return fail(2, "%v", err)
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxTokensInput+1))
	switch {
	case err != nil:
		return fail(2, "reading: %v", err)
	case len(raw) > maxTokensInput:
		return fail(2, "the input has more than %d bytes", maxTokensInput)
	}
	result, code := tokensResult{}, 0
	if o.text {
		if o.model == "" {
			o.model = defaultTextModel
		}
		e, exact := tokenizer.ForModel(o.model)
		result = tokensResult{Tokens: e.Count(string(raw)), Exact: exact, Encoding: e.Name()}
	} else {
		b, err := transcript.ParseAny(raw, transcript.Limits{})
		if err != nil {
			return fail(2, "not a chat request: %v", err)
		}
		if len(b.Messages()) == 0 {
			code = fail(1, "the request has no messages")
		}
		if o.model == "" {
			o.model = b.Model()
		}
		c := count.NewMeter().Measure(b, o.model)
		result = tokensResult{Tokens: c.Total, Exact: c.Exact && code == 0, Encoding: c.Encoding}
	}
	if err := json.NewEncoder(stdout).Encode(result); err != nil {
		return fail(2, "writing: %v", err)
	}
	return code
}
