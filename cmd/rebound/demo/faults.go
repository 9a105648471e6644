package demo

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// Upstreams of the demo's configuration.
const (
	onPrimary  = "primary"
	onBackup   = "backup"
	onPrefills = "prefills" // configured to support prefill
	onRefuses  = "refuses"  // refuses connections
	onTwoKeys  = "two-keys"
	onMessages = "messages" // uses the Messages API
)

// target is an upstream that serves the fault's model.
type target struct {
	on     string
	script string // of the upstream, one step per request; see package upstreamtest
	window int    // tokens; 0 is unknown
}

// fault is one row: the fault and the expected result.
type fault struct {
	group   string // the headline above this row, or ""
	slug    string // the model in requests to the gateway
	title   string
	targets []target // the first is also the one that the agent uses directly
	whole   bool     // not streamed
	silent  bool     // the first target does not answer in time
	wire    wire     // the API that the agent uses
	extra   string   // more fields of the request, each followed by a comma
	prompt  int      // additional bytes of the question
	// unrecoverable faults should end with an error.
	unrecoverable bool
	// explained faults should end with a message that explains to the user why the request
	// cannot be done, instead of an error.
	explained bool
	// history is the conversation after the user's first message, as JSON; with one, the request
	// offers tools. sent lists texts that the last request to the upstream must contain or, with
	// a leading !, must not.
	history string
	sent    []string
	// earlier holds the histories of requests before the shown one, the oldest first.
	earlier []string
	// call is the call that the model means. If repeats is set it has already failed five times,
	// so the same call again is wrong.
	call    toolCall
	repeats bool
	// variant is the text of the first answer; see upstreamtest.TextOf.
	variant string
}

func alone(script string) []target { return on(onPrimary, script) }

func on(upstream, script string) []target { return []target{{on: upstream, script: script}} }

// backed adds a healthy second target.
func backed(t target) []target { return []target{t, {on: onBackup, script: healthy}} }

func withBackup(script string) []target { return backed(target{on: onPrimary, script: script}) }

const (
	healthy     = "usage-always,cached=0.6"
	cutLate     = "cut=0.66"
	smallWindow = "ctx=8192"
)

// calls is a step that calls a tool.
func calls(c toolCall) string { return "tool=" + c.name + ",args=" + url.QueryEscape(c.args) }

// refuses is a step that refuses a request with this message.
func refuses(message string) string {
	return "400,type=invalid_request_error,msg=" + url.QueryEscape(message)
}

// leaked is a step with a call in the text, which the server's parser missed.
func leaked(c toolCall) string {
	return "leak=" + url.QueryEscape(`<tool_call>{"name":"`+c.name+`","arguments":`+c.args+`}</tool_call>`)
}

// faults returns the rows in the order of the table. No slug looks like the name of a reasoning
// model, for which the gateway would wait longer.
func faults() []fault {
	return []fault{
		{slug: "healthy", title: "none", targets: alone(healthy)},

		{group: "limits and outages", slug: "limited", title: "429, Retry-After: 1", targets: alone("429,retry-after=1/" + healthy)},
		{slug: "limited-long", title: "429, Retry-After: 1, 4 times", targets: alone("429,retry-after=1x4/" + healthy)},
		{slug: "failed-once", title: "500", targets: alone("500/" + healthy)},
		{slug: "burst", title: "503, 4 times", targets: alone("503x4/" + healthy)},
		{slug: "down", title: "503 for ever; fallback", targets: withBackup("503")},
		{slug: "page", title: "502 with HTML page, 3 times", targets: alone("htmlx3/" + healthy)},
		{slug: "reset", title: "connection reset, 3 times", targets: alone("resetx3/" + healthy)},
		{slug: "refused", title: "connection refused; fallback", targets: backed(target{on: onRefuses})},

		{group: "silence", slug: "silent", title: "no answer; fallback", targets: withBackup("hang"), silent: true},
		{slug: "silent-alone", title: "no answer, the next is well", targets: alone("hang/" + healthy), silent: true},
		{slug: "headers-only", title: "only headers; fallback", targets: withBackup("headers-hang"), silent: true},
		{slug: "late", title: "late first token; fallback", targets: withBackup("first=6s"), silent: true},

		{group: "broken answers", slug: "cut", title: "stream cut at two thirds", targets: alone(cutLate + "/" + healthy)},
		{slug: "prefill", title: "the same; server can continue", targets: on(onPrefills, cutLate+"/prefill=overlap,"+healthy)},
		{slug: "stalled", title: "stream stalls half-way", targets: alone("stall=0.5/" + healthy)},
		{slug: "clean-end", title: "ends without finish_reason", targets: alone("fin=0.66/" + healthy)},
		{slug: "error-event", title: "error event half-way", targets: alone("error-event=0.5/" + healthy)},
		{slug: "malformed", title: "one malformed event", targets: alone("malformed=0.3/" + healthy)},
		{slug: "no-done", title: "no [DONE]", targets: alone("no-done")},
		{slug: "empty", title: "empty 200", targets: alone("empty/" + healthy)},
		{slug: "role-only", title: "role chunk and nothing else", targets: alone("role-only/" + healthy)},
		{slug: "half-json", title: "half a JSON body", targets: alone("half-json/" + healthy), whole: true},
		{slug: "diverges", title: "cut, then another answer", targets: alone("text=A," + cutLate + "/text=B"), unrecoverable: true, variant: "A"},

		{group: "credentials and models", slug: "key-refused", title: "key 1 of 2 unauthorised", targets: on(onTwoKeys, "only-key="+keyOne+",unauthorized")},
		{slug: "key-spent", title: "key 1 of 2 out of quota", targets: on(onTwoKeys, "only-key="+keyOne+",quota")},
		{slug: "gone", title: "model withdrawn; fallback", targets: withBackup("gone")},

		{group: "refused requests", slug: "max-tokens", title: "max_tokens refused", targets: alone("no-param=max_tokens"),
			extra: `"max_tokens":800,`},
		{slug: "temperature", title: "temperature refused", targets: alone("no-param=temperature"), extra: `"temperature":0.2,`},
		{slug: "output-limit", title: "max_tokens above the limit", targets: alone("max-out=4096"), extra: `"max_tokens":32000,`},
		{slug: "overflow", title: "context overflow; fallback", prompt: 48_000, targets: []target{
			{on: onPrimary, script: smallWindow}, {on: onBackup, script: healthy, window: 128_000}}},

		{group: "conversations", slug: "overflow-fit", title: "context overflow, no fallback", targets: alone(smallWindow), history: longRead(6),
			sent: []string{"src/part0.go", "src/part5.go", "in.advance(838)"}},
		{slug: "orphan", title: "tool result without its call", targets: alone(refuses(refusedOrphan) + "/" + healthy), history: orphaned(),
			sent: []string{"!call_gone", "call_ls"}},
		{slug: "schema", title: "tool schema refused", targets: alone(refuses(refusedSchema) + "/" + healthy), history: firstTurn(),
			sent: []string{"!$schema", toolRun}},
		{slug: "refused-request", title: "refused, and nothing helps", targets: alone(refuses(refusedRequest) + "/" + healthy), history: firstTurn(), explained: true},

		{group: "tool calls", slug: "call-json", title: "arguments are not JSON",
			targets: alone(calls(toolCall{toolRead, `{'path': 'src/main.go', 'limit': '20',}`})), history: firstTurn(), call: readMain},
		{slug: "call-name", title: "called by another name", targets: alone(calls(toolCall{"ReadFile", readMain.args})), history: firstTurn(), call: readMain},
		{slug: "call-text", title: "call leaks into the text", targets: alone(leaked(readMain)), history: firstTurn(), call: readMain},
		{slug: "call-missing", title: "required argument is missing", targets: alone(calls(toolCall{toolRead, `{"limit":20}`}) + "/" + calls(readMain)),
			history: firstTurn(), call: readMain},
		{slug: "call-cut", title: "stream cut in a call", targets: alone(calls(readMain) + ",cut=0.6/" + calls(readMain)), history: firstTurn(), call: readMain},

		{group: "the agent's own failures", slug: "tool-failed", title: "a file is read from the wrong place", targets: alone(healthy), history: misplaced(),
			sent: []string{"[gateway note", "src/app/settings.py"}},
		{slug: "tool-stuck", title: "the same failure 5 times", targets: alone(calls(runMake)), history: stuck(5), earlier: []string{stuck(3), stuck(4)}, explained: true,
			call: runMake, repeats: true},
		{slug: "session-budget", title: "an agent that does not end", targets: alone(calls(readMain)), history: firstTurn(), earlier: slices.Repeat([]string{firstTurn()}, 25), explained: true,
			call: readMain, repeats: true},

		{group: "the Responses API", slug: "response-failed", title: "response.failed at the start", targets: alone("error-event/" + healthy), wire: responses},
		{slug: "response-cut", title: "response cut at two thirds", targets: alone(cutLate + "/" + healthy), wire: responses},

		{group: "the Messages API", slug: "message-overloaded", title: "529 overloaded, 3 times", targets: on(onMessages, "overloadedx3/"+healthy), wire: messages},
		{slug: "message-error", title: "error event at the start", targets: on(onMessages, "error-event,type=overloaded_error/"+healthy), wire: messages},
		{slug: "message-cut", title: "message cut at two thirds", targets: on(onMessages, cutLate+"/"+healthy), wire: messages},
	}
}

// The calls of the rows about tool calls.
var (
	readMain = toolCall{toolRead, `{"path":"src/main.go","limit":20}`}
	runMake  = toolCall{toolRun, `{"command":"make"}`}
)

// Refusals of real servers.
const (
	refusedOrphan  = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
	refusedSchema  = "Invalid JSON payload received. Unknown name \"$schema\" at 'tools[0].function_declarations[0].parameters': Cannot find field."
	refusedRequest = "The request was rejected because it violates a constraint of this deployment."
)

// straightModel returns the model in requests that go directly to the upstream.
func (f *fault) straightModel() string { return "straight-" + f.slug }

// targetModel returns the model in the gateway's requests to the i-th target.
func (f *fault) targetModel(i int) string { return fmt.Sprintf("%s-%d", f.slug, i+1) }

// answerModel returns the model whose text is right through the gateway: that of the last target,
// which is healthy in the end.
func (f *fault) answerModel() string {
	return f.targetModel(len(f.targets) - 1)
}

// earlierModel returns the model of the i-th earlier request. It is healthy.
func (f *fault) earlierModel(i int) string { return fmt.Sprintf("%s-before-%d", f.slug, i) }

// text returns the complete answer of a model to this fault's question.
func (f *fault) text(model string) string { return upstreamtest.TextOf(model, f.variant, answerSize) }

// script loads the fault's scripts into the upstream, at their first step.
func (f *fault) script(up *upstreamtest.Running) error {
	err := up.Script(f.straightModel(), f.targets[0].script)
	for k, t := range f.targets {
		err = errors.Join(err, up.Script(f.targetModel(k), t.script))
	}
	return err
}

// question returns the request of the agent.
func (f *fault) question(model string) string {
	ask := "Why does the build fail?" + strings.Repeat(" And why?", f.prompt/len(" And why?"))
	tools, history := "", ""
	if f.history != "" {
		tools, history = toolList(), ","+f.history
	}
	for i, before := range f.earlier {
		if model == f.earlierModel(i) {
			history = "," + before
		}
	}
	if f.wire.notChat() {
		return f.wire.ask(model, ask)
	}
	return fmt.Sprintf(`{"model":%s,"stream":%v,%s%s"messages":[{"role":"system","content":"You are a coding agent."},{"role":"user","content":%q}%s]}`,
		quote(model), !f.whole, tools, f.extra, ask, history)
}
