package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

const (
	// maxHistory is how many past events a reader gets at most.
	maxHistory = 1000
	// usualHistory is how many are asked for where nobody says how many.
	usualHistory = 100
	// searched is how many past events are looked through for a filter.
	searched = 10_000
	// followEvery is how often the shared log is read for events of other replicas,
	// while anybody listens here.
	followEvery = 500 * time.Millisecond
	// overlap is how far back of the last event that a reader saw those of other
	// replicas are sent again: they may have come into the log after it.
	overlap = 2 * time.Second
)

// Tail returns the newest n entries of a log, oldest first.
type Tail func(ctx context.Context, n int) ([][]byte, error)

// SetLog tells where the events are that the sink was given, by all replicas.
// shared says that others write there, too: then the live stream follows them. It is
// called once, before anybody reads events.
func (h *Hub) SetLog(tail Tail, shared bool) {
	h.tail = tail
	if shared {
		h.feed.follow = h.follow
	}
}

// eventID names an event: when it happened in milliseconds, the replica that saw
// it, and that replica's count. Ids of one replica sort as their events; those
// of several by time.
type eventID string

var isEventID = regexp.MustCompile(`^[0-9]{13}-[0-9a-f]{8}-[0-9]{1,18}$`)

func (h *Hub) nextID(at time.Time) eventID {
	h.count++
	return eventID(fmt.Sprintf("%013d-%s-%d", max(0, at.UnixMilli())%1e13, h.replica, h.count))
}

func (id eventID) replica() string {
	_, rest, _ := strings.Cut(string(id), "-")
	replica, _, _ := strings.Cut(rest, "-")
	return replica
}

func (id eventID) time() time.Time {
	ms, _, _ := strings.Cut(string(id), "-")
	n, _ := strconv.ParseInt(ms, 10, 64)
	return time.UnixMilli(n)
}

// withID puts an id before the other fields of an event, which is a line of JSON.
func withID(id eventID, line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return slices.Concat([]byte(`{"id":"`), []byte(id), []byte(`",`), line[1:])
}

// logged reads an entry of the log; false for what none of ours wrote: the log
// may be somebody else's.
func logged(entry []byte) (message, bool) {
	if bytes.ContainsAny(entry, "\n\r") || !json.Valid(entry) {
		return message{}, false
	}
	f := gjson.GetManyBytes(entry, "id", "event")
	name := f[1].Str
	if !isEventID.MatchString(f[0].Str) || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return message{}, false
	}
	return message{id: eventID(f[0].Str), name: name, data: entry}, true
}

// fromLog reads the newest n entries of the log. A log that cannot be read is empty:
// what happened here is known anyway.
func (h *Hub) fromLog(ctx context.Context, n int) []message {
	if h.tail == nil {
		return nil
	}
	entries, err := h.tail(ctx, n)
	if err != nil {
		return nil
	}
	list := make([]message, 0, len(entries))
	for _, entry := range entries {
		if m, ok := logged(entry); ok {
			list = append(list, m)
		}
	}
	return list
}

// past joins the newest of the log with what happened here since, and is not written
// yet. Both are oldest first.
func past(log, here []message) []message {
	known := make(map[eventID]bool, len(log))
	for _, m := range log {
		known[m.id] = true
	}
	for i, m := range slices.Backward(here) {
		if known[m.id] || len(log) > 0 && m.id < log[0].id { // older than what was read
			here = here[i+1:]
			break
		}
	}
	return append(log, here...)
}

// since is the part of the past that a reader has not seen whose last event was id.
func since(list []message, id eventID) []message {
	at := slices.IndexFunc(list, func(m message) bool { return m.id == id })
	var out []message
	for i, m := range list {
		again := m.id.replica() != id.replica() && m.id.time().After(id.time().Add(-overlap))
		if at >= 0 && i > at || at < 0 && m.id > id || i != at && again {
			out = append(out, m)
		}
	}
	return out
}

// follow hands on what other replicas write into the log, until stop ends. It
// closes ready once it misses nothing of it.
func (h *Hub) follow(ready chan<- struct{}, stop <-chan struct{}) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	list, last := h.fromLog(context.Background(), 1), eventID("")
	if len(list) > 0 {
		last = list[0].id
	}
	for close(ready); ; {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		for _, m := range h.written(last) {
			if last = m.id; m.id.replica() != h.replica {
				h.feed.publish(m, fromOther)
			}
		}
	}
}

// written is what was written into the log after an event; what is new, and no
// more than maxHistory, where that one is not there any more.
func (h *Hub) written(last eventID) []message {
	for n := usualHistory; ; n = maxHistory {
		list := h.fromLog(context.Background(), n)
		if at := slices.IndexFunc(list, func(m message) bool { return m.id == last }); at >= 0 {
			return list[at+1:]
		}
		if len(list) < n || n == maxHistory {
			return slices.DeleteFunc(list, func(m message) bool { return m.id <= last })
		}
	}
}

// filter says which events a reader wants: for each field one of some values.
// target may be an upstream alone. A nil one lets everything pass.
type filter map[string][]string

// filters are the fields that a filter may name.
var filters = [...]string{"event", "session", "model", "target", "class", "request", "key", "status", "slower"}

// readFilter takes the filter out of a query; known is false where a name is
// neither a filter nor among the others.
func readFilter(q url.Values, others ...string) (f filter, known bool) {
	for name, values := range q {
		switch {
		case slices.Contains(filters[:], name):
			if f == nil {
				f = filter{}
			}
			f[name] = values
		case !slices.Contains(others, name):
			return nil, false
		}
	}
	return f, true
}

// passes reports whether an event, as JSON, is wanted.
func (f filter) passes(data []byte) bool {
	for field, values := range f {
		got := gjson.GetBytes(data, field).String()
		if !slices.ContainsFunc(values, func(want string) bool {
			switch {
			case field == "slower": // than that many milliseconds
				least, err := strconv.Atoi(want)
				return err == nil && gjson.GetBytes(data, "duration_ms").Int() >= int64(least)
			case field == "request" && got != want: // the upstream's own id, too
				return gjson.GetBytes(data, "upstream_request").Str == want || slices.ContainsFunc(gjson.GetBytes(data, "attempts.#.upstream_request").Array(),
					func(id gjson.Result) bool { return id.Str == want })
			}
			return got == want || field == "target" && strings.HasPrefix(got, want+"/")
		}) {
			return false
		}
	}
	return true
}
