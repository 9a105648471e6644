package fit

import (
	"math"
	"slices"
)

// fit estimates the curve from the samples and the prior: least squares with
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
	if len(list) == 0 {
		return l.prior
	}
	k := curve{Scale: medianRatio(list), Samples: min(l.prior.Samples+len(list), len(l.samples))}
	residuals := make([]float64, len(list))
	for range 8 {
		for i, s := range list {
			residuals[i] = math.Abs(s.reported-k.Scale*s.text-k.Call*s.calls) * math.Sqrt(s.certainty())
		}
		spread := max(medianOf(residuals)*1.4826, 0.25)
		next := l.solve(list, residuals, 1.345*spread)
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

// solve is one step of weighted least squares. The prior takes part as two
// samples of its own, one for each parameter.
func (l *learned) solve(list []sample, residuals []float64, huber float64) curve {
	var tt, tc, cc, ty, cy float64
	add := func(s sample, w float64) {
		tt += w * s.text * s.text
		tc += w * s.text * s.calls
		cc += w * s.calls * s.calls
		ty += w * s.text * s.reported
		cy += w * s.calls * s.reported
	}
	trust := 1 + float64(l.prior.Samples)/4
	const text, calls = 150, 0.25
	p := sample{text: text, reported: text * l.prior.Scale}
	add(p, trust*p.certainty())
	p = sample{calls: calls, reported: calls * l.prior.Call}
	add(p, trust*p.certainty())
	for i, s := range list {
		w := s.certainty()
		if r := residuals[i]; r > huber {
			w *= huber / r
		}
		add(s, w)
	}
	d := tt*cc - tc*tc
	k := curve{Scale: l.prior.Scale, Call: l.prior.Call}
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
