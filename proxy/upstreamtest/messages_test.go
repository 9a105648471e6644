package upstreamtest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// sendMessage posts a request to /v1/messages and returns the status, the body and the types of its events.
func sendMessage(t *testing.T, url, model, rest string) (status int, body, kinds string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages?beta=true",
		strings.NewReader(`{"model":"`+model+`","max_tokens":100,`+rest+`"messages":[{"role":"user","content":"Hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", "sk-a")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	all, _ := io.ReadAll(res.Body)
	var b strings.Builder
	for line := range strings.Lines(string(all)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if !gjson.Valid(data) {
				t.Errorf("no JSON: %s", data)
			}
			kind := gjson.Get(data, "type").Str
			if kind == "content_block_delta" {
				kind = gjson.Get(data, "delta.type").Str
			}
			if !strings.HasSuffix(b.String(), kind+" ") {
				b.WriteString(kind + " ")
			}
		}
	}
	return res.StatusCode, string(all), strings.TrimSpace(b.String())
}

func TestMessages(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	const block = "content_block_start "
	for script, want := range map[string]string{
		"ok":              "message_start ping " + block + "text_delta content_block_stop message_delta message_stop",
		"reason,tool":     "message_start ping " + block + "thinking_delta signature_delta content_block_stop " + block + "input_json_delta content_block_stop message_delta message_stop",
		"text-tool":       "message_start ping " + block + "text_delta content_block_stop " + block + "input_json_delta content_block_stop message_delta message_stop",
		"empty-answer":    "message_start ping message_delta message_stop",
		"no-finish":       "message_start ping " + block + "text_delta content_block_stop message_stop",
		"no-done":         "message_start ping " + block + "text_delta content_block_stop message_delta",
		"error-event=0.5": "message_start ping " + block + "text_delta error",
		"cut=0.5":         "message_start ping " + block + "text_delta",
		"tool,args={},ok": "message_start ping " + block + "input_json_delta content_block_stop message_delta message_stop",
		"finish=length":   "message_start ping " + block + "text_delta content_block_stop message_delta message_stop",
	} {
		if status, body, kinds := sendMessage(t, up.URL(), "m@"+script, `"stream":true,`); status != 200 || kinds != want {
			t.Errorf("%s: %d %s\n%s", script, status, kinds, body)
		}
	}
	tools := `"tools":[{"name":"ls","input_schema":{"type":"object"}}],`
	if _, body, _ := sendMessage(t, up.URL(), "m@text-tool", tools); gjson.Get(body, "content.#").Int() != 2 || gjson.Get(body, "content.0.text").Str != upstreamtest.TextFor("m") ||
		gjson.Get(body, "content.1.name").Str != "ls" || gjson.Get(body, "stop_reason").Str != "tool_use" || gjson.Get(body, "usage.input_tokens").Int() == 0 {
		t.Error(body)
	}
	for script, want := range map[string]string{"429": "rate_limit_error", "529": "overloaded_error", "500": "api_error", "401": "authentication_error",
		"ctx": "invalid_request_error", "413": "request_too_large"} {
		_, body, _ := sendMessage(t, up.URL(), "m@"+script, "")
		if gjson.Get(body, "type").Str != "error" || gjson.Get(body, "error.type").Str != want || script == "ctx" && !strings.Contains(body, "prompt is too long: ") {
			t.Errorf("%s: %s", script, body)
		}
	}
}
