package fit

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// The beginnings of a text that replaces messages; their number follows.
const (
	summaryHead = "Summary of "
	digestHead  = "Digest of "
)

// line is a candidate line of a digest. A line with no worth is left out.
type line struct {
	text  string
	worth float64
}

// The worth of lines: fixed for facts and commands, for all others a factor of salience.
const (
	worthFact      = 30 // the user's demands, files, open errors
	worthSaid      = 3
	worthResult    = 1
	worthWritten   = 0.3 // arguments: what was written can be read again
	worthCommand   = 0.5
	courtesyFactor = 0.1 // further factor for announcements and politeness
)

// digest collects the lines of messages to be removed, in their order.
type digest struct {
	lines          []line
	byText         map[string]int // index of the last line with a text
	fileLines      map[string]int // index of the line of each file
	openErrors     map[string]int // index of the line of each unresolved error, by attempt
	earlierSummary string         // a model's words from an earlier replacement
}

// digest collects the lines of the messages to be removed, and keeps the model's words of an
// earlier replacement.
func (k *revision) digest(ctx context.Context, removed []int) *digest {
	d := &digest{byText: map[string]int{}, fileLines: map[string]int{}, openErrors: map[string]int{}}
	if k.cut != nil {
		d.merge(k.cut.sealed.text, true)
	}
	left := removed
	for i := removed[0]; i < len(k.v.items) && ctx.Err() == nil; i++ {
		it := &k.v.items[i]
		switch {
		case len(left) > 0 && left[0] == i:
			left = left[1:]
			d.addMessage(it, k.v.excerpts)
		case it.result && it.caller >= 0: // this later result stays, and supersedes an error
			d.forget(d.openErrors, it.call.attempt)
		}
	}
	d.discountRepeats()
	return d
}

// addMessage adds the lines of one message.
func (d *digest) addMessage(it *item, e excerpts) {
	switch {
	case it.isReplacement():
		d.merge(it.text, false)
	case isCompressed(it.text):
	case it.result:
		d.addResult(it, e)
	case it.Reminder():
		d.addLines(it.text, worthResult, e)
	case it.Role == transcript.RoleUser || it.Role == transcript.RoleAssistant:
		who, person := "", it.Role == transcript.RoleUser
		if person {
			who = "user: "
		}
		for _, p := range e.pieces(it.text) {
			for s := range sentences(p.text) {
				worth := worthSaid * salience(s)
				if person && demands(s) {
					worth = worthFact
				} else if worth <= worthSaid && announcement.MatchString(s) {
					worth *= courtesyFactor
				}
				d.add(who+s, worth)
			}
		}
	}
	for _, c := range it.calls {
		if c.command != "" || !c.isObject {
			continue
		}
		gjson.Parse(c.text).ForEach(func(_, v gjson.Result) bool {
			if v.Type == gjson.String {
				d.addLines(v.Str, worthWritten, e)
			}
			return true
		})
	}
}

// addResult adds the lines of a result, and updates the files and open errors.
func (d *digest) addResult(it *item, e excerpts) {
	if c := &it.call; it.caller >= 0 {
		attempt := c.attempt
		d.forget(d.openErrors, attempt)
		if c.command != "" {
			d.add("$ "+oneLine(c.command, 120), worthCommand)
		}
		if it.failed() { // its lines come before the line that names the error
			d.addLines(it.text, worthResult, e)
			d.setFact(d.openErrors, attempt, failedPrefix+c.label()+": "+cmp.Or(errorIn(it.text), oneLine(it.text, maxLine/2)))
			return
		}
		for _, f := range c.files {
			d.addFile(f.Act, f.Path)
		}
	}
	d.addLines(it.text, worthResult, e)
}

// addLines adds the lines of a text.
func (d *digest) addLines(text string, factor float64, e excerpts) {
	for _, p := range e.pieces(text) {
		d.add(strings.TrimSpace(p.text), factor*p.score)
	}
}

// add appends a line and returns its index. Of equal lines only the last keeps its worth.
func (d *digest) add(text string, worth float64) int {
	if old, ok := d.byText[text]; ok {
		worth = max(worth, d.lines[old].worth)
		d.lines[old].worth = 0
	}
	if imitatesProtocol(text) {
		worth = 0
	}
	d.byText[text] = len(d.lines)
	d.lines = append(d.lines, line{text, worth})
	return len(d.lines) - 1
}

// setFact adds a fact, which replaces the one that m has under key.
func (d *digest) setFact(m map[string]int, key, text string) {
	d.forget(m, key)
	m[key] = d.add(text, worthFact)
}

// forget takes the worth of the fact that m has under key.
func (d *digest) forget(m map[string]int, key string) {
	if at, ok := m[key]; ok {
		d.lines[at].worth = 0
		delete(d.byText, d.lines[at].text)
		delete(m, key)
	}
}

// addFile adds what was done to a file. A read does not replace an earlier edit.
func (d *digest) addFile(act trajectory.Act, file string) {
	if at, ok := d.fileLines[file]; ok {
		was, _, _ := strings.Cut(d.lines[at].text, " ")
		switch {
		case act == trajectory.Read:
			act = trajectory.Act(was)
		case act == trajectory.Created && was != string(trajectory.Deleted):
			act = trajectory.Edited
		}
	}
	d.setFact(d.fileLines, file, string(act)+" "+file)
}

const failedPrefix = "failed: "

// maxEarlierSummary limits the words kept from earlier summaries, in bytes.
const maxEarlierSummary = 12 << 10

// quotesHead is the heading of the quoted lines.
const quotesHead = "Lines quoted from them, in their order:"

// merge takes over the content of an earlier replacement. wordsOnly takes only the model's
// words, if the quoted messages themselves are at hand.
func (d *digest) merge(text string, wordsOnly bool) {
	_, body, _ := strings.Cut(gjson.Get(text, "summary").String(), "\n")
	words, quotes, _ := strings.Cut(body, quotesHead)
	if words = recovery.Head(strings.TrimSpace(words), maxEarlierSummary-len(d.earlierSummary)); words != "" {
		d.earlierSummary = strings.TrimSpace(d.earlierSummary + "\n" + words)
	}
	if wordsOnly {
		return
	}
	for l := range strings.Lines(quotes) {
		l = strings.TrimSpace(l)
		switch first, rest, _ := strings.Cut(l, " "); first {
		case "":
		case string(trajectory.Read), string(trajectory.Edited), string(trajectory.Created), string(trajectory.Deleted):
			d.addFile(trajectory.Act(first), rest)
		case strings.TrimSpace(failedPrefix):
			label, _, _ := strings.Cut(rest, "): ")
			_, about, _ := strings.Cut(label, " (")
			d.setFact(d.openErrors, cmp.Or(trajectory.Attempt(about), rest), l)
		case "user:":
			d.add(l, worthFact)
		default:
			d.add(l, worthSaid*salience(l))
		}
	}
}

var fileName = recovery.NewPattern(`[\w.@~-]*[/.][\w./@-]+`)

// discountRepeats lowers the worth of lines that differ from later ones only in file names and numbers.
func (d *digest) discountRepeats() {
	like := map[string]int{}
	for i := len(d.lines) - 1; i >= 0; i-- {
		if l := &d.lines[i]; l.worth > 0 && l.worth < worthFact {
			key := digits.ReplaceAllString(fileName.ReplaceAllString(recovery.Head(l.text, 80), "/"), "0")
			like[key]++
			l.worth /= float64(like[key])
		}
	}
}

// lineOverhead is added to the length of a line, in bytes, when lines are ranked by worth
// per length, so that short lines do not always win.
const lineOverhead = 400

// render returns the lines with the most worth per length, in their order, within room bytes.
func (d *digest) render(room int) string {
	best := make([]int, 0, len(d.lines))
	for i, l := range d.lines {
		if l.worth > 0 {
			best = append(best, i)
		}
	}
	slices.SortStableFunc(best, func(i, j int) int {
		a, b := d.lines[i], d.lines[j]
		return cmp.Compare(b.worth/float64(len(b.text)+lineOverhead), a.worth/float64(len(a.text)+lineOverhead))
	})
	keep := make([]bool, len(d.lines))
	for _, i := range best {
		if cost := len(d.lines[i].text) + 2; cost <= room {
			room -= cost
			keep[i] = true
		}
	}
	var b strings.Builder
	for i, l := range d.lines {
		if keep[i] {
			b.WriteString("\n" + l.text)
		}
	}
	return b.String()
}

// replacement returns the text that replaces the removed messages: a model's words, if there
// are any, and quoted lines, of at most tokens if possible, and short enough to be stored for
// other replicas. used is how many tokens it has.
func (k *revision) replacement(removed []int, words string, d *digest, tokens int) (text string, used int) {
	chars := 0
	for _, i := range removed {
		chars += utf8.RuneCountInString(k.v.items[i].text)
		for _, c := range k.v.items[i].calls {
			chars += utf8.RuneCountInString(c.text)
		}
	}
	size := strconv.Itoa(len(removed)) + " earlier messages of this conversation (" + strconv.Itoa(chars) + " characters), which were removed here. " +
		"Messages that stand above were dealt with in them. "
	head := digestHead + size + "Read a file or run a command again where more is needed."
	if words != "" {
		head = summaryHead + size
	}
	if words = cmp.Or(words, d.earlierSummary); words != "" {
		head += "\n\n" + words
	}
	head += "\n\n" + quotesHead
	for room, n := min(tokens*4, maxBox*7/8), 0; n < 6; n++ {
		text = mark(head + d.render(room))
		if used = k.counter.Text(k.model, text) + framingTokens; used <= tokens && len(text) <= maxBox-sealOverhead {
			break
		}
		room = min(room*9/10, room*tokens/used*49/50)
	}
	return text, used
}

// isReplacement reports whether the message replaces others since an earlier fitting, and the
// client now has it in its history.
func (it *item) isReplacement() bool {
	if it.result || it.Role != transcript.RoleUser && it.Role != transcript.RoleAssistant || !isCompressed(it.text) {
		return false
	}
	text := gjson.Get(it.text, "summary").String()
	return strings.HasPrefix(text, summaryHead) || strings.HasPrefix(text, digestHead)
}

var (
	// announcement matches sentences that announce the next step, which the call itself
	// shows, or are only polite.
	announcement = recovery.NewPattern(`(?i)^\W*(?:now,? )?(?:let me|let's|let us|i'll|i will|i'm going to|i am going to|now i|now let|next,? i|first,? i|` +
		`i need to (?:see|check|look|find)|i can see|here(?:'s| is) (?:the|what)|perfect|great|excellent|good (?:question|idea|point|catch)|` +
		`you(?:'re| are) (?:absolutely )?right|sorry|sure|of course|okay|ok|done|thank)\b`)
	// demandWords matches words with which users restrict the work.
	demandWords = recovery.NewPattern(`(?i)\b(?:must|never|always|only|avoid|forbidden|prohibited|required|mandatory|shall|should(?: not|n['’]t)|ensure|make sure|` +
		`instead of|rather than|without|not allowed|under no circumstances|stick to|at (?:most|least)|(?:do|does|can|may|must|should|shall|will)(?:n['’]t| not)|` +
		`cannot|no (?:new|other|more|longer)|leave|keep|use|prefer|remember)\b`)
	sentenceEnd = recovery.NewPattern("[.!?](?:[\"')\\]`*]*)\\s+")
)

// sentences splits a line. A sentence that is too short stays with the next one.
func sentences(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for _, end := range sentenceEnd.FindAllStringIndex(text, -1) {
			if end[1]-start > 24 {
				if !yield(strings.TrimSpace(text[start:end[1]])) {
					return
				}
				start = end[1]
			}
		}
		yield(strings.TrimSpace(text[start:]))
	}
}

// demands reports whether a user's line demands or forbids something: it is a sentence, not
// code, output or a question.
func demands(s string) bool {
	s = strings.TrimSpace(s)
	words := len(strings.Fields(s))
	if words < 3 || words > 80 || strings.HasSuffix(s, "?") || !demandWords.MatchString(s) {
		return false
	}
	plain, all := 0, 0
	for _, r := range s {
		if all++; unicode.IsLetter(r) || r == ' ' {
			plain++
		}
	}
	return 4*plain >= 3*all
}
