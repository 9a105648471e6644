package fit

import (
	"cmp"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Bounds of what the program itself tells of messages that go, in bytes.
const (
	maxQuoted  = 400 // of one quoted message
	maxCommand = 120 // of one command
	maxOutcome = 200 // of what came out of it
	maxFound   = 160 // of what another result said
	maxSaid    = 240 // of one sentence
	maxKinds   = 600 // entries of each list, before it is bounded in bytes
)

// act is what was done to a file.
type act uint8

const (
	actRead act = iota
	actCreated
	actEdited
	actDeleted
)

// touched is what became of a file.
type touched struct {
	at  int // when it was last touched, in touches
	act act
}

// entry is a line of a list: when it was noted, and how much it says.
type entry struct {
	at    int
	text  string
	score float64
}

// facts are what the program knows for certain of messages that go: taken from
// them word for word, never concluded.
type facts struct {
	lists   [sectionCount][]entry // those that are complete as they were noted
	known   map[string]bool       // lines of these
	files   map[string]touched
	failing map[string]entry  // the last error of what was tried and did not succeed since, by attempt
	told    map[string]string // attempts of errors that an earlier summary told, by label
	runs    map[string]entry  // the last run of each command
	n       int
	weighed excerpts
}

// gather reads messages that go, in order. What earlier summaries in their place
// say that the messages do not is kept too.
func (k *work) gather(removed []int) *facts {
	f := &facts{weighed: k.v.excerpts, known: map[string]bool{}, files: map[string]touched{}, failing: map[string]entry{}, told: map[string]string{}, runs: map[string]entry{}}
	cuts, left := k.cuts, removed
	for i := removed[0]; i < len(k.v.items); i++ {
		it := &k.v.items[i]
		if len(left) == 0 || left[0] != i {
			if it.result && it.caller >= 0 { // it is kept, and says how the matter stands
				f.settled(&it.call)
			}
			continue
		}
		left = left[1:]
		for len(cuts) > 0 && cuts[0].start <= i {
			if i < cuts[0].end {
				f.fold(cuts[0].text, true)
			}
			cuts = cuts[1:]
		}
		f.message(it)
	}
	f.ending(k.v, removed)
	return f
}

// message notes what one message says.
func (f *facts) message(it *item) {
	switch {
	case it.summary():
		f.fold(it.text, false)
	case it.result:
		if it.caller >= 0 {
			f.outcome(it)
		}
	case it.text == "" || compressed(it.text):
	case it.Role == transcript.RoleUser:
		list, rest := demands(it.text)
		for _, d := range list {
			f.list(secDemands, d)
		}
		if rest {
			f.list(secQuotes, oneLine(it.text, maxQuoted))
		}
	case it.Role == transcript.RoleAssistant:
		for s := range sentences(it.text) {
			f.list(secSaid, s)
		}
	}
}

// list adds a line to a list, once.
func (f *facts) list(s section, line string) {
	worth := 0.0
	if s == secSaid || s == secFound {
		worth = salience(line)
	}
	f.note(s, line, worth)
}

// note adds a line to a list with what it is worth, once.
func (f *facts) note(s section, line string, worth float64) {
	if f.known[line] || len(f.lists[s]) == maxKinds {
		return
	}
	f.known[line] = true
	f.lists[s] = append(f.lists[s], entry{at: len(f.lists[s]), text: line, score: worth})
}

// ran notes a run of a command, which takes the place of earlier ones.
func (f *facts) ran(command, line string) {
	f.n++
	_, printed, _ := strings.Cut(line, " -> ")
	f.runs[command] = entry{f.n, line, salience(printed)}
}

// touch notes a file. Reading does not change what was done to it.
func (f *facts) touch(file string, a act) {
	f.n++
	was, known := f.files[file]
	switch {
	case a == actRead && known:
		a = was.act
	case a == actCreated && known && was.act != actDeleted:
		a = actEdited
	}
	f.files[file] = touched{f.n, a}
}

// deletes are commands that delete files.
var deletes = regexp.MustCompile(`(?:^|[;&|\n]\s*)(?:git\s+)?rm\s([^;&|<>\n]*)`)

// looks are commands that only look: what they showed is gone anyway.
var looks = regexp.MustCompile(`^\s*(?:cat|nl|head|tail|less|ls|find|tree|grep|rg|egrep|sed -n|wc|pwd|which|echo|stat|file|sleep|git (?:log|show|diff|status|blame))\b`)

// settled forgets the error of a call that was made again.
func (f *facts) settled(c *callInfo) {
	delete(f.failing, c.attempt())
	if attempt, ok := f.told[c.label()]; ok {
		delete(f.failing, attempt)
	}
}

// outcome notes a call by its result.
func (f *facts) outcome(it *item) {
	c := &it.call
	f.settled(c)
	f.n++
	if it.failed() {
		delete(f.runs, oneLine(c.command, maxCommand))
		f.failing[c.attempt()] = entry{at: f.n, text: c.label() + ": " + cmp.Or(errorIn(it.text), oneLine(it.text, maxErrorLine))}
		return
	}
	a := actRead
	switch words := nameWords(c.Name); {
	case slices.Contains(words, "delete") || slices.Contains(words, "remove"):
		a = actDeleted
	case c.kind == kindEdit:
		a = actEdited
	case c.kind == kindWrite:
		a = actCreated
	}
	for _, file := range c.paths {
		switch {
		case a == actEdited && strings.Contains(c.text, "*** Delete File: "+file):
			f.touch(file, actDeleted)
		case a == actEdited && strings.Contains(c.text, "*** Add File: "+file):
			f.touch(file, actCreated)
		default:
			f.touch(file, a)
		}
	}
	if c.kind != kindShell {
		f.found(it)
		return
	}
	for _, file := range filesIn(c.command) {
		f.touch(file, actRead)
	}
	for _, m := range deletes.FindAllStringSubmatch(cutBefore(c.command, 4<<10), 8) {
		for _, file := range filesIn(m[1]) {
			f.touch(file, actDeleted)
		}
	}
	if c.command == "" || looks.MatchString(lead.ReplaceAllString(c.command, "")) {
		f.found(it)
		return
	}
	command := oneLine(c.command, maxCommand)
	f.ran(command, command+" -> "+f.came(it.text))
}

// found notes what a result says that nobody can guess.
func (f *facts) found(it *item) {
	if it.call.kind == kindEdit || it.call.kind == kindWrite || compressed(it.text) {
		return
	}
	told := excerptLines(f.weighed.of(it.text, 3*maxFound))
	for i, line := range told {
		worth := salience(line)
		switch {
		case i == len(told)-1 && worth > 0 && !exitStatus.MatchString(line): // what it came to
			worth += ends
		case worth < 2.5:
			continue
		}
		f.note(secFound, line, worth)
	}
}

// excerptLines are the lines of an excerpt, each bounded.
func excerptLines(text string) (out []string) {
	for line := range strings.Lines(text) {
		if line = oneLine(line, maxFound); line != gap && line != "" {
			out = append(out, line)
		}
	}
	return out
}

// maxErrorLine is how many bytes of a line that names an error are quoted.
const maxErrorLine = 160

// errorIn is what a failed result says in a line or two: the first line that
// names an error, and the last; "" if none does.
func errorIn(text string) string {
	first, last := "", ""
	if len(text) > 2*maxSearched {
		text = cutBefore(text, maxSearched) + "\n" + text[cutAfter(text, len(text)-maxSearched):]
	}
	for line := range strings.Lines(text) {
		if line = oneLine(line, maxErrorLine); line == "" || exitStatus.MatchString(line) || !errorLine.MatchString(line) {
			continue
		}
		if first == "" {
			first = line
		} else {
			last = line
		}
	}
	if last == "" || last == first {
		return first
	}
	return first + " … " + last
}

// came is how a command ended: its exit code, if it is told, and what it printed
// that says most.
func (f *facts) came(text string) string {
	out := ""
	if code := lastMatch(exitStatus, text[cutAfter(text, len(text)-600):]); code != "" {
		out = "exit " + code + ", "
	}
	if e := errorIn(text); e != "" {
		return out + "printed " + oneLine(e, maxOutcome)
	}
	lines := strings.Split(f.weighed.of(text, maxOutcome), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool {
		return l == gap || l == "(no output)" || compressed(l) || exitStatus.MatchString(l) || countWord(l) == 0
	})
	if len(lines) == 0 {
		return out + "no output"
	}
	return out + "printed " + oneLine(strings.Join(lines, " … "), maxOutcome)
}

// announces is how sentences begin that say what is done next, or are polite: the
// calls that follow say the former, and nobody needs the latter.
var announces = regexp.MustCompile(`(?i)^\W*(?:now,? )?(?:let me|let's|let us|i'll|i will|i'm going to|i am going to|now i|now let|next,? i|first,? i|i need to (?:see|check|look|find)|i can see|here(?:'s| is) (?:the|what)|perfect|great|excellent|good (?:question|idea|point|catch)|you(?:'re| are) (?:absolutely )?right|sorry|sure|of course|okay|ok|done|thank)\b`)

// sentences are what of a text of the assistant may be quoted: sentences and lines
// that say something, without announcements and courtesies.
func sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		text := cutBefore(text, maxReadUser)
		start, fenced := 0, false
		for _, end := range append(sentenceEnd.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
			s := strings.TrimSpace(text[start:end[1]])
			start = end[1]
			if strings.HasPrefix(s, "```") {
				fenced = !fenced
			}
			if s = oneLine(s, maxSaid); fenced || letters(s) < 12 || imitates(s) || announces.MatchString(s) && salience(s) < 3 {
				continue
			}
			if !yield(s) {
				return
			}
		}
	}
}

// imitates reports text that holds what a call or a mark looks like.
func imitates(text string) bool {
	lower := strings.ToLower(text)
	return slices.ContainsFunc(protocol, func(p string) bool { return strings.Contains(lower, p) })
}

// ending notes what was going on when the removed part ends.
func (f *facts) ending(v *view, removed []int) {
	for n := len(removed) - 1; n >= 0; n-- {
		it := &v.items[removed[n]]
		if it.Role != transcript.RoleAssistant {
			continue
		}
		if text, _, _ := strings.Cut(cutBefore(it.text, 4*maxQuoted), "```"); letters(text) > 0 && !imitates(text) {
			f.list(secEnd, oneLine(text, maxQuoted))
		}
		for _, c := range it.calls[:min(len(it.calls), 4)] {
			f.list(secEnd, "Called "+c.label())
		}
		return
	}
}

// sections are the lists as they are told.
func (f *facts) sections() (out [sectionCount][]entry) {
	out = f.lists
	kinds := map[section][]entry{secErrors: values(f.failing), secCommands: values(f.runs)}
	for file, t := range f.files {
		s := [...]section{actRead: secRead, actCreated: secCreated, actEdited: secEdited, actDeleted: secDeleted}[t.act]
		kinds[s] = append(kinds[s], entry{at: t.at, text: file})
	}
	for s, list := range kinds {
		slices.SortFunc(list, func(a, b entry) int { return cmp.Or(a.at-b.at, strings.Compare(a.text, b.text)) })
		out[s] = append(slices.Clone(f.lists[s]), list...)
	}
	return out
}

func values(m map[string]entry) (list []entry) {
	for _, e := range m {
		list = append(list, e)
	}
	return list
}

// removedSize says how much goes, for a reader.
func (k *work) removedSize(removed []int) string {
	chars := 0
	for _, i := range removed {
		chars += utf8.RuneCountInString(k.v.items[i].text)
		for _, c := range k.v.items[i].calls {
			chars += utf8.RuneCountInString(c.text)
		}
	}
	return strconv.Itoa(len(removed)) + " earlier messages of this conversation (" + strconv.Itoa(chars) + " characters)"
}

// filesIn are words of a command that look like files.
func filesIn(command string) (out []string) {
	for _, w := range strings.FieldsFunc(cutBefore(command, 4<<10), func(r rune) bool { return strings.ContainsRune(" \t\n;|&<>()'\"`=,", r) }) {
		dot := strings.LastIndexByte(w, '.')
		if len(w) < 4 || len(w) > 200 || w[0] == '-' || dot <= 0 || dot < len(w)-7 || dot == len(w)-1 || strings.ContainsAny(w, "*$\\{}:") || strings.Trim(w[dot+1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" || w[dot+1] <= '9' {
			continue
		}
		if out = append(out, cleanPath(w)); len(out) == 16 {
			break
		}
	}
	return out
}
