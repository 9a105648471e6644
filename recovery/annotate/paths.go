package annotate

import (
	"path"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// isPath tells the bytes that a path is made of, as far as one can tell where
// it begins and ends in a text.
func isPath(c byte) bool {
	return isWord(c) || c >= 0x80 || c == '/' || c == '.' || c == '+' || c == '@' || c == '~' || c == '\\'
}

// token is the path around text[at:end], without what a sentence or a diff puts
// around it. A line that is a path as a whole, as listings print them, may have
// spaces in it.
func token(text string, at, end int) string {
	line := lineAt(text, at)
	if strings.HasSuffix(text[:end], line) && spaced.MatchString(line) {
		return line
	}
	for at > 0 && isPath(text[at-1]) {
		at--
	}
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

// spaced is a line that is one path with spaces: it begins like a path, and no
// word in it begins another.
var spaced = recovery.NewPattern(`^(?:\.{1,2}/|/|~/|[A-Za-z]:\\)[^\s:;|<>*?"']*(?: [^\s/:;|<>*?"'-][^\s:;|<>*?"']*)+$`)

// partial reports whether text[at:end] is only a part of a path that a shell
// puts together, or that a pattern matches.
func partial(text string, at, end int) bool {
	return at < end && text[at] == '/' && at > 0 && strings.IndexByte(")}]$*%", text[at-1]) >= 0 || end < len(text) && strings.IndexByte("*$[{", text[end]) >= 0
}

func trimmed(t string) string {
	t = strings.TrimRight(t, ".")
	if len(t) > 1 {
		t = strings.TrimRight(t, "/\\")
	}
	return t
}

// base is the last element of a path of either system.
func base(p string) string {
	if i := strings.LastIndexAny(p, `/\`); i >= 0 {
		return p[i+1:]
	}
	return p
}

// lineAt is the line of text that holds position i.
func lineAt(text string, i int) string {
	from := strings.LastIndexByte(text[:i], '\n') + 1
	to := strings.IndexByte(text[i:], '\n')
	if to < 0 {
		return text[from:]
	}
	return text[from : i+to]
}

// matched is the form in which searches print what they found: path:line.
var matched = recovery.NewPattern(`^[^\s:]{1,300}:\d+[:\s]`)

// denies reports whether a line says that what it names is not there.
func denies(line string) bool {
	if matched.MatchString(line) {
		return false // what follows is the file's own text
	}
	low := strings.ToLower(line[:min(len(line), 400)])
	for _, w := range [...]string{"no such", "not found", "cannot ", "can't ", "could not", "does not exist", "doesn't exist", "enoent", "not a directory", "is missing", "deleted", "removed", "unable to"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

func absolute(p string) bool {
	return strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || strings.HasPrefix(p, `\\`) || len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
}

// join puts a relative path below a directory; either may be empty.
func join(dir, p string) string {
	if dir == "" || absolute(p) {
		return clean(p)
	}
	if strings.Contains(dir, `\`) {
		return strings.TrimRight(dir, `\`) + `\` + p
	}
	return path.Join(dir, p)
}

func clean(p string) string {
	if p == "" || strings.Contains(p, `\`) {
		return p
	}
	return path.Clean(p)
}

// where is what a call tells about the paths in its result.
type where struct {
	cd      string // directory that the command changed to
	dir     string // directory that is listed
	listing bool   // the result names what exists
}

var lister = map[string]bool{"ls": true, "find": true, "fd": true, "tree": true, "rg": true, "grep": true, "ag": true, "git": true, "dir": true, "locate": true, "du": true, "stat": true, "realpath": true, "readlink": true, "exa": true, "eza": true}

// whereOf reads the call that message i answers.
func (s *scene) whereOf(i int) (w where) {
	c, ok := s.callFor(i)
	if !ok {
		return w
	}
	if c.command == "" {
		t, _ := s.definition(c.tool)
		if Kinds(t)&(List|Search) != 0 {
			w.dir, w.listing = argument(c.args, pathParameters[:]...), true
			if strings.ContainsAny(w.dir, "*?") {
				w.dir = ""
			}
		}
		return w
	}
	for _, v := range invocations(c.command) {
		args := v.operands()
		switch {
		case v.program == "cd" && len(args) == 1:
			w.cd = join(w.cd, args[0])
		case lister[v.program] && !w.listing:
			w.listing = true
			if v.program == "ls" && len(args) == 1 && !strings.ContainsAny(args[0], "*?{$") && !strings.Contains(v.text, "R") {
				w.dir = args[0]
			}
		}
	}
	return w
}

// resolved is a path that message i printed, as it is seen from the working
// directory; ok is false for a bare name in a text that lists nothing.
func (w where) resolved(t string) (full string, ok bool) {
	if absolute(t) {
		return t, true
	}
	bare := !strings.ContainsAny(t, `/\`)
	switch {
	case bare && !w.listing:
		return "", false
	case w.dir != "" && !strings.HasPrefix(t, strings.TrimPrefix(w.dir, "./")+"/") && (bare || absolute(w.dir)):
		return join(w.cd, join(w.dir, t)), true
	}
	return join(w.cd, t), true
}

// mentions calls yield with the paths of that last element that earlier results
// printed, and that earlier successful calls used, until it returns false. The
// newest come first.
func (s *scene) mentions(name string, yield func(full string) bool) {
	if len(name) < 2 || len(name) > 200 || strings.ContainsAny(name, "*?[]{}$\"'\\\n") {
		return
	}
	more := true
	s.results(name, func(i int, text string) bool {
		var w where
		known := false
		for from, n := 0, 0; more && n < 64; n++ {
			at := strings.Index(text[from:], name)
			if at < 0 {
				break
			}
			at += from
			from = at + len(name)
			t := token(text, at, from)
			if base(t) != name || len(t) > 300 || strings.HasPrefix(t, "//") {
				continue
			}
			line := lineAt(text, at)
			if denies(line) {
				continue
			}
			if strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ") || strings.HasPrefix(line, "diff ") {
				t = strings.TrimPrefix(strings.TrimPrefix(t, "a/"), "b/")
			}
			if !known {
				w, known = s.whereOf(i), true
			}
			if full, ok := w.resolved(t); ok {
				more = yield(full)
			}
		}
		return more
	})
	if !more {
		return
	}
	s.calls(name, func(c call) bool {
		t, _ := s.definition(c.tool)
		used := argument(c.args, pathParameters[:]...)
		if Kinds(t)&(Read|Write) != 0 && base(trimmed(used)) == name && s.worked(c) {
			more = yield(used)
		}
		return more
	})
}

// pathParameters are what tools call the path that they work on.
var pathParameters = [...]string{"path", "file_path", "filepath", "filename", "file", "file_name", "absolute_path", "target_file", "relative_path", "relative_workspace_path", "notebook_path", "dir_path", "directory", "dir", "dirpath", "directory_path", "target_directory", "uri", "filePath", "absolutePath", "dirPath", "targetFile"}

// argument is the first string among the named arguments of a call.
func argument(arguments string, names ...string) string {
	o := object(arguments)
	if !o.IsObject() {
		return ""
	}
	for _, name := range names {
		if v := o.Get(name); v.Type == gjson.String && len(v.Str) <= 1024 {
			return v.Str
		}
	}
	return ""
}

// directories are the ways in which agents state the working directory.
var directories = recovery.NewPattern(`(?i)(?:current |primary )?working directory(?: is)?:? *[('"\x60]?((?:/|~|[a-z]:\\)[^\s)'"\x60\]<,;]{0,200})|current directory: *((?:/|~|[a-z]:\\)[^\s)'"\x60\]<,;]{0,200})|<cwd>((?:/|~|[a-z]:\\)[^<\s]{0,200})</cwd>|^\s*cwd: *((?:/|~|[a-z]:\\)\S{0,200})`)

// cwd is the working directory, as a result or the instructions state it; "" if
// nobody does. The newest statement counts; then pwd's; then the beginning's.
func (s *scene) cwd() string {
	if s.cd != nil {
		return *s.cd
	}
	found := ""
	state := func(text string) bool {
		low := strings.ToLower(text)
		if !strings.Contains(low, "directory") && !strings.Contains(low, "cwd") {
			return false
		}
		all := directories.FindAllStringSubmatch(text, 8)
		for i := len(all) - 1; i >= 0; i-- {
			for _, g := range all[i][1:] {
				if g != "" {
					found = trimmed(g)
					return true
				}
			}
		}
		return false
	}
	if !state(s.content) {
		n := 0
		for i := s.turn - 1; i >= 0 && n < 24 && found == ""; i-- {
			if m := s.list[i]; (m.Role == transcript.RoleTool || m.Role == transcript.RoleUser) && m.End-m.Start <= maxMessage {
				n++
				state(ends(m.Text(), 600, 600))
			}
		}
	}
	if found == "" {
		s.calls("pwd", func(c call) bool {
			if list := invocations(c.command); len(list) == 1 && list[0].program == "pwd" && s.worked(c) {
				if text := strings.TrimSpace(s.list[c.answer].Text()); absolute(text) && len(text) < 300 {
					first, _, _ := strings.Cut(text, "\n")
					found = first
				}
			}
			return found == ""
		})
	}
	for i := 0; i < len(s.list) && i < 4 && found == ""; i++ {
		if m := s.list[i]; m.Role != transcript.RoleAssistant && m.End-m.Start <= maxMessage {
			state(m.Text())
		}
	}
	if !utf8.ValidString(found) {
		found = ""
	}
	s.cd = &found
	return found
}
