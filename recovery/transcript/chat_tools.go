package transcript

func (chat) tools(whole, list []byte) (tools []Tool) {
	var s scanner
	w, ok := opened(&s, list, '[')
	if !ok {
		return nil
	}
	for w.next() {
		var t Tool
		if s.data[w.val] == '{' {
			w.endAt(t.read(whole, s.walk(w.val, w.depth)))
		} else {
			w.skip()
		}
		t.Raw = clipped(w.value())
		tools = append(tools, t)
	}
	return tools
}

// read reads a tool and returns the offset behind it, in one pass unless the type is
// rare. The tool's spans are offsets in whole.
func (t *Tool) read(whole []byte, w walker) int {
	var own, function definition // its own fields, and those of its function
	var kind []byte
	start, nested := w.i-1, false
	for w.next() {
		switch string(w.name) {
		case "function":
			function, nested = definition{}, true
			w.endAt(function.read(w))
		case "type":
			w.skip()
			kind = w.value()
		default:
			w.skip()
			own.set(w.name, w.value())
		}
	}
	if nested {
		own = function // also without a type, which some clients leave out
	}
	if string(kind) == `"function"` { // the usual case, without an allocation
		t.Type = KindFunction
	} else if t.Type = text(kind); t.Type != KindFunction {
		if inner, _ := member(w.s.data[start:w.i], t.Type); isObject(inner) { // {"type":"custom","custom":{…}}
			own = definition{}
			for name, v := range fieldsOf(inner) {
				own.set(name, v)
			}
		}
	}
	own.fill(t, whole)
	return w.i
}

// definition is the raw fields that define a tool. If a field occurs twice, the last
// counts.
type definition struct{ name, description, parameters, strict []byte }

// read reads the current value of w and returns the offset behind it.
func (d *definition) read(w walker) int {
	if w.s.data[w.val] != '{' {
		w.skip()
		return w.i
	}
	in := w.s.walk(w.val, w.depth)
	for in.step() {
		d.set(in.name, in.value())
	}
	return in.i
}

func (d *definition) set(name, value []byte) {
	switch string(name) {
	case "name":
		d.name = value
	case "description":
		d.description = value
	case "parameters":
		d.parameters = value
	case "strict":
		d.strict = value
	}
}

// fill sets the fields of a tool from the definition.
func (d *definition) fill(t *Tool, whole []byte) {
	t.Name, t.Description = text(d.name), text(d.description)
	if len(d.parameters) > 0 && !isNull(d.parameters) {
		t.Parameters, t.Span = clipped(d.parameters), spanIn(whole, d.parameters)
	}
	if isTrue(d.strict) {
		t.Strict = spanIn(whole, d.strict)
	}
}
