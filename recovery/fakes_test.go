package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/breaker"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/learn"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/route"
	"github.com/rebound-llm/rebound/recovery/strategy"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

var table = classify.New(configs.UpstreamRules)

// health counts what becomes of the places that a real one gives.
type health struct {
	*breaker.Set
	mu     sync.Mutex
	places []*place
}

// healthFor is what one client sees of it.
type healthFor struct {
	*health
	inner recovery.Health
}

func (h *health) For(client string) recovery.Health {
	return healthFor{h, h.Set.For(client)}
}

func (h healthFor) Check(t recovery.Target) recovery.Status { return h.inner.Check(t) }

func (h healthFor) Begin(t recovery.Target, now time.Time, resend, force bool) (recovery.Ticket, recovery.Status) {
	return h.counted(h.inner, t, now, resend, force)
}

type place struct {
	inner    recovery.Place
	mu       sync.Mutex
	outcomes []recovery.Outcome
	target   recovery.Target
}

func (h *health) Begin(t recovery.Target, now time.Time, resend, force bool) (recovery.Ticket, recovery.Status) {
	return h.counted(h.Set, t, now, resend, force)
}

func (h *health) counted(inner recovery.Health, t recovery.Target, now time.Time, resend, force bool) (recovery.Ticket, recovery.Status) {
	ticket, st := inner.Begin(t, now, resend, force)
	if st.Ready {
		p := &place{inner: ticket.Place, target: t}
		ticket.Place = p
		h.mu.Lock()
		h.places = append(h.places, p)
		h.mu.Unlock()
	}
	return ticket, st
}

func (p *place) Done(t recovery.Ticket, o recovery.Outcome) {
	p.mu.Lock()
	p.outcomes = append(p.outcomes, o)
	p.mu.Unlock()
	p.inner.Done(t, o)
}

// step is what an upstream does with one attempt.
type step func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure)

// sent is an attempt as the upstream saw it.
type sent struct {
	recovery.Attempt
	at  time.Time
	ctx context.Context
}

// rig is an engine with a scripted sender. The last step of a script repeats.
type rig struct {
	*recovery.Engine
	health   *health
	observer *recoverytest.Observer
	facts    *learn.Facts
	board    *recoverytest.Board
	scripts  map[string][]step

	mu       sync.Mutex
	attempts []sent
	answers  []*answer
}

func newRig(scripts map[string][]step) *rig {
	g := &rig{observer: &recoverytest.Observer{}, board: recoverytest.NewBoard(), scripts: scripts}
	g.health = &health{Set: breaker.NewSet(breaker.Defaults(), g.board, g.observer)}
	g.facts = learn.NewFacts(g.board, time.Hour)
	g.Engine = &recovery.Engine{
		Config: recovery.Defaults(), Strategies: strategy.All(), Classifier: table, Health: g.health, Knowledge: g.facts,
		Pace:   learn.NewPace(learn.Defaults().FirstToken, recovery.Defaults().Parallel, g.facts),
		Keeper: &route.Pins{}, Observer: g.observer,
	}
	return g
}

func (g *rig) Send(ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
	g.mu.Lock()
	n := 0
	for _, old := range g.attempts {
		if old.Target.Upstream == a.Target.Upstream {
			n++
		}
	}
	script := g.scripts[a.Target.Upstream]
	g.attempts = append(g.attempts, sent{a, time.Now(), ctx})
	g.mu.Unlock()
	return script[min(n, len(script)-1)](g, ctx, a)
}

// asked are the upstreams in the order in which they were asked.
func (g *rig) asked() (s string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.attempts {
		s += a.Target.Upstream
	}
	return s
}

const plainBody = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`

func exchange(t testing.TB, body, upstreams string) *recovery.Exchange {
	t.Helper()
	b := recoverytest.Parse(t, body, transcript.Chat)
	x := &recovery.Exchange{Request: recovery.Request{ID: "r", Body: b, Model: "m", Mode: recovery.ModeAct, Streaming: true, Started: time.Now()}}
	for i, u := range upstreams {
		x.Candidates = append(x.Candidates, recovery.Choice{Candidate: recovery.Candidate{
			Target: recovery.Target{Upstream: string(u), Model: "m", Key: "k"}, Rank: i, Weight: 1}})
	}
	return x
}

// run answers x and checks what holds for every run.
func (g *rig) run(t testing.TB, ctx context.Context, x *recovery.Exchange) (*recovery.Failure, error) {
	t.Helper()
	f, err := g.Run(ctx, x, g)
	time.Sleep(time.Second) // losers settle
	g.check(t, x)
	return f, err
}

func (g *rig) check(t testing.TB, x *recovery.Exchange) {
	t.Helper()
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := x.Charged() - x.Extra(); n > g.Config.Attempts || len(x.Attempts) > 4*g.Config.Attempts+g.Config.CutInput() {
		t.Errorf("%d attempts that cost, of %d", n, len(x.Attempts))
	}
	if len(x.Attempts) < len(g.attempts) {
		t.Errorf("%d attempts are on record, %d were made", len(x.Attempts), len(g.attempts))
	}
	if len(g.health.places) != len(x.Attempts) {
		t.Errorf("%d places for %d attempts", len(g.health.places), len(x.Attempts))
	}
	for _, a := range g.attempts {
		if late := a.at.Sub(a.Started); late < 0 || late > time.Second {
			t.Errorf("attempt %d was sent %v after its start", a.Number, late)
		}
		if a.ctx.Err() == nil {
			t.Errorf("attempt %d was never ended", a.Number)
		}
	}
	won := -g.late()["answered"] // nobody got those
	for i, p := range g.health.places {
		if len(p.outcomes) != 1 {
			t.Errorf("place %d, at %s, was given back %d times", i, p.target, len(p.outcomes))
			continue
		}
		if p.outcomes[0].Success {
			won++
		}
	}
	if won > 1 {
		t.Errorf("%d attempts succeeded", won)
	}
	ended := false
	for i, r := range x.Attempts {
		if r.Duration <= 0 {
			t.Errorf("record %d was never closed", i)
		}
		ended = ended || r.Started.Add(r.Duration).Equal(x.Ended())
	}
	if won == 1 && !ended || won == 0 && !x.Ended().IsZero() {
		t.Errorf("%d attempts succeeded, and the exchange ended at %v", won, x.Ended())
	}
	for i, n := range g.answers {
		if n.delivered+n.discarded != 1 {
			t.Errorf("answer %d was delivered %d times and discarded %d times", i, n.delivered, n.discarded)
		}
		if n.askedLate {
			t.Errorf("answer %d was asked for a pause after its delivery", i)
		}
	}
}

func fail(a recovery.Attempt, ev recovery.Evidence) *recovery.Failure {
	ev.Now = time.Now()
	return &recovery.Failure{Diagnosis: table.Classify(ev), Target: a.Target.Target, Attempt: a.Number, Err: ev.Err,
		Response: recovery.Response{Status: ev.Status, Header: ev.Header, Body: ev.Body}}
}

// refuse answers with an error status.
func refuse(status int, body string, header ...string) step {
	return func(_ *rig, _ context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		h := http.Header{}
		for i := 0; i+1 < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return nil, fail(a, recovery.Evidence{Phase: recovery.PhaseStatus, Status: status, Header: h, Body: []byte(body)})
	}
}

func envelope(message string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, message)
}

// shows shows a sign of life, and does what s does.
func shows(sign recovery.Sign, s step) step {
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		a.Life.Show(sign)
		return s(g, ctx, a)
	}
}

// reset breaks the connection.
func reset(_ *rig, _ context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
	return nil, fail(a, recovery.Evidence{Phase: recovery.PhaseHeaders, Err: syscall.ECONNRESET})
}

// hang never answers; it takes a moment to notice that it was given up.
func hang(_ *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
	<-ctx.Done()
	time.Sleep(10 * time.Millisecond)
	f := fail(a, recovery.Evidence{Phase: recovery.PhaseHeaders, Err: context.Cause(ctx)})
	if a.Resume != nil {
		f.Released, f.Sent = recovery.ReleasedText, a.Resume.Sent
	}
	return nil, f
}

// late does what s does, later.
func late(d time.Duration, s step) step {
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		select {
		case <-time.After(d):
			return s(g, ctx, a)
		case <-ctx.Done():
			return hang(g, ctx, a)
		}
	}
}

// deaf answers after d even if it was given up meanwhile.
func deaf(d time.Duration) step {
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		time.Sleep(d)
		return ok(g, ctx, a)
	}
}

func ok(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
	return g.answer(ctx, a, &answer{})
}

// cut breaks after some text; reasoned after reasoning only; called after a part of a tool call.
func cut(r recovery.Released, text string) step {
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		return g.answer(ctx, a, &answer{released: r, sent: text, breaks: true})
	}
}

// stall pauses after some text, for so long; then it goes on and ends well.
func stall(text string, d time.Duration) step {
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		return g.answer(ctx, a, &answer{released: recovery.ReleasedText, sent: text, pause: d})
	}
}

func (g *rig) answer(ctx context.Context, a recovery.Attempt, n *answer) (recovery.Answer, *recovery.Failure) {
	n.ctx, n.a, n.over, n.made = ctx, a, make(chan struct{}), time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers = append(g.answers, n)
	return n, nil
}

// answer is scripted.
type answer struct {
	panics   bool          // while it is delivered
	flows    time.Duration // before its pause
	client   bool          // cannot be written to
	flaw     bool          // shows when it is complete: what the client has not got is rest
	rest     *answer
	ctx      context.Context
	a        recovery.Attempt
	released recovery.Released
	sent     string
	breaks   bool
	pause    time.Duration

	whenTaken func() // called when another attempt has taken over

	made                 time.Time     // when it had begun
	over                 chan struct{} // closed then
	joined               sync.WaitGroup
	mu                   sync.Mutex
	begun                time.Time
	goOn                 func() // ends the pause
	left, taken          bool
	returned             time.Time // from Deliver
	askedLate            bool
	delivered, discarded int
	refused              int // that nobody else continues it
	job                  *recovery.Job
}

func (n *answer) Discard() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.discarded++
}

func (n *answer) Usage() (recovery.Usage, time.Duration) {
	return recovery.Usage{Input: 10, Output: 5}, max(n.made.Sub(n.a.Started), time.Millisecond)
}

// LongestPause is that of its script.
func (n *answer) LongestPause() time.Duration { return n.pause }

// Drain is nobody's delivery.
func (n *answer) Drain() { n.Discard() }

func (n *answer) Finish() recovery.Finish { return recovery.FinishStop }

func (n *answer) broken(err error) *recovery.Failure {
	f := fail(n.a, recovery.Evidence{Phase: recovery.PhaseStream, Err: err})
	f.Released, f.Sent, f.Job = n.released, n.sent, n.job
	return f
}

func (n *answer) Deliver(ctx context.Context) (recovery.Answer, *recovery.Failure) {
	n.mu.Lock()
	n.delivered++
	n.begun = time.Now().Add(n.flows)
	n.mu.Unlock()
	if n.panics {
		panic("no such byte")
	}
	defer func() {
		n.leave()
		n.joined.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		n.returned = time.Now()
	}()
	wait := time.Second
	if n.pause > 0 {
		wait = n.pause
	}
	select {
	case <-n.over:
		if n.whenTaken != nil {
			n.whenTaken()
		}
	case <-n.ctx.Done():
		return nil, n.broken(context.Cause(n.ctx))
	case <-time.After(wait):
	}
	n.leave()
	switch {
	case n.taken:
		f := n.broken(context.DeadlineExceeded)
		f.Stalled, f.Client = true, n.client
		return nil, f
	case n.client:
		f := n.broken(errors.New("broken pipe"))
		f.Client = true
		return n.restOf(), f
	case n.flaw:
		f := fail(n.a, recovery.Evidence{Phase: recovery.PhaseStream, Err: recovery.ErrFlawed})
		f.Released, f.Sent, f.Flaw = n.released, n.sent, &recovery.Flaw{Kind: recovery.FlawArguments, Tool: "ls"}
		return n.restOf(), f
	case n.breaks:
		return nil, n.broken(errors.New("unexpected EOF"))
	}
	return nil, nil
}

// restOf is what the client has not got, nil where there is nothing.
func (n *answer) restOf() recovery.Answer {
	if n.rest == nil {
		return nil
	}
	return n.rest
}

// leave ends a pause.
func (n *answer) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.left = true
	if n.goOn != nil {
		n.goOn()
	}
}

func (n *answer) Paused(ctx context.Context) (*recovery.Pause, time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	const idle = 20 * time.Second
	n.askedLate = n.askedLate || !n.returned.IsZero() && time.Now().After(n.returned)
	switch {
	case n.pause <= idle || n.left || n.goOn != nil:
		return nil, 0
	case n.delivered == 0:
		return nil, idle
	case time.Since(n.begun) < idle:
		return nil, idle - time.Since(n.begun)
	}
	p := &recovery.Pause{Sent: n.sent, Job: n.job, Done: n.joined.Done}
	p.Context, n.goOn = context.WithCancel(ctx)
	n.joined.Add(1)
	p.Refused = func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.refused++
	}
	p.Replace = func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.left || n.taken || p.Context.Err() != nil {
			return false
		}
		n.taken = true
		close(n.over)
		return true
	}
	return p, 0
}

// bubble runs a test with a clock of its own. It fails when a goroutine stays.
func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }

// inTurn proposes one action after the other; what is set of each is given.
func inTurn(name string, actions ...recovery.Action) recovery.Strategy {
	n := 0
	return recovery.Strategy{Name: name, Propose: func(*recovery.Situation, *recovery.Failure) (recovery.Action, bool) {
		if n++; n > len(actions) {
			return recovery.Action{}, false
		}
		return actions[n-1], true
	}}
}
