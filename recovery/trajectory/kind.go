package trajectory

// Kind is what a tool is for, as far as its name tells.
type Kind uint8

// The kinds of tools, the least telling first.
const (
	Other  Kind = iota
	Reader      // returns files, listings, search results, pages: what it says is data
	Editor      // writes files
	Code        // runs code
	Shell       // runs commands
)

// KindOf is the most telling kind of the words of a tool's name: one that runs
// something, then one that writes, then one that reads.
func KindOf(tool string) Kind {
	var words [MaxNameWords]string
	best := Other
	for _, w := range AppendNameWords(words[:0], tool) {
		best = max(best, kindOfWord(w))
	}
	return best
}

// kindOfWord is the kind of a word of a tool's name. A name is split at
// punctuation and capitals.
func kindOfWord(word string) Kind {
	switch word {
	case "bash", "shell", "terminal", "exec", "execute", "command", "cmd", "powershell", "pwsh", "console", "run", "zsh", "process", "sh":
		return Shell
	case "python", "ipython", "jupyter", "interpreter", "notebook", "repl", "javascript", "node", "sandbox":
		return Code
	case "edit", "editor", "write", "patch", "replace", "insert", "create", "append", "delete", "move", "rename", "multiedit":
		return Editor
	case "read", "view", "cat", "open", "list", "ls", "glob", "grep", "search", "find", "fetch", "browse", "browser", "web", "crawl",
		"scrape", "navigate", "docs", "doc", "download", "tree", "show", "rg", "snapshot", "page", "url", "http", "wikipedia", "websearch", "webfetch":
		return Reader
	}
	return Other
}
