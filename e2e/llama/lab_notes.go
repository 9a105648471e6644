package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// situation is a history that ends with a failed or repeated call, to which the gateway adds a note.
type situation struct {
	name, right string
	history     func(t labTask) []object
	passes      func(t labTask, said string) bool // what the model says next: its text, names and arguments of calls
}

// noteTools are those of the situations.
var noteTools = json.RawMessage(`[
	{"type":"function","function":{"name":"bash","description":"Run a shell command","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}},
	{"type":"function","function":{"name":"read_file","description":"Read a file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}},
	{"type":"function","function":{"name":"edit_file","description":"Replace a text in a file","parameters":{"type":"object","properties":{"path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"}},"required":["path","old_string","new_string"]}}},
	{"type":"function","function":{"name":"create_issue","description":"Open an issue","parameters":{"type":"object","properties":{"title":{"type":"string"},"body":{"type":"string"}},"required":["title","body"]}}}]`)

// history begins with a request and has these calls with their results: name, arguments, result, name, ...
func history(request string, steps ...string) []object {
	messages := []object{{"role": "system", "content": "You are a coding agent. Use the tools to answer. Call one tool at a time."}, user(request)}
	for i := 0; i+2 < len(steps); i += 3 {
		messages = append(messages, called(fmt.Sprintf("c%d", i), steps[i], steps[i+1]), resulted(fmt.Sprintf("c%d", i), steps[i+2]))
	}
	return messages
}

// argument returns the JSON of arguments that are given as names and values in turn.
func argument(pairs ...string) string {
	o := object{}
	for i := 0; i+1 < len(pairs); i += 2 {
		o[pairs[i]] = pairs[i+1]
	}
	raw, _ := json.Marshal(o) // strings always marshal
	return string(raw)
}

var situations = []situation{
	{"a tool that does not exist, where another reads files", "the next call reads the path",
		func(t labTask) []object {
			return history("What does "+t.symbol+" in "+t.path+" do?", "open_file", argument("path", t.path), "Error: unknown tool: open_file")
		},
		func(t labTask, said string) bool {
			return strings.Contains(said, t.path) && (strings.Contains(said, "read_file") || strings.Contains(said, "cat "))
		}},
	{"a required parameter under another name", "the next call has it",
		func(t labTask) []object {
			return history("Open an issue: "+t.symbol+" is never closed, see "+t.path+".", "create_issue",
				argument("title", t.symbol+" is never closed", "description", "See "+t.path), "MCP error -32602: Invalid arguments for tool create_issue: body: Required")
		},
		func(_ labTask, said string) bool {
			return strings.Contains(said, `create_issue`) && strings.Contains(said, `"body"`)
		}},
	{"an edit whose text has blanks where the file has a tab", "the next call has text of the file, or reads it",
		func(t labTask) []object {
			return history("Rename limit to most in "+t.path+".", "read_file", argument("path", t.path), "func run() {\n\tlimit := 3\n\tloop(limit)\n}\n",
				"edit_file", argument("path", t.path, "old_string", "    limit := 3", "new_string", "    most := 3"), "Error: old_string was not found in the file.")
		},
		func(_ labTask, said string) bool {
			said = strings.ReplaceAll(said, `": "`, `":"`) // some models write a blank behind the colon
			return strings.Contains(said, `"old_string":"\tlimit := 3`) || strings.Contains(said, `"old_string":"limit := 3`) || strings.Contains(said, "read_file")
		}},
	{"a program that is not installed", "the next call searches with another",
		func(t labTask) []object {
			return history("Where is "+t.symbol+" used?", "bash", argument("command", "rg -n "+t.symbol+" ."), "bash: line 1: rg: command not found")
		},
		func(t labTask, said string) bool {
			return strings.Contains(said, t.symbol) && (strings.Contains(said, "grep") || strings.Contains(said, "find "))
		}},
	{"a command that failed three times alike", "the next call is another",
		func(t labTask) []object {
			call, result := argument("command", "python -m pytest tests/test_"+strings.ToLower(t.symbol)+".py"), "ERROR: file or directory not found: tests/test_"+strings.ToLower(t.symbol)+".py\n\nno tests ran in 0.01s"
			return history("Make the tests of "+t.symbol+" pass.", "bash", call, result, "bash", call, result, "bash", call, result)
		},
		func(t labTask, said string) bool {
			return said != "" && !strings.Contains(said, "python -m pytest tests/test_"+strings.ToLower(t.symbol)+".py")
		}},
	{"a file that was read three times alike", "the next call is another, or the answer",
		func(t labTask) []object {
			call, result := argument("path", t.path), "import base\n\nclass "+t.symbol+"(base.Thing):\n    pass\n"
			return history("What does "+t.symbol+" do?", "read_file", call, result, "read_file", call, result, "read_file", call, result)
		},
		func(t labTask, said string) bool {
			return said != "" && !strings.Contains(said, argument("path", t.path)) && !strings.Contains(said, `"path": "`+t.path+`"`)
		}},
}

// ask asks for the next step in a situation.
func (s situation) ask(ctx context.Context, base string, i int) (bool, error) {
	t := taskOf(i)
	m, err := whole(ctx, base, object{"model": "m", "temperature": 0, "max_tokens": 120, "messages": s.history(t), "tools": noteTools})
	return s.passes(t, m.said()), err
}
