package demo

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The tools that the agent offers where a fault needs them. The schemas are as
// libraries write them, with their version in front.
const (
	toolRead = "read_file"
	toolRun  = "bash"

	readSchema = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}},"required":["path"]}`
	runSchema  = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`
)

// required are the arguments that a tool cannot do without.
func required(tool string) string {
	switch tool {
	case toolRead:
		return "path"
	case toolRun:
		return "command"
	}
	return ""
}

// toolList is the tools of a request, followed by a comma.
func toolList() string {
	one := func(name, description, schema string) string {
		return fmt.Sprintf(`{"type":"function","function":{"name":%q,"description":%q,"parameters":%s}}`, name, description, schema)
	}
	return `"tools":[` + one(toolRead, "Read a file.", readSchema) + "," + one(toolRun, "Run a command.", runSchema) + "],"
}

// called is the model's message with one call.
func called(id, tool, args string) string {
	return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]}`, id, tool,
		quote(args))
}

// result is what a tool answered.
func result(id, text string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, id, quote(text))
}

// one is a turn: a call and its result.
func one(id, tool, args, text string) string { return called(id, tool, args) + "," + result(id, text) }

// listing is the first turn of all conversations with tools.
func listing() string {
	return one("call_ls", toolRun, `{"command":"ls"}`, "Makefile\nmain.go\npyproject.toml\nsrc")
}

// longRead is a session that has read more than a small window holds.
func longRead(files int) string {
	turns := []string{listing()}
	for i := range files {
		var text strings.Builder
		for line := range 120 {
			fmt.Fprintf(&text, "%4d  func step%d_%d(in *state) error { return in.advance(%d) }\n", line+1, i, line, line*7+i)
		}
		turns = append(turns, one(fmt.Sprintf("call_r%d", i), toolRead, fmt.Sprintf(`{"path":"src/part%d.go"}`, i), text.String()))
	}
	return strings.Join(turns, ",")
}

// stuck is a session whose last turns all failed in the same way.
func stuck(turns int) string {
	list := []string{listing()}
	for i := range turns {
		list = append(list, one(fmt.Sprintf("call_m%d", i), toolRun, `{"command":"make"}`,
			"make: *** [Makefile:12: build] Error 2\ncc: fatal error: no input files\n\nCommand exited with code 2"))
	}
	return strings.Join(list, ",")
}

// misplaced is a session that reads a file by its name, although a search printed its path.
func misplaced() string {
	return listing() + "," + one("call_grep", toolRun, `{"command":"grep -rn DEBUG ."}`, "src/app/settings.py:12:DEBUG = True") + "," +
		one("call_read", toolRead, `{"path":"settings.py"}`, "Error: ENOENT: no such file or directory, open 'settings.py'")
}

// orphaned is a session with a result whose call the client has cut away.
func orphaned() string { return result("call_gone", "Makefile") + "," + listing() }

// quote is a JSON string.
func quote(s string) string {
	b, _ := json.Marshal(s) // a string always can be
	return string(b)
}
