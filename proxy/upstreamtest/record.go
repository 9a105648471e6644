package upstreamtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// maxLiteralKey is the length up to which a credential is recorded literally: those in
// tests are shorter, real ones are longer.
const maxLiteralKey = 24

// Record describes one request and its answer.
type Record struct {
	// N counts the requests since the start or the last reset, from 1. It is part of
	// the answer's id, chatcmpl-mock-N, and of its X-Request-Id, req_mock_N.
	N      int64     `json:"n"`
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
	// Model is the requested model with its script.
	Model string `json:"model"`
	// Key is the credential as KeyLabel returns it: up to 24 bytes literally, else a
	// short hash.
	Key string `json:"key"`
	// Header has the request's headers except those with credentials.
	Header http.Header `json:"header"`
	Body   string      `json:"body"`
	Stream bool        `json:"stream"`
	// Step is the step of the script that the answer followed, as written.
	Step string `json:"step"`
	// Status is the status that was sent; 0 if none was.
	Status int `json:"status"`
	// Chunks is how many events of a stream were sent.
	Chunks int `json:"chunks"`
	// Cancelled means that the client left before its answer was complete;
	// CancelledAt is when the mock noticed.
	Cancelled   bool      `json:"cancelled"`
	CancelledAt time.Time `json:"cancelled_at,omitzero"`
	// Finished is when the answer ended; zero before.
	Finished time.Time `json:"finished,omitzero"`
}

// MarshalJSON encodes a JSON body as JSON and any other as a string.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record
	body := json.RawMessage(r.Body)
	if !json.Valid(body) {
		var err error
		if body, err = json.Marshal(r.Body); err != nil {
			return nil, err
		}
	}
	return json.Marshal(struct {
		plain
		Body json.RawMessage `json:"body"`
	}{plain(r), body})
}

// KeyLabel returns a credential as records show it: literal or hashed.
func KeyLabel(credential string) string {
	if len(credential) <= maxLiteralKey {
		return credential
	}
	sum := sha256.Sum256([]byte(credential))
	return "sha256:" + hex.EncodeToString(sum[:6])
}

// Stats are totals since the start or the last reset.
type Stats struct {
	Requests int64 `json:"requests"`
	Active   int64 `json:"active"`
	// Connections counts the connections that were accepted by Listen and Start.
	Connections int64 `json:"connections"`
}

// recorder keeps the latest records and the totals. It is safe for concurrent
// use.
type recorder struct {
	keep      int   // records
	keepBytes int64 // of their bodies

	mu      sync.Mutex
	n       int64
	recs    []*Record
	bytes   int64
	stats   Stats
	changed chan struct{} // closed at the next begin or end; nil while nobody waits
}

// begin numbers a request and records it.
func (rc *recorder) begin(rec *Record) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.n++
	rec.N = rc.n
	rc.stats.Requests++
	rc.stats.Active++
	if rc.keep > 0 {
		rc.recs = append(rc.recs, rec)
		rc.bytes += int64(len(rec.Body))
		for len(rc.recs) > rc.keep || rc.bytes > rc.keepBytes && len(rc.recs) > 1 {
			rc.bytes -= int64(len(rc.recs[0].Body))
			rc.recs[0] = nil
			rc.recs = rc.recs[1:]
		}
	}
	rc.notifyLocked()
}

// end records the outcome of a request.
func (rc *recorder) end(rec *Record, status, chunks int, cancelled bool) {
	now := time.Now()
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rec.Status, rec.Chunks, rec.Finished = status, chunks, now
	rc.stats.Active--
	if cancelled {
		rec.Cancelled, rec.CancelledAt = true, now
	}
	rc.notifyLocked()
}

// list copies the records of a model, or all for the empty name.
func (rc *recorder) list(model string) []Record {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return rc.listLocked(model)
}

func (rc *recorder) listLocked(model string) []Record {
	out := []Record{}
	for _, r := range rc.recs {
		if model == "" || r.Model == model || nameOf(r.Model) == model {
			c := *r
			c.Header = withoutCredentials(r.Header)
			out = append(out, c)
		}
	}
	return out
}

// await returns the records of a model once enough reports true for them.
func (rc *recorder) await(ctx context.Context, model string, enough func([]Record) bool) ([]Record, error) {
	for {
		rc.mu.Lock()
		recs := rc.listLocked(model)
		if rc.changed == nil {
			rc.changed = make(chan struct{})
		}
		changed := rc.changed
		rc.mu.Unlock()
		if enough(recs) {
			return recs, nil
		}
		select {
		case <-ctx.Done():
			return recs, ctx.Err()
		case <-changed:
		}
	}
}

// notifyLocked wakes the waiting await calls.
func (rc *recorder) notifyLocked() {
	if rc.changed != nil {
		close(rc.changed)
		rc.changed = nil
	}
}

// snapshot returns the totals.
func (rc *recorder) snapshot() Stats {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return rc.stats
}

// reset drops everything except the count of active requests.
func (rc *recorder) reset() {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.n, rc.recs, rc.bytes = 0, nil, 0
	rc.stats = Stats{Active: rc.stats.Active}
}

// withoutCredentials returns a copy of the headers without those with credentials.
func withoutCredentials(h http.Header) http.Header {
	out := h.Clone()
	for _, name := range [...]string{"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Proxy-Authorization", "Cookie"} {
		out.Del(name)
	}
	return out
}
