package count

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/rebound-llm/rebound/store"
)

// calibration learns how each model's reports differ from our counts. It learns from the
// difference between two requests of a session, which excludes what both share, such as a
// hidden system prompt or the provider's rendering of tools. Safe for concurrent use.
type calibration struct {
	mu     sync.Mutex
	models *store.Cache[string, *modelSamples]
}

// modelSamples is what is known about one model.
type modelSamples struct {
	samples []sample // the latest ones, the oldest first
	factor  factor
}

// sample is the ratio of reported to counted tokens.
type sample struct {
	ratio, counted float64
	whole          bool // of a whole prompt, not of a difference
}

// factor converts counts into a model's reports.
type factor struct {
	Scale   float64 // reported tokens per counted token
	Samples int     // number of samples
}

const (
	// The limits of Scale. Real vocabularies differ by less (o200k_base is among the densest).
	scaleMin, scaleMax = 0.5, 3.0
	// callCost is what the JSON of a call and the frame of its result add, in tokens: 8
	// to 20 in what Claude's provider reported.
	callCost = 12
	// maxSamples limits the samples of a model; with minSamples it counts as calibrated.
	maxSamples, minSamples = 48, 4
	// maxSampleTokens limits the weight of a sample. Scale 1 takes part as a sample of
	// priorTokens.
	maxSampleTokens, priorTokens = 4000, 150
)

// newCalibration returns an empty calibration for at most max models; the least recently used
// is evicted first.
func newCalibration(max int) *calibration {
	return &calibration{models: store.NewCache[string, *modelSamples](max)}
}

// reliable reports whether there are enough samples to use the factor.
func (k factor) reliable() bool { return k.Samples >= minSamples }

// apply converts a count into the provider's tokens.
func (k factor) apply(w tokenCount) int {
	n := float64(w.text)
	if k.reliable() {
		n = w.calibrated()
	}
	return int(math.Round(k.Scale*n)) + w.media
}

// calibrated returns the tokens that the factor applies to: all but media.
func (w tokenCount) calibrated() float64 { return float64(w.text + callCost*w.calls) }

// factor returns a model's current factor.
func (c *calibration) factor(model string) factor {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.models.Get(model); ok {
		return l.factor
	}
	return factor{Scale: 1}
}

// learn adds a sample. whole means that it is of a whole prompt, with unknown hidden parts:
// such samples count only until there are enough differences.
func (c *calibration) learn(model string, w tokenCount, reported int, whole bool) {
	s := sample{counted: w.calibrated(), whole: whole}
	s.ratio = float64(reported-w.media) / s.counted
	if w.text < 16 || s.ratio < 0.3 || s.ratio > 4 {
		return // too small, or implausible
	}
	s.counted = min(s.counted, maxSampleTokens)
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.models.Get(model)
	if !ok {
		l = &modelSamples{}
		c.models.Put(model, l, 1)
	}
	l.samples = append(l.samples, s)
	if len(l.samples) > maxSamples {
		l.samples = slices.Delete(l.samples, 0, 1)
	}
	l.factor = medianFactor(l.samples)
}

// medianFactor returns the median ratio of the samples, weighted by their tokens. The median
// ignores single odd reports, such as after a change of the history.
func medianFactor(samples []sample) factor {
	differences := slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return s.whole })
	if len(differences) >= minSamples {
		samples = differences
	}
	k := factor{Samples: len(samples)}
	list := append(slices.Clone(samples), sample{ratio: 1, counted: priorTokens})
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
