package breaker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/breaker"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/memory"
)

type sessions struct {
	*breaker.Sessions
	told  *recoverytest.Observer
	board *recoverytest.Board
}

func newSessions(rings breaker.Rings, change func(*breaker.Config)) sessions {
	cfg := breaker.Defaults()
	if change != nil {
		change(&cfg)
	}
	s := sessions{told: &recoverytest.Observer{}, board: recoverytest.NewBoard()}
	s.Sessions = breaker.NewSessions(cfg, rings, s.board, s.told, func(c recovery.Category) string {
		if c == recovery.DiskFull {
			return "free some space."
		}
		return ""
	})
	return s
}

func newStore(t *testing.T) store.Store {
	s := memory.New(memory.Defaults())
	t.Cleanup(func() { _ = s.Close() })
	return s
}

const agent = `{"model":"m","messages":[{"role":"user","content":"go"}],"tools":[]}`

// at is an exchange at a turn. failure 0 is a success.
func at(t *testing.T, body, slot string, failure, user, success uint64) *recovery.Exchange {
	t.Helper()
	b := recoverytest.Parse(t, body, transcript.Chat)
	x := &recovery.Exchange{Request: recovery.Request{ID: "r", Mode: recovery.ModeAct, Body: b},
		Conversation: recovery.Conversation{Session: "s"},
		Caller:       recovery.Caller{Trusted: true}}
	x.Turn = recovery.Turn{Slot: slot, Key: failure, User: user, Success: success}
	r := recovery.ToolFailure{Tool: "bash", Arguments: `{"command":"make"}`}
	if failure != 0 {
		r.Failed, r.Category, r.Fingerprint, r.Line = true, recovery.DiskFull, failure, "make: No space left on device"
		x.Turn.Failure, x.Turn.Streak, x.Turn.Seen = &r, 1, 1
	}
	x.Results = []recovery.ToolFailure{r}
	return x
}

func prepare(t *testing.T, s sessions, x *recovery.Exchange) *recovery.Reply {
	t.Helper()
	if err := s.Prepare(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	return x.Reply
}

func TestFifthIdenticalFailure(t *testing.T) {
	s := newSessions(newStore(t), nil)
	for i := 1; i <= 4; i++ {
		x := at(t, agent, fmt.Sprint(i), 7, 1, 0)
		if r := prepare(t, s, x); r != nil || x.Turn.Streak != i || x.Turn.Seen != i {
			t.Fatalf("failure %d: reply %+v, turn %+v", i, r, x.Turn)
		}
		for range 3 { // a client's own retries are the same turn
			if r := prepare(t, s, at(t, agent, fmt.Sprint(i), 7, 1, 0)); r != nil {
				t.Fatalf("retry of failure %d: %+v", i, r)
			}
		}
	}
	for range 2 {
		r := prepare(t, s, at(t, agent, "5", 7, 1, 0))
		if r == nil || r.Error || r.Action != "session_stopped" {
			t.Fatalf("the fifth failure: %+v", r)
		}
		for _, want := range []string{"`bash`", "5 times", "No space left on device", `{"command":"make"}`, "free some space", "Send a message"} {
			if !strings.Contains(r.Text, want) {
				t.Errorf("%q is missing in:\n%s", want, r.Text)
			}
		}
	}
	if got := s.told.Names(); got != "breaker_opened" {
		t.Errorf("events: %s", got)
	}
	s.board.Post(breaker.BoardSessions, store.Field{Name: "x", Value: []byte("not ours"), Until: time.Now().Add(time.Hour)}, false)
	if o := s.Open(); len(o) != 1 || o[0].Session != "s" || o[0].Failures != 5 || o[0].Tool != "bash" || o[0].Category != recovery.DiskFull {
		t.Errorf("open: %+v", o)
	}
	// A new message of the person closes it.
	x := at(t, agent, "", 0, 2, 0)
	x.Results, x.Turn = nil, recovery.Turn{}
	if r := prepare(t, s, x); r != nil {
		t.Errorf("after a new message: %+v", r)
	}
	if r := prepare(t, s, at(t, agent, "6", 7, 2, 0)); r != nil {
		t.Errorf("the first failure after it: %+v", r)
	}
	if got := s.told.Names(); got != "breaker_opened breaker_closed" {
		t.Errorf("events: %s", got)
	}
}

// A session that opens, or closes, for many requests at once is told of once.
func TestToldOnce(t *testing.T) {
	s := newSessions(newStore(t), nil)
	for i := 1; i <= 4; i++ {
		prepare(t, s, at(t, agent, fmt.Sprint(i), 7, 1, 0))
	}
	together := func(x func() *recovery.Exchange) {
		var wg sync.WaitGroup
		for range 32 {
			x := x()
			wg.Go(func() { _ = s.Prepare(t.Context(), x) })
		}
		wg.Wait()
	}
	together(func() *recovery.Exchange { return at(t, agent, "5", 7, 1, 0) })
	together(func() *recovery.Exchange {
		x := at(t, agent, "", 0, 2, 0)
		x.Results, x.Turn = nil, recovery.Turn{}
		return x
	})
	if got := s.told.Names(); got != "breaker_opened breaker_closed" {
		t.Errorf("events: %s", got)
	}
}

func TestWhatResets(t *testing.T) {
	type turn struct{ failure, user, success uint64 }
	for name, tt := range map[string]struct {
		turns []turn
		open  bool
	}{
		"nothing":                 {[]turn{{7, 1, 0}, {7, 1, 0}, {7, 1, 0}, {7, 1, 0}, {7, 1, 0}}, true},
		"an old success":          {[]turn{{7, 1, 3}, {7, 1, 3}, {7, 1, 3}, {7, 1, 3}, {7, 1, 3}}, true},
		"a success in between":    {[]turn{{7, 1, 0}, {7, 1, 0}, {7, 1, 9}, {7, 1, 9}, {7, 1, 9}}, false},
		"another failure":         {[]turn{{7, 1, 0}, {7, 1, 0}, {8, 1, 0}, {7, 1, 0}, {7, 1, 0}}, false},
		"a new message":           {[]turn{{7, 1, 0}, {7, 1, 0}, {7, 1, 0}, {7, 1, 0}, {7, 2, 0}}, false},
		"a history cut meanwhile": {[]turn{{7, 1, 3}, {7, 1, 3}, {7, 1, 0}, {7, 1, 0}, {7, 1, 0}}, true},
		"different all along":     {[]turn{{1, 1, 0}, {2, 1, 0}, {3, 1, 0}, {4, 1, 0}, {5, 1, 0}}, false},
		"a sixth":                 {[]turn{{7, 1, 0}, {7, 1, 0}, {7, 1, 0}, {7, 1, 0}, {7, 1, 0}, {7, 1, 0}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSessions(newStore(t), nil)
			var r *recovery.Reply
			for i, turn := range tt.turns {
				r = prepare(t, s, at(t, agent, fmt.Sprint(i), turn.failure, turn.user, turn.success))
			}
			if (r != nil) != tt.open {
				t.Errorf("open is %t", r != nil)
			}
		})
	}
}

// Two replicas take turns; both ask at once about the fifth.
func TestReplicas(t *testing.T) {
	shared := newStore(t)
	a, b := newSessions(shared, nil), newSessions(shared, nil)
	for i := range 4 {
		if r := prepare(t, [2]sessions{a, b}[i%2], at(t, agent, fmt.Sprint(i), 7, 1, 0)); r != nil {
			t.Fatalf("failure %d: %+v", i+1, r)
		}
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			x := at(t, agent, "5", 7, 1, 0)
			if err := [2]sessions{a, b}[i%2].Prepare(context.Background(), x); err != nil || x.Reply == nil {
				t.Errorf("replica %d: %v, %+v", i%2, err, x.Reply)
			}
		})
	}
	wg.Wait()
}

// After a restart without a shared store the request's own history counts, but
// only after this gateway has told the model so.
func TestHistoryCounts(t *testing.T) {
	s := newSessions(newStore(t), nil)
	x := at(t, agent, "5", 7, 1, 0)
	x.Turn.Streak = 5
	if prepare(t, s, x) != nil || len(x.Loops) != 1 || x.Loops[0].Count != 5 {
		t.Errorf("stopped without a firm note, or none is asked for: %+v", x.Loops)
	}
	x = at(t, agent, "6", 7, 1, 0)
	x.Turn.Streak = 6
	if prepare(t, s, x) == nil {
		t.Error("six failures in the history do not open the breaker")
	}
}

// A model that was told nothing is not stopped: requests that were only observed,
// or let it call no tools, do not count as told.
func TestNoStopWithoutAWarning(t *testing.T) {
	s := newSessions(newStore(t), nil)
	for i := range 7 {
		x := at(t, agent, fmt.Sprint(i), 7, 1, 0)
		if i < 4 {
			x.Mode = recovery.ModeObserve
		}
		if r := prepare(t, s, x); (r != nil) != (i > 4) {
			t.Errorf("failure %d: %+v", i+1, r)
		}
		if want := i >= 2 && i <= 4; x.Turn.Untold != want {
			t.Errorf("failure %d: untold %v, want %v", i+1, x.Turn.Untold, want)
		}
	}
	// However few failures are configured, the third is told before the stop.
	s = newSessions(newStore(t), func(c *breaker.Config) { c.Failures = 2 })
	for i := range 5 {
		x := at(t, agent, fmt.Sprint(i), 7, 1, 0)
		if r := prepare(t, s, x); (r != nil) != (i > 2) {
			t.Errorf("failure %d of two: %+v", i+1, r)
		}
		if i > 0 && (len(x.Loops) != 1 || x.Loops[0].Count != i+1 || x.Loops[0].Kind != recovery.LoopSameError) {
			t.Errorf("failure %d: told %+v", i+1, x.Loops)
		}
	}
}

// Two runs of one task at once, which make the same calls at the same turns in
// folders of their own: each is told and stopped as if it were alone.
func TestTwins(t *testing.T) {
	s := newSessions(newStore(t), nil)
	for i := range 5 {
		for _, key := range []uint64{7, 8} {
			x := at(t, agent, fmt.Sprint(i), key, 1, 0)
			x.Turn.Streak = i + 1
			if r := prepare(t, s, x); (r != nil) != (i == 4) {
				t.Errorf("failure %d of %d: %+v", i+1, key, r)
			}
		}
	}
}

// waits is an exchange at the n-th of turns that wait for the same.
func waits(t *testing.T, n int, key uint64) *recovery.Exchange {
	x := at(t, agent, fmt.Sprint("w", n), 0, 1, 0)
	x.Turn = recovery.Turn{Slot: fmt.Sprint("w", n), Before: fmt.Sprint("w", n-1), Waits: true, Key: key, User: 1, Streak: n}
	return x
}

// A session that waits is told so after ten minutes and stopped after two hours,
// by the clock and not by the number of its polls.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Defaults())
		defer st.Close()
		s := newSessions(st, nil)
		start := time.Now()
		for n := 1; ; n++ {
			x := waits(t, n, 7)
			r := prepare(t, s, x)
			waited := time.Since(start) - 90*time.Second // the second poll is the first of the same
			if told := x.Turn.Waited > 0; told != (waited >= 10*time.Minute) {
				t.Fatalf("poll %d, after %s: waited %s", n, waited, x.Turn.Waited)
			}
			if (r != nil) != (waited >= 2*time.Hour) {
				t.Fatalf("poll %d, after %s: %+v", n, waited, r)
			}
			if r != nil {
				if !strings.Contains(r.Text, "waited for 120 minutes") || s.told.Names() != "breaker_opened" {
					t.Errorf("%s, events %s", r.Text, s.told.Names())
				}
				break
			}
			time.Sleep(90 * time.Second)
		}
		// Something else between, another answer, another call: the clock starts anew.
		time.Sleep(time.Minute)
		if x := waits(t, 200, 7); prepare(t, s, x) != nil || x.Turn.Waited != 0 {
			t.Errorf("after something else: %+v", x.Turn)
		}
		if x := waits(t, 201, 8); prepare(t, s, x) != nil || x.Turn.Waited != 0 {
			t.Errorf("another answer: %+v", x.Turn)
		}
	})
}

// A client's own credential counts for nothing until an upstream has accepted it.
func TestCredentialFirst(t *testing.T) {
	s := newSessions(newStore(t), nil)
	x := func(slot string) *recovery.Exchange {
		x := at(t, agent, slot, 7, 1, 0)
		x.Trusted, x.Credential, x.Turn.Streak = false, "client-1", 6
		return x
	}
	for i := range 2 {
		if r := prepare(t, s, x(fmt.Sprint(i))); r != nil || len(s.Open()) != 0 {
			t.Fatalf("before: %+v", r)
		}
	}
	s.Accept(x("5"), time.Now())
	prepare(t, s, x("6"))
	if prepare(t, s, x("7")) == nil {
		t.Error("after: still not open")
	}
}

func TestReset(t *testing.T) {
	s := newSessions(newStore(t), nil)
	x := func(slot string) *recovery.Exchange {
		x := at(t, agent, slot, 7, 1, 0)
		x.Turn.Streak = 9
		return x
	}
	prepare(t, s, x("0"))
	if prepare(t, s, x("1")) == nil {
		t.Fatal("not open")
	}
	if err := s.Reset(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if _, known := s.board.Lookup(breaker.BoardSessions, "s"); known {
		t.Error("still on the board")
	}
	for i := range 4 {
		if r := prepare(t, s, x(fmt.Sprint("again", i))); r != nil {
			t.Fatalf("failure %d after the reset: %+v", i+1, r)
		}
	}
	if prepare(t, s, x("again4")) == nil {
		t.Error("five more do not open it again")
	}
}

func TestOnOpen(t *testing.T) {
	fill := func(t *testing.T, s sessions, body string, mode recovery.Mode) *recovery.Exchange {
		var x *recovery.Exchange
		for i := range 5 {
			x = at(t, body, fmt.Sprint(i), 7, 1, 0)
			x.Mode = mode
			prepare(t, s, x)
		}
		return x
	}
	set := func(o breaker.OnOpen) func(*breaker.Config) { return func(c *breaker.Config) { c.OnOpen = o } }
	if x := fill(t, newSessions(newStore(t), set(breaker.OnOpenError)), agent, recovery.ModeAct); x.Reply == nil || !x.Reply.Error {
		t.Errorf("error: %+v", x.Reply)
	}
	if x := fill(t, newSessions(newStore(t), set(breaker.OnOpenSteer)), agent, recovery.ModeAct); x.Reply != nil ||
		!strings.Contains(x.Guidance, "Do not call it again") {
		t.Errorf("steer: %+v, %q", x.Reply, x.Guidance)
	}
	structured := strings.Replace(agent, `{"model"`, `{"response_format":{"type":"json_object"},"model"`, 1)
	if x := fill(t, newSessions(newStore(t), nil), structured, recovery.ModeAct); x.Reply == nil || !x.Reply.Error {
		t.Errorf("structured output: %+v", x.Reply)
	}
	if x := fill(t, newSessions(newStore(t), nil), agent, recovery.ModeAnnotate); x.Reply != nil || x.Guidance == "" {
		t.Errorf("annotate: %+v, %q", x.Reply, x.Guidance)
	}
	s := newSessions(newStore(t), nil)
	if x := fill(t, s, agent, recovery.ModeObserve); x.Reply != nil || s.told.Names() != "breaker_opened" || !s.told.Events()[0].Observed {
		t.Errorf("observe: %+v, %s", x.Reply, s.told.Names())
	}
	if x := fill(t, newSessions(newStore(t), func(c *breaker.Config) { c.Failures = 0 }), agent, recovery.ModeAct); x.Reply != nil {
		t.Errorf("switched off: %+v", x.Reply)
	}
}

// away is a store that is away.
type away struct{}

func (away) Push(context.Context, string, string, []byte, int, time.Duration) ([][]byte, error) {
	return nil, store.ErrUnavailable
}
func (away) Get(context.Context, ...string) ([][]byte, error) { return nil, store.ErrUnavailable }
func (away) Set(context.Context, ...store.Entry) error        { return store.ErrUnavailable }
func (away) Delete(context.Context, ...string) error          { return store.ErrUnavailable }
func (away) Charge(context.Context, ...store.Charge) (store.Charged, error) {
	return store.Charged{}, store.ErrUnavailable
}

// hostile is a store with values that are not ours.
type hostile struct{}

func (hostile) Charge(context.Context, ...store.Charge) (store.Charged, error) {
	return store.Charged{}, store.ErrUnavailable
}

func (hostile) Push(_ context.Context, _, _ string, v []byte, _ int, _ time.Duration) ([][]byte, error) {
	return [][]byte{[]byte("x"), nil, []byte(`{"f":"7"}`), []byte(`[]`), v}, nil
}
func (hostile) Get(context.Context, ...string) ([][]byte, error) {
	return [][]byte{[]byte(`{"k":7,"t":"x"}`)}, nil
}
func (hostile) Set(context.Context, ...store.Entry) error { return nil }
func (hostile) Delete(context.Context, ...string) error   { return nil }

func TestStoreTrouble(t *testing.T) {
	for _, rings := range []breaker.Rings{away{}, hostile{}} {
		s := newSessions(rings, nil)
		for i := range 6 {
			if r := prepare(t, s, at(t, agent, fmt.Sprint(i), 7, 1, 0)); r != nil {
				t.Errorf("%T: %+v", rings, r)
			}
			if x := waits(t, i+1, 7); prepare(t, s, x) != nil || x.Turn.Waited != 0 {
				t.Errorf("%T: waits %+v", rings, x.Turn)
			}
		}
	}
	if newSessions(away{}, nil).Reset(t.Context(), "s") == nil {
		t.Error("a reset that did not happen is reported as done")
	}
}

// What a person asked to repeat is not stopped before that: a number may be reached, and
// until something comes of it there are twenty.
func TestAskedToRepeat(t *testing.T) {
	for _, c := range []struct {
		allowed int
		until   bool
		want    int
	}{{0, false, 5}, {3, false, 5}, {8, false, 9}, {0, true, 20}} {
		s, stopped := newSessions(newStore(t), nil), 0
		for n := 1; n <= 24 && stopped == 0; n++ {
			x := at(t, agent, fmt.Sprint("t", n), 7, 1, 0)
			x.Turn.Streak, x.Turn.Allowed, x.Turn.Until = n, c.allowed, c.until
			if err := s.Prepare(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			if x.Reply != nil {
				stopped = n
			}
		}
		if stopped != c.want {
			t.Errorf("%+v: stopped at %d", c, stopped)
		}
	}
}
