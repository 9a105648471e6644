package main

import (
	"regexp"
	"slices"
	"strings"
)

// counts is what a file's sessions came to.
type counts struct {
	sessions, turns, notes           int
	fact, repetition, empty, again   int
	stops, stopsSolved, runs, misses int
	missed                           []string
	samples                          []sample
}

// sample is a note in its session.
type sample struct {
	s     *session
	steps []step
	at    int
}

// run is the number of equal calls with equal results that has to be told firmly.
const run = 6

// volatile is what shells and loggers put around what a program says.
var volatile = regexp.MustCompile(`\bline \d+:|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*Z?|\b\d\d:\d\d:\d\d(?:[.,]\d+)?|\[\d+\]|0x[0-9a-f]+|\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds)\b|\bpid[ =:]+\d+`)

func masked(s string) string { return strings.TrimSpace(volatile.ReplaceAllString(s, "#")) }

// add counts a session.
func (c *counts) add(s *session, steps []step) {
	c.sessions++
	c.turns += len(steps)
	said := map[string]bool{}
	stopped := false
	for i, st := range steps {
		if st.stopped != "" && !stopped {
			c.stops++
			stopped = true
			if s.solved() {
				c.stopsSolved++
			}
		}
		if st.note == "" {
			continue
		}
		c.notes++
		c.samples = append(c.samples, sample{s, steps, i})
		fact, repetition := names(st), st.advice.Count >= 2 || st.advice.Loop != ""
		if fact {
			c.fact++
		}
		if repetition {
			c.repetition++
		}
		if !fact && !repetition {
			c.empty++
		}
		if repeats(st.note, said) {
			c.again++
		}
	}
	c.addRuns(s, steps)
}

// addRuns counts the runs of equal turns.
func (c *counts) addRuns(s *session, steps []step) {
	for i := 0; i < len(steps); {
		j := i + 1
		for j < len(steps) && steps[i].call != "" && steps[j].call == steps[i].call && masked(steps[j].result) == masked(steps[i].result) {
			j++
		}
		if j-i >= run {
			c.runs++
			if !slices.ContainsFunc(steps[i:j], func(st step) bool { return st.firm }) {
				c.misses++
				c.missed = append(c.missed, s.ID+" "+short(steps[i].call, 80))
			}
		}
		i = j
	}
}

var quote = regexp.MustCompile("`([^`]+)`")

// names reports whether a note names something that neither the last results nor their
// calls have.
func names(st step) bool {
	for _, m := range quote.FindAllStringSubmatch(st.note, -1) {
		if q := strings.TrimSuffix(m[1], "…"); len(q) > 1 && !strings.Contains(st.result, q) && !strings.Contains(st.call, q) && q != "bash" {
			return true
		}
	}
	return false
}

var (
	// closing is what every note ends with.
	closing = regexp.MustCompile(`(?:Keep going[^.]*\.|Do not mention this note\.)`)
	digits  = regexp.MustCompile(`\d+`)
)

// repeats reports whether all that a note says to do was said before. Its first line
// says what happened.
func repeats(note string, said map[string]bool) bool {
	_, advice, ok := strings.Cut(note, "\n")
	if !ok {
		advice = note
	}
	advice = strings.TrimSpace(digits.ReplaceAllString(closing.ReplaceAllString(advice, ""), "#"))
	if advice == "" {
		advice = digits.ReplaceAllString(note, "#")
	}
	again := said[advice]
	said[advice] = true
	return again
}

func short(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
