package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

const (
	keyA = "Authorization: Bearer sk-key-aaaaaaaaaaaa\r\n"
	keyB = "Authorization: Bearer sk-key-bbbbbbbbbbbb\r\n"
)

// library is an upstream that keeps what was made under ids that do not change.
func library(t *testing.T) *witness {
	return record(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body := answered
		switch {
		case r.Method == "POST" && strings.HasSuffix(r.URL.Path, "/responses") && r.URL.Query().Has("stream"):
			w.Header().Set("Content-Type", "text/event-stream")
			body = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_streamed\"}}\n\n" +
				"data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n" +
				"data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"id\":\"msg_streamed\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[]}}\n\n" +
				"data: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_streamed\"}}\n\n"
		case r.Method == "POST" && strings.HasSuffix(r.URL.Path, "/responses"):
			body = `{"id":"resp_a","object":"response","status":"completed","output":[{"id":"msg_a","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}]}`
		case r.Method == "POST" && strings.HasSuffix(r.URL.Path, "/conversations"):
			body = `{"id":"conv_a"}`
		case r.Method == "POST" && strings.HasSuffix(r.URL.Path, "/files"):
			body = `{"id":"file-a"}`
		}
		_, _ = io.WriteString(w, body)
	})
}

// What one gateway key has made no other one reads, names or takes over, however it is spelled;
// what belongs to all of them together needs a line in the configuration.
func TestKeysAreKeptApart(t *testing.T) {
	t.Parallel()
	up := library(t)
	g := startAt(t, up.url, "auth: {keys: [{name: a, env: KEY_A}, {name: b, env: KEY_B}, {name: clerk, env: GATEWAY_clerk, paths: [/batches, /Files]}]}\n")
	for _, made := range []string{"/responses", "/responses?stream", "/conversations", "/files"} {
		body := `{"model":"m","input":"x"}`
		if strings.HasSuffix(made, "?stream") {
			body = `{"model":"m","stream":true,"input":"x"}`
		}
		if status, answer := g.send("POST /v1"+made, jsonType+keyA, body); status != 200 {
			t.Fatalf("%s: %d %s", made, status, answer)
		}
	}
	up.take()
	input := func(fields string) string { return `{"model":"m",` + fields + `}` }
	const clerk, text = "Authorization: Bearer gateway-key-clerk\r\n", "Content-Type: text/plain\r\n"
	for _, c := range []struct {
		begin, headers, body string
		status               int
	}{
		{"GET /v1/responses/resp_a", keyA, "", 200},
		{"HEAD /v1/responses/resp_a", keyA, "", 200},
		{"DELETE /v1/conversations/conv_a/items/msg_a", keyA, "", 200},
		{"GET /v1/files/file-a/content", keyA, "", 200},
		{"POST /v1/responses", jsonType + keyA, input(`"input":[{"type":"item_reference","id":"msg_a"}]`), 200},
		{"POST /v1/responses", jsonType + keyA, input(`"input":[{"id":"msg_streamed"}],"conversation":{"id":"conv_a"}`), 200},
		{"POST /v1/responses", jsonType + keyA, input(`"input":[{"type":"message","role":"assistant","id":"msg_elsewhere","content":"Hi"},{"role":"user","content":"x"}]`), 200},
		{"GET /v1/models", keyA, "", 200},
		{"GET /v1/models/org%2Fname", keyA, "", 200},
		{"POST /v1/embeddings", jsonType + keyA, input(`"input":"x"`), 200},
		{"POST /v1/messages/count_tokens", jsonType + keyA, input(`"messages":[]`), 200},
		{"POST /v1/audio/transcriptions", "Content-Type: multipart/form-data; boundary=x\r\n" + keyA, "--x--\r\n", 200},

		{"GET /v1/responses/resp_a", keyB, "", 404},
		{"DELETE /v1/responses/resp_streamed", keyB, "", 404},
		{"GET /v1/responses%2Fresp_a", keyB, "", 404},
		{"GET /v1/responses%252Fresp_a", keyB, "", 404},
		{"GET /v1/responses%5Cresp_a", keyB, "", 404},
		{"GET /v1/responses;a=b/resp_a", keyB, "", 404},
		{"GET /v1/;x/responses/resp_a;y", keyB, "", 404},
		{"GET /v1/Responses/resp_a/input_items", keyB, "", 404},
		{"GET /v1/conversations/conv_a/items", keyB, "", 404},
		{"GET /v1/files/file-a/content", keyB, "", 404},
		{"DELETE /v1/files/file-unknown", keyB, "", 404},
		{"POST /v1/responses", jsonType + keyB, input(`"input":"x","previous_response_id":"resp_a"`), 400},
		{"POST /v1/responses", jsonType + keyB, input(`"input":"x","Previous_Response_ID":"resp_a"`), 400},
		{"POST /v1/responses", jsonType + keyB, input(`"input":"x","previous\u005fresponse_id":"resp_a"`), 400},
		{"POST /v1/responses", jsonType + keyB, input(`"input":"x","previous_response_id":"","conversation":"conv_a"`), 400},
		{"POST /v1/responses", jsonType + keyB, input(`"input":"x","conversation":{"ID":"conv_a"}`), 400},
		{"POST /v1/responses", jsonType + keyB, input(`"input":[{"type":"item_reference","id":"msg_a"}]`), 400},
		{"POST /v1/responses", jsonType + keyB, input(`"input":[{"Type":"item_reference","Id":"msg_streamed"}]`), 400},
		{"POST /v1/responses", jsonType + keyB, input(`"input":[{"type":"message","type":"item_reference","role":"user","id":"msg_a"}]`), 400},
		{"POST /v1/responses", jsonType + keyB, input(`"Input":[{"id":"msg_a"}],"input":"x"`), 400},
		{"POST /v1/responses/", jsonType + keyB, input(`"input":"x","previous_response_id":"resp_b","previous_response_id":"resp_a"`), 400},
		{"POST /v1/responses/", text + keyB, input(`"input":"x","previous_response_id":"resp_a"`), 415},
		{"POST /v1/responses;x", text + keyB, input(`"input":"x","previous_response_id":"resp_a"`), 415},
		{"POST /v1/conversations", jsonType + keyB, `{"items":[{"type":"item_reference","id":"msg_a"}]}`, 400},
		{"POST /v1/responses/compact", jsonType + keyB, input(`"input":"x","previous_response_id":"resp_a"`), 400},

		{"GET /v1/chat/completions?limit=100", keyB, "", 403},
		{"DELETE /v1/chat/completions/chatcmpl-a", keyB, "", 403},
		{"GET /v1/files", keyB, "", 403},
		{"GET /v1/batches", keyB, "", 403},
		{"GET /v1/responses", keyB, "", 403},
		{"POST /v1/vector_stores", jsonType + keyB, "{}", 403},
		{"GET /v1/organization/admin_api_keys", keyB, "", 403},
		{"DELETE /v1/models/ft:a", keyB, "", 403},

		{"GET /v1/batches/batch_1", clerk, "", 200},
		{"GET /v1/files", clerk, "", 200},
		{"GET /v1/files/file-a", clerk, "", 200},
		{"GET /v1/fine_tuning/jobs", clerk, "", 403},
		{"GET /v1/responses/resp_a", clerk, "", 404},
	} {
		status, answer := g.send(c.begin, c.headers, c.body)
		if got := up.take(); status != c.status || (len(got) > 0) != (status == 200) {
			t.Errorf("%s %s: %d %s, the upstream saw %+v", c.begin, c.body, status, answer, got)
		}
	}
	if _, answer := g.send("GET /v1/batches", keyB, ""); !strings.Contains(answer, "paths: [/batches]") {
		t.Errorf("the refusal does not name the line: %s", answer)
	}
	// An upstream that answers with an id that is another client's does not give that away.
	g.send("POST /v1/responses", jsonType+keyB, input(`"input":"mine"`))
	if status, _ := g.send("GET /v1/responses/resp_a", keyB, ""); status != 404 {
		t.Errorf("who had an id later: %d", status)
	}
	if status, _ := g.send("GET /v1/responses/resp_a", keyA, ""); status != 200 {
		t.Errorf("who had an id first: %d", status)
	}
}

// A single key shares nothing with anybody: only what manages the operator's account has to be opened.
func TestSingleKey(t *testing.T) {
	t.Parallel()
	up := library(t)
	for paths, status := range map[string]int{"": 403, ", paths: [/v1/organization]": 200, ", paths: [/]": 200} {
		g := startAt(t, up.url, "auth: {keys: [{name: a, env: KEY_A"+paths+"}]}\n")
		for begin, want := range map[string]int{"GET /v1/batches": 200, "GET /v1/files": 200, "GET /v1/responses/resp_unknown": 200, "DELETE /v1/models/x": 200,
			"GET /v1/Organization/users": status, "GET /v1/organization%2Fusers": status} {
			if got, answer := g.send(begin, keyA, ""); got != want {
				t.Errorf("%s with %q: %d %s", begin, paths, got, answer)
			}
		}
	}
}
