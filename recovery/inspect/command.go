package inspect

import (
	"path"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// underOwnName reports whether a line begins with the name of the shell or of a program of the command, as messages on
// standard error do: "svn: …", "/bin/sh: …".
func (v *view) underOwnName(line string) bool {
	name, _, ok := strings.Cut(line, ": ")
	return ok && (shellName.MatchString(name) || slices.Contains(v.call.Command().Programs, path.Base(name)))
}

// onlyReads reports whether all that the command runs are reading programs.
func (v *view) onlyReads() bool {
	programs := v.call.Command().Programs
	return len(programs) > 0 && !slices.ContainsFunc(programs, func(p string) bool { return !v.rules.words["readers"][p] })
}

// prints reports whether the command prints what it reads: a program of it that
// does, other than behind a pipe, where it filters what the one before it says, or
// a loop, whatever that runs. Programs in but are no such.
func (v *view) prints(but []string) bool {
	c := v.call.Command()
	for i, p := range c.Programs {
		if c.Filters(i) {
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

// "No such file or directory" is what the system says of a program, too. The command
// line tells which it was: a name that it runs is a program's.

// bareMissing is such a message about a word without slash and dot, by find, which
// runs what stands behind -exec, or by a program that says only that something failed.
var bareMissing = recovery.NewPattern(`^(?:find: ['"‘]?([\w+-]{1,60})['"’]?|['"‘\x60]?([\w+-]{1,60})['"’\x60]? failed|` +
	`(?:[\w./+-]{1,60}: ){1,3}['"‘\x60]?([\w+-]{1,60})['"’\x60]?): No such file or directory\b`)

// folderName are names that folders have by custom, and no program.
var folderName = recovery.NewPattern(`^(?:build|dist|out|output|src|lib|libs|bin|docs?|tests?|specs?|target|tmp|temp|data|logs?|config|conf|` +
	`etc|assets|public|static|vendor|node_modules|packages|apps|scripts|tools|examples|include|cache|backups?|reports|coverage|migrations|templates|images)$`)

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
	case m[2] != "", m[1] != "" && v.call.Line() == "" && !folderName.MatchString(m[1]):
		f.confidence = min(f.confidence, doubtful)
	}
	return f
}

// runs reports whether the call's command runs a program of that name: itself, by
// one that runs another, or in code that it is given.
func (v *view) runs(name string) bool {
	for _, i := range trajectory.Invocations(v.call.Line()) {
		if i.Words[0] == name || i.Runs() == name {
			return true
		}
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
