package app_test

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// goodAnswer is a good answer, in JSON if the request asks for that.
func goodAnswer(body []byte) verdict {
	if gjson.GetBytes(body, "response_format").Exists() {
		return verdict{text: `{"answer":"All is well."}`}
	}
	return verdict{text: "All is well."}
}

func stream(k conversation) conversation { k.stream = true; return k }

// Each refusal of a request's form is recovered at the second attempt, and later requests to that target are
// adapted in advance. What must not be edited stays.
func TestRefusals(t *testing.T) {
	t.Parallel()
	rows, table := refusals(t), refusalCases()
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		row, tr := rows[id], table[id]
		if row.Class == "image_or_media_error" {
			continue // TestRefusedMedia
		}
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			tr := tr
			tr.defect.stream = row.Stream || id == "openai-param-004" // it is the event of a stream, or about streams
			recovers(t, row, tr)
		})
	}
}

// recovers checks the recovery of one refusal.
func recovers(t *testing.T, row refusal, tr refusalCase) {
	t.Helper()
	if tr.accepts == nil {
		t.Fatal("a row without a trial")
	}
	up := startStrict(t, func(body []byte) verdict {
		if tr.accepts(gjson.ParseBytes(body)) {
			return goodAnswer(body)
		}
		return row.verdict()
	})
	if up.decide([]byte(tr.defect.body())).status == 0 && !row.Stream {
		t.Fatal("the defective request is accepted")
	}
	g := launch(t, up.config(fastRecovery))
	r := g.ask(t.Context(), tr.defect.body())
	if tr.stands != "" {
		realError(t, r, row)
		return
	}
	attempts := len(up.bodies())
	switch {
	case !r.ok():
		t.Fatalf("not recovered: %v; the upstream got %d requests, the last %s", r, attempts, up.bodies()[attempts-1])
	case tr.first:
		if attempts != 1 || !bytes.Contains(r.body, []byte(`"tool_calls"`)) {
			t.Errorf("%d attempts: %v", attempts, r)
		}
	case attempts != 2 || r.attempts() != "2" || !strings.Contains(r.answerText(), "All is well."):
		t.Errorf("%d attempts: %v", attempts, r)
	}
	for _, b := range up.bodies() {
		for _, text := range tr.keeps {
			if !bytes.Contains(b, []byte(text)) && b[0] == '{' && !bytes.Equal(b, up.bodies()[0]) {
				t.Errorf("the edit has lost %q: %s", text, b)
			}
		}
	}
	// The next request of the same kind, and one without the defect.
	next := tr.defect.with(user("And now?"))
	if r := g.must(next.body()); !tr.first && !tr.again {
		if n := len(up.bodies()) - attempts; n != 1 || r.attempts() != "1" || r.recovery() != "learned" {
			t.Errorf("the second request took %d attempts: %v", n, r)
		}
		healthy := conversation{messages: []string{user("Hello.")}, stream: tr.defect.stream}.body()
		g.must(healthy)
		if got := up.bodies(); string(got[len(got)-1]) != healthy {
			t.Errorf("a request without the defect was changed: %s", got[len(got)-1])
		}
	}
}

// realError checks that the client got the upstream's error.
func realError(t *testing.T, r reply, row refusal) {
	t.Helper()
	want := row.verdict()
	said := gjson.Get(want.body, "error.message").Str
	switch got := gjson.GetBytes(r.body, "error.message").Str; {
	case r.status != row.Status:
		t.Errorf("not the upstream's error: %v", r)
	case said != "" && string(r.body) != want.body, said == "" && got == "":
		t.Errorf("the error is %s, the upstream's was %s", r.body, want.body)
	}
}

// If a refused field must not be removed, another target may answer.
func TestRefusedMeaningMoves(t *testing.T) {
	t.Parallel()
	rows, table := refusals(t), refusalCases()
	for _, id := range []string{"ollama-param-001", "openrouter-param-002", "vllm-param-001", "databricks-param-001"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			up := startStrict(t, func(body []byte) verdict {
				if gjson.GetBytes(body, "model").Str == "able" {
					return goodAnswer(body)
				}
				return rows[id].verdict()
			})
			g := launch(t, up.config(modelMap("m", "default fussy", "default able")))
			r := g.must(table[id].defect.body())
			if r.target() != "default/able" || r.recovery() != "move" {
				t.Errorf("%v", r)
			}
			want := strings.Replace(table[id].defect.body(), `"model":"m"`, `"model":"able"`, 1)
			if got := up.since(1); len(got) != 1 || string(got[0]) != want {
				t.Errorf("the other target got %s", got)
			}
		})
	}
}

// A target with several requirements gets all of them met, in whatever order it names them, and at once the
// next time.
func TestRefusalsTogether(t *testing.T) {
	t.Parallel()
	all := conversation{fields: `"temperature":0.5,`, tools: []string{shell,
		`{"type":"function","function":{"name":"lookup","strict":true,"parameters":{"type":"object","additionalProperties":true,"properties":{"a":{"type":"array"}}}}}`},
		messages: []string{message("system", "S."), `{"role":"user","content":[{"type":"text","text":"A"},{"type":"text","text":"B"}]}`, user("C"), message("system", "late"), user("D"),
			`{"role":"assistant","reasoning_content":"hm","content":"","tool_calls":[` + call("call_a", "bash", `{"command":"ls"}`) + `,` + call("call_b", "bash", `{"command":"ls"}`) + `]}`, result("call_b", ""),
			user("E"), `{"role":"assistant","reasoning_content":"hm","content":[{"type":"text","text":"F"}]}`, user("")}}
	list := requirements(t)
	names := slices.Sorted(maps.Keys(list))
	for i, a := range names {
		for _, b := range names[i+1:] {
			t.Run(a+"+"+b, func(t *testing.T) {
				t.Parallel()
				for _, order := range [][]string{{a, b}, {b, a}} {
					up := startStrict(t, func(body []byte) verdict {
						for _, name := range order {
							if d := list[name]; !d.met(gjson.ParseBytes(body)) {
								return verdict{status: 400, body: d.says}
							}
						}
						return goodAnswer(body)
					})
					g := launch(t, up.config("inspect: {enabled: false}", "recovery: {graceful: error}"))
					r := g.ask(t.Context(), all.body())
					again := g.ask(t.Context(), all.with(says("Well."), user("Go on.")).body())
					if !r.ok() || !again.ok() || again.attempts() != "1" {
						t.Errorf("%s first: %v, then %v", order[0], r, again)
					}
				}
			})
		}
	}
}

// If a target later refuses what an edit made, the gateway sends the client's bytes and forgets the edit.
func TestRefusedEdits(t *testing.T) {
	t.Parallel()
	mood := "sparing"
	up := startStrict(t, func(body []byte) verdict {
		has := gjson.GetBytes(body, "temperature").Exists()
		if mood == "sparing" && has {
			return refusals(t)["openai-param-002"].verdict()
		}
		if mood == "demanding" && !has {
			return verdict{status: 400, body: `{"error":{"message":"This deployment wants to be told how warm it is.","type":"invalid_request_error","param":null,"code":null}}`}
		}
		return goodAnswer(body)
	})
	g := launch(t, up.config())
	body := history.body()
	body = strings.Replace(body, `"stream"`, `"temperature":0.50,"stream"`, 1)
	g.must(body)
	if r := g.must(body); r.recovery() != "learned" || len(up.bodies()) != 3 {
		t.Fatalf("not learnt: %v", r)
	}
	up.mu.Lock()
	mood = "demanding"
	up.mu.Unlock()
	r := g.must(body)
	if got := up.since(4); len(got) != 1 || string(got[0]) != body || !strings.Contains(r.recovery(), "original") {
		t.Errorf("the client's bytes did not go out again: %v, %s", r, got)
	}
	if r := g.must(body); r.attempts() != "1" || r.recovery() != "" || string(up.since(5)[0]) != body {
		t.Errorf("the refused edit is not forgotten: %v", r)
	}
}

// Refused attachments are removed only if the operator allows it.
func TestRefusedMedia(t *testing.T) {
	t.Parallel()
	picture := `{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`
	for id, row := range refusals(t) {
		if row.Class != "image_or_media_error" {
			continue
		}
		for _, media := range []string{"keep", "drop"} {
			t.Run(id+"/"+media, func(t *testing.T) {
				t.Parallel()
				up := startStrict(t, func(body []byte) verdict {
					if bytes.Contains(body, []byte("image_url")) && gjson.GetBytes(body, `messages.#(content.#(type=="image_url"))`).Exists() {
						return row.verdict()
					}
					return goodAnswer(body)
				})
				g := launch(t, up.config("recovery: {media: "+media+"}"))
				r := g.ask(t.Context(), conversation{messages: []string{picture}}.body())
				if media == "keep" {
					realError(t, r, row)
					// In the middle of an agent's work, too: a request for an explanation would hold the same picture.
					later := conversation{tools: history.tools, messages: append(slices.Clone(history.messages), says("Done."), picture)}
					if realError(t, g.ask(t.Context(), later.body()), row); len(up.bodies()) != 2 {
						t.Errorf("%d attempts for two requests", len(up.bodies()))
					}
					return
				}
				if !r.ok() || r.attempts() != "2" || !bytes.Contains(up.bodies()[1], []byte("[image_url removed")) || !bytes.Contains(up.bodies()[1], []byte("What is this?")) {
					t.Errorf("%v", r)
				}
			})
		}
	}
}

// In the middle of an agent's work, and only there, the model itself explains a refusal.
func TestRefusalExplained(t *testing.T) {
	t.Parallel()
	const refusal = `{"error":{"message":"The moon is in the wrong quarter.","type":"invalid_request_error","param":null,"code":"moon"}}`
	for name, c := range map[string]struct {
		request conversation
		config  string
		mute    bool // the model does not explain it either
		want    bool
	}{
		"in the middle":           {history, "", false, true},
		"streamed":                {stream(history), "", false, true},
		"the first turn":          {conversation{tools: []string{shell}, messages: []string{user("Look.")}}, "", false, false},
		"without tools":           {conversation{messages: []string{user("Hello."), says("Hello."), user("Again.")}}, "", false, false},
		"two answers":             {conversation{tools: history.tools, messages: history.messages, fields: `"n":2,`}, "", false, false},
		"structured":              {conversation{tools: history.tools, messages: history.messages, fields: `"response_format":{"type":"json_object"},`}, "", false, false},
		"turned off":              {history, "recovery: {graceful: error}", false, false},
		"that is refused as well": {history, "", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := startStrict(t, func(body []byte) verdict {
				if gjson.GetBytes(body, "tool_choice").Str == "none" && strings.Contains(gatewayNote(body), "The moon is in the wrong quarter.") && !c.mute {
					return verdict{text: "The provider refuses."}
				}
				return verdict{status: 400, body: refusal}
			})
			g := launch(t, up.config(c.config))
			r := g.ask(t.Context(), c.request.body())
			if !c.want {
				if r.status != 400 || string(r.body) != refusal {
					t.Errorf("not the upstream's own error: %v", r)
				}
				return
			}
			id := regexp.MustCompile(`"id":"([^"]*)"`).FindStringSubmatch(string(r.body))
			if !r.ok() || r.answerText() != "The provider refuses." || r.recovery() != "explain" || r.attempts() != "2" || id == nil || !strings.HasPrefix(id[1], "chatcmpl-rebound-") {
				t.Errorf("%v", r)
			}
			if c.request.stream && strings.Count(string(r.body), "chatcmpl-rebound-") < 2 {
				t.Errorf("some chunks have another id: %s", r.body)
			}
			if got := up.bodies()[1]; gjson.GetBytes(got, "tools").Raw != "["+shell+"]" {
				t.Errorf("the tools are gone: %s", got)
			}
		})
	}
}

// From the second timeout or cut of a request on, a note asks the model for a smaller step, at most twice.
func TestSmallerStep(t *testing.T) {
	t.Parallel()
	const late = `{"error":{"message":"The upstream request timed out.","type":"timeout_error","param":null,"code":"timeout"}}`
	for name, c := range map[string]struct {
		fields string
		fail   verdict
		want   string // of each attempt: whether it has the note
	}{
		"time-outs":  {"", verdict{status: 504, body: late}, "--nn-"},
		"cuts":       {"", verdict{status: 200, body: `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assi`}, "--nn-"},
		"structured": {`"response_format":{"type":"json_object"},`, verdict{status: 504, body: late}, "-----"},
		"limited":    {"", verdict{status: 429, header: "Retry-After: 0", body: `{"error":{"message":"Rate limit reached.","type":"rate_limit","param":null,"code":"rate_limit_exceeded"}}`}, "-----"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			up := startStrict(t, func(body []byte) verdict {
				if n++; n < 5 {
					return c.fail
				}
				return goodAnswer(body)
			})
			g := launch(t, up.config(fastRecovery))
			k := history
			k.fields = c.fields
			r := g.ask(t.Context(), k.body())
			got := ""
			for _, b := range up.bodies() {
				if strings.Contains(gatewayNote(b), "smaller step") {
					got += "n"
				} else if got += "-"; string(b) != k.body() {
					t.Errorf("an attempt without the note was changed: %s", b)
				}
			}
			if !r.ok() || got != c.want {
				t.Errorf("notes %q, want %q: %v", got, c.want, r)
			}
		})
	}
}

// fastRecovery has very short waits.
const fastRecovery = "recovery: {patience: 5s, backoff_min: 1ms, backoff_max: 2ms, rate_limit_wait: 1ms, wait_same: 200ms, wait_max: 1s}"
