package learn

import (
	"slices"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// answerKey identifies a kind of request to one target.
type answerKey struct {
	target   recovery.Target // without its key
	streamed bool
	reasons  bool
}

// sent is the time and the estimated input of an attempt that got its first token.
type sent struct {
	at     time.Time
	tokens int
}

// maxSent limits the remembered attempts of one kind.
const maxSent = 32

// Answered implements recovery.Pace. It drops attempts that are both earlier and smaller than another one,
// because they prove nothing more.
func (p *Pace) Answered(x *recovery.Exchange, c recovery.Candidate, at time.Time) {
	k := answerKey{c.Target.Keyless(), x.Streaming, p.reasoning(x, c)}
	one := sent{at, x.Body.EstimateTokens()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent.Delete(k.target)
	list := entry(p.answered, k)
	if slices.ContainsFunc(*list, func(o sent) bool { return !o.at.Before(at) && o.tokens >= one.tokens }) {
		return
	}
	*list = slices.DeleteFunc(*list, func(o sent) bool { return !o.at.After(at) && o.tokens <= one.tokens })
	*list = append(slices.Delete(*list, 0, max(0, len(*list)-maxSent+1)), one)
}

// Overtaken implements recovery.Pace. Because inputs are estimated, an input that is smaller by a sixteenth
// counts as equal.
func (p *Pace) Overtaken(x *recovery.Exchange, c recovery.Candidate, at time.Time) bool {
	k := answerKey{c.Target.Keyless(), x.Streaming, p.reasoning(x, c)}
	tokens := x.Body.EstimateTokens()
	p.mu.Lock()
	defer p.mu.Unlock()
	list, ok := p.answered.Get(k)
	return ok && slices.ContainsFunc(*list, func(o sent) bool { return o.at.After(at) && o.tokens+o.tokens/16+16 >= tokens })
}

// silence is a series of attempts at one target without any output.
type silence struct {
	n       int
	client  string
	several bool
}

// Silent implements recovery.Pace.
func (p *Pace) Silent(x *recovery.Exchange, t recovery.Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := entry(p.silent, t.Keyless())
	if s.n == 0 {
		s.client = x.Client()
	}
	s.n++
	s.several = s.several || s.client != x.Client()
}

// Silence implements recovery.Pace.
func (p *Pace) Silence(t recovery.Target) (n int, several bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.silent.Get(t.Keyless()); ok {
		return s.n, s.several
	}
	return 0, false
}

// ResetSilence implements recovery.Pace.
func (p *Pace) ResetSilence(t recovery.Target) {
	p.silent.Delete(t.Keyless())
}
