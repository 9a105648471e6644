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

// event is one line of the gateway's JSON log.
type event struct{ gjson.Result }

// is reports whether e is an event of this kind.
func (e event) is(name recovery.EventName) bool { return e.Get("event").Str == string(name) }

// at returns the time of the event.
func (e event) at() time.Time { return e.Get("time").Time() }

// String formats the fields that differ between rows.
func (e event) String() string { return eventline.String(e.Result, "request", "session", "model") }

// eventLog collects the gateway's log. It is safe for concurrent use.
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

// eventsOf returns the events with the model or a target of a fault, in their order.
func (l *eventLog) eventsOf(f *fault) []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []event
	for line := range bytes.Lines(l.buf.Bytes()) {
		e := event{gjson.ParseBytes(line)}
		if e.Get("model").Str == f.slug || f.hasTarget(e.Get("target").Str) {
			list = append(list, e)
		}
	}
	return list
}

// hasTarget reports whether an event's target is one of the fault's.
func (f *fault) hasTarget(place string) bool {
	for i, t := range f.targets {
		if place == t.on+"/"+f.targetModel(i) {
			return true
		}
	}
	return false
}

// actions returns the recoveries as X-Rebound-Recovery names them, with their number and, if it is
// not the first, the target that answered; and the number of attempts. It reads the events,
// because a recovery after the headers is in no header.
func (r *row) actions() (what string, attempts int) {
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
		return r.silentRepair(), attempts
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
	case place == "": // no target got a request
	case place != r.fault.targets[0].on:
		what += " -> " + place
	case place == onTwoKeys:
		what += " -> key " + done.Get("upstream_key").Str
	}
	return what, attempts
}

// silentRepair names a repair that has no event, from the difference of the two answers.
func (r *row) silentRepair() string {
	if r.straight.verdict == complete && !r.straight.done && r.through.done {
		return "[DONE] added"
	}
	return "nothing"
}
