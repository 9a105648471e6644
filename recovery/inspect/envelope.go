package inspect

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// diffHead matches the first line of a diff tool's output.
var diffHead = recovery.NewPattern(`(?m)^(?:\d+(?:,\d+)?[acd]\d+(?:,\d+)?$|diff --git |--- \S+.*\n\+\+\+ |Binary files .* differ$|Files .* differ$|Only in \S+: )`)

// unwrap removes one wrapper. errors is the error stream if the wrapper separates it.
func (v *view) unwrap(text string) (inner, errors string, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" {
		return text, "", false
	}
	for _, heading := range []string{"### Result\n", "### Error\n"} { // Playwright's MCP server
		if inner, ok := strings.CutPrefix(text, heading); ok {
			return inner, "", true
		}
	}
	if inner, ok := v.unwrapNamed(text); ok {
		return inner, "", true
	}
	if text[0] == '{' || text[0] == '[' {
		if inner, errors, ok := v.unwrapJSON(text); ok || v.structured {
			return inner, errors, ok
		}
	}
	unwrapText := v.unwrapOutput
	if v.kind == trajectory.Reader {
		unwrapText = v.unwrapRead
	}
	if inner, errors, ok := unwrapText(text); ok {
		return inner, errors, true
	}
	if inner, ok := v.unwrapStatus(text); ok {
		return inner, "", true
	}
	return v.unwrapError(text)
}

// unwrapOutput reads what an agent puts around a program's output.
func (v *view) unwrapOutput(text string) (inner, errors string, ok bool) {
	if text[0] == '<' && !v.hasExit { // with an exit code outside, the tags are output
		if inner, errors, ok = v.unwrapTags(text); ok {
			return inner, errors, true
		}
	}
	inner, ok = v.unwrapLines(text)
	return inner, "", ok
}

// unwrapRead reads an error in place of what a reading tool returns; tags in a file are content.
func (v *view) unwrapRead(text string) (inner, errors string, ok bool) {
	if strings.HasPrefix(text, "<tool_use_error>") || strings.HasPrefix(text, "<error>") {
		return v.unwrapTags(text)
	}
	if inner, ok := strings.CutPrefix(text, "Observation:"); ok { // an agent's, and no file's: the other words of class output_head also begin files
		return inner, "", true
	}
	inner, ok = v.unwrapFiles(text)
	return inner, "", ok
}

// unwrapFiles reads a result of Roo Code's file reader in which no file could be read.
func (v *view) unwrapFiles(text string) (inner string, ok bool) {
	if !strings.HasPrefix(text, "<file") || strings.Contains(text, "<content") {
		return "", false
	}
	for range maxTags {
		_, rest, more := strings.Cut(text, "<error>")
		body, rest, whole := strings.Cut(rest, "</error>")
		if !more || !whole {
			break
		}
		inner, text = join(inner, body), rest
	}
	if inner == "" {
		return "", false
	}
	v.set(failed, "tag-error")
	return inner, true
}

// unwrapJSON reads results that are one JSON value.
func (v *view) unwrapJSON(text string) (inner, errors string, ok bool) {
	m, ok := trajectory.ReadEnvelope(text)
	if v.structured = ok; !ok {
		return text, "", false
	}
	if m.Outcomes > 0 && !v.call.Lists(m.Outcomes) { // of something else than the call
		return text, "", false
	}
	switch {
	case m.HasExit && (m.HasOutput || m.Fields <= 3):
		v.setExit(m.Exit, "json-exit-code")
		if m.TimedOut {
			v.decided = finding{true, recovery.ToolTimeout, certain, "json-timed-out", firstLine(m.Errors, m.Output)}
		}
		if m.Exit != 0 {
			m.Errors = join(m.Errors, m.Failure)
		}
		return join(m.Output, m.Ending), m.Errors, true
	case m.Failure != "" && m.Said != succeeded:
		v.set(failed, "json-error")
		text = join(m.Failure, m.Message)
		if m.Status >= 400 {
			text += "\nHTTP status " + strconv.Itoa(m.Status)
		}
		return text, "", true
	case m.Said == failed:
		v.set(failed, "json-status")
		return join(m.Message, m.Output), m.Errors, m.Message+m.Output+m.Errors != ""
	case m.Said == succeeded:
		v.set(succeeded, "json-status")
	case m.Message != "" && !m.HasOutput && m.Fields <= 4 && !m.Logged && !m.Record:
		if v.match(m.Message) != nil {
			v.set(failed, "json-message")
			return m.Message, "", true
		}
		if m.Fields <= 2 && v.outcome == unknown && !v.onlyReads() && !v.call.Awaits() && v.rules.says(m.Message, shortFailure) && !v.rules.says(m.Message, goesOn) {
			v.decided = finding{true, recovery.CategoryNone, possible, "json-message", m.Message}
		}
	}
	if m.Fields <= 6 && m.Output+m.Errors != "" {
		return m.Output, m.Errors, true
	}
	return text, "", false
}

// statusBody matches the output of a client that prints an HTTP error status with the body below it.
var statusBody = recovery.NewPattern(`^(?:(?:HTTP )?[Ss]tatus(?: code)?:? |HTTP )?([45]\d\d)(?: [A-Z][\w -]{1,40})?:?\s+\{(?:\s*["']|\s*\n| \w+: )`)

// unwrapStatus reads such a result: the status is the failure.
func (v *view) unwrapStatus(text string) (inner string, ok bool) {
	if v.kind == trajectory.Reader || v.outcome == failed || len(text) < 6 || len(text) > 2000 || text[len(text)-1] != '}' {
		return text, false
	}
	m := statusBody.FindStringSubmatch(text)
	if m == nil {
		return text, false
	}
	v.set(failed, "http-status")
	return "HTTP status " + m[1] + "\n" + text, true
}

func firstLine(texts ...string) string {
	for _, s := range texts {
		if s = strings.TrimSpace(s); s != "" {
			line, _, _ := strings.Cut(s, "\n")
			return line
		}
	}
	return ""
}

// tag matches the start of a part of the result.
var tag = recovery.NewPattern(`<(returncode|exit_code|exitcode|return_code|output|stdout|stderr|error|tool_use_error|result|` +
	`function_results|tool_result|tool_response|output_head|output_tail|observation|bash_metadata|shell_metadata|bash-stdout|bash-stderr|system|status|name|message)>\n?`)

// small are parts without inner tags; XML data has elements of the same names.
var small = map[string]bool{"result": true, "system": true, "status": true, "name": true, "message": true}

// maxTags limits how many tagged parts of a result are read.
const maxTags = 8

// nextTag returns the name and the content of the first part of a text, up to its own end tag: the content may
// contain other tags, as a page does.
func nextTag(text string) (name, body, rest string, ok bool) {
	for {
		m := tag.FindStringSubmatch(text)
		if m == nil {
			return "", "", "", false
		}
		_, text, _ = strings.Cut(text, m[0])
		body, rest, ok = strings.Cut(text, "</"+m[1]+">")
		if ok && (!small[m[1]] || !strings.Contains(body, "</")) {
			return m[1], strings.TrimSuffix(body, "\n"), rest, true
		}
	}
}

// unwrapTags reads results made of XML-like tags: mini-swe-agent, Claude Code, Cursor and others.
func (v *view) unwrapTags(text string) (inner, errors string, ok bool) {
	for range maxTags {
		name, body, rest, more := nextTag(text)
		if !more {
			break
		}
		text = rest
		switch name {
		case "returncode", "exit_code", "exitcode", "return_code":
			if n, err := strconv.Atoi(strings.TrimSpace(body)); err == nil {
				v.setExit(n, "tag-exit-code")
			}
		case "error", "tool_use_error":
			v.set(failed, "tag-error")
			inner = join(inner, body)
		case "stderr", "bash-stderr":
			errors = join(errors, body)
		case "name", "status":
		default:
			inner = join(inner, body)
		}
		ok = true
	}
	return inner, errors, ok
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// maxWrapperLine limits the lines that may belong to a wrapper, in bytes.
const maxWrapperLine = 200

// unwrapLines reads results with the outcome on lines of their own, before or after the output.
func (v *view) unwrapLines(text string) (inner string, ok bool) {
	inner = v.withoutTail(v.withoutHead(text))
	if i := strings.LastIndex(inner, "\nStderr: "); i >= 0 && v.hasExit {
		inner = inner[:i+1] + inner[i+len("\nStderr: "):]
	}
	return inner, inner != text
}

// withoutHead removes the lines that an agent puts above an output.
func (v *view) withoutHead(text string) string {
	for range near {
		first, rest, _ := strings.Cut(text, "\n")
		l := line{text: strings.TrimSpace(first)}
		if command, is := strings.CutPrefix(l.text, "Command: "); is && v.call.Line() == "" {
			v.call = trajectory.CommandCall(command)
		} else if !v.wraps(&l, true) {
			m := v.rules.Submatch(v.rules.of[outputHead], v.hitsOf(&l), &rule.Subject{Raw: short(l.text)})
			if m == nil {
				return text
			}
			return strings.TrimLeft(text[strings.Index(text, m[0])+len(m[0]):], " ")
		}
		text = strings.TrimLeft(rest, "\r\n")
	}
	return text
}

// withoutTail removes the lines that an agent puts below an output.
func (v *view) withoutTail(text string) string {
	for range near {
		text = strings.TrimRight(text, " \t\r\n")
		i := strings.LastIndexByte(text, '\n') + 1
		l := line{text: strings.TrimSpace(text[i:])}
		if !v.wraps(&l, false) || l.text == "Output:" && i > 0 {
			break
		}
		text = text[:i]
	}
	return text
}

// wraps reports whether a line belongs to a wrapper. It records the exit code that the line states, unless a
// code with precedence is known.
func (v *view) wraps(l *line, first bool) bool {
	if len(l.text) > maxWrapperLine || len(v.hitsOf(l)) == 0 {
		return false
	}
	s := rule.Subject{Raw: l.text}
	if m := v.rules.Submatch(v.rules.of[exitCode], l.hits, &s); len(m) > 1 {
		if n, err := strconv.Atoi(cmp.Or(m[1], "0")); err == nil {
			if first || !v.hasExit {
				v.setExit(n, "exit-line")
			}
			return true
		}
	}
	return v.rules.FirstOf(v.rules.of[wrapper], l.hits, &s) >= 0
}

// consoleList matches the beginning of a list of browser console messages: a first message with its location, or
// a first message with one of another level below it.
var consoleList = recovery.NewPattern(`^\[ERROR\] [^\n]* @ \S+:\d+(?:\n|$)|^\[ERROR\] [^\n]*\n\[(?:ERROR|WARNING|WARN|INFO|LOG|DEBUG|VERBOSE|TRACE)\] `)

// listsMessages reports whether a text is such a list.
func listsMessages(text string) bool {
	return strings.HasPrefix(text, "[ERROR]") && consoleList.MatchString(text)
}

// stackLine matches the first frame of a stack trace.
var stackLine = recovery.NewPattern(`^\s+at \S`)

// toolSchema matches how CrewAI describes a tool and its protocol below each error of the tool.
var toolSchema = recovery.NewPattern(`(?s)\.\n Tool [^\n]{1,100} accepts these inputs: .*`)

// errorName matches an exception's name at the beginning of a line.
var errorName = recovery.NewPattern(`(?m)^\w*Error: `)

// unwrapError reads results that begin with an agent framework's error prefix.
func (v *view) unwrapError(text string) (inner, errors string, ok bool) {
	first, more, _ := strings.Cut(text, "\n")
	l := line{text: first[:min(len(first), maxWrapperLine)]}
	if len(v.hitsOf(&l)) == 0 {
		return text, "", false
	}
	s := rule.Subject{Raw: l.text}
	if v.outcome == unknown && len(text) < 4000 {
		if m := v.rules.Submatch(v.rules.of[errorSentence], l.hits, &s); m != nil {
			v.set(failed, "error-envelope")
			return strings.TrimSuffix(text[len(m[0]):], toolSchema.FindString(text)), "", true
		}
	}
	if v.outcome == unknown && v.kind == trajectory.Other && strings.Count(more, "\n") < 2 && v.rules.Submatch(v.rules.of[exceptionText], l.hits, &s) != nil {
		v.set(failed, "exception-text")
		return text, "", false
	}
	if v.rules.Submatch(v.rules.of[errorHead], l.hits, &s) == nil || listsMessages(text) || v.outcome != failed && v.onlyReads() || // content that the command read
		v.kind == trajectory.Reader && (len(text) > 2000 || strings.Count(text, "\n") > 20) { // a file that begins with such a line
		return text, "", false
	}
	if v.outcome != succeeded {
		v.set(failed, "error-envelope")
	} else if strings.HasPrefix(text, "Error: ") && strings.Count(text, "\n") < 3 && !errorName.MatchString(more) { // no list of errors that was read from a file
		v.decided = finding{true, recovery.CategoryNone, possible, "error-line", text}
		if r := v.match(first); r != nil && (more == "" || stackLine.MatchString(more)) {
			v.decided = v.findingOf(r, &line{text: first}, worded)
		}
	}
	return text, "", false
}

// Cline and similar agents send results as text: a line with the tool and its target, then the output, or a
// sentence and the error in tags.

// namedHead matches the beginning of that line, namedEnd its end. A command may span several lines.
var namedHead = recovery.NewPattern(`^\[([a-z]\w{1,60})(?:\]| for )`)

const namedEnd = "] Result:"

// toolFailed matches the sentence before the error: of Cline, of Kimi Code, which puts the duration before it, and of
// OpenHands.
var toolFailed = recovery.NewPattern(`^(?:The tool execution failed with the following error:|` +
	`(?:Wall time: [\d.]+ seconds\n)?<system>ERROR: Tool execution failed\.</system>|\[An error occurred during execution\.\])`)

// surroundings follow a result in the user message.
const surroundings = "\n<environment_details>"

// unwrapNamed removes the line with the tool, or the sentence before an error.
func (v *view) unwrapNamed(text string) (inner string, ok bool) {
	if head := toolFailed.FindString(text); head != "" {
		v.set(failed, "error-envelope")
		inner, _, _ = strings.Cut(text[len(head):], surroundings)
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
	if v.call.Line() == "" && m[1] == "execute_command" {
		v.call = trajectory.CommandCall(strings.Trim(text[min(len(m[0]), end):end], "'"))
	}
	inner, _, _ = strings.Cut(text[end+len(namedEnd):], surroundings)
	return strings.TrimLeft(inner, " \t\r\n"), true
}

// wholeError returns the content of a text that is one error tag. The quoted error may contain tags of its own.
func wholeError(text string) (body string, ok bool) {
	for _, name := range []string{"error>", "tool_use_error>"} {
		inner, begun := strings.CutPrefix(text, "<"+name)
		if inner, ok = strings.CutSuffix(inner, "</"+name); begun && ok && !strings.Contains(inner, "</"+name) {
			return strings.TrimSpace(inner), true
		}
	}
	return "", false
}
