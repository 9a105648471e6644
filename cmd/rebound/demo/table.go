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

// printer writes what the user reads, and keeps the first error of that.
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

// paint colours s for a terminal that wants it.
func (p *printer) paint(colour, s string) string {
	if !p.colour || colour == "" || s == "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

func (p *printer) intro() {
	n := len(faults()) - 1 // the first row is none
	p.printf("Running %d faults, each straight and through Rebound, all at the same time: about %.0f seconds.\n\n",
		n, patience.Seconds()+1)
}

// cell is a text with its colour.
type cell struct{ text, colour string }

// cells are the columns of a row.
func (r *row) cells() []cell {
	what, attempts := r.did()
	straight := cell{r.straight.String(), red}
	if r.straight.verdict == complete {
		straight.colour = green
	}
	through := cell{r.through.String(), green}
	switch {
	case !r.kept():
		through = cell{"!! " + through.text, red}
	case r.fault.told:
		through.colour = yellow
	case r.fault.honest:
		through = cell{fmt.Sprintf("honest error at %d %%", r.through.percent), yellow}
	}
	return []cell{{"  " + r.fault.title, ""}, straight, through, {what, ""}, {strconv.Itoa(attempts), ""}}
}

// table prints the rows under the headlines of their groups.
func (p *printer) table(rows []row) {
	lines := [][]cell{{{"FAULT", bold}, {"STRAIGHT", bold}, {"THROUGH REBOUND", bold}, {"WHAT REBOUND DID", bold}, {"TRIES", bold}}}
	for i := range rows {
		lines = append(lines, rows[i].cells())
	}
	p.align(lines, func(i int) string { return rows[i].fault.group })
}

// align prints lines, of which the first is the head, with their columns aligned. Above
// the i-th of the others stands its headline, if it has one.
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

// legend explains the words of the table.
func (p *printer) legend() {
	lines := [...][2]string{
		{"fallback", "the model has a second target, which is well."},
		{"straight", "a small agent asks the upstream itself. It does what the usual SDKs do: 2 retries after 0.5 s and"},
		{"", "1 s, or as Retry-After says; a stream that ends without an error is an answer."},
		{"looks complete", "the text is not whole and nothing says so: most SDKs report success."},
		{"hung", fmt.Sprintf("neither answer nor error; the agent gives up after %.0f s (most SDKs: 10 minutes).", patience.Seconds())},
		{"through Rebound", "the same agent, one request; its text is compared with the whole answer."},
		{"bad call", "the agent cannot run the tool call; it would tell the model, and pay for another turn."},
		{"told", "the user reads what went wrong and what is needed, in place of an error or of one more try."},
		{"honest error", "nothing can complete what was already shown, so the agent gets an error, never a clean end."},
		{"did, tries", "what X-Rebound-Recovery and X-Rebound-Attempts say, from the gateway's events; -> is who answered."},
	}
	p.printf("\n")
	for _, l := range lines {
		p.printf("%s\n", p.paint(dim, fmt.Sprintf("%-16s %s", l[0], l[1])))
	}
	p.printf("%s\n\n", p.paint(dim, "The gateway's time limits are a tenth of the defaults here; the agent's waits and Retry-After are not scaled."))
}

// tally counts outcomes.
type tally struct{ complete, looks, unusable, told, hung, failed int }

func (t *tally) add(v verdict) {
	switch {
	case v == complete:
		t.complete++
	case v.looksComplete():
		t.looks++
	case v == unusable:
		t.unusable++
	case v == told:
		t.told++
	case v == hung:
		t.hung++
	default:
		t.failed++
	}
}

// summary prints the totals; it returns whether every promise was kept.
func (p *printer) summary(rows []row, took time.Duration) bool {
	var straight, through tally
	var missed []string
	for i := range rows {
		r := &rows[i]
		straight.add(r.straight.verdict)
		through.add(r.through.verdict)
		if !r.kept() {
			missed = append(missed, r.fault.title)
		}
	}
	p.side("Straight:", straight, len(rows), "errors", "")
	if len(missed) == 0 {
		p.side("Through Rebound:", through, len(rows), plural(through.failed, "honest error"), green)
		p.printf("Every row is as promised. %.1f s.\n", took.Seconds())
		return true
	}
	p.side("Through Rebound:", through, len(rows), plural(through.failed, "error"), red)
	p.printf("%s\n", p.paint(red, fmt.Sprintf("Not as promised (!!): %s. %.1f s.", strings.Join(missed, "; "), took.Seconds())))
	return false
}

// side prints how the questions of one side ended.
func (p *printer) side(name string, t tally, of int, errors, colour string) {
	counts := fmt.Sprintf("%-16s %2d of %d complete, %d %s, %d incomplete but looking complete, %d hung", name, t.complete, of, t.failed, errors,
		t.looks, t.hung)
	if t.unusable > 0 {
		counts += fmt.Sprintf(", %d bad calls", t.unusable)
	}
	if t.told > 0 {
		counts += fmt.Sprintf(", %d told", t.told)
	}
	p.printf("%s\n", p.paint(colour, counts))
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// events prints what the gateway logged about each fault, with the time since
// the demo began.
func (p *printer) events(rows []row, started time.Time) {
	for i := range rows {
		p.printf("\n%s\n", p.paint(bold, rows[i].fault.title))
		for _, e := range rows[i].events {
			p.printf("  %5.2f s  %s\n", e.at().Sub(started).Seconds(), e)
		}
	}
}
