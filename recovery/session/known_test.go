package session

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// What is remembered is what would be derived, for every kind of request, whoever
// sent what before.
func TestKnown(t *testing.T) {
	k, list := NewKnown(), goldens(t)
	for range 2 {
		for name, in := range list {
			for _, change := range []func(*Input){
				func(*Input) {},
				func(in *Input) { in.Credential = []byte("sk-another") },
				func(in *Input) { in.Hints = append([]string{"more"}, in.Hints...) },
				func(in *Input) { in.Explicit = "named" },
			} {
				in := in
				change(&in)
				if got, want := k.Identify(in), Identify(in).String(); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		}
	}
	if len(k.recent) == 0 {
		t.Error("nothing is remembered")
	}
}

// An ID is derived once for a conversation that grows, and anew where a byte of its
// beginning is another.
func TestKnownOnce(t *testing.T) {
	k := NewKnown()
	first := k.Identify(Input{Body: parse(t, agent(1<<10))})
	for m := range k.recent {
		k.recent[m] = "remembered"
	}
	if got := k.Identify(Input{Body: parse(t, agent(8<<10))}); got != "remembered" {
		t.Errorf("%q for the conversation some turns later", got)
	}
	other := strings.Replace(agent(1<<10), "Session 000001", "Session 000002", 1)
	if got := k.Identify(Input{Body: parse(t, other)}); got == "remembered" || got == first {
		t.Errorf("%q for another conversation", got)
	}
	if got := k.Identify(Input{Body: parse(t, agent(1<<10)), Credential: []byte("sk-2")}); got == "remembered" || got == first {
		t.Errorf("%q for another credential", got)
	}
}

// What is remembered is bounded, what is asked for stays, and several may ask.
func TestKnownIsBounded(t *testing.T) {
	k := NewKnown()
	in := Input{Body: parse(t, agent(1<<10))}
	want := k.Identify(in)
	var all sync.WaitGroup
	for g := range 2 {
		all.Go(func() {
			for i := range 3 * maxKnown {
				k.Identify(Input{Body: in.Body, Credential: fmt.Appendf(nil, "%d/%d", g, i)})
				if i%100 == 0 && k.Identify(in) != want {
					t.Error("another ID")
				}
			}
		})
	}
	all.Wait()
	if len(k.recent) > maxKnown || len(k.older) > maxKnown {
		t.Errorf("%d and %d IDs are remembered", len(k.recent), len(k.older))
	}
	m := k.mark(in, 3)
	if _, ok := k.get(m); !ok {
		t.Error("what was asked for all the time is forgotten")
	}
}
