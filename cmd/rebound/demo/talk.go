package demo

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The tools that the agent offers if a fault needs them. Like those of many libraries, the schemas
// begin with $schema.
const (
	toolRead = "read_file"
	toolRun  = "bash"

	readSchema = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}},"required":["path"]}`
	runSchema  = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`
)

// required returns the required argument of a tool, or "" for an unknown tool.
func required(tool string) string {
	switch tool {
	case toolRead:
		return "path"
	case toolRun:
		return "command"
	}
	return ""
}

// toolList returns the tools field of a request, followed by a comma.
func toolList() string {
	one := func(name, description, schema string) string {
		return fmt.Sprintf(`{"type":"function","function":{"name":%q,"description":%q,"parameters":%s}}`, name, description, schema)
	}
	return `"tools":[` + one(toolRead, "Read a file.", readSchema) + "," + one(toolRun, "Run a command.", runSchema) + "],"
}

// assistantCall returns an assistant message with one call.
func assistantCall(id, tool, args string) string {
	return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]}`, id, tool,
		quote(args))
}

// result returns a tool message.
func result(id, text string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, id, quote(text))
}

// toolTurn returns a call and its result.
func toolTurn(id, tool, args, text string) string {
	return assistantCall(id, tool, args) + "," + result(id, text)
}

// firstTurn returns the first turn of all conversations with tools.
func firstTurn() string {
	return toolTurn("call_ls", toolRun, `{"command":"ls"}`, "Makefile\nmain.go\npyproject.toml\nsrc")
}

// longRead returns a session that has read more than a small window holds.
func longRead(files int) string {
	turns := []string{firstTurn()}
	for i := range files {
		var text strings.Builder
		for line := range 120 {
			fmt.Fprintf(&text, "%4d  func step%d_%d(in *state) error { return in.advance(%d) }\n", line+1, i, line, line*7+i)
		}
		turns = append(turns, toolTurn(fmt.Sprintf("call_r%d", i), toolRead, fmt.Sprintf(`{"path":"src/part%d.go"}`, i), text.String()))
	}
	return strings.Join(turns, ",")
}

// stuck returns a session whose last turns all failed in the same way.
func stuck(turns int) string {
	list := []string{firstTurn()}
	for i := range turns {
		list = append(list, toolTurn(fmt.Sprintf("call_m%d", i), toolRun, `{"command":"make"}`,
			"make: *** [Makefile:12: build] Error 2\ncc: fatal error: no input files\n\nCommand exited with code 2"))
	}
	return strings.Join(list, ",")
}

// misplaced returns a session that reads a file by its name, although a search printed its path.
func misplaced() string {
	return firstTurn() + "," + toolTurn("call_grep", toolRun, `{"command":"grep -rn DEBUG ."}`, "src/app/settings.py:12:DEBUG = True") + "," +
		toolTurn("call_read", toolRead, `{"path":"settings.py"}`, "Error: ENOENT: no such file or directory, open 'settings.py'")
}

// orphaned returns a session with a tool result whose call the client has removed.
func orphaned() string { return result("call_gone", "Makefile") + "," + firstTurn() }

// quote returns s as a JSON string.
func quote(s string) string {
	b, _ := json.Marshal(s) // strings always marshal
	return string(b)
}
