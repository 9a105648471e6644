package fit

import (
	"math"
	"slices"
	"sync"

	"github.com/rebound-llm/rebound/store"
)

// Calibration knows how each model's reports differ from what is counted with
// a stand-in vocabulary: tokens reported for one token counted, and what a tool
// call costs beyond its text. It learns from differences between two requests
// of one session, so that what is the same in both (a hidden system prompt, the
// provider's rendering of tools) does not matter. In memory, bounded, safe for
// concurrent use.
type Calibration struct {
	mu     sync.Mutex
	models *store.Cache[string, *learned]
}

// learned is what is known of one model.
type learned struct {
	samples [48]sample // the latest; a ring
	next, n int
	deltas  int // samples in the ring that are differences
	now     curve
}

// sample is tokens counted against tokens reported.
type sample struct {
	text, calls, reported float64
	whole                 bool // a whole prompt instead of a difference
}

// curve predicts a report: scale × text + call × calls.
type curve struct {
	Scale   float64
	Call    float64
	Samples int // what it rests on
}

// identity is what holds before anything is known.
var identity = curve{Scale: 1}

// Bounds of what is believed. Vocabularies differ by less than half or double
// (o200k_base is among the densest), and a call costs what its JSON and its
// result's frame cost.
const (
	scaleMin, scaleMax = 0.5, 3.0
	callMax            = 150.0
)

// enough is the number of samples from which on a model counts as calibrated.
const enough = 4

// NewCalibration makes an empty calibration for at most max models; the least
// recently used goes first.
func NewCalibration(max int) *Calibration {
	return &Calibration{models: store.NewCache[string, *learned](max)}
}

// Known reports whether a model is calibrated.
func (c *Calibration) Known(model string) bool { return c.curve(model).Samples >= enough }

// Tokens is a count as the model's provider would report it.
func (c *Calibration) Tokens(model string, n Counts) int { return c.curve(model).tokens(n.whole()) }

func (k curve) tokens(w weight) int {
	return int(math.Round(k.Scale*float64(w.text)+k.Call*float64(w.calls))) + w.media
}

// curve is what holds for a model now.
func (c *Calibration) curve(model string) curve {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.models.Get(model); ok {
		return l.now
	}
	return identity
}

// learn adds a sample. whole says that it is a whole prompt, whose unknown
// parts differences do not have: it counts only until there are enough of those.
func (c *Calibration) learn(model string, w weight, reported int, whole bool) {
	s := sample{float64(w.text), float64(w.calls), float64(reported - w.media), whole}
	if s.text < 16 || s.reported < 0.3*s.text || s.reported > 4*s.text+2*callMax*(s.calls+0.5) {
		return // no difference that more text can make
	}
	// A large sample says little more than a middling one.
	const most = 4000
	if s.text > most {
		f := most / s.text
		s.text, s.calls, s.reported = s.text*f, s.calls*f, s.reported*f
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.model(model)
	if s.whole && l.deltas >= enough {
		return
	}
	if l.n == len(l.samples) && !l.samples[l.next].whole {
		l.deltas--
	}
	l.samples[l.next] = s
	l.next = (l.next + 1) % len(l.samples)
	l.n = min(l.n+1, len(l.samples))
	if !s.whole {
		l.deltas++
	}
	l.now = l.fit()
}

// model returns what is known of a model and makes room for it. The lock is held.
func (c *Calibration) model(name string) *learned {
	l, ok := c.models.Get(name)
	if !ok {
		l = &learned{now: identity}
		c.models.Put(name, l, 1)
	}
	return l
}

// fit estimates the curve from the samples: least squares with
// weights after Huber, so that single reports that are off (another cut of the
// history, reasoning that was left out) do not count in full.
func (l *learned) fit() curve {
	var list []sample
	for i := range l.n {
		// From the oldest on, so that equal samples give equal results.
		s := l.samples[(l.next-l.n+i+len(l.samples))%len(l.samples)]
		if !s.whole || l.deltas < enough {
			list = append(list, s)
		}
	}
	k := curve{Scale: medianRatio(list), Samples: len(list)}
	residuals := make([]float64, len(list))
	for range 8 {
		for i, s := range list {
			residuals[i] = math.Abs(s.reported-k.Scale*s.text-k.Call*s.calls) * math.Sqrt(s.certainty())
		}
		spread := max(medianOf(residuals)*1.4826, 0.25)
		next := solve(list, residuals, 1.345*spread)
		done := math.Abs(next.Scale-k.Scale) < 1e-4 && math.Abs(next.Call-k.Call) < 1e-2
		k.Scale, k.Call = next.Scale, next.Call
		if done {
			break
		}
	}
	return k
}

// certainty is the inverse of a sample's variance, which grows with its size.
func (s sample) certainty() float64 { return 1 / (s.text + 40*s.calls + 40) }

// solve is one step of weighted least squares. That nothing is corrected takes part
// as two samples of its own, one for each parameter.
func solve(list []sample, residuals []float64, huber float64) curve {
	var tt, tc, cc, ty, cy float64
	add := func(s sample, w float64) {
		tt += w * s.text * s.text
		tc += w * s.text * s.calls
		cc += w * s.calls * s.calls
		ty += w * s.text * s.reported
		cy += w * s.calls * s.reported
	}
	const text, calls = 150, 0.25
	for _, p := range [...]sample{{text: text, reported: text}, {calls: calls}} {
		add(p, p.certainty())
	}
	for i, s := range list {
		w := s.certainty()
		if r := residuals[i]; r > huber {
			w *= huber / r
		}
		add(s, w)
	}
	d := tt*cc - tc*tc
	k := identity
	if d > 1e-12 {
		k.Scale, k.Call = (ty*cc-cy*tc)/d, (cy*tt-ty*tc)/d
	}
	if k.Call < 0 || k.Call > callMax { // the other alone, at the bound
		k.Call = min(max(k.Call, 0), callMax)
		k.Scale = (ty - k.Call*tc) / tt
	}
	k.Scale = min(max(k.Scale, scaleMin), scaleMax)
	return k
}

// medianRatio is the median of the samples' ratios: where the estimate begins.
func medianRatio(list []sample) float64 {
	ratios := make([]float64, len(list))
	for i, s := range list {
		ratios[i] = s.reported / (s.text + 40*s.calls)
	}
	return min(max(medianOf(ratios), scaleMin), scaleMax)
}

func medianOf(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
