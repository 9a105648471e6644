package inspect

import (
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// outcome is what the wrapper of a result says of the call.
type outcome = trajectory.State

const (
	unknown   = trajectory.Unknown
	succeeded = trajectory.Succeeded
	failed    = trajectory.Failed
)

// Bounds of what is searched of a large result, in bytes.
const (
	headWindow = 4 << 10
	tailWindow = 12 << 10
	maxLayers  = 4 // wrappers inside wrappers
)

// view is a result without its wrappers.
type view struct {
	rules   *lists
	kind    trajectory.Kind
	call    *trajectory.Call
	text    string     // what the program or tool printed, head and tail of it
	lines   []line     // of text, without blank ones; there after split
	room    []line     // for them, if there is some
	hits    *rule.Hits // of the lines that were scanned
	reports int        // what report says and one, 0 until it is needed
	ends    int        // what end says, 0 until it is needed
	stderr  int        // index of the first line that is known to be an error stream's, -1 if none is
	printed int        // length of text without the error stream

	outcome    outcome
	exit       int
	hasExit    bool
	quiet      []string // programs of the command that print no file
	onlyErrors bool     // nothing was printed but errors, whatever the exit code
	structured bool     // the text is JSON: what its fields say is data
	source     string   // what told the outcome: a rule's name
	decided    finding  // set when the wrapper itself names the failure
}

// open takes the wrappers of known agents off a result. Its lines are not read yet.
func (l *lists) open(r recovery.ToolResult) *view {
	v := &view{rules: l, hits: new(rule.Hits)}
	v.open(&trajectory.Call{Tool: r.Tool, Arguments: r.Arguments}, r.Content, r.Failed)
	return v
}

// open is lists.open of what a call was answered with. Of what the view was before,
// only the rules and the room for lines and hits stay.
func (v *view) open(call *trajectory.Call, content string, flagged bool) {
	l := v.rules
	*v.hits = (*v.hits)[:0]
	*v = view{rules: l, kind: call.Kind(), call: call, stderr: -1, room: v.room, hits: v.hits}
	text := trajectory.Ends(content, headWindow, tailWindow)
	if whole := strings.TrimSpace(content); len(whole) > len(text) && whole[0] == '{' {
		text = whole // JSON is only readable as a whole
	}
	stderr := ""
	for range maxLayers {
		if v.kind == trajectory.Reader && begunPlain(text) {
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

// dataLines is how many lines at its beginning are looked at of data, besides the
// last one.
const dataLines = 12

// split reads the lines.
func (v *view) split() {
	if v.outcome == unknown && v.data() {
		v.lines = endLines(v.room, v.text)
	} else {
		v.lines = textLines(v.room, v.text)
		if v.printed < len(v.text) {
			v.stderr = len(textLines(nil, v.text[:v.printed]))
		}
	}
	v.room = v.lines[:0]
}

// begunPlain reports whether a text begins as no wrapper of a reading tool's
// result does.
func begunPlain(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && plainStart(text[0])
}

// plainStart reports whether no wrapper of a reading tool's result begins with c.
func plainStart(c byte) bool { return digit(c) || c >= 'a' && c <= 'z' || c == '/' || c == '*' }

// textLines is the lines that are not blank, without white space at their ends, in
// out's place.
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

// endLines is the first of textLines, and the last one, in out's place.
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

// trimLine is a line as a reader sees it.
func trimLine(line string) string {
	if line == "" {
		return ""
	}
	if i := strings.LastIndexByte(line, '\r'); i >= 0 && i < len(line)-1 && i > len(line)/2 {
		line = line[i+1:] // a progress bar that was overwritten
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

// boxes are what programs draw around messages.
const boxes = "│┃╷╵╭╰"

// set records an outcome. The innermost wrapper knows best, but a failure
// outside stays one.
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

// bare reports an empty result.
func (v *view) bare() bool { return len(v.lines) == 0 }

func (v *view) lastLine() string {
	if len(v.lines) == 0 {
		return ""
	}
	return v.lines[len(v.lines)-1].text
}

// noMatch reports whether the exit code 1 comes from a program for which it is an answer.
func (v *view) noMatch() bool {
	programs := v.call.Command().Programs
	return len(programs) > 0 && v.rules.words["answerers"][programs[len(programs)-1]]
}

// data reports whether the text was read from somewhere, so that what it says
// is no evidence.
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
