package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// kind is what a tool is for, as far as its name tells.
type kind uint8

const (
	kindOther  kind = iota
	kindReader      // returns files, listings, search results, pages: content is data
	kindShell       // runs commands
	kindCode        // runs code
	kindEditor      // writes files
)

// kindOf is the most telling kind of the words of a tool's name: one that runs
// something, then one that writes, then one that reads.
func kindOf(tool string) kind {
	var words [recovery.MaxNameWords]string
	best := kindOther
	for _, w := range recovery.AppendNameWords(words[:0], tool) {
		if k := kindOfWord(w); k != kindOther && (best == kindOther || telling(k) < telling(best)) {
			best = k
		}
	}
	return best
}

// telling orders kinds, the most telling first.
func telling(k kind) int {
	switch k {
	case kindShell:
		return 0
	case kindCode:
		return 1
	case kindEditor:
		return 2
	}
	return 3
}

// kindOfWord is the kind of a word of a tool's name. A name is split at
// punctuation and capitals.
func kindOfWord(word string) kind {
	switch word {
	case "bash", "shell", "terminal", "exec", "execute", "command", "cmd", "powershell", "pwsh", "console", "run", "zsh", "process", "sh":
		return kindShell
	case "python", "ipython", "jupyter", "interpreter", "notebook", "repl", "javascript", "node", "sandbox":
		return kindCode
	case "edit", "editor", "write", "patch", "replace", "insert", "create", "append", "delete", "move", "rename", "multiedit":
		return kindEditor
	case "read", "view", "cat", "open", "list", "ls", "glob", "grep", "search", "find", "fetch", "browse", "browser", "web", "crawl",
		"scrape", "navigate", "docs", "doc", "download", "tree", "show", "rg", "snapshot", "page", "url", "http", "wikipedia", "websearch", "webfetch":
		return kindReader
	}
	return kindOther
}

// readers are programs that print what they find: files, listings, history.
var readers = map[string]bool{
	"cat": true, "head": true, "tail": true, "sed": true, "awk": true, "grep": true, "egrep": true, "fgrep": true, "rg": true, "ag": true,
	"ack": true, "less": true, "more": true, "ls": true, "find": true, "fd": true, "tree": true, "echo": true, "printf": true, "man": true,
	"jq": true, "nl": true, "wc": true, "cut": true, "sort": true, "uniq": true, "strings": true, "xxd": true, "hexdump": true, "bat": true,
	"type": true, "dir": true, "get-content": true, "gc": true, "select-string": true, "get-childitem": true, "tr": true, "zcat": true,
	"journalctl": true, "dmesg": true, "diff": true, "pgrep": true, "test": true, "[": true, "cmp": true, "which": true, "apropos": true,
	"git log": true, "git show": true, "git diff": true, "git grep": true, "git blame": true, "docker logs": true, "kubectl logs": true,
	"go doc": true, "open": true, "goto": true, "scroll_down": true, "scroll_up": true, "search_file": true, "search_dir": true, "find_file": true,
}

// copiers are programs that print nothing where they succeed.
var copiers = map[string]bool{"cp": true, "mv": true, "rm": true, "mkdir": true, "rmdir": true, "ln": true, "touch": true, "chmod": true, "chown": true, "tar": true}

// noMatchers are programs whose exit code 1 is an answer.
var noMatchers = map[string]bool{"grep": true, "egrep": true, "fgrep": true, "rg": true, "ag": true, "ack": true, "diff": true, "cmp": true,
	"test": true, "[": true, "pgrep": true, "which": true, "git diff": true, "git grep": true, "select-string": true, "expr": true}

// programs are the programs that a command line runs, in order, at most 16.
// It is a rough reading: quotes are honoured, substitutions are not.
func programs(command string) []string {
	var out []string
	for _, part := range splitCommand(command) {
		words := strings.Fields(part)
		for len(words) > 0 && (strings.Contains(words[0], "=") || words[0] == "sudo" || words[0] == "time" || words[0] == "command" || words[0] == "then" || words[0] == "do") {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		name := words[0]
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			name = name[i+1:]
		}
		name = strings.ToLower(strings.TrimSuffix(name, ".exe"))
		if name == "cd" || name == "true" || name == "set" || name == "export" {
			continue
		}
		if len(words) > 1 && (name == "git" || name == "docker" || name == "kubectl" || name == "go") {
			sub := words[1]
			if name == "git" && (sub == "-C" || sub == "-c") && len(words) > 3 {
				sub = words[3]
			} else if name == "git" && strings.HasPrefix(sub, "--") && len(words) > 2 {
				sub = words[2]
			}
			name += " " + sub
		}
		if out = append(out, name); len(out) == 16 {
			break
		}
	}
	return out
}

// splitCommand cuts a command line at its operators, outside of quotes.
func splitCommand(command string) []string {
	var out []string
	var quote byte
	from := 0
	for i := 0; i < len(command) && len(out) < 32; i++ {
		c := command[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			} else if c == '\\' && quote == '"' {
				i++
			}
		case c == '\\':
			i++
		case c == '\'' || c == '"':
			quote = c
		case c == '|' || c == ';' || c == '\n' || c == '&' && i+1 < len(command) && command[i+1] == '&':
			out = append(out, command[from:i])
			if i+1 < len(command) && (command[i+1] == '|' || command[i+1] == '&') {
				i++
			}
			from = i + 1
		}
	}
	return append(out, command[min(from, len(command)):])
}

// onlyReads reports whether all that the command runs are reading programs.
func onlyReads(progs []string) bool {
	for _, p := range progs {
		if !readers[p] {
			return false
		}
	}
	return len(progs) > 0
}
