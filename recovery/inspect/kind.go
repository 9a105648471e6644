package inspect

import "strings"

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
