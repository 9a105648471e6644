package annotate

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// slots are the placeholders of templates, in the order of the documentation in chains.yaml, which describes
// each one. A value is one line of limited length, quoted as data if it comes from a tool, a call or a
// definition, and "" if the conversation does not contain it.
var slots = [...]struct {
	name string
	fill func(*failureContext) string
}{
	{"tool", func(s *failureContext) string {
		return quoted(cmp.Or(text(s.args, "tool_name", "action_name"), s.f.Tool))
	}},
	{"program", func(s *failureContext) string { return quoted(s.program()) }},
	{"cwd", func(s *failureContext) string { return quoted(s.cwd()) }},
	{"path", func(s *failureContext) string { return quoted(s.failedPath()) }},
	{"name", func(s *failureContext) string { return quoted(base(trimmed(s.failedPath()))) }},
	{"outside", func(s *failureContext) string { return quoted(s.outside()) }},
	{"parent", func(s *failureContext) string { return quoted(s.parent()) }},
	{"finder", (*failureContext).finder},
	{"writer", (*failureContext).writer},
	{"wrong_tool", func(s *failureContext) string { return quoted(s.wrongTool()) }},
	{"tools", (*failureContext).toolNames},
	{"parameter", (*failureContext).parameter},
	{"edited", func(s *failureContext) string { return quoted(trajectory.PathIn(s.f.Arguments)) }},
	{"timeout_parameter", (*failureContext).timeoutParameter},
	{"as_root", func(s *failureContext) string { return quoted(s.asRoot()) }},
	{"interrupted", func(s *failureContext) string { return quoted(s.interrupted()) }},
	{"reader", func(s *failureContext) string { return quoted(s.reader()) }},
	{"created", func(s *failureContext) string { return listed(s.created(), 4, "and") }},
}

// slotNames returns the names of the slots that a template may use.
func slotNames() (out []string) {
	for _, s := range slots {
		out = append(out, s.name)
	}
	return out
}

// fill returns a slot's value, or "" if the conversation does not contain it.
func (s *failureContext) fill(name string) string {
	for i := range slots {
		if slots[i].name == name {
			return slots[i].fill(s)
		}
	}
	return ""
}

// outside returns the failed path if it is not below the working directory and another one can take its place: not that
// of a program, nor one of a package manager.
func (s *failureContext) outside() string {
	p := s.failedPath()
	own := slices.ContainsFunc(s.programs, func(v trajectory.Invocation) bool { return v.Words[0] == p })
	if cwd := s.cwd(); own || strings.HasPrefix(p, "/var/lib/") || cwd != "" && strings.HasPrefix(join(s.startDir(), p), strings.TrimRight(cwd, "/")+"/") {
		return ""
	}
	return p
}

// parent returns the directory of the failed path.
func (s *failureContext) parent() string {
	p := trimmed(s.failedPath())
	if i := strings.LastIndexAny(p, `/\`); i > 0 {
		return p[:i]
	}
	return ""
}

// toolNames lists the names of the tools, or returns "" if there are too many.
func (s *failureContext) toolNames() string {
	names := s.others(s.wrongTool())
	if len(names) > maxNamed {
		return ""
	}
	return listed(names, maxNamed, "and")
}

// parameter returns the only declared parameter that the error message names.
func (s *failureContext) parameter() (name string) {
	def, _ := s.definition(s.f.Tool)
	for _, p := range def.Params {
		if len(p.Name) < 3 || !trajectory.HasWord(s.f.Line, p.Name) {
			continue
		}
		if name != "" || s.runs() {
			return ""
		}
		name = quoted(p.Name)
	}
	return name
}

var timeNames = recovery.NewPattern(`(?i)time_?out|max_?(?:time|duration|wait)|deadline|yield_time`)

// timeoutParameter returns the failing tool's parameter for its time limit.
func (s *failureContext) timeoutParameter() string {
	return quoted(s.findParameter(func(p trajectory.Parameter) bool { return timeNames.MatchString(p.Name) }).Name)
}

// asRoot returns the missing program if it runs others as root.
func (s *failureContext) asRoot() string {
	if program := s.program(); program == "sudo" || program == "doas" {
		return program
	}
	return ""
}

// inline matches an interpreter's message about code in its command line or input.
var inline = recovery.NewPattern(`File "<(?:string|stdin)>"|\[eval\]|\bat -e line\b`)

// reader returns what did not understand the code in the command line: the shell, or a program.
func (s *failureContext) reader() string {
	name, _, says := strings.Cut(shellHead.FindString(s.f.Line), ":")
	switch {
	case says:
		return path.Base(name)
	case inline.MatchString(s.content):
		return s.program()
	}
	return ""
}

// pythonRun matches a command that runs Python, with a time limit or not.
var pythonRun = recovery.NewPattern(`^(?:timeout (?:-\S+ )*\d+\w? )?((?:\S*/)?python3? \S.*)$`)

// interrupted returns the failing Python command with an interrupt in place of the time limit.
func (s *failureContext) interrupted() string {
	v := s.longest()
	if v == nil {
		return ""
	}
	m := pythonRun.FindStringSubmatch(v.Text)
	if m == nil || strings.ContainsAny(v.Text, "\n<&") {
		return ""
	}
	line := s.prepared(*v, "timeout -s INT 20 "+m[1])
	if len(line) > maxQuoted || !s.permitted(line) {
		return ""
	}
	return line
}

// temporary matches names of files that can be deleted safely.
var temporary = recovery.NewPattern(`(?i)^(?:/private)?/(?:var/)?tmp/|^/var/folders/|\.(?:tmp|temp|log|out|bak|cache|tar|tgz|gz|xz|bz2|zip|zst|o|pyc|core|dump|trace|prof)$|(?:^|/)(?:tmp|temp)[^/]*$`)

// created returns temporary files that this session created: a call wrote them without trouble, and no earlier
// message mentions them.
func (s *failureContext) created() (out []string) {
	for _, c := range s.earlierCalls() {
		for _, f := range c.Files() {
			if f.Act != trajectory.Created || len(out) == 4 || !temporary.MatchString(f.Path) || slices.Contains(out, f.Path) || elevated.MatchString(c.Line()) {
				continue
			}
			known := slices.ContainsFunc(s.list[:c.at], func(m transcript.Message) bool {
				return m.Role != transcript.RoleAssistant && bytes.Contains(m.Raw(), []byte(base(f.Path)))
			})
			if !known && s.worked(c) {
				out = append(out, f.Path)
			}
		}
	}
	return out
}
