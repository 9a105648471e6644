package count

import "github.com/rebound-llm/rebound/recovery/transcript"

// Anchored returns the estimate of a prompt that the anchor covers; ok is false for others.
func (m *Meter) Anchored(b *transcript.Body, model string, a Anchor) (tokens int, ok bool) {
	tokens, basis := m.Estimate(b, model, a)
	return tokens, basis == BasisAnchored
}
