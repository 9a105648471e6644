package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The colours of a terminal.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// printer writes the output and keeps the first error.
type printer struct {
	out    io.Writer
	colour bool
	err    error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

// paint colours s if colours are on.
func (p *printer) paint(colour, s string) string {
	if !p.colour || colour == "" || s == "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

func (p *printer) intro() {
	n := len(faults()) - 1 // the first row has no fault
	p.printf("Running %d faults, each straight and through Rebound, all at the same time. This takes about %.0f seconds.\n\n",
		n, agentTimeout.Seconds()+1)
}

// cell is a text with its colour.
type cell struct{ text, colour string }

// cells returns the columns of a row.
func (r *row) cells() []cell {
	what, attempts := r.actions()
	if r.starved() {
		what += " (busy)"
	}
	straight := cell{r.straight.String(), red}
	if r.straight.verdict == complete {
		straight.colour = green
	}
	through := cell{r.through.String(), green}
	switch {
	case !r.asExpected():
		through = cell{"!! " + through.text, red}
	case r.fault.explained:
		through.colour = yellow
	case r.fault.unrecoverable:
		through = cell{fmt.Sprintf("honest error at %d %%", r.through.percent), yellow}
	}
	return []cell{{"  " + r.fault.title, ""}, straight, through, {what, ""}, {strconv.Itoa(attempts), ""}}
}

// table prints the rows, with the headlines of their groups.
func (p *printer) table(rows []row) {
	lines := [][]cell{{{"FAULT", bold}, {"STRAIGHT", bold}, {"THROUGH REBOUND", bold}, {"WHAT REBOUND DID", bold}, {"TRIES", bold}}}
	for i := range rows {
		lines = append(lines, rows[i].cells())
	}
	p.align(lines, func(i int) string { return rows[i].fault.group })
}

// align prints lines in aligned columns. The first line is the head; headline(i) is printed above
// the i-th of the others unless it is "".
func (p *printer) align(lines [][]cell, headline func(i int) string) {
	width := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, c := range line {
			width[i] = max(width[i], utf8.RuneCountInString(c.text))
		}
	}
	for n, line := range lines {
		if n > 0 && headline(n-1) != "" {
			p.printf("%s\n", p.paint(bold, headline(n-1)))
		}
		var b strings.Builder
		for i, c := range line {
			b.WriteString(p.paint(c.colour, c.text))
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c.text)+2))
			}
		}
		p.printf("%s\n", b.String())
	}
}

// legend explains the terms of the table.
func (p *printer) legend() {
	lines := [...][2]string{
		{"fallback", "the model has a second target, which is healthy."},
		{"straight", "a small agent uses the upstream directly. Like the usual SDKs it retries twice, after 0.5 s and"},
		{"", "1 s or as Retry-After says, and accepts any stream that ends without an error."},
		{"looks complete", "the text is not complete, but there is no error: most SDKs report success."},
		{"hung", fmt.Sprintf("no answer and no error; the agent gives up after %.0f s (most SDKs: 10 minutes).", agentTimeout.Seconds())},
		{"through Rebound", "the same agent, with one request; its text is compared with the complete answer."},
		{"bad call", "the agent cannot run the tool call; it would have to pay for another turn."},
		{"explained", "the user reads what is wrong and what is needed, instead of an error or another attempt."},
		{"honest error", "nothing can complete the text that was already shown, so the agent gets an error, never a clean end."},
		{"did, tries", "X-Rebound-Recovery and X-Rebound-Attempts, from the gateway's events; -> is the target that answered."},
	}
	p.printf("\n")
	for _, l := range lines {
		p.printf("%s\n", p.paint(dim, fmt.Sprintf("%-16s %s", l[0], l[1])))
	}
	p.printf("%s\n\n", p.paint(dim, "The gateway's time limits are a tenth of the defaults here; the agent's waits and Retry-After are not scaled."))
}

// tally counts outcomes by their verdict.
type tally [explained + 1]int

// summary prints the totals and reports whether every row is as expected.
func (p *printer) summary(rows []row, took time.Duration) bool {
	var straight, through tally
	var missed []string
	starved := 0
	for i := range rows {
		r := &rows[i]
		if r.starved() {
			starved++
		}
		straight[r.straight.verdict]++
		through[r.through.verdict]++
		if !r.asExpected() {
			missed = append(missed, r.fault.title)
		}
	}
	p.side("Straight:", straight, len(rows), "errors", "")
	if len(missed) == 0 {
		p.side("Through Rebound:", through, len(rows), plural(through[failed], "honest error"), green)
		if starved > 0 {
			p.printf("Every answer is as expected. This machine was too busy for %d %s: Rebound started a second attempt, because the first\n"+
				"had no answer after %v. %.1f s.\n", starved, plural(starved, "row"), firstTokenLimit, took.Seconds())
			return true
		}
		p.printf("Every row is as expected. %.1f s.\n", took.Seconds())
		return true
	}
	p.side("Through Rebound:", through, len(rows), plural(through[failed], "error"), red)
	p.printf("%s\n", p.paint(red, fmt.Sprintf("Not as expected (!!): %s. %.1f s.", strings.Join(missed, "; "), took.Seconds())))
	return false
}

// side prints the totals of one column.
func (p *printer) side(name string, t tally, of int, errors, colour string) {
	counts := fmt.Sprintf("%-16s %2d of %d complete, %d %s, %d incomplete but looking complete, %d hung", name, t[complete], of, t[failed], errors,
		t[truncated]+t[empty]+t[wrong], t[hung])
	if t[unusable] > 0 {
		counts += fmt.Sprintf(", %d bad calls", t[unusable])
	}
	if t[explained] > 0 {
		counts += fmt.Sprintf(", %d explained", t[explained])
	}
	p.printf("%s\n", p.paint(colour, counts))
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// events prints the gateway's events for each fault, with the time since the start.
func (p *printer) events(rows []row, started time.Time) {
	for i := range rows {
		p.printf("\n%s\n", p.paint(bold, rows[i].fault.title))
		for _, e := range rows[i].events {
			p.printf("  %5.2f s  %s\n", e.at().Sub(started).Seconds(), e)
		}
	}
}
