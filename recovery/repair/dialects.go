package repair

import "strings"

// prefix is the namespace of the tag at the cursor's place.
func (c *cursor) prefix() string {
	for _, p := range []string{"｜DSML｜", "antml:"} {
		if strings.HasPrefix(c.in[c.i:], "<"+p) {
			return p
		}
	}
	return ""
}

// prefixed reports whether a tag follows, in any namespace.
func (c *cursor) prefixed(tag string) bool {
	return strings.HasPrefix(c.in[c.i:], "<"+c.prefix()+tag)
}

// gemma reads call:name{k:<|"|>v<|"|>,n:1}, or the same with Python's arguments.
func (c *cursor) gemma() (l leaked, ok bool) {
	c.space()
	c.take("call:")
	c.begun = true
	if l.name = c.name(); l.name == "" || c.i >= len(c.in) {
		return l, false
	}
	r := reader{in: c.in, i: c.i}
	var v *value
	if c.in[c.i] == '(' {
		r.i++
		v, ok = r.keywords()
	} else {
		r.gemma = strings.Contains(c.in[c.i:], gemmaQuote)
		var err error
		v, err = r.value()
		ok = err == nil && v.kind == kindObject
	}
	c.ran(&r)
	if !ok {
		return l, false
	}
	c.i = r.i
	l.args = v.render()
	return l, true
}

// code reads Gemma's block of Python.
func (c *cursor) code() ([]leaked, bool) {
	c.begun = true
	c.space()
	calls, ok := c.program()
	c.space()
	return calls, ok && (c.take("```") || c.i >= len(c.in))
}

// program reads f(a=1), print(f(a=1)), or tool_code = f(a=1) and print(tool_code).
func (c *cursor) program() ([]leaked, bool) {
	variable := c.take(codeMark)
	printed := !variable && c.take(printMark)
	calls, ok := c.python()
	if !ok {
		return nil, false
	}
	c.space()
	switch {
	case variable:
		c.take("print(tool_code)")
	case printed:
		ok = c.take(")")
	}
	return calls, ok
}

// function reads a function in tags: <function=name> or <invoke name="name">,
// with JSON or with one tag for each parameter inside.
func (c *cursor) function() (l leaked, ok bool) {
	closer := "</function>"
	if !c.take("<function=") {
		prefix := c.prefix()
		closer = "</" + prefix + "invoke>"
		if !c.take("<" + prefix + "invoke name=") {
			return l, false
		}
	}
	head, ok := c.until(">")
	if !ok || len(head) > 200 {
		return l, false
	}
	l.name = strings.Trim(strings.TrimSpace(head), `"'`)
	c.space()
	c.begun = c.i >= len(c.in) || c.in[c.i] == '{' || c.in[c.i] == '<' // else it is a word about the format
	if strings.HasPrefix(c.in[c.i:], "{") {
		if l.args, ok = c.json(); !ok {
			return l, false
		}
	} else {
		l.tagged = true
		if l.params, ok = c.parameters(); !ok {
			return l, false
		}
	}
	c.space()
	return l, c.take(closer) || c.i >= len(c.in) || strings.HasPrefix(c.in[c.i:], "</tool_call>") || strings.HasPrefix(c.in[c.i:], "<|e")
}

// parameters reads <parameter=k>v</parameter>, <parameter name="k">v</parameter>,
// <arg_key>k</arg_key><arg_value>v</arg_value> as long as there are some. A
// value ends at its first closing tag. If what follows there is neither another
// parameter nor another closing tag, the value has such a tag itself: not read.
func (c *cursor) parameters() (params []param, ok bool) {
	for len(params) <= 256 {
		from := c.i
		c.space()
		if strings.HasPrefix(c.in[c.i:], "<arg_key>") {
			more, ok := c.glm()
			return append(params, more...), ok
		}
		prefix := c.prefix()
		var lines bool // of Qwen3-Coder: the value stands on lines of its own
		switch {
		case c.take("<parameter="):
			lines = true
		case c.take("<" + prefix + "parameter name="):
		default:
			c.i = from
			return params, true
		}
		head, ok := c.until(">")
		if !ok || len(head) > 300 {
			return nil, false
		}
		p := param{json: strings.Contains(head, `string="false"`)}
		if i := strings.Index(head, ` string="`); i >= 0 {
			head = head[:i]
		}
		p.name = strings.Trim(strings.TrimSpace(head), `"'`)
		if p.text, ok = c.until("</" + prefix + "parameter>"); !ok || !c.between() {
			return nil, false
		}
		if lines {
			p.text = strings.TrimPrefix(p.text, "\n")
			p.text = strings.TrimSuffix(p.text, "\n")
		}
		params = append(params, p)
	}
	return nil, false
}

// between reports whether a closing tag can have ended a value here.
func (c *cursor) between() bool {
	rest := strings.TrimLeft(c.in[c.i:], " \t\r\n")
	if rest == "" {
		return true
	}
	for _, next := range []string{"<parameter", "</function>", "</invoke>", "</tool_call>", "<arg_key>", "<｜DSML｜parameter", "</｜DSML｜invoke>",
		"<antml:parameter", "</antml:invoke>"} {
		if strings.HasPrefix(rest, next) {
			return true
		}
	}
	return false
}

// glm reads GLM's pairs of tags.
func (c *cursor) glm() (params []param, ok bool) {
	for len(params) <= 256 {
		c.space()
		if !c.take("<arg_key>") {
			return params, true
		}
		name, ok := c.until("</arg_key>")
		c.space()
		if !ok || !c.take("<arg_value>") {
			return nil, false
		}
		text, ok := c.until("</arg_value>")
		if !ok || !c.between() {
			return nil, false
		}
		params = append(params, param{name: strings.TrimSpace(name), text: text})
	}
	return nil, false
}

// mistral reads [TOOL_CALLS][{…}], [TOOL_CALLS]name{…} and [TOOL_CALLS]name[ARGS]{…}.
func (c *cursor) mistral() ([]leaked, bool) {
	c.space()
	if rest := c.in[c.i:]; strings.HasPrefix(rest, "[{") || strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, "[ {") || strings.HasPrefix(rest, "[\n") {
		c.begun = true
		return c.objects()
	}
	l := leaked{name: c.name()}
	if l.name == "" {
		return nil, false
	}
	if c.take("[CALL_ID]") {
		c.name()
	}
	c.begun = c.take("[ARGS]") || strings.HasPrefix(c.in[c.i:], "{")
	var ok bool
	l.args, ok = c.json()
	return []leaked{l}, ok
}

// deepseek reads function<sep>name and a fenced block (V3, R1), or name<sep>{…} (V3.1).
func (c *cursor) deepseek(sep, end string) (l leaked, ok bool) {
	c.begun = true
	head, ok := c.until(sep)
	if !ok || len(head) > 200 {
		return l, false
	}
	if strings.HasPrefix(strings.TrimSpace(c.in[c.i:]), "{") {
		l.name = strings.TrimSpace(head)
		l.args, ok = c.json()
	} else {
		name, found := c.until("\n")
		l.name = strings.TrimSpace(name)
		c.space()
		fence := c.take("```json") || c.take("```")
		if l.args, ok = c.json(); !found {
			return l, false
		}
		c.space()
		if fence && !c.take("```") {
			return l, false
		}
	}
	c.space()
	return l, ok && (c.take(end) || c.i >= len(c.in))
}

// kimi reads functions.name:0<|tool_call_argument_begin|>{…}.
func (c *cursor) kimi() (l leaked, ok bool) {
	c.begun = true
	head, ok := c.until(argumentMark)
	if !ok || len(head) > 200 {
		return l, false
	}
	l.name = strings.TrimSpace(head)
	l.args, ok = c.json()
	c.space()
	return l, ok && (c.take("<|tool_call_end|>") || c.i >= len(c.in) || strings.HasPrefix(c.in[c.i:], "<|tool_calls_section_end|>"))
}

// ran notes how far a reader came.
func (c *cursor) ran(r *reader) {
	if r.open {
		c.reached(len(c.in))
	}
	c.reached(r.i)
}

// python reads calls as Llama 4 and others write them: [f(a=1), g()], f.call(a="x").
func (c *cursor) python() (calls []leaked, ok bool) {
	from := c.i
	defer func() {
		if !ok {
			c.i = from
		}
	}()
	inList := c.take("[")
	for len(calls) <= maxCalls {
		c.space()
		name := strings.TrimSuffix(c.name(), ".call")
		if name == "" || !c.take("(") {
			return nil, false
		}
		c.begun = true
		r := reader{in: c.in, i: c.i}
		v, ok := r.keywords()
		c.ran(&r)
		if !ok {
			return nil, false
		}
		c.i = r.i
		calls = append(calls, leaked{name: bare(name), args: v.render()})
		c.space()
		switch {
		case inList && c.take("]"):
			return calls, true
		case inList && c.take(","):
		case inList:
			return nil, false
		default:
			return calls, true
		}
	}
	return nil, false
}

// keywords reads keyword arguments up to the closing parenthesis.
func (r *reader) keywords() (*value, bool) {
	v := &value{kind: kindObject}
	seen := map[string]bool{}
	for {
		if r.space() != nil || r.i >= len(r.in) {
			return nil, false
		}
		if r.in[r.i] == ')' {
			r.i++
			return v, true
		}
		word := r.word()
		r.i += len(word)
		if word == "" || seen[word] || r.space() != nil || !strings.HasPrefix(r.in[r.i:], "=") {
			return nil, false
		}
		r.i++
		val, err := r.value()
		if err != nil || r.space() != nil || r.i >= len(r.in) {
			return nil, false
		}
		seen[word] = true
		v.members = append(v.members, member{name: word, val: val})
		switch r.in[r.i] {
		case ',':
			r.i++
		case ')':
		default:
			return nil, false
		}
	}
}

// typed makes an object of parameters in tags. Their text is a string where the
// schema allows one, or does not say; else it is JSON. nil if a name occurs
// twice, or a text has character references, which may be meant or not.
func typed(params []param, doc any) *value {
	c := &coercer{root: doc, work: maxWork}
	properties := propertiesOf(doc)
	v := &value{kind: kindObject}
	for _, p := range params {
		if p.name == "" || v.has(p.name) {
			return nil
		}
		val := stringValue(p.text)
		schema, known := properties[p.name]
		text := known && (c.wants(schema, "string") || c.untyped(schema))
		if p.json || known && !text {
			parsed, rules, err := readTolerant(strings.TrimSpace(p.text), false)
			switch {
			case err == nil && len(rules) == 0, err == nil && len(rules) == 1 && rules[0] == ruleLiterals:
				val = parsed
			case p.json:
				return nil
			}
		}
		for _, mark := range []string{"&lt;", "&gt;", "&amp;", "&quot;", "&#"} {
			if val.kind == kindString && strings.Contains(p.text, mark) {
				return nil
			}
		}
		v.members = append(v.members, member{name: p.name, val: val})
	}
	return v
}

// untyped reports whether a schema allows a string without saying so.
func (c *coercer) untyped(s any) bool {
	for _, f := range c.forms(s, 0) {
		if kinds(f) == nil {
			return true
		}
	}
	return false
}
