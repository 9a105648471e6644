package fit

import (
	"context"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// byteCounter counts bytes instead of tokens, for limits on the size of a request.
type byteCounter struct{}

var _ Counter = byteCounter{}

// Measure implements Counter.
func (byteCounter) Measure(b *transcript.Body, _ string) count.Counts {
	list := b.Messages()
	c := count.Counts{Messages: make([]int, len(list)), Total: len(b.Raw()), Fixed: len(b.Raw()), Exact: true}
	for i, m := range list {
		c.Messages[i] = m.End - m.Start
		c.Fixed -= c.Messages[i]
	}
	return c
}

// Text implements Counter: the bytes of s as a JSON string.
func (byteCounter) Text(_, s string) int { return len(transcript.String(s)) }

// byteLimit returns the target's limit in bytes as a refusal shows it: a number below
// what was sent, under whatever name, or less than what was sent, and at most known, the
// limit that an earlier refusal showed (0 for none).
func byteLimit(facts recovery.Facts, sent, known int) int {
	for _, n := range []int{facts.LimitBytes, facts.RequestedBytes} {
		if n >= 1024 && n < sent {
			return n
		}
	}
	if known > 0 {
		return min(known, sent-1)
	}
	return sent - 1
}

// exceedsByteLimit reports whether a request has more bytes than its target accepts, as
// learned from refusals.
func (f *Fitter) exceedsByteLimit(x *recovery.Exchange) bool {
	limit := f.byteLimits.of(x.Candidates[0].Target)
	return limit > 0 && len(x.Body.Raw()) > limit
}

// fitBytes makes a request smaller after a payload_too_large, or if the target is known
// to refuse its size: attachments of finished turns go first, then the history is edited as
// for a window. chars limits the length of each single text, 0 for none.
func (d *draft) fitBytes(ctx context.Context, c *recovery.Choice, limit, chars int, refused bool) *recovery.Fitted {
	f := d.fitter
	k := d.recount(c.Model, byteCounter{})
	cfg := f.config()
	p := &shrinker{cfg: cfg, goal: cfg.goalFor(limit, limit)}
	was := k.clone()
	p.measure(k)
	switch {
	case chars > 0 && p.shortenTexts(k, chars):
	case chars > 0 && limit >= len(d.currentBody().Raw()):
		return nil
	default:
		if !p.dropAttachments(k) && !p.run(ctx, k) {
			return nil
		}
	}
	names := k.tiers(was)
	body, ok := k.buildChecked()
	if !ok || len(names) == 0 {
		return nil
	}
	d.revision, d.body, d.outgoing = k, body, body
	k = d.recount(c.Model, f.parts.Meter)
	k.total = f.parts.Meter.Measure(body, c.Model).Total
	return d.accept(k, names, f.scaleFor(c.Model, d.session, body), refused)
}

// recount returns the history with the edits so far, with sizes by w.
func (d *draft) recount(model string, w Counter) *revision {
	k := d.unedited(model, w)
	if d.revision != nil {
		var s session
		d.revision.saveTo(&s)
		k.apply(&s)
	}
	return k
}

// dropAttachments removes attachments of finished turns, the oldest first, until the
// target is met. A user's attachments stay until the user has written again; those of
// results only stay in the last step.
func (p *shrinker) dropAttachments(k *revision) bool {
	v, lastUser := k.v, 0
	for i := v.leadEnd + 1; i < len(v.items); i++ {
		if v.items[i].ofUser() {
			lastUser = i
		}
	}
	for i := range v.items[:v.lastStep()] {
		if k.total <= p.goal.target && p.measure(k) <= p.goal.target {
			return true
		}
		if it := &v.items[i]; it.shape.Media > 0 && (it.result || i < lastUser) {
			k.add(i, recipe{Op: opMedia}, minSaving)
		}
	}
	return p.measure(k) <= p.goal.target
}

// shortenTexts shortens each text that is longer than chars. It reports whether it did.
func (p *shrinker) shortenTexts(k *revision, chars int) bool {
	room := uint32(min(chars*9/10-256, maxKeep))
	if chars < 1024 {
		return false
	}
	did := false
	for i := range k.v.items {
		it := &k.v.items[i]
		did = len(it.text) > chars && k.add(i, recipe{Op: opLong, Length: room}, 1) || did
		for _, c := range it.calls {
			did = len(c.text) > chars && k.add(i, recipe{Op: opArguments, Length: room}, 1) || did
		}
	}
	return did
}
