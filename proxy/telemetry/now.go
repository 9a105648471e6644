package telemetry

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// A sample of the counters is kept every sampleEvery, so that who looks after
// something has happened sees it, without a Prometheus of his own.
const (
	sampleEvery = 5 * time.Second
	maxSamples  = 180 // a quarter of an hour
)

// sample is where the counters of this replica stand; what is zero is left out.
type sample struct {
	Time     time.Time          `json:"time"`
	InFlight float64            `json:"in_flight"`
	Requests map[string]float64 `json:"requests"` // by outcome
	// Attempts are by upstream, and by the class of their failure, or ok.
	Attempts   map[string]map[string]float64 `json:"attempts"`
	Strategies map[string]float64            `json:"strategies"` // that saved a request
	Tokens     map[string]float64            `json:"tokens"`     // of answers, by kind
	Extra      map[string]float64            `json:"extra"`      // spent beyond them, by kind
	Compressed map[string]float64            `json:"compressed"` // before and after
	Dropped    map[string]float64            `json:"dropped"`    // events, by where
	TTFB       []float64                     `json:"ttfb"`       // streamed answers up to each bound, and all
}

// samples are the last ones, as JSON. Safe for concurrent use.
type samples struct {
	mu   sync.Mutex
	list []json.RawMessage
}

func (s *samples) add(one json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, one)
	if len(s.list) > maxSamples {
		s.list[0] = nil // append moves the rest to a new array now and then
		s.list = s.list[1:]
	}
}

func (s *samples) newest(n int) []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]json.RawMessage{}, s.list[max(0, len(s.list)-n):]...)
}

// look takes a sample.
func (h *Hub) look() json.RawMessage {
	s := sample{Time: time.Now().UTC(), Requests: map[string]float64{}, Attempts: map[string]map[string]float64{}, Strategies: map[string]float64{}, Tokens: map[string]float64{},
		Extra: map[string]float64{}, Compressed: map[string]float64{}, Dropped: map[string]float64{}, TTFB: make([]float64, len(ttfbBuckets)+1)}
	families, _ := h.registry.Gather() // what can be had of them
	for _, f := range families {
		name, _ := strings.CutPrefix(f.GetName(), "rebound_")
		for _, m := range f.GetMetric() {
			s.add(name, m)
		}
	}
	b, _ := json.Marshal(s) // numbers and names always can be
	return b
}

// add adds one series.
func (s *sample) add(metric string, m *dto.Metric) {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	count := func(to map[string]float64, label string) {
		if n := m.GetCounter().GetValue(); n > 0 {
			to[label] += n
		}
	}
	switch metric {
	case "in_flight":
		s.InFlight = m.GetGauge().GetValue()
	case "requests_total":
		count(s.Requests, labels["outcome"])
	case "attempts_total":
		by := s.Attempts[labels["upstream"]]
		if by == nil {
			by = map[string]float64{}
			s.Attempts[labels["upstream"]] = by
		}
		count(by, labels["class"])
	case "recoveries_total":
		if labels["result"] == "success" {
			count(s.Strategies, labels["strategy"])
		}
	case "tokens_total":
		count(s.Tokens, labels["kind"])
	case "extra_tokens_total":
		count(s.Extra, labels["kind"])
	case "compressed_tokens_total":
		count(s.Compressed, labels["when"])
	case "events_dropped_total":
		count(s.Dropped, labels["where"])
	case "ttfb_seconds":
		for i, b := range m.GetHistogram().GetBucket() {
			if i < len(ttfbBuckets) {
				s.TTFB[i] += float64(b.GetCumulativeCount())
			}
		}
		s.TTFB[len(ttfbBuckets)] += float64(m.GetHistogram().GetSampleCount())
	}
}

// Now serves where this replica's counters stand, for GET /rebound/now. ?series=N
// adds the last N samples (of at most 180, one every five seconds), oldest first.
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
