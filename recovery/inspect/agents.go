package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// Cline and its kin answer in text: the tool with what it was called for, then the
// output, or a sentence and the error between tags.

// namedHead begins the first line of such an answer, namedEnd ends it. A command may
// have several lines.
var namedHead = recovery.NewPattern(`^\[([a-z]\w{1,60})(?:\]| for )`)

const namedEnd = "] Result:"

// toolFailed stands before the error.
const toolFailed = "The tool execution failed with the following error:"

// surroundings follow a result in the message of the person's side.
const surroundings = "\n<environment_details>"

// unwrapNamed takes that line off, or the sentence before an error.
func (v *view) unwrapNamed(text string) (inner string, ok bool) {
	if inner, ok := strings.CutPrefix(text, toolFailed); ok {
		v.set(failed, "error-envelope")
		inner, _, _ = strings.Cut(inner, surroundings)
		inner = strings.TrimSpace(inner)
		if body, whole := wholeError(inner); whole {
			return body, true
		}
		return inner, inner != ""
	}
	if text[0] != '[' {
		return text, false
	}
	end := strings.Index(text, namedEnd)
	m := namedHead.FindStringSubmatch(text)
	if end < 0 || m == nil {
		return text, false
	}
	if v.command == "" && m[1] == "execute_command" {
		v.command = strings.Trim(text[min(len(m[0]), end):end], "'")
	}
	inner, _, _ = strings.Cut(text[end+len(namedEnd):], surroundings)
	return strings.TrimLeft(inner, " \t\r\n"), true
}

// wholeError is the inside of a text that is an error's tag as a whole. What the error
// quotes may have tags of its own.
func wholeError(text string) (body string, ok bool) {
	for _, name := range []string{"error>", "tool_use_error>"} {
		inner, begun := strings.CutPrefix(text, "<"+name)
		if inner, ok = strings.CutSuffix(inner, "</"+name); begun && ok && !strings.Contains(inner, "</"+name) {
			return strings.TrimSpace(inner), true
		}
	}
	return "", false
}
