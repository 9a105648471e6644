package fit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// section is a list that the program makes, in the order of importance.
type section int

const (
	secDemands section = iota
	secErrors
	secEdited
	secCreated
	secDeleted
	secEnd
	secRead
	secEarlier
	secSaid
	secCommands
	secFound
	secQuotes
	sectionCount
)

// layout is how a list is told. What earlier texts say is read by its title.
var layout = [sectionCount]struct {
	title string
	share int  // of the room, in per cent, that it has for itself
	told  bool // beside what a summariser wrote, too
	cut   bool // a line that is too long is cut, otherwise left out
}{
	secDemands:  {"What the user demanded or forbade, word for word", 14, true, false},
	secErrors:   {"Errors that no later success resolved", 9, true, false},
	secEdited:   {"Files edited, the latest last", 9, true, false},
	secCreated:  {"Files created, the latest last", 5, true, false},
	secDeleted:  {"Files deleted", 2, true, false},
	secEnd:      {"What was going on when this part ends", 4, false, true},
	secRead:     {"Files read or named in commands, the latest last", 9, true, false},
	secEarlier:  {"From an earlier summary", 10, false, true},
	secSaid:     {"What the assistant said", 14, false, true},
	secCommands: {"Commands, and what they printed", 10, false, true},
	secFound:    {"Lines that were found in files and other results", 8, false, true},
	secQuotes:   {"The user's messages among them, their beginnings", 6, true, true},
}

// order is the order in which the lists are read.
var order = [...]section{secEarlier, secDemands, secQuotes, secCreated, secEdited, secDeleted, secRead, secCommands, secFound, secErrors, secSaid, secEnd}

// Where a text in place of messages begins; what follows is how many.
const (
	summaryHead = "Summary of "
	digestHead  = "Digest of "
)

// told is the text in place of the removed messages: what the summariser wrote
// in so many tokens, and what the program knows for certain.
func (k *work) told(removed []int, summary string, tokens int, facts bool) string {
	text := summaryHead + k.removedSize(removed) +
		", which were removed here. Messages of the user that stand above were dealt with in them as the summary says.\n\n" + summary
	if facts {
		text += k.gather(removed).render(max(minFacts, tokens*factBytes), true)
	}
	return mark(text)
}

// The room of the program's lists beside a summary, in bytes.
const (
	minFacts  = 4000
	factBytes = 8 // for each token of the summary
)

// digested is the text in place of the removed messages where nobody summarises
// them: parts of what they say, of at most about room bytes.
func (k *work) digested(removed []int, f *facts, room int) string {
	return mark(digestHead + k.removedSize(removed) + ", which were removed here to make room. " +
		"A program made it: every line is quoted from them, shortened where it ends in …, and the rest of what they said is gone. " +
		"Messages that stand above were dealt with in them. Read a file or run a command again where more is needed." + f.render(room, false))
}

// render tells the lists in at most about room bytes: each has a share for
// itself, and what one does not need goes to the others, the most important
// first. Of a list that is too long those lines are told that say most, or, where
// they all say as much, the latest.
func (f *facts) render(room int, beside bool) string {
	lists := f.sections()
	var need, give [sectionCount]int
	left := room
	for s := range sectionCount {
		if beside && !layout[s].told || len(lists[s]) == 0 {
			continue
		}
		need[s] = len(layout[s].title) + 4
		for _, line := range lists[s] {
			need[s] += len(line.text) + lineCost
		}
		give[s] = min(need[s], room*layout[s].share/100)
		left -= give[s]
	}
	for s := range sectionCount {
		more := max(0, min(need[s]-give[s], left))
		give[s] += more
		left -= more
	}
	var b strings.Builder
	for _, s := range order {
		if give[s] > 0 {
			listed(&b, layout[s].title, lists[s], give[s], layout[s].cut)
		}
	}
	return b.String()
}

// lineCost is what a line costs besides its text: a mark at its beginning, and
// its end as JSON in JSON has it.
const lineCost = 5

// listed writes a list: those of its lines that have room.
func listed(b *strings.Builder, title string, lines []entry, room int, cut bool) {
	best := make([]int, len(lines))
	for i := range lines {
		best[i] = len(lines) - 1 - i
	}
	slices.SortStableFunc(best, func(i, j int) int { return cmp.Compare(lines[j].score, lines[i].score) })
	keep := make([]string, len(lines))
	left := len(lines)
	room -= len(title) + 4
	for _, i := range best {
		line := lines[i].text
		if n := room - lineCost - len("…"); len(line)+lineCost > room && cut && n > 80 {
			line = cutBefore(line, n) + "…"
		}
		if len(line)+lineCost <= room {
			keep[i] = line
			room -= len(line) + lineCost
			left--
		}
	}
	if left == len(lines) {
		return
	}
	b.WriteString("\n\n" + title + ":")
	if left > 0 {
		b.WriteString("\n(" + strconv.Itoa(left) + " left out)")
	}
	for _, line := range keep {
		if line != "" {
			b.WriteString("\n- " + line)
		}
	}
}

// summary reports whether the message is a text that an earlier fitting put in
// place of others, and which the client now has in its history.
func (it *item) summary() bool {
	if it.result || it.Role != transcript.RoleUser && it.Role != transcript.RoleAssistant || !compressed(it.text) {
		return false
	}
	text := gjson.Get(it.text, "summary").String()
	return strings.HasPrefix(text, summaryHead) || strings.HasPrefix(text, digestHead)
}

// maxEarlier is how many bytes of one line of an earlier summary are kept.
const maxEarlier = 600

// fold takes over what an earlier text tells. beside says that its messages are
// at hand, so that only what somebody else wrote in it is news.
func (f *facts) fold(text string, beside bool) {
	_, body, _ := strings.Cut(gjson.Get(text, "summary").String(), "\n")
	now := secEarlier
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if s := titled(line); s >= 0 {
			now = s
			continue
		}
		if line == "" || now != secEarlier && (beside || !strings.HasPrefix(line, "- ")) {
			continue
		}
		f.again(now, oneLine(strings.TrimPrefix(line, "- "), maxEarlier))
	}
}

// titled is the list that a line is the title of, -1 if it is none.
func titled(line string) section {
	for s := range sectionCount {
		if title, ok := strings.CutSuffix(line, ":"); ok && title == layout[s].title {
			return s
		}
	}
	return -1
}

// again notes a line of a list that an earlier text had.
func (f *facts) again(s section, line string) {
	switch s {
	case secRead:
		f.touch(line, actRead)
	case secCreated:
		f.touch(line, actCreated)
	case secEdited:
		f.touch(line, actEdited)
	case secDeleted:
		f.touch(line, actDeleted)
	case secErrors:
		f.n++
		label, _, _ := strings.Cut(line, "): ")
		_, about, _ := strings.Cut(label, " (")
		attempt := attemptOf(about)
		if attempt == "" {
			attempt = line
		}
		f.told[label+")"] = attempt
		f.failing[attempt] = entry{at: f.n, text: line}
	case secCommands:
		command, _, _ := strings.Cut(line, " -> ")
		f.ran(command, line)
	case secEnd:
		f.list(secSaid, line)
	default:
		f.list(s, line)
	}
}
