package app_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// refusalCase is a request with the defect that a refusal is about, and the check of the server that refuses.
type refusalCase struct {
	defect  conversation
	accepts func(body gjson.Result) bool
	// keeps lists texts of the client that the request still has after the repair.
	keeps []string
	// first: the answer is made of the refusal itself, without another attempt.
	// again: nothing is learnt, since it is about that request and not its target.
	first, again bool
	// stands says why the refusal stands: the client gets it as it is.
	stands string
}

// history is a conversation with one tool, up to its result.
var history = conversation{tools: []string{shell}, messages: []string{message("system", "You are an agent."), user("List the files."),
	calls(call("call_a", "bash", `{"command":"ls"}`)), result("call_a", "main.go\ngo.mod")}}

// unanswered is a conversation with a call that has no result.
var unanswered = conversation{tools: []string{shell}, messages: []string{user("List the files."), calls(call("call_a", "bash", `{"command":"ls"}`)), user("Go on.")}}

func refusalCases() map[string]refusalCase {
	plain := conversation{messages: []string{message("system", "Be brief."), user("Hello.")}}
	field := func(fields string) conversation { k := plain; k.fields = fields; return k }
	tooled := func(schema string) conversation {
		return conversation{messages: plain.messages, tools: []string{shell, function("lookup", "Look something up.", schema)}}
	}
	without := func(paths ...string) func(gjson.Result) bool {
		return func(b gjson.Result) bool {
			return !slices.ContainsFunc(paths, func(p string) bool { return b.Get(p).Exists() })
		}
	}
	never := func(gjson.Result) bool { return false }
	signed := func(want string) func(gjson.Result) bool {
		return func(b gjson.Result) bool {
			for _, c := range b.Get("messages.#.tool_calls|@flatten").Array() {
				if s := c.Get("extra_content.google.thought_signature").Str; s == "" || want != "" && s != want {
					return false
				}
			}
			return true
		}
	}
	noTools := "without its tools the model could not do what it was asked for"
	noRoles := func(role string) func(gjson.Result) bool {
		return func(b gjson.Result) bool { return len(b.Get(`messages.#(role=="`+role+`")#`).Array()) == 0 }
	}
	developer := conversation{messages: []string{message("developer", "Be brief."), user("Hello.")}}
	parallel := conversation{tools: []string{shell}, messages: []string{user("Look."),
		calls(call("call_a", "bash", `{"command":"ls"}`), call("call_b", "bash", `{"command":"pwd"}`)), result("call_b", "/work"), user("Well?")}}
	temperature := refusalCase{defect: field(`"temperature":0.5,`), accepts: without("temperature")}
	either := refusalCase{defect: field(`"temperature":0.5,"top_p":0.9,`), accepts: func(b gjson.Result) bool { return !b.Get("temperature").Exists() || !b.Get("top_p").Exists() }}
	signedCall := strings.Replace(call("call_a", "bash", `{"command":"ls"}`), `"type"`, `"extra_content":{"google":{"thought_signature":"of another model"}},"type"`, 1)

	return map[string]refusalCase{
		"anthropic-toolpair-001":         {defect: unanswered, accepts: paired, keeps: []string{"Go on."}},
		"anthropic-toolpair-002":         {defect: history.with(user("Stop."), calls(call("call_b", "bash", `{"command":"pwd"}`)), user("Go on."), result("call_b", "/work")), accepts: paired, keeps: []string{"Stop.", "Go on.", "/work"}},
		"anthropic-toolpair-003":         {defect: parallel, accepts: paired, keeps: []string{"Well?", "/work"}},
		"antigravity-proxy-toolpair-001": {defect: unanswered.with(calls(call("bash-uO", "bash", `{"command":"ls"}`))), accepts: paired, keeps: []string{"Go on."}},
		"bedrock-toolpair-001": {defect: conversation{messages: history.messages}, keeps: []string{"main.go"}, accepts: func(b gjson.Result) bool {
			return !b.Get(`messages.#(tool_calls)`).Exists() || b.Get(`tools.#(function.name=="bash")`).Exists()
		}},
		"bedrock-toolpair-002": {defect: unanswered.with(calls(call("call_b", "bash", `{"command":"true"}`)), result("call_b", "")), accepts: func(b gjson.Result) bool {
			return len(b.Get(`messages.#(role=="tool")#|#(content=="")#`).Array()) == 0
		}},
		"bedrock-toolpair-003":              {defect: unanswered, accepts: paired},
		"gemini-openai-compat-toolpair-001": {defect: history, accepts: signed(""), keeps: []string{"main.go"}},
		"mistral-toolpair-002":              {defect: conversation{tools: []string{shell}, messages: []string{user("Hello."), result("call_x", "out"), user("Go on.")}}, accepts: paired, keeps: []string{"Go on."}},
		"openai-toolpair-001":               {defect: unanswered, accepts: paired, keeps: []string{"Go on."}},
		"openai-toolpair-003":               {defect: conversation{tools: []string{shell}, messages: append([]string{result("call_x", "out")}, history.messages...)}, accepts: paired, keeps: []string{"main.go"}},
		"opencode-zen-toolpair-001":         {defect: conversation{tools: []string{shell}, messages: []string{user("Look."), calls(signedCall), result("call_a", "main.go")}}, accepts: signed("skip_thought_signature_validator"), again: true, keeps: []string{"main.go"}},

		"anthropic-toolschema-002": {defect: tooled(`{"type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`), keeps: []string{`"lookup"`, `"n"`}, accepts: func(b gjson.Result) bool {
			return !strings.Contains(b.Get("tools").Raw, `"exclusiveMinimum":true`)
		}},
		"gemini-toolschema-002": {defect: conversation{messages: plain.messages, tools: []string{function("9lives", "Nine.", `{"type":"object","properties":{}}`)}}, accepts: never,
			stands: "a tool's name is what the client's own code answers to"},
		"gemini-toolschema-003": {defect: tooled(`{"type":"object","properties":{"actions":{"type":"array"},"includeTags":{"type":"array"}}}`), keeps: []string{`"actions"`}, accepts: arraysHaveItems},
		"llamacpp-toolschema-001": {defect: tooled(`{"type":"object","properties":{"id":{"type":"string","pattern":"^(?=x)[a-z]+$"}}}`), keeps: []string{`"id"`}, accepts: func(b gjson.Result) bool {
			return !strings.Contains(b.Get("tools").Raw, `"pattern"`)
		}},
		"openai-toolschema-002": {defect: tooled(`{"type":"object","properties":{"objects":{"type":"array"}}}`), keeps: []string{`"objects"`}, accepts: arraysHaveItems},
		"openai-toolschema-004": {defect: conversation{messages: plain.messages, tools: []string{strings.Replace(function("set", "Set.", `{"type":"object","properties":{"permissions":{"type":"object","properties":{}}}}`), `"name"`, `"strict":true,"name"`, 1)}},
			keeps: []string{`"permissions"`}, accepts: func(b gjson.Result) bool { return !b.Get("tools.0.function.strict").Bool() }},
		"openswarm-router-toolschema-001": {defect: tooled(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"default":{"type":"string"}},"additionalProperties":false}`), keeps: []string{`"default":{"type":"string"}`}, accepts: func(b gjson.Result) bool {
			return !strings.Contains(b.Get("tools").Raw, "$schema") && !strings.Contains(b.Get("tools").Raw, "additionalProperties")
		}},

		"anthropic-param-001":            either,
		"anthropic-param-002":            temperature,
		"anthropic-param-004":            either,
		"bedrock-param-003":              {defect: conversation{messages: plain.messages, tools: []string{shell}, fields: `"tool_choice":{"type":"auto","disable_parallel_tool_use":true},`}, accepts: without("tool_choice.disable_parallel_tool_use"), stands: "whether calls come one by one is what the client asked for"},
		"cerebras-param-001":             {defect: field(`"min_p":0.1,"top_k":40,`), accepts: without("min_p", "top_k")},
		"cerebras-param-002":             {defect: plain.with(strings.Replace(says("Hello."), `{`, `{"reasoning_content":"Thinking.",`, 1), user("Go on.")), accepts: without("messages.2.reasoning_content"), keeps: []string{"Go on."}},
		"databricks-param-001":           {defect: conversation{messages: plain.messages, tools: []string{shell}, fields: `"parallel_tool_calls":false,`}, accepts: without("parallel_tool_calls"), stands: "whether calls come one by one is what the client asked for"},
		"groq-param-002":                 {defect: field(`"reasoningEffort":"high",`), accepts: without("reasoningEffort")},
		"halogen-flash-server-param-001": {defect: developer, accepts: noRoles("developer")},
		"litellm-proxy-param-001":        {defect: conversation{messages: plain.messages, tools: []string{shell}}, accepts: without("tools"), stands: noTools},
		"mistral-param-001":              {defect: field(`"frequency_penalty":0.5,"stop":["x"],`), accepts: without("frequency_penalty", "stop"), stands: "it names nothing, and one of what it may mean is stop"},
		"mistral-param-002":              {defect: field(`"store":false,"max_completion_tokens":64,`), keeps: []string{`"max_tokens":64`}, accepts: without("store", "max_completion_tokens")},
		"mistral-param-003":              {defect: conversation{messages: []string{`{"role":"user","name":null,"tool_calls":null,"content":"Hello."}`}}, accepts: without("messages.0.name", "messages.0.tool_calls")},
		"new-api-param-001":              {defect: developer, accepts: noRoles("developer"), keeps: []string{message("system", "Be brief.")}},
		"nous-param-001":                 {defect: field(`"reasoning":{"enabled":false},`), accepts: without("reasoning")},
		"ollama-param-001":               {defect: conversation{messages: plain.messages, tools: []string{shell}}, accepts: without("tools"), stands: noTools},
		"openai-param-002":               temperature,
		"openai-param-003":               {defect: temperature.defect, accepts: temperature.accepts},
		"openai-param-004":               {defect: plain, accepts: func(b gjson.Result) bool { return !b.Get("stream").Bool() }, stands: "a client that asked for a stream gets one, or the refusal"},
		"openrouter-param-002":           {defect: field(`"response_format":{"type":"json_object"},`), accepts: without("response_format"), stands: "without it the answer would not be what was asked for"},
		"proxy-openai-param-001":         {defect: field(`"reasoning_effort":"max",`), accepts: without("reasoning_effort")},
		"vllm-param-001":                 {defect: conversation{messages: plain.messages, tools: []string{shell}, fields: `"tool_choice":"auto",`}, accepts: without("tools"), stands: noTools},
		"zhipu-param-001":                {defect: field(`"max_tokens":100000,`), accepts: without("max_tokens")},

		"groq-output-001": {defect: conversation{messages: plain.messages, tools: []string{function("brave_search", "Search.", `{"type":"object","properties":{"query":{"type":"string"}}}`)}}, accepts: isNoted, first: true},
		"groq-output-002": {defect: conversation{messages: plain.messages, tools: []string{function("web_search", "Search.", `{"type":"object","properties":{"query":{"type":"string"},"filter_year":{"type":"integer"}}}`)}}, accepts: isNoted, first: true},
		"groq-output-003": {defect: conversation{messages: plain.messages, tools: []string{shell}}, accepts: isNoted, again: true},
		"groq-output-004": {defect: field(`"response_format":{"type":"json_object"},`), accepts: isNoted, again: true},
	}
}

func isNoted(b gjson.Result) bool { return gatewayNote([]byte(b.Raw)) != "" }

// paired is the rule of OpenAI's API: each call has one result, right after its message, and no result lacks its call.
func paired(b gjson.Result) bool {
	open := map[string]bool{}
	for _, m := range b.Get("messages").Array() {
		id := m.Get("tool_call_id").Str
		switch {
		case m.Get("role").Str == "tool" && !open[id]:
			return false
		case m.Get("role").Str == "tool":
			delete(open, id)
		case len(open) > 0:
			return false
		}
		for _, c := range m.Get("tool_calls").Array() {
			if id := c.Get("id").Str; id == "" || open[id] {
				return false
			}
			open[c.Get("id").Str] = true
		}
	}
	return len(open) == 0
}

var bareArray = regexp.MustCompile(`\{"type":"array"\}`)

func arraysHaveItems(b gjson.Result) bool { return !bareArray.MatchString(b.Get("tools").Raw) }

// requirement is something that a target insists on, and its error otherwise.
type requirement struct {
	met  func(b gjson.Result) bool
	says string
}

func requirements(t *testing.T) map[string]requirement {
	each := func(f func(m gjson.Result) bool) func(gjson.Result) bool {
		return func(b gjson.Result) bool {
			return !slices.ContainsFunc(b.Get("messages").Array(), func(m gjson.Result) bool { return !f(m) })
		}
	}
	eachCall := func(f func(c gjson.Result) bool) func(gjson.Result) bool {
		return each(func(m gjson.Result) bool {
			return !slices.ContainsFunc(m.Get("tool_calls").Array(), func(c gjson.Result) bool { return !f(c) })
		})
	}
	says := func(message string) string {
		return `{"error":{"message":` + quote(message) + `,"type":"invalid_request_error"}}`
	}
	row := func(id string) string { return string(refusals(t)[id].Body) }
	return map[string]requirement{
		"pairs":      {paired, row("openai-toolpair-001")},
		"signatures": {eachCall(func(c gjson.Result) bool { return c.Get("extra_content").Exists() }), row("gemini-openai-compat-toolpair-001")},
		"short ids":  {eachCall(func(c gjson.Result) bool { return len(c.Get("id").Str) == 9 }), says("Tool call id was call_a but must be a-z, A-Z, 0-9, with a length of 9.")},
		"content":    {each(func(m gjson.Result) bool { return m.Get("tool_calls").Exists() || m.Get("content").String() != "" }), says("messages: text content blocks must be non-empty")},
		"plain text": {each(func(m gjson.Result) bool { return !m.Get("content").IsArray() }), says("Failed to deserialize the JSON body into the target type: messages[1]: invalid type: sequence, expected a string at line 1 column 200")},
		"no labels":  {each(func(m gjson.Result) bool { return !m.Get("reasoning_content").Exists() }), row("cerebras-param-002")},
		"turns":      {func(b gjson.Result) bool { return !strings.Contains(b.Get("messages.#.role").Raw, `"user","user"`) }, says("Conversation roles must alternate user/assistant/user/assistant/...")},
		"system": {func(b gjson.Result) bool {
			return !strings.Contains(b.Get("messages.1").Raw+b.Get("messages.2").Raw+b.Get("messages.3").Raw, `"system"`)
		}, says("System message must be at the beginning")},
		"temperature": {func(b gjson.Result) bool { return !b.Get("temperature").Exists() }, row("openai-param-002")},
		"keyword":     {func(b gjson.Result) bool { return !strings.Contains(b.Get("tools").Raw, "additionalProperties") }, says(`Invalid JSON payload received. Unknown name "additionalProperties" at 'tools[0].function_declarations[0].parameters': Cannot find field.`)},
		"items":       {arraysHaveItems, row("openai-toolschema-002")},
		"not strict":  {func(b gjson.Result) bool { return !b.Get("tools.1.function.strict").Bool() }, row("openai-toolschema-004")},
	}
}
