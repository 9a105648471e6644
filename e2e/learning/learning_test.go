package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/learn"
)

// A short study: the gateway's choice comes close to the best fixed one, follows a change,
// and costs little where notes do harm. The bounds are wider than the long study's figures
// by what so few cells scatter.
func TestLearning(t *testing.T) {
	priors, err := chains()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ early, drifted, rest float64 }{
		"as the chain says":   {0.88, 0.60, 0.15},
		"the other way round": {0.80, 0.60, 0.15},
		"harmful":             {0.85, 0.60, -0.04},
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

// The same seed gives the same figures.
func TestSeeds(t *testing.T) {
	priors, err := chains()
	if err != nil {
		t.Fatal(err)
	}
	one := costs(priors, 7)
	if again := costs(priors, 7); one != again {
		t.Errorf("%v, then %v", one, again)
	}
	if other := costs(priors, 8); one == other {
		t.Error("another seed gives the same")
	}
}

// costs is what a cell's first hundred interventions lose against no notes, with a seed.
func costs(priors learn.Priors, seed uint64) (lost float64) {
	r := rand.New(rand.NewPCG(seed, 5))
	c, w := newCell(priors, studied[0], 200, r), familyOf("harmful").draw(r, priors[studied[0]])
	for range 100 {
		lost += w[""] - c.step(w)
	}
	return lost
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
