package stream

import (
	"bytes"
	"errors"
	"io"
)

// maxFault limits what is kept of events without a choice before an answer begins, in bytes.
const maxFault = 64 << 10

// faulty reports whether a body in place of an answer is an error.
func (o *Options) faulty(body []byte) bool {
	return o.Fault != nil && len(body) > 0 && o.Fault(body)
}

// suspect keeps an event that may be an error in an unknown format: it has no choice and none of the
// format's event types, or ends an answer without content.
func (a *Answer) suspect(ev *Event, d *Delta) {
	a.data = a.data || ev.HasData
	if d.Kind > KindNoise || a.o.Fault == nil || len(a.odd) > maxFault {
		return
	}
	switch {
	case !ev.HasData:
		if line := bytes.TrimSpace(ev.Raw); len(line) > 0 && line[0] != ':' {
			a.odd = append(a.odd, ev.Raw...)
		}
	case d.item.event == 0 && (d.Choices == 0 || d.Finishes > 0):
		a.odd = append(a.odd, frame(ev.Data)...)
	}
}

// fault returns the error that came in place of an answer, or nil. err is the end of the stream. Bytes
// that are no event are included if no event came.
func (a *Answer) fault(err error) []byte {
	if !a.first.IsZero() || a.seam != nil || err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	said := a.odd
	if errors.Is(err, io.ErrUnexpectedEOF) && !a.data {
		said = append(said, a.r.rest()...)
	}
	if !a.o.faulty(said) {
		return nil
	}
	return bytes.Clone(said)
}
