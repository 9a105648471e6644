package count

import "github.com/rebound-llm/rebound/recovery/transcript"

// Anchored is the estimate of a prompt that begins with the anchor's; ok is false for others.
func (m *Meter) Anchored(b *transcript.Body, model string, a Anchor) (tokens int, ok bool) {
	tokens, basis := m.Estimate(b, model, a)
	return tokens, basis == BasisAnchored
}
