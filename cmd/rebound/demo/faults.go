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
	onPrefills = "prefills" // declares that it continues a given beginning
	onRefuses  = "refuses"  // nobody listens
	onTwoKeys  = "two-keys"
	onMessages = "messages" // speaks Anthropic's format
)

// target is one place that serves the fault's model.
type target struct {
	on     string
	script string // of the upstream, one step a request; see package upstreamtest
	window int    // tokens; 0 is unknown
}

// fault is one row: what goes wrong, and what was promised for it.
type fault struct {
	group   string // a headline above this row
	slug    string // the model that the agent asks the gateway for
	title   string
	targets []target // the first one is what the agent meets straight
	whole   bool     // not streamed
	wire    wire     // the API in which the agent asks
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
	// variant is the text of the first answer; see upstreamtest.TextOf.
	variant string
}

func alone(script string) []target { return on(onPrimary, script) }

func on(upstream, script string) []target { return []target{{on: upstream, script: script}} }

// backed adds a second model that is well.
func backed(t target) []target { return []target{t, {on: onBackup, script: well}} }

func withBackup(script string) []target { return backed(target{on: onPrimary, script: script}) }

const (
	well  = "usage-always,cached=0.6"
	cut   = "cut=0.66"
	small = "ctx=8192"
)

// calls is a step that calls a tool.
func calls(c toolCall) string { return "tool=" + c.name + ",args=" + url.QueryEscape(c.args) }

// refuses is a step that refuses a request in these words.
func refuses(message string) string {
	return "400,type=invalid_request_error,msg=" + url.QueryEscape(message)
}

// leaked is a call as it stands in a text whose server did not recognise it.
func leaked(c toolCall) string {
	return "leak=" + url.QueryEscape(`<tool_call>{"name":"`+c.name+`","arguments":`+c.args+`}</tool_call>`)
}

// faults are the rows in the order in which they are printed. The slugs look
// like no model that reasons.
func faults() []fault {
	return []fault{
		{slug: "healthy", title: "none", targets: alone(well)},

		{group: "limits and outages", slug: "limited", title: "429, Retry-After: 1", targets: alone("429,retry-after=1/" + well)},
		{slug: "limited-long", title: "429, Retry-After: 1, 4 times", targets: alone("429,retry-after=1x4/" + well)},
		{slug: "failed-once", title: "500", targets: alone("500/" + well)},
		{slug: "burst", title: "503, 4 times", targets: alone("503x4/" + well)},
		{slug: "down", title: "503 for ever; fallback", targets: withBackup("503")},
		{slug: "page", title: "502 with HTML page, 3 times", targets: alone("htmlx3/" + well)},
		{slug: "reset", title: "connection reset, 3 times", targets: alone("resetx3/" + well)},
		{slug: "refused", title: "connection refused; fallback", targets: backed(target{on: onRefuses})},

		{group: "silence", slug: "silent", title: "no answer; fallback", targets: withBackup("hang")},
		{slug: "silent-alone", title: "no answer, the next is well", targets: alone("hang/" + well)},
		{slug: "headers-only", title: "only headers; fallback", targets: withBackup("headers-hang")},
		{slug: "late", title: "late first token; fallback", targets: withBackup("first=6s")},

		{group: "broken answers", slug: "cut", title: "stream cut at two thirds", targets: alone(cut + "/" + well)},
		{slug: "prefill", title: "the same; server can continue", targets: on(onPrefills, cut+"/prefill=overlap,"+well)},
		{slug: "stalled", title: "stream stalls half-way", targets: alone("stall=0.5/" + well)},
		{slug: "clean-end", title: "ends without finish_reason", targets: alone("fin=0.66/" + well)},
		{slug: "error-event", title: "error event half-way", targets: alone("error-event=0.5/" + well)},
		{slug: "malformed", title: "one malformed event", targets: alone("malformed=0.3/" + well)},
		{slug: "no-done", title: "no [DONE]", targets: alone("no-done")},
		{slug: "empty", title: "empty 200", targets: alone("empty/" + well)},
		{slug: "role-only", title: "role chunk and nothing else", targets: alone("role-only/" + well)},
		{slug: "half-json", title: "half a JSON body", targets: alone("half-json/" + well), whole: true},
		{slug: "diverges", title: "cut, then another answer", targets: alone("text=A," + cut + "/text=B"), honest: true, variant: "A"},

		{group: "credentials and models", slug: "key-refused", title: "key 1 of 2 unauthorised", targets: on(onTwoKeys, "only-key="+keyOne+",unauthorized")},
		{slug: "key-spent", title: "key 1 of 2 out of quota", targets: on(onTwoKeys, "only-key="+keyOne+",quota")},
		{slug: "gone", title: "model withdrawn; fallback", targets: withBackup("gone")},

		{group: "refused requests", slug: "max-tokens", title: "max_tokens refused", targets: alone("no-param=max_tokens"),
			extra: `"max_tokens":800,`},
		{slug: "temperature", title: "temperature refused", targets: alone("no-param=temperature"), extra: `"temperature":0.2,`},
		{slug: "output-limit", title: "max_tokens above the limit", targets: alone("max-out=4096"), extra: `"max_tokens":32000,`},
		{slug: "overflow", title: "context overflow; fallback", prompt: 48_000, targets: []target{
			{on: onPrimary, script: small}, {on: onBackup, script: well, window: 128_000}}},

		{group: "conversations", slug: "overflow-fit", title: "context overflow, no fallback", targets: alone(small), history: longRead(6),
			sent: []string{"src/part0.go", "src/part5.go", "in.advance(838)"}},
		{slug: "orphan", title: "tool result without its call", targets: alone(refuses(refusedOrphan) + "/" + well), history: orphaned(),
			sent: []string{"!call_gone", "call_ls"}},
		{slug: "schema", title: "tool schema refused", targets: alone(refuses(refusedSchema) + "/" + well), history: listing(),
			sent: []string{"!$schema", toolRun}},
		{slug: "refused-request", title: "refused, and nothing helps", targets: alone(refuses(refusedRequest) + "/" + well), history: listing(), told: true},

		{group: "tool calls", slug: "call-json", title: "arguments are not JSON",
			targets: alone(calls(toolCall{toolRead, `{'path': 'src/main.go', 'limit': '20',}`})), history: listing(), call: readMain},
		{slug: "call-name", title: "called by another name", targets: alone(calls(toolCall{"ReadFile", readMain.args})), history: listing(), call: readMain},
		{slug: "call-text", title: "call leaks into the text", targets: alone(leaked(readMain)), history: listing(), call: readMain},
		{slug: "call-missing", title: "required argument is missing", targets: alone(calls(toolCall{toolRead, `{"limit":20}`}) + "/" + calls(readMain)),
			history: listing(), call: readMain},
		{slug: "call-cut", title: "stream cut in a call", targets: alone(calls(readMain) + ",cut=0.6/" + calls(readMain)), history: listing(), call: readMain},

		{group: "the agent's own failures", slug: "tool-failed", title: "a file is read from the wrong place", targets: alone(well), history: misplaced(),
			sent: []string{"[gateway note", "src/app/settings.py"}},
		{slug: "tool-stuck", title: "the same failure 5 times", targets: alone(calls(runMake)), history: stuck(5), earlier: []string{stuck(3), stuck(4)}, told: true,
			call: runMake, repeats: true},
		{slug: "session-budget", title: "an agent that does not end", targets: alone(calls(readMain)), history: listing(), earlier: slices.Repeat([]string{listing()}, 25), told: true,
			call: readMain, repeats: true},

		{group: "the Responses API", slug: "response-failed", title: "response.failed at the start", targets: alone("error-event/" + well), wire: responses},
		{slug: "response-cut", title: "response cut at two thirds", targets: alone(cut + "/" + well), wire: responses},

		{group: "the Messages API", slug: "message-overloaded", title: "529 overloaded, 3 times", targets: on(onMessages, "overloadedx3/"+well), wire: messages},
		{slug: "message-error", title: "error event at the start", targets: on(onMessages, "error-event,type=overloaded_error/"+well), wire: messages},
		{slug: "message-cut", title: "message cut at two thirds", targets: on(onMessages, cut+"/"+well), wire: messages},
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
func (f *fault) text(model string) string { return upstreamtest.TextOf(model, f.variant, answerSize) }

// script gives the upstream the fault's scripts, from their beginning.
func (f *fault) script(up *upstreamtest.Running) error {
	err := up.Script(f.straightModel(), f.targets[0].script)
	for k, t := range f.targets {
		err = errors.Join(err, up.Script(f.targetModel(k), t.script))
	}
	return err
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
	if f.wire.elsewhere() {
		return f.wire.ask(model, ask)
	}
	return fmt.Sprintf(`{"model":%s,"stream":%v,%s%s"messages":[{"role":"system","content":"You are a coding agent."},{"role":"user","content":%q}%s]}`,
		quote(model), !f.whole, tools, f.extra, ask, history)
}
