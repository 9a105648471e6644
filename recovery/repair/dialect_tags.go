package repair

import "strings"

// param is the text of one parameter in a dialect that writes them in tags.
type param struct {
	name, text string
	json       bool // the dialect says that it is no string
}

// function reads a function in tags: <function=name> or <invoke name="name">,
// with JSON or with one tag for each parameter inside.
func (c *cursor) function() (l leaked, ok bool) {
	m := functionTag.FindStringSubmatch(c.rest())
	if m == nil {
		if !strings.Contains(c.rest(), ">") {
			c.reached(len(c.in))
		}
		return l, false
	}
	c.i += len(m[0])
	l.name = strings.TrimSpace(m[3])
	c.space()
	r := c.rest()
	c.begun = c.begun || r == "" || r[0] == '{' || r[0] == '<' // else it is a word about the format
	if strings.HasPrefix(r, "{") {
		l.args, ok = c.json()
	} else {
		l.tagged = true
		l.params, ok = c.parameters()
	}
	if c.space(); !ok {
		return l, false
	}
	end := functionEnd.FindString(c.rest())
	c.i += len(end)
	return l, end != "" || c.ended()
}

// ended reports whether the text ends here, or a mark follows that says nothing more
// of the call.
func (c *cursor) ended() bool {
	if c.i >= len(c.in) {
		return true
	}
	r, _ := mark(c.rest())
	return r == says
}

// parameters reads <parameter=k>v</parameter>, <param name="k">v</param> and GLM's
// pairs as long as there are some. A value ends at its first closing tag. If what
// follows there is neither another parameter nor another closing tag, the value has
// such a tag itself: not read.
func (c *cursor) parameters() (params []param, ok bool) {
	for len(params) <= 256 {
		from := c.i
		c.space()
		if strings.HasPrefix(c.rest(), "<arg_key>") {
			more, ok := c.pairs()
			return append(params, more...), ok
		}
		m := parameterTag.FindStringSubmatch(c.rest()[:min(len(c.rest()), 512)])
		if m == nil {
			c.i = from
			return params, true
		}
		c.i += len(m[0])
		p := param{name: strings.TrimSpace(m[3]), json: strings.Contains(m[4], `string="false"`)}
		if p.text, ok = c.until("</" + m[1] + m[2] + ">"); !ok || !c.between() {
			return nil, false
		}
		if m[0][1+len(m[1])+len(m[2])] == '=' { // Qwen: the value stands on lines of its own
			p.text = strings.TrimSuffix(strings.TrimPrefix(p.text, "\n"), "\n")
		}
		if data, ok := strings.CutPrefix(p.text, "<![CDATA["); ok && strings.HasSuffix(data, "]]>") {
			p.text = strings.TrimSuffix(data, "]]>")
		}
		params = append(params, p)
	}
	return nil, false
}

// between reports whether a closing tag can have ended a value here.
func (c *cursor) between() bool {
	next := cursor{in: c.in, i: c.i}
	next.space()
	r := next.rest()
	return next.ended() || strings.HasPrefix(r, "<arg_key>") || functionEnd.MatchString(r) || parameterTag.MatchString(r[:min(len(r), 512)])
}

// pairs reads GLM's pairs of tags.
func (c *cursor) pairs() (params []param, ok bool) {
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

// typed makes an object of parameters in tags. Their text is a string where the
// schema allows one, or does not say; else it is JSON. nil if a name occurs
// twice, or a text has character references, which may be meant or not.
func typed(params []param, doc any, work *int) *value {
	c := &coercer{root: doc, work: work}
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
