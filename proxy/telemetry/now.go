package telemetry

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A sample of the counters is kept every sampleEvery, so that an operator can see recent history
// without Prometheus.
const (
	sampleEvery = 5 * time.Second
	maxSamples  = 180 // a quarter of an hour
)

// sample is the state of this replica's counters, without zeros.
type sample struct {
	Time     time.Time          `json:"time"`
	InFlight float64            `json:"in_flight"`
	Requests map[string]float64 `json:"requests"` // by outcome
	// Attempts are by upstream, and by the class of their failure, or ok.
	Attempts   map[string]map[string]float64 `json:"attempts"`
	Strategies map[string]float64            `json:"strategies"` // successful ones
	Tokens     map[string]float64            `json:"tokens"`     // of answers, by kind
	Extra      map[string]float64            `json:"extra"`      // used by recovery beyond answers, by kind
	Compressed map[string]float64            `json:"compressed"` // before and after
	Dropped    map[string]float64            `json:"dropped"`    // events, by where
	TTFB       []float64                     `json:"ttfb"`       // number of streamed answers up to each bound, and in total
}

// samples keeps the latest samples, as JSON. Safe for concurrent use.
type samples struct {
	mu   sync.Mutex
	list []json.RawMessage
}

func (s *samples) add(one json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = appendBounded(s.list, one, maxSamples)
}

func (s *samples) newest(n int) []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]json.RawMessage{}, s.list[max(0, len(s.list)-n):]...)
}

// look takes a sample.
func (h *Hub) look() json.RawMessage {
	m := h.metrics
	s := sample{Time: time.Now().UTC(), InFlight: float64(m.inFlight.Load()), Requests: m.requests.sums("outcome"), Attempts: map[string]map[string]float64{},
		Strategies: map[string]float64{}, Tokens: m.tokens.sums("kind"), Extra: m.extra.sums("kind"), Compressed: m.compressed.sums("when"),
		Dropped: m.dropped.sums("where"), TTFB: make([]float64, len(ttfbBuckets)+1)}
	m.attempts.each(func(l [maxLabels]string, n *series) {
		if s.Attempts[l[0]] == nil {
			s.Attempts[l[0]] = map[string]float64{}
		}
		if n.sum > 0 {
			s.Attempts[l[0]][l[1]] = n.sum
		}
	})
	m.recoveries.each(func(l [maxLabels]string, n *series) {
		if l[1] == "success" && n.sum > 0 {
			s.Strategies[l[0]] = n.sum
		}
	})
	m.ttfb.each(func(_ [maxLabels]string, n *series) {
		for i, upTo := range n.cumulative() {
			s.TTFB[i] += float64(upTo)
		}
	})
	b, _ := json.Marshal(s) // numbers and strings always marshal
	return b
}

// Now serves the current counters of this replica, for GET /rebound/now. ?series=N adds the last N
// samples (at most 180, one every five seconds), oldest first.
func (h *Hub) Now() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := 0, error(nil)
		if v := r.URL.Query().Get("series"); v != "" {
			n, err = strconv.Atoi(v)
		}
		if err != nil || n < 0 || n > maxSamples {
			refuse(w, http.StatusBadRequest, "invalid_series", "series must be a number of samples, from 0 to 180.")
			return
		}
		stands := h.metrics.stands()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(map[string]any{ // the reader may have left
			"version": h.version, "replica": h.replica, "started": h.started.UTC(), "ttfb_bounds": ttfbBuckets, "now": h.look(), "series": h.samples.newest(n),
			"trouble": append([]string{}, stands.Trouble...), "replicas": stands.Replicas,
		})
	})
}
