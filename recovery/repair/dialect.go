package repair

import "strings"

// textCall is a call that a model wrote into its text.
type textCall struct {
	name      string
	args      string  // JSON, as in the text or rendered from it
	params    []param // instead of args: untyped values, whose types the schema decides
	tagged    bool    // the arguments are in params
	uncertain bool    // the JSON around it was not valid, or the call may be an example
}

// cursor parses calls in all dialects: marks (dialect_marks.go), followed by JSON
// (dialect_json.go), tags (dialect_tags.go) or Python (dialect_python.go).
type cursor struct {
	in        string
	i         int
	furthest  int  // the furthest offset that was looked at, even if parsing failed there
	committed bool // it saw something that only a call contains
}

// reached records that the cursor looked at the text up to i.
func (c *cursor) reached(i int) { c.furthest = max(c.furthest, i) }

// mayContinue reports whether parsing may have failed only because the text is incomplete:
// it failed within the length of a mark from the end.
func (c *cursor) mayContinue() bool { return len(c.in)-max(c.furthest, c.i) < maxMark }

func (c *cursor) rest() string { return c.in[c.i:] }

// skipSpace skips white space, and the mark in front of a tag of MiniMax M3.
func (c *cursor) skipSpace() {
	rest := strings.TrimLeft(c.in[c.i:], whitespace)
	c.i = len(c.in) - len(strings.TrimPrefix(rest, minimaxMark))
}

// atEnd skips end marks and separators, and reports whether nothing else follows.
func (c *cursor) atEnd() bool {
	for c.skipSpace(); c.acceptMark(roleEnd) || c.accept(";"); c.skipSpace() { // Llama separates calls with ";"
	}
	return c.i >= len(c.in)
}

// acceptMark skips the next mark and returns true, if it has the role.
func (c *cursor) acceptMark(r role) bool {
	if c.i >= len(c.in) {
		return false
	}
	got, n := parseMark(c.rest())
	if got != r {
		return false
	}
	c.i += n
	c.reached(c.i)
	return true
}

// accept skips text and returns true, if it is next.
func (c *cursor) accept(text string) bool {
	if strings.HasPrefix(c.rest(), text) {
		c.i += len(text)
		c.reached(c.i)
		return true
	}
	return false
}

// readUntil returns the text before end, and skips both.
func (c *cursor) readUntil(end string) (string, bool) {
	text, _, ok := strings.Cut(c.rest(), end)
	if !ok {
		c.reached(len(c.in))
		return "", false
	}
	c.i += len(text) + len(end)
	return text, true
}

// name reads the name of a function, "" if there is none.
func (c *cursor) name() string {
	m := functionName.FindString(c.rest())
	c.i += len(m)
	c.reached(c.i)
	return m
}

// jsonObject reads one valid JSON object and returns its text.
func (c *cursor) jsonObject() (string, bool) {
	c.skipSpace()
	if !strings.HasPrefix(c.rest(), "{") {
		return "", false
	}
	_, rules, n, err := readPrefix(c.rest())
	c.reached(c.i + n)
	if err != nil || len(rules) > 0 {
		return "", false
	}
	text := c.in[c.i : c.i+n]
	c.i += n
	return text, true
}

// call reads the next call or list of calls: the marks that begin it, and its content.
// Without such a mark it accepts only forms that have marks of their own.
func (c *cursor) call() ([]textCall, bool) {
	switch {
	case strings.HasPrefix(c.rest(), "<|start|>"), strings.HasPrefix(c.rest(), "<|channel|>"):
		return c.harmonyCall()
	case c.accept("```tool_code"):
		return c.pythonBlock()
	case strings.HasPrefix(c.rest(), "<|open|>tool"):
		return c.xtmlCalls()
	}
	inside := c.beginsCall()
	if c.accept("call:") || c.accept(":call:") {
		return c.single(c.gemmaCall)
	}
	if functionHead.MatchString(c.rest()) {
		return c.single(c.taggedFunction)
	}
	if !inside {
		return c.single(func() (textCall, bool) { return c.nameAndArguments(false) })
	}
	if r := c.rest(); strings.HasPrefix(r, "{") || strings.HasPrefix(r, "[") {
		c.committed = c.committed || strings.ContainsAny(r[:min(len(r), 200)], `"(`)
		from := c.i
		if calls, ok := c.pythonCalls(); ok {
			return calls, true
		}
		if calls, ok := c.jsonCalls(); ok && !strings.HasPrefix(c.rest(), "}") && !strings.HasPrefix(c.rest(), "]") {
			return calls, true
		}
		c.i = from
		return c.unbalanced()
	}
	from := c.i
	if l, ok := c.nameAndArguments(true); ok {
		return []textCall{l}, true
	}
	c.i = from
	return c.pythonCalls()
}

// beginsCall skips the marks that begin a call, and reports whether there are any.
func (c *cursor) beginsCall() (some bool) {
	some = c.accept("functools")
	for n := 0; n < maxLeadingMarks && c.acceptMark(roleBegin); n++ {
		some = true
		if c.skipSpace(); c.acceptMark(roleEnd) { // <|action_start|><|plugin|>
			c.skipSpace()
		}
	}
	if after, ok := strings.CutPrefix(c.rest(), "function"); ok && after != "" {
		if r, n := parseMark(after); r == roleSeparator { // DeepSeek writes the type of the tool first
			c.i, c.committed = len(c.in)-len(after)+n, true
			some = true
		}
	}
	return some
}

func (c *cursor) single(read func() (textCall, bool)) ([]textCall, bool) {
	l, ok := read()
	return []textCall{l}, ok
}

// harmonyCall reads <|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}.
func (c *cursor) harmonyCall() ([]textCall, bool) {
	m := harmonyHead.FindStringSubmatch(c.rest()[:min(len(c.rest()), maxHarmonyHead)])
	if m == nil {
		if !strings.Contains(c.rest(), "<|message|>") {
			c.reached(c.i + min(len(c.rest()), maxHarmonyHead)) // the head may be incomplete
			c.committed = strings.Contains(c.rest(), " to=")
		}
		return nil, false
	}
	c.i += len(m[0])
	name := m[1] + m[2]
	c.committed = name != "" || strings.HasPrefix(c.rest(), "{") // arguments without a recipient are a broken call
	args, ok := c.jsonObject()
	return []textCall{{name: name, args: args}}, ok && name != ""
}

// nameAndArguments reads name{…}, or a name and arguments with marks between them. Those
// marks are required unless a mark began the call (inside).
func (c *cursor) nameAndArguments(inside bool) (l textCall, ok bool) {
	if l.name = c.name(); l.name == "" {
		return l, false
	}
	for fence := false; ; {
		c.skipSpace()
		switch {
		case c.beginsPair():
			c.committed, l.tagged = true, true
			l.params, ok = c.argPairs()
			return l, ok
		case c.accept("[CALL_ID]"):
			c.name()
		case c.acceptMark(roleSeparator):
			inside, c.committed = true, true
		case inside && (c.accept("```json") || c.accept("```")):
			fence = true
		case inside && strings.HasPrefix(c.rest(), "{"):
			c.committed = true
			l.args, ok = c.jsonObject()
			c.skipSpace()
			return l, ok && (!fence || c.accept("```"))
		case inside && c.endsCall():
			c.committed, l.tagged = true, true // a call without parameters
			return l, true
		default:
			return l, false
		}
	}
}
