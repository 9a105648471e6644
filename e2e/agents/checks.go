package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// says: every run ended well, and its last words have these texts.
func says(texts ...string) Check {
	return func(e *Evidence) error {
		for i := range e.Outcomes {
			o := &e.Outcomes[i]
			if !o.OK {
				return fmt.Errorf("error instead of an end: %s: %.300s", o.ErrorType, o.Error)
			}
			for _, t := range texts {
				if !strings.Contains(o.last(), t) {
					return fmt.Errorf("its last word is %.300q, without %q", o.last(), t)
				}
			}
		}
		return nil
	}
}

// fails: the run ended with an error, whose type or text has this.
func fails(with string) Check {
	return func(e *Evidence) error {
		o := e.outcome()
		if o.OK {
			return fmt.Errorf("it ended without an error: %.300q", o.last())
		}
		if !strings.Contains(o.ErrorType+": "+o.Error, with) {
			return fmt.Errorf("it failed with %s: %.300s, not %s", o.ErrorType, o.Error, with)
		}
		return nil
	}
}

// lastSays: the last run ended well, with these texts.
func lastSays(texts ...string) Check {
	return func(e *Evidence) error {
		last := Evidence{Outcomes: e.Outcomes[len(e.Outcomes)-1:]}
		return says(texts...)(&last)
	}
}

// noLeak: the client never sees a call as text.
func noLeak(e *Evidence) error {
	for i, x := range e.Sent {
		if bytes.Contains(x.Request, []byte("tool_call>")) || bytes.Contains(x.Response, []byte("tool_call>")) {
			return fmt.Errorf("exchange %d of the client has a call as text", i+1)
		}
	}
	return nil
}

// degraded: the task failed, or ended otherwise, or ran something else, or took
// a turn more than it needs.
func degraded(end string, run ...Call) Check {
	return func(e *Evidence) error {
		if errors.Join(says(end)(e), executed(run...)(e), asked(2, 2)(e)) == nil {
			return errors.New("unexpectedly, all is as if the call had been right")
		}
		return nil
	}
}

// ranPart: a call ran with arguments that the model did not finish.
func ranPart(e *Evidence) error {
	if noneElse(readPlan)(e) == nil {
		return fmt.Errorf("only whole calls ran: %s", listed(e.outcome().Executed))
	}
	return nil
}

// streamed makes a check of streams only.
func streamed(c Check) Check {
	return func(e *Evidence) error {
		if e.Mode != Streamed {
			return nil
		}
		return c(e)
	}
}

// saidOnce: in the last request, with the items that it refers to, the text stands
// just once.
func saidOnce(text string) Check {
	return func(e *Evidence) error {
		n := 0
		for _, m := range e.Model[max(0, len(e.Model)-1):] {
			for _, msg := range m.Request.Messages {
				n += strings.Count(msg.Text, text)
			}
		}
		if n != 1 {
			return fmt.Errorf("the history has the text %d times, want once", n)
		}
		return nil
	}
}

// wholeOrHonest: either the task ended well, or there is an error and nothing ran
// in part.
func wholeOrHonest(end []string, run ...Call) Check {
	return func(e *Evidence) error {
		if e.outcome().OK {
			return errors.Join(says(end...)(e), executed(run...)(e))
		}
		return noneElse(run...)(e)
	}
}

// steady: a rewritten history begins as the one before, but for so many times.
// Otherwise the provider's cache of the prompt is lost each time. Requests of
// /v1/messages always reserve room for the answer, which the history cannot have.
func steady(high int) Check {
	return func(e *Evidence) error {
		high := high
		if len(e.Model) > 0 && e.Model[0].Request.Blocks {
			high += high / 2
		}
		var before *Request
		n := 0
		for i := range e.Model {
			m := &e.Model[i]
			if m.Status != http.StatusOK || len(m.Request.Tools) == 0 {
				continue
			}
			if before != nil && !begins(m.Request, before) {
				n++
			}
			before = m.Request
		}
		if n > high {
			return fmt.Errorf("the history was rewritten anew %d times, want at most %d", n, high)
		}
		return nil
	}
}

// begins reports whether a request's messages begin with those of another one.
func begins(r, with *Request) bool {
	if len(r.Messages) < len(with.Messages) {
		return false
	}
	for i := range with.Messages {
		if !bytes.Equal(marshal(r.Messages[i]), marshal(with.Messages[i])) {
			return false
		}
	}
	return true
}

// unfinished: the long task did not come to its end.
func unfinished(e *Evidence) error {
	if says(keysTo(parts)...)(e) == nil {
		return errors.New("unexpectedly, it finished with all keys")
	}
	return nil
}

// executed: just these calls ran in the last run, in this order.
func executed(want ...Call) Check {
	return func(e *Evidence) error {
		got := e.outcome().Executed
		if !slices.EqualFunc(got, want, sameCall) {
			return fmt.Errorf("executed %s, want %s", listed(got), listed(want))
		}
		return nil
	}
}

// noneElse: nothing ran but these calls.
func noneElse(allowed ...Call) Check {
	return func(e *Evidence) error {
		for _, c := range e.outcome().Executed {
			if !slices.ContainsFunc(allowed, func(a Call) bool { return sameCall(a, c) }) {
				return fmt.Errorf("%s ran", listed([]Call{c}))
			}
		}
		return nil
	}
}

// sameCall compares calls as any client makes them: pi's tools have other names.
func sameCall(a, b Call) bool {
	name := func(c Call) string {
		return strings.NewReplacer("read_file", "read", "run_command", "bash").Replace(c.Name)
	}
	var x, y any
	return name(a) == name(b) && json.Unmarshal([]byte(a.Arguments), &x) == nil && json.Unmarshal([]byte(b.Arguments), &y) == nil &&
		bytes.Equal(marshal(x), marshal(y))
}

func listed(list []Call) string {
	var out []string
	for _, c := range list {
		out = append(out, c.Name+" "+c.Arguments)
	}
	return fmt.Sprintf("%.600s", strings.Join(out, "; "))
}

// asked: so many requests reached the model, all runs together.
func asked(low, high int) Check {
	return func(e *Evidence) error {
		if n := len(e.Model); n < low || n > high {
			return fmt.Errorf("the model was asked %d times, want %d to %d", n, low, high)
		}
		return nil
	}
}

// askedEach: the model was asked at most so many times for each request of the client.
func askedEach(high int) Check {
	return func(e *Evidence) error {
		if len(e.Model) > high*len(e.Sent) {
			return fmt.Errorf("the client asked %d times, the model was asked %d times", len(e.Sent), len(e.Model))
		}
		return nil
	}
}

// sent: so many requests came from the client, all runs together.
func sent(low, high int) Check {
	return func(e *Evidence) error {
		if n := len(e.Sent); n < low || n > high {
			return fmt.Errorf("the client asked %d times, want %d to %d", n, low, high)
		}
		return nil
	}
}

// reasked: the model was asked again for a bad answer so many times.
func reasked(low, high int) Check {
	return func(e *Evidence) error {
		n := 0
		for _, m := range e.Model {
			if m.Request.Reasked() {
				n++
			}
		}
		if n < low || n > high {
			return fmt.Errorf("the model was asked again %d times, want %d to %d", n, low, high)
		}
		return nil
	}
}

// asksToFit: the model was asked at least and at most so often; once more for each
// refusal without numbers, and for each summary that follows it.
func asksToFit(low, high int) Check {
	return func(e *Evidence) error {
		if e.unstated() {
			return asked(low, high+2)(e)
		}
		return asked(low, high)(e)
	}
}

// unstated reports whether refusals name no numbers, which is so in the other format.
func (e *Evidence) unstated() bool { return len(e.Model) > 0 && e.Model[0].Request.Responses }

// whereStated is a check of sessions whose refusals name numbers.
func whereStated(c Check) Check {
	return func(e *Evidence) error {
		if e.unstated() {
			return nil
		}
		return c(e)
	}
}

// refused: the model refused a request for its length so many times, and never one that
// came right after a refusal.
func refused(low, high int) Check {
	return func(e *Evidence) error {
		n := 0
		for i, m := range e.Model {
			if m.Status != http.StatusBadRequest {
				continue
			}
			n++
			if i > 0 && e.Model[i-1].Status == http.StatusBadRequest {
				return fmt.Errorf("requests %d and %d were refused, one after the other", i, i+1)
			}
		}
		if n < low || n > high {
			return fmt.Errorf("%d requests were refused for their length, want %d to %d", n, low, high)
		}
		return nil
	}
}

// outgrew: what the client sent at last is at least so many windows long; codex
// shortens long outputs by itself, and the window of Claude Code is twice as large.
func outgrew(windows int) Check {
	return func(e *Evidence) error {
		windows := windows
		if e.Client == Codex || e.Client == ClaudeCode {
			windows = min(windows, 2)
		}
		if len(e.Sent) == 0 {
			return errors.New("the client sent nothing")
		}
		if got := len(e.Sent[len(e.Sent)-1].Request) / 4; got < windows*window {
			return fmt.Errorf("the client's last request has %d tokens, less than %d windows of %d", got, windows, window)
		}
		return nil
	}
}

// neverOver: at the end the model takes what, as the client sent it, it would not.
func neverOver(e *Evidence) error {
	m := e.Model[len(e.Model)-1]
	if m.Status != http.StatusOK || m.Request.Tokens() > m.Request.window() || !bytes.Contains(m.Request.Raw, []byte(compressedMark)) {
		return fmt.Errorf("the last request has %d tokens and status %d", m.Request.Tokens(), m.Status)
	}
	return nil
}

// compressedOnwards: after the first refusal, whatever the model takes of the
// agent's requests is rewritten, and nothing was before it.
func compressedOnwards(e *Evidence) error {
	over := false
	for i, m := range e.Model {
		marked := bytes.Contains(m.Request.Raw, []byte(compressedMark))
		switch {
		case m.Status == http.StatusBadRequest:
			over = true
		case !over && marked:
			return fmt.Errorf("request %d was rewritten before any refusal", i+1)
		case over && !marked && m.Request.offersReading():
			return fmt.Errorf("request %d is not rewritten", i+1)
		}
	}
	return nil
}

// repeated: this call ran exactly so many times in all.
func repeated(c Call, n int) Check {
	return func(e *Evidence) error {
		got := 0
		for _, x := range e.outcome().Executed {
			if sameCall(x, c) {
				got++
			}
		}
		if got != n {
			return fmt.Errorf("%s ran %d times, want %d", listed([]Call{c}), got, n)
		}
		return nil
	}
}

// guided: the model got a note with this text.
func guided(with string) Check {
	return func(e *Evidence) error {
		for _, m := range e.Model {
			if strings.Contains(m.Request.Note(), with) {
				return nil
			}
		}
		return fmt.Errorf("no request has a note with %q", with)
	}
}

// stopped: the breaker answered once.
func stopped(e *Evidence) error { return madeByGateway("session_stopped")(e) }

// flows: the text of the first answer is at the client long before its call.
func flows(e *Evidence) error {
	x := &e.Sent[0]
	end := len(x.Response)
	calls, texts := `"tool_calls":[`, `"content":"`
	if x.responses() {
		calls, texts = `"type":"function_call"`, `event: response.output_text.delta`
	} else if x.messages() {
		calls, texts = `"type":"tool_use"`, `"type":"text_delta"`
	}
	call := bytes.Index(x.Response, []byte(calls))
	if call < 0 {
		return fmt.Errorf("no call is in the answer: %.300q", x.Response)
	}
	text := bytes.LastIndex(x.Response[:call], []byte(texts))
	at := func(n int) time.Time {
		i := slices.IndexFunc(x.Reads, func(r Read) bool { return r.Len >= n })
		return x.Reads[max(0, i)].At
	}
	if gap := at(end).Sub(at(text + 1)); gap < thoughtPause/2 {
		return fmt.Errorf("the text was there only %v before the call", gap)
	}
	return nil
}

// madeByGateway: one answer is the gateway's own: a normal end of a turn that says
// what it is.
func madeByGateway(recovery string) Check {
	return func(e *Evidence) error {
		n := 0
		for i := range e.Sent {
			x := &e.Sent[i]
			id, end := `"chatcmpl-rebound-`, `"finish_reason":"stop"`
			if x.responses() {
				id, end = `"resp_rebound`, `"status":"completed"`
			} else if x.messages() {
				id, end = `"msg_rebound`, `"end_turn"`
			}
			if !bytes.Contains(x.Response, []byte(id)) {
				continue
			}
			n++
			did := x.Header.Get("X-Rebound-Recovery")
			switch {
			case x.Status != http.StatusOK:
				return fmt.Errorf("the gateway's own answer has status %d", x.Status)
			case did == "" || !strings.Contains(did, recovery):
				return fmt.Errorf("X-Rebound-Recovery is %q, want %q", did, recovery)
			case !bytes.Contains(x.Response, []byte(end)):
				return fmt.Errorf("the gateway's own answer does not end with %s: %.500s", end, x.Response)
			}
		}
		if n != 1 {
			return fmt.Errorf("%d answers are the gateway's own, want 1", n)
		}
		return nil
	}
}

// firstSays: the answer to the first prompt has these texts.
func firstSays(texts ...string) Check {
	return func(e *Evidence) error {
		for _, t := range texts {
			if o := e.outcome(); len(o.Texts) == 0 || !strings.Contains(o.Texts[0], t) {
				return fmt.Errorf("the first answer has no %q: %.300q (%s)", t, o.Texts, o.Error)
			}
		}
		return nil
	}
}
