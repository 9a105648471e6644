package transcript

func (responses) message(role, text string, _ []byte) []byte {
	kind := "input_text"
	if role == RoleAssistant {
		kind = "output_text"
	}
	raw := append(AppendString([]byte(`{"type":"message","role":`), role), `,"content":[{"type":"`...)
	return append(AppendString(append(append(raw, kind...), `","text":`...), text), `}]}`...)
}

func (responses) textPart(text string, _ []byte) []byte {
	return append(AppendString([]byte(`{"type":"input_text","text":`), text), '}')
}

func (responses) result(c ToolCall, text string) []byte {
	answer := func(kind, id, rest string) []byte {
		raw := append(AppendString([]byte(`{"type":`), kind), `,"`+id+`":`...)
		return append(append(AppendString(raw, c.ID), rest...), '}')
	}
	said := string(String(text))
	switch c.kind {
	case "custom_tool_call", "local_shell_call":
		return answer(c.kind+"_output", "call_id", `,"output":`+said)
	case "shell_call":
		return answer("shell_call_output", "call_id", `,"output":[{"stdout":"","stderr":`+said+`,"outcome":{"type":"timeout"}}]`)
	case "apply_patch_call":
		return answer("apply_patch_call_output", "call_id", `,"status":"failed","output":`+said)
	case "tool_search_call":
		return answer("tool_search_output", "call_id", `,"execution":"client","status":"completed","tools":[]`)
	case "mcp_approval_request":
		return answer("mcp_approval_response", "approval_request_id", `,"approve":false,"reason":`+said)
	case "computer_call":
		return nil // the result must be a screenshot
	}
	return answer("function_call_output", "call_id", `,"output":`+said)
}

func (responses) tool(name string) []byte {
	out := AppendString([]byte(`{"type":"function","name":`), name)
	return append(out, `,"parameters":{"type":"object","properties":{}},"strict":false}`...)
}

func (responses) choice(t *Tool) []byte {
	if t == nil {
		return []byte(`"none"`)
	}
	if stringField(t.Raw, "name") != t.Name { // tool_choice cannot name a tool in a namespace
		return []byte(`"required"`)
	}
	kind := t.Type
	if kind == "" {
		kind = KindFunction
	}
	return append(AppendString(append(AppendString([]byte(`{"type":`), kind), `,"name":`...), t.Name), '}')
}
