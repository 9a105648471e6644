package recovery_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/conform"
	"github.com/rebound-llm/rebound/recovery/learn"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// accounts is a rig whose upstreams a and b are two accounts, which cannot read each
// other's reasoning.
type accounts struct {
	*rig
	ledger upstreamtest.Ledger
	items  []string // of the history
	turns  int
	down   string // upstreams that are out of order
}

func newAccounts() *accounts {
	s := &accounts{items: []string{`{"role":"user","content":"hi"}`}}
	serve := func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		if strings.Contains(s.down, a.Target.Upstream) {
			return busy(g, ctx, a)
		}
		if status, why := s.ledger.Refuse(a.Target.Upstream, string(a.Body)); status != 0 {
			return refuse(status, string(why))(g, ctx, a)
		}
		return ok(g, ctx, a)
	}
	s.rig = newRig(map[string][]step{"a": {serve}, "b": {serve}})
	s.Makers, s.Conformer = learn.NewMakers(s.board, time.Hour), conform.Conformer{}
	return s
}

// turn is the session's next request, and its answer's part of the history. It returns the
// upstreams that were asked, and how many elements of reasoning the last was sent.
func (s *accounts) turn(t *testing.T, extra string) (asked string, reasoning int, f *recovery.Failure) {
	t.Helper()
	b := recoverytest.Parse(t, `{"model":"m","store":false,"input":[`+strings.Join(s.items, ",")+`]`+extra+`}`, transcript.Responses)
	x := exchange(t, plainBody, "ab")
	x.Body, x.Session, x.Affinity = b, "s", 7
	if s.turns == 0 {
		x.Session = "" // which it has not before its first answer
	}
	from := len(s.attempts)
	f, err := s.Run(t.Context(), x, s.rig)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute) // cool-downs end
	for _, a := range s.attempts[from:] {
		asked += a.Target.Upstream
		reasoning = strings.Count(string(a.Body), `"type":"reasoning"`)
	}
	if f == nil {
		id := string(rune('a' + s.turns))
		account := asked[len(asked)-1:]
		r := &upstreamtest.Response{ID: "resp_" + id, Items: []upstreamtest.Item{
			{Kind: upstreamtest.Reasoning, ID: "rs_" + id, Sealed: upstreamtest.Seal(account, "rs_"+id)}, {Kind: upstreamtest.Message, ID: "msg_" + id,
				Text: []string{"yes"}}}}
		s.ledger.Keep(account, `{"store":false}`, r)
		s.items = append(s.items, `{"type":"reasoning","id":"rs_`+id+`","summary":[],"encrypted_content":"`+r.Items[0].Sealed+`"}`,
			`{"type":"message","id":"msg_`+id+`","role":"assistant","content":[{"type":"output_text","text":"yes"}]}`, `{"role":"user","content":"go on"}`)
		s.turns++
	}
	return asked, reasoning, f
}

// Reasoning is sent to the account that made it and to no other, also after the session
// went to another and came back; and no account has to refuse it first.
func TestMakers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newAccounts()
		for i, want := range []struct {
			down, asked string
			reasoning   int
		}{
			{"", "a", 0}, {"", "a", 1}, {"a", "ab", 0}, {"", "a", 2}, {"", "a", 3}, {"a", "ab", 1}, {"a", "ab", 2}, {"", "a", 4},
		} {
			s.down = want.down
			asked, n, f := s.turn(t, "")
			// A failing target is asked once more before the session moves.
			if short := strings.ReplaceAll(asked, "aa", "a"); f != nil || short != want.asked || n != want.reasoning {
				t.Errorf("turn %d: asked %s with %d elements of reasoning, want %s with %d; %v", i, asked, n, want.asked, want.reasoning, f)
			}
		}
	})
}

// Where nobody knows who made it, the refusal tells, once.
func TestMakersUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newAccounts()
		s.turn(t, "")
		s.items[1] = strings.Replace(s.items[1], upstreamtest.Seal("a", "rs_a"), upstreamtest.Seal("c", "rs_a"), 1)
		if asked, n, f := s.turn(t, ""); f != nil || asked != "aa" || n != 0 {
			t.Errorf("asked %s, %d elements of reasoning, %v", asked, n, f)
		}
		for i := range 2 {
			if asked, n, f := s.turn(t, ""); f != nil || asked != "a" || n != 1+i {
				t.Errorf("then asked %s, %d elements of reasoning, %v", asked, n, f)
			}
		}
	})
}

// A session whose first turn went to another account than it would be expected at goes
// on there where it must: what it names is there.
func TestMakersBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newAccounts()
		s.down = "a"
		if asked, _, f := s.turn(t, ""); f != nil || asked[len(asked)-1] != 'b' {
			t.Fatalf("asked %s, %v", asked, f)
		}
		s.down = ""
		s.items = append(s.items[:1], `{"type":"compaction","encrypted_content":"`+upstreamtest.Seal("b", "x")+`"}`, `{"role":"user","content":"go on"}`)
		if asked, _, f := s.turn(t, ""); f != nil || asked != "b" {
			t.Errorf("asked %s, %v", asked, f)
		}
		s.down = "b"
		if asked, _, f := s.turn(t, ""); f == nil || strings.Contains(asked, "a") {
			t.Errorf("asked %s, %v", asked, f)
		}
	})
}
