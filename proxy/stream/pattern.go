package stream

import (
	"bytes"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Known is what the events of one stream have had in common so far. The zero
// Known is that of a stream which begins. One goroutine uses it.
type Known struct {
	ID    Identity
	like  pattern
	means Delta // the event read last
}

// pattern is an event with text, for those that differ from it in nothing but
// the text: all but a few of a stream. What they mean is known without reading
// them, since the reader takes nothing from a string but its text, and that it
// has one. Two comparisons say whether an event is one of them.
type pattern struct {
	data  []byte // the event; empty: none is known
	text  span   // of data, the text with its quotes
	pad   span   // of data, behind the text: a string that nobody reads; empty: none
	outer span   // of data, the delta around the text; empty: none
	means Delta  // without what depends on the text
}

// span is a part of an event.
type span struct{ from, to int }

// maxPattern bounds the events that are kept.
const maxPattern = 2 << 10

// learn makes an event the pattern of those that follow, if it can be one. d is
// what was read from it.
func (p *pattern) learn(data []byte, d *Delta) {
	p.data = p.data[:0]
	text := d.texts
	if d.Kind == KindReasoning {
		text = d.reasoning
	}
	switch {
	case len(text) <= 2 || len(data) > maxPattern || d.Finishes > 0:
		return
	case d.Kind == KindReasoning:
	case d.Kind != KindText || d.Text != string(text[1:len(text)-1]): // put together from several, or escaped
		return
	}
	p.text, p.outer, p.pad = within(data, text), within(data, d.message), within(data, d.padding)
	if p.outer.from > p.text.from || p.outer.to < p.text.to {
		p.outer = span{} // of a choice without the text
	}
	if p.pad.from < p.text.to {
		p.pad = span{} // it stands before the text, and has to be the same
	}
	p.data = append(p.data, data...)
	p.means = *d
	m := &p.means
	m.Text, m.texts, m.padding = "", nil, nil
	for _, field := range [...]*[]byte{&m.message, &m.reasoning, &m.calls, &m.function} {
		if at := within(data, *field); at.to > 0 {
			*field = p.data[at.from:at.to]
		}
	}
}

// match reports whether an event differs from the pattern in its text only, and
// puts what it means into d.
func (p *pattern) match(data []byte, d *Delta) bool {
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
	*d = p.means
	if d.Kind == KindReasoning {
		d.reasoning = text
	} else {
		d.Text = transcript.Text(text)
	}
	if p.outer.to > 0 {
		d.message = data[p.outer.from : p.outer.to+len(text)-(p.text.to-p.text.from)]
	}
	return true
}

// within says where in data a part of it stands.
func within(data, part []byte) span {
	if len(part) == 0 {
		return span{}
	}
	from := cap(data) - cap(part) // both end where their memory does
	return span{from, from + len(part)}
}
