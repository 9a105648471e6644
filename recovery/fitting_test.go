package recovery_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// summarising is a fitter that pays for a summary where it may make one.
type summarising struct {
	fitter
	before int // tokens of the request
	asked  []bool
	x      *recovery.Exchange
}

func (s *summarising) summarised(ctx context.Context, out *recovery.Fitted) *recovery.Fitted {
	may := s.x.MayComplete()
	if s.asked = append(s.asked, may); !may {
		return out
	}
	_, u, _ := s.x.Complete(ctx, recovery.Prompt{})
	if out != nil {
		out.Before, out.Extra = s.before, u
	}
	return out
}

func (s *summarising) Prepare(ctx context.Context, x *recovery.Exchange) error {
	s.x, x.Fitting = x, s
	x.Fitted = s.summarised(ctx, s.wrap(s.known))
	return nil
}

func (s *summarising) Fit(ctx context.Context, _ *recovery.Choice, _ *recovery.Failure) *recovery.Fitted {
	return s.summarised(ctx, s.wrap(s.fitted))
}

// completer tells what a call has used, or waits until its time is over.
type completer struct {
	input int
	waits bool
}

func (c completer) Complete(ctx context.Context, _ recovery.Prompt) (string, recovery.Usage, error) {
	if c.waits {
		<-ctx.Done()
	}
	return "", recovery.Usage{Input: c.input, Output: 7}, ctx.Err()
}

// TestSummariesArePaid: what summaries cost is the exchange's, and counts with
// re-asks, continuations and parallel starts into what one request may spend.
func TestSummariesArePaid(t *testing.T) {
	after := cut(recovery.ReleasedText, "Hel")
	cases := []struct {
		name     string
		a, b     []step
		to       string
		known    bool // the history is made smaller before the first attempt
		input    int  // of the summary, where the request has 1000
		budget   int
		asked    string
		extra    int
		may      []bool // make a summary: before the first attempt, then after each overflow
		finished bool
	}{
		{name: "half an input is one", a: []step{overflow, ok}, to: "a", input: 500, budget: 1, asked: "aa", extra: 1, may: []bool{true, true}, finished: true},
		{name: "less is none", a: []step{overflow, ok}, to: "a", input: 499, budget: 1, asked: "aa", may: []bool{true, true}, finished: true},
		{name: "several", a: []step{overflow, ok}, to: "a", input: 2600, budget: 1, asked: "aa", extra: 3, may: []bool{true, true}, finished: true},
		{name: "then one continuation", a: []step{overflow, after}, to: "a", input: 900, budget: 1, asked: "aaa", extra: 2, may: []bool{true, true}},
		{name: "a continuation, with more to spend", a: []step{overflow, after, ok}, to: "a", input: 900, budget: 2, asked: "aaa", extra: 2,
			may: []bool{true, true}, finished: true},
		{name: "then no second attempt beside it", a: []step{overflow, late(25*time.Second, ok)}, b: []step{ok}, to: "ab", input: 900, budget: 1, asked: "aa",
			extra: 1, may: []bool{true, true}, finished: true},
		{name: "then no re-ask", a: []step{flawed("")}, to: "a", known: true, input: 900, budget: 1, asked: "a", extra: 1, may: []bool{true}, finished: true},
		{name: "a re-ask, and then none", a: []step{flawed(""), overflow, ok}, to: "a", budget: 1, asked: "aaa", extra: 1, may: []bool{true, false}, finished: true},
		{name: "a second attempt, and then none", a: []step{late(20*time.Second, overflow), ok}, b: []step{busy}, to: "ab", budget: 1, asked: "aba", extra: 1,
			may: []bool{true, false}, finished: true},
		{name: "nothing to spend", a: []step{overflow, ok}, to: "a", known: true, budget: 0, asked: "aa", may: []bool{false, false}, finished: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a, "b": c.b})
				s := &summarising{fitter: fitter{fitted: parsed(t, smaller)}, before: 1000}
				if c.known {
					s.known = parsed(t, smaller)
				}
				g.Stages, g.Config.ExtraInput = []recovery.Stage{s}, c.budget
				x := exchange(t, agentBody, c.to)
				x.Completer = completer{input: c.input}
				f, err := g.run(t, t.Context(), x)
				if err != nil || (f == nil) != c.finished {
					t.Errorf("ended with %v, %v", f, err)
				}
				if got := g.asked(); got != c.asked {
					t.Errorf("asked %s, want %s", got, c.asked)
				}
				if x.Extra() != c.extra {
					t.Errorf("%d extra, want %d", x.Extra(), c.extra)
				}
				if !slices.Equal(s.asked, c.may) {
					t.Errorf("summaries were allowed %v, want %v", s.asked, c.may)
				}
				if _, _, beyond := x.Totals(); c.input > 0 && beyond.Input < c.input {
					t.Errorf("spent beyond the answer: %+v", beyond)
				}
			})
		})
	}
}

// TestFittingEnds: a request waits for summaries two minutes at most, in all,
// or as long as its client does.
func TestFittingEnds(t *testing.T) {
	for _, c := range []struct{ patience, most time.Duration }{{0, 2 * time.Minute}, {30 * time.Second, 30 * time.Second}} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {overflow}})
			s := &summarising{}
			g.Stages = []recovery.Stage{s}
			x := exchange(t, plainBody, "a")
			x.Patience, x.Completer = c.patience, completer{waits: true}
			if _, err := g.run(t, t.Context(), x); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(x.Started) - time.Second; took != c.most || len(s.asked) == 0 {
				t.Errorf("%d fittings took %v, want %v", len(s.asked), took, c.most)
			}
		})
	}
}
