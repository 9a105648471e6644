package proxy_test

import (
	"fmt"
	"testing"

	"github.com/tidwall/gjson"
)

// A refusal of an option or a role of a response is recovered, and one for a conversation that is at
// work is repeated, although it has the status and type of a fault of the client.
func TestResponsesRefusals(t *testing.T) {
	t.Parallel()
	has := func(path string) func(int, gjson.Result) bool {
		return func(_ int, b gjson.Result) bool { return b.Get(path).Exists() }
	}
	for name, c := range map[string]struct {
		fields, fault, wanted string // wanted: a path that the accepted request still has
		refuses               func(n int, b gjson.Result) bool
		attempts              int
	}{
		"conversation": {`"conversation":"conv_1",`, `"Another process is currently operating on this conversation. Please retry in a few seconds.","type":"invalid_request_error","param":"conversation","code":"conversation_locked"`, "conversation",
			func(n int, _ gjson.Result) bool { return n < 3 }, 3},
		"verbosity": {`"text":{"verbosity":"low","format":{"type":"text"}},`, `"Unsupported parameter: 'text.verbosity' is not supported with this model.","type":"invalid_request_error","param":"text.verbosity","code":"unsupported_parameter"`,
			"text.format", has("text.verbosity"), 2},
		"truncation": {`"truncation":"auto",`, `"Unsupported parameter: 'truncation'","type":"invalid_request_error","param":"truncation"`, "input", has("truncation"), 2},
		"compaction": {`"context_management":[{"type":"compaction","compact_threshold":200000}],`, `"Unknown parameter: 'context_management'.","type":"invalid_request_error","param":"context_management","code":"unknown_parameter"`,
			"input", has("context_management"), 2},
		"developer": {"", `"Invalid value: 'developer'. Supported values are: 'assistant', 'system', 'user'.","type":"invalid_request_error","param":"input[0].role","code":"invalid_value"`, `input.#(role=="system")`,
			has(`input.#(role=="developer")`), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			r := &recorded{answer: func(body string) (int, string) {
				if n++; c.refuses(n, gjson.Parse(body)) {
					return 400, `{"error":{"message":` + c.fault + `}}`
				}
				return 200, `{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`
			}}
			m := upstreamOf(t, r, "").say("/v1/responses", fmt.Sprintf(`{"model":"m",%s"input":[{"role":"developer","content":"Be brief."},{"role":"user","content":"A"}]}`, c.fields), nil)
			sent := r.sent()
			if last := gjson.Parse(sent[len(sent)-1]); m.status != 200 || len(sent) != c.attempts || !last.Get(c.wanted).Exists() {
				t.Errorf("%d attempts: %d %s\n%s", len(sent), m.status, m.raw, last.Raw)
			}
		})
	}
}

// TestStoreMustBeFalse: without store a response is stored, so a target that wants none to be stored is not asked without it.
func TestStoreMustBeFalse(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"true", "null"} {
		r := &recorded{answer: func(string) (int, string) { return 400, `{"detail":"Store must be set to false"}` }}
		m := upstreamOf(t, r, "").say("/v1/responses", `{"model":"m","store":`+store+`,"input":"A"}`, nil)
		if sent := r.sent(); m.status != 400 || len(sent) != 1 {
			t.Errorf("%s: %d attempts: %d %s", store, len(sent), m.status, m.raw)
		}
	}
}
