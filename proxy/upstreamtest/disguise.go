package upstreamtest

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// disguise is how a known server differs from OpenAI's: how it lists its models, and
// what it does with a request whose model has no script.
type disguise struct {
	server string // its Server header
	owner  string // of the models that it lists
	listed string // the field of its list that tells the window, N; "" tells none
	window int    // in tokens
	silent bool   // what is longer than the window is cut at its beginning, without a word
	// script is the step that answers a request.
	script func(q *request) string
}

// disguises are the servers that Options.As names.
var disguises = map[string]disguise{
	// https://github.com/ggml-org/llama.cpp/tree/master/tools/server
	"llama.cpp": {server: "llama.cpp", owner: "llamacpp", listed: `"meta":{"n_ctx":N,"n_ctx_train":8192}`, window: 4096, script: func(q *request) string {
		if q.prefix != "" && !q.field("continue_final_message").Bool() {
			return "prefill=echo"
		}
		return "ctx=4096," + called(q)
	}},
	// https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html, started without a parser for tool calls
	"vllm": {server: "uvicorn", owner: "vllm", listed: `"max_model_len":N`, window: 8192, script: func(q *request) string {
		const tools = `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`
		switch n := outputLimit(q); {
		case q.tools != "":
			return refusing("BadRequestError", tools)
		case n > 8192:
			return refusing("BadRequestError", fmt.Sprintf("'max_tokens' or 'max_completion_tokens' is too large: %d. This model's maximum context length is 8192 tokens and your request "+
				"has %d input tokens (%d > 8192 - %d).", n, q.promptTokens(), n, q.promptTokens()))
		case q.prefix != "" && !q.field("continue_final_message").Bool():
			return "prefill=ignore"
		}
		return "ctx=8192," + called(q)
	}},
	// https://learn.microsoft.com/azure/ai-foundry/openai/reference: a deployment of a model that reasons
	"azure": {script: func(q *request) string {
		return guarded(q, "no-param=max_tokens,no-param=temperature,no-param=top_p,no-param=stop,max-out=100000,prefill=ignore,"+called(q))
	}},
	// https://openrouter.ai/docs/api-reference/overview
	"openrouter": {server: "cloudflare", owner: "openrouter", listed: `"context_length":N`, window: 131072, script: func(q *request) string {
		if n := outputLimit(q); n > 131072 {
			return guarded(q, refusing("invalid_request_error", fmt.Sprintf("This endpoint's maximum context length is 131072 tokens. "+
				"However, you requested about %d tokens (%d of text input, %d in the output). "+
				"Please reduce the length of either one, or use the context-compression plugin to compress your prompt automatically.", n+q.promptTokens(), q.promptTokens(), n)))
		}
		if q.tools != "" {
			return guarded(q, "call=merged,tool")
		}
		return guarded(q, called(q))
	}},
	// https://api-docs.deepseek.com: a beginning of the answer is continued where it is marked
	"deepseek": {server: "CloudFront", owner: "deepseek", window: 65536, script: func(q *request) string {
		marked := strings.Contains(q.messages, `"prefix":true`)
		switch {
		case outputLimit(q) > 8192:
			return guarded(q, refusing("invalid_request_error", "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"))
		case q.lastRole == "assistant" && !marked:
			return guarded(q, refusing("invalid_request_error", "The last message must be a user message, or an assistant message with prefix mode on (refer to "+
				"https://api-docs.deepseek.com/guides/chat_prefix_completion)."))
		}
		return guarded(q, called(q))
	}},
	// https://github.com/ollama/ollama/blob/main/docs/faq.mdx: its window is 4,096 tokens, whatever the model could take
	"silent": {owner: "library", window: 4096, silent: true, script: called},
}

// Disguises are the names that Options.As may have.
func Disguises() []string {
	var names []string
	for name := range disguises {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// codeWord is a word that a conversation gives away, and that a reader of all of it can repeat.
var codeWord = regexp.MustCompile(`code word (?:of this conversation )?is ([A-Za-z0-9-]+)`)

// called is the step of a model that does what it is asked to: it calls the tool that is
// offered, and repeats a code word that it has read and is asked for.
func called(q *request) string {
	read := q.messages + q.instructions
	if q.reads > 0 && len(read) > 4*q.reads {
		read = read[len(read)-4*q.reads:]
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

// guarded is a step for those who send a credential that is not wrong.
func guarded(q *request, step string) string {
	if q.credential == "" || strings.HasPrefix(q.credential, "wrong") {
		return "unauthorized"
	}
	return step
}

// refusing is the step of a refusal in a server's own words.
func refusing(typ, msg string) string {
	return "400,type=" + url.PathEscape(typ) + ",msg=" + url.QueryEscape(msg)
}

// outputLimit is the largest output that a request asks for, in tokens.
func outputLimit(q *request) int {
	return int(max(q.field("max_tokens").Int(), q.field("max_completion_tokens").Int()))
}
