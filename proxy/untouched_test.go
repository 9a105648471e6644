package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// echoUpstream answers every request with fixed bytes, cut into random
// pieces, and keeps what it was sent.
type echoUpstream struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string][]byte // by the request's X-Case
	header map[string]http.Header
}

type canned struct {
	contentType string
	body        []byte
	seed        uint64
}

func newEchoUpstream(t *testing.T, answers map[string]canned) *echoUpstream {
	u := &echoUpstream{bodies: map[string][]byte{}, header: map[string]http.Header{}}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		name := r.Header.Get("X-Case")
		u.mu.Lock()
		u.bodies[name], u.header[name] = body, r.Header.Clone()
		u.mu.Unlock()
		a := answers[name]
		w.Header().Set("Content-Type", a.contentType)
		w.Header().Set("X-Request-Id", "req-"+name)
		w.Header().Set("X-Ratelimit-Remaining-Tokens", "12")
		w.Header().Set("Openai-Processing-Ms", "7")
		rnd := rand.New(rand.NewPCG(a.seed, 1))
		for rest := a.body; len(rest) > 0; {
			n := min(len(rest), 1+rnd.IntN(40))
			if strings.HasPrefix(a.contentType, "application/json") {
				n = len(rest)
			}
			_, _ = w.Write(rest[:n])
			w.(http.Flusher).Flush()
			rest = rest[n:]
		}
	}))
	t.Cleanup(u.Close)
	return u
}

// TestUntouchedWhenHealthy: request and answer bytes are equal on both sides:
// unknown fields, key order, spacing, number spelling, framing, UTF-8 cut anywhere.
func TestUntouchedWhenHealthy(t *testing.T) {
	chunk := func(delta string) string {
		return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":null}]}` + "\n\n"
	}
	end := `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usage := `data: {"id":"c1","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"x":1e2}}` + "\n\n"
	done := "data: [DONE]\n\n"
	streams := map[string]string{
		"plain":            chunk(`{"role":"assistant","content":""}`) + chunk(`{"content":"Grüße, 世界 🙂"}`) + end + done,
		"null content":     chunk(`{"role":"assistant","content":null}`) + chunk(`{"content":"a"}`) + end + usage + done,
		"odd spacing":      "data:{ \"id\" : \"c1\" ,\"choices\":[ {\"index\": 0, \"delta\" : { \"content\" : \"x\" } , \"finish_reason\" : null } ] }\n\n" + end + done,
		"crlf":             strings.ReplaceAll(chunk(`{"content":"a"}`)+chunk(`{"content":"b"}`)+end+done, "\n", "\r\n"),
		"comments":         ": OPENROUTER PROCESSING\n\n" + chunk(`{"role":"assistant","content":""}`) + ": ping\n\n" + chunk(`{"content":"a"}`) + ": ping\n\n" + end + done,
		"ids and events":   "id: 1\nevent: message\nretry: 100\n" + chunk(`{"content":"a"}`) + end + done,
		"reasoning":        chunk(`{"reasoning_content":"hm"}`) + chunk(`{"reasoning_content":null,"content":"a"}`) + end + done,
		"signed reasoning": chunk(`{"reasoning_details":[{"type":"reasoning.text","signature":"abc"}]}`) + chunk(`{"content":"a"}`) + end + done,
		"tool call":        chunk(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}`) + chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\": 1}"}}]}`) + strings.ReplaceAll(end, "stop", "tool_calls") + done,
		"refusal":          chunk(`{"role":"assistant","content":null,"refusal":""}`) + chunk(`{"refusal":"No."}`) + end + done,
		"annotations":      chunk(`{"content":"a","annotations":[{"type":"url_citation","url_citation":{"url":"https://example.com/?a=1&b=<2>"}}]}`) + end + done,
		"several choices":  chunk(`{"content":"a"}`) + strings.ReplaceAll(chunk(`{"content":"b"}`), `"index":0`, `"index":1`) + end + strings.ReplaceAll(end, `"index":0`, `"index":1`) + done,
		"escapes":          chunk(`{"content":"\u003cb\u003e \ud83d\ude42 \/ \\"}`) + end + done,
		"multi-line data":  "data: {\"id\":\"c1\",\ndata: \"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n" + end + done,
		"length":           chunk(`{"role":"assistant"}`) + strings.ReplaceAll(end, "stop", "length") + done,
	}
	wholes := map[string]string{
		"json":       `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Grüße"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
		"odd json":   "\n { \"choices\" : [ { \"message\" : { \"content\" : \"<a> & \\u00e9\" , \"x\":1.0e+2 } , \"finish_reason\" : \"stop\" } ] , \"unknown\" : {\"z\":[1,2, 3]} } \n",
		"tool json":  `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		"reasoning":  `{"choices":[{"index":0,"message":{"role":"assistant","content":"a","reasoning_content":"long thought"},"finish_reason":"length"}]}`,
		"logprobs":   `{"choices":[{"index":0,"message":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.1,"bytes":[97],"top_logprobs":[]}]},"finish_reason":"stop"}]}`,
		"audio":      `{"choices":[{"index":0,"message":{"content":null,"audio":{"id":"a1","data":"AAAA"}},"finish_reason":"stop"}]}`,
		"null error": `{"error":null,"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}`,
	}
	answers := map[string]canned{}
	for name, s := range streams {
		for seed := range uint64(6) {
			answers[fmt.Sprintf("stream/%s/%d", name, seed)] = canned{"text/event-stream", []byte(s), seed}
		}
	}
	for name, s := range wholes {
		answers["whole/"+name] = canned{"application/json", []byte(s), 0}
	}
	up := newEchoUpstream(t, answers)
	g := startAt(t, up.URL)

	for name, want := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 1
			if strings.Contains(name, "several") {
				n = 2
			}
			stream := strings.HasPrefix(name, "stream/")
			body := fmt.Sprintf("{ \"model\" : \"m\",\n\t\"stream\":%v , \"n\": %d, \"temperature\":1.0e0,\"unknown\":{\"b\":1,\"a\":[ ]},\"messages\":[{\"content\":\"Gr\\u00fc\\u00dfe <>& 世\",\"role\":\"user\"}] }\n", stream, n)
			if name == "whole/odd json" {
				body = "\ufeff" + body
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, "POST", g.url+"/v1/chat/completions?api-version=1&x=%20", strings.NewReader(body))
			req.Header.Set("X-Case", name)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer sk-client")
			req.Header.Set("Openai-Organization", "org-1")
			req.Header.Set("X-Stainless-Lang", "js")
			req.Header.Set("X-Rebound-Mode", "act")
			req.Header.Set("User-Agent", "OpenAI/JS 6.49.0")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want.body) {
				t.Errorf("answer changed:\n got %q\nwant %q", got, want.body)
			}
			if id := resp.Header.Get("X-Request-Id"); id != "req-"+name || resp.Header.Get("X-Ratelimit-Remaining-Tokens") != "12" {
				t.Errorf("response headers lost: %v", resp.Header)
			}
			up.mu.Lock()
			defer up.mu.Unlock()
			if string(up.bodies[name]) != body {
				t.Errorf("request changed:\n got %q\nwant %q", up.bodies[name], body)
			}
			h := up.header[name]
			if h.Get("Authorization") != "Bearer sk-client" || h.Get("Openai-Organization") != "org-1" || h.Get("User-Agent") != "OpenAI/JS 6.49.0" || h.Get("X-Stainless-Lang") != "js" {
				t.Errorf("request headers lost: %v", h)
			}
			if h.Get("X-Rebound-Mode") != "" {
				t.Errorf("an internal header went upstream: %v", h)
			}
		})
	}
}
