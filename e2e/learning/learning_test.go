package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A short study: the policy comes close to the best fixed one, follows a change, and
// costs little where notes do harm. The bounds are wider than the long study's figures
// by what so few cells scatter.
func TestLearning(t *testing.T) {
	priors, err := chains()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ early, drifted, rest float64 }{
		"as the chain says":   {0.93, 0.88, 0.15},
		"the other way round": {0.90, 0.90, 0.15},
		"harmful":             {0.85, 0.88, -0.04},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := study(priors, familyOf(name), 200, 7, 1)
			if r.early.mean < c.early || r.drifted.mean < c.drifted || r.restDiff.mean < c.rest {
				t.Errorf("at 200 %s, 300 after a change %s, against none %s", share(r.early), share(r.drifted), points(r.restDiff))
			}
		})
	}
}

// Where notes do harm, finding that out costs no more than it has to.
func TestHarm(t *testing.T) {
	priors, err := chains()
	if err != nil {
		t.Fatal(err)
	}
	r, f := rand.New(rand.NewPCG(1, 1)), familyOf("harmful")
	var lost []float64
	for i := range 140 {
		chain := studied[i%len(studied)]
		w, c := f.draw(r, priors[chain]), newCell(priors, chain, 200, r)
		for range early {
			lost = append(lost, w[""]-c.step(w))
		}
	}
	if got := figureOf(lost); got.mean > 0.042 {
		t.Errorf("%s points of the first %d", points(got), early)
	}
}

// The same seed gives the same figures.
func TestSeeds(t *testing.T) {
	priors, err := chains()
	if err != nil {
		t.Fatal(err)
	}
	one, _ := transfer(priors, 2, 7)
	if two, _ := transfer(priors, 2, 7); one != two {
		t.Errorf("%v, then %v", one, two)
	}
	if two, _ := transfer(priors, 2, 8); one == two {
		t.Error("another seed gives the same")
	}
}

func TestReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.md")
	if err := os.WriteFile(file, []byte("a\n"+begin+"old\n"+end+"b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replace(file, "new\n"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(file); string(got) != "a\n"+begin+"new\n"+end+"b\n" {
		t.Errorf("%s", got)
	}
	if err := os.WriteFile(file, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replace(file, "x"); err == nil || !strings.Contains(err.Error(), "markers") {
		t.Error(err)
	}
}
