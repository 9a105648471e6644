package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// sse is events of a response with their numbers and lines, in a spacing of its own.
func sse(events ...string) string {
	var b strings.Builder
	for i, e := range events {
		kind, rest, _ := strings.Cut(e, " ")
		if rest != "" {
			rest = "," + rest
		}
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":\"%s\", \"sequence_number\" : %d%s}\n\n", kind, kind, i, rest)
	}
	return b.String()
}

const (
	inProgress = `"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]}`
	rs         = `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAAAB_+\u002f=="}`
	msg        = `{"id":"msg_1","type":"message","role":"assistant","status":"completed","phase":"final_answer","content":[{"type":"output_text","text":"Hi \u00e9","annotations":[],"logprobs":[]}]}`
	search     = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}`
	novel      = `{"id":"zz_1","type":"quantum_call","qubits":[1,2,3]}`
	patch      = `{"id":"ctc_1","type":"custom_tool_call","call_id":"call_2","name":"apply_patch","input":"*** Begin Patch\n{\"not\": json,\n"}`
	spaced     = `{"id":"fc_1","type":"function_call","call_id":"call_1","namespace":"files","name":"list","arguments":"{ \"path\" : \"src\" }","status":"completed"}`
)

// healthyStream has all that a response may have, known and unknown.
var healthyStream = sse(
	"response.created "+inProgress, "response.queued "+inProgress, "response.in_progress "+inProgress, `codex.rate_limits "rate_limits":{"primary":{"used_percent":1.50}}`,
	`response.output_item.added "output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}`,
	`response.output_item.done "output_index":0,"item":`+rs,
	`response.output_item.added "output_index":1,"item":{"id":"ws_1","type":"web_search_call","status":"in_progress"}`,
	`response.web_search_call.searching "output_index":1,"item_id":"ws_1"`,
	`response.output_item.done "output_index":1,"item":`+search,
	`response.output_item.added "output_index":2,"item":`+novel,
	`response.quantum_call.entangled "output_index":2,"item_id":"zz_1","agent":{"name":"root"}`,
	`response.output_item.done "output_index":2,"item":`+novel,
	`response.output_item.added "output_index":3,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","phase":"final_answer","content":[]}`,
	`response.content_part.added "item_id":"msg_1","output_index":3,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}`,
	`response.output_text.delta "item_id":"msg_1","output_index":3,"content_index":0,"delta":"Hi ","logprobs":[],"obfuscation":"abc"`,
	`response.output_text.delta "item_id":"msg_1","output_index":3,"content_index":0,"delta":"\u00e9","logprobs":[],"obfuscation":"wxyz"`,
	`response.output_text.annotation.added "item_id":"msg_1","output_index":3,"content_index":0,"annotation_index":0,"annotation":{"type":"url_citation"}`,
	`response.output_text.done "item_id":"msg_1","output_index":3,"content_index":0,"text":"Hi \u00e9","logprobs":[]`,
	`response.output_item.done "output_index":3,"item":`+msg,
	`response.output_item.added "output_index":4,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","namespace":"files","name":"list","arguments":"","status":"in_progress"}`,
	`response.output_item.added "output_index":5,"item":{"id":"ctc_1","type":"custom_tool_call","call_id":"call_2","name":"apply_patch","input":""}`,
	`response.function_call_arguments.delta "item_id":"fc_1","output_index":4,"delta":"{ \"path\" : "`,
	`response.custom_tool_call_input.delta "item_id":"ctc_1","output_index":5,"delta":"*** Begin Patch\n{\"not\": json,\n"`,
	`response.function_call_arguments.delta "item_id":"fc_1","output_index":4,"delta":"\"src\" }"`,
	`response.custom_tool_call_input.done "item_id":"ctc_1","output_index":5,"input":"*** Begin Patch\n{\"not\": json,\n"`,
	`response.output_item.done "output_index":5,"item":`+patch,
	`response.function_call_arguments.done "item_id":"fc_1","output_index":4,"arguments":"{ \"path\" : \"src\" }"`,
	`response.output_item.done "output_index":4,"item":`+spaced,
	`response.completed "response":{"id":"resp_1","object":"response","status":"completed","output":[`+strings.Join([]string{rs, search, novel, msg, spaced, patch}, ", ")+`],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}`,
)

const healthyTools = `"tools":[{"type":"namespace","name":"files","tools":[{"type":"function","name":"list","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]},` +
	`{"type":"custom","name":"apply_patch"},{"type":"web_search"},{"type":"quantum"}]`

// TestResponsesUntouched: where nothing is wrong both sides get the bytes of the other,
// whatever is in them.
func TestResponsesUntouched(t *testing.T) {
	t.Parallel()
	whole := " {\"id\":\"resp_1\", \"object\":\"response\",\"status\":\"completed\",\"output\":[" +
		strings.Join([]string{rs, search, novel, msg, spaced, patch}, ",\n") + "],\"usage\":{\"input_tokens\":1.0e1},\"zz\":1.50}\n"
	for name, c := range map[string]struct{ kind, answer string }{
		"stream":           {"text/event-stream", healthyStream},
		"stream with DONE": {"text/event-stream", healthyStream + "data: [DONE]\n\n"},
		"comments":         {"text/event-stream", strings.ReplaceAll(healthyStream, "\n\nevent: response.output", "\n\n: ping\n\nevent: response.output")},
		"CRLF":             {"text/event-stream; charset=utf-8", strings.ReplaceAll(healthyStream, "\n", "\r\n")},
		"no event lines":   {"text/event-stream", strings.ReplaceAll(healthyStream, "event: response", ": response")},
		"whole":            {"application/json", whole},
		"incomplete":       {"application/json", strings.Replace(whole, `"status":"completed","output"`, `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output"`, 1)},
		"queued":           {"application/json", `{"id":"resp_1","object":"response","status":"queued","background":true,"output":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := record(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				_, _ = io.WriteString(w, c.answer)
			})
			g := startYAML(t, strings.ReplaceAll(strings.Replace(scaled, "keepalive_after: 500ms", "keepalive_after: 1m", 1), "UP/", up.url+"/"))
			body := fmt.Sprintf("{ \"stream\" : %v,\"model\":\"m\",\"store\":false,%s,\n\"input\":[{\"type\":\"quantum\",\"x\":1.50},{\"role\":\"user\",\"content\":\"Hi \\u00e9\"},%s,%s,"+
				"{\"type\":\"custom_tool_call_output\",\"call_id\":\"call_2\",\"output\":\"ok\"}], \"new\":{\"a\":1e3}}", strings.HasPrefix(c.kind, "text"), healthyTools, rs, patch)
			status, answer := g.do("POST", "/v1/responses", "sk-client", body)
			if status != 200 || answer != c.answer {
				t.Errorf("%d\n%s\nwant\n%s", status, answer, c.answer)
			}
			if got := up.take(); len(got) != 1 || got[0].body != body {
				t.Errorf("the upstream saw %+v", got)
			}
		})
	}
}

// TestResponsesWhole: what goes wrong with an answer that is not streamed.
func TestResponsesWhole(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	tools := `"tools":[` + shell + `],`
	for name, c := range map[string]struct {
		script, extra string
		calls         string
	}{
		"failed with 200":           {"error-event,code=server_error/ok", "", ""},
		"rate limit with 200":       {"error-event,code=rate_limit_exceeded/ok", "", ""},
		"cut":                       {"cut=0.5/ok", "", ""},
		"no JSON":                   {"malformed=0.3/ok", "", ""},
		"empty":                     {"empty-answer/ok", "", ""},
		"a number as a string":      {"tool,args={\\\"path\\\":\\\"src\\\"%2C\\\"n\\\":\\\"3\\\"}", tools, `{"path":"src","n":3}`},
		"arguments as an object":    {"tool,call=object,args={\\\"path\\\":\\\"src\\\"}", tools, `{"path":"src"}`},
		"no such tool":              {"tool=explode,args={}/tool,args={\\\"path\\\":\\\"src\\\"}", tools, `{"path":"src"}`},
		"a call in the text":        {"leak=<tool_call>{\\\"name\\\":\\\"list_files\\\"%2C\\\"arguments\\\":{\\\"path\\\":\\\"src\\\"}}<%2Ftool_call>", tools, `{"path":"src"}`},
		"a call behind text, bad":   {"text-tool,args=7/text-tool,args={\\\"path\\\":\\\"src\\\"}", tools, `{"path":"src"}`},
		"thought, and said nothing": {"empty-answer,reason/ok", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := "whole-" + strings.ReplaceAll(name, " ", "-")
			status, answer := g.do("POST", "/v1/responses", "sk-client", fmt.Sprintf(`{"model":"%s@%s",%s"store":false,"input":"Hello."}`, own, c.script, c.extra))
			calls := gjson.Get(answer, `output.#(type=="function_call")#.arguments`).Array()
			if status != 200 || gjson.Get(answer, "status").Str != "completed" || !gjson.Valid(answer) {
				t.Fatalf("%d %s", status, answer)
			}
			if c.calls == "" && gjson.Get(answer, `output.#(type=="message").content.0.text`).Str == "" {
				t.Errorf("no text: %s", answer)
			}
			if c.calls != "" && (len(calls) != 1 || calls[0].Str != c.calls || gjson.Get(answer, `output.#(type=="function_call").name`).Str != "list_files") {
				t.Errorf("calls %v: %s", calls, answer)
			}
		})
	}
}
