package repair

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// seeker finds calls in a text, whole or as far as it came.
type seeker struct {
	offers func(name string) bool // a tool of the request
	marked bool                   // only marks begin calls, but where the whole text is one
}

// finding is what looks like calls at one place of a text.
type finding struct {
	at     int      // where the first mark stands
	before string   // the text in front of the calls
	calls  []leaked // those that the text ends with
	marked bool     // a mark says that they are calls; without calls: one that is broken or cut
	open   bool     // more text may make calls of it
}

// maxPlaces bounds how many places of one text are tried: each costs a look at all of it.
const maxPlaces = 32

// leaks finds the calls that a text ends with.
func (s seeker) leaks(text string) finding {
	if len(text) > maxArguments {
		return finding{}
	}
	if n := len(strings.TrimRight(text, blanks)); n == 0 || strings.IndexByte("}]>`", text[n-1]) < 0 {
		s.marked = true // JSON would end the text
	}
	from := 0
	for range maxPlaces {
		at := s.place(text, from)
		if at < 0 {
			break
		}
		if f := s.read(text, at); f.marked || len(f.calls) > 0 {
			return f
		}
		from = at + 1
	}
	trimmed := strings.TrimRight(text, blanks)
	if at := strings.LastIndexByte(trimmed, '<'); at >= 0 && cut(trimmed[at:]) && !fenced(text[:at]) {
		return finding{at: at, before: text[:at], marked: true}
	}
	return finding{}
}

// place is where, from a place on, a call may begin: the text, a line with JSON
// that names a tool, or a mark. -1 if there is none.
func (s seeker) place(text string, from int) int {
	if from == 0 {
		if start := len(text) - len(strings.TrimLeft(text, blanks)); s.starts(text[start:]) {
			return start
		}
	}
	at := len(text)
	for i := from; i < at; i++ {
		n := strings.IndexByte(text[i:], '<')
		if n < 0 {
			break
		}
		if i += n; begin(text[i:]) {
			at = i
		}
	}
	for i := from; i < at && !s.marked; i++ {
		n := strings.IndexAny(text[i:at], "{[")
		if n < 0 {
			break
		}
		if i += n; ownLine(text[:i]) && s.names(text[i:]) {
			at = i
		}
	}
	for _, w := range literals[:2] {
		if i := strings.Index(text[from:at], w); i >= 0 {
			at = from + i
		}
	}
	if at == len(text) {
		return -1
	}
	return at
}

// begin reports whether a text begins with a mark that only calls have.
func begin(text string) bool {
	if r, size := mark(text); size > 0 || len(text) < 2 || text[1] < 'A' {
		return r == begins || r == divides
	}
	head := text[:min(len(text), maxMark)]
	return (strings.Contains(head, "function") || strings.Contains(head, "invoke")) && functionHead.MatchString(head)
}

// ownLine reports whether nothing stands before a place in its line.
func ownLine(before string) bool {
	for i := len(before) - 1; i >= 0 && before[i] != '\n'; i-- {
		if c := before[i]; c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// read reads what may be calls at a place.
func (s seeker) read(text string, at int) finding {
	if rest := text[at:]; rest[0] == '<' && begin(rest) || slices.ContainsFunc(literals, func(w string) bool { return strings.HasPrefix(rest, w) }) {
		return marked(text, at)
	}
	return s.bare(text, at)
}

// marked reads calls from a mark on.
func marked(text string, at int) finding {
	f := finding{at: at}
	if r, _ := mark(text[at:]); r == divides { // the name stands in front of it
		at = strings.LastIndexAny(strings.TrimRight(text[:at], blanks), blanks) + 1
	}
	if f.before = text[:at]; fenced(f.before) {
		return finding{at: f.at}
	}
	c := cursor{in: text, i: at}
	for !c.end() {
		some, ok := c.call()
		if ok && len(f.calls)+len(some) <= maxCalls {
			f.calls = append(f.calls, some...)
			continue
		}
		if len(f.calls) > 0 && c.misspelt(f.before) {
			f.before = f.before[:strings.LastIndexByte(f.before, '<')]
			break
		}
		// A quotation in a sentence is none; what begins a call and is cut, or begins the text, is a broken one.
		f.calls, f.open = nil, c.open()
		f.marked = c.begun && (outside(f.before) == "" || isToken(text[at:]) || !strings.Contains(text[at:], "</"))
		return f
	}
	f.marked, f.open = len(f.calls) > 0, true
	return f
}

// misspelt passes the closing tag of a wrapper that no dialect has, if the text
// before the calls ended with its opening tag.
func (c *cursor) misspelt(before string) bool {
	before = strings.TrimSpace(before)
	tag := before[strings.LastIndexByte(before, '<')+1:]
	if len(tag) < 2 || len(tag) > 40 || !strings.HasSuffix(tag, ">") || strings.ContainsAny(tag, " /\n") || !c.take("</"+tag) {
		return false
	}
	return c.end()
}

// outside is a text without the thoughts that some models put in front.
func outside(text string) string {
	text = string(recovery.WithoutThoughts([]byte(text)))
	if strings.HasPrefix(text, "<|channel|>analysis") && strings.HasSuffix(text, "<|end|>") {
		return ""
	}
	return text
}

// fenced reports whether a place is inside of a code block, inline code or thoughts.
func fenced(before string) bool {
	return strings.Count(before, "```")%2 == 1 || strings.HasSuffix(before, "`") ||
		strings.LastIndex(before, "<think>") > strings.LastIndex(before, "</think>")
}

// fenceHead begins a block of code, or a word of it.
var fenceHead = regexp.MustCompile("^(```|~~~|`)(?i:json|jsonc|json5|javascript|js|python|py|tool_call|tool_code|xml)?[ \t]*\r?\n?")

// starts reports whether a whole text may be a call that no mark begins, as far as it came.
func (s seeker) starts(text string) bool {
	if m := fenceHead.FindString(text[:min(len(text), maxMark)]); m != "" {
		value := strings.TrimLeft(text[len(m):], blanks)
		return value == "" || (value[0] == '{' || value[0] == '[') && s.names(value) || len(text) < 16 && !strings.ContainsAny(text, "\n ")
	}
	for _, begin := range spokenBegins {
		if strings.HasPrefix(text, begin) || strings.HasPrefix(begin, text) && text != "" {
			return true
		}
	}
	return strings.HasSuffix(text, "</function>")
}

// bare reads a text that is, from a place on, nothing but calls without a mark: as
// JSON, {"name": …, "parameters": …}, as Llama writes it, as Python, or in a form
// of words. In a fence, or behind other text, it may be an example: it counts as loose.
func (s seeker) bare(text string, at int) (f finding) {
	f = finding{at: at, before: text[:at]}
	c := cursor{in: text, i: at}
	whole := strings.TrimSpace(f.before) == ""
	block := fenceHead.FindStringSubmatch(c.rest())
	if !whole && fenced(f.before) {
		return f
	}
	if block != nil {
		c.i += len(block[0])
		c.space()
	}
	var calls []leaked
	var ok, sure bool
	switch r := c.rest(); {
	case strings.HasPrefix(r, codeMark), strings.HasPrefix(r, printMark):
		calls, ok = c.program()
	case strings.HasPrefix(r, "{"), strings.HasPrefix(r, "[") && !strings.HasPrefix(r, "[Call"):
		if calls, ok = c.python(); !ok {
			calls, ok = c.objects()
		}
	default:
		calls, ok, sure = c.form()
	}
	if ok && block != nil {
		c.space()
		c.take(block[1])
	}
	end := ok && c.end()
	f.open = end || c.open()
	if !end || slices.ContainsFunc(calls, func(l leaked) bool { return l.args == "" && !l.tagged }) {
		return f
	}
	for i := range calls {
		calls[i].loose = calls[i].loose || block != nil || !whole
	}
	f.calls, f.marked = calls, sure
	return f
}

// form reads a call in words.
func (c *cursor) form() (calls []leaked, ok, sure bool) {
	c.reached(min(len(c.in), c.i+maxNamed)) // the head may not be complete
	for _, f := range spoken {
		m := f.head.FindStringSubmatch(c.rest())
		if m == nil {
			continue
		}
		r := cursor{in: c.in, i: c.i + len(m[0])}
		args, ok := r.json()
		c.reached(r.far)
		if r.space(); !ok || !r.take(f.end) {
			continue
		}
		c.i = r.i
		return []leaked{{name: m[1], args: args, loose: f.end == "]"}}, true, f.sure
	}
	return nil, false, false
}

// maxNamed is within how many bytes JSON that is a call names the tool.
const maxNamed = 200

// How JSON begins that is a call, and how it names the tool; the same of Python.
var (
	firstKey   = regexp.MustCompile(`^[\[\s]*(?:\{\s*(?:"(?:\w{0,12}|(?:` + strings.Join(append(nameKeys, inWrapper...), "|") + `|type|index|\w*id)"\s*(?::[\s\S]*)?))?)?$`)
	nameMember = regexp.MustCompile(`"(?:` + strings.Join(nameKeys, "|") + `)"\s*:\s*"([^"]{0,128})("?)`)
	pythonCall = regexp.MustCompile(`^\[\s*([A-Za-z_][\w.:/-]{0,127})(\(|$)`)
)

// names reports whether a text begins like a call of a tool of the request in
// JSON or Python, as far as it goes.
func (s seeker) names(text string) bool {
	head := text[:min(len(text), maxNamed)]
	if m := pythonCall.FindStringSubmatch(head); m != nil {
		return m[2] == "" || s.offers(strings.TrimSuffix(m[1], ".call"))
	}
	if strings.HasPrefix(head, "[Call") || !firstKey.MatchString(head) {
		return false
	}
	m := nameMember.FindStringSubmatch(head)
	return m == nil && len(text) < maxNamed || m != nil && (m[2] == "" && len(text) < maxNamed || s.offers(m[1])) ||
		m == nil && slices.ContainsFunc(inWrapper, func(k string) bool { return strings.Contains(head, `"`+k+`"`) })
}

// half is where the text ends in something that may become a mark; -1 if it does not.
func half(text string) int {
	tail := text[max(0, len(text)-maxMark):]
	at := strings.LastIndexAny(tail, "<[`")
	if at < 0 || strings.ContainsAny(tail[at:], ">\"'/") {
		return -1
	}
	if tail[at] == '`' { // of three, the first
		at = len(strings.TrimRight(tail[:at], "`"))
	}
	if !halfMark.MatchString(tail[at:]) && !slices.ContainsFunc(literals, func(w string) bool { return strings.HasPrefix(w, tail[at:]) }) {
		return -1
	}
	return len(text) - len(tail) + at
}

// halfMark is the beginning of a tag or of a token, or of a tag that names a function.
var halfMark = regexp.MustCompile(`^<[|｜\w:.▁\x{fffd}]*$|^<[|｜\w:]*(?:function|invoke)\s+(?:n|na|nam|name\s*)?$`)

// cutToken is a token without its end.
var cutToken = regexp.MustCompile(`^<[|｜](?:[\w.-]+[:｜])?([\w▁]{6,40})[|｜]?$`)

// cut reports whether a text is the greater part of a token that begins calls.
func cut(text string) bool {
	var m []string
	if isToken(text) && len(text) < maxMark {
		m = cutToken.FindStringSubmatch(text)
	}
	if m == nil {
		return false
	}
	name := strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(m[1]), "▁", "_"), "s")
	for whole, r := range roles {
		if r != says && strings.HasPrefix(strings.TrimPrefix(whole, "|"), name) {
			return true
		}
	}
	return false
}
