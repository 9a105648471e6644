package quota

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// Store charges meters; see [store.Store].
type Store interface {
	Charge(ctx context.Context, charges ...store.Charge) (store.Charged, error)
}

// Config has the limits of all accounts.
type Config struct {
	Keys   map[string]Limits // by the gateway key's name
	Total  Limits            // of all clients together
	Prices Prices
}

// Limiter admits requests. Safe for concurrent use.
type Limiter struct {
	store  Store
	holder string // id of this process among all replicas

	mu       sync.Mutex
	accounts map[string]*account // by the key's name; "" is the total
	prices   Prices

	wake chan struct{}
	ask  chan chan struct{} // the sent channel is closed after a report
	stop chan struct{}
	done chan struct{}
}

// account is the state of one account in this process; Limiter.mu guards it.
type account struct {
	name     string
	meters   []meter // charged meters; none: nothing is limited
	held     int64   // active requests of this process
	replicas int64   // number of replicas last seen
	owed     map[string]int64
	spares   map[string]*spare // by the meter's name
	needed   map[string]int64  // of the latest request
	changed  bool              // there is something to report to the store
	asked    time.Time         // time of the latest charge
	resets   int               // how often its usage was reset here
}

// New creates a limiter. Close ends its goroutine; the caller closes the store.
func New(s Store, cfg Config) *Limiter {
	l := &Limiter{store: s, holder: rand.Text(), accounts: map[string]*account{},
		wake: make(chan struct{}, 1), ask: make(chan chan struct{}), stop: make(chan struct{}), done: make(chan struct{})}
	l.Reconfigure(cfg)
	go l.run()
	return l
}

// Reconfigure applies other limits. Usage so far still counts.
func (l *Limiter) Reconfigure(cfg Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prices = cfg.Prices
	for _, a := range l.accounts {
		a.meters = nil
	}
	set := func(name string, limits Limits) {
		if !limits.Any() {
			return
		}
		a := l.accounts[name]
		if a == nil {
			a = &account{name: name, replicas: 1, owed: map[string]int64{}, spares: map[string]*spare{}, needed: map[string]int64{}}
			l.accounts[name] = a
		}
		a.meters = limits.meters()
	}
	for name, limits := range cfg.Keys {
		set(name, limits)
	}
	set("", cfg.Total)
	maps.DeleteFunc(l.accounts, func(_ string, a *account) bool { return len(a.meters) == 0 && a.held == 0 })
}

// Counts reports whether a key is limited in tokens or money, so that a request's tokens must be
// estimated.
func (l *Limiter) Counts(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.limiting(key), func(a *account) bool {
		return slices.ContainsFunc(a.meters, func(m meter) bool { return m.unit >= tokens })
	})
}

// limiting returns the accounts with limits that apply to a key.
func (l *Limiter) limiting(key string) (list []*account) {
	for _, name := range [...]string{key, ""} {
		if a := l.accounts[name]; a != nil && len(a.meters) > 0 && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// Request is the expected usage of a request.
type Request struct {
	Key   string // name of the gateway key; empty without one
	Model string // as named by the client; empty without one
	// Input is the approximate number of its tokens, and Output the limit of all its answers together;
	// zero without one.
	Input, Output int
}

// Refusal describes the limit that a request would exceed.
type Refusal struct {
	Key   string // the limited key; empty: all clients together
	Meter string // the limit's name in the configuration; empty: the model has no price
	Limit int64  // in the meter's unit; money in millionths
	Used  int64  // used by ended requests and reserved for active ones
	// Wait is the time until the request may succeed, zero if unknown.
	Wait time.Duration
	// Never means that the request alone exceeds the limit.
	Never bool
}

// Shown formats an amount of the meter.
func (r *Refusal) Shown(n int64) string {
	return strconv.FormatFloat(shown(r.Meter, n), 'f', -1, 64)
}

// Grant is an admitted request. Its End must be called exactly once.
type Grant struct {
	limiter *Limiter
	at      time.Time // time of the charge
	parts   []part
}

// part is the charge of a request on one meter.
type part struct {
	account *account
	meter   meter
	resets  int // of the account at the charge
	amount  int64
	least   int64 // the least amount that must fit; zero: amount
	hold    int64 // what may be charged without the store's server; negative: nothing; zero: no other replica shares the meter
	free    int64 // the part of hold that is not reserved at the server
}

// Admit charges the expected usage of a request, or returns why it is refused. It calls the store
// once, except if the limit's rest is reserved here. If nothing is limited both results are nil.
func (l *Limiter) Admit(ctx context.Context, r Request) (*Grant, *Refusal) {
	now := time.Now()
	g := &Grant{limiter: l, at: now}
	var charges []store.Charge
	l.mu.Lock()
	price, priced := l.prices.of(r.Model)
	limiting := l.limiting(r.Key)
	for _, a := range limiting { // before anything is held
		if !priced && r.Model != "" && slices.ContainsFunc(a.meters, func(m meter) bool { return m.unit == money }) {
			l.mu.Unlock()
			return nil, &Refusal{Key: a.name, Never: true}
		}
	}
	for _, a := range limiting {
		for _, m := range a.meters {
			p := part{account: a, meter: m, resets: a.resets}
			switch m.unit {
			case held:
				p.amount = a.held + 1
			case requests:
				p.amount = 1
			case tokens:
				p.amount, p.least = reserve(int64(r.Input), int64(r.Output))
			case money:
				p.amount, p.least = reserve(micros(float64(r.Input)*price.Input/1e6), micros(float64(r.Output)*price.Output/1e6))
			}
			if s := a.spareOf(m); s != nil {
				a.needed[m.name] = cmp.Or(p.least, p.amount)
				if hold, unreserved, ok := s.hold(a, m, p.amount, p.least, now); ok {
					p.hold, p.free = hold, unreserved
				} else {
					p.hold = -1
				}
			}
			g.parts, charges = append(g.parts, p), append(charges, l.charge(p))
		}
	}
	if len(charges) == 0 {
		l.mu.Unlock()
		return nil, nil
	}
	g.hold(1)
	l.mu.Unlock()

	done, err := l.store.Charge(ctx, charges...)
	for err == nil && !done.Alone && done.Refused >= 0 && charges[done.Refused].Amount == g.parts[done.Refused].amount && g.parts[done.Refused].hold > 0 && g.parts[done.Refused].free == 0 {
		charges[done.Refused].Amount, charges[done.Refused].Least = 0, 0 // the rest of the limit is reserved here
		done, err = l.store.Charge(ctx, charges...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil { // the store is closing, which refuses no request
		g.release(func(s *spare, p part, _ int) { s.answered(p.hold, p.free) })
		return g, nil
	}
	for i := range g.parts {
		p := &g.parts[i]
		p.account.asked = now
		if !done.Alone {
			p.account.replicas = int64(min(max(done.Holders, 1), store.MaxHolders))
		}
	}
	g.release(func(s *spare, p part, i int) {
		switch ahead := charges[i].Amount != p.amount; {
		case !done.Alone && ahead && done.Refused < 0:
			s.answered(0, 0)
			s.held -= p.hold
		case !done.Alone:
			s.answered(p.hold, p.free)
			s.heard(max(0, p.meter.limit-done.Used[i])/max(p.account.replicas, 1), p.account.needed[p.meter.name], now)
		case done.Refused < 0:
			s.lost(p.hold, now)
		default:
			s.level += p.hold
			s.lost(p.hold, now)
		}
	})
	if done.Refused < 0 {
		for i := range g.parts {
			if p := &g.parts[i]; charges[i].Amount == p.amount {
				p.amount = done.Amounts[i]
			} else {
				p.amount = p.hold
			}
		}
		return g, nil
	}
	g.hold(-1)
	p := g.parts[done.Refused]
	if done.Alone && p.hold < 0 { // other replicas may have used everything; an equal share grows over a minute
		done.Used[done.Refused] = p.meter.limit + p.amount
		done.Wait = max(time.Second, min(time.Minute, time.Duration(float64(time.Minute)*float64(cmp.Or(p.least, p.amount))/float64(max(1, p.meter.limit/p.account.replicas)))))
	}
	return nil, &Refusal{Key: p.account.name, Meter: p.meter.name, Limit: p.meter.limit, Used: done.Used[done.Refused] - p.amount, Wait: done.Wait,
		Never: p.meter.unit != held && max(p.least, 1) > p.meter.limit}
}

// release calls fn for each part with a hold, or without one because too little was left; Limiter.mu
// is held.
func (g *Grant) release(fn func(s *spare, p part, i int)) {
	for i := range g.parts {
		p := &g.parts[i]
		if s := p.account.spares[p.meter.name]; s != nil && p.hold != 0 {
			held := *p
			held.hold = max(p.hold, 0)
			fn(s, held, i)
		}
	}
}

// hold adds n to the active requests of its accounts; Limiter.mu is held.
func (g *Grant) hold(n int64) {
	for _, p := range g.parts {
		if p.meter.unit == held {
			p.account.held += n
		}
	}
}

func (l *Limiter) charge(p part) store.Charge {
	a, m := p.account, p.meter
	c := store.Charge{Account: accountPrefix + a.name, Meter: m.name, Amount: p.amount, Least: p.least, Limit: m.limit, Window: m.window, Calendar: m.calendar,
		Share: (m.limit + a.replicas - 1) / a.replicas}
	if c.Alone = p.hold; m.unit == held {
		c.Holder = l.holder
	}
	return c
}

// chargeOf returns a charge without a limit, for usage that has already happened.
func (l *Limiter) chargeOf(a *account, m meter, amount int64) store.Charge {
	if m.unit == held {
		amount = a.held
	}
	c := l.charge(part{account: a, meter: m, amount: min(max(amount, -store.MaxAmount), store.MaxAmount)})
	c.Limit, c.Share = 0, 0
	return c
}

// accountPrefix separates quota accounts from others in the store, and gives the total a name.
const accountPrefix = "quota:"

// reserve returns the amount to reserve for a request, with the full limit of its answer, and the
// least that must fit, without it. The store reserves only what the limit leaves of the answer,
// because clients allow far more than models write.
func reserve(input, output int64) (amount, least int64) {
	least = max(1, min(input, store.MaxAmount))
	return max(least, min(input+max(output, 0), store.MaxAmount)), least
}

// End charges what the request has used: tokens of all its attempts, and their cost, less what its
// reservation still counts for. A nil grant is valid and charges nothing.
func (g *Grant) End(usedTokens int64, spent float64) {
	if g == nil {
		return
	}
	l, now := g.limiter, time.Now()
	l.mu.Lock()
	g.hold(-1)
	for _, p := range g.parts {
		p.account.changed = true
		if p.amount = l.charge(p).Left(g.at, now); p.resets != p.account.resets {
			p.amount = 0 // the reset has removed it
		}
		switch p.meter.unit {
		case tokens:
			p.account.owed[p.meter.name] += min(usedTokens, largest) - p.amount
		case money:
			p.account.owed[p.meter.name] += micros(spent) - p.amount
		}
	}
	l.mu.Unlock()
	l.reportSoon()
}

// Owe charges usage of a key outside its requests, in the background. It refuses nothing and takes no
// place.
func (l *Limiter) Owe(key string, usedTokens int64, spent float64) {
	l.mu.Lock()
	for _, a := range l.limiting(key) {
		a.changed = true
		for _, m := range a.meters {
			switch m.unit {
			case tokens:
				a.owed[m.name] += min(usedTokens, largest)
			case money:
				a.owed[m.name] += micros(spent)
			}
		}
	}
	l.mu.Unlock()
	l.reportSoon()
}

// reportSoon has the limiter's goroutine report what has changed.
func (l *Limiter) reportSoon() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run reports ended requests to the store at once, and active ones regularly.
func (l *Limiter) run() {
	defer close(l.done)
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			l.report(false)
			return
		case <-l.wake:
			l.report(false)
		case told := <-l.ask:
			l.report(false)
			close(told)
			continue
		case <-tick.C:
			l.report(true)
		}
		ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
		l.reserve(ctx)
		cancel()
	}
}

// Close reports the rest to the store and ends the limiter's goroutine.
func (l *Limiter) Close() {
	close(l.stop)
	<-l.done
}

// reportTimeout limits one background call to the store.
const reportTimeout = time.Second

// report charges what is owed, and renews what is held, of accounts with changes or, if renew, of all that are in use.
func (l *Limiter) report(renew bool) {
	var charges []store.Charge
	l.mu.Lock()
	for _, a := range l.accounts {
		if !a.changed && !(renew && (a.held > 0 || time.Since(a.asked) < lease)) {
			continue
		}
		a.changed = false
		for _, m := range a.meters {
			if owed := a.owed[m.name]; owed != 0 || m.unit == held {
				charges = append(charges, l.chargeOf(a, m, owed))
			}
		}
		clear(a.owed)
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
	defer cancel()
	for some := range slices.Chunk(charges, store.MaxCharges) {
		_, _ = l.store.Charge(ctx, some...) // only a store that is closing returns an error
	}
}

// ErrUnknown is returned for a key without limits.
var ErrUnknown = errors.New("the key has no limits")

// Reset resets the usage of a key, or with "" of all clients together. Active requests keep their
// places, and count when they end.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	var charges []store.Charge
	l.mu.Lock()
	if a := l.accounts[key]; a != nil {
		clear(a.owed)
		a.resets++
		for _, m := range a.meters {
			if m.unit != held {
				charges = append(charges, l.chargeOf(a, m, -store.MaxAmount))
			}
		}
	}
	l.mu.Unlock()
	if len(charges) == 0 {
		return ErrUnknown
	}
	_, err := l.store.Charge(ctx, charges...)
	return err
}

// Use is one meter of an account.
type Use struct {
	Limit string  `json:"limit"` // its name
	Used  float64 `json:"used"`
	Of    float64 `json:"of,omitempty"` // the limit; 0: none
}

// Account is the current usage of an account.
type Account struct {
	Key  string `json:"key"` // empty: all clients together
	Uses []Use  `json:"limits"`
}

// Now returns the current usage of all accounts with limits, by name, including every request that has
// ended here.
func (l *Limiter) Now(ctx context.Context) ([]Account, error) {
	told := make(chan struct{})
	select {
	case l.ask <- told:
		<-told
	case <-l.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	list := []Account{}
	var charges [][]store.Charge
	for _, name := range slices.Sorted(maps.Keys(l.accounts)) {
		a, account, asked := l.accounts[name], Account{Key: name}, []store.Charge{}
		for _, m := range a.meters {
			account.Uses = append(account.Uses, Use{Limit: m.name, Of: shown(m.name, m.limit)})
			asked = append(asked, l.chargeOf(a, m, 0))
		}
		if len(asked) > 0 {
			list, charges = append(list, account), append(charges, asked)
		}
	}
	l.mu.Unlock()
	for i, asked := range charges {
		done, err := l.store.Charge(ctx, asked...)
		if err != nil {
			return nil, err
		}
		for j, n := range done.Used {
			list[i].Uses[j].Used = shown(asked[j].Meter, n)
		}
	}
	return list, nil
}
