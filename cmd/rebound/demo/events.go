package demo

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/cmd/rebound/eventline"
	"github.com/rebound-llm/rebound/recovery"
)

// event is one line of the gateway's log, which is JSON.
type event struct{ gjson.Result }

// is reports whether e is an event of this kind.
func (e event) is(name recovery.EventName) bool { return e.Get("event").Str == string(name) }

// at is when the event happened.
func (e event) at() time.Time { return e.Get("time").Time() }

// String renders what of the event differs between the rows.
func (e event) String() string { return eventline.String(e.Result, "request", "session", "model") }

// eventLog gathers what the gateway logs. Safe for concurrent use.
type eventLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *eventLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// of returns the events of one fault, in the order in which they happened: they
// name its model, or one of its targets.
func (l *eventLog) of(f *fault) []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []event
	for line := range bytes.Lines(l.buf.Bytes()) {
		e := event{gjson.ParseBytes(line)}
		if e.Get("model").Str == f.slug || f.owns(e.Get("target").Str) {
			list = append(list, e)
		}
	}
	return list
}

// owns reports whether a target, as events name it, is one of the fault's.
func (f *fault) owns(place string) bool {
	for i, t := range f.targets {
		if place == t.on+"/"+f.targetModel(i) {
			return true
		}
	}
	return false
}

// did tells what the gateway did, in the words of X-Rebound-Recovery, how often,
// and who answered if it was not the first target; and how many attempts it made.
// It reads the events: after the headers no header can tell.
func (r *row) did() (what string, attempts int) {
	times := map[string]int{}
	var done event
	for _, e := range r.events {
		switch {
		case e.is(recovery.EventRecoveryAttempt):
			times[e.Get("strategy").Str]++
		case e.is(recovery.EventRequestDone):
			done = e
			attempts += int(e.Get("attempt").Int())
		}
	}
	if done.Get("recovery").Str == "" {
		return r.quietly(), attempts
	}
	actions := strings.Split(done.Get("recovery").Str, ", ")
	for i, action := range actions {
		if action == "resume" && r.prefilled {
			actions[i] = "prefill"
		}
		if n := times[action]; n > 1 {
			actions[i] += fmt.Sprintf(" x%d", n)
		}
	}
	what = strings.Join(actions, ", ")
	place, _, _ := strings.Cut(done.Get("target").Str, "/")
	switch {
	case place == "": // nobody was asked
	case place != r.fault.targets[0].on:
		what += " -> " + place
	case place == onTwoKeys:
		what += " -> key " + done.Get("upstream_key").Str
	}
	return what, attempts
}

// quietly tells what the gateway mended in passing, which needs no event: the
// two answers differ in it.
func (r *row) quietly() string {
	if r.straight.verdict == complete && !r.straight.done && r.through.done {
		return "[DONE] added"
	}
	return "nothing"
}
