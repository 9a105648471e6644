package learn

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// The modes of learning from outcomes.
const (
	OutcomesOff     = "off"
	OutcomesObserve = "observe" // outcomes are stored but not used
	OutcomesAct     = "act"     // outcomes decide about notes
)

const (
	// logOutcomes is the store's log of observations, logSize its maximum number of entries.
	logOutcomes = "outcomes"
	logSize     = 8192
	// keyOpen is the prefix of the keys of interventions that other replicas may judge.
	keyOpen = "intervention/"
	// refresh is the interval of reading the log.
	refresh = time.Minute
	// judgeAfter is how long an intervention waits for further requests before it is judged.
	judgeAfter = 30 * time.Minute
	// storeTime limits a store operation; none of them is part of a request.
	storeTime = 2 * time.Second
	// foldEvery is the minimum time between counts, because counting takes milliseconds.
	foldEvery  = time.Second
	maxQueue   = 1024
	maxOpen    = 4096
	maxChoices = 4096
)

// Store holds the log that replicas share, and open interventions for other replicas. It must queue writes that
// fail, because calls are not repeated.
type Store interface {
	Append(ctx context.Context, log string, entry []byte, size int) error
	Tail(ctx context.Context, log string, n int) ([][]byte, error)
	Get(ctx context.Context, keys ...string) ([][]byte, error)
	Set(ctx context.Context, entries ...store.Entry) error
	Delete(ctx context.Context, keys ...string) error
}

// Parts are the dependencies of Outcomes.
type Parts struct {
	Store      Store
	Vocabulary func() Vocabulary
	Observer   recovery.Observer // receives guidance_judged
}

// Outcomes follows interventions, learns from their outcomes, and chooses strategies. Methods in a request's
// path answer from memory; a goroutine judges what they bring, and drops work that comes too fast. Safe for
// concurrent use.
type Outcomes struct {
	parts   Parts
	rules   atomic.Pointer[rules]
	counts  atomic.Pointer[Counts]
	choices *store.Cache[choiceKey, recovery.Preference]

	queue  chan func(ctx context.Context) // work for the goroutine
	lost   atomic.Int64
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.RWMutex
	sessions map[string]int // number of open interventions by session

	// busy guards the remaining fields; whoever waits for it may give up.
	busy    chan struct{}
	known   corpus
	open    map[string]*intervention // by id
	changed bool                     // known has changed since the last count
	folded  time.Time                // the time of the last count
}

// choiceKey is the key of a cached choice, which stays the same for a failure.
type choiceKey struct {
	session, chain string
	fingerprint    uint64
}

// intervention is a note, or a withheld one, whose outcome is not known yet.
type intervention struct {
	Observation Observation `json:"o"`
	Session     string      `json:"s"` // as in requests
	Fingerprint uint64      `json:"f"`
	Some        bool        `json:"some,omitempty"` // a call succeeded after it
	// For the event about the outcome.
	Model             string            `json:"m"`
	Category          recovery.Category `json:"c"`
	HeldOut, Withheld bool
	opened            time.Time
}

// NewOutcomes starts the goroutine and returns Outcomes. Call Close.
func NewOutcomes(mode string, priors Priors, parts Parts) *Outcomes {
	ctx, cancel := context.WithCancel(context.Background())
	o := &Outcomes{parts: parts, choices: store.NewCache[choiceKey, recovery.Preference](maxChoices), queue: make(chan func(context.Context), maxQueue),
		cancel: cancel, done: make(chan struct{}), busy: make(chan struct{}, 1), sessions: map[string]int{}, open: map[string]*intervention{}}
	o.rules.Store(&rules{mode, priors, parts.Vocabulary})
	o.counts.Store(Fold(priors, nil, time.Now()))
	go o.run(ctx)
	return o
}

// Reconfigure sets what a reload may change.
func (o *Outcomes) Reconfigure(mode string, priors Priors) {
	o.rules.Store(&rules{mode, priors, o.parts.Vocabulary})
	o.enqueue(func(context.Context) { o.changed = true })
}

// Close ends the goroutine. Open interventions are lost, except those that another replica can judge.
func (o *Outcomes) Close() {
	o.cancel()
	<-o.done
}

// Choose orders the strategies of a note. The order stays the same for the same failure of a session.
func (o *Outcomes) Choose(q recovery.Question) recovery.Preference {
	mode := o.rules.Load().mode
	if mode == OutcomesOff || q.Session == "" {
		return recovery.Preference{Strategies: q.Strategies}
	}
	key := choiceKey{q.Session, q.Chain, q.Fingerprint}
	if p, ok := o.choices.Get(key); ok {
		return p
	}
	p := recovery.Preference{Strategies: q.Strategies, Template: o.parts.Vocabulary().Template(q.Line)}
	if mode == OutcomesAct {
		p = o.counts.Load().Choose(q, p.Template)
	}
	o.choices.Put(key, p, 1)
	return p
}

// Observe implements recovery.Observer: a note, or a withheld one, opens an intervention. In observe mode it
// does not, nor does a note without a chain: about an agent that only talks or waits, or about a broken
// environment.
func (o *Outcomes) Observe(ev recovery.Event) {
	a := ev.Advice
	if ev.Name != recovery.EventGuidance || a == nil || a.Chain == "" || ev.Observed || ev.Session == "" || o.rules.Load().mode == OutcomesOff {
		return
	}
	strategy := noNote
	if !a.HeldOut && !a.Withheld {
		if len(a.Strategies) == 0 {
			return
		}
		strategy = a.Strategies[0]
	}
	model, key := ev.Model, a.Key
	if !plain(model, maxModel) {
		model = ""
	}
	if !plain(key, maxModel) {
		key = hashOf("key", key)
	}
	iv := &intervention{Session: ev.Session, Fingerprint: a.Fingerprint, opened: time.Now(), Model: ev.Model, Category: a.Category, HeldOut: a.HeldOut, Withheld: a.Withheld,
		Observation: Observation{V: version, ID: idOf(ev.Session, a.Fingerprint, a.At), Session: hashOf("session", ev.Session),
			Chain: a.Chain, Key: key, Template: a.Template, Task: string(a.Task), Model: model, Strategy: strategy}}
	o.count(iv.Session, 1) // at once: the next request may come before begin
	if !o.enqueue(func(ctx context.Context) { o.begin(ctx, iv) }) {
		o.count(iv.Session, -1)
	}
}

// idOf returns the id of an intervention, equal in every replica.
func idOf(session string, fingerprint uint64, at int) string {
	return hashOf("intervention", session, strconv.FormatUint(fingerprint, 16), strconv.Itoa(at))
}

func hashOf(parts ...string) string { return strconv.FormatUint(seed(parts...), 16) }

// Open reports whether an intervention of the session waits for its outcome.
func (o *Outcomes) Open(session string) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.sessions[session] > 0
}

// After receives what followed a failure. It never blocks.
func (o *Outcomes) After(a recovery.After) {
	if o.rules.Load().mode != OutcomesOff {
		o.enqueue(func(ctx context.Context) { o.judge(ctx, &a) })
	}
}

// count changes the number of a session's open interventions.
func (o *Outcomes) count(session string, by int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sessions[session] += by; o.sessions[session] <= 0 {
		delete(o.sessions, session)
	}
}

// enqueue reports false if there is too much work.
func (o *Outcomes) enqueue(do func(ctx context.Context)) bool {
	select {
	case o.queue <- do:
		return true
	default:
		o.lost.Add(1)
		return false
	}
}

// acquire reports whether the caller now has the guarded fields: false if ctx ended before.
func (o *Outcomes) acquire(ctx context.Context) bool {
	select {
	case o.busy <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (o *Outcomes) release() { <-o.busy }

func (o *Outcomes) run(ctx context.Context) {
	defer close(o.done)
	var next time.Time // when the log is read
	var wake time.Duration
	for {
		do := func(context.Context) {}
		select {
		case <-ctx.Done():
			return
		case do = <-o.queue:
		case <-time.After(wake):
		}
		if !o.acquire(ctx) {
			return
		}
		do(ctx)
		if !time.Now().Before(next) {
			o.read(ctx)
			o.closeLate(ctx)
			next = time.Now().Add(refresh*9/10 + rand.N(refresh/5)) // spreads the reads of replicas
		}
		wake = time.Until(next)
		if wait := foldEvery - time.Since(o.folded); wait <= 0 && len(o.queue) == 0 {
			o.foldChanged()
		} else if o.changed {
			wake = min(wake, max(0, wait))
		}
		o.release()
	}
}

// foldChanged counts the known observations if they have changed.
func (o *Outcomes) foldChanged() {
	if o.changed {
		o.changed, o.folded = false, time.Now()
		o.counts.Store(Fold(o.rules.Load().priors, o.known.list, o.folded))
	}
}

// begin opens an intervention, which Observe has counted.
func (o *Outcomes) begin(ctx context.Context, iv *intervention) {
	id := iv.Observation.ID
	if o.open[id] != nil || o.known.ids[id] { // a client's retry
		o.count(iv.Session, -1)
		return
	}
	if len(o.open) >= maxOpen {
		o.count(iv.Session, -1)
		o.lost.Add(1)
		return
	}
	o.open[id] = iv
	o.share(ctx, iv)
}

// share stores the intervention for other replicas. If that fails, only this replica can judge it.
func (o *Outcomes) share(ctx context.Context, iv *intervention) {
	raw, _ := json.Marshal(iv) // names and numbers
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	_ = o.parts.Store.Set(ctx, store.Entry{Key: keyOpen + iv.Observation.ID, Value: raw, TTL: 2 * judgeAfter})
}

// shared returns the stored intervention with the id, or nil.
func (o *Outcomes) shared(ctx context.Context, id string) *intervention {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	got, err := o.parts.Store.Get(ctx, keyOpen+id)
	iv := &intervention{opened: time.Now()}
	if err != nil || len(got) != 1 || len(got[0]) > 2*maxObservation || json.Unmarshal(got[0], iv) != nil || iv.Observation.ID != id {
		return nil
	}
	return iv
}

// judge concludes an intervention if its outcome is decided.
func (o *Outcomes) judge(ctx context.Context, a *recovery.After) {
	id := idOf(a.Session, a.Fingerprint, a.At)
	iv := o.open[id]
	if iv == nil && !o.known.ids[id] {
		iv = o.shared(ctx, id) // another replica may have begun it
	}
	if iv == nil || iv.Session != a.Session {
		return
	}
	iv.Some = iv.Some || a.Some
	switch {
	case a.Target, a.Again && iv.Observation.Strategy == string(recovery.PlanAdjust): // whose other parameters may include the target
		o.conclude(ctx, iv, Success)
	case a.Stopped && (iv.Fingerprint == 0 || handsOver(iv.Observation.Strategy)):
		o.conclude(ctx, iv, Censored)
	case a.Same, a.Stopped:
		o.conclude(ctx, iv, Failure)
	case a.Person:
		o.conclude(ctx, iv, Censored)
	case a.Calls >= 2:
		o.conclude(ctx, iv, iv.currentOutcome())
	case o.open[iv.Observation.ID] == nil && len(o.open) < maxOpen:
		o.open[iv.Observation.ID] = iv // the next call may come to this replica, too
		o.count(iv.Session, 1)
	}
	if o.open[iv.Observation.ID] != nil && iv.Some {
		o.share(ctx, iv)
	}
}

// currentOutcome returns the outcome if nothing more will be known.
func (iv *intervention) currentOutcome() string {
	if iv.Some {
		return OtherWay
	}
	return Failure
}

// closeLate judges interventions whose session did not return. Another replica may have judged them, so run
// reads the log before.
func (o *Outcomes) closeLate(ctx context.Context) {
	for id, iv := range o.open {
		if o.known.ids[id] {
			o.forget(iv)
		} else if time.Since(iv.opened) >= judgeAfter {
			if elsewhere := o.shared(ctx, id); elsewhere != nil {
				iv.Some = iv.Some || elsewhere.Some
			}
			if iv.Fingerprint == 0 && !iv.Some || handsOver(iv.Observation.Strategy) {
				o.conclude(ctx, iv, Censored) // it may have ended well
			} else {
				o.conclude(ctx, iv, iv.currentOutcome())
			}
		}
	}
}

// handsOver reports whether a strategy makes the model stop and ask; that it did so does not show whether it was
// right.
func handsOver(strategy string) bool {
	return strategy == string(recovery.PlanEscalate) || strategy == string(recovery.PlanGiveUp)
}

func (o *Outcomes) forget(iv *intervention) {
	if o.open[iv.Observation.ID] == nil {
		return
	}
	delete(o.open, iv.Observation.ID)
	o.count(iv.Session, -1)
}

// conclude adds an observation, immediately in this replica.
func (o *Outcomes) conclude(ctx context.Context, iv *intervention, outcome string) {
	o.forget(iv)
	iv.Observation.Outcome, iv.Observation.Time = outcome, time.Now().Unix()
	if o.rules.Load().check(&iv.Observation, time.Now()) != nil || !o.known.add(iv.Observation) {
		return // written by someone else, of a removed strategy, or already judged
	}
	o.changed = true
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	_ = o.parts.Store.Append(ctx, logOutcomes, iv.Observation.line(), logSize) // on an error only this replica has it
	_ = o.parts.Store.Delete(ctx, keyOpen+iv.Observation.ID)                   // on an error it expires
	o.parts.Observer.Observe(recovery.Event{Name: recovery.EventGuidanceJudged, Time: time.Now(), Cause: outcome, Origin: recovery.Origin{Session: iv.Session, Model: iv.Model},
		Strategy: iv.Observation.Strategy, Trouble: recovery.Trouble{Advice: &recovery.Advice{Category: iv.Category, HeldOut: iv.HeldOut, Withheld: iv.Withheld}}})
}
