package trajectory

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Use is a set of what an agent can do with a tool. [Kind] says instead what a
// tool's answers are: those of a tool that shows a command's output are a
// command's, but it runs none.
type Use uint16

// The uses. A tool may have several, or none.
const (
	UseShell  Use = 1 << iota // runs commands
	UseCode                   // runs code
	UseRead                   // returns a file
	UseList                   // returns what a directory holds
	UseSearch                 // finds files, or text in files
	UseWrite                  // makes or changes files
	UseFetch                  // gets something from the network: a page, a web search
	UseAsk                    // puts a question to the person
)

// The names of parameters that tell what a tool works on.
var (
	pathNames = []string{"path", "file_path", "filepath", "filename", "file", "file_name", "absolute_path", "target_file", "relative_path",
		"relative_workspace_path", "notebook_path", "dir_path", "directory", "dir", "dirpath", "directory_path", "target_directory",
		"absolutepath", "targetfile", "abs_path", "directorypath", "fileuri", "uri"}
	manyPaths    = []string{"paths", "files", "folder", "root"}
	patternNames = []string{"pattern", "query", "regex", "glob", "search", "regexp", "glob_pattern", "search_term", "include", "patterns", "name_pattern",
		"querystring"}
	codeNames       = []string{"code", "script", "source", "input", "python", "cell"}
	commandLikeName = []string{"command", "cmd", "commands", "script", "command_line", "commandline"}
)

// The words of tools' names that tell their use, and those that tell that they
// work on something else than a computer's files.
var (
	shellWords  = []string{"bash", "shell", "terminal", "powershell", "pwsh", "zsh", "sh", "cmd", "console"}
	runWords    = []string{"exec", "execute", "run", "command", "commands", "process", "subprocess"}
	minderWords = []string{"output", "kill", "status", "stop", "stdin", "list", "close", "resize", "read", "history", "wait", "interrupt", "send"}
	codeWords   = []string{"python", "ipython", "jupyter", "interpreter", "repl", "javascript", "node"}
	onlineWords = []string{"web", "url", "http", "internet", "google", "bing", "browser", "browse", "wikipedia",
		"website", "webpage", "online", "websearch", "webfetch"}
	fetchWords  = []string{"fetch", "crawl", "scrape", "download", "navigate", "curl", "wget"}
	listWords   = []string{"list", "ls", "tree", "dir", "readdir"}
	searchWords = []string{"search", "grep", "find", "glob", "rg", "ripgrep", "ack", "locate"}
	readWords   = []string{"read", "view", "cat", "open", "show"}
	writeWords  = []string{"write", "edit", "patch", "replace", "create", "insert", "append", "multiedit", "apply", "save", "mkdir", "editor", "overwrite", "diff"}
	fileWords   = []string{"file", "files", "dir", "directory", "directories", "folder", "folders", "fs", "workspace", "codebase", "code", "text"}
	otherWords  = []string{"todo", "todos", "memory", "issue", "issues", "email", "mail", "calendar", "ticket", "order", "user", "users", "task", "tasks",
		"plan", "note",
		"notes", "message", "event", "events", "customer", "booking", "reservation", "flight", "flights", "payment", "repo",
		"repos", "repository", "branch", "branches",
		"pull", "pr", "commit", "commits", "agent", "agents", "skill", "resource", "resources", "table", "sql", "query", "database", "db", "image", "tests"}
)

// UsesOf says what a tool is good for, from its name, its description and the
// names of its parameters, as far as they tell. It is pure, total and bounded;
// the names are those of the agents in use and of servers of the Model Context
// Protocol.
func UsesOf(t transcript.Tool) (out Use) {
	words := NameWords(t.Name)
	is := func(list ...string) bool { return AnyOf(words, list) }
	about := strings.ToLower(t.Description[:min(len(t.Description), 600)])
	says := func(list ...string) bool {
		return slices.ContainsFunc(list, func(w string) bool { return strings.Contains(about, w) })
	}
	var names []string
	for _, p := range Parameters(t) {
		names = append(names, strings.ToLower(p.Name))
	}
	takes := func(list []string) bool { return AnyOf(names, list) }
	unknown, single := len(names) == 0, len(words) == 1
	path := takes(pathNames) || takes(manyPaths)
	files := AnyOf(words, fileWords)

	// A person is asked by a tool that says so; asking a model is something else.
	person := is("user", "human")
	switch {
	case is("clarify", "clarification", "elicit"),
		is("ask") && (single || person || is("followup", "follow", "question", "questions")),
		is("question", "questions") && (single || person) && (about == "" || says("user", "human", "person", "ask")),
		is("input") && person && is("request", "get", "wait"):
		return UseAsk
	}

	// What only looks after a command that runs already is no shell.
	commands, strong, weak := takes(commandLikeName), AnyOf(words, shellWords), AnyOf(words, runWords)
	switch {
	case AnyOf(words, minderWords) && !commands && (strong || weak):
		return 0
	case is("editor", "edit", "replace"):
	case strong && (commands || unknown || takes([]string{"input", "code", "args", "argv"})),
		weak && commands && !says("sql", "query the"),
		weak && unknown && !AnyOf(words, otherWords) && !is("code", "cell") && !AnyOf(words, codeWords),
		commands && says("shell", "bash", "terminal", "command line", "powershell"):
		out |= UseShell
	}
	if AnyOf(words, codeWords) || is("code") && is("execute", "run", "exec", "eval") {
		if (unknown || takes(codeNames)) && !is("search", "edit", "read", "list") {
			out |= UseCode
		}
	}
	if AnyOf(words, onlineWords) || AnyOf(words, fetchWords) && (unknown || takes([]string{"url", "urls", "link", "query", "uri"})) {
		return out | UseFetch
	}
	if out != 0 || AnyOf(words, otherWords) {
		return out
	}
	if AnyOf(words, listWords) && (files || path || single || is("ls", "tree", "readdir")) && (unknown || path || says("director", "files")) {
		out |= UseList
	}
	if AnyOf(words, searchWords) && !is("replace", "edit") && (unknown || path || takes(patternNames)) &&
		(files || path || single || is("grep", "glob", "rg", "ripgrep", "semantic", "name") || says("file", "codebase", "workspace", "director")) {
		out |= UseSearch
		if is("glob") {
			out |= UseList
		}
	}
	if out != 0 {
		return out
	}
	if AnyOf(words, readWords) && (path || unknown && (files || single)) {
		out |= UseRead
	}
	patch := is("patch", "diff") && takes([]string{"patch", "diff", "input"})
	if AnyOf(words, writeWords) && !is("view", "show") && (path || patch || unknown && (files || single || is("editor", "patch", "str"))) {
		out |= UseWrite
	}
	if out&UseWrite != 0 && is("editor") && (commands || unknown) {
		out |= UseRead | UseList // "view" shows files and directories
	}
	return out
}

// AnyOf reports whether two lists of words have one in common.
func AnyOf(words, known []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(known, w) })
}

// Parameter is one of a tool's own.
type Parameter struct {
	Name, Schema string
	Required     bool
}

// maxParameters bounds how many are looked at.
const maxParameters = 64

// Parameters are those that the tool's schema declares, in its order, at most 64.
func Parameters(t transcript.Tool) (out []Parameter) {
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
		out = append(out, Parameter{k.String(), v.Raw, required[k.String()]})
		return len(out) < maxParameters
	})
	return out
}
