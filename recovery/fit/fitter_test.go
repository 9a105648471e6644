package fit

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// fakeStore is a shared store in memory with settable errors and delays.
type fakeStore struct {
	store.Store
	mu    sync.Mutex
	m     map[string][]byte
	err   error
	delay time.Duration
	reads int
	sets  map[string]int // by key

	windows Windows // shared by replicas too
}

func newFakeStore() *fakeStore {
	return &fakeStore{m: map[string][]byte{}, sets: map[string]int{}, windows: NewWindows()}
}

func (s *fakeStore) slow(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = delay
}

func (s *fakeStore) wait(ctx context.Context) error {
	s.mu.Lock()
	t := time.NewTimer(s.delay)
	s.mu.Unlock()
	defer t.Stop()
	select {
	case <-ctx.Done():
		return store.ErrUnavailable
	case <-t.C:
		return s.err
	}
}

func (s *fakeStore) Get(ctx context.Context, keys ...string) ([][]byte, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	out := make([][]byte, len(keys))
	for i, k := range keys {
		out[i] = s.m[k]
	}
	return out, nil
}

func (s *fakeStore) Set(ctx context.Context, entries ...store.Entry) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		s.m[e.Key] = e.Value
		s.sets[e.Key]++
	}
	return nil
}

func (s *fakeStore) Ping(ctx context.Context) error { return s.wait(ctx) }
func (s *fakeStore) Close() error                   { return nil }

type completerFunc func(recovery.Prompt) (string, error)

func (a completerFunc) Complete(_ context.Context, p recovery.Prompt) (string, recovery.Usage, error) {
	text, err := a(p)
	return text, recovery.Usage{Input: len(p.User) / 4}, err
}

const fineSummary = "Goal: mend the build.\nConstraints: never touch vendor.\nDecisions: none.\nFiles: see below.\nNext step: go on."

func exchange(b *transcript.Body, session string, a completerFunc) *recovery.Exchange {
	x := &recovery.Exchange{Request: recovery.Request{ID: "r", Body: b, Model: "gpt-4o", Mode: recovery.ModeAct, Started: time.Now()},
		Caller:       recovery.Caller{Credential: "label"},
		Conversation: recovery.Conversation{Session: session},
		Candidates:   []recovery.Choice{{Candidate: recovery.Candidate{Target: recovery.Target{Upstream: "u", Model: "gpt-4o"}}}}}
	if a != nil {
		x.Completer = a
	}
	return x
}

func overflow(limit, input int) *recovery.Failure {
	return &recovery.Failure{Diagnosis: recovery.Diagnosis{Spec: &recovery.Spec{Class: recovery.ContextLengthExceeded},
		Facts: recovery.Facts{LimitTokens: limit, InputTokens: input}}, Response: recovery.Response{Status: 400}}
}

// talkScript is a session of short texts, which only a summary or digest can shrink.
func talkScript(turns int) *script {
	s := newScript()
	for range turns {
		s.call("bash", `{"command":"date"}`, strings.Repeat("it is late now ", 20)+time.Unix(int64(s.n)*1000, 0).UTC().String())
		s.say("assistant", strings.Repeat("I think about it ", 15))
		if s.n%7 == 0 {
			s.say("user", "Never use port "+time.Unix(int64(s.n), 0).UTC().Format("05"))
		}
	}
	s.call("edit", `{"path":"pkg/last.go","old":"a","new":"b"}`, "done")
	return s
}

func newTestFitter(t testing.TB, cfg Config, s *fakeStore) *Fitter {
	t.Helper()
	p := Parts{Meter: newMeter(), Windows: NewWindows()}
	if s != nil {
		p.Store, p.Windows = Replica(t, s), s.windows
	}
	f := New(cfg, p)
	t.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return f
}

func fitOnce(t testing.TB, f *Fitter, b *transcript.Body, limit int, session string, a completerFunc) (*recovery.Exchange, *recovery.Fitted) {
	t.Helper()
	x := exchange(b, session, a)
	total := f.parts.Meter.Measure(b, "gpt-4o").Total
	x.Fitted = f.Fit(context.Background(), x, &x.Candidates[0], overflow(limit, max(total, limit)))
	return x, x.Fitted
}

func TestSummary(t *testing.T) {
	s := talkScript(60)
	b := s.body(t)
	f := newTestFitter(t, Defaults(), nil)
	var asked []recovery.Prompt
	_, out := fitOnce(t, f, b, 9000, "", func(p recovery.Prompt) (string, error) {
		asked = append(asked, p)
		return fineSummary, nil
	})
	if out == nil || len(asked) == 0 || len(asked) > 4 || out.Extra.Input == 0 {
		t.Fatalf("fitted %v with %d calls", out, len(asked))
	}
	if target := int(0.6 * float64(9000-outputReserve(b, 9000))); out.After > target {
		t.Errorf("%d tokens are left, the target is %d", out.After, target)
	}
	var summary string
	for _, m := range out.Body.Messages() {
		if isCompressed(m.Text()) && strings.Contains(m.Text(), "Summary of") {
			summary = m.Text()
			if m.Role != transcript.RoleUser {
				t.Errorf("the summary has the role %s", m.Role)
			}
		}
	}
	if !strings.Contains(summary, "never touch vendor") {
		t.Errorf("no summary: %q", summary)
	}
	users := 0
	for _, m := range b.Messages() {
		if m.Role == transcript.RoleUser {
			users++
			if !strings.Contains(string(out.Body.Raw()), string(m.Raw())) {
				t.Errorf("the user's words are gone: %s", m.Raw())
			}
		}
	}
	if users < 5 {
		t.Fatal("the session has too few messages of the user")
	}
	if p := asked[0]; p.Target.Model != "gpt-4o" || !strings.Contains(p.System, "Constraints:") || !strings.Contains(p.User, "I think about it") {
		t.Errorf("asked %+v", p)
	}
}

// The answer of a summariser that fails or returns nonsense is not used.
func TestBadSummaries(t *testing.T) {
	b := talkScript(60).body(t)
	for name, a := range map[string]completerFunc{
		"error":    func(recovery.Prompt) (string, error) { return "", errors.New("no") },
		"empty":    func(recovery.Prompt) (string, error) { return "  \n", nil },
		"nonsense": func(recovery.Prompt) (string, error) { return strings.Repeat("la la ", 50), nil },
		"refusal":  func(recovery.Prompt) (string, error) { return "I'm sorry, but I can't do that.\n" + fineSummary, nil },
		"protocol": func(recovery.Prompt) (string, error) { return fineSummary + "\n<tool_call>{}</tool_call>", nil },
		"json":     func(recovery.Prompt) (string, error) { return `{"name":"bash","arguments":{"command":"ls"}}`, nil },
		"too long": func(recovery.Prompt) (string, error) {
			return fineSummary + strings.Repeat("\nFiles: and so on and on", 3000), nil
		},
		"error text": func(recovery.Prompt) (string, error) { return "Error: upstream overloaded\n" + fineSummary, nil },
		"marks":      func(recovery.Prompt) (string, error) { return fineSummary + "\n{\"_compressed\": true}", nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := newTestFitter(t, Defaults(), nil)
			calls := 0
			_, out := fitOnce(t, f, b, 5000, "", func(p recovery.Prompt) (string, error) { calls++; return a(p) })
			if calls == 0 || calls > 4 {
				t.Errorf("%d calls", calls)
			}
			if out != nil && strings.Contains(string(out.Body.Raw()), "Summary of") {
				t.Errorf("it was used: %v", out.Tiers)
			}
		})
	}
}

// All summary calls of a request together read at most as many tokens as the request has,
// and each fits the summariser's window.
func TestSummaryIsBounded(t *testing.T) {
	b := talkScript(400).body(t)
	cfg := Defaults()
	f := newTestFitter(t, cfg, nil)
	total := f.parts.Meter.Measure(b, "gpt-4o").Total
	spent, largest, calls := 0, 0, 0
	count := func(p recovery.Prompt) (string, error) {
		n := f.parts.Meter.Text("gpt-4o", p.System) + f.parts.Meter.Text("gpt-4o", p.User)
		spent, largest, calls = spent+n, max(largest, n), calls+1
		return fineSummary, nil
	}
	limit := total * 2 / 5
	x, out := fitOnce(t, f, b, limit, "", count)
	if out == nil || calls != 1 {
		t.Fatalf("%d calls for %d tokens", calls, total)
	}
	f.Fit(context.Background(), x, &x.Candidates[0], overflow(limit, limit))
	if spent > total || largest > limit {
		t.Errorf("%d calls read %d tokens, at most %d at once; the request has %d, the window %d", calls, spent, largest, total, limit)
	}
}

// A request that cannot be fitted costs no summary.
func TestHopelessMakesNoCalls(t *testing.T) {
	s := &script{}
	s.say("system", "You are an agent.").say("user", strings.Repeat("Read this rule of the house and follow it to the letter. ", 1000))
	for range 60 {
		s.call("bash", `{"command":"date"}`, strings.Repeat("it is late now ", 40))
	}
	calls := 0
	_, out := fitOnce(t, newTestFitter(t, Defaults(), nil), s.body(t), 9000, "", func(recovery.Prompt) (string, error) { calls++; return fineSummary, nil })
	if out != nil || calls > 0 {
		t.Errorf("%d calls of the summariser, fitted: %v", calls, out != nil)
	}
}

func TestSticks(t *testing.T) {
	s := talkScript(60)
	b := s.body(t)
	disk := newFakeStore()
	f := newTestFitter(t, Defaults(), disk)
	x, out := fitOnce(t, f, b, 9000, "s", func(recovery.Prompt) (string, error) { return fineSummary, nil })
	if out == nil {
		t.Fatal("not fitted")
	}
	f.Learn(x, &x.Candidates[0], recovery.Usage{Input: out.After})
	if !f.Flush() || len(disk.m) != 2 {
		t.Fatal("nothing was stored")
	}
	for _, v := range disk.m {
		if strings.Contains(string(v), "vendor") || strings.Contains(string(v), "Goal:") {
			t.Error("text is stored in the clear")
		}
	}
	s.say("assistant", "And on.").say("user", "More.")
	next := s.body(t)
	for name, g := range map[string]*Fitter{"same": f, "other replica": newTestFitter(t, Defaults(), disk)} {
		y := exchange(next, "s", nil)
		got := g.Prepared(context.Background(), y)
		if got == nil || !got.Sticky {
			t.Fatalf("%s: %+v", name, got)
		}
		if n := len(out.Body.Messages()); string(got.Body.Messages()[n-1].Raw()) != string(out.Body.Messages()[n-1].Raw()) {
			t.Errorf("%s: the beginning differs", name)
		}
	}
	other := exchange(next, "s", nil)
	other.Secret = "somebody else"
	if got := newTestFitter(t, Defaults(), disk).Prepared(context.Background(), other); got != nil {
		t.Error("another credential gets the edits")
	}
	for key := range disk.m {
		disk.m[key] = []byte("\x01 hostile nonsense")
	}
	if got := newTestFitter(t, Defaults(), disk).Prepared(context.Background(), exchange(next, "s", nil)); got != nil {
		t.Error("nonsense in the store is used")
	}
}

func TestStoreIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newFakeStore()
		f := New(Defaults(), Parts{Meter: newMeter(), Windows: NewWindows(), Store: Replica(t, disk)})
		b := talkScript(60).body(t)
		x, out := fitOnce(t, f, b, 9000, "s", func(recovery.Prompt) (string, error) { return fineSummary, nil })
		if out == nil {
			t.Fatal("not fitted")
		}
		disk.slow(time.Hour)
		f.Learn(x, &x.Candidates[0], recovery.Usage{Input: out.After})
		began := time.Now()
		y := exchange(b, "s", nil)
		got := f.Prepared(context.Background(), y)
		if d := time.Since(began); d > store.SharedDefaults().Timeout {
			t.Errorf("the store took %v", d)
		}
		if got == nil || string(got.Body.Raw()) != string(out.Body.Raw()) {
			t.Error("what the process knows is not used while the store is away")
		}
		began = time.Now()
		if err := f.Close(context.Background()); err != nil || time.Since(began) > time.Second {
			t.Errorf("closing: %v after %v", err, time.Since(began))
		}
		f.Learn(x, &x.Candidates[0], recovery.Usage{Input: 1}) // after Close: nothing happens
	})
}

func TestLeftAlone(t *testing.T) {
	b := talkScript(60).body(t)
	disk := newFakeStore()
	f := newTestFitter(t, Defaults(), disk)
	off := Defaults()
	off.Enabled = false
	side := exchange(b, "s", nil)
	side.Side = func() bool { return true }
	for name, c := range map[string]struct {
		f *Fitter
		x *recovery.Exchange
	}{"side": {f, side}, "disabled": {newTestFitter(t, off, disk), exchange(b, "s", nil)}} {
		if c.f.Prepared(context.Background(), c.x) != nil || c.f.Fit(context.Background(), c.x, &c.x.Candidates[0], overflow(9000, 20000)) != nil {
			t.Errorf("%s: fitted", name)
		}
	}
	small := exchange(newScript().body(t), "s", nil)
	if f.Prepared(context.Background(), small) != nil || disk.reads != 0 {
		t.Errorf("a small request was looked up %d times", disk.reads)
	}
}

func TestRefits(t *testing.T) {
	b := talkScript(200).body(t)
	f := newTestFitter(t, Defaults(), nil)
	x := exchange(b, "", func(recovery.Prompt) (string, error) { return fineSummary, nil })
	c := &x.Candidates[0]
	nothing := overflow(0, 0) // states neither limit nor size
	sizes := []int{len(b.Raw())}
	for range 2 {
		x.Fitted = f.Fit(context.Background(), x, c, nothing)
		if x.Fitted == nil {
			t.Fatalf("not fitted after %v", sizes)
		}
		sizes = append(sizes, len(x.Fitted.Body.Raw()))
	}
	if sizes[1] > sizes[0]*3/4 || sizes[2] > sizes[1]*3/4 {
		t.Errorf("sizes %v", sizes)
	}
	if f.Fit(context.Background(), x, c, nothing) != nil {
		t.Error("fitted a third time")
	}
}

// A request is fitted before it overflows if its count is anchored on a report, not on an
// estimate alone.
func TestFitEarly(t *testing.T) {
	s := newScript()
	for range 30 {
		s.call("bash", `{"command":"make `+strings.Repeat("x", s.n)+`"}`, lines(150, "out"))
	}
	b := s.body(t)
	m := newMeter()
	total := m.Measure(b, "gpt-4o").Total
	run := func(anchored bool) *recovery.Fitted {
		f := newTestFitter(t, Defaults(), newFakeStore())
		x := exchange(b, "s", nil)
		x.Candidates[0].Window = total + 3500
		if anchored {
			f.Learn(x, &x.Candidates[0], recovery.Usage{Input: total})
			f.Flush()
		}
		s.call("bash", `{"command":"true"}`, "ok")
		y := exchange(s.body(t), "s", nil)
		y.Candidates[0].Window = total + 3500
		return f.Prepared(context.Background(), y)
	}
	if out := run(false); out != nil {
		t.Errorf("an estimate rewrote a request: %+v", out.Compression)
	}
	if out := run(true); out == nil || out.Sticky || out.After > total*2/3 {
		t.Errorf("not fitted ahead: %+v", out)
	}
}

// Edits are dropped if the upstream answered the client's own bytes.
func TestOriginalAnswerDropsEdits(t *testing.T) {
	b := talkScript(60).body(t)
	disk := newFakeStore()
	f := newTestFitter(t, Defaults(), disk)
	x, out := fitOnce(t, f, b, 9000, "s", func(recovery.Prompt) (string, error) { return fineSummary, nil })
	f.Learn(x, &x.Candidates[0], recovery.Usage{Input: out.Before})
	f.Flush()
	if got := f.Prepared(context.Background(), exchange(b, "s", nil)); got != nil && got.Sticky {
		t.Error("edits are kept that were refused")
	}
}

func TestSummarizeResults(t *testing.T) {
	s := newScript()
	for _, target := range []string{"a", "b", "c"} {
		s.call("bash", `{"command":"make `+target+`"}`, lines(900, target))
	}
	s.call("bash", `{"command":"true"}`, lines(200, "recent"))
	b := s.body(t)
	cfg := Defaults()
	cfg.SummarizeResults = true
	disk := newFakeStore()
	f := newTestFitter(t, cfg, disk)
	x, out := fitOnce(t, f, b, 9000, "s", func(p recovery.Prompt) (string, error) {
		if !strings.Contains(p.User, "line 899") {
			t.Errorf("asked with %.100q", p.User)
		}
		return "A build with 900 lines of output, which found nothing wrong.", nil
	})
	if out == nil || !strings.Contains(out.Body.Messages()[3].Text(), "found nothing wrong") {
		t.Fatalf("%+v", out)
	}
	f.Learn(x, &x.Candidates[0], recovery.Usage{Input: out.After})
	f.Flush()
	s.say("assistant", "So.").say("user", "Go on.")
	y := exchange(s.body(t), "s", nil)
	y.Candidates[0].Window = 9000
	got := newTestFitter(t, cfg, disk).Prepared(context.Background(), y)
	if got == nil || string(got.Body.Messages()[3].Raw()) != string(out.Body.Messages()[3].Raw()) {
		t.Errorf("not the same again: %+v", got)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	m := newMemory(nil, func() time.Duration { return time.Hour })
	defer func() { _ = m.close(context.Background()) }()
	for i := range 3 * maxSessions {
		m.putEdits(strings.Repeat("s", i%7)+time.Unix(int64(i), 0).String(), sampleSession())
	}
	if n := m.sessions.Len(); n > maxSessions || n < maxSessions/2 {
		t.Errorf("%d sessions are held", n)
	}
	big := &session{edits: edits{Recipes: make([]recipe, maxHeld/24/5)}}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		m.putEdits(id, big)
	}
	if n := m.sessions.Len(); n != 4 {
		t.Errorf("%d sessions of a fifth of the room are held", n)
	}
}
