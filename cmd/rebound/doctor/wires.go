package doctor

import (
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// wire is how an API is asked and how its answers are read.
type wire struct {
	format   transcript.Format // of requests
	path     string            // of requests, below the base URL
	key      string            // environment variable with a client's credential
	models   string            // how the names of its models begin, if another API has all others
	usual    map[string]any    // parameters that agents usually send and other APIs lack
	streamed map[string]any    // parameters of streamed requests
	prefills []recovery.Prefill
	instruct func(q map[string]any, text string) // adds instructions to a question
	tool     func(name, about string, schema map[string]any) map[string]any
	add      func(*answer, gjson.Result) // adds an answer, or an event of a streamed one
}

var wires = [transcript.APICount]wire{
	transcript.OpenAI: {
		format: transcript.Chat, path: "/chat/completions", key: "OPENAI_API_KEY",
		usual:    map[string]any{"stop": []string{"\n\n\n\n"}, "seed": 7, "user": "rebound-doctor"},
		streamed: map[string]any{"stream_options": map[string]any{"include_usage": true}},
		prefills: []recovery.Prefill{recovery.PrefillAssistant, recovery.PrefillContinue, recovery.PrefillPrefix},
		instruct: func(q map[string]any, text string) {
			q["messages"] = append([]any{map[string]any{"role": "developer", "content": text}}, q["messages"].([]any)...)
		},
		tool: func(name, about string, schema map[string]any) map[string]any {
			f := map[string]any{"name": name, "description": about, "parameters": schema}
			return map[string]any{"tools": []any{map[string]any{"type": "function", "function": f}}, "parallel_tool_calls": true}
		},
		add: (*answer).completion,
	},
	transcript.Anthropic: {
		format: transcript.Messages, path: "/messages", key: "ANTHROPIC_API_KEY", models: "claude",
		usual:    map[string]any{"stop_sequences": []string{"<end>"}, "metadata": map[string]any{"user_id": "rebound-doctor"}},
		prefills: []recovery.Prefill{recovery.PrefillAssistant},
		instruct: func(q map[string]any, text string) { q["system"] = text },
		tool: func(name, about string, schema map[string]any) map[string]any {
			return map[string]any{"tools": []any{map[string]any{"name": name, "description": about, "input_schema": schema}}}
		},
		add: (*answer).message,
	},
}

// completion adds a chat completion, or a chunk of one.
func (a *answer) completion(e gjson.Result) {
	choice := e.Get("choices.0")
	said := choice.Get("delta")
	if !said.IsObject() {
		said = choice.Get("message")
	}
	a.text += said.Get("content").String()
	a.reasoned = a.reasoned || said.Get("reasoning_content").String() != "" || said.Get("reasoning").String() != ""
	said.Get("tool_calls").ForEach(func(_, c gjson.Result) bool {
		id := c.Get("id").Str
		if last := len(a.calls) - 1; last < 0 || id != "" && id != a.calls[last].id {
			a.merged = a.merged || last >= 0 && c.Get("index").Exists() && c.Get("index").Int() == int64(last)
			a.calls = append(a.calls, toolCall{id: id})
		}
		at := &a.calls[len(a.calls)-1]
		if name := c.Get("function.name").Str; at.name == "" {
			at.name = name
		}
		at.args += c.Get("function.arguments").String()
		return true
	})
	if f := choice.Get("finish_reason").Str; f != "" {
		a.finish = f
	}
	if u := e.Get("usage"); u.IsObject() {
		a.prompt, a.output = int(u.Get("prompt_tokens").Int()), int(u.Get("completion_tokens").Int())
	}
}

// message adds a message of the Messages API, or a stream event.
func (a *answer) message(e gjson.Result) {
	usage := func(u gjson.Result) {
		if n := u.Get("input_tokens").Int() + u.Get("cache_read_input_tokens").Int() + u.Get("cache_creation_input_tokens").Int(); n > 0 {
			a.prompt = int(n)
		}
		if n := u.Get("output_tokens").Int(); n > 0 {
			a.output = int(n)
		}
	}
	block := func(b gjson.Result) {
		switch b.Get("type").Str {
		case "text":
			a.text += b.Get("text").Str
		case "thinking", "redacted_thinking":
			a.reasoned = true
		case "tool_use":
			a.calls = append(a.calls, toolCall{id: b.Get("id").Str, name: b.Get("name").Str})
			if in := b.Get("input"); in.IsObject() && in.Raw != "{}" {
				a.calls[len(a.calls)-1].args = in.Raw
			}
		}
	}
	switch e.Get("type").Str {
	case "message":
		e.Get("content").ForEach(func(_, b gjson.Result) bool { block(b); return true })
		a.finish = e.Get("stop_reason").Str
		usage(e.Get("usage"))
	case "message_start":
		usage(e.Get("message.usage"))
	case "content_block_start":
		block(e.Get("content_block"))
	case "content_block_delta":
		a.text += e.Get("delta.text").Str
		if n := len(a.calls); n > 0 {
			a.calls[n-1].args += e.Get("delta.partial_json").Str
		}
	case "message_delta":
		if f := e.Get("delta.stop_reason").Str; f != "" {
			a.finish = f
		}
		usage(e.Get("usage"))
	case "message_stop":
		a.ended = true
	}
}
