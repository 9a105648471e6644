package stream

import "github.com/rebound-llm/rebound/recovery"

// continued rewrites an event for a client that has the beginning of the answer from another attempt:
// with the same identity, no second role, and only new text.
func (a *Answer) continued(ev *Event, d *Delta) (Piece, *Broken) {
	if !ev.HasData {
		return Piece{Bytes: ev.Raw}, nil // a comment
	}
	if a.o.Resume != nil && a.o.Resume.Calls {
		return a.continuedCalls(ev, d), nil
	}
	var e edit
	diverged := &Broken{Diverged: true, Err: ErrReplay}
	if a.seam != nil && !a.seam.done {
		call := d.Kind == KindCall
		if call && !d.calling() {
			return Piece{}, diverged
		}
		if d.Kind == KindText || call && d.Text != "" {
			fresh, decided, other := a.seam.feed(d.Text)
			if other {
				return Piece{}, diverged
			}
			if !decided {
				fresh = ""
			}
			if fresh != d.Text {
				d.Text = fresh
				if fresh == "" && !call {
					d.Kind = KindNothing
				}
				e.text = &fresh
			}
		}
		if (d.Finishes > 0 || d.ends || call) && !a.seam.done {
			// A call ends the text like a finish reason does: all text that was sent must have been
			// repeated.
			rest, other := a.seam.finish()
			if other {
				return Piece{}, diverged
			}
			if e.before = rest; rest != "" {
				// Text that was held back until the end gets an event of its own before this one.
				d.Kind, d.Text = max(d.Kind, KindText), rest
			}
		}
	}
	if d.HasUsage && a.seam != nil {
		u := a.counted(d.Usage)
		e.usage = &u
	}
	raw, ok := a.follows.event(nil, ev, d, &e)
	switch {
	case !ok:
		return Piece{}, diverged
	case len(raw) == 0:
		d.Kind = KindNothing
		return Piece{}, nil
	}
	return a.piece(raw, d), nil
}

// counted returns the usage of a continuation as if the answer had come in one piece: text that the
// client already had counts as output instead of input.
func (a *Answer) counted(u recovery.Usage) recovery.Usage {
	if a.seam == nil || a.o.Resume.Tokens == 0 {
		return u
	}
	u.Input = max(0, u.Input-a.o.Resume.Prompt)
	u.Output += a.o.Resume.Delivered(a.seam.again)
	return u
}

// continuedCalls is continued for a client that has the whole text: it passes on only calls and the
// end.
func (a *Answer) continuedCalls(ev *Event, d *Delta) Piece {
	rest := *d
	if d.Kind == KindText || d.Kind == KindCall && !d.calling() {
		rest.Kind = KindNothing
	}
	raw, _ := a.follows.event(nil, ev, &rest, &edit{only: true, text: new(string)})
	d.seq = rest.seq
	if len(raw) == 0 {
		return Piece{}
	}
	p := a.piece(raw, d)
	p.Text = ""
	if p.Released < recovery.ReleasedCall {
		p.Released = recovery.ReleasedNothing
	}
	return p
}

// calling reports whether an event contains a tool call, as opposed to other content that cannot be
// repeated.
func (d *Delta) calling() bool { return !isEmpty(d.calls) || !isEmpty(d.function) || d.item.call }
