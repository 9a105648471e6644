package recovery_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

// TestResumes: a continuation has limits of its own, goes elsewhere after a stall
// or a failed one, and is tried twice.
func TestResumes(t *testing.T) {
	gone := cut(recovery.ReleasedText, "Hel")
	behindHel := func(s step) step { return behind("Hel", s) }
	other := func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		n, f := behindHel(reset)(g, ctx, a)
		f.Diverged = true
		return n, f
	}
	for _, c := range []struct {
		name   string
		a, b   []step
		to     string
		asked  string
		local  bool
		failed bool
		most   time.Duration
		ways   string // of the continuations
	}{
		{name: "stall, then elsewhere", a: []step{stall("Hel", time.Hour)}, b: []step{ok}, to: "ab", asked: "ab", most: 25 * time.Second},
		{name: "stall, local", a: []step{stall("Hel", time.Hour)}, b: []step{ok}, to: "ab", local: true, asked: "ab", most: 25 * time.Second},
		{name: "stall, silent elsewhere", a: []step{stall("Hel", time.Hour), ok}, b: []step{hang}, to: "ab", asked: "aba", most: 60 * time.Second},
		{name: "stall, then silence here", a: []step{stall("Hel", time.Hour), hang, ok}, to: "a", asked: "aaa", most: 90 * time.Second},
		{name: "stall, then silence here, local", a: []step{stall("Hel", time.Hour), hang, ok}, to: "a", local: true, asked: "aaa", most: 4 * time.Minute},
		{name: "stall that goes on, silent elsewhere", a: []step{stall("Hel", 25*time.Second)}, b: []step{hang}, to: "ab", asked: "ab", most: 26 * time.Second},
		{name: "cut, cut again, then elsewhere", a: []step{gone}, b: []step{ok}, to: "ab", asked: "aab", most: 6 * time.Second},
		{name: "cut, silence, then elsewhere", a: []step{gone, hang}, b: []step{ok}, to: "ab", asked: "aab", most: 30 * time.Second},
		{name: "cut, cut again, cut elsewhere", a: []step{gone}, b: []step{gone}, to: "ab", asked: "aabab", failed: true, most: 6 * time.Second},
		{name: "four cuts", a: []step{gone, gone, gone, gone, ok}, to: "a", asked: "aaaaa", most: 8 * time.Second},
		{name: "silence for ever", a: []step{gone, hang}, to: "a", asked: "aaaaa", failed: true, most: 3 * time.Minute},
		{name: "another answer, then the same once more", a: []step{gone, other, ok}, to: "a", asked: "aaa", ways: "ask replay", most: 6 * time.Second},
		{name: "another answer, then elsewhere, then the same once more", a: []step{gone, other, ok}, b: []step{other}, to: "ab", asked: "aaba", ways: "ask ask replay",
			most: 6 * time.Second},
		{name: "no such model for the question", a: []step{gone, behindHel(refuse(404, envelope("The model does not exist"))), ok}, to: "a", asked: "aaa",
			ways: "ask replay", most: 6 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a, "b": c.b})
				x := exchange(t, plainBody, c.to)
				for i := range x.Candidates {
					x.Candidates[i].Local = c.local
				}
				f, err := g.run(t, t.Context(), x)
				if err != nil || (f != nil) != c.failed || f != nil && f.Class() != recovery.StreamCut {
					t.Errorf("ended with %v, %v", f, err)
				}
				if got := g.asked(); got != c.asked {
					t.Errorf("asked %s, want %s", got, c.asked)
				}
				if took := time.Since(x.Started) - time.Second; took > c.most {
					t.Errorf("took %v", took)
				}
				var ways []string
				for _, a := range g.attempts {
					if a.Resume != nil {
						ways = append(ways, string(a.Resume.Way))
					}
				}
				if got := strings.Join(ways, " "); c.ways != "" && got != c.ways {
					t.Errorf("continued by %s, want %s", got, c.ways)
				}
				if n := g.observer.Count(recovery.EventStreamResumed); n == 0 && !c.failed && !strings.Contains(c.name, "goes on") {
					t.Errorf("%d events of a continuation", n)
				}
			})
		})
	}
}

// words counts words for tokens.
type words struct{}

func (words) Count(_, text string) int { return len(strings.Fields(text)) }

// TestResumeLimit: the output limit of a continuation is what is left of the
// client's; a replay writes all of it again.
func TestResumeLimit(t *testing.T) {
	const sent = "one two three four five six seven eight"
	for name, c := range map[string]struct {
		body, field string
		prefill     recovery.Prefill
		want        int64
	}{
		"prefill":         {`{"model":"m","max_tokens":20,"messages":[]}`, "max_tokens", recovery.PrefillAssistant, 12},
		"the other field": {`{"model":"m","max_completion_tokens":20,"messages":[]}`, "max_completion_tokens", recovery.PrefillAssistant, 12},
		"nothing left":    {`{"model":"m","max_tokens":5,"messages":[]}`, "max_tokens", recovery.PrefillAssistant, 1},
		"none":            {`{"model":"m","messages":[]}`, "max_tokens", recovery.PrefillAssistant, 0},
		"replay":          {`{"model":"m","temperature":0,"max_tokens":20,"messages":[]}`, "max_tokens", recovery.PrefillNone, 20},
		"asked":           {`{"model":"m","max_tokens":20,"messages":[]}`, "max_tokens", recovery.PrefillNone, 20}, // all eight words are to be repeated
	} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {cut(recovery.ReleasedText, sent), ok}})
			g.Tokens = words{}
			x := exchange(t, c.body, "a")
			x.Candidates[0].Prefill = c.prefill
			f, err := g.run(t, t.Context(), x)
			answered(t, f, err)
			if got := gjson.GetBytes(g.attempts[1].Body, c.field).Int(); got != c.want {
				t.Errorf("%s: %s %d, want %d in %s", name, c.field, got, c.want, g.attempts[1].Body)
			}
		})
	}
}

// A target that gave a sampled answer once more, word for word, is asked for that first.
func TestRepeats(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {cut(recovery.ReleasedText, "Hel"), behind("Hel", refuse(400, envelope("Invalid value"))), ok, cut(recovery.ReleasedText, "Hel"), ok}})
		for range 2 {
			f, err := g.Run(t.Context(), exchange(t, plainBody, "a"), g)
			answered(t, f, err)
		}
		if n := len(g.attempts); n != 5 || g.attempts[2].Resume.Way != recovery.WayReplay || g.attempts[4].Resume.Way != recovery.WayReplay {
			t.Errorf("%d attempts", n)
		}
	})
}
