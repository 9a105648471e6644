package transcript

func (chat) tools(whole, list []byte) (tools []Tool) {
	for raw := range elementsOf(list) {
		t := toolIn(whole, raw)
		t.Raw = clipped(raw)
		tools = append(tools, t)
	}
	return tools
}

// toolIn reads a tool, whose definition is in its own fields, or in an object named like its type. The
// tool's spans are offsets in whole.
func toolIn(whole, raw []byte) (t Tool) {
	var d definition
	var function []byte
	for name, v := range fieldsOf(raw) {
		switch string(name) {
		case "type":
			if t.Type = KindFunction; string(v) != `"function"` { // saves an allocation for nearly all
				t.Type = text(v)
			}
		case KindFunction:
			function = v
		default:
			d.set(name, v)
		}
	}
	inner := function // also without a type, which some clients leave out
	if t.Type != KindFunction {
		if own, _ := member(raw, t.Type); isObject(own) {
			inner = own
		}
	}
	if inner != nil {
		d = definition{}
		for name, v := range fieldsOf(inner) {
			d.set(name, v)
		}
	}
	d.fill(&t, whole)
	return t
}

// definition is the raw fields that define a tool. If a field occurs twice, the last
// counts.
type definition struct{ name, description, parameters, strict []byte }

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
