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
	// maxHistory limits how many past events a reader gets.
	maxHistory = 1000
	// usualHistory is the default number of past events.
	usualHistory = 100
	// searched is how many past events are searched with a filter.
	searched = 10_000
	// followEvery is how often the shared log is read for events of other replicas while there are
	// subscribers.
	followEvery = 500 * time.Millisecond
	// overlap is how far before a reader's last event those of other replicas are sent again, because
	// they may have been written to the log later.
	overlap = 2 * time.Second
)

// Tail returns the newest n entries of a log, oldest first.
type Tail func(ctx context.Context, n int) ([][]byte, error)

// SetLog sets the function that reads the events that the sinks of all replicas have written. shared
// means that other replicas write to the same log; then the live stream follows it. It must be called
// once, before the first reader.
func (h *Hub) SetLog(tail Tail, shared bool) {
	h.tail = tail
	if shared {
		h.feed.follow = h.follow
	}
}

// eventID identifies an event: its time in milliseconds, its replica, and a number from that replica.
// Ids of one replica sort in the order of its events; those of several replicas sort by time.
type eventID string

var isEventID = regexp.MustCompile(`^[0-9]{13}-[0-9a-f]{8}-[0-9]{1,18}$`)

func (h *Hub) nextID(at time.Time) eventID {
	h.count++
	return newID(at, h.replica, h.count)
}

func newID(at time.Time, replica string, number int) eventID {
	return eventID(fmt.Sprintf("%013d-%s-%d", max(0, at.UnixMilli())%1e13, replica, number))
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

// withID inserts an id as the first field of an event, which is a line of JSON.
func withID(id eventID, line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return slices.Concat([]byte(`{"id":"`), []byte(id), []byte(`",`), line[1:])
}

// logged parses an entry of the log. It returns false for an entry that no gateway wrote, because
// others may use the same log.
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

// fromLog reads the newest n entries of the log. It ignores errors, because the events of this replica
// are also in memory.
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

// past joins entries of the log with events of this replica that are not in the log yet. Both are
// oldest first.
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

// since returns the part of the past after the event id, which the reader saw last.
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

// follow publishes what other replicas write to the log, until stop is closed. It closes ready once it
// misses nothing.
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

// written returns the log entries after an event. If that is no longer there, it returns newer ones,
// at most maxHistory.
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

// filter selects events: each field must have one of its values. A target may be an upstream alone. A
// nil filter passes everything.
type filter map[string][]string

// filters are the valid fields of a filter.
var filters = [...]string{"event", "session", "model", "target", "class", "request", "key", "status", "slower"}

// readFilter reads the filter in a query, or says what is wrong with it.
func readFilter(q url.Values) (f filter, wrong string) {
	for name, values := range q {
		switch {
		case slices.Contains(filters[:], name):
			if (name == "status" || name == "slower") && slices.ContainsFunc(values, func(v string) bool { _, err := strconv.Atoi(v); return err != nil }) {
				return nil, name + " must be a number."
			}
			if f == nil {
				f = filter{}
			}
			f[name] = values
		case name != "last" && name != "requests":
			return nil, "Events are filtered by " + strings.Join(filters[:len(filters)-1], ", ") + " and " + filters[len(filters)-1] + "."
		}
	}
	return f, ""
}

// passes reports whether an event, as JSON, passes the filter.
func (f filter) passes(data []byte) bool {
	for field, values := range f {
		got := gjson.GetBytes(data, field).String()
		if !slices.ContainsFunc(values, func(want string) bool {
			switch {
			case field == "slower": // duration in milliseconds
				least, err := strconv.Atoi(want)
				return err == nil && gjson.GetBytes(data, "duration_ms").Int() >= int64(least)
			case field == "request" && got != want: // or an upstream's request id
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
