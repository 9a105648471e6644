package quota

import (
	"cmp"
	"math"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// Limits are the limits of an account. Zero means no limit.
type Limits struct {
	RequestsPerMinute int `yaml:"requests_per_minute"`
	Concurrent        int `yaml:"concurrent"` // simultaneous requests
	TokensPerMinute   int `yaml:"tokens_per_minute"`
	TokensPerDay      int `yaml:"tokens_per_day"`
	// SpendingPerDay is in the currency of the prices.
	SpendingPerDay float64 `yaml:"spending_per_day"`
}

// Any reports whether anything is limited.
func (l Limits) Any() bool { return l != Limits{} }

// largest is the largest valid limit, far below the range of meters.
const largest = store.MaxAmount >> 10

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (l Limits) Validate() error {
	var problems recovery.Problems
	for _, m := range l.all() {
		problems.Check(m.limit < 0 || m.limit > largest, "%s: must not be negative or too large to count; 0 is no limit", m.name)
	}
	return problems.Err()
}

// Idle reports limits that are never reached, because another one is lower: one of this account, or
// the total's. Each message begins with the limit's name.
func (l Limits) Idle(total Limits) (out []string) {
	t := total.all()
	for i, m := range l.all() {
		if m.limit > 0 && t[i].limit > 0 && m.limit > t[i].limit {
			out = append(out, m.name+": is never reached: limits.total."+m.name+" is lower")
		}
	}
	if l.TokensPerDay > 0 && l.TokensPerMinute > l.TokensPerDay {
		out = append(out, "tokens_per_minute: is never reached: tokens_per_day is lower")
	}
	return out
}

// Price is the price of a million tokens of a model.
type Price struct {
	Input float64 `yaml:"input"`
	// CachedInput is for tokens that the provider read from its cache; zero: Input.
	CachedInput float64 `yaml:"cached_input"`
	// CacheWrite is for tokens that the provider wrote to its cache, which Anthropic bills higher than
	// others; zero: Input.
	CacheWrite float64 `yaml:"cache_write"`
	Output     float64 `yaml:"output"`
}

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (p Price) Validate() error {
	var problems recovery.Problems
	for _, v := range [...]struct {
		key   string
		price float64
	}{{"input", p.Input}, {"cached_input", p.CachedInput}, {"cache_write", p.CacheWrite}, {"output", p.Output}} {
		problems.Check(!(v.price >= 0 && v.price <= 1e6), "%s: must be the price of a million tokens, from 0 to 1000000", v.key)
	}
	return problems.Err()
}

// AnyModel is the name of the price for models without one.
const AnyModel = "*"

// Prices are prices by model name. It must not change while in use.
type Prices map[string]Price

// of returns the price of the first name that has one.
func (p Prices) of(names ...string) (Price, bool) {
	for _, n := range append(names, AnyModel) {
		if price, ok := p[n]; ok {
			return price, true
		}
	}
	return Price{}, false
}

// Spent returns the cost of a usage, in the currency of the prices. names are the model's names, the
// one that answered first. It returns zero without a price.
func (p Prices) Spent(u recovery.Usage, names ...string) float64 {
	if len(p) == 0 {
		return 0
	}
	price, _ := p.of(names...)
	read := min(u.CacheRead, u.Input)
	written := min(u.CacheWrite, u.Input-read)
	return (float64(u.Input-read-written)*price.Input + float64(read)*cmp.Or(price.CachedInput, price.Input) +
		float64(written)*cmp.Or(price.CacheWrite, price.Input) + float64(u.Output)*price.Output) / 1e6
}

// micros converts an amount of money to the meter's unit, a millionth.
func micros(v float64) int64 {
	return int64(min(math.Ceil(v*1e6-1e-6), largest)) // tolerates rounding errors of a sum
}

// unit is the unit of a meter.
type unit uint8

const (
	requests unit = iota
	held
	tokens
	money
)

// spending is the only meter of money.
const spending = "spending_per_day"

// shown converts an amount of a meter to the unit of the configuration.
func shown(meter string, n int64) float64 {
	if meter == spending {
		return float64(n) / 1e6
	}
	return float64(n)
}

// meter is one limit of an account.
type meter struct {
	name     string // as in the configuration and in error codes
	unit     unit
	limit    int64
	window   time.Duration
	calendar bool
}

// lease is how long a replica's simultaneous requests count after its last report, and renewal the
// interval of its reports.
const (
	lease   = time.Minute
	renewal = lease / 3
)

// all returns the account's meters, with or without a limit.
func (l Limits) all() []meter {
	const day = 24 * time.Hour
	return []meter{
		{"concurrent", held, int64(l.Concurrent), lease, false},
		{"requests_per_minute", requests, int64(l.RequestsPerMinute), time.Minute, false},
		{"tokens_per_minute", tokens, int64(l.TokensPerMinute), time.Minute, false},
		{"tokens_per_day", tokens, int64(l.TokensPerDay), day, true},
		{spending, money, micros(l.SpendingPerDay), day, true},
	}
}

// meters returns the meters that are charged. That of simultaneous requests is always included,
// because it also counts the replicas.
func (l Limits) meters() (list []meter) {
	for _, m := range l.all() {
		if m.limit > 0 || m.unit == held {
			list = append(list, m)
		}
	}
	return list
}
