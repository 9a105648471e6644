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
	runs := flag.Int("runs", 70, "cells of each kind")
	seed := flag.Uint64("seed", 2, "of all chance")
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
	rows := make([][]row, len(rates))
	var work sync.WaitGroup
	for i, perDay := range rates {
		rows[i] = make([]row, len(families()))
		for j, f := range families() {
			work.Go(func() { rows[i][j] = study(priors, f, perDay, runs, seed) })
		}
	}
	work.Wait()
	for _, r := range slices.Concat(rows...) {
		fmt.Fprintf(&b, "| %s | %g | %s | %s | %s | %s, %s | %s | %s |\n", r.family.name, r.perDay, share(r.early), share(r.late), share(r.drifted), share(r.fixedEarly),
			share(r.fixedLate), points(r.firstDiff), points(r.restDiff))
	}
	b.WriteString("\nThe worlds: ")
	for i, f := range families() {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "*%s*: %s (then: %s)", f.name, f.what, f.then)
	}
	b.WriteString(".\n")
	return b.String(), nil
}

func share(f figure) string  { return fmt.Sprintf("%.1f ± %.1f %%", 100*f.mean, 100*f.half) }
func points(f figure) string { return fmt.Sprintf("%+.1f ± %.1f", 100*f.mean, 100*f.half) }
