package stream

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Endings records how targets end their answers. The zero Endings is empty. Safe for concurrent use.
type Endings struct {
	of sync.Map // [2]string of upstream and model -> *Ending
	n  atomic.Int32
}

// Ending records how one target ends its answers. Safe for concurrent use.
type Ending struct {
	reasons atomic.Bool // it sends finish reasons in streams
	hollow  atomic.Bool // it sends finish reason tool_calls without a call
	bare    atomic.Bool // its streams end behind a call, as of GLM at NVIDIA
}

// maxEndings limits the recorded targets, because clients choose model names.
const maxEndings = 4096

// Of returns the record of a target.
func (e *Endings) Of(upstream, model string) *Ending {
	key := [2]string{upstream, model}
	if known, ok := e.of.Load(key); ok {
		return known.(*Ending)
	}
	if e.n.Load() >= maxEndings {
		return &Ending{}
	}
	known, loaded := e.of.LoadOrStore([2]string{strings.Clone(upstream), strings.Clone(model)}, &Ending{})
	if !loaded {
		e.n.Add(1)
	}
	return known.(*Ending)
}

// hollow reports whether an answer ends with tool_calls and its target is known to send that without
// calls, so that an empty answer is valid.
func (o *Options) hollow(d *Delta) bool {
	return d.Finishes > 0 && d.finish == recovery.FinishCalls && o.Ending.hollow.Load()
}

// wasHollow records that an answer ended with tool_calls and had no call.
func (o *Options) wasHollow() { o.Ending.hollow.Store(true) }

// announced reports whether a draft ends with tool_calls and has no call. If its target is known to do
// that, announced changes the reason to stop.
func (o *Options) announced(d *recovery.Draft) bool {
	if d.Finish != recovery.FinishCalls || len(d.Calls) > 0 {
		return false
	}
	if o.Ending.hollow.Load() {
		d.Finish = recovery.FinishStop
		return false
	}
	return true
}

// accept processes an event. If an answer ends without a finish reason and its target never sends one,
// the missing reason is inserted: before the end mark, or before a final chunk with only usage. Some
// servers send such chunks repeatedly, so the chunk waits for the next event.
func (a *Answer) accept(ev *Event) (p Piece, d *Delta, broken *Broken) {
	if a.pendingUsage != nil && ev.HasData {
		_, kind := payload(ev)
		if p, broken = a.releaseUsage(kind == KindDone); broken != nil && broken.Flaw == nil {
			return p, &Delta{}, broken
		}
	}
	rest, d, other := a.step(ev)
	p.join(rest)
	return p, d, cmp.Or(broken, other)
}

// step processes an event for accept, which has already released the pending chunk of usage, if any.
func (a *Answer) step(ev *Event) (Piece, *Delta, *Broken) {
	d := a.o.Format.Decode(ev, &a.known)
	a.suspect(ev, d)
	if d.Finishes > 0 {
		a.o.Ending.reasons.Store(true)
	}
	switch {
	case a.finishes > 0:
	case d.HasUsage && d.Choices == 0 && d.Finishes == 0:
		if _, ends := a.impliedFinish(); ends {
			a.pendingUsage = &Event{Raw: bytes.Clone(ev.Raw), Data: bytes.Clone(ev.Data), HasData: true}
			return Piece{}, &Delta{}, nil
		}
	case d.Kind == KindDone && !a.o.Ending.reasons.Load():
		return a.withReason(ev)
	}
	return a.through(ev, d)
}

// implied returns the bytes for the end of an answer that has none and whose bytes ended with err: its
// last event was a call, or usage, which is no end from a target that gives finish reasons.
func (a *Answer) implied(err error) (Piece, *Broken) {
	switch {
	case a.tooLong(err): // it has not ended
	case a.pendingUsage != nil && !a.o.Ending.reasons.Load() && (!a.opening || !errors.Is(err, ErrStalled)):
		return a.releaseUsage(true)
	case a.called && a.finishes == 0 && errors.Is(err, io.EOF) && a.o.Ending.bare.Load():
		return a.insertFinish(&a.ev)
	}
	return Piece{}, nil
}

// releaseUsage returns the bytes for the pending chunk of usage; ends means that it was the end of the
// answer.
func (a *Answer) releaseUsage(ends bool) (p Piece, broken *Broken) {
	pending := a.pendingUsage
	a.pendingUsage = nil
	if ends {
		p, _, broken = a.withReason(pending)
		return p, broken
	}
	p, _, broken = a.through(pending, a.o.Format.Decode(pending, &a.known))
	return p, broken
}

// withReason returns the bytes for an event, preceded by the missing finish reason.
func (a *Answer) withReason(ev *Event) (p Piece, d *Delta, broken *Broken) {
	if p, broken = a.insertFinish(ev); broken != nil && broken.Flaw == nil {
		return p, &Delta{}, broken
	}
	rest, d, other := a.through(ev, a.o.Format.Decode(ev, &a.known))
	p.join(rest)
	return p, d, cmp.Or(broken, other)
}

// through returns the bytes for an event after admit and screen.
func (a *Answer) through(ev *Event, d *Delta) (Piece, *Delta, *Broken) {
	p, d, broken := a.admit(ev, d)
	if a.h != nil && broken == nil {
		p, broken = a.screen(ev, p, d)
	}
	return p, d, broken
}

// insertFinish returns the bytes of the finish insertFinish that is missing before ev, or nothing if the answer
// may be incomplete.
func (a *Answer) insertFinish(ev *Event) (p Piece, broken *Broken) {
	finish, ok := a.impliedFinish()
	if !ok {
		return p, nil
	}
	data := a.o.Format.encoder(nil).finish(a.known.ID, a.model(ev), max(1, a.o.Choices), finish)
	if data == nil {
		return p, nil
	}
	own, known := Event{Raw: frame(data), Data: data, HasData: true}, Known{ID: a.known.ID}
	p, _, broken = a.through(&own, a.o.Format.Decode(&own, &known))
	if a.h != nil && broken == nil {
		a.h.repairs = append(a.h.repairs, recovery.Repair{Rule: RepairFinish})
	}
	return p, broken
}

// impliedFinish returns the finish reason for an answer without one; ok is false if the answer may be
// incomplete.
func (a *Answer) impliedFinish() (finish recovery.Finish, ok bool) {
	switch {
	case !a.writes && a.first.IsZero(), a.noise, a.o.faulty(a.odd):
		return recovery.FinishNone, false // it is empty, or the unreadable event may have been the reason, or one is an error
	case !a.called:
		return recovery.FinishStop, true
	case a.h == nil || len(a.h.calls.list) == 0 || a.h.calls.over:
		return recovery.FinishNone, false // the calls were not assembled
	}
	return a.h.calls.reason()
}

// reason returns the finish reason of an answer with these calls; false if one of them is incomplete.
func (s *calls) reason() (recovery.Finish, bool) {
	for _, c := range s.list {
		if c.assembled(); transcript.Valid([]byte(c.Arguments), maxDepth) != nil {
			return recovery.FinishNone, false
		}
	}
	if len(s.list) > 0 {
		return recovery.FinishCalls, true
	}
	return recovery.FinishStop, true
}

// RepairFinish is the repair rule of a missing finish reason.
const RepairFinish = "finish_reason"

// unfinished returns how an answer broke that ended without a finish reason, though its target sends
// one. If its calls are complete it can be delivered later.
func (a *Answer) unfinished(ev *Event) *Broken {
	b := &Broken{Err: ErrEnded}
	if !a.called {
		return b
	}
	p, broken := a.insertFinish(ev)
	if broken != nil || !a.finished() {
		return b
	}
	a.hold(p)
	a.hold(Piece{Bytes: End(a.o.Format, nil, nil)})
	a.bare, a.done, a.deferred, a.noReason = !a.done, true, true, true
	_ = a.resp.Body.Close()
	b.Odd, b.Flawed = OddEnd, a
	return b
}

// model returns the model's name from the stream, or else from the request.
func (a *Answer) model(ev *Event) []byte {
	for _, like := range [...][]byte{a.known.like.data, ev.Data} {
		if v := gjson.GetBytes(like, "model"); v.Exists() {
			return []byte(v.Raw)
		}
	}
	if a.o.Request == nil {
		return []byte(`""`)
	}
	return transcript.String(a.o.Request.Model())
}

// contradicts reports whether a further finish reason does not fit the content of an answer whose end
// was already delivered.
func (a *Answer) contradicts(d *Delta) bool {
	h := a.h
	switch {
	case d.Finishes == 0 || a.finishes <= d.Finishes:
		return false
	case h.state == changed:
		return true
	case !h.state.judged() || !h.holds.Calls:
		return false
	case len(h.calls.list) > 0:
		return d.finish == recovery.FinishStop
	}
	return d.finish == recovery.FinishCalls
}

// repeats reports whether an event contains only calls that the client already has.
func (a *Answer) repeats(ev *Event, d *Delta) bool {
	h := a.h
	if !h.state.judged() || d.Kind != KindCall || len(h.calls.list) == 0 || !d.calling() {
		return false
	}
	var s calls
	if !h.o.Guard(func() { h.o.Format.calls(ev.Data, d, &s) }) || len(s.list) == 0 {
		return false
	}
	for _, c := range s.list {
		c.assembled()
		same := false
		for _, old := range h.calls.list {
			same = same || c.repeats(old)
		}
		if !same {
			return false
		}
	}
	return true
}

// breakWords are parts of finish reasons that mean that the answer was cut: network_error (Z.ai),
// insufficient_system_resource (DeepSeek), abort (vLLM, SGLang), error (OpenRouter), and similar
// words.
var breakWords = [...]string{"error", "abort", "insufficient", "interrupt", "timeout", "timed_out", "cancel", "fail", "unavailable", "overload", "disconnect", "exception"}

// breaks reports whether a finish reason means that the answer was cut.
func breaks(reason string) bool {
	reason = strings.ToLower(reason)
	for _, w := range breakWords {
		if strings.Contains(reason, w) {
			return true
		}
	}
	return false
}

// noReason reports whether a finish reason is empty; some servers send null or none as a string.
func noReason(v []byte) bool {
	if !isString(v) || isEmpty(v) {
		return true
	}
	return len(v) == 6 && (strings.EqualFold(string(v), `"null"`) || strings.EqualFold(string(v), `"none"`))
}
