package inspect

import (
	"path"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// hasProgramPrefix reports whether a line begins with the name of a shell or of a program of the command, as
// messages on standard error do: "svn: …", "/bin/sh: …".
func (v *view) hasProgramPrefix(line string) bool {
	name, _, ok := strings.Cut(line, ": ")
	return ok && (shellName.MatchString(name) || slices.Contains(v.call.Command().Programs, path.Base(name)))
}

// onlyReads reports whether the command runs only reading programs.
func (v *view) onlyReads() bool {
	programs := v.call.Command().Programs
	return len(programs) > 0 && !slices.ContainsFunc(programs, func(p string) bool { return !v.rules.words["readers"][p] })
}

// prints reports whether the command may print what it reads: one of its programs does, or it has a loop, which
// may run anything. Programs behind a pipe do not count, because they filter the output of another program, nor
// do programs in but.
func (v *view) prints(but []string) bool {
	c := v.call.Command()
	for i, p := range c.Programs {
		if c.Filters(i) || p == "echo" && !strings.ContainsAny(v.call.Line(), "$`") { // echo prints what the command says
			continue
		}
		first, verb, _ := strings.Cut(p, " ")
		verb, _, _ = strings.Cut(verb, " ")
		for _, name := range []string{p, first, first + " " + verb} {
			if (v.rules.words["readers"][name] || v.rules.words["runners"][name]) && !slices.Contains(but, name) {
				return true
			}
		}
		if strings.HasSuffix(p, " logs") {
			return true
		}
	}
	return c.Compound
}

// "No such file or directory" may also be about a program. The command line decides: a name that it runs is a
// program's.

// bareMissing matches such a message about a word without slash and dot, from find (which runs the program after
// -exec) or from a program that only says that something failed.
var bareMissing = recovery.NewPattern(`^(?:find: ['"‘]?([\w+-]{1,60})['"’]?|['"‘\x60]?([\w+-]{1,60})['"’\x60]? failed|` +
	`(?:[\w./+-]{1,60}: ){1,3}['"‘\x60]?([\w+-]{1,60})['"’\x60]?): No such file or directory\b`)

// folderName matches common names of folders, which are not programs.
var folderName = recovery.NewPattern(`^(?:build|dist|out|output|src|lib|libs|bin|docs?|tests?|specs?|target|tmp|temp|data|logs?|config|conf|` +
	`etc|assets|public|static|vendor|node_modules|packages|apps|scripts|tools|examples|include|cache|backups?|reports|coverage|migrations|templates|images)$`)

// runsProgram decides whether a missing file is a missing program.
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
	case m[2] != "", m[1] != "" && v.call.Line() == "" && !folderName.MatchString(m[1]):
		f.confidence = min(f.confidence, doubtful)
	}
	return f
}

// runs reports whether the command runs the program through another one or in code that it passes. A shell says itself that
// a program is missing.
func (v *view) runs(name string) bool {
	for _, i := range trajectory.Invocations(v.call.Line()) {
		for n, w := range i.Words[1:] {
			code, _, is := strings.Cut(w, name)
			caller := strings.TrimRight(code, "\"'([{ ")
			if w == name && v.rules.words["before-program"][i.Words[n]] ||
				is && caller != code && v.rules.words["calls-program"][caller[strings.LastIndexAny(caller, " \t\n;.=\"'")+1:]] {
				return true
			}
		}
	}
	return false
}
