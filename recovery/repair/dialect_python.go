package repair

import "strings"

// gemma reads name{k:<|"|>v<|"|>,n:1}, or the same with Python's arguments.
func (c *cursor) gemma() (l leaked, ok bool) {
	c.begun = true
	if l.name = c.name(); l.name == "" || c.i >= len(c.in) {
		return l, false
	}
	r := parser{in: c.in, i: c.i}
	var v *value
	if c.in[c.i] == '(' {
		r.i++
		v, ok = r.keywords()
	} else {
		r.gemma = strings.Contains(c.rest(), gemmaQuote)
		var err error
		v, err = r.value()
		ok = err == nil && v.kind == kindObject
	}
	if c.ran(&r); !ok {
		return l, false
	}
	c.i = r.i
	l.args = v.render()
	return l, true
}

// ran notes how far a parser came.
func (c *cursor) ran(r *parser) {
	if r.open {
		c.reached(len(c.in))
	}
	c.reached(r.i)
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

// python reads calls as Llama 4 and others write them: [f(a=1), g()], f.call(a="x"),
// or one on each line.
func (c *cursor) python() (calls []leaked, ok bool) {
	from := c.i
	inList := c.take("[")
	for len(calls) <= maxCalls {
		after := c.i
		c.space()
		name := strings.TrimSuffix(c.name(), ".call")
		r := parser{in: c.in, i: c.i + 1}
		var v *value
		if ok = name != "" && strings.HasPrefix(c.rest(), "("); ok {
			c.begun = true
			v, ok = r.keywords()
			c.ran(&r)
		}
		if !ok && len(calls) > 0 && !inList {
			c.i = after
			return calls, true
		} else if !ok {
			break
		}
		c.i = r.i
		calls = append(calls, leaked{name: bare(name), args: v.render()})
		if !inList {
			continue
		}
		if c.space(); c.take("]") {
			return calls, true
		} else if !c.take(",") {
			break
		}
	}
	c.i = from
	return nil, false
}

// keywords reads keyword arguments, or one object, up to the closing parenthesis.
func (r *parser) keywords() (*value, bool) {
	v := &value{kind: kindObject}
	for first := true; ; first = false {
		if r.space() != nil || r.i >= len(r.in) {
			return nil, false
		}
		if r.in[r.i] == ')' {
			r.i++
			return v, true
		}
		word := r.word()
		r.i += len(word)
		if object := first && r.in[r.i:] != "" && r.in[r.i] == '{'; object && word == "" {
			val, err := r.value()
			if v = val; err != nil || r.space() != nil || !strings.HasPrefix(r.in[r.i:], ")") {
				return nil, false
			}
			continue
		}
		if word == "" || v.has(word) || r.space() != nil || !strings.HasPrefix(r.in[r.i:], "=") {
			return nil, false
		}
		r.i++
		val, err := r.value()
		if err != nil || r.space() != nil || r.i >= len(r.in) || len(v.members) > 256 {
			return nil, false
		}
		v.members = append(v.members, member{name: word, val: val})
		if r.in[r.i] == ',' {
			r.i++
		} else if r.in[r.i] != ')' {
			return nil, false
		}
	}
}
