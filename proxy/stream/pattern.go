package stream

import (
	"bytes"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Known is what the events of one stream have had in common so far. The zero
// Known is that of a stream which begins. One goroutine uses it.
type Known struct {
	ID Identity
	// Of a response: its reasoning cannot be taken back once it is shown; it has said
	// something, of which the first text belongs to this part.
	commits, said bool
	part          int
	called        bool // a call to be judged began
	keeps         bool // the ids of its items, in items
	items         []string
	// Of a message: the type of the block that is open, its usage so far, and how much of the
	// input has nothing to do with caches.
	block block
	usage recovery.Usage
	fresh int

	like  pattern
	means Delta // the event read last
}

// pattern is an event with text, for those that differ from it in nothing but
// the text: all but a few of a stream. What they mean is known without reading
// them, since the reader takes nothing from a string but its text, and that it
// has one. Two comparisons say whether an event is one of them.
type pattern struct {
	data []byte // the event; empty: none is known
	kind Kind   // text or reasoning
	// Parts of data. Behind the text there may be a string that nobody reads.
	text, pad, outer, reasoning, calls, function span
	reasons                                      bool
	filled                                       bool // the Delta is that of an event like this
}

// span is a part of an event; empty: none.
type span struct{ from, to uint16 }

// maxPattern bounds the events that are kept.
const maxPattern = 2 << 10

// learn makes an event the pattern of those that follow, if it can be one: with
// one choice, and nothing but text. d is what was read from it.
func (p *pattern) learn(data []byte, d *Delta, id Identity) {
	p.data = p.data[:0]
	text := d.texts
	if d.Kind == KindReasoning {
		text = d.reasoning
	}
	switch {
	case len(text) <= 2 || len(data) > maxPattern || d.Finishes > 0 || d.HasUsage || d.Choices != 1 || d.Several || d.ID != id:
		return
	case d.Kind == KindReasoning:
	case d.Kind != KindText || d.Text != string(text[1:len(text)-1]): // escaped
		return
	}
	*p = pattern{data: append(p.data, data...), kind: d.Kind, reasons: d.reasons,
		text: within(data, text), pad: within(data, d.padding), outer: within(data, d.message),
		reasoning: within(data, d.reasoning), calls: within(data, d.calls), function: within(data, d.function)}
	if p.pad.from < p.text.to {
		p.pad = span{} // it stands before the text, and has to be the same
	}
}

// match reports whether an event differs from the pattern in its text only, and
// puts what it means into d, which is the same for all events. id is what it was
// when the pattern was learned.
func (p *pattern) match(data []byte, d *Delta, id Identity) bool {
	if len(p.data) == 0 {
		return false
	}
	before := p.data[:p.text.from]
	if !bytes.HasPrefix(data, before) {
		return false
	}
	n := transcript.StringLen(data[len(before):])
	if n <= 2 { // without any text it means something else
		return false
	}
	text, rest := data[len(before):len(before)+n], data[len(before)+n:]
	after := p.data[p.text.to:]
	if p.pad.to > 0 {
		between := p.data[p.text.to:p.pad.from]
		if !bytes.HasPrefix(rest, between) {
			return false
		}
		rest = rest[len(between):]
		if n = transcript.StringLen(rest); n == 0 {
			return false
		}
		rest, after = rest[n:], p.data[p.pad.to:]
	}
	if !bytes.Equal(rest, after) {
		return false
	}
	if !p.filled {
		*d = Delta{Choices: 1, reasons: p.reasons, calls: p.part(p.calls), function: p.part(p.function), reasoning: p.part(p.reasoning), message: p.part(p.outer)}
		p.filled = true
	}
	d.Kind, d.ID = p.kind, id // who reads it may change these
	if p.kind == KindReasoning {
		d.Text, d.reasoning = "", text
	} else {
		d.Text = textOf(text)
	}
	if p.outer.from < p.text.from && p.outer.to > p.text.to {
		d.message = data[p.outer.from : int(p.outer.to)+len(text)-int(p.text.to-p.text.from)]
	}
	return true
}

// part is a part of the pattern, which is the same in all that have it.
func (p *pattern) part(s span) []byte {
	if s.to == 0 {
		return nil
	}
	return p.data[s.from:s.to]
}

// within says where in data a part of it stands.
func within(data, part []byte) span {
	if len(part) == 0 {
		return span{}
	}
	from := cap(data) - cap(part) // both end where their memory does
	return span{uint16(from), uint16(from + len(part))}
}
