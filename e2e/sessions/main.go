package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
)

func main() {
	sampled := flag.Int("sample", 0, "print that many notes with what came before and after them")
	seed := flag.Uint64("seed", 1, "chooses the sample")
	verbose := flag.Bool("v", false, "name the runs that were not told firmly")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: sessions [-sample N] [-seed N] [-v] FILE…")
		os.Exit(2)
	}
	if err := play(os.Stdout, flag.Args(), *sampled, *seed, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "sessions:", err)
		os.Exit(1)
	}
}

// play replays the sessions of files and prints what came of them.
func play(w io.Writer, files []string, sampled int, seed uint64, verbose bool) error {
	r, err := newReplayer()
	if err != nil {
		return err
	}
	for _, name := range files {
		list, err := load(name)
		if err != nil {
			return err
		}
		c, err := r.file(list)
		if err != nil {
			return err
		}
		c.print(w, list[0].file)
		if verbose {
			for _, m := range c.missed {
				fmt.Fprintln(w, "  not told:", m)
			}
		}
		c.sample(w, sampled, seed)
	}
	return nil
}

// file replays sessions, some at a time.
func (r *replayer) file(list []*session) (*counts, error) {
	type played struct {
		steps []step
		err   error
	}
	out := make([]played, len(list))
	var wg sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, s := range list {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			out[i].steps, out[i].err = r.replay(s)
		})
	}
	wg.Wait()
	c := &counts{}
	for i, s := range list {
		if out[i].err != nil {
			return nil, out[i].err
		}
		c.add(s, out[i].steps)
	}
	return c, nil
}

func (c *counts) print(w io.Writer, name string) {
	share := func(n int) string { return fmt.Sprintf("%d (%.0f %%)", n, 100*float64(n)/float64(max(1, c.notes))) }
	fmt.Fprintf(w, "%s: %d sessions, %d turns, %d notes (%.1f per 100 turns): with a fact %s, about a repetition %s, empty %s, the same words again %s; "+
		"%d stops, %d in solved sessions; %d runs of %d equal calls, %d not told firmly\n",
		name, c.sessions, c.turns, c.notes, 100*float64(c.notes)/float64(max(1, c.turns)), share(c.fact), share(c.repetition), share(c.empty), share(c.again),
		c.stops, c.stopsSolved, c.runs, run, c.misses)
}

// sample prints some of the notes, each with the call before and the two after it.
func (c *counts) sample(w io.Writer, n int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	order := rng.Perm(len(c.samples))
	for k, i := range order[:min(n, len(order))] {
		s := c.samples[i]
		fmt.Fprintf(w, "\n--- %d. %s, message %d\n", k+1, s.s.ID, s.steps[s.at].at)
		for j := max(0, s.at-1); j < min(len(s.steps), s.at+3); j++ {
			st := s.steps[j]
			fmt.Fprintf(w, "CALL   %s\nRESULT %s\n", short(st.call, 300), ends(st.result, 700))
			if j == s.at {
				fmt.Fprintf(w, "NOTE   (%s; %s) %s\n", strings.Join(st.advice.Strategies, " "), st.advice.Category, strings.ReplaceAll(st.note, "\n", "\n       "))
			}
		}
	}
}

// ends is the head and the tail of a text.
func ends(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n/3]) + " […] " + string(r[len(r)-2*n/3:])
	}
	return s
}
