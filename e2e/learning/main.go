package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

func main() {
	runs := flag.Int("runs", 210, "cells of each kind")
	seed := flag.Uint64("seed", 2, "of all chance") // the policy was chosen by others
	into := flag.String("md", "", "write the figures into this file, between its markers")
	flag.Parse()
	text, err := report(*runs, *seed)
	if err == nil && *into != "" {
		err = replace(*into, text)
	} else if err == nil {
		fmt.Print(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "learning:", err)
		os.Exit(1)
	}
}

// The markers of what is replaced.
const (
	begin = "<!-- figures: begin -->\n"
	end   = "<!-- figures: end -->\n"
)

// replace puts text between the markers of a file.
func replace(file, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(old), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no markers", file)
	}
	return os.WriteFile(file, []byte(head+begin+text+end+tail), 0o644)
}

// report measures everything.
func report(runs int, seed uint64) (string, error) {
	priors, err := chains()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d cells of each kind and rate, seed %d; intervals are 95 %%. Renew them with `make learn-docs`.\n\n", runs, seed)
	b.WriteString("| worlds | a day | at 200 | at 1,000 | 300 after the world changed | the chain's order, before and after | against no notes, first 200 | next 800 |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	rates := []float64{20, 200}
	rows, harms := make([][]row, len(rates)), make([]harm, len(rates))
	var work sync.WaitGroup
	for i, perDay := range rates {
		rows[i] = make([]row, len(families()))
		for j, f := range families() {
			work.Go(func() { rows[i][j] = study(priors, f, perDay, runs, seed) })
		}
		work.Go(func() { harms[i] = costs(priors, perDay, runs, seed) })
	}
	work.Wait()
	for _, r := range slices.Concat(rows...) {
		fmt.Fprintf(&b, "| %s | %g | %s | %s | %s | %s, %s | %s | %s |\n", r.family.name, r.perDay, share(r.early), share(r.late), share(r.drifted), share(r.fixedEarly),
			share(r.fixedLate), points(r.firstDiff), points(r.restDiff))
	}
	b.WriteString("\nWhat is lost where each note does harm (*harmful*), in points of success per intervention, against an agent that never gets a note. " +
		"In brackets, of the interventions since the column before.\n\n| a day |")
	for _, n := range stretches {
		fmt.Fprintf(&b, " first %d |", n)
	}
	b.WriteString(" below 2 points with the whole interval from |\n|---" + strings.Repeat("|---", len(stretches)+1) + "|\n")
	for i, h := range harms {
		fmt.Fprintf(&b, "| %g |", rates[i])
		for i := range stretches {
			fmt.Fprintf(&b, " %s (%s) |", unsigned(h.sum[i]), unsigned(h.part[i]))
		}
		if h.within == 0 {
			b.WriteString(" not within these |\n")
		} else {
			fmt.Fprintf(&b, " the %dth |\n", h.within)
		}
	}
	b.WriteString("\nThe worlds: ")
	for i, f := range families() {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "*%s*: %s (then: %s)", f.name, f.what, f.then)
	}
	last := families()[len(kinds())].name
	fmt.Fprintf(&b, ". The policy was chosen by other seeds, and by none of *%s*.\n\nA sampler that knows how all worlds but *%s* are made, "+
		"and has only to find out in which it is, begins with the same ten notes and has", last, last)
	for i, name := range []string{"harmful", "the other way round", "any"} {
		at, against := bestKnown(priors, familyOf(name), runs, seed)
		fmt.Fprintf(&b, "%s %s points against no notes in the first %d of *%s*, and %s at %d", strings.Repeat(";", min(i, 1)), points(against), early, name, share(at), early)
	}
	with, without := transfer(priors, runs, seed)
	fmt.Fprintf(&b, ".\n\nA second model in the same world, *the other way round*, has in its first %d interventions %s of the best policy's success "+
		"where another had 300 before, and %s otherwise.\n", window, share(with), share(without))
	with, without = twofold(priors, runs, seed, worded, tellWording)
	fmt.Fprintf(&b, "\nWhere failures have one of two wordings, and the strategy that adds 40 points with one takes 5 with the other, "+
		"interventions 401 to 600 have %s of the best policy's success with templates, and %s without.\n", share(with), share(without))
	with, without = twofold(priors, runs, seed, unlike, tellTask)
	same, untold := twofold(priors, runs, seed, alike, tellTask)
	fmt.Fprintf(&b, "\nWhere agents are at one of two tasks, and each has a world of its own (*any*), they have %s where the task is told, and %s where it is not. "+
		"Where both tasks have the same world, they have %s and %s.\n", share(with), share(without), share(same), share(untold))
	return b.String(), nil
}

func share(f figure) string    { return fmt.Sprintf("%.1f ± %.1f %%", 100*f.mean, 100*f.half) }
func unsigned(f figure) string { return fmt.Sprintf("%.2f ± %.2f", 100*f.mean, 100*f.half) }
func points(f figure) string   { return fmt.Sprintf("%+.1f ± %.1f", 100*f.mean, 100*f.half) }
