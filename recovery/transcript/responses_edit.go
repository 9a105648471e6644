package transcript

func (responses) message(role, text string, _ []byte) []byte {
	kind := "input_text"
	if role == RoleAssistant {
		kind = "output_text"
	}
	return Object("type", "message", "role", role, "content", List([][]byte{Object("type", kind, "text", text)}))
}

func (responses) textPart(text string, _ []byte) []byte {
	return Object("type", "input_text", "text", text)
}

func (responses) result(c ToolCall, text string) []byte {
	switch c.kind {
	case "custom_tool_call", "local_shell_call":
		return Object("type", c.kind+"_output", "call_id", c.ID, "output", text)
	case "shell_call":
		printed := Object("stdout", "", "stderr", text, "outcome", Object("type", "timeout"))
		return Object("type", "shell_call_output", "call_id", c.ID, "output", List([][]byte{printed}))
	case "apply_patch_call":
		return Object("type", "apply_patch_call_output", "call_id", c.ID, "status", "failed", "output", text)
	case "tool_search_call":
		return Object("type", "tool_search_output", "call_id", c.ID, "execution", "client", "status", "completed", "tools", []byte("[]"))
	case "mcp_approval_request":
		return Object("type", "mcp_approval_response", "approval_request_id", c.ID, "approve", []byte("false"), "reason", text)
	case "computer_call":
		return nil // the result must be a screenshot
	}
	return Object("type", "function_call_output", "call_id", c.ID, "output", text)
}

func (responses) tool(name string) []byte {
	return Object("type", KindFunction, "name", name, "parameters", anyObject, "strict", []byte("false"))
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
	return Object("type", kind, "name", t.Name)
}
