package inspect

import (
	"github.com/rebound-llm/rebound/recovery"
)

// Linters, compilers and test runners show the source that they talk of. What it
// says is the program's text, and no evidence of how the call went.

var (
	// codeFrame is a line of source with its number: "   8 | code", " > 9 │ code", "9 ┃ code".
	codeFrame = recovery.NewPattern(`^\s*(?:[>❯›→▶✖×*]+\s*)?\d{1,7}\s*[|│┃┆╎▏](?:\s|$)`)
	// carets point at a place in the line above.
	carets = recovery.NewPattern(`^\s*(?:\d*\s*[|│┃┆╎▏·:]\s*)?~*\^[~^-]*(?:\s|$)`)
)

// quotesSource reports whether line i is source that a program quotes.
func (v *view) quotesSource(i int) bool {
	return codeFrame.MatchString(short(v.lines[i])) || i+1 < len(v.lines) && carets.MatchString(short(v.lines[i+1]))
}
