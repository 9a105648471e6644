package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

// sharedLog is the log of several replicas.
type sharedLog struct {
	mu      sync.Mutex
	entries [][]byte
	err     error
}

func (l *sharedLog) append(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, b)
}

func (l *sharedLog) tail(_ context.Context, n int) ([][]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries[max(0, len(l.entries)-n):]), l.err
}

// replica is a hub that writes into the log and reads it.
func (l *sharedLog) replica(t *testing.T) *Hub {
	h := newHub(t, Defaults(), io.Discard)
	h.SetSink(l.append)
	h.SetLog(l.tail, true)
	return h
}

// told are the attempts of the events in a stream or in a list.
func told(s string) (list []int64) {
	for line := range strings.Lines(s) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			list = append(list, gjson.Get(data, "attempt").Int())
		}
	}
	for _, e := range gjson.Get(s, "events").Array() {
		list = append(list, e.Get("attempt").Int())
	}
	return list
}

func ask1(h *Hub, query string) (int, string) {
	w := httptest.NewRecorder()
	h.History().ServeHTTP(w, httptest.NewRequest("GET", "/rebound/events/history"+query, nil))
	return w.Code, w.Body.String()
}

func timed(i int) recovery.Event {
	ev := numbered(i)
	ev.Time = at.Add(time.Duration(i) * time.Millisecond)
	return ev
}

// Readers of any replica get what happens at all of them, once.
func TestReplicasShareEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log sharedLog
		here, there := log.replica(t), log.replica(t)
		there.Observe(timed(1))
		synctest.Wait()
		here.Observe(timed(2))
		synctest.Wait()
		var a, b reader
		stopA, stopB := listen(here, &a, "?last=10"), listen(there, &b, "")
		synctest.Wait()
		there.Observe(timed(3))
		here.Observe(timed(4))
		synctest.Wait()                         // it is in the log before those of the other
		for i := 5; i < 5+2*usualHistory; i++ { // more than one look finds
			there.Observe(timed(i))
		}
		time.Sleep(2 * followEvery)
		synctest.Wait()
		n := 4 + 2*usualHistory
		got := told(a.String())
		slices.Sort(got[2:]) // its own are told at once
		for i := range n {
			if i >= len(got) || got[i] != int64(i+1) {
				t.Fatalf("one replica tells %v, want 1 to %d", got, n)
			}
		}
		if got := told(b.String()); len(got) != n-2 {
			t.Errorf("the other tells %d events, want %d", len(got), n-2)
		}
		if _, body := ask1(here, "?last=3"); !slices.Equal(told(body), []int64{int64(n) - 2, int64(n) - 1, int64(n)}) {
			t.Errorf("the history is %v", told(body))
		}
		stopA()
		stopB()
	})
}

// A reader that comes back gets what it missed, wherever it comes back.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log sharedLog
		here, there := log.replica(t), log.replica(t)
		tell := func(h *Hub, i int) {
			h.Observe(recovery.Event{Name: recovery.EventRecoveryAttempt, Attempt: i})
			synctest.Wait()
			time.Sleep(3 * time.Second)
		}
		tell(here, 1)
		tell(there, 2)
		tell(here, 3)
		last := gjson.GetBytes(log.entries[0], "id").Str
		tell(there, 4)
		resume := func(h *Hub, id, query string) []int64 {
			r := httptest.NewRequest("GET", "/rebound/events"+query, nil)
			r.Header.Set("Last-Event-ID", id)
			ctx, cancel := context.WithCancel(r.Context())
			w := &reader{header: map[string][]string{}}
			done := make(chan struct{})
			go func() { defer close(done); h.Events().ServeHTTP(w, r.WithContext(ctx)) }()
			synctest.Wait()
			cancel()
			<-done
			return told(w.String())
		}
		for _, h := range []*Hub{here, there} {
			if got := resume(h, last, ""); !slices.Equal(got, []int64{2, 3, 4}) {
				t.Errorf("after the first: %v", got)
			}
		}
		if got := resume(here, gjson.GetBytes(log.entries[3], "id").Str, "?last=4"); got != nil {
			t.Errorf("after the last: %v", got)
		}
		if got := resume(here, "nonsense", "?last=1"); !slices.Equal(got, []int64{4}) {
			t.Errorf("after nonsense: %v", got)
		}
		log.entries = log.entries[2:] // it is bounded
		if got := resume(log.replica(t), last, ""); !slices.Equal(got, []int64{3, 4}) {
			t.Errorf("after what is not there any more: %v", got)
		}
		// What another replica saw shortly before may have been written after.
		close := fmt.Sprintf("%013d-%s-9", gjson.GetBytes(log.entries[1], "time").Time().Add(overlap/2).UnixMilli(), here.replica)
		if got := resume(here, close, ""); !slices.Equal(got, []int64{4}) {
			t.Errorf("with the overlap: %v", got)
		}
	})
}

// Whether it is written into the log already or not, an event is told once.
func TestHistoryMeetsTheLog(t *testing.T) {
	var log sharedLog
	h := log.replica(t)
	for i := 1; i <= 5; i++ {
		h.Observe(numbered(i))
	}
	await(t, func() bool { e, _ := log.tail(t.Context(), 9); return len(e) == 5 })
	whole := log.entries
	for written := range 6 {
		log.entries = whole[:written]
		if _, body := ask1(h, "?last=5"); !slices.Equal(told(body), []int64{1, 2, 3, 4, 5}) {
			t.Errorf("with %d in the log: %v", written, told(body))
		}
	}
	log.err = errors.New("store closed")
	if code, body := ask1(h, "?last=2"); code != 200 || !slices.Equal(told(body), []int64{4, 5}) {
		t.Errorf("without the log: %d %s", code, body)
	}
}

// await waits for what another goroutine does soon.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

func TestFilters(t *testing.T) {
	var log sharedLog
	h := log.replica(t)
	for i, ev := range []recovery.Event{
		{Name: recovery.EventRecoveryAttempt, Origin: recovery.Origin{Session: "s1", Model: "coder", Request: "r1"}, Target: recovery.Target{Upstream: "openai", Model: "org/a"}, Class: recovery.RateLimit},
		{Name: recovery.EventRecoveryAttempt, Origin: recovery.Origin{Session: "s2", Model: "coder", Request: "r2"}, Target: recovery.Target{Upstream: "openai", Model: "b"}, Class: recovery.Timeout},
		{Name: recovery.EventRecoverySuccess, Origin: recovery.Origin{Session: "s2", Model: "small", Request: "r2"}, Target: recovery.Target{Upstream: "openai2", Model: "b"}},
	} {
		ev.Attempt = i + 1
		h.Observe(ev)
	}
	await(t, func() bool { e, _ := log.tail(t.Context(), 9); return len(e) == 3 })
	for query, want := range map[string][]int64{
		"":                                    {1, 2, 3},
		"?session=s2":                         {2, 3},
		"?session=s2&last=1":                  {3},
		"?session=s1&session=s2":              {1, 2, 3},
		"?model=coder&class=timeout":          {2},
		"?target=openai":                      {1, 2},
		"?target=openai/org/a":                {1},
		"?event=error_recovery_success":       {3},
		"?request=r2&class=rate_limit":        nil,
		"?request=r1&class=rate_limit&last=0": nil,
	} {
		if code, body := ask1(h, query); code != 200 || !slices.Equal(told(body), want) {
			t.Errorf("%s: %d %v, want %v", query, code, told(body), want)
		}
	}
	var r reader
	stop := listen(h, &r, "?class=timeout&last=9")
	await(t, func() bool { return len(told(r.String())) == 1 })
	h.Observe(recovery.Event{Name: "x", Attempt: 8, Class: recovery.RateLimit})
	h.Observe(recovery.Event{Name: "x", Attempt: 9, Class: recovery.Timeout})
	await(t, func() bool { return slices.Equal(told(r.String()), []int64{2, 9}) })
	stop()
	for _, query := range []string{"?last=1001", "?last=-1", "?clas=x"} {
		if code, body := ask1(h, query); code != 400 || gjson.Get(body, "error.type").Str != "rebound_error" {
			t.Errorf("%s: %d %s", query, code, body)
		}
	}
}

// What others wrote into the log is passed over: nothing of it can add a field or
// an event to the stream.
func TestHostileLog(t *testing.T) {
	id := `"id":"1772330400123-0123abcd-1"`
	log := sharedLog{entries: [][]byte{
		nil, []byte("nonsense"), []byte(`{"event":"x"}`), []byte(`{"id":7,"event":"x"}`), []byte(`{"id":"1-2-3","event":"x"}`), []byte(`[]`),
		[]byte("{" + id + ",\n\"event\":\"x\"}"), []byte("{" + id + `,"event":"x\nid: 9"}`), []byte("{" + id + `}`), []byte("{" + id + `,"event":"X"}`),
		bytes.Repeat([]byte("["), 1<<16), []byte("{" + id + `,"event":"fine","attempt":1}`),
	}}
	if _, body := ask1(log.replica(t), ""); !slices.Equal(told(body), []int64{1}) {
		t.Errorf("told: %s", body)
	}
}
