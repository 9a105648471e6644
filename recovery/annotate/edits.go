package annotate

import (
	"slices"
	"strings"
	"unicode"

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
	if f.Rule == editRefused && f.Category == recovery.InvalidArguments || f.Category == recovery.SyntaxError && illFormed.MatchString(f.Line) {
		return EditFailed
	}
	return string(f.Category)
}

// Bounds of how an edit is compared with what the conversation shows.
const (
	maxOldLines  = 60 // of the text to replace
	maxFileLines = 4000
	maxViews     = 4   // results that are looked at
	maxLacking   = 8   // lines of the text to replace that nothing is like
	maxCompared  = 200 // of a line, in bytes
)

// What editors call the text to replace, what takes its place, and a patch.
var (
	oldTexts = []string{"old_string", "oldString", "old_str", "old_text", "oldText", "old", "search", "search_text", "target", "find", "original", "old_content"}
	newTexts = []string{"new_string", "newString", "new_str", "new_text", "newText", "new", "replace", "replacement"}
	patches  = []string{"diff", "patch", "input", "patch_text", "patchText", "changes"}
)

// oldText is the text that the failing edit wanted to replace, "" if the call
// does not tell.
func (s *scene) oldText() (found string) {
	if !s.args.IsObject() {
		return expectedByPatch(s.f.Arguments)
	}
	if old := text(s.args, oldTexts...); old != "" {
		return old
	}
	s.args.Get("edits").ForEach(func(_, e gjson.Result) bool {
		old := text(e, oldTexts...)
		if found == "" || old != "" && strings.Contains(s.content, old) { // which one it was, some say
			found = old
		}
		return true
	})
	if found == "" {
		found = expectedByPatch(text(s.args, patches...))
	}
	return found
}

// expectedByPatch is the text that a patch expects to find: the first search
// block, or the first hunk's lines without those that it adds.
func expectedByPatch(patch string) string {
	if _, block, ok := strings.Cut(patch, "SEARCH\n"); ok {
		block, _, _ = strings.Cut(block, "\n=======")
		if _, rest, ok := strings.Cut(block, "\n-------\n"); ok { // the lines before say where
			block = rest
		}
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
var numbered = recovery.NewPattern(`^\s{0,8}\d{1,6}(?:[:|→]|\t| \| ?)`)

// differs is the difference, where it is one in white space alone, or is not, as asked for.
func (s *scene) differs(blank bool) difference {
	if s.compared == nil {
		d := s.compare()
		s.compared = &d
	}
	if s.compared.blank != blank {
		return difference{}
	}
	return *s.compared
}

// compare looks for the text to replace in the latest results that show its file,
// and in what the editor printed.
func (s *scene) compare() (d difference) {
	old := slices.DeleteFunc(lines(s.oldText(), maxOldLines), func(l string) bool { return strings.TrimSpace(l) == "" })
	name := base(trimmed(s.editedPath()))
	if len(old) == 0 || name == "" {
		return d
	}
	compare := func(shown string) bool {
		seen := lines(shown, maxFileLines)
		for k, l := range seen {
			seen[k] = numbered.ReplaceAllString(l, "")
		}
		lacking := 0
		for _, l := range old {
			if slices.Contains(seen, l) {
				continue
			}
			if d = closest(l, seen); d.stands != "" {
				return true
			}
			if lacking++; lacking == maxLacking {
				break
			}
		}
		return false
	}
	views := 0
	s.steps()
	s.results("", func(i int, shown string) bool {
		c := s.answers[i]
		if c == nil || !strings.Contains(c.Arguments, name) || text(object(c.Arguments), oldTexts...) != "" && !s.worked(c) {
			return true // or an edit that failed, which may repeat what it was given
		}
		views++
		return !compare(shown) && views < maxViews
	})
	if d.stands == "" {
		compare(strings.Replace(s.content, strings.TrimRight(s.oldText(), "\n"), "", 1)) // some repeat it
	}
	return d
}

// closest is the line that one was meant to be: by its letters, or else the one
// with most of its words.
func closest(line string, seen []string) (d difference) {
	want := strings.Join(strings.Fields(line), " ")
	if len(want) < 4 || len(want) > maxCompared {
		return d
	}
	words := wordsOf(want)
	least, most := min(12, max(1, len(want)/4))+1, 0.6
	alike := ""
	for _, l := range seen {
		if len(l) > maxCompared {
			continue
		}
		have := strings.Join(strings.Fields(l), " ")
		if have == want {
			return difference{line, l, true}
		}
		if n := trajectory.Distance(want, have, least-1); n < least {
			d, least = difference{given: strings.TrimSpace(line), stands: strings.TrimSpace(l)}, n
		}
		if share := shared(words, wordsOf(have)); share >= most && len(words) > 1 {
			most, alike = share+0.01, strings.TrimSpace(l)
		}
	}
	if d.stands == "" && alike != "" {
		d = difference{given: strings.TrimSpace(line), stands: alike}
	}
	return d
}

func wordsOf(line string) []string {
	return strings.FieldsFunc(strings.ToLower(line), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// shared is the share of the words that the others have, too.
func shared(words, others []string) float64 {
	n := 0
	for _, w := range words {
		if slices.Contains(others, w) {
			n++
		}
	}
	return float64(n) / float64(max(len(words), 1))
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

// patched is the file that a patch changes.
var patched = recovery.NewPattern(`(?m)^(?:\*\*\* Update File: |\+\+\+ (?:b/)?)([^\s*][^\n\t]{0,300})`)

// editedPath is the file of the failing edit.
func (s *scene) editedPath() string {
	if p := trajectory.PathIn(s.f.Arguments); p != "" {
		return p
	}
	patch := s.f.Arguments
	if s.args.IsObject() {
		patch = text(s.args, patches...)
	}
	if m := patched.FindStringSubmatch(patch); m != nil {
		return m[1]
	}
	return ""
}

// illFormed is what editors say of an edit that they could not even read.
var illFormed = recovery.NewPattern(`(?i)(?:unexpected end of sequence|diff block is malformed|invalid patch|invalid hunk|malformed (?:diff|patch)|` +
	`must (?:begin|start|be|end)\b.{0,40}\*\*\* (?:begin|end)|expected '?(?:=======|[<>]{7})).{0,60}`)

// malformed is what is wrong with the form of the edit itself.
func (s *scene) malformed() string {
	return illFormed.FindString(s.content[:min(len(s.content), 400)])
}

// otherTool is how editors say that another tool comes first, or takes such files.
var otherTool = recovery.NewPattern(`\b(?:[Uu]se|[Cc]all) (?:the )?['"\x60]?([A-Za-z][\w-]{2,63})['"\x60]?(?: tool)? (?:tool|first|to|before|instead)\b`)

// asked is the tool that the message asks for, but for one that reads.
func (s *scene) asked() string {
	m := otherTool.FindStringSubmatch(s.content[:min(len(s.content), 400)])
	if m == nil || m[1] == s.f.Tool || s.usedFor(m[1], trajectory.UseRead) {
		return ""
	}
	return m[1]
}

// unchanged is the file of an edit that replaces a text by itself.
func (s *scene) unchanged() string {
	if old := text(s.args, oldTexts...); old == "" || old != text(s.args, newTexts...) {
		return ""
	}
	return s.editedPath()
}

// severalTimes says how often the text to replace stands in the file.
var severalTimes = recovery.NewPattern(`(?i)\b(\d{1,5}) (?:exact )?(?:matches|occurrences|times)\b|\bfound (\d{1,5})\b|` +
	`\b(multiple (?:times|matches|occurrences|places)|(?:matches|found) multiple|more than on)`)

// times is how often the text to replace stands in the file, if more than once.
func (s *scene) times() string {
	m := severalTimes.FindStringSubmatch(s.f.Line)
	if m == nil {
		m = severalTimes.FindStringSubmatch(s.content[:min(len(s.content), 400)])
	}
	switch {
	case m == nil || slices.Contains([]string{"0", "1"}, m[1]+m[2]):
		return ""
	case m[3] != "":
		return "more than once"
	}
	return m[1] + m[2] + " times"
}

// replaceAll are parameters that make an editor replace every occurrence.
var replaceAll = recovery.NewPattern(`(?i)^(?:replace_?all|all(?:_occurrences)?|expected_?replacements|allow_?multiple)$`)
