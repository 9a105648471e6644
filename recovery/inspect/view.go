package inspect

import (
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// outcome is the call's outcome according to the wrapper of the result.
type outcome = trajectory.State

const (
	unknown   = trajectory.Unknown
	succeeded = trajectory.Succeeded
	failed    = trajectory.Failed
)

// Limits of the search in a large result, in bytes.
const (
	headWindow = 4 << 10
	tailWindow = 12 << 10
	maxLayers  = 4 // nested wrappers
)

// view is a result without its wrappers.
type view struct {
	rules      *lists
	kind       trajectory.Kind
	call       *trajectory.Call
	text       string     // what the program or tool printed: the beginning and the end
	lines      []line     // non-blank lines of text; set by split
	lineBuffer []line     // a reusable buffer for lines
	hits       *rule.Hits // of the scanned lines
	reports    int        // cached result of report plus one, 0 if not computed
	ends       int        // cached result of end, 0 if not computed
	stderr     int        // index of the first line of the error stream, -1 if unknown
	printed    int        // length of text without the error stream

	outcome    outcome
	exit       int
	hasExit    bool
	quiet      []string // programs of the command that print no file
	unfinished bool     // the command did not print the last of the lines that it prints in any case
	onlyErrors bool     // the output consists of errors only, whatever the exit code
	structured bool     // the text is JSON, so its fields are data
	source     string   // the rule that determined the outcome
	decided    finding  // set if the wrapper itself names the failure
}

// open removes the wrappers of known agents from a result. It does not split the lines.
func (l *lists) open(r recovery.ToolResult) *view {
	v := &view{rules: l, hits: new(rule.Hits)}
	v.open(&trajectory.Call{Tool: r.Tool, Arguments: r.Arguments}, r.Content, r.Failed)
	return v
}

// open is lists.open for a reused view: only the rules and the buffers of lines and hits stay.
func (v *view) open(call *trajectory.Call, content string, flagged bool) {
	l := v.rules
	*v.hits = (*v.hits)[:0]
	*v = view{rules: l, kind: call.Kind(), call: call, stderr: -1, lineBuffer: v.lineBuffer, hits: v.hits}
	text := trajectory.Ends(content, headWindow, tailWindow)
	if whole := strings.TrimSpace(content); len(whole) > len(text) && (whole[0] == '{' || strings.HasPrefix(whole, "[{")) {
		text = whole // JSON cannot be parsed in parts
	}
	stderr := ""
	for range maxLayers {
		if v.kind == trajectory.Reader && startsPlain(text) {
			break
		}
		inner, errors, ok := v.unwrap(text)
		if errors != "" {
			stderr = errors
		}
		if !ok {
			break
		}
		text = inner
	}
	if flagged && v.outcome == unknown {
		v.set(failed, "error-flag")
	}
	v.structured = v.structured && len(text) > 1 && (text[0] == '{' || text[0] == '[')
	v.text = trajectory.WithoutEscapes(trajectory.Ends(text, headWindow, tailWindow))
	v.printed = len(v.text)
	if stderr = trajectory.WithoutEscapes(trajectory.Ends(stderr, headWindow, tailWindow)); strings.TrimSpace(stderr) != "" {
		v.text += "\n" + stderr
	}
}

// dataLines limits how many lines at the beginning of data are read, besides the last one.
const dataLines = 12

// split splits the text into lines.
func (v *view) split() {
	if v.outcome == unknown && v.data() {
		v.lines = endLines(v.lineBuffer, v.text)
	} else {
		v.lines = textLines(v.lineBuffer, v.text)
		if v.printed < len(v.text) {
			v.stderr = len(textLines(nil, v.text[:v.printed]))
		} else if v.outcome == unknown && v.kind == trajectory.Shell {
			v.withoutSaid()
		}
	}
	v.lineBuffer = v.lines[:0]
}

// startsPlain reports whether a text begins with a character that no wrapper of a reading tool's result begins
// with.
func startsPlain(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && plainStart(text[0])
}

// plainStart reports whether no wrapper of a reading tool's result begins with c.
func plainStart(c byte) bool { return digit(c) || c >= 'a' && c <= 'z' || c == '/' || c == '*' }

// textLines returns the non-blank lines without white space at their ends, in the storage of out.
func textLines(out []line, s string) []line {
	if n := strings.Count(s, "\n") + 1; cap(out) < n {
		out = make([]line, 0, n)
	}
	for more := true; more; {
		var text string
		text, s, more = strings.Cut(s, "\n")
		if text = trimLine(text); text != "" {
			out = append(out, line{text: text})
		}
	}
	return out
}

// endLines returns the first lines of textLines and the last one, in the storage of out.
func endLines(out []line, s string) []line {
	if cap(out) <= dataLines {
		out = make([]line, 0, dataLines+1)
	}
	for s != "" && len(out) < dataLines {
		text, rest, _ := strings.Cut(s, "\n")
		if text = trimLine(text); text != "" {
			out = append(out, line{text: text})
		}
		s = rest
	}
	for s != "" {
		i := strings.LastIndexByte(s, '\n')
		if text := trimLine(s[i+1:]); text != "" {
			return append(out, line{text: text})
		}
		s = s[:max(i, 0)]
	}
	return out
}

// trimLine returns a line as a terminal shows it, without the frame around messages and without white space at
// its end.
func trimLine(line string) string {
	if line == "" {
		return ""
	}
	if i := strings.LastIndexByte(line, '\r'); i >= 0 && i < len(line)-1 && i > len(line)/2 {
		line = line[i+1:] // an overwritten progress bar
	}
	if line[0] >= utf8.RuneSelf {
		if inner := strings.TrimLeft(line, boxes); len(inner) < len(line) {
			line = strings.TrimLeft(inner, " ")
		}
	}
	end := len(line)
	for end > 0 && (line[end-1] == ' ' || line[end-1] == '\t' || line[end-1] == '\r') {
		end--
	}
	return line[:end]
}

// boxes are the characters that programs draw around messages.
const boxes = "│┃╷╵╭╰"

// set records an outcome. Inner wrappers override outer ones, but a failure stays a failure.
func (v *view) set(o outcome, source string) {
	if v.outcome == failed && o == succeeded {
		return
	}
	v.outcome, v.source = o, source
}

func (v *view) setExit(code int, source string) {
	v.hasExit, v.exit = true, code
	if code == 0 {
		v.set(succeeded, source)
	} else {
		v.set(failed, source)
	}
}

func (v *view) lastLine() string {
	if len(v.lines) == 0 {
		return ""
	}
	return v.lines[len(v.lines)-1].text
}

// noMatch reports whether exit code 1 is from a program for which it is a normal result.
func (v *view) noMatch() bool {
	programs := v.call.Command().Programs
	return len(programs) > 0 && v.rules.words["answerers"][programs[len(programs)-1]]
}

// data reports whether the text was read from a source, so that its words are no evidence.
func (v *view) data() bool {
	if v.outcome == failed {
		return false
	}
	return v.structured || v.kind == trajectory.Reader || v.kind != trajectory.Code && v.onlyReads()
}

func joinLines(lines []line) string {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l.text)
	}
	return b.String()
}
