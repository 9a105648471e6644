package stream

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

// fit rewrites an event for a client that already has the beginning of an
// answer: one identity, no second role, no second reasoning, only new text.
func (a *Answer) fit(ev Event, d *Delta) (Piece, *Broken) {
	if !ev.HasData {
		return Piece{Bytes: ev.Raw}, nil // a comment
	}
	if a.o.Resume != nil && a.o.Resume.Calls {
		return a.fitCall(ev, d)
	}
	id := a.o.Sink.identity()
	f := a.o.Format
	diverged := &Broken{Diverged: true, Err: ErrReplay}
	if a.seam != nil && !a.seam.done {
		call := d.Kind == KindCall
		if call && !calling(ev.Data) {
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
				ev.Data = f.WithText(ev.Data, fresh, id)
			}
		}
		if (d.Finishes > 0 || call) && !a.seam.done {
			// A call ends the text as the end does: what was sent must be complete.
			rest, other := a.seam.finish()
			if other {
				return Piece{}, diverged
			}
			if rest != "" {
				// Held back to the very end: an event of its own before this one.
				d.Kind, d.Text = max(d.Kind, KindText), rest
				return a.piece(append(frame(f.TextEvent(ev.Data, rest, id)), a.following(ev.Data, d, id)...), d), nil
			}
		}
	}
	if d.Finishes == 0 && !d.HasUsage && d.Kind <= KindReasoning {
		d.Kind = KindNothing
		return Piece{}, nil
	}
	return a.piece(a.following(ev.Data, d, id), d), nil
}

// following is an event of a continuation, its usage that of the answer.
func (a *Answer) following(data []byte, d *Delta, id Identity) []byte {
	if d.HasUsage && a.seam != nil {
		data = a.o.Format.WithUsage(data, a.counted(d.Usage))
	}
	return frame(a.o.Format.Later(data, id))
}

// counted is the usage of a continuation as if the answer had come in one piece:
// what the client had before is none of the prompt, it belongs to the answer.
func (a *Answer) counted(u recovery.Usage) recovery.Usage {
	if a.seam == nil || a.o.Resume.Tokens == 0 {
		return u
	}
	u.Input = max(0, u.Input-a.o.Resume.Prompt)
	u.Output += a.o.Resume.Delivered(a.seam.again)
	return u
}

// fitCall is fit for a client that has all of the text: only the calls and the
// end go on.
func (a *Answer) fitCall(ev Event, d *Delta) (Piece, *Broken) {
	if d.Finishes == 0 && !d.HasUsage && !(d.Kind == KindCall && calling(ev.Data)) {
		return Piece{}, nil
	}
	id := a.o.Sink.identity()
	p := a.piece(frame(a.o.Format.Later(a.o.Format.WithText(ev.Data, "", id), id)), d)
	p.Text = ""
	if p.Released < recovery.ReleasedCall {
		p.Released = recovery.ReleasedNothing
	}
	return p, nil
}

// calling reports whether a chunk has a tool call, among whatever else cannot
// be repeated.
func calling(data []byte) bool {
	return hasCalls(gjson.GetBytes(data, "choices.0.delta"))
}

// frame makes an event of data, which may have come as several lines.
func frame(data []byte) []byte {
	out := make([]byte, 0, len(data)+8)
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		out = append(out, "data: "...)
		out = append(out, line...)
		out = append(out, '\n')
	}
	return append(out, '\n')
}
