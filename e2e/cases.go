package main

import (
	"slices"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// table is every case. The first target's script is the fault that a client
// meets straight; README.md explains how to read it.
var table = atDefaults(slices.Concat(rateLimits, serverErrors, silence, streams, credentials, requests, healthy))

// atDefaults says what clients of responses get as they ask by themselves, so that the
// upstream would store its answers, if it did not lose those that it could not deliver: the
// same as those that say store: false.
func atDefaults(cases []Case) (list []Case) {
	for _, c := range cases {
		if !c.AfterText {
			list = append(list, c)
			continue
		}
		stored := c
		stored.Name, stored.Want = c.Name+"-stored", "the same of an answer that later requests may name"
		stored.Format, stored.Only = []Format{Responses}, Streamed
		stored.Targets = slices.Clone(c.Targets)
		stored.Targets[0].Script = strings.ReplaceAll(c.Targets[0].Script, "/", ",unkept/") + ",unkept"
		c.Ask.Unstored = true
		list = append(list, c, stored)
	}
	return list
}

const second = time.Second

// Groups of clients that behave alike.
var (
	// asksAgain are the libraries that retry half a body.
	asksAgain = []string{"vercel", "langchain"}
	// losesEvents are the libraries that tell of the broken connection and not
	// of the error event before it.
	losesEvents = []string{"vercel"}
	// renames: it sends max_completion_tokens for max_tokens.
	renames = []string{"langchain"}
)

// one, with and closed are the usual targets.
func one(script string) []Target { return []Target{{Script: script}} }

func withFallback(script string) []Target {
	return []Target{{Script: script}, {On: "backup", Script: "ok"}}
}

var rateLimits = []Case{
	{
		Name: "429-hint", Want: "waits as long as Retry-After asks, then answers",
		Targets: one("429,retry-after=2/ok"),
		Through: []Check{whole(0), attempts(0, 2, 2), apart(0, 1800*time.Millisecond), within(0, 2, 1500*time.Millisecond)},
	},
	{
		Name: "429-hint-ms", Want: "retry-after-ms is obeyed as well",
		Targets: one("429,retry-after-ms=1500/ok"),
		Through: []Check{whole(0), attempts(0, 2, 2), apart(0, 1400*time.Millisecond)},
	},
	{
		Name: "429-hint-5", Want: "lasts longer than the client's own retries; every hint is obeyed",
		Targets:  one("429,retry-after=2x5/ok"),
		Straight: []Check{broken, fails(429)},
		Through:  []Check{whole(0), asked(0, 6, 6), apart(0, 1800*time.Millisecond)},
	},
	{
		Name: "429-hint-20", Want: "with nothing else left even 20 s are waited",
		Targets:  one("429,retry-after=20/ok"),
		Patience: fixed(40 * second),
		Through:  []Check{whole(0), asked(0, 2, 2), apart(0, 19500*time.Millisecond)},
	},
	{
		Name: "429-hint-far", Want: "a wait of 30 s moves to the next target at once",
		Targets:  withFallback("429,retry-after=30"),
		Straight: []Check{broken},
		Through:  []Check{whole(1), asked(0, 1, 1), asked(1, 1, 1), took(Time{}, promptly)},
	},
	{
		Name: "429-5", Want: "without a hint: backs off and answers in the end",
		Targets:  one("429x5/ok"),
		Straight: []Check{broken, fails(429)},
		Through:  []Check{whole(0), asked(0, 6, 6), within(0, 4, 3*second)},
	},
	{
		Name: "429-hint-too-far", Want: "the client's own limit is shorter than the wait: it is no worse off than straight, where it waits by itself",
		Targets: one("429,retry-after=20/ok"), Ask: Ask{Timeout: fixed(5 * second)},
		Client: []string{"openai-node", "openai-python", "langchain"}, Patience: fixed(60 * second),
		Straight: []Check{whole(0)},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "429-for-ever", Want: "at most 4 attempts in 3 s and 9 in half a minute, then the client's 429 with Retry-After",
		Targets:  one("429"),
		Straight: []Check{fails(429)},
		Through:  []Check{fails(0), except(losesEvents, failsLate(429, "rate_limit_exceeded", "rate limit")), attempts(0, 1, 9), within(0, 4, 3*second), retryAfter},
	},
	{
		Name: "429-fallback", Want: "for ever and without a hint: the fallback answers soon",
		Targets:  withFallback("429"),
		Straight: []Check{fails(429)},
		Through:  []Check{whole(1), asked(0, 1, 2), asked(1, 1, 1), took(Time{}, promptly)},
	},
}

// burst is five failures in a row: more than any client's own three tries.
func burst(name, step string) Case {
	return Case{
		Name: name, Want: "five in a row, more than the client's own retries: answers",
		Targets:  one(step + "x5/ok"),
		Straight: []Check{broken, fails(0)},
		Through:  []Check{whole(0), asked(0, 6, 6), attempts(0, 6, 6)},
	}
}

var serverErrors = []Case{
	{
		Name: "500-once", Want: "the same target is asked once more, the fallback is not",
		Targets: withFallback("500/ok"),
		Through: []Check{whole(0), asked(0, 2, 2), asked(1, 0, 0), attemptsHeader},
	},
	{
		Name: "503-fallback", Want: "for ever: one resend at most, then the fallback answers, with its own name and usage",
		Targets: withFallback("503"), Ask: Ask{Usage: true},
		Straight: []Check{fails(503)},
		Through:  []Check{whole(1), asked(0, 1, 2), asked(1, 1, 1), header("X-Rebound-Recovery"), attemptsHeader},
	},
	{
		Name: "503-for-ever", Want: "no fallback: the upstream's own error after half a minute of growing waits",
		Targets:  one("503"),
		Straight: []Check{fails(503)},
		Through:  []Check{fails(0), except(losesEvents, failsLate(503, "service_unavailable", "overloaded")), attempts(0, 2, 12)},
	},
	{
		Name: "500-twice", Want: "asked again, with growing waits: answers",
		Targets: one("500x2/ok"),
		Through: []Check{whole(0), asked(0, 3, 3), attempts(0, 3, 3)},
	},
	{
		Name: "500-for-ever", Want: "the same 500 to the same request: believed at the third time",
		Targets:  one("500"),
		Straight: []Check{fails(500)},
		Through:  []Check{fails(0), attempts(0, 3, 3)},
	},
	burst("502-5", "502"), burst("503-5", "503"), burst("504-5", "504"),
	burst("529-5", "overloaded"), burst("html-5", "html"), burst("reset-5", "reset"), burst("close-5", "close"),
	{
		Name: "html-fallback", Want: "an HTML page for ever: the fallback answers",
		Targets:  withFallback("html"),
		Straight: []Check{fails(502)},
		Through:  []Check{whole(1), asked(0, 1, 2)},
	},
	{
		Name: "html-for-ever", Want: "no fallback: an error in OpenAI's shape",
		Targets:  one("html"),
		Straight: []Check{fails(502)},
		Through:  []Check{failsLate(502), only([]string{plain}, fails(0, "502 bad gateway", "bad gateway"))},
	},
	{
		Name: "reset-fallback", Want: "resets before the headers: the fallback answers",
		Targets:  withFallback("reset"),
		Straight: []Check{fails(0)},
		Through:  []Check{whole(1), asked(0, 1, 2)},
	},
	{
		Name: "refused-fallback", Want: "nobody listens: the fallback answers",
		Targets:  []Target{{On: "closed", Script: "ok"}, {On: "backup", Script: "ok"}},
		Straight: []Check{fails(0)},
		Through:  []Check{whole(1), asked(1, 1, 1), took(Time{}, promptly)},
	},
	{
		Name: "refused", Want: "nobody listens, no fallback: a clear error with a status",
		Targets:  []Target{{On: "closed", Script: "ok"}},
		Straight: []Check{fails(0)},
		Through:  []Check{failsLate(502)},
	},
	{
		Name: "half-json", Want: "half a body is no answer", AfterText: true,
		Targets:  one("half-json/ok"),
		Straight: []Check{except(asksAgain, broken), streamed(broken)},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "short-body", Want: "less than Content-Length is no answer", AfterText: true,
		Targets: one("short/ok"),
		Through: []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "late-error", Want: "a failure after the client was kept awake is an error, never a clean end",
		Targets: one("delay={40s},500"), Pace: "scaled", Patience: fixed(40 * second),
		Straight: []Check{fails(0)},
		Through:  []Check{fails(0), except(losesEvents, failsLate(500, "server_error", "server had an error")), attempts(0, 1, 6)},
	},
}

// promptly is when what waits for nothing has answered on a busy machine: far less than
// the hints of half a minute that are not waited for.
var promptly = fixed(15 * second)

// soon is when an alternative that began at the first-token limit has answered, on a
// busy machine as well.
var soon = Time{Real: 25 * second, Scaled: 12 * second}

var silence = []Case{
	{
		Name: "hang-fallback", Want: "no answer at all: the fallback answers after the first-token limit; asked once",
		Targets: withFallback("hang"), Ask: Ask{Usage: true},
		Straight: []Check{broken},
		Through:  []Check{whole(1), asked(0, 1, 1), asked(1, 1, 1), took(tenth(10*second), soon), attemptsHeader},
	},
	{
		Name: "hang-slow", Want: "the same with a fallback that streams slowly: what has lost does not end what has won",
		Targets:  []Target{{Script: "hang"}, {On: "backup", Script: "chunks=30,gap=50ms"}},
		Straight: []Check{broken},
		Through:  []Check{whole(1), asked(0, 1, 1), asked(1, 1, 1)},
	},
	{
		Name: "hang", Want: "no answer, no fallback: a fresh attempt answers",
		Targets:  one("hang/ok"),
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2), took(tenth(30*second), Time{Real: 45 * second, Scaled: 15 * second})},
	},
	{
		Name: "late-fallback", Want: "a role and then nothing: a sign of life prolongs the limit four times, then the fallback is faster",
		Targets: withFallback("first={100s}"), Format: []Format{Chat}, // response.created and message_start are signs that a model may reason
		Patience: tenth(40 * second), Straight: []Check{broken},
		Through: []Check{whole(1), asked(0, 1, 1), asked(1, 1, 1), took(tenth(10*second), Time{Real: 60 * second, Scaled: 15 * second})},
	},
	{
		Name: "late", Want: "late, but below the limit of a single target: one attempt, uncut",
		Targets: one("first={15s}"),
		Through: []Check{whole(0), asked(0, 1, 1), uncut(0)},
	},
	{
		Name: "late-long", Want: "beyond the limit: a fresh attempt may start, the slow answer is not cut",
		Targets: one("first={50s}"), Patience: fixed(70 * second),
		Through: []Check{whole(0), asked(0, 1, 2), uncut(0), took(tenth(50*second), Time{Real: 60 * second, Scaled: 15 * second})},
	},
	{
		Name: "headers-fallback", Want: "headers at once, then silence: the fallback answers",
		Targets:  withFallback("headers-hang"),
		Straight: []Check{broken},
		Through:  []Check{whole(1), asked(0, 1, 1), asked(1, 1, 1), took(tenth(10*second), soon)},
	},
	{
		Name: "headers", Want: "headers, then silence, no fallback: a fresh attempt answers",
		Targets:  one("headers-hang/ok"),
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "reasoning", Want: "a reasoning model is silent for long: not cut, not doubled, the client kept awake",
		Targets: withFallback("first={150s}"), Patience: Time{Real: 200 * second, Scaled: 30 * second},
		Through: []Check{
			whole(0), asked(0, 1, 1), asked(1, 0, 0), took(tenth(150*second), Time{Real: 170 * second, Scaled: 30 * second}),
			keptAwake(tenth(30*second), tenth(15*second)),
		},
	},
	{
		Name: "reasoning-long", Want: "silent beyond every limit: still not cut",
		Targets: one("first={185s}"), Patience: Time{Real: 220 * second, Scaled: 30 * second},
		Through: []Check{whole(0), asked(0, 1, 2), uncut(0), keptAwake(tenth(30*second), tenth(15*second))},
	},
}

var streams = []Case{
	{
		Name: "cut", Want: "cut at two thirds: an answer that begins alike goes on where it stopped", AfterText: true,
		Targets: one("cut=0.66/ok"), Ask: Ask{Usage: true},
		// Not streamed, a broken body is a broken connection; some ask again.
		Straight: []Check{streamed(broken)},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "cut-slow", Want: "the same with streams that flow slowly, as real ones do", AfterText: true,
		Targets: one("cut=0.66,chunks=30,gap=50ms/chunks=30,gap=50ms"), Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "cut-twice", Want: "cut again: continued again, which is all that the budget of extra input pays for", AfterText: true,
		Targets:  one("cut=0.3/cut=0.66/ok"),
		Straight: []Check{streamed(broken)},
		Through:  []Check{whole(0), asked(0, 3, 3)},
	},
	{
		Name: "cut-four-times", Want: "cut four times: continued each time", AfterText: true,
		Targets: one("cut=0.2/cut=0.4/cut=0.6/cut=0.8/ok"), Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 5, 5)},
	},
	{
		Name: "cut-kept", Want: "cut, and the upstream has kept the response: its rest, whatever the model would say now", Format: []Format{Responses},
		Targets: one("cut=0.5/text=B"), Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "stall-kept", Want: "the same of one that stops in the middle", Format: []Format{Responses},
		Targets: one("stall=0.5:{300s}/text=B"), Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "cut-for-ever", Want: "every continuation is cut: an error, never a part that looks complete", AfterText: true,
		Targets:  one("cut=0.66"),
		Straight: []Check{broken},
		Through:  []Check{fails(0), attempts(0, 2, 6)},
	},
	{
		Name: "cut-tool", Want: "cut within a tool call, which is held until it is whole: it comes whole, once",
		Targets: one("tool,cut=0.66/tool"), Ask: Ask{Tools: true},
		Straight: []Check{streamed(broken)},
		Through:  []Check{toolCall(0), asked(0, 2, 2)},
	},
	{
		Name: "cut-text-tool", Want: "also after a text, which is not told twice", AfterText: true,
		Targets: one("text-tool,cut=0.95/text-tool"), Ask: Ask{Tools: true}, Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{toolCall(0), asked(0, 2, 2)},
	},
	{
		Name: "stall", Want: "stops in the middle for 5 minutes: continued on the same stream", AfterText: true,
		Targets:  one("stall=0.5:{300s}/ok"),
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2), took(tenth(20*second), Time{Real: 60 * second, Scaled: 20 * second})},
	},
	{
		Name: "stall-slow", Want: "the same with a continuation that flows slowly: what has lost does not end what has won", AfterText: true,
		Targets: one("stall=0.5:{300s}/chunks=30,gap=50ms"), Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2), cancelled(0)},
	},
	{
		Name: "stall-short", Want: "a pause below the idle limit is left alone",
		Targets: one("stall=0.5:{8s}"), Only: Streamed,
		Through: []Check{whole(0), asked(0, 1, 1), uncut(0)},
	},
	{
		Name: "stall-pinged", Want: "a longer pause with pings is left alone",
		Targets: one("stall=0.5:{60s},pings={5s}"), Only: Streamed, Patience: fixed(75 * second),
		Through: []Check{whole(0), asked(0, 1, 1), uncut(0)},
	},
	{
		Name: "malformed", Want: "a chunk that is cut in its JSON is a cut, of which words are missing: continued", AfterText: true,
		Targets:  one("malformed=0.3/ok"),
		Straight: []Check{streamed(broken), except(asksAgain, broken)},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "noise", Want: "an event that is no chunk at all is skipped",
		Targets: one("noise=0.3"), Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 1, 1)},
	},
	{
		Name: "no-done", Want: "a complete stream without [DONE], or message_stop, ends promptly", Format: []Format{Chat, Messages},
		Targets: one("no-done"), Only: Streamed,
		Through: []Check{whole(0), asked(0, 1, 1), took(Time{}, promptly)},
	},
	{
		Name: "no-finish", Want: "a target that gives no finish_reason: it is added", Format: []Format{Chat},
		Targets: one("no-finish"), Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 1, 1)},
	},
	{
		Name: "no-terminal-event", Want: "a response without its last event, or a message without a stop_reason, is a failure: replayed", Format: []Format{Responses, Messages}, AfterText: true,
		Targets: one("no-finish/ok"), Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "fin", Want: "a clean end in the middle is a failure: replayed", AfterText: true,
		Targets:  one("fin=0.66/ok"),
		Straight: []Check{streamed(broken), except(asksAgain, broken)},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "fin-for-ever", Want: "always a clean end in the middle: an error, never a truncated success", AfterText: true,
		Targets:  one("fin=0.66"),
		Straight: []Check{broken},
		Through:  []Check{fails(0), attempts(0, 2, 6)},
	},
	{
		Name: "error-first", Want: "an error event before everything else: asked again",
		Targets:  one("error-event=0/ok"),
		Straight: []Check{streamed(broken)},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "error-first-fallback", Want: "an error event first, for ever: the fallback answers",
		Targets:  withFallback("error-event=0"),
		Straight: []Check{broken},
		Through:  []Check{whole(1), asked(0, 1, 2), asked(1, 1, 1)},
	},
	{
		Name: "error-middle", Want: "an error event in the middle: continued", AfterText: true,
		Targets:  one("error-event=0.5/ok"),
		Straight: []Check{streamed(broken)},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "error-for-ever", Want: "an error event in the middle, for ever: the error, and never a part that looks complete", AfterText: true,
		Targets:  one("error-event=0.5"),
		Straight: []Check{broken},
		Through:  []Check{fails(0), attempts(0, 2, 6)},
	},
	{
		Name: "empty", Want: "an empty 200 is no answer",
		Targets:  one("empty/ok"),
		Straight: []Check{except(asksAgain, broken), streamed(broken)},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "role-only", Want: "a role and nothing else is no answer",
		Targets:  one("role-only/ok"),
		Straight: []Check{streamed(broken), except(asksAgain, broken)},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "empty-answer", Want: "a finish_reason without content is no answer",
		Targets:  one("empty-answer/ok"),
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "starved", Want: "the output limit is spent on thinking: asked again with a larger one",
		Targets:  one("reason,empty-answer,finish=length/ok"),
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "flat-error", Want: "an error event of its own before everything else: asked again", Format: []Format{Responses},
		Targets:  one("error-event=0,flat/ok"),
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "flat-error-middle", Want: "the same in the middle: continued", Format: []Format{Responses}, AfterText: true,
		Targets:  one("error-event=0.5,flat/ok"),
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "cut-early", Want: "cut before any text: asked again", Format: []Format{Responses, Messages},
		Targets: one("cut=0/ok"), Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "cut-thinking", Want: "cut within the thinking, of which nothing was shown: asked again", Format: []Format{Messages},
		Targets: one("reason=1,cut=0.1/reason=1"), Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "prefill-refused", Want: "the target refuses the declared prefill: an answer that begins alike goes on", Format: []Format{Chat, Messages},
		Targets: []Target{{Script: "cut=0.5/prefill=refuse", Prefill: "assistant"}}, Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 3)},
	},
	{
		Name: "prefill-refused-fallback", Want: "the fallback refuses prefill: its plain answer goes on where the cut was", Format: []Format{Chat, Messages},
		Targets:  []Target{{Script: "cut=0.5/503"}, {On: "backup", Script: "prefill=refuse", Prefill: "assistant", Same: true}},
		Only:     Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0)},
	},
	{
		Name: "prefill", Want: "continued by prefill", Format: []Format{Chat, Messages},
		Targets: []Target{{Script: "cut=0.5/prefill=ok", Prefill: "assistant"}}, Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "prefill-overlap", Want: "continued by prefill that repeats some words: the seam is clean", Format: []Format{Chat, Messages},
		Targets: []Target{{Script: "cut=0.5/prefill=overlap", Prefill: "assistant"}}, Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{whole(0), asked(0, 2, 2)},
	},
	{
		Name: "prefill-ignored", Want: "the model starts over in spite of the prefill: nothing is told twice", Format: []Format{Chat, Messages},
		Targets: []Target{{Script: "cut=0.5/prefill=ignore", Prefill: "assistant"}}, Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{honest(0)},
	},
	{
		Name: "prefill-diverges", Want: "the model would tell another text, prefill is declared: continued", Format: []Format{Chat, Messages},
		Targets: []Target{{Script: "cut=0.5/text=B", Prefill: "assistant"}}, Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{text(halfThenElsewhere), asked(0, 2, 2)},
	},
	{
		Name: "replay-diverges", Want: "asked to go on the model tells another text: an error, never a truncated answer", AfterText: true,
		Targets: one("cut=0.5/text=B"), Only: Streamed,
		Straight: []Check{broken},
		Through:  []Check{fails(0), attempts(0, 2, 6)},
	},
	{
		Name: "leave-stream", Want: "the client leaves a stream: the upstream is cancelled at once, nothing is asked again",
		Targets: one("chunks=100,gap=100ms"), Ask: Ask{Leave: fixed(1500 * time.Millisecond)}, Only: Streamed, After: fixed(2 * second),
		Through: []Check{cancelled(0), asked(0, 1, 1)},
	},
	{
		Name: "leave-silence", Want: "the client leaves before anything came: the same",
		Targets: withFallback("hang"), Ask: Ask{Leave: Time{Real: 2 * second, Scaled: 600 * time.Millisecond}}, After: fixed(3 * second),
		Through: []Check{cancelled(0), asked(0, 1, 1), notAfter(1)},
	},
	{
		Name: "leave-wait", Want: "the client leaves while the gateway waits: no further attempt",
		Targets: one("429,retry-after=4/ok"), Ask: Ask{Leave: fixed(1500 * time.Millisecond)}, After: fixed(5 * second),
		Through: []Check{asked(0, 1, 1)},
	},
}

// halfThenElsewhere is the first half of the first target's text, continued by
// a model that has another one in mind.
func halfThenElsewhere(r *Run) string {
	return half(r.text(0)) + upstreamtest.PrefillElsewhere
}
