package repair

import (
	"slices"
	"strings"
)

// param is one parameter that is written as a tag.
type param struct {
	name, text string
	json       bool // the tag says that the value is JSON and not a string
}

// taggedFunction reads <function=name> or <invoke name="name"> with JSON, or one tag for each
// parameter, inside.
func (c *cursor) taggedFunction() (l textCall, ok bool) {
	m := functionTag.FindStringSubmatch(c.rest())
	if m == nil {
		if !strings.Contains(c.rest(), ">") {
			c.reached(len(c.in))
		}
		return l, false
	}
	alone := startsLine(c.in[:c.i])
	c.i += len(m[0])
	l.name = strings.TrimSpace(m[3])
	c.skipSpace()
	r := c.rest()
	c.committed = c.committed || r == "" && alone || r != "" && (r[0] == '{' || r[0] == '<') // else the text is about the format
	if strings.HasPrefix(r, "{") {
		l.args, ok = c.jsonObject()
	} else {
		l.tagged = true
		l.params, ok = c.parameters()
	}
	if c.skipSpace(); !ok {
		return l, false
	}
	end := functionEnd.FindString(c.rest())
	c.i += len(end)
	return l, end != "" || c.atCallEnd() && (c.i < len(c.in) || l.args != "" || len(l.params) > 0)
}

// atCallEnd reports whether the text ends here, or a mark with roleEnd follows.
func (c *cursor) atCallEnd() bool {
	if c.i >= len(c.in) {
		return true
	}
	r, _ := parseMark(c.rest())
	return r == roleEnd
}

// parameters reads consecutive <parameter=k>v</parameter>, <param name="k">v</param> and GLM
// pairs. A value ends at its first closing tag. If neither another parameter nor another
// closing tag follows, the value itself contains such a tag, and parsing fails. It also fails if the
// value contains another parameter's tag: one of them is not closed.
func (c *cursor) parameters() (params []param, ok bool) {
	for len(params) <= 256 {
		from := c.i
		c.skipSpace()
		if c.beginsPair() {
			more, ok := c.argPairs()
			return append(params, more...), ok
		}
		if p, found, ok := c.minimaxParameter(); found {
			if params = append(params, p); !ok {
				return nil, false
			}
			continue
		}
		m := parameterTag.FindStringSubmatch(c.rest()[:min(len(c.rest()), 512)])
		if m == nil {
			c.i = from
			return params, true
		}
		c.i += len(m[0])
		p := param{name: strings.TrimSpace(m[3]), json: strings.Contains(m[4], `string="false"`)}
		if p.text, ok = c.readUntil("</" + m[1] + m[2] + ">"); !ok || !c.afterValue() || parameterHead.MatchString(p.text) {
			return nil, false
		}
		if m[0][1+len(m[1])+len(m[2])] == '=' { // Qwen writes the value on lines of its own
			p.text = strings.TrimSuffix(strings.TrimPrefix(p.text, "\n"), "\n")
		}
		if data, ok := strings.CutPrefix(p.text, "<![CDATA["); ok && strings.HasSuffix(data, "]]>") {
			p.text = strings.TrimSuffix(data, "]]>")
		}
		params = append(params, p)
	}
	return nil, false
}

// afterValue reports whether what follows is possible behind the closing tag of a value.
func (c *cursor) afterValue() bool {
	next := cursor{in: c.in, i: c.i}
	next.skipSpace()
	r := next.rest()
	return next.atCallEnd() || next.beginsPair() || functionEnd.MatchString(r) || parameterTag.MatchString(r[:min(len(r), 512)])
}

// beginsPair reports whether one of pairForms begins.
func (c *cursor) beginsPair() bool {
	return slices.ContainsFunc(pairForms, func(f pairForm) bool { return strings.HasPrefix(c.rest(), f.begin) })
}

// endsCall reports whether a mark that ends calls follows, and not only one that ends a turn.
func (c *cursor) endsCall() bool {
	r, n := parseMark(c.rest())
	return r == roleEnd && strings.Contains(c.rest()[:n], "tool_call")
}

// argPairs reads parameters in one of pairForms.
func (c *cursor) argPairs() (params []param, ok bool) {
	for len(params) <= 256 {
		c.skipSpace()
		if !c.beginsPair() {
			return params, true
		}
		for _, form := range pairForms {
			if !c.accept(form.begin) {
				continue
			}
			if at := strings.IndexByte(c.rest(), '<'); at >= 0 && len(c.rest())-at >= len(form.nameEnd) && !strings.HasPrefix(c.rest()[at:], form.nameEnd) {
				return nil, false // no name has a tag in it
			}
			name, ok := c.readUntil(form.nameEnd)
			if form.valueBegin != "" {
				c.skipSpace()
			}
			if !ok || !c.accept(form.valueBegin) {
				return nil, false
			}
			text, ok := c.readUntil(form.end)
			if !ok || !c.afterValue() {
				return nil, false
			}
			params = append(params, param{name: strings.TrimSpace(name), text: text})
		}
	}
	return nil, false
}

// minimaxParameter reads <name>value]<]minimax[>[</name> behind ]<]minimax[>[.
func (c *cursor) minimaxParameter() (p param, found, ok bool) {
	m := minimaxTag.FindStringSubmatch(c.rest()[:min(len(c.rest()), maxMark)])
	if m == nil || !strings.HasSuffix(c.in[:c.i], minimaxMark) {
		return p, false, false
	}
	c.i += len(m[0])
	p.name = m[1]
	p.text, ok = c.readUntil(minimaxMark + "</" + m[1] + ">")
	return p, true, ok
}

// xtmlCalls reads the calls of Kimi K3: <|open|>call tool="f"<|sep|>, for each argument
// <|open|>argument key="k" type="string"<|sep|>v<|close|>argument<|sep|>, and <|close|>call<|sep|>.
func (c *cursor) xtmlCalls() (calls []textCall, ok bool) {
	c.committed = true
	for c.accept("<|open|>tools<|sep|>"); ; c.skipSpace() {
		m := xtmlCall.FindStringSubmatch(c.rest())
		if m == nil {
			break
		}
		l := textCall{name: m[1], tagged: true}
		for c.i += len(m[0]); ; {
			if m = xtmlArgument.FindStringSubmatch(c.rest()); m == nil {
				break
			}
			c.i += len(m[0])
			p := param{name: m[1]}
			if p.text, ok = c.readUntil("<|close|>argument<|sep|>"); !ok {
				return nil, false
			}
			l.params = append(l.params, p)
		}
		if !c.accept("<|close|>call<|sep|>") {
			return nil, false
		}
		calls = append(calls, l)
	}
	c.accept("<|close|>tools<|sep|>")
	c.accept("<|close|>message<|sep|>")
	return calls, len(calls) > 0
}

// objectFromParams makes an object of parameters. A value is a string if the schema allows
// one or says nothing, else JSON. It returns nil if a name occurs twice, or if a
// string contains character references (&lt;), which are ambiguous.
func objectFromParams(params []param, doc any, work *int) *value {
	c := &coercer{root: doc, workLeft: work}
	properties := propertiesOf(doc)
	v := &value{kind: kindObject}
	for _, p := range params {
		schema, known := properties[p.name]
		isText := !known || c.allowsExplicitly(schema, "string") || c.allowsUntyped(schema)
		val := p.value(isText)
		if p.name == "" || v.has(p.name) || val == nil {
			return nil
		}
		v.members = append(v.members, member{name: p.name, val: val})
	}
	return v
}

// characterReferences are the beginnings of what XML writes in place of its own signs.
var characterReferences = []string{"&lt;", "&gt;", "&amp;", "&quot;", "&#"}

// value returns the value of a parameter, which is JSON if isText is false and it can be read; nil if it is ambiguous.
func (p param) value(isText bool) *value {
	val := stringValue(p.text)
	if p.json || !isText {
		parsed, rules, err := readTolerant(strings.TrimSpace(p.text), false)
		switch {
		case err == nil && len(rules) == 0, err == nil && len(rules) == 1 && rules[0] == ruleLiterals:
			val = parsed
		case p.json:
			return nil
		}
	}
	if val.kind == kindString && slices.ContainsFunc(characterReferences, func(mark string) bool { return strings.Contains(p.text, mark) }) {
		return nil
	}
	return val
}

// allowsUntyped reports whether a schema has an alternative without a type.
func (c *coercer) allowsUntyped(s any) bool {
	return slices.ContainsFunc(c.alternatives(s, 0), func(f map[string]any) bool { return allowedTypes(f) == nil })
}
