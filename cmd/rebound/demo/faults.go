package demo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Upstreams of the demo's configuration.
const (
	onPrimary  = "primary"
	onBackup   = "backup"
	onPrefills = "prefills" // declares that it continues a given beginning
	onRefuses  = "refuses"  // nobody listens
	onTwoKeys  = "two-keys"
)

// target is one place that serves the fault's model.
type target struct {
	on     string
	steps  []step
	window int // tokens; 0 is unknown
}

// fault is one row: what goes wrong, and what was promised for it.
type fault struct {
	group   string // a headline above this row
	slug    string // the model that the agent asks the gateway for
	title   string
	targets []target // the first one is what the agent meets straight
	whole   bool     // not streamed
	items   bool     // over the Responses API, with nothing stored
	extra   string   // more fields of the request, each followed by a comma
	prompt  int      // bytes of the question beyond the usual
	// honest says that nothing can save this one: what is promised is an error.
	honest bool
	// told says that nothing can do what was asked for: what is promised is a
	// message that tells the user so, in place of an error.
	told bool
	// history is the conversation behind the user's first message, as JSON; with
	// one, tools are offered. sent is what the upstream gets of it in the end:
	// texts that are in the last request, or with a ! in front are not.
	history string
	sent    []string
	// earlier are the conversations when the agent asked before, the oldest first:
	// requests that are answered and not shown.
	earlier []string
	// call is the call that the model means. repeats says that it failed five
	// times already, so that once more is no answer.
	call    toolCall
	repeats bool
	// variant is the text of the first answer; see textOf.
	variant string
}

func alone(steps ...step) []target { return on(onPrimary, steps...) }

func on(upstream string, steps ...step) []target { return []target{{on: upstream, steps: steps}} }

// backed adds a second model that is well.
func backed(t target) []target { return []target{t, {on: onBackup, steps: []step{ok}}} }

func withBackup(s step) []target { return backed(target{on: onPrimary, steps: []step{s}}) }

// faults are the rows in the order in which they are printed. The slugs look
// like no model that reasons.
func faults() []fault {
	// Errors in the words of real servers.
	limited := fails(429, "requests", "rate_limit_exceeded", "Rate limit reached on requests per min (RPM): Limit 60, Used 60, Requested 1.", "Retry-After: 1")
	broken := fails(500, "server_error", "", "The server had an error while processing your request. Sorry about that!")
	overloaded := fails(503, "service_unavailable", "", "The engine is currently overloaded, please try again later.")
	unauthorized := fails(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-demo*****.")
	spent := fails(429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.")
	gone := fails(404, "invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it.")
	noMaxTokens := fails(400, "invalid_request_error", "unsupported_parameter",
		"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	noTemperature := fails(400, "invalid_request_error", "unsupported_value",
		"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.")
	tooMuch := fails(400, "invalid_request_error", "invalid_value",
		"max_tokens is too large: 32000. This model supports at most 4096 completion tokens, whereas you provided 32000.")
	cut := until(0.66, breaks)
	return []fault{
		{slug: "healthy", title: "none", targets: alone(ok)},

		{group: "limits and outages", slug: "limited", title: "429, Retry-After: 1", targets: alone(limited, ok)},
		{slug: "limited-long", title: "429, Retry-After: 1, 4 times", targets: alone(limited, limited, limited, limited, ok)},
		{slug: "failed-once", title: "500", targets: alone(broken, ok)},
		{slug: "burst", title: "503, 4 times", targets: alone(overloaded, overloaded, overloaded, overloaded, ok)},
		{slug: "down", title: "503 for ever; fallback", targets: withBackup(overloaded)},
		{slug: "page", title: "502 with HTML page, 3 times", targets: alone(page, page, page, ok)},
		{slug: "reset", title: "connection reset, 3 times", targets: alone(reset, reset, reset, ok)},
		{slug: "refused", title: "connection refused; fallback", targets: backed(target{on: onRefuses})},

		{group: "silence", slug: "silent", title: "no answer; fallback", targets: withBackup(hangs)},
		{slug: "silent-alone", title: "no answer, the next is well", targets: alone(hangs, ok)},
		{slug: "headers-only", title: "only headers; fallback", targets: withBackup(onlyHeaders)},
		{slug: "late", title: "late first token; fallback", targets: withBackup(late)},

		{group: "broken answers", slug: "cut", title: "stream cut at two thirds", targets: alone(cut, ok)},
		{slug: "prefill", title: "the same; server can continue", targets: on(onPrefills, cut, continues)},
		{slug: "stalled", title: "stream stalls half-way", targets: alone(until(0.5, hangs), ok)},
		{slug: "clean-end", title: "ends without finish_reason", targets: alone(until(0.66, endsCleanly), ok)},
		{slug: "error-event", title: "error event half-way", targets: alone(until(0.5, errorEvent), ok)},
		{slug: "malformed", title: "one malformed event", targets: alone(until(0.3, malformedEvent), ok)},
		{slug: "no-done", title: "no [DONE]", targets: alone(withoutDone)},
		{slug: "empty", title: "empty 200", targets: alone(nothing, ok)},
		{slug: "role-only", title: "role chunk and nothing else", targets: alone(onlyRole, ok)},
		{slug: "half-json", title: "half a JSON body", targets: alone(halfJSON, ok), whole: true},
		{slug: "diverges", title: "cut, then another answer", targets: alone(variantUntil("A", 0.66, breaks), says("B")), honest: true, variant: "A"},

		{group: "credentials and models", slug: "key-refused", title: "key 1 of 2 unauthorised", targets: on(onTwoKeys, unless(otherKey, unauthorized))},
		{slug: "key-spent", title: "key 1 of 2 out of quota", targets: on(onTwoKeys, unless(otherKey, spent))},
		{slug: "gone", title: "model withdrawn; fallback", targets: withBackup(gone)},

		{group: "refused requests", slug: "max-tokens", title: "max_tokens refused", targets: alone(unless(without("max_tokens"), noMaxTokens)),
			extra: `"max_tokens":800,`},
		{slug: "temperature", title: "temperature refused", targets: alone(unless(without("temperature"), noTemperature)), extra: `"temperature":0.2,`},
		{slug: "output-limit", title: "max_tokens above the limit", targets: alone(unless(modest, tooMuch)), extra: `"max_tokens":32000,`},
		{slug: "overflow", title: "context overflow; fallback", prompt: 48_000, targets: []target{
			{on: onPrimary, steps: []step{unless(fits, overflow)}}, {on: onBackup, steps: []step{ok}, window: 128_000}}},

		{group: "conversations", slug: "overflow-fit", title: "context overflow, no fallback", targets: alone(unless(fits, overflow)), history: longRead(6),
			sent: []string{"src/part0.go", "src/part5.go", "in.advance(838)"}},
		{slug: "orphan", title: "tool result without its call", targets: alone(refuses(refusedOrphan), ok), history: orphaned(),
			sent: []string{"!call_gone", "call_ls"}},
		{slug: "schema", title: "tool schema refused", targets: alone(refuses(refusedSchema), ok), history: listing(),
			sent: []string{"!$schema", toolRun}},
		{slug: "refused-request", title: "refused, and nothing helps", targets: alone(refuses(refusedRequest), ok), history: listing(), told: true},

		{group: "tool calls", slug: "call-json", title: "arguments are not JSON",
			targets: alone(calls(toolCall{toolRead, `{'path': 'src/main.go', 'limit': '20',}`})), history: listing(), call: readMain},
		{slug: "call-name", title: "called by another name", targets: alone(calls(toolCall{"ReadFile", readMain.args})), history: listing(), call: readMain},
		{slug: "call-text", title: "call leaks into the text", targets: alone(leaked), history: listing(), call: readMain},
		{slug: "call-missing", title: "required argument is missing", targets: alone(calls(toolCall{toolRead, `{"limit":20}`}), calls(readMain)),
			history: listing(), call: readMain},
		{slug: "call-cut", title: "stream cut in a call", targets: alone(callUntil(readMain, 0.6, breaks), calls(readMain)), history: listing(), call: readMain},

		{group: "the agent's own failures", slug: "tool-failed", title: "a file is read from the wrong place", targets: alone(ok), history: misplaced(),
			sent: []string{"[gateway note", "src/app/settings.py"}},
		{slug: "tool-stuck", title: "the same failure 5 times", targets: alone(calls(runMake)), history: stuck(5), earlier: []string{stuck(3), stuck(4)}, told: true,
			call: runMake, repeats: true},
		{slug: "session-budget", title: "an agent that does not end", targets: alone(calls(readMain)), history: listing(), earlier: slices.Repeat([]string{listing()}, 25), told: true,
			call: readMain, repeats: true},

		{group: "the Responses API", slug: "response-failed", title: "response.failed at the start", targets: alone(responseFailed, ok), items: true},
		{slug: "response-cut", title: "response cut at two thirds", targets: alone(cut, ok), items: true},
	}
}

// The calls that the model means in the rows about calls.
var (
	readMain = toolCall{toolRead, `{"path":"src/main.go","limit":20}`}
	runMake  = toolCall{toolRun, `{"command":"make"}`}
)

// Refusals in the words of real servers.
const (
	refusedOrphan  = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
	refusedSchema  = "Invalid JSON payload received. Unknown name \"$schema\" at 'tools[0].function_declarations[0].parameters': Cannot find field."
	refusedRequest = "The request was rejected because it violates a constraint of this deployment."
)

// refuses is a request error in these words.
func refuses(message string) step { return fails(400, "invalid_request_error", "", message) }

// overflow states the tokens of the request, four bytes each.
func overflow(x *exchange) {
	fails(400, "invalid_request_error", "context_length_exceeded",
		fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. "+
			"Please reduce the length of the messages.", smallWindow, len(x.body)/4))(x)
}

const smallWindow = 8192

// What a request may have so that the errors above do not come.

func fits(x *exchange) bool     { return len(x.body)/4 <= smallWindow }
func otherKey(x *exchange) bool { return x.r.Header.Get("Authorization") != "Bearer "+keyOne }
func modest(x *exchange) bool   { return gjson.Get(x.body, "max_tokens").Int() <= 4096 }

func without(field string) func(x *exchange) bool {
	return func(x *exchange) bool { return !gjson.Get(x.body, field).Exists() }
}

// leaked is a call as it stands in a text whose server did not recognise it.
func leaked(x *exchange) {
	x.answer(`<tool_call>{"name":"`+toolRead+`","arguments":`+readMain.args+`}</tool_call>`, 1, nil)
}

// straightModel is the model that the agent asks the upstream for.
func (f *fault) straightModel() string { return "straight-" + f.slug }

// targetModel is what the gateway asks the i-th target for.
func (f *fault) targetModel(i int) string { return fmt.Sprintf("%s-%d", f.slug, i+1) }

// answers is the name of the model whose text is the right one through the
// gateway: the last target is the one that is well.
func (f *fault) answers() string {
	return f.targetModel(len(f.targets) - 1)
}

// before is the model of the request that is not shown. It is well.
func (f *fault) before(i int) string { return fmt.Sprintf("%s-before-%d", f.slug, i) }

// text is the whole answer of a model to this fault's question.
func (f *fault) text(model string) string { return textOf(model, f.variant) }

// path is where the agent sends it.
func (f *fault) path() string {
	if f.items {
		return "/responses"
	}
	return "/chat/completions"
}

// question is the request that the agent sends.
func (f *fault) question(model string) string {
	ask := "Why does the build fail?" + strings.Repeat(" And why?", f.prompt/len(" And why?"))
	tools, history := "", ""
	if f.history != "" {
		tools, history = toolList(), ","+f.history
	}
	for i, before := range f.earlier {
		if model == f.before(i) {
			history = "," + before
		}
	}
	if f.items {
		return fmt.Sprintf(`{"model":%s,"stream":true,"store":false,"input":[{"role":"system","content":"You are a coding agent."},{"role":"user","content":%q}]}`, quote(model), ask)
	}
	return fmt.Sprintf(`{"model":%s,"stream":%v,%s%s"messages":[{"role":"system","content":"You are a coding agent."},{"role":"user","content":%q}%s]}`,
		quote(model), !f.whole, tools, f.extra, ask, history)
}
