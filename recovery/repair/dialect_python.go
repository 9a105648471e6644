package repair

import "strings"

// gemmaCall reads name{k:<|"|>v<|"|>,n:1}, or name(k="v").
func (c *cursor) gemmaCall() (l textCall, ok bool) {
	c.committed = true
	if l.name = c.name(); l.name == "" || c.i >= len(c.in) {
		return l, false
	}
	r := parser{in: c.in, i: c.i}
	var v *value
	if c.in[c.i] == '(' {
		r.i++
		v, ok = r.keywordArguments()
	} else {
		r.gemma = strings.Contains(c.rest(), gemmaQuote)
		var err error
		v, err = r.value()
		ok = err == nil && v.kind == kindObject
	}
	if c.reachedBy(&r); !ok {
		return l, false
	}
	c.i = r.i
	l.args = v.render()
	return l, true
}

// reachedBy records how far a parser looked.
func (c *cursor) reachedBy(r *parser) {
	if r.endedInside {
		c.reached(len(c.in))
	}
	c.reached(r.i)
}

// pythonBlock reads Gemma's block of Python code.
func (c *cursor) pythonBlock() ([]textCall, bool) {
	c.committed = true
	c.skipSpace()
	calls, ok := c.pythonProgram()
	c.skipSpace()
	return calls, ok && (c.accept("```") || c.i >= len(c.in))
}

// pythonProgram reads f(a=1), print(f(a=1)), or tool_code = f(a=1) followed by print(tool_code).
func (c *cursor) pythonProgram() ([]textCall, bool) {
	variable := c.accept(toolCodeBegin)
	printed := !variable && c.accept(printBegin)
	calls, ok := c.pythonCalls()
	if !ok {
		return nil, false
	}
	c.skipSpace()
	switch {
	case variable:
		c.accept("print(tool_code)")
	case printed:
		ok = c.accept(")")
	}
	return calls, ok
}

// pythonCalls reads calls in Python syntax, as Llama 4 and others write them: [f(a=1), g()],
// f.call(a="x"), or one call on each line.
func (c *cursor) pythonCalls() (calls []textCall, ok bool) {
	from := c.i
	inList := c.accept("[")
	for len(calls) <= maxCalls {
		after := c.i
		c.skipSpace()
		name := strings.TrimSuffix(c.name(), ".call")
		r := parser{in: c.in, i: c.i + 1}
		var v *value
		if ok = name != "" && strings.HasPrefix(c.rest(), "("); ok {
			c.committed = true
			v, ok = r.keywordArguments()
			c.reachedBy(&r)
		}
		if !ok && len(calls) > 0 && !inList {
			c.i = after
			return calls, true
		} else if !ok {
			break
		}
		c.i = r.i
		calls = append(calls, textCall{name: stripName(name), args: v.render()})
		if !inList {
			continue
		}
		if c.skipSpace(); c.accept("]") {
			return calls, true
		} else if !c.accept(",") {
			break
		}
	}
	c.i = from
	return nil, false
}

// keywordArguments reads keyword arguments, or one object, up to the closing parenthesis.
func (r *parser) keywordArguments() (*value, bool) {
	v := &value{kind: kindObject}
	for first := true; ; first = false {
		if r.skipSpace(); r.i >= len(r.in) {
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
			r.skipSpace()
			if v = val; err != nil || !strings.HasPrefix(r.in[r.i:], ")") {
				return nil, false
			}
			continue
		}
		if r.skipSpace(); word == "" || v.has(word) || !strings.HasPrefix(r.in[r.i:], "=") {
			return nil, false
		}
		r.i++
		val, err := r.value()
		if r.skipSpace(); err != nil || r.i >= len(r.in) || len(v.members) > 256 {
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
