package app_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// A refusal in the middle of a session whose mend is known does not end it: the second
// attempt goes in a form that the target takes, and so do the requests after it.
func TestKnownMends(t *testing.T) {
	t.Parallel()
	bad := calls(call("call_a", "bash", `{"command": ls`))
	for name, c := range map[string]struct {
		message string
		defect  talk
		accepts func(body gjson.Result) bool
	}{
		"reasoning back": {"The `reasoning_content` in the thinking mode must be passed back to the API.", history,
			func(b gjson.Result) bool { return b.Get(`messages.#(role=="assistant").reasoning_content`).Exists() }},
		"reasoning refused": {"'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]",
			talk{tools: []string{shell}, messages: []string{user("Go."), `{"role":"assistant","content":"Yes.","reasoning_content":"Hm."}`, user("On.")}},
			func(b gjson.Result) bool { return len(b.Get(`messages.#.reasoning_content`).Array()) == 0 }},
		"arguments": {"invalid params, invalid function arguments json string, tool_call_id: call_a (2013)",
			talk{tools: []string{shell}, messages: []string{user("Go."), bad, result("call_a", "no"), user("On.")}},
			func(b gjson.Result) bool {
				return gjson.Valid(b.Get(`messages.1.tool_calls.0.function.arguments`).Str)
			}},
		"systems": {"invalid params, invalid chat setting (2013)", talk{tools: []string{shell}, messages: []string{message("system", "One."), message("system", "Two."), user("Go.")}},
			func(b gjson.Result) bool { return len(b.Get(`messages.#(role=="system")#`).Array()) == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := startStrict(t, func(body []byte) ruling {
				if c.accepts(gjson.ParseBytes(body)) {
					return well(body)
				}
				return ruling{status: 400, body: `{"error":{"message":` + quote(c.message) + `,"type":"invalid_request_error"}}`}
			})
			g := launch(t, up.config(fastRecovery))
			if r := g.ask(t.Context(), c.defect.body()); !r.ok() || r.tries() != "2" {
				t.Fatalf("%v; the upstream got %d requests, the last %s", r, len(up.bodies()), up.bodies()[len(up.bodies())-1])
			}
			if r := g.ask(t.Context(), c.defect.with(user("And now?")).body()); !r.ok() || r.tries() != "1" {
				t.Errorf("the next request: %v", r)
			}
		})
	}
}

// Where only a fallback dislikes a request the client gets the first target's error,
// which it may repeat; an error in a success is one, wherever it stands.
func TestErrorsOfTargets(t *testing.T) {
	t.Parallel()
	up := startStrict(t, func(body []byte) ruling {
		switch gjson.GetBytes(body, "model").Str {
		case "first":
			return ruling{status: 503, body: `{"error":{"message":"The server is overloaded.","type":"overloaded_error"}}`}
		case "fussy":
			return ruling{status: 400, body: `{"error":{"message":"I dislike this history.","type":"invalid_request_error"}}`}
		case "inside":
			return ruling{status: 200, body: `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`}
		}
		return well(body)
	})
	g := launch(t, up.config(fastRecovery, mapped("m", "default first", "default fussy")))
	if r := g.ask(t.Context(), talk{messages: []string{user("Hello.")}}.body()); r.status != 503 || !strings.Contains(string(r.body), "overloaded") {
		t.Errorf("the client got %v", r)
	}
	g = launch(t, up.config(fastRecovery, mapped("m", "default inside", "default able")))
	r := g.ask(t.Context(), talk{messages: []string{user("Hello.")}}.body())
	if !r.ok() || r.target() != "default/able" {
		t.Errorf("an error in a success: %v", r)
	}
}
