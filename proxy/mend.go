package proxy

import (
	"context"
	"net/http"
	"time"

	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/recovery"
)

// actionRepaired is the value of X-Rebound-Recovery for an answer with repaired tool calls.
const actionRepaired = "tool_call_repaired"

// options returns the stream options of one attempt's answer.
func (n *answer) options() stream.Options {
	s, a := n.s, &n.a
	o := stream.Options{Config: s.core.Stream, Format: s.wire.answers, Sink: s.sink, Resume: a.Resume,
		Choices: s.x.Body.N(), AcceptEmpty: a.AcceptEmpty, Started: a.Started, Cancel: a.Cancel,
		Request: s.x.Body, Ending: s.core.endings.Of(a.Target.Upstream, a.Target.Model), Life: a.Life, Idle: a.Idle, Explain: a.Explain, ID: s.x.ID}
	if !a.Plain {
		o.Fault = func(body []byte) bool { return s.fault(n.resp, body) }
	}
	if s.core.separatesClients() {
		o.ItemIDs = n.claimItems
	}
	if s.x.Keeps && (a.Resume == nil || a.Resume.Way != recovery.WayFetch) {
		o.Joined = func(id string, output []byte) { s.keep(n.ctx, id, output) }
	}
	if s.keepsThoughts(a) {
		o.Thought = func(text string, c recovery.DraftCall) { s.keepThought(n.ctx, text, c) }
	}
	if !a.Plain && !s.wire.relayed {
		o.Mender = s.core.Mender
		o.Repaired, o.Broke = n.repaired, n.broke
	}
	return o
}

// repaired reports what was repaired in the answer that is being delivered. It runs in the delivering
// goroutine, the only one that uses the exchange meanwhile.
func (n *answer) repaired(list []recovery.Repair) {
	n.s.x.Did(actionRepaired)
	ev := n.event(recovery.EventCallRepaired)
	ev.Repairs = list
	n.s.core.Observer.Observe(ev)
}

// broke reports a failure of the repair code; the answer is delivered unchanged.
func (n *answer) broke(cause string) {
	ev := n.event(recovery.EventDegraded)
	ev.Cause = cause
	n.s.core.Observer.Observe(ev)
}

// ranAway reports an answer that repeated itself endlessly and was not stopped.
func (n *answer) ranAway() {
	a, ok := n.Deliverable.(*stream.Answer)
	if !ok || !a.Runaway() {
		return
	}
	ev := n.event(recovery.EventRecoveryAttempt)
	ev.Class, ev.Cause, ev.Observed = recovery.ModelOutputInvalid, string(recovery.FlawRepetition), true
	n.s.core.Observer.Observe(ev)
}

func (n *answer) event(name recovery.EventName) recovery.Event {
	x, a := n.s.x, &n.a
	ev := x.Event(name)
	ev.Target, ev.Attempt = a.Target.Target, a.Number
	return ev
}

// salvage builds an answer from model output that the provider refused, if the error contains that
// output and calls can be read from it.
func (s *sender) salvage(a recovery.Attempt, f *recovery.Failure, o stream.Options) *stream.Composed {
	b := s.x.Body
	if f.Class() != recovery.ModelOutputInvalid || o.Mender == nil || a.Resume != nil || f.Released > recovery.ReleasedNothing ||
		b.N() != 1 || b.Logprobs() || b.Audio() {
		return nil
	}
	text, ok := stream.Rejected(f.Response.Body)
	if !ok {
		return nil
	}
	var v recovery.Verdict
	o.Guard(func() { v = o.Mender.Mend(b, recovery.Draft{Text: text}) })
	if v.Judgement != recovery.JudgeReplace || len(v.Calls) == 0 {
		return nil
	}
	c := stream.Composition{ID: s.x.ID, Model: a.Target.Model, Calls: v.Calls, Created: time.Now()}
	if v.Text != nil {
		c.Text = *v.Text
	}
	return stream.Compose(b, c, v.Repairs, o)
}

// codeStopped is the error code of a stopped session.
const codeStopped = "session_stopped"

// replied delivers the gateway's own answer, and completes the request's event.
func (s *sender) replied(ctx context.Context, ev *recovery.Event) error {
	x := s.x
	if x.Reply.Error {
		ev.Rule = codeStopped
		if s.sink.Committed() { // with 200
			s.endWithError(ctx, encode(x.Reply.Text, "rebound_error", "", codeStopped))
			return nil
		}
		ev.Status = http.StatusUnprocessableEntity
		e := reported(ev.Status, codeStopped, "%s", x.Reply.Text)
		e.Header = http.Header{"X-Should-Retry": {"false"}}
		s.decorate(e.Header, recovery.Target{}, nil)
		return e
	}
	c := stream.Composition{ID: x.ID, Model: x.Model, Text: x.Reply.Text, Created: time.Now()}
	n := stream.Compose(x.Body, c, nil, stream.Options{Config: s.core.Stream, Format: s.wire.answers, Sink: s.sink, Started: x.Started})
	s.decorate(n.Header, recovery.Target{}, nil)
	ev.Status = http.StatusOK
	if b := n.Deliver(ctx); b != nil {
		ev.Status, ev.Client = statusClientGone, "gone"
	}
	ev.TTFB = s.sink.FirstByte(x.Started)
	return nil
}
