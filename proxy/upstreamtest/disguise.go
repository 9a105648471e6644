package upstreamtest

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// disguise is how a known server differs from OpenAI's: its model list, and its
// answers to requests whose model has no script.
type disguise struct {
	server      string // its Server header
	owner       string // owned_by in its model list
	windowField string // the field in its model list with the window as N, or ""
	window      int    // in tokens
	truncates   bool   // longer prompts are silently cut at their beginning
	// script returns the step that answers a request.
	script func(q *request) string
}

// disguises are the servers that Options.As names.
var disguises = map[string]disguise{
	// https://github.com/ggml-org/llama.cpp/tree/master/tools/server
	"llama.cpp": {server: "llama.cpp", owner: "llamacpp", windowField: `"meta":{"n_ctx":N,"n_ctx_train":8192}`, window: 4096, script: func(q *request) string {
		if q.prefix != "" && !q.field("continue_final_message").Bool() {
			return "prefill=echo"
		}
		return "ctx=4096," + modelStep(q)
	}},
	// https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html, started without a parser for tool calls
	"vllm": {server: "uvicorn", owner: "vllm", windowField: `"max_model_len":N`, window: 8192, script: func(q *request) string {
		const tools = `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`
		switch n := outputLimit(q); {
		case q.tools != "":
			return refusalStep("BadRequestError", tools)
		case n > 8192:
			return refusalStep("BadRequestError", fmt.Sprintf("'max_tokens' or 'max_completion_tokens' is too large: %d. This model's maximum context length is 8192 tokens and your request "+
				"has %d input tokens (%d > 8192 - %d).", n, q.promptTokens(), n, q.promptTokens()))
		case q.prefix != "" && !q.field("continue_final_message").Bool():
			return "prefill=ignore"
		}
		return "ctx=8192," + modelStep(q)
	}},
	// https://learn.microsoft.com/azure/ai-foundry/openai/reference: a deployment of a reasoning model
	"azure": {script: func(q *request) string {
		return requireCredential(q, "no-param=max_tokens,no-param=temperature,no-param=top_p,no-param=stop,max-out=100000,prefill=ignore,"+modelStep(q))
	}},
	// https://openrouter.ai/docs/api-reference/overview
	"openrouter": {server: "cloudflare", owner: "openrouter", windowField: `"context_length":N`, window: 131072, script: func(q *request) string {
		if n := outputLimit(q); n > 131072 {
			return requireCredential(q, refusalStep("invalid_request_error", fmt.Sprintf("This endpoint's maximum context length is 131072 tokens. "+
				"However, you requested about %d tokens (%d of text input, %d in the output). "+
				"Please reduce the length of either one, or use the context-compression plugin to compress your prompt automatically.", n+q.promptTokens(), q.promptTokens(), n)))
		}
		if q.tools != "" {
			return requireCredential(q, "call=merged,tool")
		}
		return requireCredential(q, modelStep(q))
	}},
	// https://api-docs.deepseek.com: a prefill must be marked
	"deepseek": {server: "CloudFront", owner: "deepseek", window: 65536, script: func(q *request) string {
		marked := strings.Contains(q.messages, `"prefix":true`)
		switch {
		case outputLimit(q) > 8192:
			return requireCredential(q, refusalStep("invalid_request_error", "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"))
		case q.lastRole == "assistant" && !marked:
			return requireCredential(q, refusalStep("invalid_request_error", "The last message must be a user message, or an assistant message with prefix mode on (refer to "+
				"https://api-docs.deepseek.com/guides/chat_prefix_completion)."))
		}
		return requireCredential(q, modelStep(q))
	}},
	// https://github.com/ollama/ollama/blob/main/docs/faq.mdx: by default the window is 4,096 tokens for any model
	"silent": {owner: "library", window: 4096, truncates: true, script: modelStep},
}

// Disguises returns the possible values of Options.As.
func Disguises() []string {
	var names []string
	for name := range disguises {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// codeWord finds a code word in a conversation. Tests ask for it to see whether the
// model received the whole conversation.
var codeWord = regexp.MustCompile(`code word (?:of this conversation )?is ([A-Za-z0-9-]+)`)

// modelStep returns the step of a cooperative model: it calls an offered tool, or else
// repeats the code word of the conversation.
func modelStep(q *request) string {
	read := q.messages + q.instructions
	if q.readLimit > 0 && len(read) > 4*q.readLimit {
		read = read[len(read)-4*q.readLimit:]
	}
	switch word := codeWord.FindStringSubmatch(read); {
	case q.tools != "":
		return "tool"
	case word != nil:
		return "leak=The+code+word+is+" + word[1] + "."
	case strings.Contains(read, "code word"):
		return "leak=I+know+of+no+such+word."
	}
	return "ok"
}

// requireCredential returns the step, or 401 without a credential or with one that
// begins with "wrong".
func requireCredential(q *request, step string) string {
	if q.credential == "" || strings.HasPrefix(q.credential, "wrong") {
		return "unauthorized"
	}
	return step
}

// refusalStep returns the step of a 400 with this type and message.
func refusalStep(typ, msg string) string {
	return "400,type=" + url.PathEscape(typ) + ",msg=" + url.QueryEscape(msg)
}

// outputLimit returns the requested output limit in tokens, 0 for none.
func outputLimit(q *request) int {
	return int(max(q.field("max_tokens").Int(), q.field("max_completion_tokens").Int()))
}
