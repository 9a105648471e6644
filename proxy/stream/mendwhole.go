package stream

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// splice replaces the bytes from start to end.
type splice struct {
	start, end int
	raw        []byte
}

// spliced is data with all splices, which do not overlap.
func spliced(data []byte, list []splice) []byte {
	slices.SortStableFunc(list, func(a, b splice) int { return cmp.Compare(a.start, b.start) })
	size := len(data)
	for _, s := range list {
		size += len(s.raw) - (s.end - s.start)
	}
	out, at := make([]byte, 0, size), 0
	for _, s := range list {
		if s.start < at {
			return data // a name occurs twice in an odd way
		}
		out = append(append(out, data[at:s.start]...), s.raw...)
		at = s.end
	}
	return append(out, data[at:]...)
}

// finished judges a complete answer, and mends it in its buffer. A broken
// answer with a flaw stays deliverable.
func (w *Whole) finished(body []byte, d *Delta) (broken *Broken) {
	if w.o.judges() && d.Choices == 1 && !d.Several {
		var flaw *recovery.Flaw
		if !w.o.Guard(func() { flaw = w.mend(body, d) }) {
			w.repairs = nil
		}
		if flaw != nil {
			broken = &Broken{Err: recovery.ErrFlawed, Flaw: flaw, Flawed: w}
		}
	}
	if w.o.Explain { // last: d is of the buffer as it was
		body, _ = inside(w.buf.Bytes())
		list, _ := w.o.Format.brand(body, w.o.ID)
		w.set(body, list)
	}
	return broken
}

// mend judges the answer's one choice: as it stands in the buffer, since nothing is
// wrong with most. A flaw is what is wrong with it that cannot be mended.
func (w *Whole) mend(body []byte, d *Delta) *recovery.Flaw {
	if !isObject(d.message) || int64(len(body)) > w.o.Config.MaxAnswer {
		return nil
	}
	list, odd := w.o.Format.wholeCalls(d)
	if len(list) > maxCalls {
		return nil
	}
	draft := recovery.Draft{Text: d.Text, Calls: make([]recovery.DraftCall, len(list)), Finish: d.finish, Unsaid: d.reasons && d.Kind <= KindText && strings.TrimSpace(d.Text) == ""}
	for i := range list {
		draft.Calls[i] = list[i].DraftCall
	}
	announced := w.o.announced(&draft)
	flaw := w.ranAway(draft, textOf(d.reasoning))
	fine := flaw == nil && w.o.Mender.Mend(w.o.Request, draft).Judgement == recovery.JudgePass && !odd && d.finish != recovery.FinishNone
	switch {
	case fine || !w.o.mends():
		return nil
	case flaw != nil:
		return flaw
	}
	var s calls
	s.own(list)
	draft.Text, draft.Calls = strings.Clone(draft.Text), s.drafts()
	if flaw = w.change(body, &s, draft); flaw != nil && announced {
		w.o.wasHollow()
	}
	return flaw
}

// change has an answer judged that is not right as it stands, and changes it in the
// buffer. Nothing of the draft is part of that: what becomes of it is kept for longer.
func (w *Whole) change(body []byte, s *calls, draft recovery.Draft) *recovery.Flaw {
	v := w.o.Mender.Mend(w.o.Request, draft)
	switch {
	case v.Judgement == recovery.JudgeAsk && v.Flaw != nil:
		return v.Flaw
	case v.Judgement == recovery.JudgeReplace:
		w.repairs = v.Repairs
	default:
		v = recovery.Verdict{Calls: draft.Calls}
		if s.odd {
			w.repairs = []recovery.Repair{{Rule: RepairAssembly, Tool: draft.Calls[0].Name}}
		}
	}
	if reason, ok := s.reason(); ok && draft.Finish == recovery.FinishNone && v.Finish == recovery.FinishNone {
		v.Finish, w.repairs = reason, append(w.repairs, recovery.Repair{Rule: RepairFinish})
	}
	if len(w.repairs) == 0 {
		return nil
	}
	w.set(body, w.o.Format.splices(body, s, v))
	return nil
}

// watched is how many bytes of an answer are shown to the watch in one piece.
const watched = 4 << 10

// ranAway has the answer watched as if it had come as a stream.
func (w *Whole) ranAway(d recovery.Draft, reasoning string) *recovery.Flaw {
	size := len(reasoning) + len(d.Text)
	for _, c := range d.Calls {
		size += len(c.Arguments)
	}
	var piece []byte
	end := "" // of what repeats itself
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

// set writes the changed body into the buffer. Space around it stays.
func (w *Whole) set(body []byte, list []splice) {
	all := w.buf.Bytes()
	_, lead := inside(all)
	for i := range list {
		list[i].start += lead
		list[i].end += lead
	}
	out := spliced(all, list)
	w.buf.Reset()
	w.buf.Write(out)
}

// Tell reports what was mended, once.
func (w *Whole) Tell() {
	if list := w.repairs; len(list) > 0 && w.o.Repaired != nil {
		w.repairs = nil
		w.o.Repaired(list)
	}
}

// Tell has nothing to report.
func (u *Unread) Tell() {}

func (Chat) splices(body []byte, s *calls, v recovery.Verdict) (list []splice) {
	message := gjson.GetBytes(body, "choices.0.message")
	end := message.Index + len(message.Raw) - 1 // its last brace
	put := func(object string, at int, bare bool, name string, raw []byte) {
		old := gjson.GetBytes(body, object+"."+name)
		if old.Exists() && old.Index > 0 {
			list = append(list, splice{old.Index, old.Index + len(old.Raw), raw})
			return
		}
		field := append([]byte(`,"`+name+`":`), raw...)
		if bare {
			field = field[1:]
		}
		list = append(list, splice{at, at, field})
	}
	bare := empty(message)
	if matched := s.match(v.Calls); s.legacy && len(matched) > 0 {
		put("choices.0.message", end, bare, "function_call", append(matched[0].appendFunction(nil), '}'))
	} else if raw, changed := s.array(matched); changed {
		put("choices.0.message", end, bare, "tool_calls", raw)
		bare = false
	}
	if v.Text != nil {
		put("choices.0.message", end, bare, "content", transcript.String(*v.Text))
	}
	if v.Finish != recovery.FinishNone {
		choice := gjson.GetBytes(body, "choices.0")
		put("choices.0", choice.Index+len(choice.Raw)-1, false, "finish_reason", transcript.String(wireFinish(v.Finish, s.legacy)))
	}
	return list
}

// array is the list of calls; elements that did not change keep their bytes.
func (s *calls) array(matched []*call) (raw []byte, changed bool) {
	changed = len(matched) != len(s.list)
	raw = []byte{'['}
	for i, c := range matched {
		if i > 0 {
			raw = append(raw, ',')
		}
		if c.raw != "" && !c.value {
			raw = append(raw, c.raw...)
			continue
		}
		changed = true
		if c.of != nil {
			raw = append(raw, element(c.of, c)...)
			continue
		}
		raw = append(c.appendFields(append(raw, '{')), '}')
	}
	return append(raw, ']'), changed
}

// element is the bytes of a call with its changed fields exchanged.
func element(from, c *call) []byte {
	raw := []byte(from.raw)
	holder, value := "function", "arguments"
	if c.Kind == "custom" {
		holder, value = "custom", "input"
	}
	var list []splice
	for _, f := range [...]struct{ path, old, new string }{
		{"id", from.ID, c.ID}, {"type", from.Kind, c.Kind}, {holder + ".name", from.Name, c.Name}, {holder + "." + value, from.Arguments, c.Arguments},
	} {
		if f.old == f.new && !(from.value && f.path == holder+"."+value) {
			continue
		}
		v := gjson.GetBytes(raw, f.path)
		if !v.Exists() || v.Index <= 0 {
			return append(c.appendFields([]byte{'{'}), '}') // another shape
		}
		list = append(list, splice{v.Index, v.Index + len(v.Raw), transcript.String(f.new)})
	}
	return spliced(raw, list)
}
