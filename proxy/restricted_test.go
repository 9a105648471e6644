package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A key that is restricted to models may do what is known to stay with them,
// and nothing else. On every row the upstream is asked only if it is allowed.
func TestRestrictedKeys(t *testing.T) {
	up := record(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body := answered
		switch {
		case r.Method == "POST" && r.URL.Path == "/v1/responses" && r.URL.Query().Has("stream"):
			w.Header().Set("Content-Type", "text/event-stream")
			body = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_streamed\"}}\n\n" +
				"data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_streamed\"}}\n\n"
		case r.Method == "POST" && r.URL.Path == "/v1/responses":
			body = `{"id":"resp_mine","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}`
		case r.Method == "POST" && r.URL.Path == "/v1/files":
			body = `{"object":"file","id":"file-mine"}`
		}
		_, _ = io.WriteString(w, body)
	})
	g := startAt(t, up.url, `
auth: {keys: [{name: all, env: KEY_A, paths: [/]}, {name: one, env: KEY_B, models: [only, "own/only"]}]}
`)
	const all, one = "Authorization: Bearer sk-key-aaaaaaaaaaaa\r\n", "Authorization: Bearer sk-key-bbbbbbbbbbbb\r\n"
	const chat = "POST /v1/chat/completions"
	with := func(fields string) string {
		return `{` + fields + `"messages":[{"role":"user","content":"Hi"}],"input":"x"}`
	}
	only := with(`"model":"only",`)
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	for _, c := range []struct {
		name, begin, headers, body string
		status                     int
	}{
		// Another model on a known path, however it is said.
		{"other", chat, jsonType, with(`"model":"other",`), 403},
		{"other, embeddings", "POST /v1/embeddings", jsonType, with(`"model":"other",`), 403},
		{"other, responses", "POST /v1/responses", jsonType, with(`"model":"other",`), 403},
		{"none", chat, jsonType, with(``), 403},
		{"none, moderations", "POST /v1/moderations", jsonType, with(``), 403},
		{"no JSON type", "POST /v1/embeddings", "Content-Type: text/plain\r\n", with(`"model":"other",`), 415},
		{"no type", "POST /v1/embeddings", "", with(`"model":"other",`), 415},
		{"a type that means JSON for some", "POST /v1/embeddings", "Content-Type: application/problem+json\r\n", only, 415},
		{"another character set", "POST /v1/embeddings", "Content-Type: application/json; charset=utf-7\r\n", only, 415},
		{"two types", "POST /v1/embeddings", "Content-Type: text/plain\r\n" + jsonType, only, 415},
		{"an encoding", "POST /v1/embeddings", jsonType + "Content-Encoding: identity\r\n", only, 415},
		{"twice", "POST /v1/embeddings", jsonType, with(`"model":"only","model":"other",`), 403},
		{"twice, chat", chat, jsonType, with(`"model":"other","model":"only",`), 400},
		{"another case", chat, jsonType, with(`"model":"only","Model":"other",`), 403},
		{"another case, embeddings", "POST /v1/embeddings", jsonType, with(`"MODEL":"other","model":"only",`), 403},
		{"escaped", "POST /v1/embeddings", jsonType, with(`"m\u006fdel":"other",`), 403},
		{"a second, escaped", "POST /v1/embeddings", jsonType, with(`"model":"only","mod\u0065l":"other",`), 403},
		{"no string", "POST /v1/embeddings", jsonType, with(`"model":["other"],`), 403},
		{"deep", "POST /v1/embeddings", jsonType, with(`"model":"other","x":` + deep + `,`), 400},
		{"not JSON", "POST /v1/embeddings", jsonType, with(`"model":"only",`) + "x", 400},
		{"a list", "POST /v1/embeddings", jsonType, `[` + only + `]`, 400},
		{"a byte order mark", "POST /v1/embeddings", jsonType, "\xef\xbb\xbf" + only, 400},
		{"empty", "POST /v1/embeddings", jsonType, "", 400},
		{"more models", chat, jsonType, with(`"model":"only","models":["other"],`), 403},
		{"more models for later", chat, jsonType, with(`"model":"only","fallbacks":[{"model":"other"}],`), 403},
		{"an engine", "POST /v1/completions", jsonType, with(`"model":"only","engine":"other",`), 403},
		{"a tool that is a model", "POST /v1/responses", jsonType, with(`"model":"only","tools":[{"type":"image_generation","model":"other"}],`), 403},
		{"a stored prompt", "POST /v1/responses", jsonType, with(`"model":"only","prompt":{"id":"pmpt_1"},`), 403},
		{"a deployment", "POST /openai/deployments/other/chat/completions", jsonType, with(``), 403},
		// Other paths, and other spellings of known ones.
		{"slash at the end", "POST /v1/embeddings/", jsonType, only, 403},
		{"two slashes", "POST /v1//embeddings", jsonType, only, 403},
		{"escaped path", "POST /v1/embedding%73", jsonType, only, 403},
		{"case", "POST /v1/Embeddings", jsonType, only, 403},
		{"multipart", "POST /v1/audio/transcriptions", "Content-Type: multipart/form-data; boundary=x\r\n", "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nother\r\n--x--\r\n", 403},
		{"delete a model", "DELETE /v1/models/only", "", "", 403},
		{"another model", "GET /v1/models/other", "", "", 403},
		{"fine-tuning", "POST /v1/fine_tuning/jobs", jsonType, only, 403},
		{"batches", "POST /v1/batches", jsonType, only, 403},
		{"assistants", "POST /v1/assistants", jsonType, only, 403},
		{"all responses of all", "GET /v1/responses", "", "", 403},
		{"all files of all", "GET /v1/files", "", "", 403},
		{"somebody's response", "GET /v1/responses/resp_other", "", "", 403},
		{"somebody's file", "GET /v1/files/file-other/content", "", "", 403},
		{"somebody's conversation", "POST /v1/responses", jsonType, with(`"model":"only","previous_response_id":"resp_other",`), 403},
		// What it may.
		{"its model", chat, jsonType, only, 200},
		{"with fields that say nothing", chat, jsonType, with(`"model":"only","models":null,"top_k":3,"metadata":{"model":"x"},"modalities":["text"],`), 200},
		{"embeddings", "POST /v1/embeddings", "Content-Type: application/json; charset=utf-8\r\n", only, 200},
		{"a deployment of its own", "POST /openai/deployments/only/chat/completions", jsonType, with(``), 200},
		{"text in place of a stored prompt", "POST /v1/completions", jsonType, with(`"model":"only","prompt":"x",`), 200},
		{"its model's page", "GET /v1/models/own%2Fonly", "", "", 200},
		{"the list", "GET /v1/models", "", "", 200},
		{"a response", "POST /v1/responses", jsonType, only, 200},
		{"a streamed response", "POST /v1/responses?stream", jsonType, only, 200},
		{"a file", "POST /v1/files", "Content-Type: multipart/form-data; boundary=x\r\n", "--x--\r\n", 200},
		{"its response", "GET /v1/responses/resp_mine", "", "", 200},
		{"its streamed response", "POST /v1/responses/resp_streamed/cancel", "", "", 200},
		{"its conversation", "POST /v1/responses", jsonType, with(`"model":"only","previous_response_id":"resp_mine",`), 200},
		{"its file", "GET /v1/files/file-mine/content", "", "", 200},
		{"its response, another method", "PATCH /v1/responses/resp_mine", "", "", 403},
		{"below its response", "GET /v1/responses/resp_mine/other", "", "", 403},
	} {
		status, answer := g.send(c.begin, c.headers+one, c.body)
		got := up.take()
		if status != c.status || (len(got) > 0) != (status == 200) {
			t.Errorf("%s: %d %s, the upstream saw %+v", c.name, status, answer, got)
		}
		if status != 200 && code(answer) == "" {
			t.Errorf("%s: no code: %s", c.name, answer)
		}
	}
	for _, c := range []string{"DELETE /v1/models/other", "POST /v1/fine_tuning/jobs", "GET /v1/files/file-mine", "GET /v1/responses"} {
		if status, answer := g.send(c, all, ""); status != 200 {
			t.Errorf("%s of a key without restriction: %d %s", c, status, answer)
		}
	}
	up.take()
	g.send("POST /v1/embeddings?model=other&limit=1", jsonType+one+"X-Model: other\r\nX-Portkey-Config: other\r\n", only)
	if got := up.take(); len(got) != 1 || got[0].uri != "/v1/embeddings?limit=1" || got[0].header.Get("X-Model")+got[0].header.Get("X-Portkey-Config") != "" {
		t.Errorf("the upstream saw %+v", got)
	}
}
