package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

const compressUsage = `usage: rebound compress --limit N [--model M] [--reserve R] [FILE|-]

Makes a request, of chat completions or the Responses API, fit a context window, as
the gateway does after an overflow, but without a summariser: where shortening does
not suffice, the oldest turns give way to a digest of quotations. Writes the new
request to standard output and a report to standard error: {"tokens_before",
"tokens_after", "tiers", "steps_compressed", "original_chars", "compressed_chars"}.
A request that fits is written as it is. No file, or -, is standard input.

  --limit N    the window in tokens
  --model M    the model to count for; otherwise the request's own
  --reserve R  tokens of the window to keep for the answer; otherwise the
               request's own limit, which is lowered where it takes up more than
               a quarter of the window, else an eighth of the window, at most 4096

Exit code: 0 done, 1 the request cannot be made to fit (it is written as it is),
2 no such file, not a request, or wrong use.
`

// maxCompressInput bounds what is read: far beyond what any window holds.
const maxCompressInput = 256 << 20

// compressOptions is the command line.
type compressOptions struct {
	model, file    string
	limit, reserve int // reserve is -1 when it is not given
	help           bool
}

func parseCompressArgs(args []string) (o compressOptions, err error) {
	o.reserve = -1
	number := func(name, value string, least int) (int, error) {
		n, err := strconv.Atoi(value)
		if err != nil || n < least {
			return 0, fmt.Errorf("%s needs a number of tokens, at least %d", name, least)
		}
		return n, nil
	}
	for i := 0; i < len(args); i++ {
		name, value, assigned := strings.Cut(args[i], "=")
		switch name = strings.TrimPrefix(name, "-"); {
		case name == "h" || name == "help" || name == "-help":
			o.help = true
			return o, nil
		case name == args[i] || args[i] == "-": // a file
			if o.file != "" || args[i] == "" {
				return o, errors.New("exactly one file is needed")
			}
			o.file = args[i]
			continue
		}
		name = "--" + strings.TrimPrefix(name, "-")
		if !assigned {
			if i++; i == len(args) {
				return o, fmt.Errorf("%s needs a value", name)
			}
			value = args[i]
		}
		switch name {
		case "--limit":
			o.limit, err = number(name, value, 1)
		case "--reserve":
			o.reserve, err = number(name, value, 0)
		case "--model":
			if o.model = value; value == "" {
				err = errors.New("--model needs a name")
			}
		default:
			err = fmt.Errorf("unknown option %s", name)
		}
		if err != nil {
			return o, err
		}
	}
	if o.limit == 0 {
		return o, errors.New("--limit is needed")
	}
	return o, nil
}

// runCompress is `rebound compress`. It returns the exit code: 0 done, 1 the
// request cannot be made to fit, 2 unusable input.
func runCompress(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fail := func(format string, a ...any) int {
		fmt.Fprintf(stderr, "rebound compress: "+format+"\n", a...)
		return 2
	}
	o, err := parseCompressArgs(args)
	switch {
	case o.help:
		fmt.Fprint(stdout, compressUsage)
		return 0
	case err != nil:
		code := fail("%v", err)
		fmt.Fprint(stderr, compressUsage)
		return code
	}
	in := stdin
	if o.file != "" && o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return fail("%v", err)
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxCompressInput+1))
	switch {
	case err != nil:
		return fail("reading: %v", err)
	case len(raw) > maxCompressInput:
		return fail("the input has more than %d bytes", maxCompressInput)
	}
	body, err := transcript.ParseAny(raw, transcript.Limits{})
	if err != nil {
		return fail("not a chat request: %v", err)
	}
	if len(body.Messages()) == 0 {
		return fail("the request has no messages")
	}
	if o.model == "" {
		o.model = body.Model()
	}
	meter := count.NewMeter()
	out, report, ok := fit.Compress(fit.Defaults(), body, meter, o.model, o.limit, o.reserve)
	if _, err := stdout.Write(out.Raw()); err != nil {
		return fail("writing: %v", err)
	}
	if err := json.NewEncoder(stderr).Encode(report); err != nil {
		return fail("writing: %v", err)
	}
	if !ok {
		return 1
	}
	return 0
}
