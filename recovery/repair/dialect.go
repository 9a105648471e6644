package repair

import "strings"

// leaked is a call that a model wrote into its text.
type leaked struct {
	name   string
	args   string  // JSON as it stands in the text, or rendered from it
	params []param // instead of args: values that the schema gives their types
	tagged bool    // params hold the arguments
	loose  bool    // the JSON around it was not valid, or nothing marks it as a call
}

// cursor reads calls in their dialects: marks (dialect_marks.go), and behind them calls as JSON
// (dialect_json.go), in tags (dialect_tags.go), or as a program (dialect_python.go).
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
func (c *cursor) open() bool { return len(c.in)-max(c.far, c.i) < maxMark }

func (c *cursor) rest() string { return c.in[c.i:] }

func (c *cursor) space() { c.i = len(c.in) - len(strings.TrimLeft(c.in[c.i:], blanks)) }

// end passes what says nothing and reports whether nothing else follows.
func (c *cursor) end() bool {
	for c.space(); c.is(says) || c.take(";"); c.space() { // the latter separates Llama's calls
	}
	return c.i >= len(c.in)
}

// is passes a mark that says so, if it is next.
func (c *cursor) is(r role) bool {
	if c.i >= len(c.in) {
		return false
	}
	got, n := mark(c.rest())
	if got != r {
		return false
	}
	c.i += n
	c.reached(c.i)
	return true
}

// take passes a text, if it is next.
func (c *cursor) take(text string) bool {
	if strings.HasPrefix(c.rest(), text) {
		c.i += len(text)
		c.reached(c.i)
		return true
	}
	return false
}

// until passes text up to and with an end, and returns the text.
func (c *cursor) until(end string) (string, bool) {
	text, _, ok := strings.Cut(c.rest(), end)
	if !ok {
		c.reached(len(c.in))
		return "", false
	}
	c.i += len(text) + len(end)
	return text, true
}

// name passes the name of a function.
func (c *cursor) name() string {
	m := named.FindString(c.rest())
	c.i += len(m)
	c.reached(c.i)
	return m
}

// json passes one valid JSON object and returns its text.
func (c *cursor) json() (string, bool) {
	c.space()
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

// call reads the next call or list of calls: marks that begin one, and what they
// begin. Without a mark only what is marked itself is one.
func (c *cursor) call() ([]leaked, bool) {
	switch {
	case strings.HasPrefix(c.rest(), "<|start|>"), strings.HasPrefix(c.rest(), "<|channel|>"):
		return c.harmony()
	case c.take("```tool_code"):
		return c.code()
	case strings.HasPrefix(c.rest(), "<|open|>"):
		c.begun = true
	}
	inside := c.take("functools")
	for n := 0; n < maxNested && c.is(begins); n++ {
		inside = true
		if c.space(); c.is(says) { // <|action_start|><|plugin|>
			c.space()
		}
	}
	if after, ok := strings.CutPrefix(c.rest(), "function"); ok && after != "" {
		if r, n := mark(after); r == divides { // DeepSeek says what kind of tool it is
			c.i, c.begun = len(c.in)-len(after)+n, true
			inside = true
		}
	}
	if functionHead.MatchString(c.rest()) {
		return c.one(c.function)
	}
	if !inside {
		return c.one(func() (leaked, bool) { return c.divided(false) })
	}
	if r := c.rest(); strings.HasPrefix(r, "{") || strings.HasPrefix(r, "[") {
		c.begun = c.begun || strings.ContainsAny(r[:min(len(r), 200)], `"(`)
		from := c.i
		if calls, ok := c.python(); ok {
			return calls, true
		}
		if calls, ok := c.objects(); ok && !strings.HasPrefix(c.rest(), "}") && !strings.HasPrefix(c.rest(), "]") {
			return calls, true
		}
		c.i = from
		return c.closed()
	}
	if c.take("call:") {
		return c.one(c.gemma)
	}
	from := c.i
	if l, ok := c.divided(true); ok {
		return []leaked{l}, true
	}
	c.i = from
	return c.python()
}

func (c *cursor) one(read func() (leaked, bool)) ([]leaked, bool) {
	l, ok := read()
	return []leaked{l}, ok
}

// harmony reads <|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}.
func (c *cursor) harmony() ([]leaked, bool) {
	m := harmony.FindStringSubmatch(c.rest()[:min(len(c.rest()), maxHarmony)])
	if m == nil {
		if !strings.Contains(c.rest(), "<|message|>") {
			c.reached(c.i + min(len(c.rest()), maxHarmony)) // its head may not be complete
			c.begun = strings.Contains(c.rest(), " to=")
		}
		return nil, false
	}
	c.i += len(m[0])
	name := m[1] + m[2]
	c.begun = name != "" || strings.HasPrefix(c.rest(), "{") // arguments for nobody are a broken call
	args, ok := c.json()
	return []leaked{{name: name, args: args}}, ok && name != ""
}

// divided reads a name and its arguments: name{…}, or with marks between them, which
// it must have where no mark began the call.
func (c *cursor) divided(inside bool) (l leaked, ok bool) {
	if l.name = c.name(); l.name == "" {
		return l, false
	}
	for fence := false; ; {
		c.space()
		switch {
		case strings.HasPrefix(c.rest(), "<arg_key>"):
			c.begun, l.tagged = true, true
			l.params, ok = c.pairs()
			return l, ok
		case c.take("[CALL_ID]"):
			c.name()
		case c.is(divides):
			inside, c.begun = true, true
		case inside && (c.take("```json") || c.take("```")):
			fence = true
		case inside && strings.HasPrefix(c.rest(), "{"):
			c.begun = true
			l.args, ok = c.json()
			c.space()
			return l, ok && (!fence || c.take("```"))
		case inside && strings.HasPrefix(c.rest(), "</tool_call>"):
			c.begun, l.tagged = true, true // GLM without parameters
			return l, true
		default:
			return l, false
		}
	}
}
