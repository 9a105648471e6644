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

// plain sets only what is required: two upstreams, and models with one fallback each.
const plain = `
listen: 127.0.0.1:0
upstreams:
  default: {url: "UP/v1", passthrough: true, PROFILE}
  backup: {url: "BACKUP/v1", passthrough: true}
models:
`

// The limits for a request with one fault and a fallback: for a stream, and for an answer that arrives all at once.
const (
	promised      = 45 * time.Second
	promisedWhole = 80 * time.Second
)

const backupText = "The fallback's own answer, complete."

// backup starts a healthy upstream whose answers differ from the primary's, as those of a sampling model
// do. If it is asked to repeat its last words and go on, it continues the given text.
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

// textOf returns the text of an answer, streamed or not.
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

// TestDefaults checks that with only URLs, names and one fallback configured, each fault ends in one
// complete answer in time. The faults run in parallel and in real time, because the test is about the
// default time limits.
func TestDefaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as the default time limits")
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
				config += moreModels(name, "default m@"+script, "backup m")
			}
			config += strings.Replace(moreModels("refused prefill", "default m@cut=0.5/prefill=refuse", "backup m"),
				`upstream: default,`, `upstream: default, prefill: assistant,`, 1)
			faulty := launch(t, config)
			// A gateway of its own, because the other faults use up the budget of parallel attempts.
			busy := launch(t, base+moreModels("outage under traffic", "default m@hang,for=300s", "backup m"))
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
