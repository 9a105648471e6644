package annotate

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// EditFailed is the chain for edits that an editor did not apply. The failure is
// one of the ten categories (invalid_arguments); what helps is another thing
// than with other arguments, and it is the commonest failure of coding agents.
const EditFailed = "edit_failed"

// editRefused is the rule of results in which an editor refused an edit.
const editRefused = "edit-refused"

// chainOf names the chain for a failure.
func chainOf(f *recovery.ToolFailure) string {
	if f.Rule == editRefused && f.Category == recovery.InvalidArguments {
		return EditFailed
	}
	return string(f.Category)
}

// Bounds of how an edit is compared with what the conversation shows.
const (
	maxOldLines  = 60 // of the text to replace
	maxFileLines = 4000
	maxViews     = 4   // results that are looked at
	maxCompared  = 200 // of a line, in bytes
)

// oldTexts are what editors call the text to replace, and patches the call's only text.
var (
	oldTexts = [...]string{"old_string", "oldString", "old_str", "old_text", "oldText", "old", "search", "search_text", "target", "find", "original", "old_content"}
	patches  = [...]string{"diff", "patch", "input", "patch_text", "patchText", "changes"}
)

// oldText is the text that the failing edit wanted to replace, "" if the call
// does not tell.
func (s *scene) oldText() string {
	if !s.args.IsObject() {
		return expectedByPatch(s.f.Arguments)
	}
	if old := argument(s.f.Arguments, oldTexts[:]...); old != "" {
		return old
	}
	found := ""
	s.args.Get("edits").ForEach(func(_, e gjson.Result) bool {
		old := argument(e.Raw, oldTexts[:]...)
		if found == "" || old != "" && strings.Contains(s.content, old) { // which one it was, some say
			found = old
		}
		return true
	})
	if found != "" {
		return found
	}
	return expectedByPatch(argument(s.f.Arguments, patches[:]...))
}

// expectedByPatch is the text that a patch expects to find: the first search
// block, or the first hunk's lines without those that it adds.
func expectedByPatch(patch string) string {
	if _, block, ok := strings.Cut(patch, "SEARCH\n"); ok {
		block, _, _ = strings.Cut(block, "\n=======")
		return block
	}
	var b strings.Builder
	inside := false
	for line := range strings.Lines(patch) {
		if strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "***") || strings.HasPrefix(line, "---") || strings.HasPrefix(line, "+++") {
			if b.Len() > 0 {
				break
			}
			inside = strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "*** Update")
			continue
		}
		if inside && (line[0] == ' ' || line[0] == '-') {
			b.WriteString(line[1:])
		}
	}
	return b.String()
}

// difference is the first line in which a text to replace differs from the file,
// as the conversation last showed it.
type difference struct {
	given, stands string // the call's line, and the file's; empty if nothing is known
	blank         bool   // they differ in white space alone
}

// numbered is what readers put before the lines of a file.
var numbered = recovery.NewPattern(`^\s{0,8}\d{1,6}(?:[:|→]|\t| \| )`)

// differs compares the text to replace with the latest results that show its file.
func (s *scene) differs() (d difference) {
	if s.compared != nil {
		return *s.compared
	}
	s.compared = &d
	old := lines(s.oldText(), maxOldLines)
	old = slices.DeleteFunc(old, func(l string) bool { return strings.TrimSpace(l) == "" })
	name := base(trimmed(s.editedPath()))
	if len(old) == 0 || name == "" {
		return d
	}
	views := 0
	s.results("", func(i int, text string) bool {
		c, ok := s.callFor(i)
		if !ok || !strings.Contains(c.args, name) {
			return true
		}
		views++
		seen := lines(text, maxFileLines)
		for k, l := range seen {
			seen[k] = numbered.ReplaceAllString(l, "")
		}
		for _, l := range old {
			if slices.Contains(seen, l) {
				continue
			}
			if d = closest(l, seen); d.stands != "" {
				return false
			}
		}
		return views < maxViews
	})
	return d
}

// closest is the line that one was meant to be.
func closest(line string, seen []string) (d difference) {
	want := strings.Join(strings.Fields(line), " ")
	if len(want) < 4 || len(want) > maxCompared {
		return d
	}
	least := min(12, max(1, len(want)/4)) + 1
	for _, l := range seen {
		have := strings.Join(strings.Fields(l), " ")
		if have == want {
			return difference{line, l, true}
		}
		if len(have) > maxCompared {
			continue
		}
		if n := trajectory.Distance(want, have, least-1); n < least {
			d, least = difference{given: strings.TrimSpace(line), stands: strings.TrimSpace(l)}, n
		}
	}
	return d
}

// lines is up to max lines of a text, without their ends.
func lines(text string, max int) (out []string) {
	for l := range strings.Lines(text) {
		if len(out) == max {
			break
		}
		out = append(out, strings.TrimRight(l, "\r\n"))
	}
	return out
}

// editedPath is the file of the failing edit.
func (s *scene) editedPath() string {
	if p := argument(s.f.Arguments, pathParameters[:]...); p != "" {
		return p
	}
	patch := s.f.Arguments
	if s.args.IsObject() {
		patch = argument(s.f.Arguments, patches[:]...)
	}
	if m := patched.FindStringSubmatch(patch); m != nil {
		return m[1]
	}
	return ""
}

// patched is the file that a patch changes.
var patched = recovery.NewPattern(`(?m)^(?:\*\*\* Update File: |\+\+\+ (?:b/)?)([^\s*][^\n\t]{0,300})`)

// severalTimes says how often the text to replace stands in the file.
var severalTimes = recovery.NewPattern(`(?i)\b(\d{1,5}) (?:exact )?(?:matches|occurrences|times)\b|\bfound (\d{1,5})\b|\b(multiple|more than on)`)

// replaceAll are parameters that make an editor replace every occurrence.
var replaceAll = recovery.NewPattern(`(?i)^(?:replace_?all|all(?:_occurrences)?|expected_?replacements|allow_?multiple)$`)

func (s *scene) editValue(name slot) string {
	switch name {
	case slotEdited:
		return quoted(s.editedPath())
	case slotGiven, slotStands, slotBlank:
		d := s.differs()
		switch {
		case d.stands == "" || d.blank != (name == slotBlank):
			return ""
		case name == slotStands:
			return quoted(d.stands)
		}
		return quoted(d.given)
	case slotEvery:
		def, _ := s.definition(s.f.Tool)
		for _, p := range parameters(def) {
			if replaceAll.MatchString(p.name) {
				return quoted(p.name)
			}
		}
		return ""
	}
	m := severalTimes.FindStringSubmatch(s.f.Line)
	switch {
	case m == nil || m[1] == "0" || m[2] == "0" || m[1] == "1" || m[2] == "1":
		return ""
	case m[3] != "":
		return "more than once"
	}
	return m[1] + m[2] + " times"
}
