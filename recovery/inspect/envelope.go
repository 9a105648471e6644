package inspect

import (
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

var (
	terminal = recovery.NewPattern("\x1b(?:\\[[0-9;?]*[ -/]*[@-~]|\\][^\x07\x1b]{0,200}(?:\x07|\x1b\\\\)|[()][A-B0-2]|[=>78cDEHM])")
	diffHead = recovery.NewPattern(`(?m)^(?:\d+(?:,\d+)?[acd]\d+(?:,\d+)?$|diff --git |--- \S+.*\n\+\+\+ |Binary files .* differ$|Files .* differ$|Only in \S+: )`)
)

// exitLines are the ways to state an exit code on a line of its own, at the
// head or the tail of a result. The first group is the code.
var exitLines = []*recovery.Pattern{
	// Claude Code, Codex, AutoGen, Gemini CLI, Roo Code, mini agents
	recovery.NewPattern(`(?i)^[\[(<*\s]*(?:error: )?(?:process |command |shell )?(?:exit|return)[ _-]?(?:code|status)\s*[:=]?\s*(-?\d{1,10})\b(?: \([a-z ]{1,40}\))?[\])>*.\s]*$`),
	// Roo Code
	recovery.NewPattern(`^Command executed in terminal\b.{0,160}\. Exit code: (-?\d{1,10})$`),
	// pi, OpenHands, Codex (sessions), Copilot, Cline and others
	recovery.NewPattern(`(?i)^[\[(<\s]*(?:error: )?(?:the |shell )?(?:command|process|script|program|shell|execution|bash)\b[^:\n]{0,60}?\b(?:exited|completed|finished|failed|returned|terminated|ended)\b[^:\n]{0,30}?\b(?:code|status)\b[: ]{1,2}(-?\d{1,10})\b[^\n]{0,20}$`),
	recovery.NewPattern(`^exit status (\d{1,5})$`), // go run
}

// chatter are lines with which wrappers surround the output.
var chatter = recovery.NewPattern(`(?i)^(?:\[Current working directory: .*|\[Python interpreter: .*|Wall time: .*|Total output lines: .*|Original token count: .*|Chunk ID: .*|Output:|Stdout:|Command: .*|Directory: .*|Error: \(none\)|Signal: (?:\(none\)|\d+|null)|Background PIDs: .*|Process Group PGID: .*|\(Open file: .*|\(Current directory: .*|bash-\$|Process running with .*|Command execution was not successful, inspect the cause and adjust as needed\.|Command executed(?: in terminal.*)?\.?|Duration: .*|Working directory: .*)$`)

// headers precede the output on the same line.
var headers = recovery.NewPattern(`^(?:Code output: ?|Output: (?:\(empty\))?|Stdout: |OBSERVATION:\s?|Observation: ?)`)

// unwrap takes off one layer. errors is what the layer keeps apart as the error stream.
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
	if v.kind != trajectory.Reader {
		if text[0] == '<' && !v.hasExit { // what has an exit code outside was printed
			if inner, errors, ok := v.unwrapTags(text); ok {
				return inner, errors, true
			}
		}
		if inner, ok := v.unwrapLines(text); ok {
			return inner, "", true
		}
	} else if strings.HasPrefix(text, "<tool_use_error>") || strings.HasPrefix(text, "<error>") {
		return v.unwrapTags(text)
	}
	if inner, ok := v.unwrapStatus(text); ok {
		return inner, "", true
	}
	return v.unwrapError(text)
}

// tag opens a part of the result.
var tag = recovery.NewPattern(`<(returncode|exit_code|exitcode|return_code|output|stdout|stderr|error|tool_use_error|result|function_results|tool_result|tool_response|output_head|output_tail|observation|bash_metadata|shell_metadata|bash-stdout|bash-stderr|system|status|name|message)>\n?`)

// small are parts that have no tags inside; data in XML has elements of the same names.
var small = map[string]bool{"result": true, "system": true, "status": true, "name": true, "message": true}

// maxTags bounds how many parts are read of a result.
const maxTags = 8

// nextTag is the name and the inside of the first part of a text, up to its own end
// tag: what stands inside may have other tags, as a page has.
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
	if body, ok := wholeError(text); ok {
		v.set(failed, "tag-error")
		return body, "", true
	}
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
		case "status":
			if s := strings.TrimSpace(body); strings.EqualFold(s, "error") || strings.EqualFold(s, "failed") {
				v.set(failed, "tag-status")
			}
		case "error", "tool_use_error":
			v.set(failed, "tag-error")
			inner = join(inner, body)
		case "stderr", "bash-stderr":
			errors = join(errors, body)
		case "name":
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

// unwrapLines reads results with the outcome on lines of their own, before or after the output.
func (v *view) unwrapLines(text string) (inner string, ok bool) {
	const near = 12 // lines of the wrapper at either end
	for range near {
		line, rest, _ := strings.Cut(text, "\n")
		if n, is := exitOf(line); is {
			v.setExit(n, "exit-line")
		} else if command, is := strings.CutPrefix(line, "Command: "); is && v.command == "" {
			v.command = command
		} else if !chatter.MatchString(strings.TrimSpace(line)) {
			if m := headers.FindString(line); m != "" {
				text, ok = text[len(m):], true
			}
			break
		}
		if text, ok = strings.TrimLeft(rest, "\r\n"), true; text == "" {
			return "", true
		}
	}
	for range near {
		text = strings.TrimRight(text, " \t\r\n")
		i := strings.LastIndexByte(text, '\n') + 1
		line := strings.TrimSpace(text[i:])
		if n, is := exitOf(line); is {
			if !v.hasExit {
				v.setExit(n, "exit-line")
			}
		} else if line == "(no output)" {
			// pi: the program printed nothing
		} else if !chatter.MatchString(line) || line == "Output:" && i > 0 {
			break
		}
		if text, ok = text[:i], true; text == "" {
			return "", true
		}
	}
	if i := strings.LastIndex(text, "\nStderr: "); i >= 0 && v.hasExit {
		return text[:i] + "\n" + text[i+len("\nStderr: "):], true
	}
	return text, ok
}

// exitOf is the exit code that a line of a wrapper states.
func exitOf(line string) (code int, ok bool) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "Error: Process completed with") { // a CI job's log
		return 0, false
	}
	if len(line) > 200 || !strings.ContainsAny(line, "0123456789") {
		return 0, false
	}
	for _, re := range exitLines {
		if m := re.FindStringSubmatch(line); m != nil {
			n, err := strconv.Atoi(m[1])
			return n, err == nil
		}
	}
	return 0, false
}

// errorHeads begin results that are an error as a whole.
var errorHeads = recovery.NewPattern(`^(?:Error:\n|Error (?:reading|writing|creating|editing|opening|listing|deleting|searching|fetching|parsing)\b[^:\n]{0,80}: |Error(?: (?:executing|calling|invoking|running|in|from|using|while) (?:the )?(?:tool|function)?[^:\n]{0,80})?: |ERROR: ?\n?|Tool (?:execution |call )?(?:error|failed|failure)[^:\n]{0,60}: ?|ToolException[^:\n]{0,40}: |Tool '?[\w.-]+'? (?:failed|raised|returned)[^:\n]{0,60}: |Failed to (?:execute|call|run|invoke) (?:tool|function)[^:\n]{0,60}: |(?:Function|Tool|Execution) error: |An error occurred while running the tool\. Please try again\. Error: |MCP error -?\d+: |McpError: |❌ ?|The tool execution failed with the following error:\s*(?:<error>)?|\[ERROR\] ?|Exception: |Tool call failed: )`)

// consoleList begins a list of a browser's console: the first message with its place,
// or one of another level below it.
var consoleList = recovery.NewPattern(`^\[ERROR\] [^\n]* @ \S+:\d+(?:\n|$)|^\[ERROR\] [^\n]*\n\[(?:ERROR|WARNING|WARN|INFO|LOG|DEBUG|VERBOSE|TRACE)\] `)

// stackLine is the first frame of a stack.
var stackLine = recovery.NewPattern(`^\s+at \S`)

// errorHead is an exception's name at the head of a line.
var errorHead = recovery.NewPattern(`(?m)^\w*Error: `)

// sentences stand before an error and say nothing of it: CrewAI's, LibreChat's, and the marks of terminals.
var sentences = recovery.NewPattern(`^(?:I encountered an error while trying to use the tool\. This was the error: |An error occurred while running the tool\. Please try again\. Error: (?:\$: )?|[✗✘×❌⛔🚫]\x{FE0F}? ?(?:Error: |error: ))`)

// unwrapError reads results that begin with the word of an agent's framework.
func (v *view) unwrapError(text string) (inner, errors string, ok bool) {
	if head := sentences.FindString(text); head != "" && len(text) < 4000 && v.outcome == unknown {
		v.set(failed, "error-envelope")
		return text[len(head):], "", true
	}
	head := errorHeads.FindString(text)
	if head == "" || len(head) == len(text) || v.outcome == failed && !strings.HasPrefix(head, "MCP") {
		return text, "", false
	}
	if strings.HasPrefix(head, "[ERROR]") && consoleList.MatchString(text) {
		return text, "", false
	}
	if v.kind == trajectory.Reader && (len(text) > 2000 || strings.Count(text, "\n") > 20) {
		return text, "", false // a file that begins like that
	}
	if v.outcome != succeeded {
		v.set(failed, "error-envelope")
	} else if strings.HasPrefix(text, "Error: ") && strings.Count(text, "\n") < 3 {
		v.decided = finding{true, recovery.CategoryNone, possible, "error-line", text}
		if first, more, _ := strings.Cut(text, "\n"); errorHead.MatchString(more) {
			v.decided = finding{} // a list of errors that was read from somewhere
		} else if r := match(first, false); r != nil && (more == "" || stackLine.MatchString(more)) {
			v.decided = told(r, first, worded)
		}
	}
	return text, "", false
}

// refusals are a person's or a policy's no. It is never something to recover from.
var refusals = recovery.NewPattern(`(?i)(?:the )?user (?:doesn't|does not|did not|didn't) want to (?:proceed|take this action|run)|(?:rejected|denied|declined|cancelled|canceled|aborted|interrupted|disallowed|refused) by (?:the )?(?:user|human|operator|administrator|policy|reviewer)|\buser (?:has )?(?:rejected|denied|declined|refused|cancelled|canceled|aborted|chose(?:n)? (?:not )?to (?:disallow|reject|deny|run))|(?:denied|blocked|forbidden|disallowed|rejected|prevented|not allowed|not permitted) by (?:\S+ ){0,3}(?:policy|policies|hook|permission rules?|permissions? settings?|sandbox rules?|security rules?|guardrails?|allowlist|configuration)|haven't granted it yet|requires approval|approval (?:was )?(?:denied|required)|permission to use \S+(?: with .{0,80})? has been denied|tool permission denied|not in (?:the )?allow(?:ed)? ?list|operation (?:was )?(?:blocked|declined) by|\[request interrupted by user|specified a rule which prevents you|command not allowed by|not allowed by policy`)

// refusalSigns are in lower case; each refusal has one of them.
var refusalSigns = []string{"user", "rejected", "denied", "declined", "cancel", "aborted", "interrupted", "disallowed", "refused", "blocked", "forbidden",
	"prevent", "allow", "not permitted", "granted", "approval"}

// refusal finds one in the first lines of a short result.
func (v *view) refusal() (line string, ok bool) {
	if v.outcome == succeeded || len(v.lines) > 6 && v.outcome != failed || v.kind == trajectory.Reader && len(v.text) > 600 || len(v.text) > 4000 {
		return "", false
	}
	for _, line := range v.lines[:min(len(v.lines), 3)] {
		line = short(line)
		if signs := needs.find(line); signs.has(mayRefuse) && refusals.MatchString(line) {
			return line, true
		}
	}
	return "", false
}
