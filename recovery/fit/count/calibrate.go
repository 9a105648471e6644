package count

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/rebound-llm/rebound/store"
)

// calibration knows how each model's reports differ from what is counted with
// a stand-in vocabulary. It learns from differences between two requests of one
// session, so that what is the same in both (a hidden system prompt, the provider's
// rendering of tools) does not matter. In memory, bounded, safe for concurrent use.
type calibration struct {
	mu     sync.Mutex
	models *store.Cache[string, *learned]
}

// learned is what is known of one model.
type learned struct {
	samples []sample // the latest, the oldest first
	now     curve
}

// sample is tokens reported for tokens counted.
type sample struct {
	ratio, counted float64
	whole          bool // of a whole prompt instead of a difference
}

// curve predicts a report.
type curve struct {
	Scale   float64 // reported tokens for one that is counted
	Samples int     // what it rests on
}

const (
	// Bounds of what is believed. Vocabularies differ by less than half or double
	// (o200k_base is among the densest).
	scaleMin, scaleMax = 0.5, 3.0
	// callCost is what the JSON of a call and the frame of its result add, in tokens: 8
	// to 20 in what Claude's provider reported.
	callCost = 12
	// maxSamples bounds what is remembered of a model; with enough it counts as calibrated.
	maxSamples, enough = 48, 4
	// A large sample says little more than a middling one, and that nothing is
	// corrected takes part as a sample of its own.
	middling, unlearned = 4000, 150
)

// newCalibration makes an empty calibration for at most max models; the least
// recently used goes first.
func newCalibration(max int) *calibration {
	return &calibration{models: store.NewCache[string, *learned](max)}
}

// known reports whether enough was reported of a model to rely on.
func (k curve) known() bool { return k.Samples >= enough }

// tokens is a count as the model's provider would report it.
func (k curve) tokens(w weight) int {
	n := float64(w.text)
	if k.known() {
		n = w.counted()
	}
	return int(math.Round(k.Scale*n)) + w.media
}

// counted is what of a weight is calibrated, in tokens.
func (w weight) counted() float64 { return float64(w.text + callCost*w.calls) }

// curve is what holds for a model now.
func (c *calibration) curve(model string) curve {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.models.Get(model); ok {
		return l.now
	}
	return curve{Scale: 1}
}

// learn adds a sample. whole says that it is a whole prompt, whose unknown
// parts differences do not have: it counts only until there are enough of those.
func (c *calibration) learn(model string, w weight, reported int, whole bool) {
	s := sample{counted: w.counted(), whole: whole}
	s.ratio = float64(reported-w.media) / s.counted
	if w.text < 16 || s.ratio < 0.3 || s.ratio > 4 {
		return // no difference that more text can make
	}
	s.counted = min(s.counted, middling)
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.models.Get(model)
	if !ok {
		l = &learned{}
		c.models.Put(model, l, 1)
	}
	l.samples = append(l.samples, s)
	if len(l.samples) > maxSamples {
		l.samples = slices.Delete(l.samples, 0, 1)
	}
	l.now = fitted(l.samples)
}

// fitted is the median of the samples' ratios, each as often as it has tokens: single
// reports that are off (another cut of the history, reasoning that was left out) do not count.
func fitted(samples []sample) curve {
	differences := slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return s.whole })
	if len(differences) >= enough {
		samples = differences
	}
	k := curve{Samples: len(samples)}
	list := append(slices.Clone(samples), sample{ratio: 1, counted: unlearned})
	slices.SortFunc(list, func(a, b sample) int { return cmp.Compare(a.ratio, b.ratio) })
	var half float64
	for _, s := range list {
		half += s.counted / 2
	}
	for _, s := range list {
		if half -= s.counted; half <= 0 {
			k.Scale = min(max(s.ratio, scaleMin), scaleMax)
			break
		}
	}
	return k
}
