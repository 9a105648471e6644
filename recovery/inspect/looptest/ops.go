package looptest

import (
	"fmt"
	"strings"
)

// op is an agent's action, before a toolset gives it a name and arguments.
type op struct {
	do   verb
	path string // of a file or folder; or the name of a domain tool
	a, b string // command; pattern; old and new text; content
	n    int    // first line; seconds
	args []arg  // of a domain tool
}

type arg struct {
	key string
	val any // string, int or []string
}

type verb uint8

const (
	shell verb = iota
	read
	edit
	write
	grep
	list
	wait
	api // a domain tool
)

func sh(format string, args ...any) op   { return op{do: shell, a: fmt.Sprintf(format, args...)} }
func domain(name string, args ...arg) op { return op{do: api, path: name, args: args} }

// toolset is the names of an agent's tools: for each the name, then the argument names. Missing tools are
// replaced by the shell; argv passes the command as a list.
type toolset struct {
	tools map[verb]string
	argv  bool
}

// toolsets imitate the tools of common agents.
var toolsets = []toolset{
	{tools: map[verb]string{shell: "bash command", read: "read path offset", edit: "edit path oldText newText", write: "write path content",
		grep: "grep pattern path", list: "ls path", wait: "wait seconds"}},
	{tools: map[verb]string{shell: "Bash command", read: "Read file_path offset", edit: "Edit file_path old_string new_string",
		write: "Write file_path content", grep: "Grep pattern path"}},
	{tools: map[verb]string{shell: "execute_command command", read: "read_file path start_line", edit: "replace_in_file path search replace",
		write: "write_to_file path content", grep: "search_files regex path", list: "list_files path", wait: "sleep duration"}},
	{tools: map[verb]string{shell: "shell command workdir"}, argv: true},
	{tools: map[verb]string{shell: "run_in_terminal cmd", read: "open_file filename line", list: "list_dir filename"}},
}

// call returns the name and the arguments of the call for an op.
func (t toolset) call(o op) (string, []arg) {
	if o.do == api {
		return o.path, o.args
	}
	values := []any{o.command(), "/repo"}
	if t.argv {
		values[0] = []string{"bash", "-lc", o.command()}
	}
	names := strings.Fields(t.tools[shell])
	if own := t.tools[o.do]; own != "" && o.do != shell {
		names = strings.Fields(own)
		values = map[verb][]any{read: {o.path, o.n}, edit: {o.path, o.a, o.b}, write: {o.path, o.a}, grep: {o.a, o.path}, list: {o.path}, wait: {o.n}}[o.do]
	}
	if o.do == read && o.n == 0 && len(names) == 3 { // the whole file
		names = names[:2]
	}
	args := make([]arg, len(names)-1)
	for i, name := range names[1:] {
		args[i] = arg{name, values[i]}
	}
	return names[0], args
}

// command returns the shell command for an op.
func (o op) command() string {
	switch o.do {
	case read:
		if o.n > 0 {
			return fmt.Sprintf("sed -n '%d,%dp' %s", o.n, o.n+59, o.path)
		}
		return "cat " + o.path
	case edit:
		return fmt.Sprintf("apply_patch <<'EOF'\n*** Update File: %s\n-%s\n+%s\nEOF", o.path, o.a, o.b)
	case write:
		return fmt.Sprintf("cat > %s <<'EOF'\n%s\nEOF", o.path, o.a)
	case grep:
		return fmt.Sprintf("grep -rn %q %s", o.a, o.path)
	case list:
		return "ls " + o.path
	case wait:
		return fmt.Sprintf("sleep %d", o.n)
	case api:
		s := "./client " + o.path
		for _, a := range o.args {
			s += fmt.Sprintf(" --%s=%v", a.key, a.val)
		}
		return s
	}
	return o.a
}

// shelled reports whether the op runs in a shell, so that exit codes are shown.
func (t toolset) shelled(o op) bool { return o.do != api && (o.do == shell || t.tools[o.do] == "") }
