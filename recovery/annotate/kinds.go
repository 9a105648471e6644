package annotate

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Set is a set of kinds of tools.
type Set uint16

// The kinds. A tool may be of several, or of none.
const (
	Shell  Set = 1 << iota // runs commands
	Code                   // runs code
	Read                   // returns a file
	List                   // returns what a directory holds
	Search                 // finds files, or text in files
	Write                  // makes or changes files
	Fetch                  // gets something from the network: a page, a web search
	Ask                    // puts a question to the person
)

// kindTable names the kinds, as chains do, in the order of their bits.
var kindTable = [...]string{"shell", "code", "read", "list", "search", "write", "fetch", "ask"}

func kindNames() []string { return kindTable[:] }

func kindNamed(name string) (Set, bool) {
	for i, n := range kindTable {
		if n == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// needed is the kinds that a strategy names.
func needed(names []string) (out Set) {
	for _, n := range names {
		k, _ := kindNamed(n)
		out |= k
	}
	return out
}

// Kinds says what a tool is for, from its name, its description and the names
// of its parameters, as far as they tell. It is pure and total; the names are
// those of the agents in use (Claude Code, codex, opencode, Cline and Roo,
// Continue, Gemini CLI, Copilot, Cursor, OpenHands, SWE-agent, goose, MCP's
// file system server) and their like.
func Kinds(t transcript.Tool) Set {
	words := trajectory.NameWords(t.Name)
	about := strings.ToLower(t.Description[:min(len(t.Description), 600)])
	params := parameters(t)
	names := make([]string, 0, len(params))
	for _, p := range params {
		names = append(names, strings.ToLower(p.name))
	}
	unknown := len(names) == 0 // the name has to do
	has := func(list ...string) bool { return anyOf(names, list...) }
	file := has("path", "file_path", "filepath", "filename", "file", "file_name", "absolute_path", "absolutepath", "target_file", "targetfile",
		"paths", "files", "relative_path", "relative_workspace_path", "notebook_path", "abs_path", "uri", "fileuri")
	about1 := func(list ...string) bool {
		for _, w := range list {
			if strings.Contains(about, w) {
				return true
			}
		}
		return false
	}
	online := anyOf(words, "web", "url", "http", "internet", "google", "bing", "browser", "browse", "wikipedia", "website", "webpage", "online", "websearch", "webfetch")
	other := anyOf(words, "todo", "todos", "memory", "issue", "issues", "email", "mail", "calendar", "ticket", "order", "user", "users", "task", "tasks", "plan", "note", "notes",
		"message", "event", "events", "customer", "booking", "reservation", "flight", "flights", "payment", "repo", "repos", "repository", "branch", "branches", "pull", "pr", "commit", "commits", "agent", "agents", "skill", "resource", "resources", "table", "sql", "query", "database", "db", "image")

	var out Set
	// A person is asked by a tool that says so; asking a model or a service is something else.
	switch {
	case anyOf(words, "clarify", "clarification", "elicit"), anyOf(words, "ask") && (len(words) == 1 || anyOf(words, "user", "human", "followup", "follow", "question", "questions", "clarification")),
		anyOf(words, "question", "questions") && (len(words) == 1 || anyOf(words, "user", "human")) && (about == "" || about1("user", "human", "person", "ask")),
		anyOf(words, "input") && anyOf(words, "user", "human") && anyOf(words, "request", "get", "ask", "wait"):
		return Ask
	}
	// Shells. What only looks after one that runs already is none.
	commands := has("command", "cmd", "commands", "script", "command_line", "commandline")
	strong := anyOf(words, "bash", "shell", "terminal", "powershell", "pwsh", "zsh", "sh", "cmd", "console")
	weak := anyOf(words, "exec", "execute", "run", "command", "commands", "process", "subprocess")
	minder := anyOf(words, "output", "kill", "status", "stop", "stdin", "list", "close", "resize", "read", "history", "wait", "interrupt", "send")
	switch {
	case minder && !commands && (strong || weak):
		return 0
	case strong && (commands || unknown || has("input", "code", "args", "argv")),
		weak && commands && !about1("sql", "query the"),
		weak && unknown && (len(words) == 1 || anyOf(words, "command", "commands", "exec")),
		commands && about1("shell", "bash", "terminal", "command line", "powershell"):
		if !anyOf(words, "editor", "edit", "replace") {
			out |= Shell
		}
	}
	if anyOf(words, "python", "ipython", "jupyter", "interpreter", "repl", "javascript", "node") || anyOf(words, "code") && anyOf(words, "execute", "run", "exec", "eval") {
		if (unknown || has("code", "script", "source", "input", "python", "cell")) && !anyOf(words, "search", "edit", "read", "list") {
			out |= Code
		}
	}
	if out != 0 {
		return out
	}
	if online || anyOf(words, "fetch", "crawl", "scrape", "download", "navigate", "curl", "wget") && (unknown || has("url", "urls", "link", "query", "uri")) {
		return Fetch
	}
	if other {
		return 0
	}
	paths := has("path", "dir", "directory", "dir_path", "target_directory", "directory_path", "folder", "root", "absolute_path", "abs_path", "relative_workspace_path", "dirpath", "directorypath")
	files := anyOf(words, "file", "files", "dir", "directory", "directories", "folder", "folders", "fs", "workspace", "codebase", "code", "text")
	if anyOf(words, "list", "ls", "tree", "dir", "readdir") && (unknown || paths || file || len(names) == 0 || about1("director", "files")) &&
		(files || anyOf(words, "ls", "tree", "readdir") || len(words) == 1 || paths) {
		out |= List
	}
	pattern := has("pattern", "query", "regex", "glob", "search", "regexp", "glob_pattern", "search_term", "include", "patterns", "name_pattern", "querystring")
	if anyOf(words, "search", "grep", "find", "glob", "rg", "ripgrep", "ack", "locate") && (unknown || pattern || paths || file) &&
		(files || len(words) == 1 || anyOf(words, "grep", "glob", "rg", "ripgrep", "semantic", "name") || paths || about1("file", "codebase", "workspace", "director")) {
		out |= Search
		if anyOf(words, "glob") {
			out |= List
		}
	}
	if out != 0 {
		return out
	}
	reads := anyOf(words, "read", "view", "cat", "open", "show")
	if reads && (unknown && (files || len(words) == 1) || file) {
		out |= Read
	}
	writes := anyOf(words, "write", "edit", "patch", "replace", "create", "insert", "append", "multiedit", "apply", "save", "mkdir", "editor", "overwrite", "diff")
	if writes && !anyOf(words, "view", "show") && (unknown && (files || len(words) == 1 || anyOf(words, "editor", "patch", "multiedit", "str")) || file || has("patch", "diff", "input") && anyOf(words, "patch", "diff")) {
		out |= Write
	}
	if out&Write != 0 && anyOf(words, "editor") && (has("command") || unknown) {
		out |= Read | List // "view" shows files and directories
	}
	return out
}

// parameter is one of a tool's own.
type parameter struct {
	name, schema string
	required     bool
}

// maxParameters bounds how many are looked at.
const maxParameters = 64

// parameters are those that the tool's schema declares, in its order.
func parameters(t transcript.Tool) (out []parameter) {
	if len(t.Parameters) == 0 || t.Parameters[0] != '{' {
		return nil
	}
	schema := gjson.ParseBytes(t.Parameters)
	required := map[string]bool{}
	schema.Get("required").ForEach(func(_, v gjson.Result) bool {
		required[v.Str] = true
		return len(required) < maxParameters
	})
	props := schema.Get("properties")
	if !props.IsObject() {
		return nil
	}
	props.ForEach(func(k, v gjson.Result) bool {
		out = append(out, parameter{k.String(), v.Raw, required[k.String()]})
		return len(out) < maxParameters
	})
	return out
}
