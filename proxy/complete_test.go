package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// ready lets every target be asked, and keeps how that ended.
type ready struct {
	asked    []recovery.Target
	outcomes []recovery.Outcome
}

func (r *ready) Check(recovery.Target) recovery.Status { return recovery.Status{Ready: true} }
func (r *ready) Begin(t recovery.Target, _ time.Time, _, _ bool) (recovery.Ticket, recovery.Status) {
	r.asked = append(r.asked, t)
	return recovery.Ticket{Place: r, Target: t}, recovery.Status{Ready: true}
}
func (r *ready) For(string) recovery.Health { return r }

func (r *ready) Done(_ recovery.Ticket, o recovery.Outcome) { r.outcomes = append(r.outcomes, o) }

// ignorant remembers nothing, and classifies nothing.
type ignorant struct{}

func (ignorant) Edits(recovery.Target) []recovery.Edit          { return nil }
func (ignorant) Window(recovery.Target) int                     { return 0 }
func (ignorant) Learn(recovery.Target, []recovery.Edit, string) {}
func (ignorant) Forget(recovery.Target)                         {}
func (ignorant) Classify(recovery.Evidence) recovery.Diagnosis  { return recovery.Diagnosis{} }

// completing is a sender whose extra calls go to these upstreams.
func completing(t *testing.T, h recovery.Health, upstreams map[string]upstream.Config) *sender {
	t.Helper()
	body := recoverytest.Parse(t, `{"model":"m","messages":[]}`, transcript.Chat)
	w := wires[transcript.Chat]
	s := &sender{x: &recovery.Exchange{Request: recovery.Request{Body: body}}, wire: &w, header: http.Header{"Authorization": {"Bearer sk-client"}}}
	s.core = &Core{Upstreams: map[string]*upstream.Upstream{}, Classifier: ignorant{}, Engine: &recovery.Engine{Health: h, Knowledge: ignorant{}}}
	for name, c := range upstreams {
		u, err := upstream.New(name, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(u.Close)
		s.core.Upstreams[name] = u
	}
	return s
}

// TestCompletionCredential: a summariser gets a key of its upstream's own where
// it has keys, the client's credential where it takes that, and else none.
func TestCompletionCredential(t *testing.T) {
	heard := make(chan string, 1)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard <- r.Header.Get("Authorization") + r.Header.Get("Api-Key")
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"So."},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}`)
	}))
	defer up.Close()
	config := func(change func(*upstream.Config)) upstream.Config {
		c := upstream.Defaults()
		c.URL = up.URL
		change(&c)
		return c
	}
	keys := []upstream.Key{{Name: "one", Value: "sk-one"}, {Name: "two", Value: "sk-two"}}
	h := &ready{}
	s := completing(t, h, map[string]upstream.Config{
		"own":    config(func(c *upstream.Config) { c.Keys = keys }),
		"azure":  config(func(c *upstream.Config) { c.Keys, c.AuthHeader = keys[1:], "api-key" }),
		"passes": config(func(c *upstream.Config) { c.Passthrough = true }),
		"open":   config(func(*upstream.Config) {}),
	})
	for _, c := range []struct{ upstream, key, asked, credential string }{
		{"own", "", "one", "Bearer sk-one"}, {"own", "two", "two", "Bearer sk-two"}, {"azure", "", "two", "sk-two"},
		{"passes", "", "", "Bearer sk-client"}, {"open", "", "", ""},
	} {
		text, used, err := s.Complete(t.Context(), recovery.Prompt{User: "x", MaxOutput: 9, Target: recovery.Target{Upstream: c.upstream, Model: "m", Key: c.key}})
		if err != nil || text != "So." || used.Input != 3 {
			t.Errorf("%s: %q, %+v, %v", c.upstream, text, used, err)
		}
		if got := <-heard; got != c.credential {
			t.Errorf("%s/%s: sent %q, want %q", c.upstream, c.key, got, c.credential)
		}
		if last := len(h.asked) - 1; h.asked[last].Key != c.asked || h.outcomes[last].Client != (c.asked == "") || !h.outcomes[last].Success {
			t.Errorf("%s/%s: asked %s, %+v", c.upstream, c.key, h.asked[last], h.outcomes[last])
		}
	}
	if _, _, err := s.Complete(t.Context(), recovery.Prompt{Target: recovery.Target{Upstream: "gone", Model: "m"}}); err == nil {
		t.Error("an upstream that is not configured was asked")
	}
}

// TestCompletionEnds: a summariser that never answers costs a minute, or what is
// left of the request's time, and is not blamed.
func TestCompletionEnds(t *testing.T) {
	for _, c := range []struct{ left, want time.Duration }{{time.Hour, time.Minute}, {10 * time.Second, 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			silent := upstream.Defaults()
			silent.URL = "http://summariser.test/v1"
			silent.DialContext = func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
				return ours, nil
			}
			h := &ready{}
			s := completing(t, h, map[string]upstream.Config{"a": silent})
			ctx, cancel := context.WithTimeout(t.Context(), c.left)
			defer cancel()
			began := time.Now()
			_, _, err := s.Complete(ctx, recovery.Prompt{User: "x", MaxOutput: 9, Target: recovery.Target{Upstream: "a", Model: "m"}})
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != c.want {
				t.Errorf("%v after %v, want %v", err, took, c.want)
			}
			if len(h.outcomes) != 1 || h.outcomes[0] != (recovery.Outcome{}) {
				t.Errorf("it was blamed: %+v", h.outcomes)
			}
		})
	}
}

// knowing knows the edits of one target.
type knowing struct {
	ignorant
	target recovery.Target
	edits  []recovery.Edit
}

func (k knowing) Edits(t recovery.Target) []recovery.Edit {
	if t != k.target {
		return nil
	}
	return k.edits
}

// TestCompletionBetas: the gateway's own requests go without the client's betas that their target is known to refuse.
func TestCompletionBetas(t *testing.T) {
	heard := make(chan string, 1)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard <- r.Header.Get(betasHeader)
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"So."},"finish_reason":"stop"}]}`)
	}))
	defer up.Close()
	c := upstream.Defaults()
	c.URL, c.Passthrough = up.URL, true
	s := completing(t, &ready{}, map[string]upstream.Config{"knows": c, "other": c})
	s.x.Betas = recovery.Betas{"a-2025", "b-2025"}
	s.header[betasHeader] = []string{"a-2025,b-2025"}
	s.core.Engine.Knowledge = knowing{target: s.x.Known(recovery.Target{Upstream: "knows", Model: "m"}), edits: []recovery.Edit{{Conform: recovery.ConformBetas, Field: "b-2025"}}}
	for name, want := range map[string]string{"knows": "a-2025", "other": "a-2025,b-2025"} {
		if _, _, err := s.Complete(t.Context(), recovery.Prompt{User: "x", MaxOutput: 9, Target: recovery.Target{Upstream: name, Model: "m"}}); err != nil {
			t.Fatal(err)
		}
		if got := <-heard; got != want {
			t.Errorf("%s gets the betas %q, want %q", name, got, want)
		}
	}
}
