package annotate

import (
	"bytes"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// slots are the places in a template that a conversation fills, in the order of the
// documentation in chains.yaml, which says what each one is. A value is bounded, on one
// line, and marked as data where it comes from a tool, a call or a definition; it is ""
// where the conversation does not tell.
var slots = [...]struct {
	name string
	fill func(*failureContext) string
}{
	{"tool", func(s *failureContext) string { return quoted(s.f.Tool) }},
	{"program", func(s *failureContext) string { return quoted(s.program()) }},
	{"cwd", func(s *failureContext) string { return quoted(s.cwd()) }},
	{"path", func(s *failureContext) string { return quoted(s.failedPath()) }},
	{"name", func(s *failureContext) string { return quoted(base(trimmed(s.failedPath()))) }},
	{"parent", func(s *failureContext) string { return quoted(s.parent()) }},
	{"finder", (*failureContext).finder},
	{"writer", (*failureContext).writer},
	{"wrong_tool", func(s *failureContext) string { return quoted(s.wrongTool()) }},
	{"tools", (*failureContext).toolNames},
	{"parameter", (*failureContext).parameter},
	{"edited", func(s *failureContext) string { return quoted(trajectory.PathIn(s.f.Arguments)) }},
	{"place", func(s *failureContext) string { return quoted(s.place()) }},
	{"host", func(s *failureContext) string { return quoted(s.host()) }},
	{"timeout_parameter", (*failureContext).timeoutParameter},
	{"created", func(s *failureContext) string { return listed(s.created(), 4, "and") }},
}

// slotNames are the slots that a template may have.
func slotNames() (out []string) {
	for _, s := range slots {
		out = append(out, s.name)
	}
	return out
}

// fill is a slot's value, "" if the conversation does not tell. Values are computed once.
func (s *failureContext) fill(name string) string {
	v, ok := s.memo[name]
	if ok {
		return v
	}
	for i := range slots {
		if slots[i].name == name {
			v = slots[i].fill(s)
		}
	}
	s.memo[name] = v
	return v
}

// parent is the directory of the path that failed.
func (s *failureContext) parent() string {
	p := s.failedPath()
	if i := strings.LastIndexAny(p, `/\`); i > 0 {
		return p[:i]
	}
	return ""
}

// toolNames is the names of the tools, unless there are many.
func (s *failureContext) toolNames() string {
	names := s.others(s.wrongTool())
	if len(names) > maxNamed {
		return ""
	}
	return listed(names, maxNamed, "and")
}

// parameter is the declared parameter that the message names.
func (s *failureContext) parameter() string {
	if s.runs() {
		return ""
	}
	return quoted(s.declares(func(p trajectory.Parameter) bool { return len(p.Name) > 2 && hasWord(s.f.Line, p.Name) }).Name)
}

var timeNames = recovery.NewPattern(`(?i)time_?out|max_?(?:time|duration|wait)|deadline|yield_time`)

// timeoutParameter is the failing tool's parameter for its time limit.
func (s *failureContext) timeoutParameter() string {
	return quoted(s.declares(func(p trajectory.Parameter) bool { return timeNames.MatchString(p.Name) }).Name)
}

// places are the forms in which messages state where a syntax error is, library the
// files that are not the agent's to correct.
var (
	places  = recovery.NewPattern(`(?:File \\?"|in \\?"|\b)([\w./@+-]{0,150}[\w-]\.[A-Za-z]{1,5})(?:\\?", line |[:(]|:?,? line )(\d{1,7})\b`)
	library = recovery.NewPattern(`^(?:/usr/(?:local/)?lib/|node:|internal/)|/(?:site|dist)-packages/|/node_modules/|/lib/python\d|/go/pkg/mod/|/\.cargo/registry/|://`)
)

// place is where the syntax error is, as the message states it: the last place that is
// in no library and no address.
func (s *failureContext) place() string {
	for _, text := range [...]string{s.f.Line, s.content} {
		for _, m := range slices.Backward(places.FindAllStringSubmatch(text, 64)) {
			if !library.MatchString(m[1]) && strings.ContainsAny(m[1], "abcdefghijklmnopqrstuvwxyz") && !strings.Contains(text, "//"+m[1]) {
				return m[1] + ":" + m[2]
			}
		}
	}
	return ""
}

// hostForms find hosts in commands and messages; user names and passwords are never part
// of what they find.
var hostForms = [...]*recovery.Pattern{
	recovery.NewPattern(`(?i)\b[a-z][a-z0-9+.-]{1,15}://(?:[^@/\s'"]{0,100}@)?([a-z0-9][\w.-]{0,100}(?::\d{1,5})?)`),
	recovery.NewPattern(`\b((?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?|localhost(?::\d{1,5})?)\b`),
	recovery.NewPattern(`(?i)(?:host(?: ?name)?|address|server|ENOTFOUND|EAI_AGAIN|resolve|connect to|lookup|reach)[:\s'"‘“]+([a-z0-9][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,63}){1,8}(?::\d{1,5})?)`),
}

// host is the one that was not reached, as the message or the call states it.
func (s *failureContext) host() string {
	for _, text := range [...]string{s.f.Line, s.f.Arguments} {
		for _, form := range hostForms {
			if m := form.FindStringSubmatch(text); m != nil {
				return strings.TrimRight(m[1], ".-")
			}
		}
	}
	return ""
}

// temporary are names of files that nobody misses.
var temporary = recovery.NewPattern(`(?i)^(?:/private)?/(?:var/)?tmp/|^/var/folders/|\.(?:tmp|temp|log|out|bak|cache|tar|tgz|gz|xz|bz2|zip|zst|o|pyc|core|dump|trace|prof)$|(?:^|/)(?:tmp|temp)[^/]*$`)

// created are temporary files that calls of this session made: a call wrote them without
// trouble, and nothing earlier in the conversation knows them.
func (s *failureContext) created() (out []string) {
	for _, c := range s.steps() {
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
