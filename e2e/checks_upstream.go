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

// attempts: target i was asked so often for each HTTP request of the client.
func attempts(i, least, most int) Check {
	return func(r *Run, l *Leg) error {
		groups := l.perRequest(i)
		if len(groups) == 0 && least > 0 {
			return fmt.Errorf("target %d was never asked", i)
		}
		for _, g := range groups {
			if len(g) < least || len(g) > most {
				return fmt.Errorf("target %d was asked %d times for one request, want %d to %d: %s", i, len(g), least, most, times(g))
			}
		}
		return nil
	}
}

// asked: target i was asked so often in all.
func asked(i, least, most int) Check {
	return func(r *Run, l *Leg) error {
		if n := len(l.Records[i]); n < least || n > most {
			return fmt.Errorf("target %d was asked %d times, want %d to %d: %s", i, n, least, most, times(l.Records[i]))
		}
		return nil
	}
}

// lastAsked: for the last of the client's requests target i was asked n times.
func lastAsked(i, n int) Check {
	return func(r *Run, l *Leg) error {
		from, got := l.last().Begun(), 0
		for _, rec := range l.Records[i] {
			if !rec.Time.Before(from) {
				got++
			}
		}
		if got != n {
			return fmt.Errorf("target %d was asked %d times for the last request, want %d: %s", i, got, n, times(l.Records[i]))
		}
		return nil
	}
}

// within: at most n attempts in any d from the first for one HTTP request.
func within(i, n int, d time.Duration) Check {
	return func(r *Run, l *Leg) error {
		for _, g := range l.perRequest(i) {
			early := 0
			for _, rec := range g {
				if rec.Time.Sub(g[0].Time) < d {
					early++
				}
			}
			if early > n {
				return fmt.Errorf("target %d was asked %d times in %v, want at most %d: %s", i, early, d, n, times(g))
			}
		}
		return nil
	}
}

// apart: there is as much time between two attempts.
func apart(i int, least time.Duration) Check {
	return func(r *Run, l *Leg) error {
		for n, rec := range l.Records[i] {
			if n > 0 && rec.Time.Sub(l.Records[i][n-1].Time) < least {
				return fmt.Errorf("attempts on target %d are less than %v apart: %s", i, least, times(l.Records[i]))
			}
		}
		return nil
	}
}

// leaves is how soon after a client left, or was answered, nothing is done for it any
// more, on a busy machine as well.
const leaves = 3 * time.Second

// ended is when the client had its last answer, or left.
func (l *Leg) ended() time.Time { return l.last().Begun().Add(l.last().Elapsed()) }

// notAfter: target i was not asked any more when the client had left.
func notAfter(i int) Check {
	return func(r *Run, l *Leg) error {
		for _, rec := range l.Records[i] {
			if late := rec.Time.Sub(l.ended()); late > time.Second {
				return fmt.Errorf("target %d was asked %v after the client had left", i, late)
			}
		}
		return nil
	}
}

// cancelled: the first attempt on target i was broken off soon after the client had
// its answer, or left.
func cancelled(i int) Check {
	return func(r *Run, l *Leg) error {
		if len(l.Records[i]) == 0 {
			return fmt.Errorf("target %d was never asked", i)
		}
		rec, end := l.Records[i][0], l.ended()
		switch {
		case rec.Finished.IsZero():
			return fmt.Errorf("target %d is still at it", i)
		case !rec.Cancelled:
			return fmt.Errorf("target %d was not cancelled: status %d, %d events", i, rec.Status, rec.Chunks)
		case rec.CancelledAt.Sub(end) > leaves:
			return fmt.Errorf("target %d was cancelled %v after the client", i, rec.CancelledAt.Sub(end))
		}
		return nil
	}
}

// uncut: the first attempt on target i was let finish.
func uncut(i int) Check {
	return func(r *Run, l *Leg) error {
		if rec := l.Records[i][0]; rec.Cancelled {
			return fmt.Errorf("the first attempt on target %d was cancelled after %v", i, rec.CancelledAt.Sub(rec.Time))
		}
		return nil
	}
}

// keyAsked: the first target saw this key so often for each HTTP request.
func keyAsked(key string, least, most int) Check {
	return func(r *Run, l *Leg) error {
		for _, g := range l.perRequest(0) {
			n := 0
			for _, rec := range g {
				if rec.Key == key {
					n++
				}
			}
			if n < least || n > most {
				return fmt.Errorf("key %s was tried %d times for one request, want %d to %d", key, n, least, most)
			}
		}
		return nil
	}
}

// ownKeys: the client's credential did not reach an upstream with keys.
func ownKeys(r *Run, l *Leg) error {
	for _, rec := range l.Records[0] {
		if rec.Key != KeyA && rec.Key != KeyB {
			return fmt.Errorf("the upstream saw the credential %q", rec.Key)
		}
	}
	return nil
}

// notTwice: no target got a body of the same size twice for one request.
func notTwice(r *Run, l *Leg) error {
	for i := range l.Records {
		for _, g := range l.perRequest(i) {
			seen := map[int]bool{}
			for _, rec := range g {
				if seen[len(rec.Body)] {
					return fmt.Errorf("target %d got %d bytes twice", i, len(rec.Body))
				}
				seen[len(rec.Body)] = true
			}
		}
	}
	return nil
}

// sentField: the last body for target 0 has the field with this JSON value, or
// not at all if it is empty.
func sentField(name, want string) Check {
	return func(r *Run, l *Leg) error {
		if len(l.Records[0]) == 0 {
			return errors.New("target 0 was never asked")
		}
		var body map[string]json.RawMessage
		if err := json.Unmarshal([]byte(l.Records[0][len(l.Records[0])-1].Body), &body); err != nil {
			return fmt.Errorf("the upstream got a body that is not JSON: %w", err)
		}
		if got := string(body[name]); got != want {
			return fmt.Errorf("the upstream got %s %q, want %q", name, got, want)
		}
		return nil
	}
}

// sentLimit is sentField for the limit of the output, as the client spells it.
func sentLimit(want string) Check {
	return func(r *Run, l *Leg) error {
		name := "max_tokens"
		switch {
		case formatOf(r.Client) == Responses:
			name = "max_output_tokens"
		case slices.Contains(renames, r.Client):
			name = "max_completion_tokens"
		}
		return sentField(name, want)(r, l)
	}
}

// perRequest groups what reached target i by the client's HTTP requests.
// Libraries that count their retries on the wire are asked, others say when
// they sent.
func (l *Leg) perRequest(i int) [][]upstreamtest.Record {
	groups := map[int][]upstreamtest.Record{}
	for _, rec := range l.Records[i] {
		n := 0
		for n+1 < len(l.Answers) && !rec.Time.Before(l.Answers[n+1].Begun()) {
			n++
		}
		retry := 0
		if count := rec.Header.Get("X-Stainless-Retry-Count"); count != "" {
			retry, _ = strconv.Atoi(count)
		} else {
			a := &l.Answers[n]
			for retry+1 < len(a.Sent) && !rec.Time.Before(a.Begun().Add(time.Duration(a.Sent[retry+1].AtMS)*time.Millisecond)) {
				retry++
			}
		}
		groups[n*100+retry] = append(groups[n*100+retry], rec)
	}
	var out [][]upstreamtest.Record
	for _, g := range groups {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b []upstreamtest.Record) int { return a[0].Time.Compare(b[0].Time) })
	return out
}

// times lists when attempts came and how they were answered.
func times(recs []upstreamtest.Record) string {
	var b strings.Builder
	for i, rec := range recs {
		fmt.Fprintf(&b, "%s+%.2fs %s %d", [...]string{"", ", "}[min(i, 1)], rec.Time.Sub(recs[0].Time).Seconds(), rec.Step, rec.Status)
		if rec.Cancelled {
			fmt.Fprintf(&b, " cancelled +%.2fs", rec.CancelledAt.Sub(recs[0].Time).Seconds())
		}
	}
	return b.String()
}
