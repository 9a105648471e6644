package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

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

// Words in front of a program: of a command line, and of a call in a script, where a
// bracket or a quote follows.
var (
	beforeProgram = []string{"-exec", "-execdir", "-ok", "-okdir", "xargs", "exec", "env", "sudo", "time", "nohup", "then", "do", "else"}
	callsProgram  = []string{"system", "popen", "Popen", "spawn", "run", "call", "check_call", "check_output", "exec", "execSync", "spawnSync", "execFile", "qx"}
)

// runs reports whether the call's command runs a program of that name.
func (v *view) runs(name string) bool {
	for from := 0; ; {
		i := strings.Index(v.command[from:], name)
		if i < 0 {
			return false
		}
		i += from
		from = i + len(name)
		if (i == 0 || !nameByte(v.command[i-1])) && (from == len(v.command) || !nameByte(v.command[from])) && runPlace(v.command[:i]) {
			return true
		}
	}
}

// nameByte reports whether c may stand in a program's name or path.
func nameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c == '/' || c == '+' || digit(c) || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// runPlace reports whether a program stands behind the beginning of a command.
func runPlace(before string) bool {
	plain := strings.TrimRight(before, " ")
	opened := strings.TrimRight(plain, " \"'([{")
	if plain == "" || strings.HasSuffix(plain, "`") || strings.HasSuffix(plain, "$(") || opened != plain && strings.HasSuffix(opened, " -c") {
		return true
	}
	if c := plain[len(plain)-1]; c == '|' || c == ';' || c == '&' || c == '\n' {
		return true
	}
	last := func(s string) string { return s[strings.LastIndexAny(s, " \t\n;|&(.=\"'")+1:] }
	return slices.Contains(beforeProgram, last(plain)) || opened != plain && slices.Contains(callsProgram, last(opened))
}
