package learn

import "github.com/rebound-llm/rebound/recovery"

// Reasons reports whether a target's model reasons before it answers: its name says so, or
// one of its answers did.
func (p *Pace) Reasons(t recovery.Target) bool {
	p.mu.Lock()
	named := p.named(t.Model)
	p.mu.Unlock()
	return named || p.facts.Reasons(t)
}
