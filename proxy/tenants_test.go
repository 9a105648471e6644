package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// What one gateway key provokes, by what it sends, how long it waits or the errors that its requests
// meet, moves no other key to another target, opens no breaker for all, and makes nobody unready.
func TestOneKeyHarmsNoOther(t *testing.T) {
	t.Parallel()
	refusals := map[string]struct {
		status int
		body   string
	}{
		"invalid": {400, `{"error":{"message":"Invalid value for messages[0].content","type":"invalid_request_error","code":"invalid_value"}}`},
		"policy":  {400, `{"error":{"message":"Your request was rejected as a result of our safety system","code":"content_policy_violation"}}`},
		"large":   {413, `{"error":{"message":"Request too large"}}`},
		"odd":     {418, `{"detail":"odd"}`},
		"broken":  {500, `{"error":{"message":"Internal error"}}`},
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch content := gjson.GetBytes(body, "messages.0.content").Str; {
		case content == "slow":
			<-r.Context().Done()
		case refusals[content].status != 0:
			w.WriteHeader(refusals[content].status)
			_, _ = io.WriteString(w, refusals[content].body)
		default:
			_, _ = io.WriteString(w, answered)
		}
	}
	first, second := httptest.NewServer(http.HandlerFunc(serve)), httptest.NewServer(http.HandlerFunc(serve))
	defer first.Close()
	defer second.Close()
	for content, headers := range map[string]string{"invalid": "", "policy": "", "large": "", "odd": "", "broken": "", "slow": "X-Stainless-Timeout: 0.02\r\n"} {
		g := startYAML(t, `
listen: 127.0.0.1:0
auth: {keys: [{name: a, env: KEY_A}, {name: b, env: KEY_B}]}
recovery: {backoff_min: 1ms, backoff_max: 2ms}
upstreams:
  default: {url: "`+first.URL+`/v1", keys: [{name: k, env: GATEWAY_up}]}
  other: {url: "`+second.URL+`/v1", keys: [{name: k, env: GATEWAY_other}]}
models:
  m: {targets: [{upstream: default}, {upstream: other}]}
  solo: {targets: [{upstream: default, model: m}]}
`)
		ask := func(key, extra, model, content string) (int, string) {
			return g.send("POST /v1/chat/completions", jsonType+key+extra, `{"model":"`+model+`","messages":[{"role":"user","content":"`+content+`"}]}`)
		}
		for range 7 { // a breaker opens after five
			for _, model := range []string{"m", "solo"} {
				ask(keyA, headers, model, content)
			}
		}
		for _, model := range []string{"m", "solo", "m"} {
			if status, answer := ask(keyB, "", model, "Hello."); status != 200 || !strings.Contains(answer, "X-Rebound-Target: default/m") {
				t.Errorf("%s: another key gets %d %s", content, status, answer)
			}
		}
		if status, answer := g.send("GET /readyz", "", ""); status != 200 {
			t.Errorf("%s: %d %s", content, status, answer)
		}
	}
}
