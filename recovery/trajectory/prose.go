package trajectory

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// sentence matches the beginning of a sentence that is not a command.
var sentence = recovery.NewPattern(`^[A-Z][a-z']+ [\w'\x60][\w'\x60-]* [\w'\x60-]|^[A-Z][a-z]+(?:'[a-z]+|,) [\w'\x60-]`)

// Prose returns the first line of a command line that is natural language and not a command: a heading such as
// DISCUSSION, or a sentence. It returns "" for commands.
func (c *Call) Prose() string {
	first, rest, _ := strings.Cut(strings.TrimSpace(c.Line()), "\n")
	program, _, _ := strings.Cut(first, " ")
	if program == "" || strings.ContainsAny(program, "/.-_=(") || program[0] < 'A' || program[0] > 'Z' {
		return ""
	}
	heading := len(program) > 4 && strings.ToUpper(program) == program && strings.TrimSuffix(first, ":") == strings.TrimSuffix(program, ":")
	if heading || sentence.MatchString(first) || sentence.MatchString(strings.TrimSpace(rest)) {
		return first
	}
	return ""
}
