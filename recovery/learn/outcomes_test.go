package learn_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/learn"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/memory"
)

var priors = learn.Priors{"timeout": {"reduce_scope": 0.7, "background": 0.4}}

func public() learn.Vocabulary {
	return learn.Vocabulary{"no": true, "such": true, "file": true, "timed": true, "out": true}
}

// replica is outcomes with a store that may be shared.
func replica(t *testing.T, mode string, s store.Store) (*learn.Outcomes, *recoverytest.Observer) {
	t.Helper()
	seen := &recoverytest.Observer{}
	o := learn.NewOutcomes(mode, priors, learn.Parts{Store: s, Vocabulary: public, Observer: seen})
	t.Cleanup(o.Close)
	return o, seen
}

func newStore(t *testing.T) store.Store {
	s := memory.New(memory.Defaults())
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// noted is the event of a note about the failure of a session.
func noted(session string, at int) recovery.Event {
	return recovery.Event{Name: recovery.EventGuidance, Origin: recovery.Origin{Session: session, Model: "m"}, Trouble: recovery.Trouble{Advice: &recovery.Advice{Category: recovery.ToolTimeout,
		Chain: "timeout", Strategies: []string{"reduce_scope", "ask_user"}, Key: "alice", Template: "timed out <*>", Fingerprint: 7, At: at}}}
}

func reported(t *testing.T, o *learn.Outcomes) recovery.Learned {
	t.Helper()
	r, err := o.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A session's next request may come before the goroutine has seen its note, as while the
// vocabulary is loaded: what it shows is reported all the same.
func TestOutcomesOfFastAgents(t *testing.T) {
	loading := make(chan struct{})
	seen := &recoverytest.Observer{}
	o := learn.NewOutcomes(learn.OutcomesAct, priors, learn.Parts{Store: newStore(t), Observer: seen, Vocabulary: func() learn.Vocabulary {
		<-loading
		return public()
	}})
	defer o.Close()
	o.Observe(noted("s", 3))
	if !o.Open("s") || o.Open("t") {
		t.Error("what is open is not known at once")
	}
	close(loading)
}

// An outcome is what the next calls of the session say, and another replica may be
// the one that is told.
func TestOutcomes(t *testing.T) {
	after := func(calls int, change func(*recovery.After)) recovery.After {
		a := recovery.After{Session: "s", Fingerprint: 7, At: 3, Calls: calls}
		if change != nil {
			change(&a)
		}
		return a
	}
	some := func(a *recovery.After) { a.Some = true }
	for name, c := range map[string]struct {
		told []recovery.After
		want string // "" still open
	}{
		"the target at once":          {[]recovery.After{after(1, func(a *recovery.After) { a.Target = true })}, "success"},
		"the target at the second":    {[]recovery.After{after(1, some), after(2, func(a *recovery.After) { a.Some, a.Target = true, true })}, "success"},
		"the same again":              {[]recovery.After{after(1, func(a *recovery.After) { a.Same = true })}, "failure"},
		"another way":                 {[]recovery.After{after(1, some), after(2, some)}, "other_way"},
		"other failures":              {[]recovery.After{after(1, nil), after(2, nil)}, "failure"},
		"a person":                    {[]recovery.After{after(0, func(a *recovery.After) { a.Person = true })}, "censored"},
		"the model stopped":           {[]recovery.After{after(0, func(a *recovery.After) { a.Stopped = true })}, "failure"},
		"not decided":                 {[]recovery.After{after(1, some)}, ""},
		"another failure's":           {[]recovery.After{{Session: "s", Fingerprint: 8, At: 3, Target: true}}, ""},
		"another session's":           {[]recovery.After{{Session: "t", Fingerprint: 7, At: 3, Target: true}}, ""},
		"a retry judges only once":    {[]recovery.After{after(1, func(a *recovery.After) { a.Target = true }), after(1, func(a *recovery.After) { a.Same = true })}, "success"},
		"a retry of a later failure":  {[]recovery.After{{Session: "s", Fingerprint: 7, At: 5, Same: true}}, ""},
		"late, after another success": {[]recovery.After{after(1, some)}, "late other_way"},
		"late, after nothing":         {nil, "late failure"},
	} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprint(name, elsewhere), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newStore(t)
					one, seen := replica(t, learn.OutcomesAct, s)
					two, other := one, &recoverytest.Observer{}
					if elsewhere {
						two, other = replica(t, learn.OutcomesAct, s)
					}
					one.Observe(noted("s", 3))
					one.Observe(noted("s", 3)) // a client's retry
					synctest.Wait()
					if !one.Open("s") || one.Open("t") || elsewhere && two.Open("s") {
						t.Error("what is open is not known")
					}
					for _, a := range c.told {
						two.After(a)
						synctest.Wait()
					}
					want, late := strings.CutPrefix(c.want, "late ")
					if late {
						time.Sleep(40 * time.Minute)
						synctest.Wait()
					}
					var judged []string
					for _, ev := range append(seen.Events(), other.Events()...) {
						judged = append(judged, ev.Cause)
					}
					if got := strings.Join(judged, " "); got != want {
						t.Errorf("judged %q, want %q", got, want)
					}
					n := 0
					if want != "" {
						n = 1
					}
					if a, b := reported(t, one), reported(t, two); a.Observations != n || b.Observations != n {
						t.Errorf("%d and %d observations, want %d", a.Observations, b.Observations, n)
					}
					if late && (one.Open("s") || two.Open("s")) {
						t.Error("still open")
					}
				})
			})
		}
	}
}

// What is no note about a chain's failure, or was only observed, begins nothing.
func TestNoIntervention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := replica(t, learn.OutcomesAct, newStore(t))
		off, _ := replica(t, learn.OutcomesOff, newStore(t))
		for _, change := range []func(*recovery.Event){
			func(ev *recovery.Event) { ev.Name = recovery.EventLoop }, func(ev *recovery.Event) { ev.Advice = nil },
			func(ev *recovery.Event) { ev.Advice.Chain = "" }, func(ev *recovery.Event) { ev.Observed = true }, func(ev *recovery.Event) { ev.Session = "" },
		} {
			ev := noted("s", 1)
			change(&ev)
			o.Observe(ev)
		}
		off.Observe(noted("s", 1))
		synctest.Wait()
		if n := reported(t, o).Open; n != 0 || off.Open("s") || o.Open("") {
			t.Errorf("%d are open", n)
		}
		if err := off.Reset(t.Context()); err == nil {
			t.Error("nothing is learned, and was reset")
		}
	})
}

// entry is an entry of the corpus.
func entry(i int, change func(*learn.Observation)) []byte {
	o := learn.Observation{V: 1, ID: fmt.Sprintf("i%d", i), Session: fmt.Sprintf("s%d", i), Time: time.Now().Unix(), Chain: "timeout", Model: "m",
		Template: "timed out <*>", Strategy: "background", Outcome: "success"}
	if change != nil {
		change(&o)
	}
	raw, _ := json.Marshal(o)
	return raw
}

// What somebody else put into the log teaches nothing: it is no observation, or one of
// too many of its session.
func TestPoisonedCorpus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		put := func(raw []byte) {
			if err := s.Append(t.Context(), "outcomes", raw, 8192); err != nil {
				t.Fatal(err)
			}
		}
		bad := []func(*learn.Observation){
			func(o *learn.Observation) { o.V = 2 }, func(o *learn.Observation) { o.ID = "" }, func(o *learn.Observation) { o.Session = "a b" },
			func(o *learn.Observation) { o.Time += 3600 }, func(o *learn.Observation) { o.Time = 0 }, func(o *learn.Observation) { o.Time = -1 << 62 },
			func(o *learn.Observation) { o.Chain = "no" }, func(o *learn.Observation) { o.Strategy = "rm_rf" }, func(o *learn.Observation) { o.Outcome = "1e9" },
			func(o *learn.Observation) { o.Key = "a b" }, func(o *learn.Observation) { o.Task = "x" }, func(o *learn.Observation) { o.Template = "my secret" }, func(o *learn.Observation) { o.Model = strings.Repeat("m", 200) },
			func(o *learn.Observation) { o.Template = strings.Repeat("no ", 30) + "no" },
		}
		for i, change := range bad {
			put(entry(i, change))
		}
		for _, raw := range []string{"", "{", "null", "[]", `"x"`, `{"v":1e99}`, `{"reset":7}`, `{"reset":""}`, strings.Repeat(`{"a":`, 5000), `{"v":1,"id":"` + strings.Repeat("x", 60<<10) + `"}`} {
			put([]byte(raw))
		}
		for i := range 300 { // one session, as often as it likes
			put(entry(1000+i, func(o *learn.Observation) { o.Session = "loud" }))
		}
		o, _ := replica(t, learn.OutcomesAct, s)
		r := reported(t, o)
		if want := len(bad) + 10; r.Refused != want || r.Observations != 300 {
			t.Errorf("%d are refused, want %d; %d observations", r.Refused, want, r.Observations)
		}
		if len(r.Cells) != 1 || r.Cells[0].Decision != "chain" || r.Cells[0].Arms[0].Observations != 4 {
			t.Errorf("%+v", r.Cells)
		}
		q := recovery.Question{Session: "s", Model: "m", Chain: "timeout", Line: "Timed out after zq7", Strategies: []string{"reduce_scope", "background"}}
		if got := o.Choose(q); got.Strategies[0] != "reduce_scope" || got.Withhold || got.Template != "timed out <*>" {
			t.Errorf("%+v", got)
		}
	})
}

// What is exported is imported elsewhere, once, and a reset forgets it in all replicas
// for good; what is learned later stays.
func TestExportImportReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := newStore(t)
		for i := range 40 {
			_ = from.Append(t.Context(), "outcomes", entry(i, nil), 8192)
		}
		a, _ := replica(t, learn.OutcomesObserve, from)
		var file bytes.Buffer
		if err := a.Export(t.Context(), &file); err != nil || strings.Count(file.String(), "\n") != 40 {
			t.Fatal(err, file.Len())
		}
		shared := newStore(t)
		b, _ := replica(t, learn.OutcomesAct, shared)
		c, _ := replica(t, learn.OutcomesAct, shared)
		for i, want := range []int{40, 0} {
			added, refused, err := b.Import(t.Context(), strings.NewReader(file.String()+"\nnonsense\n"))
			if err != nil || added != want || refused != 1 {
				t.Errorf("%d: added %d, refused %d, %v", i, added, refused, err)
			}
		}
		long := strings.Repeat("x", 5000) + "\n" + strings.Repeat("x", 1<<20)
		if added, refused, err := b.Import(t.Context(), strings.NewReader(long)); err != nil || added != 0 || refused != 2 {
			t.Errorf("of endless lines %d were added and %d refused, %v", added, refused, err)
		}
		if _, refused, err := b.Import(t.Context(), strings.NewReader(strings.Repeat("{}\n", 10_000))); err != nil || refused != 10_000 {
			t.Errorf("of too many lines %d were refused, %v", refused, err)
		}
		if r := reported(t, c); r.Observations != 40 || r.Cells[0].Decision != "learned" || r.Cells[0].Arms[0].Strategy != "background" {
			t.Errorf("the other replica knows %+v", r)
		}
		if err := c.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if x, y := reported(t, b).Observations, reported(t, c).Observations; x != 0 || y != 0 {
			t.Errorf("%d and %d observations after a reset", x, y)
		}
		if added, _, _ := b.Import(t.Context(), bytes.NewReader(entry(99, nil))); added != 1 || reported(t, c).Observations != 1 {
			t.Errorf("added %d after a reset, the other knows %d", added, reported(t, c).Observations)
		}
		late, _ := replica(t, learn.OutcomesAct, shared)
		if n := reported(t, late).Observations; n != 1 {
			t.Errorf("a replica that starts later knows %d", n)
		}
	})
}

// slow is a store that takes its time.
type slow struct{ store.Store }

func (s slow) Append(ctx context.Context, log string, entry []byte, size int) error {
	time.Sleep(100 * time.Millisecond)
	return s.Store.Append(ctx, log, entry, size)
}

// Who imports a corpus and leaves does not keep others from learning, and what was
// imported until then stays.
func TestLeftImport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		o, _ := replica(t, learn.OutcomesAct, slow{s})
		var file bytes.Buffer
		for i := range 1000 {
			file.Write(append(entry(i, nil), '\n'))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, _, err := o.Import(ctx, &file); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
		began := time.Now()
		if n := reported(t, o).Observations; n < 40 || n > 60 || time.Since(began) > time.Second {
			t.Errorf("%d observations are known, after %v", n, time.Since(began))
		}
	})
}

// away is a store that may be away.
type away struct {
	store.Store
	gone atomic.Bool
}

func (a *away) Tail(ctx context.Context, log string, n int) ([][]byte, error) {
	if a.gone.Load() {
		return nil, store.ErrUnavailable
	}
	return a.Store.Tail(ctx, log, n)
}

func (a *away) Append(ctx context.Context, log string, entry []byte, size int) error {
	if a.gone.Load() {
		return store.ErrUnavailable
	}
	return a.Store.Append(ctx, log, entry, size)
}

// While the store is away what is known stays, and what happens here counts.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: newStore(t)}
		for i := range 20 {
			_ = s.Append(t.Context(), "outcomes", entry(i, nil), 8192)
		}
		o, _ := replica(t, learn.OutcomesAct, s)
		reported(t, o)
		s.gone.Store(true)
		o.Observe(noted("s", 1))
		o.After(recovery.After{Session: "s", Fingerprint: 7, At: 1, Calls: 1, Target: true})
		time.Sleep(3 * time.Minute)
		if n := reported(t, o).Observations; n != 21 {
			t.Errorf("%d observations are known", n)
		}
		s.gone.Store(false)
		if n := reported(t, o).Observations; n != 21 {
			t.Errorf("%d observations are known after it came back", n)
		}
	})
}

// The same failure of a session keeps its order, and another replica that knows the
// same answers the same.
func TestChooseIsSteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		for i := range 60 {
			_ = s.Append(t.Context(), "outcomes", entry(i, func(o *learn.Observation) {
				o.Strategy, o.Outcome = []string{"background", "reduce_scope", ""}[i%3], []string{"success", "failure"}[i/3%2]
			}), 8192)
		}
		a, _ := replica(t, learn.OutcomesAct, s)
		b, _ := replica(t, learn.OutcomesAct, s)
		reported(t, a)
		reported(t, b)
		for i := range 20 {
			q := recovery.Question{Session: fmt.Sprint(i), Model: "m", Chain: "timeout", Fingerprint: uint64(i), Strategies: []string{"reduce_scope", "background"}}
			x, y := a.Choose(q), b.Choose(q)
			if fmt.Sprint(x) != fmt.Sprint(y) {
				t.Fatalf("%v, the other replica %v", x, y)
			}
			_, _, _ = a.Import(t.Context(), bytes.NewReader(entry(500+i, nil)))
			if again := a.Choose(q); fmt.Sprint(again) != fmt.Sprint(x) {
				t.Fatalf("%v, later %v", x, again)
			}
			_ = reported(t, b)
		}
	})
}
