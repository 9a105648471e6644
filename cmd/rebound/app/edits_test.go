package app_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"
)

// A refusal with a known repair does not end a session: the second attempt has a form that the target accepts, and so
// have later requests.
func TestKnownEdits(t *testing.T) {
	t.Parallel()
	bad := calls(call("call_a", "bash", `{"command": ls`))
	for name, c := range map[string]struct {
		message string
		defect  conversation
		accepts func(body gjson.Result) bool
	}{
		"reasoning back": {"The `reasoning_content` in the thinking mode must be passed back to the API.", history,
			func(b gjson.Result) bool { return b.Get(`messages.#(role=="assistant").reasoning_content`).Exists() }},
		"reasoning back at LiteLLM": {`litellm.BadRequestError: DeepseekException - {"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API.",` +
			`"type":"invalid_request_error"}}. Received Model Group=m\nAvailable Model Group Fallbacks=None`, history,
			func(b gjson.Result) bool { return b.Get(`messages.#(role=="assistant").reasoning_content`).Exists() }},
		"alternatives of a schema": {"Invalid schema for function 'lookup': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
			conversation{messages: []string{user("Go.")}, tools: []string{function("lookup", "Look.", `{"oneOf":[{"type":"object","properties":{"id":{"type":"string"}}},{"type":"object","properties":{"path":{"type":"string"}}}]}`)}},
			func(b gjson.Result) bool {
				p := b.Get("tools.0.function.parameters")
				return !p.Get("oneOf").Exists() && p.Get("properties.id").Exists() && p.Get("properties.path").Exists()
			}},
		"alternatives at Anthropic": {"tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
			conversation{messages: []string{user("Go.")}, tools: []string{function("lookup", "Look.", `{"type":"object","properties":{"id":{"type":"string"}},"anyOf":[{"required":["id"]}]}`)}},
			func(b gjson.Result) bool {
				p := b.Get("tools.0.function.parameters")
				return !p.Get("anyOf").Exists() && p.Get("properties.id").Exists()
			}},
		"user behind a result": {"Unexpected role 'user' after role 'tool'",
			conversation{tools: []string{shell}, messages: []string{user("Go."), calls(call("call_a", "bash", `{"command": "ls"}`)), result("call_a", "no"), user("On.")}},
			func(b gjson.Result) bool {
				return strings.Contains(b.Get("messages.#.role").Raw, `"tool","assistant","user"`)
			}},
		"no calls": {"Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.",
			conversation{tools: []string{shell}, messages: []string{user("Go."), `{"role":"assistant","content":"Yes.","tool_calls":[]}`, user("On.")}},
			func(b gjson.Result) bool { return !b.Get("messages.1.tool_calls").Exists() }},
		"name of a speaker": {"Invalid 'messages[0].name': string does not match pattern. Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'.",
			conversation{messages: []string{`{"role":"user","name":"Ann Lee","content":"Go."}`}}, func(b gjson.Result) bool { return !b.Get("messages.0.name").Exists() }},
		"parallel calls, the default": {`Invalid JSON payload received. Unknown name "parallel_tool_calls": Cannot find field.`,
			conversation{fields: `"parallel_tool_calls":true,`, tools: []string{shell}, messages: []string{user("Go.")}}, func(b gjson.Result) bool { return !b.Get("parallel_tool_calls").Exists() }},
		"text, the default": {"This model does not support response_format",
			conversation{fields: `"response_format":{"type": "text"},`, messages: []string{user("Go.")}}, func(b gjson.Result) bool { return !b.Get("response_format").Exists() }},
		"no value": {"Invalid type for 'max_tokens': expected an integer, but got null instead.",
			conversation{fields: `"max_tokens":null,`, messages: []string{user("Go.")}}, func(b gjson.Result) bool { return !b.Get("max_tokens").Exists() }},
		"no tools": {"Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
			conversation{fields: `"tools":[],`, messages: []string{user("Go.")}}, func(b gjson.Result) bool { return !b.Get("tools").Exists() }},
		"reasoning refused": {"'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]",
			conversation{tools: []string{shell}, messages: []string{user("Go."), `{"role":"assistant","content":"Yes.","reasoning_content":"Hm."}`, user("On.")}},
			func(b gjson.Result) bool { return len(b.Get(`messages.#.reasoning_content`).Array()) == 0 }},
		"arguments": {"invalid params, invalid function arguments json string, tool_call_id: call_a (2013)",
			conversation{tools: []string{shell}, messages: []string{user("Go."), bad, result("call_a", "no"), user("On.")}},
			func(b gjson.Result) bool {
				return gjson.Valid(b.Get(`messages.1.tool_calls.0.function.arguments`).Str)
			}},
		"systems": {"invalid params, invalid chat setting (2013)", conversation{tools: []string{shell}, messages: []string{message("system", "One."), message("system", "Two."), user("Go.")}},
			func(b gjson.Result) bool { return len(b.Get(`messages.#(role=="system")#`).Array()) == 1 }},
		"thinking": {"parameter.enable_thinking must be set to false for non-streaming calls", history,
			func(b gjson.Result) bool { return b.Get("enable_thinking").Raw == "false" }},
		"two parameters": {"Validation: Unsupported parameter(s): top_k, thinking",
			conversation{fields: `"top_k":5,"thinking":{"type":"enabled"},`, messages: []string{user("Go.")}},
			func(b gjson.Result) bool { return !b.Get("thinking").Exists() && !b.Get("top_k").Exists() }},
		"marks of parts": {"messages.0.content.0.cache_control: Extra inputs are not permitted",
			conversation{messages: []string{`{"role":"user","content":[{"type":"text","text":"Go.","cache_control":{"type":"ephemeral"}}]}`}},
			func(b gjson.Result) bool { return !b.Get("messages.0.content.0.cache_control").Exists() }},
		"null": {"Invalid type for 'messages[2].content': expected a string, but got null instead.", history,
			func(b gjson.Result) bool { return b.Get("messages.2.content").Type == gjson.String }},
		"strict": {"Unknown name \"strict\" at 'tools[0].function': Cannot find field.",
			conversation{tools: []string{`{"type":"function","function":{"name":"look","strict":true,"parameters":{"type":"object","properties":{}}}}`}, messages: []string{user("Go.")}},
			func(b gjson.Result) bool { return !b.Get("tools.0.function.strict").Exists() }},
		"options without tools": {"Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.",
			conversation{fields: `"parallel_tool_calls":true,`, messages: []string{user("Go.")}}, func(b gjson.Result) bool { return !b.Get("parallel_tool_calls").Exists() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := startStrict(t, func(body []byte) verdict {
				if c.accepts(gjson.ParseBytes(body)) {
					return goodAnswer(body)
				}
				return verdict{status: 400, body: `{"error":{"message":` + quote(c.message) + `,"type":"invalid_request_error"}}`}
			})
			g := launch(t, up.config(fastRecovery))
			if r := g.ask(t.Context(), c.defect.body()); !r.ok() || r.attempts() != "2" {
				t.Fatalf("%v; the upstream got %d requests, the last %s", r, len(up.bodies()), up.bodies()[len(up.bodies())-1])
			}
			if r := g.ask(t.Context(), c.defect.with(user("And now?")).body()); !r.ok() || r.attempts() != "1" {
				t.Errorf("the next request: %v", r)
			}
		})
	}
}

// A repair for a combination of fields in one request does not change other requests: thinking with a forced call, or
// without a stream.
func TestPassingMends(t *testing.T) {
	t.Parallel()
	up := startStrict(t, func(body []byte) verdict {
		b := gjson.ParseBytes(body)
		refused := func(message string) verdict {
			return verdict{status: 400, body: `{"error":{"message":` + quote(message) + `,"type":"invalid_request_error"}}`}
		}
		switch {
		case b.Get("thinking").Exists() && b.Get("tool_choice").Exists():
			return refused("tool_choice 'required' is incompatible with thinking enabled")
		case b.Get("reasoning_effort").Exists() && b.Get("messages.2.tool_calls").Exists():
			return refused("litellm.BadRequestError: AnthropicException - {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.1.content.0.type: Expected `thinking` or " +
				"`redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and " +
				"`tool_result` blocks). To avoid this requirement, disable `thinking`.\"}}. Received Model Group=m\nAvailable Model Group Fallbacks=None")
		case !b.Get("stream").Bool() && b.Get("enable_thinking").Bool():
			return refused("parameter.enable_thinking must be set to false for non-streaming calls")
		}
		return goodAnswer(body)
	})
	g := launch(t, up.config(fastRecovery))
	for _, c := range []struct {
		k           conversation
		tries, want string
	}{
		{conversation{tools: []string{shell}, fields: `"tool_choice":"auto","thinking":{"type":"enabled"},`, messages: []string{user("Go.")}}, "2", ""},
		{conversation{tools: []string{shell}, fields: `"thinking":{"type":"enabled"},`, messages: []string{user("Go.")}}, "1", "thinking"},
		{conversation{tools: history.tools, fields: `"reasoning_effort":"high",`, messages: history.messages}, "2", ""},
		{conversation{fields: `"reasoning_effort":"high",`, messages: []string{user("Go.")}}, "1", "reasoning_effort"},
		{conversation{fields: `"enable_thinking":true,`, messages: []string{user("Go.")}}, "2", ""},
		{conversation{fields: `"enable_thinking":true,`, messages: []string{user("Again.")}}, "1", ""},
		{conversation{fields: `"enable_thinking":true,`, stream: true, messages: []string{user("Go.")}}, "1", "enable_thinking"},
	} {
		r := g.ask(t.Context(), c.k.body())
		last := gjson.ParseBytes(up.bodies()[len(up.bodies())-1])
		if !r.ok() || r.attempts() != c.tries || c.want != "" && !last.Get(c.want).Bool() && !last.Get(c.want).IsObject() && last.Get(c.want).Str == "" {
			t.Errorf("%s: %v; the upstream got %s", c.k.body(), r, last.Raw)
		}
	}
}

// A tool whose name a target refuses gets another name there, and keeps its own for the client.
func TestRefusedToolNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"files.delete", "mcp__" + strings.Repeat("very_long_", 7) + "run_command"} {
		for _, streamed := range []bool{false, true} {
			up := startStrict(t, func(body []byte) verdict {
				sent := gjson.GetBytes(body, "tools.0.function.name").Str
				if len(sent) > 64 || strings.Contains(sent, ".") {
					return verdict{status: 400, body: `{"error":{"message":"Invalid 'tools[0].function.name': string does not match pattern '^[a-zA-Z0-9_-]{1,64}$'.",` +
						`"type":"invalid_request_error","param":"tools[0].function.name","code":"invalid_value"}}`}
				}
				return verdict{calls: []string{call("call_b", sent, `{"path":"a"}`)}}
			})
			g := launch(t, up.config(fastRecovery))
			k := conversation{stream: streamed, tools: []string{function(name, "Delete a file or run it.", `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
				messages: []string{user("Go."), calls(call("call_a", name, `{"path":"b"}`)), result("call_a", "done")}}
			for _, tries := range []string{"2", "1"} {
				r := g.ask(t.Context(), k.body())
				if !r.ok() || r.attempts() != tries || !strings.Contains(string(r.body), quote(name)) {
					t.Errorf("%s, streamed %v: %v %s", name, streamed, r, r.body)
				}
			}
		}
	}
}

// If only a fallback refuses a request, the client gets the first target's error, which it may retry. An error in
// a body with status 200 is an error, wherever it is.
func TestErrorsOfTargets(t *testing.T) {
	t.Parallel()
	up := startStrict(t, func(body []byte) verdict {
		switch gjson.GetBytes(body, "model").Str {
		case "first":
			return verdict{status: 503, body: `{"error":{"message":"The server is overloaded.","type":"overloaded_error"}}`}
		case "fussy":
			return verdict{status: 400, body: `{"error":{"message":"I dislike this history.","type":"invalid_request_error"}}`}
		case "inside":
			return verdict{status: 200, body: `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`}
		}
		return goodAnswer(body)
	})
	g := launch(t, up.config(fastRecovery, modelMap("m", "default first", "default fussy")))
	if r := g.ask(t.Context(), conversation{messages: []string{user("Hello.")}}.body()); r.status != 503 || !strings.Contains(string(r.body), "overloaded") {
		t.Errorf("the client got %v", r)
	}
	g = launch(t, up.config(fastRecovery, modelMap("m", "default inside", "default able")))
	r := g.ask(t.Context(), conversation{messages: []string{user("Hello.")}}.body())
	if !r.ok() || r.target() != "default/able" {
		t.Errorf("an error in a success: %v", r)
	}
}

// A target may want another name for the output limit and a smaller limit, in either order. Both repairs are found in one
// request, and later requests have both.
func TestLimitRenamedAndLowered(t *testing.T) {
	t.Parallel()
	for name, lowerFirst := range map[string]bool{"renamed first": false, "lowered first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := startStrict(t, func(body []byte) verdict {
				b := gjson.ParseBytes(body)
				renamed, most := b.Get("max_completion_tokens").Exists(), max(b.Get("max_tokens").Int(), b.Get("max_completion_tokens").Int())
				refused := func(message string) verdict {
					return verdict{status: 400, body: `{"error":{"message":` + quote(message) + `,"type":"invalid_request_error","param":"max_tokens"}}`}
				}
				switch {
				case most > 16384 && (renamed || lowerFirst):
					return refused("max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.")
				case !renamed:
					return refused("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
				}
				return goodAnswer(body)
			})
			g := launch(t, up.config(fastRecovery))
			for i, want := range []string{"3", "1", "1"} {
				k := conversation{fields: `"max_tokens":32000,`, messages: []string{user("Go.")}}
				if r := g.ask(t.Context(), k.body()); !r.ok() || r.attempts() != want {
					t.Errorf("request %d: %v; the upstream got %s", i+1, r, up.bodies()[len(up.bodies())-1])
				}
			}
		})
	}
}

// A field that a provider refuses because of the client's account is left out of the requests of that account only.
func TestEditsOfOneAccount(t *testing.T) {
	t.Parallel()
	const message = "Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization."
	verified := atomic.Bool{}
	up := startStrict(t, func(body []byte) verdict {
		if gjson.GetBytes(body, "reasoning").Exists() && !verified.Load() {
			return verdict{status: 400, body: `{"error":{"message":` + quote(message) + `,"type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}`}
		}
		return goodAnswer(body)
	})
	g := launch(t, up.config(fastRecovery))
	k := conversation{fields: `"reasoning":{"effort":"high","summary":"auto"},`, messages: []string{user("Go.")}}
	for i, want := range []string{"2", "1"} {
		if r := g.askNamed(k.body(), "", "sk-unverified"); !r.ok() || r.attempts() != want {
			t.Errorf("request %d of the account without verification: %v", i+1, r)
		}
	}
	verified.Store(true)
	if r := g.askNamed(k.body(), "", "sk-verified"); !r.ok() || r.attempts() != "1" {
		t.Errorf("the verified account: %v", r)
	}
	if last := up.bodies()[len(up.bodies())-1]; gjson.GetBytes(last, "reasoning.effort").Str != "high" {
		t.Errorf("the verified account's request went upstream as %s", last)
	}
}

// A refusal that names no keyword may be about one client's tool. Other tools keep their schemas.
func TestSchemasOfOthers(t *testing.T) {
	t.Parallel()
	tool := func(name, parameters string) string {
		return `{"type":"function","function":{"name":"` + name + `","parameters":` + parameters + `}}`
	}
	up := startStrict(t, func(body []byte) verdict {
		if gjson.GetBytes(body, "tools.0.function.parameters.properties.n.exclusiveMinimum").IsBool() {
			return verdict{status: 400, body: `{"error":{"message":"Invalid schema for function 'old': True is not of type 'number'.","type":"invalid_request_error","param":"tools[0].function.parameters","code":"invalid_function_parameters"}}`}
		}
		return goodAnswer(body)
	})
	g := launch(t, up.config(fastRecovery))
	old := conversation{tools: []string{tool("old", `{"type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`)}, messages: []string{user("Go.")}}
	for i, want := range []string{"2", "1"} {
		if r := g.ask(t.Context(), old.body()); !r.ok() || r.attempts() != want {
			t.Errorf("request %d with the refused schema: %v", i+1, r)
		}
	}
	other := conversation{tools: []string{tool("edit", `{"type":"object","properties":{"at":{"oneOf":[{"type":"integer"},{"type":"string"}]}},"additionalProperties":false}`)}, messages: []string{user("Go.")}}
	if r := g.ask(t.Context(), other.body()); !r.ok() || r.attempts() != "1" {
		t.Errorf("another tool: %v", r)
	}
	if last := up.bodies()[len(up.bodies())-1]; gjson.GetBytes(last, "tools").Raw != gjson.Get(other.body(), "tools").Raw {
		t.Errorf("another tool went upstream as %s", last)
	}
}

// One client's tool that is not valid in strict mode does not turn strict mode off for the tools of others.
func TestStrictToolsOfOthers(t *testing.T) {
	t.Parallel()
	tool := func(name, more string) string {
		return `{"type":"function","function":{"name":"` + name + `","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]` + more + `}}}`
	}
	up := startStrict(t, func(body []byte) verdict {
		for _, f := range gjson.GetBytes(body, "tools.#.function").Array() {
			if f.Get("strict").Bool() && !f.Get("parameters.additionalProperties").Exists() {
				return verdict{status: 400, body: `{"error":{"message":"Invalid schema for function '` + f.Get("name").Str + `': In context=(), 'additionalProperties' is required to be supplied and to be false.","type":"invalid_request_error","param":"tools[0].function.parameters","code":"invalid_function_parameters"}}`}
			}
		}
		return goodAnswer(body)
	})
	g := launch(t, up.config(fastRecovery))
	valid := tool("edit", `,"additionalProperties":false`)
	for i, c := range []struct {
		tools    []string
		attempts string
		strict   string // in what went upstream
	}{
		{[]string{valid, tool("old", "")}, "2", "[true,false]"},
		{[]string{valid, tool("old", "")}, "1", "[true,false]"},
		{[]string{tool("one", `,"title":"one"`), tool("two", `,"title":"two"`)}, "3", "[false,false]"},
		{[]string{valid}, "1", "[true]"},
	} {
		r := g.ask(t.Context(), conversation{tools: c.tools, messages: []string{user("Go.")}}.body())
		last := up.bodies()[len(up.bodies())-1]
		if got := gjson.GetBytes(last, "tools.#.function.strict").Raw; !r.ok() || r.attempts() != c.attempts || got != c.strict {
			t.Errorf("request %d: %v; strict is %s", i+1, r, got)
		}
	}
}
