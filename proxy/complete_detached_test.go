package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rebound-llm/rebound/proxy/quota"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// meters keep what was charged.
type meters struct {
	mu   sync.Mutex
	used map[string]int64
}

func (m *meters) Charge(_ context.Context, charges ...store.Charge) (done store.Charged, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range charges {
		m.used[c.Meter] += c.Amount
		done.Used = append(done.Used, m.used[c.Meter])
	}
	done.Refused = -1
	return done, nil
}

// An extra call that outlives its request reads nothing of its body and headers, which
// others may use by then, and is charged to the key by itself.
func TestDetachedCompletion(t *testing.T) {
	sent := make(chan string, 1)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sent <- string(body) + r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":300,"completion_tokens":40}}`)
	}))
	defer up.Close()
	c := upstream.Defaults()
	c.URL, c.Passthrough = up.URL, true
	s := completing(t, &ready{}, map[string]upstream.Config{"a": c})
	raw := []byte(`{"model":"m","max_completion_tokens":50,"messages":[]}`)
	body := recoverytest.Parse(t, raw, transcript.Chat)
	shared := &meters{used: map[string]int64{}}
	s.core.Limiter = quota.New(shared, quota.Config{Keys: map[string]quota.Limits{"k": {TokensPerDay: 1000, Concurrent: 1}}})
	defer s.core.Limiter.Close()
	s.x.Body, s.x.Key = body, "k"
	detached := s.Detach()
	for i := range raw {
		raw[i] = 'x'
	}
	s.header.Set("Authorization", "Bearer sk-another")
	p := recovery.Prompt{System: "s", User: "u", MaxOutput: 600, Target: recovery.Target{Upstream: "a", Model: "p"}, Form: recovery.Form{Name: "n", Schema: []byte(`{"type":"object"}`), Temperature: 0.2}}
	text, used, err := detached.Complete(t.Context(), p)
	if err != nil || text != "{}" || used.Input != 300 {
		t.Errorf("%q, %+v, %v", text, used, err)
	}
	const want = `{"model":"p","max_completion_tokens":600,"temperature":0.2,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}},` +
		`"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]}Bearer sk-client`
	if got := <-sent; got != want {
		t.Errorf("sent %s", got)
	}
	if _, err := s.core.Limiter.Now(t.Context()); err != nil { // it has told the store then
		t.Fatal(err)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.used["tokens_per_day"] != 340 || shared.used["concurrent"] != 0 {
		t.Errorf("charged: %v", shared.used)
	}
}

// What extra calls and losers of a race report is bounded as answers' reports are.
func TestExtraUsageIsBounded(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":900000,"completion_tokens":40}}`)
	}))
	defer up.Close()
	c := upstream.Defaults()
	c.URL, c.Passthrough = up.URL, true
	s := completing(t, &ready{}, map[string]upstream.Config{"a": c})
	raw := []byte(`{"model":"m","messages":[]}`)
	body := recoverytest.Parse(t, raw, transcript.Chat)
	shared := &meters{used: map[string]int64{}}
	s.core.Limiter = quota.New(shared, quota.Config{Keys: map[string]quota.Limits{"k": {TokensPerDay: 1 << 40}}})
	defer s.core.Limiter.Close()
	s.x.Body, s.x.Key = body, "k"
	if _, used, err := s.Complete(t.Context(), recovery.Prompt{System: "s", User: "u", MaxOutput: 600,
		Target: recovery.Target{Upstream: "a", Model: "p"}}); err != nil || used.Input == 0 || used.Input > 100 {
		t.Errorf("used %+v, %v", used, err)
	}
	charged := func(u recovery.Usage) int64 {
		s.Charge(recovery.Target{Upstream: "a", Model: "p"}, u)
		if _, err := s.core.Limiter.Now(t.Context()); err != nil { // it has told the store then
			t.Fatal(err)
		}
		shared.mu.Lock()
		defer shared.mu.Unlock()
		n := shared.used["tokens_per_day"]
		delete(shared.used, "tokens_per_day")
		return n
	}
	if n := charged(recovery.Usage{Input: 200_000, Output: 100_000}); n != 300_000 {
		t.Errorf("%d of a usage that can be", n)
	}
	if n := charged(recovery.Usage{Input: 900_000, Output: 900_000}); n != int64(len(raw)+3)/4 {
		t.Errorf("%d of one that cannot be", n)
	}
}

// statuses classifies by nothing but the status.
type statuses struct{}

func (statuses) Classify(ev recovery.Evidence) recovery.Diagnosis {
	return recovery.Diagnosis{Signal: recovery.Signal{Status: ev.Status}}
}

// A refusal that has other reasons, such as a client's credential, teaches nothing of
// the target: others are asked for the form again. One that an answer without the form
// has proved does.
func TestFormsAreProved(t *testing.T) {
	var forms atomic.Int32
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		form := strings.Contains(string(body), "json_schema")
		if form {
			forms.Add(1)
		}
		if who := r.Header.Get("Authorization"); who == "Bearer sk-broke" || who == "Bearer sk-plain" && form {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"no"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}`)
	}))
	defer up.Close()
	c := upstream.Defaults()
	c.URL, c.Passthrough = up.URL, true
	s := completing(t, &ready{}, map[string]upstream.Config{"a": c})
	s.core.prepare()
	s.core.Classifier = statuses{}
	p := recovery.Prompt{System: "s", User: "u", Target: recovery.Target{Upstream: "a", Model: "p"}, Form: recovery.Form{Name: "n", Schema: []byte(`{"type":"object"}`)}}
	for i, c := range []struct {
		credential string
		ok         bool
		forms      int32
	}{{"sk-broke", false, 1}, {"sk-client", true, 2}, {"sk-plain", true, 3}, {"sk-client", true, 3}} {
		s.header.Set("Authorization", "Bearer "+c.credential)
		if _, _, err := s.Detach().Complete(t.Context(), p); (err == nil) != c.ok || forms.Load() != c.forms {
			t.Errorf("%d: %v, the form was asked for %d times", i, err, forms.Load())
		}
	}
}
