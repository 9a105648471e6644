package doctor

import (
	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// wire is how an API is asked and how its answers are read.
type wire struct {
	format   transcript.Format // of requests
	answers  stream.Format
	path     string         // of requests, below the base URL
	key      string         // environment variable with a client's credential
	models   string         // how the names of its models begin, if another API has all others
	usual    map[string]any // parameters that agents usually send and other APIs lack
	streamed map[string]any // parameters of streamed requests
	prefills []recovery.Prefill
	instruct func(q map[string]any, text string) // adds instructions to a question
	tool     func(name, about string, schema map[string]any) map[string]any
}

var wires = [transcript.APICount]wire{
	transcript.OpenAI: {
		format: transcript.Chat, answers: stream.Chat{}, path: "/chat/completions", key: "OPENAI_API_KEY",
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
	},
	transcript.Anthropic: {
		format: transcript.Messages, answers: stream.Messages{}, path: "/messages", key: "ANTHROPIC_API_KEY", models: "claude",
		usual:    map[string]any{"stop_sequences": []string{"<end>"}, "metadata": map[string]any{"user_id": "rebound-doctor"}},
		prefills: []recovery.Prefill{recovery.PrefillAssistant},
		instruct: func(q map[string]any, text string) { q["system"] = text },
		tool: func(name, about string, schema map[string]any) map[string]any {
			return map[string]any{"tools": []any{map[string]any{"name": name, "description": about, "input_schema": schema}}}
		},
	},
}
