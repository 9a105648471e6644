package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// plain is a configuration in which nobody has set anything but what must be: two
// upstreams and a model with one fallback.
const plain = `
listen: 127.0.0.1:0
upstreams:
  default: {url: "UP/v1", passthrough: true, PROFILE}
  backup: {url: "BACKUP/v1", passthrough: true}
models:
`

// promised is how long a request may take that meets one fault and has a fallback: a stream, and an answer of
// which nothing is seen before its end.
const (
	promised      = 45 * time.Second
	promisedWhole = 80 * time.Second
)

const backupText = "The fallback's own answer, complete."

// backup is an upstream that is well, and a model that samples: an answer from
// its beginning is its own. Asked to repeat its last words and go on, it does.
func backup(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		text := backupText
		messages := gjson.GetBytes(body, "messages").Array()
		if n := len(messages); n > 1 && messages[n-2].Get("role").Str == "assistant" {
			sent, asked := messages[n-2].Get("content").Str, messages[n-1].Get("content").Str
			whole := upstreamtest.TextFor(gjson.GetBytes(body, "model").Str)
			if rest, ok := strings.CutPrefix(whole, sent); ok {
				text = asked[strings.LastIndex(asked, "\n\n")+2:] + rest
			}
		}
		quoted, err := json.Marshal(text)
		if err != nil {
			return
		}
		usage := `"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}`
		if !gjson.GetBytes(body, "stream").Bool() {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"b","object":"chat.completion","created":1,"model":"b","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],%s}`, quoted, usage)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunk := `data: {"id":"b","object":"chat.completion.chunk","created":1,"model":"b","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}` + "\n\n"
		fmt.Fprintf(w, chunk+chunk+chunk+"data: [DONE]\n\n", `{"role":"assistant"}`, "null", `{"content":`+string(quoted)+`}`, "null", "{}", `"stop"`)
	}))
	t.Cleanup(s.Close)
	return s
}

// textOf is the text of an answer, streamed or not.
func textOf(r reply) string {
	if !strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		return gjson.GetBytes(r.body, "choices.0.message.content").Str
	}
	var b strings.Builder
	for line := range strings.Lines(string(r.body)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			b.WriteString(gjson.Get(data, "choices.0.delta.content").Str)
		}
	}
	return b.String()
}

// TestDefaults: with nothing configured but URLs, names and one fallback, each
// fault ends in one complete answer in time. The faults run side by side, in
// real time: their limits are what is tested.
func TestDefaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as the limits that nobody has changed")
	}
	faults := map[string]string{
		"silence":            "hang",
		"headers, silence":   "headers-hang",
		"slow first token":   "first=80s",
		"slow, not streamed": "delay=80s",
		"cut":                "cut=0.5",
		"clean end":          "fin=0.5",
		"error event":        "error-event=0.5",
		"stall":              "stall=0.5",
		"cut chunk":          "half-json",
		"malformed":          "malformed=0.3",
		"overflow":           "ctx=1",
		"outage":             "503",
		"outage with a hint": "503,retry-after=30",
		"overloaded":         "529,retry-after=2",
		"limited":            "429,retry-after=60",
		"quota":              "quota",
		"reset":              "reset",
		"empty":              "role-only/ok",
		"only reasoning":     "reason,empty-answer/ok",
	}
	for _, profile := range []string{"profile: auto", "profile: hosted"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			up, other := upstreamtest.New(upstreamtest.Options{}).Start(t), backup(t)
			base := strings.NewReplacer(`"UP/`, `"`+up.URL()+"/", `"BACKUP/`, `"`+other.URL+"/", "PROFILE", profile).Replace(plain)
			config := base
			for name, script := range faults {
				config += mappedMore(name, "default m@"+script, "backup m")
			}
			config += strings.Replace(mappedMore("refused prefill", "default m@cut=0.5/prefill=refuse", "backup m"),
				`upstream: default,`, `upstream: default, prefill: assistant,`, 1)
			faulty := launch(t, config)
			// By itself: what the others spend on second attempts is not there for it.
			busy := launch(t, base+mappedMore("outage under traffic", "default m@hang,for=300s", "backup m"))
			var wg sync.WaitGroup
			ask := func(g *gateway, name string, stream bool, after time.Duration) {
				wg.Go(func() {
					select {
					case <-time.After(after):
					case <-t.Context().Done():
						return
					}
					r := g.ask(t.Context(), chat(name, stream, ""))
					limit := promised
					if !stream {
						limit = promisedWhole
					}
					if text := textOf(r); !r.ok() || r.took > limit || text != backupText && text != upstreamtest.TextFor("m") {
						t.Errorf("%s, stream %v: %v\ntext %q", name, stream, r, text)
					}
				})
			}
			for name := range faults {
				ask(faulty, name, true, 0)
				ask(faulty, name, false, 0)
			}
			ask(faulty, "refused prefill", true, 0)
			for n := range 40 {
				ask(busy, "outage under traffic", n%2 == 0, time.Duration(n)*500*time.Millisecond)
			}
			wg.Wait()
		})
	}
}
