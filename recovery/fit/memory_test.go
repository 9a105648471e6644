package fit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

func TestTurns(t *testing.T) {
	all := newTurnCache()
	at := func(n int) place { return place{n, uint64(n), uint64(n - 1)} } // message n is the last of the request with n answers
	all.note("s", at(5), true)
	for n, want := range map[int]bool{0: true, 1: true, 2: false, 4: false, 5: true, 6: true, 7: false} {
		if yes, _ := all.follows("s", at(n)); yes != want {
			t.Errorf("%d answers after 5: follows %v", n, yes)
		}
	}
	for name, cut := range map[string]place{"a turn later": {5, 6, 5}, "two turns later": {5, 7, 6}, "another sixth": {6, 6, 9}} {
		if yes, _ := all.follows("s", cut); yes {
			t.Errorf("a history that was cut, %s, follows", name)
		}
	}
	if yes, kept := all.follows("other", at(2)); yes || kept {
		t.Error("an unknown conversation follows")
	}
	for i := range 3 * maxTurns {
		all.note(fmt.Sprint(i), at(2), false)
		if all.Len() > maxTurns {
			t.Fatalf("%d entries", all.Len())
		}
	}
	if yes, _ := all.follows(fmt.Sprint(3*maxTurns-1), at(3)); !yes {
		t.Error("the last one is forgotten")
	}
	if yes, _ := all.follows("s", at(6)); yes {
		t.Error("the first one is still there")
	}
}

func TestAnswersIn(t *testing.T) {
	s := newScript().say("user", "a").say("assistant", "b").say("assistant", "c").say("user", "d").say("assistant", "e")
	one, two, none := newTurnCache().placeOf(s.body(t)), newTurnCache().placeOf(s.body(t)), newTurnCache().placeOf(newScript().body(t))
	if one.answers != none.answers+2 || one.last == two.last {
		t.Errorf("%+v, %+v, %+v", one, two, none)
	}
}

// completeExchange does what the engine does when an answer is complete.
func completeExchange(f *Fitter, x *recovery.Exchange, tokens int) {
	f.Commit(context.Background(), x)
	f.Learn(x, &x.Candidates[0], recovery.Usage{Input: tokens})
}

// A process that serves every turn of a conversation does not read the store; another one
// reads it once, even if it knows no windows. Edits are stored before the answer leaves.
func TestReadsStoreOnce(t *testing.T) {
	disk := newFakeStore()
	one, two := newTestFitter(t, Defaults(), disk), newTestFitter(t, Defaults(), disk)
	two.parts.Windows = NewWindows() // it has not learned the window
	s := talkScript(60)
	send := func(f *Fitter, want int) *recovery.Fitted {
		t.Helper()
		disk.mu.Lock()
		before := disk.reads
		disk.mu.Unlock()
		x := exchange(s.body(t), "s", nil)
		x.Fitted = f.Prepared(context.Background(), x)
		completeExchange(f, x, 5000)
		disk.mu.Lock()
		defer disk.mu.Unlock()
		if n := disk.reads - before; n != want {
			t.Errorf("%d answers: the store was asked %d times, want %d", f.memory.turns.placeOf(x.Body).answers, n, want)
		}
		s.say("assistant", "And on.").say("user", "More.")
		return x.Fitted
	}
	send(one, 1) // it has never seen the conversation
	send(one, 0)
	send(one, 0)
	send(two, 1)
	send(two, 0)
	x, out := fitOnce(t, two, s.body(t), 9000, "s", func(recovery.Prompt) (string, error) { return fineSummary, nil })
	if out == nil {
		t.Fatal("not fitted")
	}
	two.Commit(context.Background(), x)
	if len(disk.m[editsKey("s")]) == 0 {
		t.Fatal("the edits are not stored when the answer is about to leave")
	}
	s.say("assistant", "And on.").say("user", "More.")
	first := send(one, 1)
	two.Learn(x, &x.Candidates[0], recovery.Usage{Input: out.After}) // late
	two.Flush()
	second := send(two, 1)
	third := send(two, 0)
	for i, got := range []*recovery.Fitted{first, second, third} {
		if got == nil || !got.Sticky {
			t.Fatalf("request %d: %+v", i, got)
		}
		if n := len(out.Body.Messages()); string(got.Body.Messages()[n-1].Raw()) != string(out.Body.Messages()[n-1].Raw()) {
			t.Errorf("request %d: the beginning differs", i)
		}
	}
}

// A late report of one replica does not overwrite another's newer edits.
func TestLateReport(t *testing.T) {
	disk := newFakeStore()
	one, two := newTestFitter(t, Defaults(), disk), newTestFitter(t, Defaults(), disk)
	s := talkScript(60)
	x, out := fitOnce(t, one, s.body(t), 9000, "s", func(recovery.Prompt) (string, error) { return fineSummary, nil })
	completeExchange(one, x, out.After)
	one.Flush()
	slow := exchange(s.body(t), "s", nil)
	slow.Fitted = two.Prepared(context.Background(), slow)
	two.Commit(context.Background(), slow)

	s = talkScript(150)
	y, further := fitOnce(t, one, s.body(t), 9000, "s", func(recovery.Prompt) (string, error) { return fineSummary, nil })
	if further == nil {
		t.Fatal("not fitted again")
	}
	one.Commit(context.Background(), y)
	one.Flush() // a slow machine may take longer than Commit waits
	two.Learn(slow, &slow.Candidates[0], recovery.Usage{Input: slow.Fitted.After})
	two.Flush()
	stored, err := decodeSession(disk.m[editsKey("s")])
	if err != nil || stored.Gen != 2 {
		t.Fatalf("%+v, %v", stored, err)
	}
	z := exchange(s.body(t), "s", nil)
	if got := two.Prepared(context.Background(), z); got == nil || string(got.Body.Raw()) != string(further.Body.Raw()) {
		t.Error("the other replica does not make the same bytes")
	}
}

// Edits are retracted, for all replicas, if the upstream answered the client's own bytes.
func TestRetract(t *testing.T) {
	disk := newFakeStore()
	f := newTestFitter(t, Defaults(), disk)
	s := talkScript(60)
	x, out := fitOnce(t, f, s.body(t), 9000, "s", func(recovery.Prompt) (string, error) { return fineSummary, nil })
	x.Fitted = nil // the target refused what was edited
	completeExchange(f, x, out.Before)
	f.Flush()
	stored, err := decodeSession(disk.m[editsKey("s")])
	if err != nil || stored.edited() || stored.Window != 9000 {
		t.Errorf("stored %+v, %v", stored, err)
	}
	if got := f.Prepared(context.Background(), exchange(s.body(t), "s", nil)); got != nil && got.Sticky {
		t.Error("the edits are still made")
	}
}

// All waits of a request for the store together take at most the store's timeout. Writing
// beside an attempt that takes longer costs no time.
func TestStoreTimeInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newFakeStore()
		f := New(Defaults(), Parts{Meter: newMeter(), Windows: NewWindows(), Store: Replica(t, disk)})
		defer f.Close(context.Background())
		b := talkScript(60).body(t)
		run := func(name string, delay, attempt, most time.Duration) {
			disk.slow(delay)
			began := time.Now()
			x := exchange(b, name, func(recovery.Prompt) (string, error) { return fineSummary, nil })
			f.Prepared(context.Background(), x)
			x.Fitted = f.Fit(context.Background(), x, &x.Candidates[0], overflow(9000, 20_000))
			time.Sleep(attempt)
			f.Commit(context.Background(), x)
			f.Learn(x, &x.Candidates[0], recovery.Usage{Input: x.Fitted.After})
			if took := time.Since(began) - attempt; took > most {
				t.Errorf("%s: %v were spent with the store", name, took)
			}
		}
		run("hangs", time.Hour, 0, store.SharedDefaults().Timeout)
		run("slow", 30*time.Millisecond, 0, store.SharedDefaults().Timeout)
		run("slow beside an attempt", 20*time.Millisecond, time.Second, 20*time.Millisecond)
	})
}

// The edits of an active session stay stored without being written each time.
func TestKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Defaults()
		cfg.TTL = 8 * time.Hour
		disk := newFakeStore()
		f := New(cfg, Parts{Meter: newMeter(), Windows: NewWindows(), Store: Replica(t, disk)})
		defer f.Close(context.Background())
		b := talkScript(60).body(t)
		x, out := fitOnce(t, f, b, 9000, "s", func(recovery.Prompt) (string, error) { return fineSummary, nil })
		completeExchange(f, x, out.After)
		f.Flush()
		first, _ := decodeSession(disk.m[editsKey("s")])
		for range 10 {
			time.Sleep(10 * time.Minute)
			y := exchange(b, "s", nil)
			y.Fitted = f.Prepared(context.Background(), y)
			completeExchange(f, y, out.After)
			f.Flush()
		}
		if last, err := decodeSession(disk.m[editsKey("s")]); err != nil || last.Written <= first.Written || last.Gen != first.Gen {
			t.Errorf("written %+v, then %+v, %v", first, last, err)
		}
		if disk.sets[editsKey("s")] != 2 {
			t.Errorf("the edits were written %d times", disk.sets[editsKey("s")])
		}
	})
}

// A reloaded TTL takes effect at once.
func TestLifetimeReloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Defaults()
		cfg.TTL = 8 * time.Hour
		f := New(cfg, Parts{Meter: newMeter(), Windows: NewWindows()})
		defer f.Close(context.Background())
		remembered := func(name string, after time.Duration) bool {
			b := talkScript(60).body(t)
			x, out := fitOnce(t, f, b, 9000, name, func(recovery.Prompt) (string, error) { return fineSummary, nil })
			completeExchange(f, x, out.After)
			time.Sleep(after)
			return f.Prepared(context.Background(), exchange(b, name, nil)) != nil
		}
		if !remembered("long", time.Hour) {
			t.Error("forgotten in an eighth of its time")
		}
		cfg.TTL = time.Minute
		f.Reconfigure(cfg)
		if remembered("short", time.Hour) {
			t.Error("remembered for an hour where a minute is configured")
		}
	})
}

// Invalid values in the store are ignored and replaced.
func TestHostileValues(t *testing.T) {
	s := talkScript(60)
	for name, value := range map[string]string{"empty": "", "text": "hello", "version": "\x02abcdefgh", "long": strings.Repeat("\x03", 1<<20)} {
		disk := newFakeStore()
		disk.m[editsKey("s")], disk.m[reportKey("s")] = []byte(value), []byte(value)
		f := newTestFitter(t, Defaults(), disk)
		x := exchange(s.body(t), "s", nil)
		if f.Prepared(context.Background(), x) != nil || disk.reads != 1 {
			t.Errorf("%s: used", name)
		}
		x.Fitted = f.Fit(context.Background(), x, &x.Candidates[0], overflow(9000, 20_000))
		if x.Fitted == nil {
			t.Errorf("%s: not fitted", name)
			continue
		}
		completeExchange(f, x, x.Fitted.After)
		f.Flush()
		if got, err := decodeSession(disk.m[editsKey("s")]); err != nil || !got.edited() {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// close runs the queued jobs, but none after its ctx has ended.
func TestCloseGivesUp(t *testing.T) {
	for name, limit := range map[string]time.Duration{"in time": time.Hour, "too late": 90 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(nil, func() time.Duration { return time.Hour })
			ran := 0
			for range 10 {
				m.enqueue(func() { time.Sleep(time.Minute); ran++ })
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			err := m.close(ctx)
			if all := limit == time.Hour; all && (err != nil || ran != 10) || !all && (err == nil || ran != 2) {
				t.Errorf("%s: %d jobs ran, %v", name, ran, err)
			}
			if m.enqueue(func() {}) || m.close(context.Background()) != nil {
				t.Errorf("%s: it goes on", name)
			}
		})
	}
}

// Edits that a small fallback needed are not made for a target that takes the whole history, until that one needs them too.
func TestEditsAreForTheirTarget(t *testing.T) {
	f := newTestFitter(t, Defaults(), newFakeStore())
	s := talkScript(120)
	total := f.parts.Meter.Measure(s.body(t), "gpt-4o").Total
	x, out := fitOnce(t, f, s.body(t), total*3/4, "s", nil)
	if out == nil {
		t.Fatal("not fitted")
	}
	completeExchange(f, x, out.After)
	large := recovery.Target{Upstream: "large", Model: "gpt-4.1"}
	ask := func(target recovery.Target, window int) (*recovery.Exchange, *recovery.Fitted) {
		s.say("assistant", "And on.").say("user", "More.")
		x := exchange(s.body(t), "s", nil)
		x.Candidates[0].Target, x.Candidates[0].Window = target, window
		x.Fitted = f.Prepared(context.Background(), x)
		return x, x.Fitted
	}
	small := x.Candidates[0].Target
	for _, window := range []int{0, 2 * total} {
		if _, out := ask(large, window); out != nil {
			t.Errorf("window %d: %d of %d tokens go to a target that takes all", window, out.After, out.Before)
		}
	}
	if _, out := ask(small, 0); out == nil || !out.Sticky {
		t.Error("the target that needs the edits does not get them")
	}
	y, _ := ask(small, 0)
	y.Fitting, y.LongContext = nil, true // as Claude Code asks for a window of a million tokens
	if out := f.Prepared(context.Background(), y); out != nil {
		t.Errorf("%d of %d tokens go to the long context of the same model", out.After, out.Before)
	}
	if _, out := ask(large, total); out == nil || !out.Sticky {
		t.Error("a target whose window is known to be too small does not get them")
	}
	x, out = ask(large, 0)
	if out != nil {
		t.Fatal("it refused nothing")
	}
	if x.Fitted = f.Fit(context.Background(), x, &x.Candidates[0], overflow(0, 0)); x.Fitted == nil || !x.Fitted.Sticky {
		t.Fatal("the edits are not made after a refusal")
	}
	completeExchange(f, x, 5000)
	if _, out := ask(large, 0); out == nil {
		t.Error("a target that needs them is refused again")
	}
}

// What an account may use in a minute is no window of the target: the session that was refused keeps to it, others do not.
func TestTokensPerMinuteAreNoWindow(t *testing.T) {
	f := newTestFitter(t, Defaults(), nil)
	s := talkScript(120)
	limit := f.parts.Meter.Measure(s.body(t), "gpt-4o").Total * 9 / 10
	x := exchange(s.body(t), "s", nil)
	fail := overflow(limit, 0)
	fail.Facts.PerTime = true
	if x.Fitted = f.Fit(context.Background(), x, &x.Candidates[0], fail); x.Fitted == nil {
		t.Fatal("not fitted")
	}
	completeExchange(f, x, x.Fitted.After)
	if n := f.parts.Windows.Window(x.Candidates[0].Target); n != 0 {
		t.Errorf("a window of %d tokens is learned for all accounts", n)
	}
	if n := f.window(x, &x.Candidates[0], f.memory.local("s")); n != limit {
		t.Errorf("the session's own limit is %d, want %d", n, limit)
	}
}

// A window that another account was refused for, as providers have smaller ones for accounts that do not pay, is not that of
// a session whose longer prompts are answered.
func TestWindowOfAnotherAccount(t *testing.T) {
	f := newTestFitter(t, Defaults(), nil)
	s := talkScript(60)
	total := f.parts.Meter.Measure(s.body(t), "gpt-4o").Total
	x := exchange(s.body(t), "s", nil)
	f.parts.Windows.LearnWindow(x.Candidates[0].Target, total/3, "other")
	for n := range 3 {
		if x.Fitted = f.Prepared(context.Background(), x); x.Fitted != nil {
			t.Fatalf("request %d: %d of %d tokens are left, at a target that answers all", n+1, x.Fitted.After, x.Fitted.Before)
		}
		completeExchange(f, x, f.parts.Meter.Measure(x.Body, "gpt-4o").Total)
		f.Flush()
		s.say("assistant", "And on.").say("user", "More.")
		x = exchange(s.body(t), "s", nil)
	}
	if f.memory.local("s") == nil {
		t.Fatal("no report was kept: nothing is tested")
	}
	x.Candidates[0].Window = total / 2
	f.parts.Windows = NewWindows()
	if f.Prepared(context.Background(), x) == nil {
		t.Error("the configured window does not hold")
	}
}
