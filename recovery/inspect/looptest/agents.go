package looptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// agent describes how one common agent sends calls and results to the model.
type agent struct {
	name  string
	tools toolset                                           // all of its tools
	text  bool                                              // it uses no tool calls
	codes bool                                              // shell results contain the command's exit code
	extra func(*session) []arg                              // arguments that it adds to shell calls; they are irrelevant
	shell func(s *session, command string, r result) string // formats a shell result
	other func(r result) string                             // formats any other result; nil leaves it as it is
}

// agents imitate the requests of the agents with these names.
var agents = []agent{
	{name: "claude-code", codes: true, tools: toolsets[1], extra: (*session).described, shell: func(_ *session, _ string, r result) string {
		if r.code != 0 {
			return fmt.Sprintf("Exit code %d\n%s", r.code, r.out)
		}
		return r.out
	}, other: func(r result) string {
		if r.code != 0 {
			return "<tool_use_error>" + r.out + "</tool_use_error>"
		}
		return r.out
	}},
	{name: "codex", codes: true, tools: toolset{tools: map[verb]string{shell: "shell command workdir"}, argv: true},
		extra: func(s *session) []arg { return []arg{{"timeout_ms", 1000 * s.between(1, 12)}} },
		shell: func(s *session, _ string, r result) string {
			var b bytes.Buffer
			object{{"output", r.out}, {"metadata", object{{"exit_code", r.code}, {"duration_seconds", json.Number(fmt.Sprintf("%.1f", 9*s.Float64()))}}}}.encode(&b, false, false)
			return b.String()
		}},
	{name: "codex-exec", codes: true, tools: toolset{tools: map[verb]string{shell: "exec_command cmd workdir"}},
		extra: func(s *session) []arg { return []arg{{"yield_time_ms", 1000 * s.between(1, 12)}} },
		shell: func(s *session, _ string, r result) string {
			return fmt.Sprintf("Chunk ID: %s\nWall time: %.4f seconds\nProcess exited with code %d\nOriginal token count: %d\nOutput:\n%s", s.hex(6), 9*s.Float64(), r.code, len(r.out)/4, r.out)
		}},
	{name: "opencode", tools: toolset{tools: map[verb]string{shell: "bash command", read: "read filePath offset", edit: "edit filePath oldString newString",
		write: "write filePath content", grep: "grep pattern path"}},
		extra: (*session).described, shell: func(_ *session, _ string, r result) string { return r.out }},
	{name: "pi", codes: true, tools: toolsets[0], shell: func(_ *session, _ string, r result) string {
		if r.code != 0 {
			return fmt.Sprintf("%s\n\nCommand exited with code %d", r.out, r.code)
		}
		if r.out == "" {
			return "(no output)"
		}
		return r.out
	}},
	{name: "openhands", codes: true, tools: toolset{tools: map[verb]string{shell: "execute_bash command"}}, extra: func(s *session) []arg {
		return []arg{{"security_risk", s.pick("LOW", "LOW", "MEDIUM")}}
	},
		shell: func(_ *session, _ string, r result) string {
			return fmt.Sprintf("%s\n[The command completed with exit code %d.]\n[Current working directory: /workspace]\n[Python interpreter: /usr/bin/python]\n"+
				"[Command finished with exit code %d]", r.out, r.code, r.code)
		}},
	{name: "gemini-cli", codes: true, tools: toolset{tools: map[verb]string{shell: "run_shell_command command", read: "read_file absolute_path offset",
		edit: "replace file_path old_string new_string", write: "write_file file_path content"}},
		extra: (*session).described, shell: func(s *session, command string, r result) string {
			return fmt.Sprintf("Command: %s\nDirectory: (root)\nOutput: %s\nError: (none)\nExit Code: %d\nSignal: (none)\nBackground PIDs: (none)\nProcess Group PGID: %d", command, r.out, r.code, s.pid())
		}},
	{name: "roo-code", codes: true, tools: toolsets[2], shell: func(_ *session, _ string, r result) string {
		return fmt.Sprintf("Command executed in terminal  within working directory '/repo'. Exit code: %d\nOutput:\n%s", r.code, r.out)
	}},
	{name: "sdk", codes: true, tools: toolset{tools: map[verb]string{shell: "run_command command"}}, shell: func(_ *session, _ string, r result) string {
		var b bytes.Buffer
		o := object{{"stdout", r.out}, {"stderr", ""}, {"returncode", r.code}}
		if r.code != 0 {
			o[0].val, o[1].val = "", r.out
		}
		o.encode(&b, true, false)
		return b.String()
	}},
	{name: "mini-swe-agent", text: true, codes: true, tools: toolset{tools: map[verb]string{shell: "bash command"}}, shell: func(_ *session, _ string, r result) string {
		return fmt.Sprintf("<returncode>%d</returncode>\n<output>\n%s\n</output>", r.code, r.out)
	}},
	{name: "swe-agent", text: true, tools: toolset{tools: map[verb]string{shell: "bash command"}}, shell: func(_ *session, _ string, r result) string {
		return r.out + "\n(Open file: n/a)\n(Current directory: /repo)\nbash-$"
	}},
}

// described returns a model's description of a command, different each time.
func (s *session) described() []arg { return []arg{{"description", strings.TrimRight(s.say(), ".")}} }

// show formats a result as the agent sends it to the model.
func (a *agent) show(s *session, o op, r result) string {
	switch {
	case s.style.tools.shelled(o) || a.text:
		return a.shell(s, o.command(), r)
	case a.other != nil:
		return a.other(r)
	}
	return r.out
}
