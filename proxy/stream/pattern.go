package stream

import (
	"bytes"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Known is the state of one stream while it is decoded. The zero Known is that of a stream at its
// beginning. One goroutine uses it.
type Known struct {
	ID Identity
	// Of a response or a message. commits: its reasoning cannot be taken back once delivered. said: it
	// has text or a call; part identifies the block or part of its first text.
	commits, said bool
	part          int
	called        bool // a call that is judged has begun
	keeps         bool // collect the ids of its items, in items
	items         []string
	// Of a message: the type of the open block, the usage so far, and the input tokens that are
	// unrelated to caches.
	block block
	usage recovery.Usage
	fresh int

	like  pattern
	means Delta // meaning of the last event
}

// pattern is an event with text, used to recognise events that differ only in their text: nearly all
// of a stream. Their meaning is known without parsing, because of a string the decoder uses only its
// text and whether it is empty. Two comparisons recognise such an event.
type pattern struct {
	data []byte // the event; empty: none
	kind Kind   // text or reasoning
	// Parts of data. After the text there may be a string that the decoder ignores.
	text, pad, outer, reasoning, calls, function span
	reasons                                      bool
	filled                                       bool // the Delta was filled from an event like this
}

// span is a part of an event; empty: none.
type span struct{ from, to uint16 }

// maxPattern limits the size of a pattern, in bytes.
const maxPattern = 2 << 10

// learn makes an event the pattern for later ones if it is suitable: one choice, and nothing but text.
// d is its meaning.
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
		p.pad = span{} // it is before the text, and must be equal
	}
}

// match reports whether an event differs from the pattern only in its text, and sets d to its meaning.
// d is the same Delta in all calls. id is the identity at the time of learn.
func (p *pattern) match(data []byte, d *Delta, id Identity) bool {
	if len(p.data) == 0 {
		return false
	}
	before := p.data[:p.text.from]
	if !bytes.HasPrefix(data, before) {
		return false
	}
	n := transcript.StringLen(data[len(before):])
	if n <= 2 { // an event without text has another meaning
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
	d.Kind, d.ID = p.kind, id // callers may have changed these
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

// part returns a part of the pattern's data; it is shared by all events that match.
func (p *pattern) part(s span) []byte {
	if s.to == 0 {
		return nil
	}
	return p.data[s.from:s.to]
}

// within returns the span of part in data.
func within(data, part []byte) span {
	if len(part) == 0 {
		return span{}
	}
	from := cap(data) - cap(part) // both slices end at the end of the same memory
	return span{uint16(from), uint16(from + len(part))}
}
