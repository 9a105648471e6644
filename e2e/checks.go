package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// Check says what is wrong with a leg of a run, or nothing.
type Check func(r *Run, l *Leg) error

// slack is what a time may be off on a busy machine.
const slack = 100 * time.Millisecond

// whole: the last answer is the complete one of target i, and says so.
func whole(i int) Check {
	return func(r *Run, l *Leg) error { return r.complete(l.last(), i) }
}

// eachWhole: every answer is the complete one of target i.
func eachWhole(i int) Check {
	return func(r *Run, l *Leg) error {
		for n := range l.Answers {
			if err := r.complete(&l.Answers[n], i); err != nil {
				return fmt.Errorf("request %d: %w", n+1, err)
			}
		}
		return nil
	}
}

// complete reports how an answer differs from the complete text of target i.
func (r *Run) complete(a *Answer, i int) error {
	if !a.OK {
		return fmt.Errorf("error instead of an answer: %s", a.errorLine())
	}
	if want := r.text(i); a.Text != want {
		return fmt.Errorf("not the text of target %d: %s", i, difference(a.Text, want))
	}
	return r.signed(a, i, "stop")
}

// signed reports what is wrong with an answer apart from its content.
func (r *Run) signed(a *Answer, i int, finish string) error {
	if a.FinishReason != finish {
		return fmt.Errorf("finish_reason is %q, want %q", a.FinishReason, finish)
	}
	if a.Model != r.name(i) {
		return fmt.Errorf("model is %q, want %q", a.Model, r.name(i))
	}
	if finish != "stop" || r.Mode == Streamed && !r.Case.Ask.Usage {
		return nil
	}
	want := len(r.text(i))/4 + 1
	if strings.Contains(r.target(i), "reason=") {
		want += len(upstreamtest.ReasoningText)/4 + 1
	}
	if a.Usage == nil || a.Usage.Completion != want {
		return fmt.Errorf("usage is %+v, want %d completion tokens", a.Usage, want)
	}
	return nil
}

// text: the last answer is complete and tells just this.
func text(want func(r *Run) string) Check {
	return func(r *Run, l *Leg) error {
		a := l.last()
		if !a.OK {
			return fmt.Errorf("error instead of an answer: %s", a.errorLine())
		}
		if w := want(r); a.Text != w {
			return fmt.Errorf("not the expected text: %s", difference(a.Text, w))
		}
		if a.FinishReason != "stop" {
			return fmt.Errorf("finish_reason is %q, want stop", a.FinishReason)
		}
		return nil
	}
}

// toolCall: the last answer is the tool call of target i.
func toolCall(i int) Check {
	return func(r *Run, l *Leg) error {
		a := l.last()
		if !a.OK {
			return fmt.Errorf("error instead of a tool call: %s", a.errorLine())
		}
		if len(a.ToolCalls) != 1 || a.ToolCalls[0].Name != upstreamtest.DefaultTool || a.ToolCalls[0].Arguments != upstreamtest.ToolArguments ||
			a.ToolCalls[0].ID == "" {
			return fmt.Errorf("tool calls are %+v", a.ToolCalls)
		}
		if want := r.text(i); strings.Contains(r.target(i), "text-tool") && a.Text != want {
			return fmt.Errorf("not the text of target %d: %s", i, difference(a.Text, want))
		}
		return r.signed(a, i, "tool_calls")
	}
}

// asStraight: everything is as it is without the gateway.
func asStraight(r *Run, l *Leg) error {
	if len(r.Straight.Answers) == 0 {
		return nil // not asked for
	}
	s, t := *r.Straight.last(), *l.last()
	for _, a := range []*Answer{&s, &t} {
		a.ID, a.BegunMS, a.ElapsedMS, a.Sent, a.Header, a.Comments = 0, 0, 0, nil, nil, nil
		a.FirstTokenMS, a.IDs = 0, nil
		a.ToolCalls = slices.Clone(a.ToolCalls)
		for i := range a.ToolCalls {
			a.ToolCalls[i].ID = "" // counts the upstream's requests
		}
	}
	was, _ := json.Marshal(s)
	is, _ := json.Marshal(t)
	if string(was) != string(is) {
		return fmt.Errorf("through the gateway %s, straight %s", is, was)
	}
	return nil
}

// fails: the last answer is an error with this status, or this code or words in
// it. A stream that has begun has no status any more. Zero values are not asked
// for.
func fails(status int, words ...string) Check {
	return func(r *Run, l *Leg) error {
		a := l.last()
		switch {
		case a.OK:
			return fmt.Errorf("an answer instead of an error: finish_reason %q, %d bytes of text", a.FinishReason, len(a.Text))
		case a.Ended != "":
			return fmt.Errorf("no error within %v", a.Elapsed().Round(time.Second))
		case status != 0 && a.Status != status:
			return fmt.Errorf("status is %d, want %d: %s", a.Status, status, a.errorLine())
		case len(words) == 0:
			return nil
		}
		for _, w := range words {
			if a.Code == w || strings.Contains(strings.ToLower(a.Error), w) {
				return nil
			}
		}
		return fmt.Errorf("the error says none of %q: %s", words, a.errorLine())
	}
}

// keepaliveAfter is stream.keepalive_after: a stream without a first token so far is
// begun then.
var keepaliveAfter = Time{Real: 15 * time.Second, Scaled: 3 * time.Second}

// failsLate is fails for an error that may come after the stream was begun to
// keep the client awake; then there is no status any more. Six attempts wait 11.6
// to 15.5 s in all, so both happen at the real pace.
func failsLate(status int, words ...string) Check {
	return func(r *Run, l *Leg) error {
		if r.Mode == Streamed && l.last().Elapsed() > r.Pace.of(keepaliveAfter) {
			return fails(0, words...)(r, l)
		}
		return fails(status, words...)(r, l)
	}
}

// broken: the last answer is not the complete text of the first target, by an
// error, by silence or because something is missing.
func broken(r *Run, l *Leg) error {
	if r.complete(l.last(), 0) == nil {
		return errors.New("a complete answer in spite of the fault")
	}
	return nil
}

// honest: complete, or an error; never a part that looks complete.
func honest(i int) Check {
	return func(r *Run, l *Leg) error {
		if a := l.last(); a.OK {
			return r.complete(a, i)
		} else if a.Ended != "" {
			return fmt.Errorf("neither answer nor error within %v", a.Elapsed().Round(time.Second))
		}
		return nil
	}
}

// header: the plain client saw this header.
func header(name string) Check {
	return func(r *Run, l *Leg) error {
		if a := l.last(); a.Header != nil && a.Header[name] == "" {
			return fmt.Errorf("no header %s in the answer: %v", name, a.Header)
		}
		return nil
	}
}

// attemptsHeader: the plain client is told how often the upstreams were asked.
func attemptsHeader(r *Run, l *Leg) error {
	n := 0
	for _, recs := range l.Records {
		n += len(recs)
	}
	if a := l.last(); a.Header != nil && a.Header["X-Rebound-Attempts"] != strconv.Itoa(n) {
		return fmt.Errorf("X-Rebound-Attempts is %q, the upstreams were asked %d times", a.Header["X-Rebound-Attempts"], n)
	}
	return nil
}

// retryAfter: a final 429 says when to come again.
func retryAfter(r *Run, l *Leg) error {
	if l.last().Status != 429 {
		return nil // begun as a stream, or another client
	}
	return header("Retry-After")(r, l)
}

// took: the last answer came no sooner and no later.
func took(least, most Time) Check {
	return func(r *Run, l *Leg) error {
		d, low, high := l.last().Elapsed(), r.Pace.of(least), r.Pace.of(most)
		if d < low-slack {
			return fmt.Errorf("answered after %v, not before %v expected", d, low)
		}
		if high > 0 && d > high {
			return fmt.Errorf("answered after %v, at most %v expected", d, high)
		}
		return nil
	}
}

// wellFormed: a stream that looks complete is one, to the letter: one id, one
// finish_reason, [DONE]; of /v1/responses one id, one end, every item as it was
// announced; of /v1/messages one message with block after block, and errors that its
// clients know. Only the plain clients see it.
func wellFormed(r *Run, l *Leg) error {
	a := l.last()
	if len(a.Wrong) > 0 && (a.OK || formatOf(r.Client) == Messages) {
		return fmt.Errorf("the answer breaks the rules: %s", strings.Join(a.Wrong, "; "))
	}
	if r.Mode != Streamed || a.Header == nil || !a.OK {
		return nil
	}
	if len(a.IDs) != 1 || a.Finishes != 1 || a.Done != r.done() {
		return fmt.Errorf("the stream is not well formed: ids %q, %d times finish_reason, [DONE] %v", a.IDs, a.Finishes, a.Done)
	}
	return nil
}

// done reports whether [DONE], or message_stop, belongs at the end: of responses where
// the first target sends it.
func (r *Run) done() bool {
	return formatOf(r.Client) != Responses || len(r.Case.Targets) > 0 && r.Case.Targets[0].Script == "done"
}

// streamsOn: the first token came as much before the end.
func streamsOn(least time.Duration) Check {
	return func(r *Run, l *Leg) error {
		a := l.last()
		if ahead := a.Elapsed() - time.Duration(a.FirstTokenMS)*time.Millisecond; r.Mode == Streamed && ahead < least {
			return fmt.Errorf("the first token came %v before the end, want at least %v", ahead, least)
		}
		return nil
	}
}

// keptAwake: while a stream was silent, comments came from first on, every so often. On
// a busy machine one may come as late as the next.
func keptAwake(first, every Time) Check {
	return func(r *Run, l *Leg) error {
		a := l.last()
		if r.Mode != Streamed || a.Header == nil {
			return nil // only the plain client sees comments
		}
		marks := append(slices.Clone(a.Comments), a.FirstTokenMS)
		limit := r.Pace.of(first)
		before := int64(0)
		for _, m := range marks {
			if gap := time.Duration(m-before) * time.Millisecond; gap > 2*limit+slack {
				return fmt.Errorf("nothing for %v after %d ms: comments at %v ms, first token at %d ms", gap, before, a.Comments, a.FirstTokenMS)
			}
			before, limit = m, r.Pace.of(every)
		}
		return nil
	}
}

// streamed applies checks to streams.
func streamed(checks ...Check) Check {
	return func(r *Run, l *Leg) error {
		if r.Mode != Streamed {
			return nil
		}
		return all(r, l, checks)
	}
}

// except applies checks to all clients but some.
func except(clients []string, checks ...Check) Check {
	return func(r *Run, l *Leg) error {
		if slices.Contains(clients, r.Client) {
			return nil
		}
		return all(r, l, checks)
	}
}

// only applies checks to some clients.
func only(clients []string, checks ...Check) Check {
	return func(r *Run, l *Leg) error {
		if !slices.Contains(clients, r.Client) {
			return nil
		}
		return all(r, l, checks)
	}
}

func all(r *Run, l *Leg, checks []Check) error {
	var errs []error
	for _, c := range checks {
		errs = append(errs, c(r, l))
	}
	return errors.Join(errs...)
}

// errorLine is an answer's error in one line.
func (a *Answer) errorLine() string {
	s := fmt.Sprintf("%s, status %d, code %q: %.300q", a.ErrorType, a.Status, a.Code, a.Error)
	if a.Text != "" {
		s += fmt.Sprintf(" after %d bytes of text", len(a.Text))
	}
	if a.Ended != "" {
		s += fmt.Sprintf(" (%s after %v)", a.Ended, a.Elapsed().Round(100*time.Millisecond))
	}
	return s
}

// difference tells where two texts part.
func difference(got, want string) string {
	n := 0
	for n < len(got) && n < len(want) && got[n] == want[n] {
		n++
	}
	return fmt.Sprintf("%d bytes, want %d, equal up to %d, then %.40q instead of %.40q", len(got), len(want), n, got[n:], want[n:])
}
