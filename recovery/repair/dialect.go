package repair

import (
	"slices"
	"strings"
)

// leaked is a call that a model wrote into its text.
type leaked struct {
	name   string
	args   string  // JSON as it stands in the text, or rendered from it
	params []param // instead of args: values that the schema gives their types
	tagged bool    // params hold the arguments
	loose  bool    // the JSON around it was not valid, or nothing marks it as a call
}

// param is the text of one parameter in a dialect that writes them in tags.
type param struct {
	name, text string
	json       bool // the dialect says that it is no string
}

// finding is what looks like calls at one place of a text.
type finding struct {
	at     int      // where the first mark stands
	before string   // the text in front of the calls
	calls  []leaked // those that the text ends with
	marked bool     // a mark says that they are calls; without calls: one that is broken or cut
	open   bool     // more text may make calls of it
}

// leaks finds the calls that a text ends with.
func leaks(text string) finding {
	if len(text) > maxArguments || talks(text) {
		return finding{}
	}
	return spelled(text)
}

// spelled is leaks for a text that may have some.
func spelled(text string) finding {
	at := -1
	for range maxPlaces {
		if at = opening(text, at+1); at < 0 {
			break
		}
		if f := markedAt(text, at); f.marked {
			return f
		}
	}
	if at := halfMark(text); at >= 0 {
		return finding{at: at, before: text[:at], marked: true}
	}
	trimmed, start := strings.TrimSpace(text), len(text)-len(strings.TrimLeft(text, blanks))
	if m := submatch(plain, trimmed, "commentary", "analysis", "assistant"); m != nil {
		c := cursor{in: trimmed}
		c.i = strings.IndexByte(c.in, '{')
		if args, ok := c.json(); ok && c.end() {
			return finding{at: start, calls: []leaked{{name: m[1], args: args}}, marked: true}
		}
	}
	if calls := bareCall(text); calls != nil {
		return finding{at: start, calls: calls}
	}
	return ownLine(text)
}

// ownLine finds calls as JSON that begin a line and end the text. What stands
// before them may introduce an example: they count as loose.
func ownLine(text string) finding {
	if trimmed := strings.TrimSpace(text); !strings.HasSuffix(trimmed, "}") && !strings.HasSuffix(trimmed, "]") {
		return finding{}
	}
	at := 0
	for range maxPlaces {
		if at = beginsJSON(text, at+1); at < 0 {
			break
		}
		calls := bareCall(text[at:])
		if calls == nil || fenced(text[:at]) {
			continue
		}
		for i := range calls {
			calls[i].loose = true
		}
		return finding{at: at, before: text[:at], calls: calls}
	}
	return finding{}
}

// beginsJSON is where, from a place on, the first line begins with a bracket; -1
// if none does.
func beginsJSON(text string, from int) int {
	for i := from; i < len(text); i++ {
		n := strings.IndexAny(text[i:], "{[")
		if n < 0 {
			break
		}
		i += n
		if line := strings.TrimRight(text[:i], " \t\r"); line == "" || strings.HasSuffix(line, "\n") {
			return i
		}
	}
	return -1
}

// markedAt reads calls from an opener on.
func markedAt(text string, at int) finding {
	f := finding{at: at}
	if from := strings.LastIndexAny(text[:at], " \t\r\n") + 1; strings.HasPrefix(text[at:], argumentMark) {
		at = from // the name stands in front of the mark
	}
	f.before = text[:at]
	if fenced(f.before) {
		return finding{}
	}
	c := cursor{in: text, i: at}
	for {
		c.noise()
		if c.i >= len(c.in) {
			break
		}
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
		f.marked = c.begun && (outside(f.before) == "" || isToken(text[at:]) || cutOff(text[at:]))
		return f
	}
	f.marked, f.open = len(f.calls) > 0, true
	return f
}

// outside is a text without the thoughts that some models put in front.
func outside(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "<think>") || strings.HasPrefix(text, "<|channel|>analysis") {
		if _, after, ok := strings.Cut(text, "</think>"); ok {
			return strings.TrimSpace(after)
		}
		if strings.HasSuffix(text, "<|end|>") {
			return ""
		}
	}
	return text
}

// fenced reports whether a place is inside of a code block, inline code or thoughts.
func fenced(before string) bool {
	return strings.Count(before, "```")%2 == 1 || strings.HasSuffix(before, "`") ||
		strings.LastIndex(before, "<think>") > strings.LastIndex(before, "</think>")
}

// cursor reads calls in their dialects.
type cursor struct {
	in    string
	i     int
	far   int  // the last place that was read, also in vain
	begun bool // something that only a call has was read
}

// reached notes how far was read.
func (c *cursor) reached(i int) { c.far = max(c.far, i) }

// open reports whether reading may have failed because the text is not complete:
// it failed no farther from the end than a mark that is cut may be long.
func (c *cursor) open() bool { return len(c.in)-max(c.far, c.i) < longestOpener }

func (c *cursor) space() {
	for c.i < len(c.in) && strings.IndexByte(" \t\r\n", c.in[c.i]) >= 0 {
		c.i++
	}
}

func (c *cursor) noise() {
	for {
		c.space()
		if !slices.ContainsFunc(noise, c.take) {
			return
		}
	}
}

// end passes noise and reports whether nothing else follows.
func (c *cursor) end() bool {
	c.noise()
	return c.i >= len(c.in)
}

// take passes a mark, if it is next.
func (c *cursor) take(mark string) bool {
	if strings.HasPrefix(c.in[c.i:], mark) {
		c.i += len(mark)
		c.reached(c.i)
		return true
	}
	return false
}

// until passes text up to and with a mark, and returns the text.
func (c *cursor) until(mark string) (string, bool) {
	n := strings.Index(c.in[c.i:], mark)
	if n < 0 {
		c.reached(len(c.in))
		return "", false
	}
	text := c.in[c.i : c.i+n]
	c.i += n + len(mark)
	return text, true
}

// name passes the name of a function.
func (c *cursor) name() string {
	m := named.FindString(c.in[c.i:])
	c.i += len(m)
	c.reached(c.i)
	return m
}

// json passes one valid JSON object and returns its text.
func (c *cursor) json() (string, bool) {
	c.space()
	if !strings.HasPrefix(c.in[c.i:], "{") {
		return "", false
	}
	_, rules, n, err := readPrefix(c.in[c.i:])
	c.reached(c.i + n)
	if err != nil || len(rules) > 0 {
		return "", false
	}
	text := c.in[c.i : c.i+n]
	c.i += n
	return text, true
}

// call reads the next call or list of calls.
func (c *cursor) call() ([]leaked, bool) {
	rest := c.in[c.i:]
	switch {
	case strings.HasPrefix(rest, "<function="), c.prefixed("invoke name="):
		return c.one(c.function)
	case c.take("<|tool_call>"):
		return c.one(c.gemma)
	case c.take("```tool_code"):
		return c.code()
	case c.take("<|open|>"):
		c.begun = true // a markup of Kimi that is not read
		return nil, false
	case c.take("[TOOL_CALLS]"):
		return c.mistral()
	case c.take("<｜tool▁call▁begin｜>"):
		return c.one(func() (leaked, bool) { return c.deepseek("<｜tool▁sep｜>", "<｜tool▁call▁end｜>") })
	case c.take("<|tool▁call▁begin|>"):
		return c.one(func() (leaked, bool) { return c.deepseek("<|tool▁sep|>", "<|tool▁call▁end|>") })
	case c.take("<|tool_call_begin|>"):
		return c.one(c.kimi)
	}
	if m := headless.FindStringSubmatch(rest); m != nil {
		return c.one(c.kimi)
	}
	if m := harmony.FindStringSubmatch(rest); m != nil && m[1]+m[2] != "" {
		c.i += len(m[0])
		c.begun = true
		args, ok := c.json()
		return []leaked{{name: m[1] + m[2], args: args}}, ok
	}
	if strings.HasPrefix(rest, "<|start|>") || strings.HasPrefix(rest, "<|channel|>") {
		c.reached(c.i + min(len(rest), maxHarmony)) // its head may not be complete
	}
	inside := false
	for slices.ContainsFunc(wrapping, c.take) {
		inside = true
		c.space()
	}
	if inside {
		return c.wrapped()
	}
	return nil, false
}

func (c *cursor) one(read func() (leaked, bool)) ([]leaked, bool) {
	l, ok := read()
	return []leaked{l}, ok
}

// wrapped reads what stands behind an opener: JSON, tags or Python.
func (c *cursor) wrapped() ([]leaked, bool) {
	rest := c.in[c.i:]
	switch {
	case strings.HasPrefix(rest, "{"), strings.HasPrefix(rest, "["):
		c.begun = strings.Contains(rest[:min(len(rest), 200)], `"`) || strings.Contains(rest[:min(len(rest), 200)], "(")
		if calls, ok := c.python(); ok {
			return calls, true
		}
		from := c.i
		if calls, ok := c.objects(); ok && !strings.HasPrefix(c.in[c.i:], "}") && !strings.HasPrefix(c.in[c.i:], "]") {
			return calls, true
		}
		c.i = from
		return c.closed()
	case strings.HasPrefix(rest, "<function="), c.prefixed("invoke name="):
		return c.one(c.function)
	}
	from := c.i
	if name := c.name(); name != "" {
		c.space()
		if strings.HasPrefix(c.in[c.i:], "<arg_key>") || strings.HasPrefix(c.in[c.i:], "</tool_call>") {
			c.begun = true
			params, ok := c.glm()
			return []leaked{{name: name, params: params, tagged: true}}, ok
		}
		if strings.HasPrefix(c.in[c.i:], "{") {
			c.begun = true
			args, ok := c.json()
			return []leaked{{name: name, args: args}}, ok
		}
	}
	c.i = from
	return c.python()
}

// objects reads calls as JSON: one object, several, or a list of them.
func (c *cursor) objects() (calls []leaked, ok bool) {
	for c.i < len(c.in) && (c.in[c.i] == '{' || c.in[c.i] == '[') {
		v, rules, n, err := readPrefix(c.in[c.i:])
		c.reached(c.i + n)
		if err != nil {
			return nil, false
		}
		c.i += n
		list := []*value{v}
		if v.kind == kindArray {
			list = v.items
		}
		for _, item := range list {
			l, ok := fromObject(item)
			if !ok {
				return nil, false
			}
			l.loose = len(rules) > 0
			calls = append(calls, l)
		}
		if c.space(); c.take(";") { // Llama's way to separate several
			c.space()
		}
	}
	return calls, len(calls) > 0
}

// closed reads an object whose last brackets are missing, or one too many,
// before a closing tag, which says that nothing else is.
func (c *cursor) closed() ([]leaked, bool) {
	n := strings.Index(c.in[c.i:], "</")
	if n < 0 {
		return nil, false
	}
	v, _, err := readTolerant(c.in[c.i:c.i+n], true)
	if err != nil {
		return nil, false
	}
	l, ok := fromObject(v)
	l.loose = true
	c.i += n
	return []leaked{l}, ok
}

// fromObject reads a call from {"name": …, "arguments": …} and its relatives.
func fromObject(v *value) (l leaked, ok bool) {
	if v.kind != kindObject || len(v.members) > 5 {
		return l, false
	}
	for _, m := range v.members {
		switch {
		case m.name == "function" && m.val.kind == kindObject:
			inner, ok := fromObject(m.val)
			if !ok || l.name != "" {
				return l, false
			}
			l = inner
		case (m.name == "name" || m.name == "function" || m.name == "tool" || m.name == "tool_name") && m.val.kind == kindString && l.name == "":
			l.name = m.val.str()
		case slices.Contains(inWrapper, m.name) && l.args == "":
			if l.args = m.val.render(); m.val.kind == kindString {
				l.args = m.val.str()
			}
		case m.name == "type" || m.name == "id" || m.name == "call_id" || m.name == "index":
		default:
			return l, false
		}
	}
	return l, l.name != ""
}

// bareCall reads a text that is nothing but a call as JSON, {"name": …,
// "parameters": …}, as Llama writes it. In a fence it may be an example: it counts as loose.
func bareCall(text string) []leaked {
	text = strings.TrimSpace(text)
	quoted := false
	if inner, ok := unfence(text); ok {
		text, quoted = strings.TrimSpace(inner), true
	}
	if m := submatch(sentence, text, "[Call"); m != nil {
		c := cursor{in: text, i: strings.IndexByte(text, '{')}
		if args, ok := c.json(); ok && c.take("]") && c.end() {
			return []leaked{{name: m[1], args: args, loose: true}}
		}
		return nil
	}
	if rest, ok := strings.CutSuffix(text, "</function>"); ok {
		// Llama's tag of which a server has kept the end only: name{…}</function>.
		c := cursor{in: rest}
		name := c.name()
		if args, ok := c.json(); ok && name != "" && c.end() {
			return []leaked{{name: name, args: args}}
		}
		return nil
	}
	if strings.HasPrefix(text, codeMark) || strings.HasPrefix(text, printMark) {
		c := cursor{in: text}
		if calls, ok := c.program(); ok && c.end() {
			return calls
		}
		return nil
	}
	if !strings.HasPrefix(text, `{`) && !strings.HasPrefix(text, `[`) || !strings.HasSuffix(text, "}") && !strings.HasSuffix(text, "]") {
		return nil
	}
	c := cursor{in: text}
	calls, ok := c.python()
	if !ok {
		if calls, ok = c.objects(); !ok {
			return nil
		}
	}
	if !c.end() {
		return nil
	}
	for i := range calls {
		if calls[i].args == "" && !calls[i].tagged {
			return nil
		}
		calls[i].loose = calls[i].loose || quoted
	}
	return calls
}
