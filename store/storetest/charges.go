package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// Count adds to a meter and returns its sum: a counter for tests. Its window
// lasts 91 days.
func Count(s store.Store, key string, n int64) (int64, error) {
	done, err := s.Charge(ctx, store.Charge{Account: key, Meter: "count", Amount: n, Window: store.MaxTTL / 4, Calendar: true})
	if err != nil {
		return 0, err
	}
	return done.Used[0], nil
}

// charge makes one charge and returns what the meter has, -1 if it was refused.
func charge(t *testing.T, s store.Store, c store.Charge) (int64, store.Charged) {
	t.Helper()
	done, err := s.Charge(ctx, c)
	must(t, err)
	switch {
	case len(done.Used) != 1 || done.Refused < -1 || done.Refused > 0:
		t.Fatalf("one charge answers %+v", done)
	case done.Refused == 0:
		return -1, done
	}
	return done.Used[0], done
}

// far is a window that ends during a test only if the test starts at its very end.
const far = 20 * 24 * time.Hour

func charges(t *testing.T, s store.Store) {
	c := store.Charge{Account: "a", Meter: "m", Limit: 10, Window: far, Calendar: true}
	for _, step := range []struct{ amount, want int64 }{{4, 4}, {0, 4}, {6, 10}, {1, -1}, {0, 10}, {-3, 7}, {4, -1}, {3, 10}} {
		c.Amount = step.amount
		if got, _ := charge(t, s, c); got != step.want {
			t.Errorf("after a charge of %d the meter has %d, want %d", step.amount, got, step.want)
		}
	}
	for _, other := range []store.Charge{{Account: "a", Meter: "m2"}, {Account: "a2", Meter: "m"}} {
		other.Window, other.Amount, other.Calendar = far, 1, true
		if got, _ := charge(t, s, other); got != 1 {
			t.Errorf("another meter has %d, want 1", got)
		}
	}
	c.Limit, c.Amount = 0, 90
	if got, _ := charge(t, s, c); got != 100 {
		t.Errorf("without a limit the meter has %d, want 100", got)
	}
	// All or none, over several accounts; Refused is the first that exceeds its limit.
	many := []store.Charge{
		{Account: "x", Meter: "m", Amount: 1, Limit: 5, Window: far, Calendar: true},
		{Account: "y", Meter: "m", Amount: 3, Limit: 7, Window: far, Calendar: true},
		{Account: "y", Meter: "m2", Amount: 1, Limit: 2, Window: far},
	}
	for i, want := range []string{"-1 [1 3 1]", "-1 [2 6 2]", "1 [3 9 3]", "1 [3 9 3]"} {
		done, err := s.Charge(ctx, many...)
		must(t, err)
		if got := fmt.Sprint(done.Refused, " ", done.Used); got != want {
			t.Errorf("time %d: %s, want %s", i, got, want)
		}
	}
	if _, done := charge(t, s, store.Charge{Account: "x", Meter: "m", Amount: store.MaxAmount, Window: far}); done.Used[0] < store.MaxAmount {
		t.Errorf("the largest amount is %d", done.Used[0])
	}
}

func leastAmounts(t *testing.T, s store.Store) {
	c := store.Charge{Account: "a", Meter: "m", Limit: 10, Window: far, Calendar: true}
	for i, step := range []struct{ amount, least, charged, used int64 }{
		{6, 1, 6, 6}, {6, 1, 4, 10}, {6, 1, -1, 10}, {-3, 0, -3, 7}, {9, 4, -1, 7}, {9, 3, 3, 10}, {0, 1, 0, 10},
	} {
		c.Amount, c.Least = step.amount, step.least
		used, done := charge(t, s, c)
		if step.charged == -1 {
			if used != -1 || done.Wait <= 0 {
				t.Errorf("step %d: %+v, want a refusal with a wait", i, done)
			}
			continue
		}
		if used != step.used || len(done.Amounts) != 1 || done.Amounts[0] != step.charged {
			t.Errorf("step %d: %+v, want %d charged and %d used", i, done, step.charged, step.used)
		}
	}
	// A charge that can never fit has no wait; that depends on Least.
	c.Amount, c.Least = 20, 11
	if used, done := charge(t, s, c); used != -1 || done.Wait != 0 {
		t.Errorf("%+v", done)
	}
}

// size is the window of tests that wait for its end.
const size = 400 * time.Millisecond

func slidingWindows(t *testing.T, s store.Store) {
	c := store.Charge{Account: "a", Meter: "m", Amount: 1, Limit: 8, Window: size}
	begin := time.Now()
	for range 8 {
		charge(t, s, c)
	}
	n, done := charge(t, s, c)
	if took := time.Since(begin); n != -1 && took < size/16 {
		t.Fatalf("the ninth of eight passes after %v", took)
	}
	if n == -1 && (done.Wait <= 0 || done.Wait > 2*size) {
		t.Errorf("the wait for a window of %v is %v", size, done.Wait)
	}
	// Any stretch as long as the window has about the limit: what has faded of
	// the window before is free again.
	passed, from := 8, time.Now()
	for time.Since(from) < 4*size {
		if n, done := charge(t, s, c); n >= 0 {
			passed++
		} else if done.Wait <= 0 {
			t.Fatalf("a refusal without a wait: %+v", done)
		}
		time.Sleep(size / 100)
	}
	windows := float64(time.Since(begin)) / float64(size)
	if most := int(8*windows) + 9; passed > most || passed < 17 {
		t.Errorf("%d charges passed in %.1f windows of 8", passed, windows)
	}
	// After the returned wait, a charge passes if there was no other.
	for n, done = charge(t, s, c); n >= 0; n, done = charge(t, s, c) {
	}
	time.Sleep(done.Wait)
	if n, again := charge(t, s, c); n < 0 {
		t.Errorf("after a wait of %v it is refused with %v more", done.Wait, again.Wait)
	}
	if n, done := charge(t, s, store.Charge{Account: "a", Meter: "m", Amount: 9, Limit: 8, Window: size}); n != -1 || done.Wait != 0 {
		t.Errorf("what never fits: %d, wait %v", n, done.Wait)
	}
}

func calendarWindows(t *testing.T, s store.Store) {
	c := store.Charge{Account: "a", Meter: "m", Amount: 3, Limit: 4, Window: size, Calendar: true}
	for range 3 {
		n, done, asked := int64(0), store.Charged{}, time.Time{}
		for n >= 0 { // a window may have ended in between
			asked = time.Now()
			n, done = charge(t, s, c)
		}
		if done.Wait <= 0 || done.Wait > size {
			t.Fatalf("the wait is %v, want at most a window of %v", done.Wait, size)
		}
		end := time.Now().Add(done.Wait)
		windows := func(at time.Time) int64 { return at.UnixMicro() / size.Microseconds() }
		if windows(end.Add(2*time.Millisecond)) == windows(asked.Add(done.Wait-2*time.Millisecond)) {
			t.Errorf("at the end of the wait no window begins: %v", done.Wait)
		}
		time.Sleep(time.Until(end))
		if n, _ := charge(t, s, c); n != 3 {
			t.Errorf("a new window has %d, want 3", n)
		}
	}
}

func givenBack(t *testing.T, s store.Store) {
	c := store.Charge{Account: "a", Meter: "m", Amount: 10, Limit: 10, Window: size}
	charge(t, s, c)
	time.Sleep(size) // now the amount is in the window before
	c.Amount, c.Limit = -10, 1
	if n, _ := charge(t, s, c); n < -10 || n > 0 {
		t.Errorf("giving back leaves %d", n)
	}
	c.Amount = 0
	if n, _ := charge(t, s, c); n != 0 {
		t.Errorf("after all was given back the meter has %d", n)
	}
	c.Amount = -5
	charge(t, s, c)
	c.Amount, c.Limit = 2, 2
	if n, _ := charge(t, s, c); n != 2 {
		t.Errorf("giving back more than was charged made room: %d, want 2", n)
	}
}

func holders(t *testing.T, s store.Store) {
	hold := func(meter, holder string, n, limit int64) (int64, int) {
		t.Helper()
		used, done := charge(t, s, store.Charge{Account: "a", Meter: meter, Holder: holder, Amount: n, Limit: limit, Window: time.Hour})
		return used, done.Holders
	}
	for i, step := range []struct {
		holder         string
		n, limit, want int64
		holders        int
	}{
		{"x", 3, 5, 3, 1}, {"y", 2, 5, 5, 2}, {"y", 3, 5, -1, 2}, {"x", 2, 0, 4, 2}, {"y", 3, 5, 5, 2},
		{"x:y", 1, 5, -1, 3}, {"x", 0, 0, 3, 2}, {"z", 2, 5, 5, 3},
	} {
		if used, holders := hold("m", step.holder, step.n, step.limit); used != step.want || holders != step.holders {
			t.Errorf("step %d, %s has %d of %d: together %d of %d holders, want %d of %d", i, step.holder, step.n, step.limit, used, holders, step.want, step.holders)
		}
	}
	if used, n := hold("m:", "x", 1, 1); used != 1 || n != 1 {
		t.Errorf("the holders of another meter count: %d of %d", used, n)
	}
	if n, _ := charge(t, s, store.Charge{Account: "a", Meter: "m", Amount: 1, Limit: 1, Window: time.Hour}); n != 1 {
		t.Errorf("holders count in a window of the same name: %d", n)
	}
}

// The amount of a holder that stops charging, such as a crashed process, ends
// with its window.
func holdersEnd(t *testing.T, s store.Store) {
	c := store.Charge{Account: "a", Meter: "m", Holder: "crashed", Amount: 5, Limit: 5, Window: 100 * time.Millisecond}
	charge(t, s, c)
	c.Holder, c.Amount, c.Window = "other", 1, time.Hour
	Eventually(t, "what a crashed holder had is free", soon, func() bool {
		n, done := charge(t, s, c)
		return n == 1 && done.Holders == 1
	})
}

func chargesConcurrent(t *testing.T, s store.Store) {
	passed := make([]int, 8)
	concurrently(t, len(passed), func(i int) error {
		for range 40 {
			done, err := s.Charge(context.Background(),
				store.Charge{Account: "a", Meter: "m", Amount: 1, Limit: 100, Window: far, Calendar: true},
				store.Charge{Account: "b", Meter: "m", Amount: 1, Window: far, Calendar: true})
			if err != nil {
				return err
			}
			if done.Refused > 0 {
				return errors.New("the charge without a limit was refused")
			}
			passed[i] -= done.Refused // -1 or 0
		}
		return nil
	})
	sum := 0
	for _, n := range passed {
		sum += n
	}
	done, err := s.Charge(ctx, store.Charge{Account: "a", Meter: "m", Window: far, Calendar: true},
		store.Charge{Account: "b", Meter: "m", Window: far, Calendar: true})
	must(t, err)
	if sum != 100 || done.Used[0] != 100 || done.Used[1] != 100 {
		t.Errorf("%d charges of 100 passed, the meters have %d", sum, done.Used)
	}
}
