package app_test

import (
	"context"
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

// failing returns messages whose last result is the n-th failure of the same call.
func failing(n int) string {
	b := `{"role":"user","content":"Build it."}`
	for i := range n {
		b += fmt.Sprintf(`,{"role":"assistant","content":null,"tool_calls":[{"id":"c%[1]d","type":"function","function":{"name":"bash","arguments":"{\"command\":\"make\"}"}}]},{"role":"tool","tool_call_id":"c%[1]d","content":"bash: make: command not found"}`, i)
	}
	return b
}

// Every request with any event has exactly one request_done, whatever the upstream does and however the
// request ends.
func TestEveryRequestEnds(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	g := launch(t, text(up, modelMap("moved", "two dead@503", "default spare")+moreModels("silent", "default quiet@hang", "two spare")+moreModels("unasked", "two dead@503", "default spare")))
	scripts := []string{
		"ok", "429", "429,retry-after-ms=20/ok", "503/ok", "503", "500", "html", "502", "body=empty", "ctx=20", "quota", "unauthorized", "gone", "overloaded/ok", "content-filter",
		"no-param=temperature", "400", "reset/ok", "reset", "close/ok", "hang", "headers-hang", "half-json", "short", "over", "gzip", "cut=0.5", "fin=0.5", "stall=0.5", "error-event=0.5",
		"error-event", "malformed=0.3", "noise=0.3", "no-done", "no-finish", "role-only", "empty", "empty-answer", "tool", "tool,args={", "text-tool", "call=merged", "leak", "finish=length", "unknown-step",
	}
	const tools = `"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object","properties":{"command":{"type":"string"}}}}}],`
	var bodies []string
	for i, s := range scripts {
		for _, stream := range []bool{false, true} {
			bodies = append(bodies, fmt.Sprintf(`{"model":"m%d@%s","stream":%v,"temperature":0.3,"messages":[{"role":"user","content":"Say a few words."}]}`, i, s, stream))
		}
	}
	bodies = append(bodies, chat("silent", true, ""), `{"model":`, `{"model":"m"}`, `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":7}`)
	var all sync.WaitGroup
	for _, mode := range []string{"act", "observe", "annotate", "off"} { // an agent that fails, gets notes, and is stopped
		all.Go(func() {
			for n := 1; n <= 6; n++ {
				header := bearer("sk-client")
				header.Set("X-Rebound-Mode", mode)
				_ = g.do(http.MethodPost, "/v1/chat/completions", fmt.Sprintf(`{"model":"agent-%s",%s"messages":[%s]}`, mode, tools, failing(n)), header)
			}
		})
	}
	all.Wait() // before the faults, which have targets left alone
	for _, model := range []string{"moved", "unasked", "unasked", "unasked", "unasked", "unasked", "unasked"} {
		all.Go(func() { _ = g.ask(t.Context(), chat(model, true, "")) })
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // then clients leave
	defer cancel()
	for _, body := range bodies {
		all.Go(func() { _ = g.ask(ctx, body) })
	}
	all.Wait()
	var history gjson.Result
	read := func() (open []string) {
		history = gjson.Get(g.admin(http.MethodGet, "/rebound/events/history?last=1000", ""), "events")
		done := map[string]int{}
		for _, e := range history.Array() {
			if id := e.Get("request").Str; id != "" {
				done[id] += 0
				if e.Get("event").Str == "request_done" {
					done[id]++
				}
			}
		}
		for id, n := range done {
			if n != 1 {
				open = append(open, fmt.Sprintf("%s: %d times", id, n))
			}
		}
		return open
	}
	var open []string
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		open = read()
		if done := strings.Count(history.Raw, `"request_done"`); len(open) == 0 && done > 60 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%d requests ended, these did not once: %v", done, open)
		}
	}
	for _, want := range []string{"fallback_used", "loop_detected", "guidance_injected", "guidance_outcome", "breaker_opened", "error_recovery_failed"} {
		if !strings.Contains(history.Raw, want) {
			t.Errorf("nothing tells of %s: the test shows less than it should", want)
		}
	}
}

// Every answer and every error has the request's id in a header, so that client and operator can refer to
// the same request.
func TestRequestHeader(t *testing.T) {
	t.Parallel()
	g := launch(t, text(upstreamtest.New(upstreamtest.Options{}).Start(t), "log: {requests: true}"))
	for name, ask := range map[string]func() (*http.Response, error){
		"answer": func() (*http.Response, error) { return g.open(t.Context(), chat("m", false, "")) },
		"stream": func() (*http.Response, error) { return g.open(t.Context(), chat("m", true, "")) },
		"retried": func() (*http.Response, error) {
			return g.open(t.Context(), chat("m@429,retry-after-ms=20/ok", true, ""))
		},
		"error":       func() (*http.Response, error) { return g.open(t.Context(), chat("m@unauthorized", false, "")) },
		"bad request": func() (*http.Response, error) { return g.open(t.Context(), "{") },
		"other path":  func() (*http.Response, error) { return g.client.Get(g.url + "/v1/files") },
	} {
		resp, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		_ = read(resp)
		id := resp.Header.Get("X-Rebound-Request")
		eventually(t, 10*time.Second, name+": the log has "+id, func() bool {
			return len(g.log.lines(t, func(l map[string]any) bool { return l["event"] == "request_done" && l["request"] == id })) == 1
		})
	}
}

// The log distinguishes forwarded answers that are complete, that the upstream cuts, and that the client leaves.
func TestForwardedAnswersThatBreak(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "the beginning")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/v1/files/left/content" {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(up.Close)
	g := launch(t, fmt.Sprintf("listen: 127.0.0.1:0\nupstreams: {default: {url: %q, passthrough: true}}\n", up.URL+"/v1"))
	for path, want := range map[string]struct {
		status float64
		client any
	}{"/v1/files/cut/content": {200, nil}, "/v1/files/left/content": {499, "gone"}} {
		ctx, leave := context.WithCancel(t.Context())
		resp, err := g.send(ctx, http.MethodGet, path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if want.client != nil {
			leave()
		}
		_ = read(resp)
		leave()
		id := resp.Header.Get("X-Rebound-Request")
		eventually(t, 10*time.Second, path+" is logged", func() bool {
			return len(g.log.lines(t, func(l map[string]any) bool {
				return l["request"] == id && l["status"] == want.status && l["client"] == want.client && l["cause"] != nil
			})) == 1
		})
	}
}
