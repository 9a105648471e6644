package inspect

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// What coding agents answered to calls that went wrong, and to some that did not.
func TestResultsOfClients(t *testing.T) {
	for _, c := range []struct {
		tool, args, content string
		failed              bool
		category            recovery.Category
	}{
		// Kimi Code
		{"Read", `{"path":"src/nope.py"}`, "<system>ERROR: Tool execution failed.</system>\n\"src/nope.py\" does not exist.", true, recovery.FileNotFound},
		{"Glob", `{"pattern":"*.py","path":"nope"}`, "Wall time: 0.063 seconds\n<system>ERROR: Tool execution failed.</system>\n/app/nope does not exist", true, recovery.FileNotFound},
		{"Grep", `{"pattern":"x","path":"nope"}`, "Wall time: 0.207 seconds\n<system>ERROR: Tool execution failed.</system>\nFailed to grep: rg: /app/nope: IO error for operation on /app/nope: No such file or directory (os error 2)", true, recovery.FileNotFound},
		{"Edit", `{"path":"src/calc.py","old_string":"a","new_string":"z"}`, "<system>ERROR: Tool execution failed.</system>\nold_string is not unique in src/calc.py (found 3 occurrences). To replace every occurrence, set replace_all=true.", true, recovery.InvalidArguments},
		{"Read", `{}`, "<system>ERROR: Tool execution failed.</system>\nInvalid args for tool \"Read\": must have required property 'path'", true, recovery.InvalidArguments},
		{"frob", `{"a":1}`, "<system>ERROR: Tool execution failed.</system>\nTool \"frob\" not found", true, recovery.ToolNotFound},
		{"Bash", `{"command":"grep -n nothing src/calc.py"}`, "Wall time: 0.052 seconds\n<system>ERROR: Tool execution failed.</system>\nProcess exited with code 1\nCommand failed with exit code: 1.", false, recovery.CategoryNone},
		{"Bash", `{"command":"python3 a.py"}`, "Wall time: 0.508 seconds\n<system>ERROR: Tool execution failed.</system>\nhalf done\nCommand failed with exit code: 3.", true, recovery.CategoryNone},
		{"Bash", `{"command":"seq 1 20000"}`, "Wall time: 0.107 seconds\nTool output exceeded 50000 characters; the full output was saved to a file.\ntool_name: Bash\n\n[preview: chars [0, 4096)]\n1\n2\n3\n\nCommand executed successfully.\ntask_id: bash-g4r3pmwa", false, recovery.CategoryNone},
		{"Bash", `{"command":"sed -n 5,6p notes.md"}`, "Wall time: 0.052 seconds\n  Output: 5\n  Input: 3", false, recovery.CategoryNone},
		// Mistral Vibe
		{"edit", `{"file_path":"src/calc.py","old_string":"a","new_string":"z"}`, `{"result":{"type":"error","error":{"name":"tool_failed","message":"block 0: old_str is not unique; found 3 matches in /app/src/calc.py at lines 1, 1, 2. Add surrounding lines to old_str to pick one, or set replace_all to replace every match","details":null}}}`, true, recovery.InvalidArguments},
		{"todo", `{"action":"frob"}`, `{"result":{"type":"error","error":{"name":"InvalidToolCall","message":"tool arguments do not satisfy the declared input schema: at /action: \"frob\" is not one of \"read\" or \"write\""}}}`, true, recovery.InvalidArguments},
		{"frob", `{"a":1}`, `{"result":{"type":"error","error":{"name":"InvalidToolCall","message":"unsupported top-level tool \"frob\""}}}`, true, recovery.ToolNotFound},
		{"bash", `{"command":"cat log.txt"}`, `{"command":"cat log.txt","returncode":0,"stderr":"","stdout":"Error: file not found\n","timed_out":false,"was_truncated":false}`, false, recovery.CategoryNone},
		{"wait", `{"timeout_ms":50}`, `{"reason":"timeout"}`, false, recovery.CategoryNone},
		// OpenHands
		{"file_editor", `{"command":"view","path":"/app/src/nope.py"}`, "[An error occurred during execution.]\n\nInvalid `path` parameter: /app/src/nope.py. The path /app/src/nope.py does not exist. Please provide a valid path.", true, recovery.FileNotFound},
		{"file_editor", `{"command":"str_replace","path":"/app/src/calc.py","old_str":"return a * b","new_str":"z"}`, "[An error occurred during execution.]\n\nNo replacement was performed, old_str `return a * b` did not appear verbatim in /app/src/calc.py.", true, recovery.InvalidArguments},
		{"file_editor", `{"command":"frob"}`, "Error validating tool 'file_editor': 1 validation error for FileEditorAction\ncommand\n  Input should be 'view', 'create', 'str_replace', 'insert' or 'undo_edit' [type=literal_error, input_value='frob', input_type=str]\n    For further information visit https://errors.pydantic.dev/2.14/v/literal_error. Parameters provided: ['command', 'path']", true, recovery.InvalidArguments},
		{"terminal", `{"command":"cat log.txt"}`, "Error: file not found\n[The command completed with exit code 0.]\n[Current working directory: /app]\n[Python interpreter: /usr/bin/python]\n[Command finished with exit code 0]", false, recovery.CategoryNone},
		// Continue
		{"Edit", `{"file_path":"src/calc.py","old_string":"a","new_string":"z"}`, "Edit at index 0: String \"a\" appears 3 times in the file. Either provide a more specific string with surrounding context to make it unique, or use replace_all=true to replace all occurrences.", true, recovery.InvalidArguments},
		{"Edit", `{"file_path":"src/calc.py","old_string":"return a * b","new_string":"z"}`, "Edit at index 0: string not found in file: \"return a * b\"", true, recovery.InvalidArguments},
		{"Bash", `{"command":"echo \"unterminated"}`, "Error executing tool Bash: Error (exit code 2): /bin/bash: -c: line 1: unexpected EOF while looking for matching `\"'\n", true, recovery.SyntaxError},
		// Cline's editor
		{"editor", `{"path":"src/calc.py","old_text":"return a * b","new_text":"z"}`, `{"query":"edit:src/calc.py","result":"","error":"Editor operation failed: No replacement performed: text not found in /app/src/calc.py.","success":false}`, true, recovery.InvalidArguments},
		// gptme
		{"patch", `{"path":"src/calc.py","patch":"x"}`, "Error during execution: Patch failed: original chunk not found in file\n", true, recovery.InvalidArguments},
		// mini-swe-agent
		{"bash", `{"command":"cd /nonexistent && ls"}`, "{\n  \"returncode\": 2,\n  \"output\": \"/bin/sh: 1: cd: can\\u0027t cd to /nonexistent\\n\"\n}", true, recovery.FileNotFound},
		// readers of files that return Python's str(exception), and smolagents' mark before it
		{"read_file", `{"path":"a.csv"}`, "[Errno 13] Permission denied: 'a.csv'", true, recovery.PermissionDenied},
		{"read_file", `{"path":"a.csv"}`, "Observation:\n[Errno 2] No such file or directory: 'a.csv'", true, recovery.FileNotFound},
		{"read_file", `{"path":"a.csv"}`, "Observation:\nError: a.csv does not exist", true, recovery.FileNotFound},
		{"read_file", `{"path":"a.md"}`, "Observation:\n# Error codes\nENOENT: no such file\nEPERM: not permitted", false, recovery.CategoryNone},
		// CrewAI
		{"divide", `{"a":6}`, "Error executing tool: Tool 'divide' arguments validation failed: 1 validation error for Divide\nb\n  Field required [type=missing, input_value={'a': 6}, input_type=dict]\n    For further information visit https://errors.pydantic.dev/2.12/v/missing\nExpected arguments: {\"a\": {\"title\": \"A\", \"type\": \"integer\"}, \"b\": {\"title\": \"B\", \"type\": \"integer\"}}\nRequired: [\"a\", \"b\"]", true, recovery.InvalidArguments},
		{"frob", `{"x": 1}`, "I encountered an error: Action 'frob' don't exist, these are the only available Actions:\nTool Name: read_file\nTool Arguments: {\n  \"properties\": {}\n}\nTool Description: Read a file.", true, recovery.ToolNotFound},
		{"read_file", "not json", "Error: the Action Input is not a valid key, value dictionary.", true, recovery.InvalidArguments},
		{"read_file", `{"path":"gone.txt"}`, crewError("[Errno 2] No such file or directory: 'gone.txt'", "read_file"), true, recovery.FileNotFound},
		{"divide", `{"a": 6}`, crewError("Arguments validation failed: 1 validation error for Divide\nb\n  Field required [type=missing, input_value={'a': 6}, input_type=dict]\nRequired: [\"a\", \"b\"]", "divide"), true, recovery.InvalidArguments},
		{"divide", `{"a": 6, "b": 0}`, crewError("division by zero", "divide"), true, recovery.CategoryNone},
		// Semantic Kernel
		{"P-run_shell", `{"command": "cat nothere.txt"}`, "An error occurred while invoking the function P-run_shell: command failed with 1: cat: nothere.txt: No such file or directory", true, recovery.FileNotFound},
		{"P-divide", `{"a":"x"}`, "An error occurred while invoking the function P-divide: Parameter a is expected to be parsed to <class 'int'> but is not.", true, recovery.InvalidArguments},
		{"P-frob", `{"x": 1}`, "The tool call with name `P-frob` is not part of the provided tools, please try again with a supplied tool call name and make sure to validate the name.", true, recovery.ToolNotFound},
		{"P-read_file", `{"path`, "The tool call arguments are malformed. Arguments must be in JSON format. Please try again.", true, recovery.InvalidArguments},
		// Google's ADK
		{"divide", `{"a":6}`, "{\"error\": \"Invoking `divide()` failed as the following mandatory input parameters are not present:\\nb\\nYou could retry calling this tool, but it is IMPORTANT for you to provide all the mandatory parameters.\"}", true, recovery.InvalidArguments},
		// AG2
		{"read_file", `{"path": "gone.txt"}`, "Traceback (most recent call last):\n" + strings.Repeat("  File \"/app/run.py\", line 144, in __call__\n    return await f(\n           ^^^^^^^^\n", 6) + "FileNotFoundError: [Errno 2] No such file or directory: 'gone.txt'\n", true, recovery.FileNotFound},
		{"read_file", `{"path": "trace.log"}`, "Traceback (most recent call last):\n  File \"/app/run.py\", line 144, in __call__\n    return open(path)\nFileNotFoundError: [Errno 2] No such file or directory: 'gone.txt'\n", false, recovery.CategoryNone},
		// Kilo
		{"webfetch", `{"url":"http://127.0.0.1:1/","format":"text"}`, "Transport error (GET http://127.0.0.1:1/)", true, recovery.NetworkError},
		{"glob", `{"pattern":"*.zig"}`, "ripgrep execution failed: Transport error (GET https://a.example.com/ripgrep.tar.gz)", true, recovery.NetworkError},
		// Langroid
		{"divide", `{"a": 6}`, langroidError("divide", "('b',): Field required"), true, recovery.InvalidArguments},
		{"read_file", `{"file": "a.txt"}`, langroidError("read_file", "('path',): Field required"), true, recovery.InvalidArguments},
		{"divide", `{"a": "x"}`, langroidError("divide", "('a',): Input should be a valid integer, unable to parse string as an integer"), true, recovery.InvalidArguments},
	} {
		f := judge(c.tool, c.args, c.content)
		if f.Failed != c.failed || f.Category != c.category || f.Category != recovery.CategoryNone && f.Confidence < Threshold {
			t.Errorf("%s %s: %+v, want %v %s", c.tool, c.content, f, c.failed, c.category)
		}
	}
}

// What a framework writes around the error of a tool is not the error.
func TestLinesOfFrameworks(t *testing.T) {
	for content, want := range map[string]string{
		crewError("division by zero", "Divide numbers"):                            "division by zero",
		langroidError("divide", "('b',): Field required"):                          "('b',): Field required",
		"An error occurred while invoking the function P-divide: division by zero": "division by zero",
	} {
		if f := judge("divide", "{}", content); !f.Failed || f.Line != want {
			t.Errorf("%s: %+v, want %q", content, f, want)
		}
	}
}

// crewError is what CrewAI's text protocol returns for an exception of a tool.
func crewError(text, tool string) string {
	return "I encountered an error while trying to use the tool. This was the error: " + text + ".\n Tool " + tool + " accepts these inputs: " +
		"Tool Name: " + tool + "\nTool Arguments: {\n  \"properties\": {\n    \"path\": {\n      \"title\": \"Path\",\n      \"type\": \"string\"\n    }\n  },\n  \"required\": [\n    " +
		"\"path\"\n  ],\n  \"type\": \"object\"\n}\nTool Description: Do it..\nMoving on then. Decide if you need a tool or can provide the final answer. Use one at a time.\n" +
		"To use a tool, use:\nThought: [reasoning]\nAction: [name from read_file, divide]\nAction Input: [JSON object]\n\nTo provide the final answer, use:\nThought: [reasoning]\nFinal Answer: [complete response]"
}

func langroidError(tool, complaint string) string {
	return "\n        There were one or more errors in your attempt to use the\n        TOOL or function_call named '" + tool + "':\n        " + complaint +
		"\n        Please write your message again, correcting the errors.\n        "
}
