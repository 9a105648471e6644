package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// programs are the programs that a command line runs, in order, at most 16.
// It is a rough reading: quotes are honoured, substitutions are not.
func programs(command string) []string {
	var out []string
	if i := strings.Index(command, "<<"); i >= 0 { // what follows the line is text
		line, _, _ := strings.Cut(command[i:], "\n")
		command = command[:i] + line
	}
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
func (l *lists) onlyReads(progs []string) bool {
	for _, p := range progs {
		if !l.words["readers"][p] {
			return false
		}
	}
	return len(progs) > 0
}

// printsData reports whether a command has a program that prints what it reads, at
// another place than behind a pipe, where it filters what the one before it says.
// Programs in but are no such.
func (l *lists) printsData(command string, but []string) bool {
	piped := false
	from := 0
	for _, part := range splitCommand(command) {
		if from > 0 {
			piped = from < len(command) && command[from-1] == '|' && (from < 2 || command[from-2] != '|')
		}
		if list := programs(part); !piped && len(list) > 0 && !slices.Contains(but, list[0]) && (l.words["readers"][list[0]] || l.words["runners"][list[0]] || slices.Contains(strings.Fields(part), "logs")) {
			return true
		}
		from += len(part) + 1
		if from < len(command) && (command[from] == '|' || command[from] == '&') {
			from++
		}
	}
	return false
}

// "No such file or directory" is what the system says of a program, too. The command
// line tells which it was: a name that it runs is a program's.

// bareMissing is such a message about a word without slash and dot, by find, which
// runs what stands behind -exec, or by a program that says only that something failed.
var bareMissing = recovery.NewPattern(`^(?:find: ['"‘]?([\w+-]{1,60})['"’]?|['"‘\x60]?([\w+-]{1,60})['"’\x60]? failed|(?:[\w./+-]{1,60}: ){1,3}['"‘\x60]?([\w+-]{1,60})['"’\x60]?): No such file or directory\b`)

// folderName are names that folders have by custom, and no program.
var folderName = recovery.NewPattern(`^(?:build|dist|out|output|src|lib|libs|bin|docs?|tests?|specs?|target|tmp|temp|data|logs?|config|conf|etc|assets|public|static|vendor|node_modules|packages|apps|scripts|tools|examples|include|cache|backups?|reports|coverage|migrations|templates|images)$`)

// runsProgram settles a finding of a missing file whose name may be a program's.
func (v *view) runsProgram(f finding) finding {
	if f.category != recovery.FileNotFound {
		return f
	}
	m := bareMissing.FindStringSubmatch(f.line)
	if m == nil {
		return f
	}
	switch {
	case v.runs(m[1] + m[2] + m[3]):
		f.category, f.rule = recovery.CommandNotFound, "run-by-command"
	case m[2] != "", m[1] != "" && v.command == "" && !folderName.MatchString(m[1]):
		f.confidence = min(f.confidence, doubtful)
	}
	return f
}

// runs reports whether the call's command runs a program of that name.
func (v *view) runs(name string) bool {
	for from := 0; ; {
		i := strings.Index(v.command[from:], name)
		if i < 0 {
			return false
		}
		i += from
		from = i + len(name)
		if (i == 0 || !nameByte(v.command[i-1])) && (from == len(v.command) || !nameByte(v.command[from])) && v.rules.runPlace(v.command[:i]) {
			return true
		}
	}
}

// nameByte reports whether c may stand in a program's name or path.
func nameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c == '/' || c == '+' || digit(c) || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// runPlace reports whether a program stands behind the beginning of a command.
func (l *lists) runPlace(before string) bool {
	plain := strings.TrimRight(before, " ")
	opened := strings.TrimRight(plain, " \"'([{")
	if plain == "" || strings.HasSuffix(plain, "`") || strings.HasSuffix(plain, "$(") || opened != plain && strings.HasSuffix(opened, " -c") {
		return true
	}
	if c := plain[len(plain)-1]; c == '|' || c == ';' || c == '&' || c == '\n' {
		return true
	}
	last := func(s string) string { return s[strings.LastIndexAny(s, " \t\n;|&(.=\"'")+1:] }
	return l.words["before-program"][last(plain)] || opened != plain && l.words["calls-program"][last(opened)]
}
