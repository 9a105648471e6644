package repair

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// callFinder finds calls in a text that is complete or still arriving.
type callFinder struct {
	offers    func(name string) bool // whether the request offers the tool
	marksOnly bool                   // look only for marks, not for JSON inside the text
}

// finding is the result of parsing calls at one offset of a text.
type finding struct {
	at          int        // offset of the first mark
	before      string     // the text in front of the calls
	calls       []textCall // the calls that the text ends with
	marked      bool       // a mark proves that they are calls; without calls: the call is broken or cut
	mayContinue bool       // more text may turn it into calls
	amidst      bool       // other text follows a call: the text is about calls, or only a part of them could be made
}

// maxCandidates limits the offsets that are tried in one text: each may scan all of it.
const maxCandidates = 32

// find returns the calls that a complete text ends with.
func (s callFinder) find(text string) finding {
	if len(text) > maxArguments {
		return finding{}
	}
	if n := len(strings.TrimRight(text, whitespace)); n == 0 || strings.IndexByte("}]>`", text[n-1]) < 0 {
		s.marksOnly = true // a JSON call behind other text ends with one of these
	}
	from := 0
	for range maxCandidates {
		at := s.nextCandidate(text, from)
		if at < 0 {
			break
		}
		f := s.readAt(text, at)
		if f.amidst {
			return finding{}
		}
		if f.marked || len(f.calls) > 0 {
			return f
		}
		from = at + 1
	}
	trimmed := strings.TrimRight(text, whitespace)
	if at := strings.LastIndexByte(trimmed, '<'); at >= 0 && isCutToken(trimmed[at:]) && !isQuoted(text[:at]) {
		return finding{at: at, before: text[:at], marked: true}
	}
	return finding{}
}

// nextCandidate returns the first offset, not before from, at which a call may begin: the beginning
// of the text, a line with JSON that names a tool, or a mark. It returns -1 if there is none.
func (s callFinder) nextCandidate(text string, from int) int {
	if from == 0 {
		if start := len(text) - len(strings.TrimLeft(text, whitespace)); s.startsUnmarked(text[start:]) {
			return start
		}
	}
	at := len(text)
	for i := from; i < at; i++ {
		n := strings.IndexByte(text[i:], '<')
		if n < 0 {
			break
		}
		if i += n; beginsWithMark(text[i:]) {
			at = i
		}
	}
	for i := from; i < at && !s.marksOnly; i++ {
		n := strings.IndexAny(text[i:at], "{[")
		if n < 0 {
			break
		}
		if i += n; startsLine(text[:i]) && s.namesTool(text[i:]) {
			at = i
		}
	}
	for _, w := range literalMarks[:4] {
		if i := strings.Index(text[from:at], w); i >= 0 {
			at = from + i
		}
	}
	if at == len(text) {
		return -1
	}
	return at
}

// beginsWithMark reports whether a text begins with a mark that only calls have.
func beginsWithMark(text string) bool {
	if r, size := parseMark(text); size > 0 || len(text) < 2 || text[1] < 'A' {
		return r == roleBegin || r == roleSeparator
	}
	head := text[:min(len(text), maxMark)]
	return (strings.Contains(head, "function") || strings.Contains(head, "invoke")) && functionHead.MatchString(head)
}

// startsLine reports whether only blanks precede an offset in its line.
func startsLine(before string) bool {
	for i := len(before) - 1; i >= 0 && before[i] != '\n'; i-- {
		if c := before[i]; c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// readAt parses the calls at an offset.
func (s callFinder) readAt(text string, at int) finding {
	if rest := text[at:]; rest[0] == '<' && beginsWithMark(rest) || slices.ContainsFunc(literalMarks, func(w string) bool { return strings.HasPrefix(rest, w) }) {
		return readMarked(text, at)
	}
	return s.readUnmarked(text, at)
}

// readMarked parses calls that begin with a mark.
func readMarked(text string, at int) finding {
	f := finding{at: at}
	if r, _ := parseMark(text[at:]); r == roleSeparator { // the name precedes it
		at = strings.LastIndexAny(strings.TrimRight(text[:at], whitespace), whitespace) + 1
	}
	if f.before = text[:at]; isQuoted(f.before) {
		return finding{at: f.at}
	}
	c := cursor{in: text, i: at}
	for !c.atEnd() {
		from := c.i
		some, ok := c.call()
		if ok && len(f.calls)+len(some) <= maxCalls {
			f.calls = append(f.calls, some...)
			continue
		}
		if len(f.calls) > 0 && c.skipUnknownWrapper(f.before) {
			f.before = f.before[:strings.LastIndexByte(f.before, '<')]
			break
		}
		// A mark in a sentence is no call. One that begins the text, that is cut, or that is a special token of a text which ends
		// in a mark, is a broken call.
		r, n := parseMark(text[from:])
		first, token := trimThoughts(f.before) == "", isToken(text[at:])
		f.amidst = !first && len(f.calls) > 0 && (strings.IndexByte("<[{", text[from]) < 0 || r == roleNone && n > 0)
		f.calls, f.mayContinue = nil, c.mayContinue()
		f.marked = c.committed && (first || f.mayContinue && (token || !strings.Contains(text[at:], "</")) || token && endsInMark(text))
		return f
	}
	f.marked, f.mayContinue = len(f.calls) > 0, true
	return f
}

// skipUnknownWrapper skips the closing tag of a wrapper that no dialect has, if the text
// before the calls ends with its opening tag, and reports whether nothing else follows.
func (c *cursor) skipUnknownWrapper(before string) bool {
	before = strings.TrimSpace(before)
	tag, opens := strings.CutPrefix(before[max(0, strings.LastIndexByte(before, '<')):], "<")
	if !opens || len(tag) < 2 || len(tag) > 40 || !strings.HasSuffix(tag, ">") || strings.ContainsAny(tag, " /\n") || !c.accept("</"+tag) {
		return false
	}
	return c.atEnd()
}

// trimThoughts removes the reasoning that some models put in front of a text.
func trimThoughts(text string) string {
	text = string(recovery.WithoutThoughts([]byte(text)))
	if strings.HasPrefix(text, "<|channel|>analysis") && strings.HasSuffix(text, "<|end|>") {
		return ""
	}
	return text
}

// endsInMark reports whether a text ends in a mark that ends calls.
func endsInMark(text string) bool {
	text = strings.TrimRight(text, whitespace)
	at := max(0, strings.LastIndexByte(text, '<'))
	r, n := parseMark(text[at:])
	return r == roleEnd && at+n == len(text)
}

// isQuoted reports whether what follows a text is quoted: in a code block, inline code, a string, a block quote or
// reasoning. It asks Contains first, since LastIndex is slow in a long text.
func isQuoted(before string) bool {
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return strings.Count(before, "```")%2 == 1 || strings.HasSuffix(line, "`") || strings.Count(line, "`")%2 == 1 ||
		strings.HasPrefix(line, ">") || stringBegin.MatchString(line[max(0, len(line)-8):]) || indentedCode.MatchString(before[max(0, len(before)-maxMark):]) ||
		strings.Contains(before, "<think>") && strings.LastIndex(before, "<think>") > strings.LastIndex(before, "</think>")
}

// indentedCode matches the indent of a code block behind other text.
var indentedCode = recovery.NewPattern(`\S\s*\n[ \t]*\n {4,}$`)

// insideObject matches what stands in front of a part of a larger object.
var insideObject = recovery.NewPattern(`[\[({,=]\s*$`)

// stringBegin matches the quotation marks that begin a string of a programming language.
var stringBegin = recovery.NewPattern(`(?:^|[\s(\[{=,:+])[fFrRbBuU]{0,2}(?:"{1,3}|'{1,3})$`)

// fenceStart matches the beginning of a code block or of inline code.
var fenceStart = recovery.NewPattern("^(```|~~~|`)(?i:json|jsonc|json5|javascript|js|python|py|tool_call|tool_code|xml)?[ \t]*\r?\n?")

// startsUnmarked reports whether a text, complete or not, may be a call without a mark.
func (s callFinder) startsUnmarked(text string) bool {
	if m := fenceStart.FindString(text[:min(len(text), maxMark)]); m != "" {
		value := strings.TrimLeft(text[len(m):], whitespace)
		return value == "" || (value[0] == '{' || value[0] == '[') && s.namesTool(value) || len(text) < 16 && !strings.ContainsAny(text, "\n ")
	}
	for _, begin := range unmarkedBegins {
		if strings.HasPrefix(text, begin) || strings.HasPrefix(begin, text) && text != "" {
			return true
		}
	}
	return strings.HasSuffix(text, "</function>")
}

// readUnmarked parses calls without a mark that the text ends with: JSON {"name": …,
// "parameters": …}, as Llama writes it, Python, or one of unmarkedForms. In a fence or
// behind other text they may be an example, so they are uncertain.
func (s callFinder) readUnmarked(text string, at int) (f finding) {
	f = finding{at: at, before: text[:at]}
	c := cursor{in: text, i: at}
	whole := strings.TrimSpace(f.before) == ""
	block := fenceStart.FindStringSubmatch(c.rest())
	if !whole && (isQuoted(f.before) || insideObject.MatchString(f.before[max(0, len(f.before)-maxMark):])) {
		return f
	}
	if block != nil {
		c.i += len(block[0])
		c.skipSpace()
	}
	var calls []textCall
	var ok, sure bool
	switch r := c.rest(); {
	case strings.HasPrefix(r, toolCodeBegin), strings.HasPrefix(r, printBegin):
		calls, ok = c.pythonProgram()
	case c.accept("call:"):
		calls, ok = c.single(c.gemmaCall)
	case strings.HasPrefix(r, "{"), strings.HasPrefix(r, "[") && !strings.HasPrefix(r, "[Call"):
		if calls, ok = c.pythonCalls(); !ok {
			calls, ok = c.jsonCalls()
		}
	default:
		calls, ok, sure = c.unmarkedForm()
	}
	if ok && block != nil {
		c.skipSpace()
		c.accept(block[1])
	}
	end := ok && c.atEnd()
	f.mayContinue = end || c.mayContinue()
	if !end || slices.ContainsFunc(calls, func(l textCall) bool { return l.args == "" && !l.tagged }) {
		return f
	}
	for i := range calls {
		calls[i].uncertain = calls[i].uncertain || block != nil || !whole
	}
	f.calls, f.marked = calls, sure
	return f
}

// unmarkedForm parses one of unmarkedForms.
func (c *cursor) unmarkedForm() (calls []textCall, ok, sure bool) {
	c.reached(min(len(c.in), c.i+maxNameOffset)) // the head may be incomplete
	for _, f := range unmarkedForms {
		m := f.head.FindStringSubmatch(c.rest())
		if m == nil {
			continue
		}
		r := cursor{in: c.in, i: c.i + len(m[0])}
		args, ok := r.jsonObject()
		c.reached(r.furthest)
		if r.skipSpace(); !ok || !r.accept(f.end) {
			continue
		}
		c.i = r.i
		return []textCall{{name: m[1], args: args, uncertain: f.end == "]"}}, true, f.sure
	}
	return nil, false, false
}

// maxNameOffset is the number of bytes within which a JSON call must name its tool.
const maxNameOffset = 200

// The beginning of a JSON call, the member that names its tool, and the beginning of a Python call.
var (
	jsonCallBegin = recovery.NewPattern(`^[\[\s]*(?:\{\s*(?:"(?:\w{0,12}|(?:` + strings.Join(append(nameKeys, argumentKeys...), "|") +
		`|type|index|\w*id)"\s*(?::[\s\S]*)?))?)?$`)
	nameMember = recovery.NewPattern(`"(?:` + strings.Join(nameKeys, "|") + `)"\s*:\s*"([^"]{0,128})("?)`)
	pythonCall = recovery.NewPattern(`^\[\s*([A-Za-z_][\w.:/-]{0,127})(\(|$)`)
)

// namesTool reports whether a text, complete or not, begins like a JSON or Python call of
// an offered tool.
func (s callFinder) namesTool(text string) bool {
	head := text[:min(len(text), maxNameOffset)]
	if m := pythonCall.FindStringSubmatch(head); m != nil {
		return m[2] == "" || s.offers(strings.TrimSuffix(m[1], ".call"))
	}
	if strings.HasPrefix(head, "[Call") || !jsonCallBegin.MatchString(head) {
		return false
	}
	m := nameMember.FindStringSubmatch(head)
	return m == nil && len(text) < maxNameOffset || m != nil && (m[2] == "" && len(text) < maxNameOffset || s.offers(m[1])) ||
		m == nil && slices.ContainsFunc(argumentKeys, func(k string) bool { return strings.Contains(head, `"`+k+`"`) })
}

// partialMark returns the offset of an incomplete mark at the end of a text, or -1.
func partialMark(text string) int {
	tail := text[max(0, len(text)-maxMark):]
	at := strings.LastIndexAny(tail, "<[`")
	if at < 0 || strings.ContainsAny(tail[at:], ">\"'/") {
		return -1
	}
	if tail[at] == '`' { // of three, the first
		at = len(strings.TrimRight(tail[:at], "`"))
	}
	if !partialTag.MatchString(tail[at:]) && !slices.ContainsFunc(literalMarks, func(w string) bool { return strings.HasPrefix(w, tail[at:]) }) {
		return -1
	}
	return len(text) - len(tail) + at
}

// partialTag matches the beginning of a tag, a special token, or a tag that names a function.
var partialTag = recovery.NewPattern(`^<[|｜‖\w:.▁\x{fffd}]*$|^<[|｜‖\w:]*(?:function|invoke)\s+(?:n|na|nam|name\s*)?$`)

// cutTokenPattern matches a special token without its end.
var cutTokenPattern = recovery.NewPattern(`^<[|｜](?:[\w.-]+[:｜])?([\w▁]{6,40})[|｜]?$`)

// isCutToken reports whether a text is the beginning, of at least six letters, of a special
// token that begins or separates calls.
func isCutToken(text string) bool {
	var m []string
	if isToken(text) && len(text) < maxMark {
		m = cutTokenPattern.FindStringSubmatch(text)
	}
	if m == nil {
		return false
	}
	name := strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(m[1]), "▁", "_"), "s")
	for whole, r := range roles {
		if r != roleEnd && strings.HasPrefix(strings.TrimPrefix(whole, "|"), name) {
			return true
		}
	}
	return false
}
