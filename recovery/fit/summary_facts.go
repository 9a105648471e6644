package fit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Bounds of what the program itself adds to a summary.
const (
	maxFacts     = 120  // paths of each kind
	maxQuoted    = 400  // bytes of one quoted message
	maxQuotes    = 40   // quoted messages
	maxOpen      = 10   // unresolved errors
	maxFactBytes = 8000 // of each list
)

// told is the text in place of the removed messages: what the summariser wrote,
// and what the program knows for certain.
func (k *work) told(removed []int, summary string, facts bool) string {
	chars := 0
	for _, i := range removed {
		chars += len(k.v.items[i].text)
		for _, c := range k.v.items[i].calls {
			chars += len(c.text)
		}
	}
	var b strings.Builder
	b.WriteString("Summary of " + strconv.Itoa(len(removed)) + " earlier messages of this conversation (" + strconv.Itoa(chars) +
		" bytes), which were removed here. Messages of the user that stand above were dealt with in them as the summary says.\n\n")
	b.WriteString(summary)
	if facts {
		k.facts(&b, removed)
	}
	return mark(b.String())
}

// touched is what became of a file.
type touched struct {
	at      int // when it was last touched, in touches
	changed bool
}

// facts appends the lists that the program makes itself.
func (k *work) facts(b *strings.Builder, removed []int) {
	v := k.v
	var quotes, order []string
	files, failing := map[string]touched{}, map[string]string{}
	n := 0
	note := func(file string, changed bool) {
		n++
		files[file] = touched{n, changed || files[file].changed}
	}
	for _, i := range removed {
		it := &v.items[i]
		if it.Role == transcript.RoleUser && !it.result && it.text != "" && len(quotes) < maxQuotes {
			quotes = append(quotes, "- "+oneLine(it.text, maxQuoted))
		}
		if !it.result || it.caller < 0 {
			continue
		}
		attempt := it.call.attempt()
		delete(failing, attempt)
		if it.failed() {
			line := oneLine(it.text, maxErrorLine)
			if lines := errorLines(it.text); len(lines) > 0 {
				line = lines[0]
			}
			failing[attempt] = "- " + it.call.label() + ": " + line
			order = append(order, attempt)
			continue
		}
		for _, file := range it.call.paths {
			note(file, it.call.kind == kindEdit || it.call.kind == kindWrite)
		}
		if it.call.kind == kindShell {
			for _, file := range filesIn(it.call.command) {
				note(file, false)
			}
		}
	}
	listed(b, "Files changed (made by a program, the latest last)", latest(files, true))
	listed(b, "Files read or named in commands (made by a program, the latest last)", latest(files, false))
	var open []string
	for i := len(order) - 1; i >= 0 && len(open) < maxOpen; i-- {
		if text, ok := failing[order[i]]; ok {
			open = append(open, text)
			delete(failing, order[i])
		}
	}
	slices.Reverse(open)
	listed(b, "Errors that no later success resolved (made by a program)", open)
	listed(b, "The user's messages among them (their beginnings)", quotes)
}

// latest lists the files that were touched last, in that order.
func latest(files map[string]touched, changed bool) (list []string) {
	for file, t := range files {
		if t.changed == changed {
			list = append(list, file)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return files[a].at - files[b].at })
	return list[max(0, len(list)-maxFacts):]
}

// listed appends a titled list, bounded.
func listed(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	b.WriteString("\n\n" + title + ":")
	room := maxFactBytes
	for _, line := range lines {
		if room -= len(line) + 1; room < 0 {
			b.WriteString("\n…")
			return
		}
		b.WriteString("\n" + line)
	}
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
