package stream

import (
	"bytes"
	"cmp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Endings remembers how targets end their answers. The zero Endings knows of none. Safe for
// concurrent use.
type Endings struct {
	of sync.Map // [2]string of upstream and model -> *Ending
	n  atomic.Int32
}

// Ending is how one target ends its answers. Safe for concurrent use.
type Ending struct {
	reasons atomic.Bool // it gives a finish reason in streams
	hollow  atomic.Bool // it says tool_calls without a call
}

// maxEndings limits the targets that are remembered: clients name models.
const maxEndings = 4096

// Of returns how a target ends its answers.
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

func set(b *atomic.Bool) {
	if !b.Load() {
		b.Store(true)
	}
}

// hollow reports whether an end announces calls and its target is known to do so without
// any, which explains an empty answer.
func (o *Options) hollow(d *Delta) bool {
	return d.Finishes > 0 && d.finish == recovery.FinishCalls && o.Ending != nil && o.Ending.hollow.Load()
}

// wasHollow notes that an answer announced calls and had none.
func (o *Options) wasHollow() {
	if o.Ending != nil {
		set(&o.Ending.hollow)
	}
}

// announced reports whether a draft announces calls and has none. If its target is known to
// do so, it means nothing.
func (o *Options) announced(d *recovery.Draft) bool {
	if d.Finish != recovery.FinishCalls || len(d.Calls) > 0 {
		return false
	}
	if o.Ending != nil && o.Ending.hollow.Load() {
		d.Finish = recovery.FinishStop
		return false
	}
	return true
}

// accept takes an event. If it ends an answer of a target that gives no finish reasons, the
// missing one goes out before it. So does it before a chunk with nothing but usage if the
// answer ends with that; some servers send such chunks all the time, so it waits for what
// comes next.
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

// step takes an event behind what waited.
func (a *Answer) step(ev *Event) (Piece, *Delta, *Broken) {
	d := a.o.Format.Decode(ev, &a.known)
	if d.Finishes > 0 && a.o.Ending != nil {
		set(&a.o.Ending.reasons)
	}
	switch {
	case a.finishes > 0:
	case d.HasUsage && d.Choices == 0 && d.Finishes == 0:
		if _, ends := a.ending(); ends {
			a.pendingUsage = &Event{Raw: bytes.Clone(ev.Raw), Data: bytes.Clone(ev.Data), HasData: true}
			return Piece{}, &Delta{}, nil
		}
	case d.Kind == KindDone && (a.o.Ending == nil || !a.o.Ending.reasons.Load()):
		return a.withReason(ev)
	}
	return a.through(ev, d)
}

// releaseUsage returns what goes out for the chunk of usage that waits; ends says that it was the
// end of the answer.
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

// withReason returns what goes out for an event and the finish reason that is missing before it.
func (a *Answer) withReason(ev *Event) (p Piece, d *Delta, broken *Broken) {
	if p, broken = a.reason(ev); broken != nil && broken.Flaw == nil {
		return p, &Delta{}, broken
	}
	rest, d, other := a.through(ev, a.o.Format.Decode(ev, &a.known))
	p.join(rest)
	return p, d, cmp.Or(broken, other)
}

// through returns what goes out for an event once it is admitted and screened.
func (a *Answer) through(ev *Event, d *Delta) (Piece, *Delta, *Broken) {
	p, d, broken := a.admit(ev, d)
	if a.h != nil && broken == nil {
		p, broken = a.screen(ev, p, d)
	}
	return p, d, broken
}

// reason returns what goes out for the finish reason that is missing before ev; nothing if
// the answer cannot have ended.
func (a *Answer) reason(ev *Event) (p Piece, broken *Broken) {
	finish, ok := a.ending()
	if !ok {
		return p, nil
	}
	legacy := a.h != nil && a.h.calls.legacy
	data := a.o.Format.encoder(nil).finish(a.known.ID, a.model(ev), max(1, a.o.Choices), finish, legacy)
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

// ending returns why an answer without a finish reason ended, if what came is whole.
func (a *Answer) ending() (finish recovery.Finish, ok bool) {
	switch {
	case !a.writes && a.first.IsZero(), a.noise:
		return recovery.FinishNone, false // it is empty, or what was lost may have been the reason
	case !a.called:
		return recovery.FinishStop, true
	case a.h == nil || len(a.h.calls.list) == 0 || a.h.calls.over:
		return recovery.FinishNone, false // nobody has put the calls together
	}
	return a.h.calls.reason()
}

// reason returns the finish reason of an answer with these calls; false if one of them is not whole.
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

// RepairFinish is the rule of a finish reason that was missing.
const RepairFinish = "finish_reason"

// unfinished returns how an answer broke whose end mark came without a finish reason, from a
// target that gives one. If its calls are whole it can be delivered as it is.
func (a *Answer) unfinished(ev *Event) *Broken {
	b := &Broken{Err: ErrEnded}
	if !a.called {
		return b
	}
	p, broken := a.reason(ev)
	if broken != nil || !a.finished() {
		return b
	}
	a.hold(p)
	a.hold(Piece{Bytes: End(a.o.Format, nil, nil)})
	a.done, a.deferred, a.noReason = true, true, true
	_ = a.resp.Body.Close()
	b.Odd, b.Flawed = OddEnd, a
	return b
}

// model returns the model's name as the stream has it, else as the request does.
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

// contradicts reports whether a later finish reason does not fit the content of an answer
// whose end the client has.
func (a *Answer) contradicts(d *Delta) bool {
	h := a.h
	if !h.judged || !h.holds.Calls || d.Finishes == 0 || a.finishes <= d.Finishes {
		return false
	}
	if len(h.calls.list) > 0 {
		return d.finish == recovery.FinishStop || h.changed
	}
	return d.finish == recovery.FinishCalls || h.changed
}

// repeats reports whether an event has only calls that the client has.
func (a *Answer) repeats(ev *Event, d *Delta) bool {
	h := a.h
	if !h.judged || d.Kind != KindCall || len(h.calls.list) == 0 || !d.calling() {
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

// breakWords are the marks of finish reasons that say that the answer was broken off:
// network_error (Z.ai), insufficient_system_resource (DeepSeek), abort (vLLM, SGLang),
// error (OpenRouter), and what others call the same.
var breakWords = [...]string{"error", "abort", "insufficient", "interrupt", "timeout", "timed_out", "cancel", "fail", "unavailable", "overload", "disconnect", "exception"}

// breaks reports whether a finish reason says that the answer was broken off.
func breaks(reason string) bool {
	reason = strings.ToLower(reason)
	for _, w := range breakWords {
		if strings.Contains(reason, w) {
			return true
		}
	}
	return false
}

// noReason reports whether a finish reason says nothing; some servers write null or none
// as a string.
func noReason(v []byte) bool {
	if !isString(v) || isEmpty(v) {
		return true
	}
	return len(v) == 6 && (strings.EqualFold(string(v), `"null"`) || strings.EqualFold(string(v), `"none"`))
}
