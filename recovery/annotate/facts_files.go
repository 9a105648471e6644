package annotate

import (
	"cmp"
	"iter"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// isPath reports whether a byte can be part of a path. Paths in free text have no exact boundaries, so this is
// an approximation.
func isPath(c byte) bool {
	return isWord(c) || c >= 0x80 || c == '/' || c == '.' || c == '+' || c == '@' || c == '~' || c == '\\'
}

// pathStart returns the start of the path that contains text[at].
func pathStart(text string, at int) int {
	for at > 0 && isPath(text[at-1]) {
		at--
	}
	return at
}

// pathAround returns the path around text[at:end], without punctuation of a sentence or a diff.
func pathAround(text string, at, end int) string {
	at = pathStart(text, at)
	for end < len(text) && isPath(text[end]) {
		end++
	}
	if at > 1 && text[at] == '\\' && text[at-1] == ':' && text[at-2]|0x20 >= 'a' && text[at-2]|0x20 <= 'z' {
		at -= 2 // C:\
	}
	if partial(text, at, end) {
		return ""
	}
	return trimmed(text[at:end])
}

// partial reports whether text[at:end] is only a part of a path that a shell expands or a pattern matches.
func partial(text string, at, end int) bool {
	return at < end && text[at] == '/' && at > 0 && strings.IndexByte(")}]$*%", text[at-1]) >= 0 || at > 0 && text[at-1] == '$' || end < len(text) && strings.IndexByte("*$[{", text[end]) >= 0
}

// trimmed returns a path without a sentence's full stops and trailing slashes.
func trimmed(t string) string {
	if t = strings.TrimRight(t, "."); len(t) > 1 {
		return strings.TrimRight(t, `/\`)
	}
	return t
}

// base returns the last element of a Unix or Windows path.
func base(p string) string { return p[strings.LastIndexAny(p, `/\`)+1:] }

// matched matches a search result: path:line.
var matched = recovery.NewPattern(`^[^\s:]{1,300}:\d+[:\s]`)

// absent matches statements that something is missing.
var absent = recovery.NewPattern(`(?i)no such|not found|cannot |can't |could not|does(?: not|n't) exist|enoent|not a directory|is missing|deleted|removed|unable to`)

// job matches a shell's report about a background job, which quotes the job's command line.
var job = recovery.NewPattern(`^\[\d+\][+-]?\s+(?:Exit|Done|Running|Stopped|Terminated|Killed|Aborted)\b`)

// inName matches the words of a name with blanks, of which only the rest looks like a path.
var inName = recovery.NewPattern(`^(?:[\pL\d./][\w./-]+ )+$`)

// denies reports whether a line says that the thing it names is missing, or names it only as a part of a command.
func denies(line string) bool {
	return job.MatchString(line) || !matched.MatchString(line) && absent.MatchString(line[:min(len(line), 400)]) // a search result quotes the file's own text
}

func absolute(p string) bool {
	return strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || strings.HasPrefix(p, `\\`) || len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
}

// join joins a relative path to a directory; either may be empty.
func join(dir, p string) string {
	switch {
	case dir == "" || absolute(p):
		return clean(p)
	case strings.Contains(dir, `\`):
		return strings.TrimRight(dir, `\`) + `\` + p
	}
	return path.Join(dir, p)
}

// clean normalises a path. Backslashes may be doubled, as JSON and code write them.
func clean(p string) string {
	switch {
	case p == "":
		return p
	case strings.Contains(p, `\`):
		return p[:1] + strings.ReplaceAll(p[1:], `\\`, `\`)
	}
	return path.Clean(p)
}

// listers are programs whose output names existing files.
var listers = map[string]bool{"ls": true, "find": true, "fd": true, "tree": true, "rg": true, "grep": true, "ag": true, "git": true, "dir": true, "locate": true,
	"get-childitem": true, "gci": true, "find_file": true, "search_dir": true, "du": true, "stat": true, "realpath": true, "readlink": true, "exa": true, "eza": true}

// lists reports whether a call lists or searches files.
func (s *failureContext) lists(c *call) bool {
	if c.Line() == "" {
		return s.usedFor(c.Tool, trajectory.UseList|trajectory.UseSearch)
	}
	for _, v := range trajectory.Invocations(c.Line()) {
		if listers[strings.ToLower(v.Program)] {
			return true
		}
	}
	return false
}

// entered returns the directory that a command line changes to with cd, except to the one in but; "" for none.
func entered(programs []trajectory.Invocation, but string) (dir string) {
	for _, v := range programs {
		if args := v.Operands(); v.Program == "cd" && len(args) == 1 && args[0] != but {
			dir = join(dir, args[0])
		}
	}
	return dir
}

// headed reports whether a call lists directories under headings, as ls -R does.
func (c *call) headed() bool {
	return slices.ContainsFunc(trajectory.Invocations(c.Line()), func(v trajectory.Invocation) bool {
		return v.Program == "ls" && (len(v.Operands()) > 1 || strings.Contains(v.Text, "R"))
	})
}

// listedDir returns the one directory whose entries a call lists; "" if there is none, or several.
func (c *call) listedDir() string {
	if c.Line() == "" {
		dir := trajectory.PathIn(c.Arguments)
		if strings.ContainsAny(dir, "*?") {
			return ""
		}
		return dir
	}
	for _, v := range trajectory.Invocations(c.Line()) {
		if args := v.Operands(); v.Program == "ls" && len(args) == 1 && !strings.ContainsAny(args[0], "*?{$") {
			return args[0]
		}
	}
	return ""
}

// mention is a path that an earlier result printed.
type mention struct {
	path             string
	listed, searched bool // by a call that lists or searches files; by one that searched for this name
}

// mentions returns the paths whose last element is name in earlier results, the newest first.
func (s *failureContext) mentions(name string) iter.Seq[mention] {
	return func(yield func(mention) bool) {
		s.earlierCalls() // sets s.answers
		s.results(name, func(i int, text string) bool {
			var l listing
			if c := s.answers[i]; c == nil && s.list[i].Role != transcript.RoleTool {
				return true // a person's words may quote another computer's paths
			} else if c != nil {
				l = listing{listed: s.lists(c), headed: c.headed(), entry: entered(trajectory.Invocations(c.Line()), ""), above: c.listedDir()}
			}
			searched := l.listed && strings.Contains(s.answers[i].Arguments, strings.TrimSuffix(name, path.Ext(name)))
			for line := range strings.Lines(text) {
				for _, p := range l.read(line, name) {
					if !yield(mention{p, l.listed, searched}) {
						return false
					}
				}
			}
			return true
		})
	}
}

// listing is what gives the names in a result their directory.
type listing struct {
	listed bool   // by a call that lists or searches files
	headed bool   // it has headings
	entry  string // the directory that the command enters
	above  string // the directory of the names, by the call or by the last heading
}

// read reads the next line and returns the paths in it whose last element is name. A name alone counts if its directory is
// known.
func (l *listing) read(line, name string) (out []string) {
	head := strings.TrimSpace(line)
	if dir, ok := strings.CutPrefix(head, "Directory: "); ok && l.listed { // PowerShell
		l.above = dir
	} else if dir, ok := strings.CutSuffix(head, ":"); ok && l.headed && !strings.ContainsAny(dir, " :") {
		l.above = dir
	}
	line = line[:min(len(line), maxPathLine)]
	if !strings.Contains(line, name) || denies(line) {
		return nil
	}
	for from := 0; ; {
		at := strings.Index(line[from:], name)
		if at < 0 {
			return out
		}
		at += from
		from = at + len(name)
		p := pathAround(line, at, from)
		bare := !strings.ContainsAny(p, `/\`)
		if base(p) != name || strings.HasPrefix(p, "//") || bare && (!l.listed || l.above == "" || l.above == p) ||
			l.listed && inName.MatchString(line[:pathStart(line, at)]) {
			continue
		}
		if bare || l.listed && absolute(l.above) {
			p = join(l.above, p)
		}
		out = append(out, join(l.entry, p))
	}
}

// maxPathLine limits the part of a line that is searched for paths, in bytes.
const maxPathLine = 1 << 10

// directories matches statements of the working directory.
var directories = recovery.NewPattern(`(?i)(?:(?:current |primary )?working directory(?: is)?:?|current directory:|<cwd>|"cwd": ?|\bcwd: ) *[('"\x60]?((?:/|~|[a-z]:\\)[^\s)'"\x60\]<,;]{0,200})`)

// cwd returns the working directory, or "" if nothing states it.
func (s *failureContext) cwd() string {
	if s.workDir == nil {
		found := s.findDirectory()
		s.workDir = &found
	}
	return *s.workDir
}

// findDirectory looks for the working directory in the call, then in the newest results and messages, and in the
// first messages.
func (s *failureContext) findDirectory() string {
	if given := text(s.args, "workdir", "cwd", "Cwd", "directory"); absolute(given) {
		return given
	}
	newest := []int{s.f.Index}
	for i := s.turn - 1; i >= max(0, s.turn-24); i-- {
		newest = append(newest, i)
	}
	for _, i := range newest {
		if found := directoryIn(trajectory.Ends(s.messageText(i), 600, 600)); found != "" {
			return found
		}
	}
	for i := range 4 {
		if found := directoryIn(s.messageText(i)); found != "" {
			return found
		}
	}
	return ""
}

// messageText returns the text of a message that is not the assistant's, or "" if the message is too large.
func (s *failureContext) messageText(i int) string {
	if i < 0 || i >= len(s.list) || s.list[i].Role == transcript.RoleAssistant || s.list[i].End-s.list[i].Start > maxMessage {
		return ""
	}
	return s.list[i].Text()
}

// directoryIn returns the last working directory that a text states.
func directoryIn(text string) string {
	if !strings.Contains(text, "irectory") && !strings.Contains(text, "cwd") {
		return ""
	}
	all := directories.FindAllStringSubmatch(text, 8)
	if len(all) == 0 || !utf8.ValidString(all[len(all)-1][1]) {
		return ""
	}
	return trimmed(all[len(all)-1][1])
}

// inQuotes matches quoted text; an apostrophe inside a word opens no quotation.
var inQuotes = recovery.NewPattern(`(?:^|[^\pL\d])(?:'([^'\n]{1,300})'|"([^"\n]{1,300})"|‘([^’\n]{1,300})’|\x60([^\x60'\n]{1,300})[\x60'])`)

// beforeColon matches the name that a program prints before the system's error text. The last word of a sentence is one only if it looks like a path.
var beforeColon = recovery.NewPattern(`(?:(?:^|: )([^\s'"‘’\x60:,()]{2,300})|([^\s'"‘’\x60:,()]*[/.\\][^\s'"‘’\x60:,()]*)): (?:Cannot open: )?(?:[Nn]o such file|[Pp]ermission denied|[Nn]o space left)`)

// failedPath returns the path that the failure is about: from the call or from the message; "" if neither has
// one.
func (s *failureContext) failedPath() string {
	p := s.saidMissing()
	if strings.Contains(p, "://") || strings.ContainsAny(p, "*?@$") {
		return ""
	}
	return p
}

// sandboxed matches the message of a sandbox that did not start.
var sandboxed = recovery.NewPattern(`^(?:\S*/)?bwrap: `)

// noName matches a missing file that is a number or a version, a sign, a placeholder or a blank, which a command put in a name's
// place, or that belongs to a process that has ended.
var noName = recovery.NewPattern(`(?:^|[\s'"‘])(?:\d[\d.]*|\{\}|%\w|[\s,;:|]|[./]*/proc/\d.*)['"’]?(?:: | \()[Nn]o such file`)

// option matches a missing program that is an option, on a line of its own.
var option = recovery.NewPattern(`(?:^|\s)--?[A-Za-z][\w-]*: (?:command )?not found`)

// ownCommand matches the message of a program that reads commands of its own, which no shell's name begins.
var ownCommand = recovery.NewPattern(`(?i)^(?:command not found|(?:unknown|unrecognized|no such) command)\b`)

// remedy matches a program that says what to run for a missing part of it.
var remedy = recovery.NewPattern(`(?i)\brun the following command\b`)

// nowhere reports whether no other place helps: what is missing is a pattern that matches nothing yet or no name, or the
// sandbox around the command did not start; nor another program, in place of an option, of a part whose own program
// says how to get it, of a program's own command, or of a file that the call names by its path.
func (s *failureContext) nowhere() bool {
	byPath := func(v trajectory.Invocation) bool {
		return strings.Contains(v.Words[0], "/") && strings.Contains(s.f.Line, v.Words[0])
	}
	if v := s.longest(); s.f.Category == recovery.ToolTimeout && v != nil && (v.Program == "nc" || len(v.Words) == 1 && !slices.Contains([]string{"make", "ninja", "pytest", "tox", "ctest"}, v.Program)) {
		return true // nothing of it can be left out, and it may wait for input
	}
	if s.f.Category == recovery.CommandNotFound && (s.program() == "" || remedy.MatchString(s.content) || s.ofProgram() || slices.ContainsFunc(s.programs, byPath)) {
		return true
	}
	return s.f.Category == recovery.ToolNotFound && s.textProtocol || sandboxed.MatchString(s.f.Line) || option.MatchString(s.f.Line) || noName.MatchString(s.f.Line) || strings.ContainsAny(s.saidMissing(), "*?")
}

// ofProgram reports whether a program of the command line has no such command of its own.
func (s *failureContext) ofProgram() bool {
	return len(s.programs) > 0 && ownCommand.MatchString(s.f.Line) &&
		!slices.ContainsFunc(s.programs, func(v trajectory.Invocation) bool { return trajectory.HasWord(s.f.Line, v.Program) })
}

// saidMissing returns what the failure says is missing or refused, as it says it.
func (s *failureContext) saidMissing() string {
	if s.f.Category != recovery.FileNotFound && s.f.Category != recovery.PermissionDenied && s.f.Category != recovery.DiskFull {
		return ""
	}
	line := shellHead.ReplaceAllString(s.f.Line, "")
	p := ""
	if s.failingCall.Line() == "" {
		p = trajectory.PathIn(s.f.Arguments)
	} else if m := beforeColon.FindStringSubmatch(line); m != nil && !strings.EqualFold(m[1], "warning") {
		p = cmp.Or(m[1:]...)
	}
	for _, m := range inQuotes.FindAllStringSubmatch(line, 8) {
		if given := cmp.Or(m[1:]...); p == "" && strings.ContainsAny(given, `/\\.`) && !strings.Contains(given, " ") {
			p = given
		}
	}
	for _, v := range s.programs {
		for _, w := range append(v.Operands(), v.Targets...) {
			if trajectory.HasWord(line, w) && len(w) > len(p) && (p == "" || strings.HasSuffix(w, p)) && strings.ContainsAny(w, `/\\.`) {
				p = w
			}
		}
	}
	if p == "" {
		p = plainPath(line)
	}
	return strings.TrimPrefix(p, "file://")
}

// plainPath returns the first word of a line that looks like a path.
func plainPath(line string) string {
	for i := 0; i < len(line); i++ {
		if !isPath(line[i]) {
			continue
		}
		from := i
		for i < len(line) && isPath(line[i]) {
			i++
		}
		if t := trimmed(line[from:i]); len(t) > 2 && strings.Contains(t, "/") && !strings.HasPrefix(t, "//") && (t[0] == '/' || t[0] == '.' || strings.Contains(base(t), ".")) {
			return t
		}
	}
	return ""
}

// startDir returns the directory to which the failing call's relative paths refer.
func (s *failureContext) startDir() string {
	return join(s.cwd(), entered(s.programs, s.failedPath()))
}

// foundPath returns the place of a missing file that an earlier result printed. The name must be equal except
// for case. The result must come from a search for it, or from a listing if the call gives no directory, or the
// parent directory must match too. The place must be the only one and below the same root.
func (s *failureContext) foundPath() fact {
	want := s.failedPath()
	name := base(trimmed(want))
	opened := !strings.Contains(s.f.Arguments, name) && strings.Contains(s.content, "Traceback (most recent") // by a program, which may have to make it
	if len(name) < 3 || opened || slices.ContainsFunc(s.programs, func(v trajectory.Invocation) bool { return slices.Contains(v.Targets, want) }) {
		return fact{}
	}
	wanted, found := join(s.startDir(), want), ""
	for m := range s.mentions(name) {
		full := clean(m.path)
		at := join(s.cwd(), full)
		alike := m.searched || common(full, want) > 1 || m.listed && !strings.ContainsAny(want, `/\`)
		sameSystem := strings.Contains(full, `\`) == strings.Contains(want, `\`)
		if !alike || !sameSystem || at == wanted || absolute(want) && strings.HasSuffix(want, "/"+full) || absolute(want) && absolute(full) && !sameRoot(full, want) {
			continue
		}
		if absolute(want) {
			full = at
		}
		if found != "" && found != full {
			return fact{} // several places
		}
		found = full
	}
	if found == "" {
		return fact{}
	}
	f := fact{say: "An earlier result shows " + quoted(name) + " at " + quoted(found) + "."}
	line := s.failingCall.Line()
	if line == "" || strings.Contains(line, want) {
		f.call = "Make the same call with the path " + quoted(found) + "."
	}
	if strings.Count(line, want) == 1 {
		f.call = cmp.Or(s.run(strings.Replace(line, want, found, 1)), f.call)
	}
	return f
}

// nearName finds the name that a listing of the same directory has in place of a missing one: the only name of nearly
// the same letters, or for cd the only directory.
func (s *failureContext) nearName() fact {
	want := strings.TrimSuffix(s.failedPath(), "/")
	if len(want) < 3 || strings.ContainsAny(want, `/\`) || strings.Count(s.failingCall.Line(), want) != 1 {
		return fact{}
	}
	entries := s.entriesHere()
	var near []string
	for _, e := range entries {
		name := strings.TrimRight(e, "/*@")
		if strings.EqualFold(name, want) {
			return fact{}
		}
		if misspelt(want, name) {
			near = append(near, name)
		}
	}
	enters := func(v trajectory.Invocation) bool {
		return v.Program == "cd" && slices.ContainsFunc(v.Operands(), func(o string) bool { return strings.TrimSuffix(o, "/") == want })
	}
	if len(near) == 0 && len(entries) == 1 && strings.HasSuffix(entries[0], "/") && slices.ContainsFunc(s.programs, enters) {
		near = []string{strings.TrimRight(entries[0], "/*@")}
	}
	if len(near) != 1 {
		return fact{}
	}
	f := fact{say: "The listing of this directory has " + quoted(near[0]) + " and no " + quoted(want) + "."}
	for _, v := range s.programs {
		if strings.Contains(v.Text, want) {
			f.call = s.run(strings.Replace(v.Text, want, near[0], 1))
		}
	}
	return f
}

// entriesHere returns the names in a listing of the directory in which the failing call ran: its own, or that of an earlier
// ls with nothing but failures since.
func (s *failureContext) entriesHere() []string {
	lists := func(v trajectory.Invocation) bool { return v.Program == "ls" && len(v.Operands()) == 0 }
	if entries := listedNames(s.content); entries != nil && slices.ContainsFunc(s.programs, lists) {
		return entries
	}
	for _, c := range s.earlierCalls() {
		if v := trajectory.Invocations(c.Line()); len(v) == 1 && lists(v[0]) {
			if entries := listedNames(output(s.list[c.answer].Text())); entries != nil {
				return entries
			}
		}
		if s.worked(c) {
			break
		}
	}
	return nil
}

// misspelt reports whether a name is another one with some letters too few or too many, or with two exchanged. A name
// with another letter or number in its place is rather a sibling: test_a and test_b, v1 and v12.
func misspelt(name, right string) bool {
	if nameDigits.ReplaceAllString(name, "") == nameDigits.ReplaceAllString(right, "") {
		return false
	}
	d := trajectory.Distance(name, right, len(name)/3)
	if len(name) == len(right) {
		return d == 1 && slices.Equal(slices.Sorted(slices.Values([]byte(name))), slices.Sorted(slices.Values([]byte(right))))
	}
	return d <= len(name)/3 && d == max(len(name)-len(right), len(right)-len(name))
}

var nameDigits = recovery.NewPattern(`\d+`)

// listedName matches a line of ls: a name alone, or with the rights before it.
var listedName = recovery.NewPattern(`^(?:([d-])[rwxsStT-]{9}[.+@]? +\d+ .*\d )?([\w.+-]+[/*@]?)$`)

// listedNames returns the names of a listing, directories with a slash; nil if it has too many.
func listedNames(text string) (out []string) {
	for line := range strings.Lines(text) {
		m := listedName.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || strings.Trim(m[2], "./") == "" || strings.HasPrefix(m[2], "bash-") {
			continue
		}
		if m[1] == "d" {
			m[2] = strings.TrimSuffix(m[2], "/") + "/"
		}
		if out = append(out, m[2]); len(out) > maxListed {
			return nil
		}
	}
	return out
}

// maxListed limits the names of a listing that are compared.
const maxListed = 200

// sameRoot reports whether two absolute paths begin with the same directory.
func sameRoot(a, b string) bool {
	x, y := elements(a), elements(b)
	return len(x) > 0 && len(y) > 0 && strings.EqualFold(x[0], y[0])
}

// elements splits a Unix or Windows path.
func elements(p string) []string {
	return strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '\\' })
}

// common returns how many elements at their ends two paths share.
func common(a, b string) (n int) {
	x, y := elements(a), elements(b)
	for n < len(x) && n < len(y) && strings.EqualFold(x[len(x)-1-n], y[len(y)-1-n]) {
		n++
	}
	return n
}
