package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// keepAlive is the interval of comments on a silent stream, well below the idle limits of browsers
	// and proxies.
	keepAlive = 15 * time.Second
	// writeLimit limits one write to a subscriber that does not read.
	writeLimit = 30 * time.Second
)

// Events serves the live event stream, for GET /rebound/events:
//
//	id: ID
//	event: NAME
//	data: {the event as in the log, with its id}
//
// Comments keep it alive. ?last=N begins with the last N eventful events (at most 1,000), the header
// Last-Event-ID with those after that one; ?requests=1 adds the uneventful requests of this replica.
// ?event=, session=, model=, target=, class=, request= (the gateway's id or the upstream's), key= and
// status= pass only events with one of the given values, slower= those that took at least as many
// milliseconds. A reader that is too slow loses events, and gets an event "dropped" with data
// {"dropped":N}. There are at most 32 readers; the stream ends with the request or with
// [Hub.Disconnect]. It does not check access rights.
func (h *Hub) Events() http.Handler { return http.HandlerFunc(h.serveEvents) }

func (h *Hub) serveEvents(w http.ResponseWriter, r *http.Request) {
	ask, ok := readAsk(w, r, 0)
	if !ok {
		return
	}
	here, sub, err := h.feed.subscribe(ask.requests, ask.wanted)
	if err != nil {
		w.Header().Set("Retry-After", "5")
		if errors.Is(err, errFull) {
			refuse(w, http.StatusServiceUnavailable, "too_many_subscribers", "The event stream already has 32 readers. Close one of them.")
		} else {
			refuse(w, http.StatusServiceUnavailable, "draining", "This gateway is stopping. Try again.")
		}
		return
	}
	defer h.feed.unsubscribe(sub)

	header := w.Header()
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would buffer events
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	if sub.following != nil {
		select {
		case <-sub.following:
		case <-r.Context().Done():
			return
		}
	}
	history := h.history(r.Context(), ask, here)
	sub.seen = make(map[eventID]bool, len(history))
	for _, m := range history {
		sub.seen[m.id] = true
	}
	h.stream(newEventWriter(w), r.Context().Done(), history, sub)
}

// History serves past events of all replicas that share a log, for GET /rebound/events/history:
// {"events": [...]}, oldest first. ?last=N (default 100) and the filters are those of [Hub.Events].
// ?requests=1 adds the last thousand uneventful requests of this replica.
func (h *Hub) History() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ask, ok := readAsk(w, r, usualHistory)
		if !ok {
			return
		}
		list := h.history(r.Context(), ask, h.feed.lately())
		if ask.requests {
			list = append(list, h.latest.messages(h.replica, ask.wanted)...)
			slices.SortStableFunc(list, func(a, b message) int { return strings.Compare(string(a.id), string(b.id)) })
			list = list[max(0, len(list)-ask.last):]
		}
		events := []json.RawMessage{}
		for _, m := range list {
			events = append(events, m.data)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(map[string]any{"events": events}) // the reader may have left
	})
}

// ask holds the parameters of a request for events.
type ask struct {
	last     int
	after    eventID // empty: the latest ones
	requests bool
	wanted   filter
}

// readAsk reads a request for events, or refuses it. usual is the default number of past events.
func readAsk(w http.ResponseWriter, r *http.Request, usual int) (a ask, ok bool) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "Events are read with GET.")
		return a, false
	}
	q := r.URL.Query()
	a.last = usual
	if v := q.Get("last"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > maxHistory {
			refuse(w, http.StatusBadRequest, "invalid_last", "last must be a number of events, from 0 to 1000.")
			return a, false
		}
		a.last = n
	}
	if v := q.Get("requests"); v != "" {
		b, err := strconv.ParseBool(v)
		if err != nil {
			refuse(w, http.StatusBadRequest, "invalid_requests", "requests must be 0 or 1.")
			return a, false
		}
		a.requests = b
	}
	var wrong string
	if a.wanted, wrong = readFilter(q); wrong != "" {
		refuse(w, http.StatusBadRequest, "invalid_filter", wrong)
		return a, false
	}
	if id := r.Header.Get("Last-Event-ID"); isEventID.MatchString(id) {
		a.after = eventID(id)
	}
	return a, true
}

// history returns the part of the past that a reader asks for. here has the kept messages of this
// replica.
func (h *Hub) history(ctx context.Context, a ask, here []message) []message {
	n := a.last
	if a.after != "" {
		n = maxHistory
	}
	if n == 0 {
		return nil
	}
	read := n
	if a.wanted != nil {
		read = searched
	}
	list := past(h.fromLog(ctx, read), here)
	if a.after != "" {
		list = since(list, a.after)
	}
	list = slices.DeleteFunc(list, func(m message) bool { return !a.wanted.passes(m.data) })
	if lost := len(list) - n; lost > 0 {
		list = list[lost:]
		if a.after != "" {
			list[0].lost = lost
		}
	}
	return list
}

// stream writes events until the client leaves, the hub disconnects or a write fails.
func (h *Hub) stream(w *eventWriter, gone <-chan struct{}, history []message, sub *subscriber) {
	defer w.release()
	for _, m := range history {
		w.add(m)
	}
	if !w.flush() {
		return
	}
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case m := <-sub.queue:
			w.addNew(sub, m)
			w.addQueued(sub)
			tick.Reset(keepAlive)
		case <-tick.C:
			if n := h.feed.missed(sub); n > 0 {
				w.dropped(n)
			} else {
				w.comment()
			}
		case <-h.feed.done:
			w.addQueued(sub)
			w.flush()
			return
		case <-gone:
			return
		}
		if !w.flush() {
			return
		}
	}
}

// eventWriter collects events and writes them together.
type eventWriter struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf bytes.Buffer
}

func newEventWriter(w http.ResponseWriter) *eventWriter {
	return &eventWriter{w: w, rc: http.NewResponseController(w)}
}

func (w *eventWriter) add(m message) {
	if m.lost > 0 {
		w.dropped(m.lost)
	}
	fmt.Fprintf(&w.buf, "id: %s\nevent: %s\ndata: %s\n\n", m.id, m.name, m.data)
}

// addNew adds an event unless the reader already got it as history.
func (w *eventWriter) addNew(sub *subscriber, m message) {
	if !sub.seen[m.id] {
		w.add(m)
	}
}

// addQueued adds all queued events, so that a burst is one write.
func (w *eventWriter) addQueued(sub *subscriber) {
	for range subscriberQueue {
		select {
		case m := <-sub.queue:
			w.addNew(sub, m)
		default:
			return
		}
	}
}

func (w *eventWriter) dropped(n int) {
	fmt.Fprintf(&w.buf, "event: dropped\ndata: {\"dropped\":%d}\n\n", n)
}

// comment adds one line: an empty line after it would be an event for some readers.
func (w *eventWriter) comment() { w.buf.WriteString(": keep-alive\n") }

// flush sends what was added; it returns false if the client is gone.
func (w *eventWriter) flush() bool {
	_ = w.rc.SetWriteDeadline(time.Now().Add(writeLimit)) // not every connection has one
	_, err := w.w.Write(w.buf.Bytes())
	w.buf.Reset()
	return err == nil && w.rc.Flush() == nil
}

// release removes the write deadline, because the connection may serve further requests.
func (w *eventWriter) release() { _ = w.rc.SetWriteDeadline(time.Time{}) }

// refuse answers with OpenAI's error envelope, like all errors of the gateway. The texts must not need
// escaping.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"error":{"message":"` + message + `","type":"rebound_error","param":null,"code":"` + code + `"}}`))
}
