package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// ended is how one run of a case or a scenario went.
type ended struct {
	name              string // of the case or scenario
	who               string // the client, and in which mode
	straight, through string // what the legs came to; empty for one that was not gone
	failures          []string
}

// progress prints a line for each name once all its runs are done.
type progress struct {
	out            io.Writer
	wait           map[string][]ended
	todo           map[string]int
	passed, failed int
}

// newProgress expects one run for each of the names, which repeat.
func newProgress(out io.Writer, names []string) *progress {
	p := &progress{out: out, wait: map[string][]ended{}, todo: map[string]int{}}
	for _, n := range names {
		p.todo[n]++
	}
	return p
}

func (p *progress) done(e ended) {
	if len(e.failures) == 0 {
		p.passed++
	} else {
		p.failed++
	}
	p.wait[e.name] = append(p.wait[e.name], e)
	if p.todo[e.name]--; p.todo[e.name] == 0 {
		p.line(e.name, p.wait[e.name])
	}
}

// line prints what became of all runs with one name.
func (p *progress) line(name string, runs []ended) {
	var straight, through []string
	good := 0
	for _, e := range runs {
		if e.straight != "" {
			straight = append(straight, e.straight)
		}
		if e.through != "" {
			through = append(through, e.through)
		}
		if len(e.failures) == 0 {
			good++
		}
	}
	word := "ok  "
	if good < len(runs) {
		word = "FAIL"
	}
	var legs []string
	if len(straight) > 0 {
		legs = append(legs, "straight: "+tally(straight))
	}
	if len(through) > 0 {
		legs = append(legs, "through: "+tally(through))
	}
	fmt.Fprintf(p.out, "%s  %-25s %2d/%d  %s\n", word, name, good, len(runs), strings.Join(legs, "; "))
	for _, e := range runs {
		for _, f := range e.failures {
			fmt.Fprintf(p.out, "      %s: %s\n", e.who, f)
		}
	}
}

// outage counts and prints the steady traffic.
func (p *progress) outage(o *Outage) {
	word := "ok  "
	if len(o.failures) == 0 {
		p.passed++
	} else {
		word = "FAIL"
		p.failed++
	}
	fmt.Fprintf(p.out, "%s  %-25s %s\n", word, outageName, o.summary())
	for _, f := range o.failures {
		fmt.Fprintf(p.out, "      %s\n", f)
	}
}

// tally lists outcomes with their number, the most frequent first.
func tally(outcomes []string) string {
	count := map[string]int{}
	for _, o := range outcomes {
		count[o]++
	}
	keys := slices.Collect(func(yield func(string) bool) {
		for k := range count {
			if !yield(k) {
				return
			}
		}
	})
	slices.SortFunc(keys, func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%d %s", count[k], k)
	}
	return strings.Join(keys, ", ")
}
