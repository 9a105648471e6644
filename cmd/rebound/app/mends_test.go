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
		"thinking": {"parameter.enable_thinking must be set to false for non-streaming calls", history,
			func(b gjson.Result) bool { return b.Get("enable_thinking").Raw == "false" }},
		"two parameters": {"Validation: Unsupported parameter(s): top_k, thinking",
			talk{fields: `"top_k":5,"thinking":{"type":"enabled"},`, messages: []string{user("Go.")}},
			func(b gjson.Result) bool { return !b.Get("thinking").Exists() && !b.Get("top_k").Exists() }},
		"marks of parts": {"messages.0.content.0.cache_control: Extra inputs are not permitted",
			talk{messages: []string{`{"role":"user","content":[{"type":"text","text":"Go.","cache_control":{"type":"ephemeral"}}]}`}},
			func(b gjson.Result) bool { return !b.Get("messages.0.content.0.cache_control").Exists() }},
		"null": {"Invalid type for 'messages[2].content': expected a string, but got null instead.", history,
			func(b gjson.Result) bool { return b.Get("messages.2.content").Type == gjson.String }},
		"strict": {"Unknown name \"strict\" at 'tools[0].function': Cannot find field.",
			talk{tools: []string{`{"type":"function","function":{"name":"look","strict":true,"parameters":{"type":"object","properties":{}}}}`}, messages: []string{user("Go.")}},
			func(b gjson.Result) bool { return !b.Get("tools.0.function.strict").Exists() }},
		"options without tools": {"Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.",
			talk{fields: `"parallel_tool_calls":true,`, messages: []string{user("Go.")}}, func(b gjson.Result) bool { return !b.Get("parallel_tool_calls").Exists() }},
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

// What was refused for how one request combines its fields stays in others: thinking
// beside a demanded call, or without a stream.
func TestPassingMends(t *testing.T) {
	t.Parallel()
	up := startStrict(t, func(body []byte) ruling {
		b := gjson.ParseBytes(body)
		refused := func(message string) ruling {
			return ruling{status: 400, body: `{"error":{"message":` + quote(message) + `,"type":"invalid_request_error"}}`}
		}
		switch {
		case b.Get("thinking").Exists() && b.Get("tool_choice").Exists():
			return refused("tool_choice 'required' is incompatible with thinking enabled")
		case !b.Get("stream").Bool() && b.Get("enable_thinking").Bool():
			return refused("parameter.enable_thinking must be set to false for non-streaming calls")
		}
		return well(body)
	})
	g := launch(t, up.config(fastRecovery))
	for _, c := range []struct {
		k           talk
		tries, want string
	}{
		{talk{tools: []string{shell}, fields: `"tool_choice":"auto","thinking":{"type":"enabled"},`, messages: []string{user("Go.")}}, "2", ""},
		{talk{tools: []string{shell}, fields: `"thinking":{"type":"enabled"},`, messages: []string{user("Go.")}}, "1", "thinking"},
		{talk{fields: `"enable_thinking":true,`, messages: []string{user("Go.")}}, "2", ""},
		{talk{fields: `"enable_thinking":true,`, messages: []string{user("Again.")}}, "1", ""},
		{talk{fields: `"enable_thinking":true,`, stream: true, messages: []string{user("Go.")}}, "1", "enable_thinking"},
	} {
		r := g.ask(t.Context(), c.k.body())
		last := gjson.ParseBytes(up.bodies()[len(up.bodies())-1])
		if !r.ok() || r.tries() != c.tries || c.want != "" && !last.Get(c.want).Bool() && !last.Get(c.want).IsObject() {
			t.Errorf("%s: %v; the upstream got %s", c.k.body(), r, last.Raw)
		}
	}
}

// A tool whose name a target refuses has another one there, and its own for the client.
func TestRefusedToolNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"files.delete", "mcp__" + strings.Repeat("very_long_", 7) + "run_command"} {
		for _, streamed := range []bool{false, true} {
			up := startStrict(t, func(body []byte) ruling {
				sent := gjson.GetBytes(body, "tools.0.function.name").Str
				if len(sent) > 64 || strings.Contains(sent, ".") {
					return ruling{status: 400, body: `{"error":{"message":"Invalid 'tools[0].function.name': string does not match pattern '^[a-zA-Z0-9_-]{1,64}$'.",` +
						`"type":"invalid_request_error","param":"tools[0].function.name","code":"invalid_value"}}`}
				}
				return ruling{calls: []string{call("call_b", sent, `{"path":"a"}`)}}
			})
			g := launch(t, up.config(fastRecovery))
			k := talk{stream: streamed, tools: []string{function(name, "Delete a file or run it.", `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
				messages: []string{user("Go."), calls(call("call_a", name, `{"path":"b"}`)), result("call_a", "done")}}
			for _, tries := range []string{"2", "1"} {
				r := g.ask(t.Context(), k.body())
				if !r.ok() || r.tries() != tries || !strings.Contains(string(r.body), quote(name)) {
					t.Errorf("%s, streamed %v: %v %s", name, streamed, r, r.body)
				}
			}
		}
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
