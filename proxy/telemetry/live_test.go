package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// reader is a client of the live stream that a test can hold back.
type reader struct {
	buffer
	header http.Header
	status int
	hold   chan struct{} // when set, each Write takes one value
	fail   bool
}

func (r *reader) Header() http.Header { return r.header }
func (r *reader) WriteHeader(s int)   { r.status = s }
func (r *reader) FlushError() error   { return nil }
func (r *reader) Write(p []byte) (int, error) {
	if r.hold != nil {
		<-r.hold
	}
	if r.fail {
		return 0, errors.New("broken pipe")
	}
	return r.buffer.Write(p)
}

// listen serves one reader; the returned function ends it and waits.
func listen(h *Hub, r *reader, query string) (stop func()) {
	r.header = http.Header{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Events().ServeHTTP(r, httptest.NewRequest("GET", "/rebound/events"+query, nil).WithContext(ctx))
	}()
	return func() { cancel(); <-done }
}

func numbered(i int) recovery.Event {
	return recovery.Event{Name: recovery.EventRecoveryAttempt, Time: at, Attempt: i}
}

// line is the event that this hub numbered so.
func line(h *Hub, i int) string {
	id := fmt.Sprintf("%d-%s-%d", at.UnixMilli(), h.replica, i)
	return fmt.Sprintf("id: "+id+"\nevent: error_recovery_attempt\ndata: {\"id\":\""+id+"\",\"time\":\"2026-03-01T02:00:00.123456789Z\",\"level\":\"INFO\",\"event\":\"error_recovery_attempt\",\"attempt\":%d}\n\n", i)
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Defaults(), io.Discard)
		for i := 1; i <= 3; i++ {
			h.Observe(numbered(i))
		}
		synctest.Wait()
		var plain, all reader
		stop := listen(h, &plain, "?last=2")
		stopAll := listen(h, &all, "?requests=1")
		synctest.Wait()
		h.Observe(numbered(4))
		h.Observe(healthy())
		synctest.Wait()
		if want := line(h, 2) + line(h, 3) + line(h, 4); plain.String() != want {
			t.Errorf("got %s\nwant %s", plain.String(), want)
		}
		if s := all.String(); !strings.HasPrefix(s, line(h, 4)+"id: ") || !strings.Contains(s, "\nevent: request_done\ndata: {") || strings.Contains(s, line(h, 3)) {
			t.Errorf("with all requests: %s", s)
		}
		if plain.status != 200 || plain.header.Get("Content-Type") != "text/event-stream; charset=utf-8" || plain.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v", plain.status, plain.header)
		}

		n := len(plain.String())
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if got := plain.String()[n:]; got != ": keep-alive\n: keep-alive\n" {
			t.Errorf("while nothing happened: %q", got)
		}
		stop()
		stopAll()
		if h.feed.wantsAll() || len(h.feed.subs) != 0 {
			t.Error("readers that left are remembered")
		}
	})
}

// The history has no gap and no repetition where it meets the present, and
// begins with the oldest once the ring is full.
func TestRing(t *testing.T) {
	f := newFeed(newHub(t, Defaults(), io.Discard).metrics.drop("subscriber"))
	for i := range 2500 {
		f.publish(message{name: fmt.Sprint(i)}, forAll)
	}
	history, sub, err := f.subscribe(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.publish(message{name: "2500"}, forAll)
	history = append(history, <-sub.queue)
	if len(history) != ringSize+1 {
		t.Fatalf("%d messages", len(history))
	}
	for i, m := range history {
		if m.name != fmt.Sprint(1500+i) {
			t.Fatalf("message %d is %s", i, m.name)
		}
	}
}

func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Defaults(), io.Discard)
		slow := reader{hold: make(chan struct{})}
		var quick reader
		stopQuick := listen(h, &quick, "")
		stop := listen(h, &slow, "")
		slow.hold <- struct{}{} // the head
		synctest.Wait()
		h.Observe(numbered(1)) // taken out of the queue, and stuck
		synctest.Wait()
		for i := 2; i <= 300; i++ {
			h.Observe(numbered(i))
			synctest.Wait()
		}
		if !strings.HasSuffix(quick.String(), line(h, 299)+line(h, 300)) {
			t.Error("one slow reader holds up the others")
		}
		const lost = 299 - subscriberQueue
		if want := fmt.Sprintf(`rebound_events_dropped_total{where="subscriber"} %d`, lost); !strings.Contains(scrape(t, h), want) {
			t.Errorf("want %s", want)
		}
		close(slow.hold)
		synctest.Wait()
		h.Observe(numbered(301))
		synctest.Wait()
		note := fmt.Sprintf("event: dropped\ndata: {\"dropped\":%d}\n\n", lost)
		if !strings.HasSuffix(slow.String(), line(h, 1+subscriberQueue)+note+line(h, 301)) {
			t.Errorf("ends with %q", slow.String()[max(0, len(slow.String())-500):])
		}
		stop()
		stopQuick()
	})
}

// Where nothing follows, a reader still learns that it missed something.
func TestSlowReaderIsToldInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Defaults(), io.Discard)
		slow := reader{hold: make(chan struct{})}
		stop := listen(h, &slow, "")
		slow.hold <- struct{}{}
		synctest.Wait()
		for i := range subscriberQueue + 2 {
			h.Observe(numbered(i + 1))
			synctest.Wait()
		}
		close(slow.hold)
		time.Sleep(keepAlive + time.Second)
		synctest.Wait()
		if !strings.HasSuffix(slow.String(), "event: dropped\ndata: {\"dropped\":1}\n\n") {
			t.Errorf("ends with %q", slow.String()[max(0, len(slow.String())-300):])
		}
		stop()
	})
}

func TestTooManyReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Defaults(), io.Discard)
		var stops []func()
		for range maxSubscribers {
			stops = append(stops, listen(h, &reader{}, ""))
		}
		synctest.Wait()
		w := httptest.NewRecorder()
		h.Events().ServeHTTP(w, httptest.NewRequest("GET", "/rebound/events", nil))
		if w.Code != 503 || !strings.Contains(w.Body.String(), `"code":"too_many_subscribers"`) || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		stops[0]()
		stops[0] = listen(h, &reader{}, "")
		for _, stop := range stops {
			stop()
		}
		if len(h.feed.subs) != 0 {
			t.Errorf("%d readers are left", len(h.feed.subs))
		}
	})
}

func TestEventsRefuses(t *testing.T) {
	h := newHub(t, Defaults(), io.Discard)
	for _, tt := range []struct {
		method, query string
		status        int
	}{
		{"POST", "", 405}, {"HEAD", "", 405}, {"GET", "?last=-1", 400}, {"GET", "?last=x", 400}, {"GET", "?last=99999999999999999999", 400}, {"GET", "?requests=maybe", 400},
		{"GET", "?last=1001", 400}, {"GET", "?clas=rate_limit", 400}, {"GET", "?status=5xx", 400}, {"GET", "?slower=2s", 400},
	} {
		w := httptest.NewRecorder()
		h.Events().ServeHTTP(w, httptest.NewRequest(tt.method, "/rebound/events"+tt.query, nil))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), `"type":"rebound_error"`) {
			t.Errorf("%s %s: %d %s", tt.method, tt.query, w.Code, w.Body)
		}
	}
	h.Disconnect()
	w := httptest.NewRecorder()
	h.Events().ServeHTTP(w, httptest.NewRequest("GET", "/rebound/events", nil))
	if w.Code != 503 || !strings.Contains(w.Body.String(), `"code":"draining"`) {
		t.Errorf("after the end: %d %s", w.Code, w.Body)
	}
}

func TestBrokenReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Defaults(), io.Discard)
		stop := listen(h, &reader{fail: true}, "")
		synctest.Wait()
		if len(h.feed.subs) != 0 {
			t.Error("a reader that is gone is remembered")
		}
		stop()
	})
}
