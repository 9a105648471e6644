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

// Config is who is limited, and how.
type Config struct {
	Keys   map[string]Limits // by the gateway key's name
	Total  Limits            // of all clients together
	Prices Prices
}

// Limiter admits requests. Safe for concurrent use.
type Limiter struct {
	store  Store
	holder string // this process, among all replicas

	mu       sync.Mutex
	accounts map[string]*account // by the key's name; "" is the total
	prices   Prices

	wake chan struct{}
	ask  chan chan struct{} // closed once the store was told
	stop chan struct{}
	done chan struct{}
}

// account is what this process knows of one; Limiter.mu guards it.
type account struct {
	name     string
	meters   []meter // those that are charged; none: nothing is limited
	held     int64   // requests of this process
	replicas int64   // that were last seen to serve it
	owed     map[string]int64
	spares   map[string]*spare // by the meter's name
	needed   map[string]int64  // of the latest request
	changed  bool              // there is something to tell the store
	asked    time.Time         // when it last was
}

// New makes a limiter. Close ends its goroutine; the store is the caller's.
func New(s Store, cfg Config) *Limiter {
	l := &Limiter{store: s, holder: rand.Text(), accounts: map[string]*account{},
		wake: make(chan struct{}, 1), ask: make(chan chan struct{}), stop: make(chan struct{}), done: make(chan struct{})}
	l.Reconfigure(cfg)
	go l.run()
	return l
}

// Reconfigure puts other limits in force. What was used stays used.
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

// Counts reports whether a key is limited in tokens or money, so that a request's
// have to be known.
func (l *Limiter) Counts(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.limiting(key), func(a *account) bool {
		return slices.ContainsFunc(a.meters, func(m meter) bool { return m.unit >= tokens })
	})
}

// limiting are the accounts of a key that limit anything.
func (l *Limiter) limiting(key string) (list []*account) {
	for _, name := range [...]string{key, ""} {
		if a := l.accounts[name]; a != nil && len(a.meters) > 0 && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// Request is what a request is expected to use.
type Request struct {
	Key   string // name of the gateway key; empty without one
	Model string // as the client names it; empty where there is none
	// Input is about how many tokens it has, and Output how many it allows all its
	// answers together; zero where it does not say.
	Input, Output int
}

// Refusal says which limit a request would exceed.
type Refusal struct {
	Key   string // whose limit it is; empty: of all clients together
	Meter string // the limit, as the configuration calls it; empty: the model has no price
	Limit int64  // in the meter's unit; money in millionths
	Used  int64  // of it, by requests that have ended and, reserved, by those under way
	// Wait is how long until it might pass, zero where that is not known.
	Wait time.Duration
	// Never tells that the request alone is beyond the limit.
	Never bool
}

// Shown is an amount of the meter as people read it.
func (r *Refusal) Shown(n int64) string {
	u := tokens
	if r.Meter == "spending_per_day" {
		u = money
	}
	return strconv.FormatFloat(u.shown(n), 'f', -1, 64)
}

// Grant is an admitted request. Its End must be called, once.
type Grant struct {
	limiter *Limiter
	parts   []part
}

// part is what a request was charged on one meter.
type part struct {
	account *account
	meter   meter
	amount  int64
	least   int64 // that has to fit; zero: amount
	hold    int64 // what may be charged without the store's server; below zero nothing, zero where no other replica shares the meter
	free    int64 // of hold, what is not reserved there
}

// Admit charges what a request is expected to use, or tells why not. It asks the
// store once, and not at all where nothing is limited: then both results are nil.
func (l *Limiter) Admit(ctx context.Context, r Request) (*Grant, *Refusal) {
	g := &Grant{limiter: l}
	var charges []store.Charge
	now := time.Now()
	l.mu.Lock()
	price, priced := l.prices.of(r.Model)
	for _, a := range l.limiting(r.Key) {
		for _, m := range a.meters {
			p := part{account: a, meter: m}
			switch m.unit {
			case held:
				p.amount = a.held + 1
			case requests:
				p.amount = 1
			case tokens:
				p.amount, p.least = reserve(int64(r.Input), int64(r.Output))
			case money:
				p.amount, p.least = reserve(micros(float64(r.Input)*price.Input/1e6), micros(float64(r.Output)*price.Output/1e6))
				if !priced && r.Model != "" {
					g.release(func(s *spare, p part, _ int) { s.answered(p.hold, p.free) })
					l.mu.Unlock()
					return nil, &Refusal{Key: a.name, Never: true}
				}
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
		charges[done.Refused].Amount, charges[done.Refused].Least = 0, 0 // what the limit leaves is here, reserved ahead
		done, err = l.store.Charge(ctx, charges...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil { // the store is closing: nobody is turned away for that
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
	if done.Alone && p.hold < 0 { // others may have used all; an even share grows over a minute
		done.Used[done.Refused] = p.meter.limit + p.amount
		done.Wait = max(time.Second, min(time.Minute, time.Duration(float64(time.Minute)*float64(cmp.Or(p.least, p.amount))/float64(max(1, p.meter.limit/p.account.replicas)))))
	}
	return nil, &Refusal{Key: p.account.name, Meter: p.meter.name, Limit: p.meter.limit, Used: done.Used[done.Refused] - p.amount, Wait: done.Wait,
		Never: p.meter.unit != held && max(p.least, 1) > p.meter.limit}
}

// release calls fn for each part that something was set aside for, or would have been; Limiter.mu is held.
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

// hold counts the request at its accounts; Limiter.mu is held.
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

// chargeOf returns a charge without a limit, for use that has already happened.
func (l *Limiter) chargeOf(a *account, m meter, amount int64) store.Charge {
	if m.unit == held {
		amount = a.held
	}
	c := l.charge(part{account: a, meter: m, amount: min(max(amount, -store.MaxAmount), store.MaxAmount)})
	c.Limit, c.Share = 0, 0
	return c
}

// accountPrefix keeps accounts apart from others in the store, and gives the
// total a name.
const accountPrefix = "quota:"

// reserve is what a request may use, with all that it allows its answer, and what it has
// to have: of the answer only as much is reserved as the limit leaves, since clients allow
// far more than models write.
func reserve(input, output int64) (amount, least int64) {
	least = max(1, min(input, store.MaxAmount))
	return max(least, min(input+max(output, 0), store.MaxAmount)), least
}

// End settles what the request has used: tokens of all its attempts, and what
// they cost. A nil grant has nothing to settle.
func (g *Grant) End(usedTokens int64, spent float64) {
	if g == nil {
		return
	}
	l := g.limiter
	l.mu.Lock()
	g.hold(-1)
	for _, p := range g.parts {
		p.account.changed = true
		switch p.meter.unit {
		case tokens:
			p.account.owed[p.meter.name] += min(usedTokens, largest) - p.amount
		case money:
			p.account.owed[p.meter.name] += micros(spent) - p.amount
		}
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Owe charges what was used for a key beside its requests, behind: it refuses
// nothing, and takes no place.
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
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run tells the store what has ended, at once, and what lasts, now and then.
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

// Close tells the store the rest and ends the limiter's goroutine.
func (l *Limiter) Close() {
	close(l.stop)
	<-l.done
}

// reportTimeout limits one call to the store, off the path of requests.
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
		_, _ = l.store.Charge(ctx, some...) // an error is that of a store that closes
	}
}

// ErrUnknown is returned for a key without limits.
var ErrUnknown = errors.New("the key has no limits")

// Reset gives back all that a key, or with "" all clients together, has used. Requests
// that are under way keep their places, and count when they end.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	var charges []store.Charge
	l.mu.Lock()
	if a := l.accounts[key]; a != nil {
		clear(a.owed)
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
	Of    float64 `json:"of,omitempty"` // how much that may be; 0 is no limit
}

// Account is what an account uses now.
type Account struct {
	Key  string `json:"key"` // empty: all clients together
	Uses []Use  `json:"limits"`
}

// Now is what all accounts that have limits use, by name, with every request that
// has ended here.
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
	var units [][]unit
	for _, name := range slices.Sorted(maps.Keys(l.accounts)) {
		a := l.accounts[name]
		shown, asked, of := Account{Key: name}, []store.Charge{}, []unit{}
		for _, m := range a.meters {
			shown.Uses = append(shown.Uses, Use{Limit: m.name, Of: m.unit.shown(m.limit)})
			asked, of = append(asked, l.chargeOf(a, m, 0)), append(of, m.unit)
		}
		if len(asked) > 0 {
			list, charges, units = append(list, shown), append(charges, asked), append(units, of)
		}
	}
	l.mu.Unlock()
	for i, asked := range charges {
		done, err := l.store.Charge(ctx, asked...)
		if err != nil {
			return nil, err
		}
		for j, n := range done.Used {
			list[i].Uses[j].Used = units[i][j].shown(n)
		}
	}
	return list, nil
}
