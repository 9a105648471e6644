package fit

import (
	"encoding/json"
	"fmt"
	"math"
	"sync"
)

// Calibration knows how each model's reports differ from what is counted with
// a stand-in vocabulary: tokens reported for one token counted, and what a tool
// call costs beyond its text. It learns from differences between two requests
// of one session, so that what is the same in both (a hidden system prompt, the
// provider's rendering of tools) does not matter. In memory, bounded, safe for
// concurrent use.
type Calibration struct {
	mu     sync.Mutex
	max    int
	tick   uint64
	models map[string]*learned
}

// learned is what is known of one model.
type learned struct {
	samples [48]sample // the latest; a ring
	next, n int
	deltas  int // samples in the ring that are differences
	prior   curve
	now     curve
	used    uint64
}

// sample is tokens counted against tokens reported.
type sample struct {
	text, calls, reported float64
	whole                 bool // a whole prompt instead of a difference
}

// curve predicts a report: scale × text + call × calls.
type curve struct {
	Scale   float64 `json:"scale"`
	Call    float64 `json:"call"`
	Samples int     `json:"samples"` // what it rests on
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
	return &Calibration{max: max, models: make(map[string]*learned)}
}

// Known reports whether a model is calibrated.
func (c *Calibration) Known(model string) bool { return c.curve(model).Samples >= enough }

// Tokens is a count as the model's provider would report it.
func (c *Calibration) Tokens(model string, n Counts) int { return c.curve(model).tokens(n.whole()) }

// Text is the tokens of a text as the model's provider would count them, given
// what Meter.Text counted.
func (c *Calibration) Text(model string, counted int) int {
	return c.curve(model).tokens(weight{text: counted})
}

func (k curve) tokens(w weight) int {
	return int(math.Round(k.Scale*float64(w.text)+k.Call*float64(w.calls))) + w.media
}

// curve is what holds for a model now.
func (c *Calibration) curve(model string) curve {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.models[model]
	if l == nil {
		return identity
	}
	c.tick++
	l.used = c.tick
	return l.now
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
	c.tick++
	l := c.models[name]
	if l == nil {
		if len(c.models) >= c.max {
			oldest, at := "", uint64(math.MaxUint64)
			for n, l := range c.models {
				if l.used < at {
					oldest, at = n, l.used
				}
			}
			delete(c.models, oldest)
		}
		l = &learned{prior: identity, now: identity}
		c.models[name] = l
	}
	l.used = c.tick
	return l
}

// Export is what was learned, as small JSON for other replicas: curves by
// model, no samples. Models that are not calibrated are left out.
func (c *Calibration) Export() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]curve, len(c.models))
	for name, l := range c.models {
		if l.now.Samples >= enough {
			out[name] = l.now
		}
	}
	return json.Marshal(out)
}

// maxImport bounds what Import reads.
const maxImport = 1 << 20

// Import takes over what another calibration exported, for models that this
// one has no samples of its own for. Impossible curves are left out. An error
// means that the state is unreadable and nothing was changed.
func (c *Calibration) Import(state []byte) error {
	if len(state) > maxImport {
		return fmt.Errorf("reading a calibration: %d bytes are too many", len(state))
	}
	var in map[string]curve
	if err := json.Unmarshal(state, &in); err != nil {
		return fmt.Errorf("reading a calibration: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, k := range in {
		l := c.models[name]
		full := l == nil && len(c.models) >= c.max
		if full || l != nil && l.n > 0 || !k.plausible() {
			continue
		}
		k.Samples = min(k.Samples, len(learned{}.samples))
		l = c.model(name)
		l.prior, l.now = k, k
	}
	return nil
}

func (k curve) plausible() bool {
	return k.Scale >= scaleMin && k.Scale <= scaleMax && k.Call >= 0 && k.Call <= callMax && k.Samples >= enough
}
