package stream

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// finished judges a complete answer, and repairs it in its buffer. A flawed answer can still be
// delivered.
func (w *Whole) finished(body []byte, d *Delta) (broken *Broken) {
	if w.o.Thought != nil {
		if s := (calls{whole: true}); w.o.Format.calls(body, d, &s) && len(s.list) > 0 {
			w.o.reportThought(textOf(d.reasoning), s.list[0].DraftCall)
		}
	}
	if w.o.judges() && d.Choices == 1 && !d.Several {
		var flaw *recovery.Flaw
		if !w.o.Guard(func() { flaw = w.mend(body, d) }) {
			w.repairs = nil
		}
		if flaw != nil && !d.ran {
			broken = &Broken{Err: recovery.ErrFlawed, Flaw: flaw, Flawed: w}
		}
	}
	if w.o.Explain { // last, because d refers to the unchanged buffer
		body, _ = inside(w.buf.Bytes())
		list, _ := w.o.Format.encoder(nil).identify(body, w.o.ID)
		w.set(list)
	}
	return broken
}

// mend judges the answer's only choice, and repairs it. The first judgement uses the buffer without a
// copy, because most answers pass. It returns a flaw that cannot be repaired.
func (w *Whole) mend(body []byte, d *Delta) *recovery.Flaw {
	if !isObject(d.message) || int64(len(body)) > w.o.Config.MaxAnswer {
		return nil
	}
	s := calls{whole: true}
	if w.o.Format.calls(body, d, &s); s.over {
		return nil
	}
	draft := recovery.Draft{Text: d.Text, Calls: make([]recovery.DraftCall, len(s.list)), Finish: d.finish, Unsaid: d.reasons && d.Kind <= KindText && strings.TrimSpace(d.Text) == ""}
	for i, c := range s.list {
		draft.Calls[i] = c.DraftCall
	}
	w.o.announced(&draft)
	flaw := w.ranAway(draft, textOf(d.reasoning))
	fine := flaw == nil && w.o.Mender.Mend(w.o.Request, draft).Judgement == recovery.JudgePass && !s.odd && d.finish != recovery.FinishNone
	switch {
	case fine || !w.o.mends():
		return nil
	case flaw != nil:
		return flaw
	}
	s.keep()
	draft.Text, draft.Calls = strings.Clone(draft.Text), s.drafts()
	return w.change(body, &s, draft)
}

// change judges an answer that needs changes, and makes them in the buffer. The draft is a copy,
// because repairs and flaws outlive the buffer.
func (w *Whole) change(body []byte, s *calls, draft recovery.Draft) *recovery.Flaw {
	v, flaw := w.o.verdict(w.o.Mender, s, draft)
	if flaw != nil {
		return flaw
	}
	w.repairs = v.Repairs
	if reason, ok := s.reason(); ok && !s.legacy && draft.Finish == recovery.FinishNone && v.Finish == recovery.FinishNone {
		v.Finish, w.repairs = reason, append(w.repairs, recovery.Repair{Rule: RepairFinish})
	}
	if len(w.repairs) > 0 {
		e := s.edit(v)
		w.set(w.o.Format.encoder(nil).whole(body, &e))
	}
	return nil
}

// watched is the size of the pieces for the repetition watch, in bytes.
const watched = 4 << 10

// ranAway passes the answer to the repetition watch as if it had been streamed.
func (w *Whole) ranAway(d recovery.Draft, reasoning string) *recovery.Flaw {
	size := len(reasoning) + len(d.Text)
	for _, c := range d.Calls {
		size += len(c.Arguments)
	}
	var piece []byte
	end := "" // end of the repetition
	w.o.Guard(func() {
		watch := w.o.Mender.Watch(w.o.Request, size)
		if watch == nil {
			return
		}
		away := func(p recovery.Part, text string) bool {
			for rest := text; rest != ""; rest = rest[len(piece):] {
				piece = append(piece[:0], rest[:min(len(rest), watched)]...)
				if watch.Feed(p, piece) {
					end = text
					return true
				}
			}
			return false
		}
		found := away(recovery.PartReasoning, reasoning) || away(recovery.PartText, d.Text)
		for i := 0; i < len(d.Calls) && !found; i++ {
			found = away(recovery.PartArguments, d.Calls[i].Arguments)
		}
	})
	if end == "" {
		return nil
	}
	return repetition([]byte(end))
}

// set writes the changed body into the buffer. Blanks around it stay.
func (w *Whole) set(list []transcript.Splice) {
	all := w.buf.Bytes()
	_, lead := inside(all)
	for i := range list {
		list[i].Start += lead
		list[i].End += lead
	}
	out := spliced(all, list)
	w.buf.Reset()
	w.buf.Write(out)
}
