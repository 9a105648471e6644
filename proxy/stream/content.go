package stream

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// Content is what an answer contains, for a caller that reads the answer itself instead of
// delivering it.
type Content struct {
	Text    string
	Finish  recovery.Finish
	Reasons bool // it contains reasoning
	Usage   recovery.Usage

	known Known
	calls calls
}

// Add reads the next event of a streamed answer and returns its kind.
func (c *Content) Add(f Format, ev *Event) Kind {
	d := f.Decode(ev, &c.known)
	f.calls(ev.Data, d, &c.calls)
	c.add(d)
	return d.Kind
}

// AddWhole reads a complete answer, whose body must not change, and returns its kind.
func (c *Content) AddWhole(f Format, body []byte) Kind {
	d := f.DecodeWhole(body)
	c.calls.whole = true
	f.calls(body, &d, &c.calls)
	c.add(&d)
	return d.Kind
}

func (c *Content) add(d *Delta) {
	c.Text += strings.Clone(d.Text) // the event's memory is used again
	c.Reasons = c.Reasons || d.reasons || d.Kind == KindReasoning
	if d.Finishes > 0 {
		c.Finish = d.finish
	}
	if d.HasUsage {
		c.Usage = d.Usage
	}
}

// Calls returns the calls. odd means that clients that go by the server's indexes would assemble
// others.
func (c *Content) Calls() (list []recovery.DraftCall, odd bool) {
	list = c.calls.draft()
	return list, c.calls.odd
}
