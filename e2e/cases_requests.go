package main

import (
	"time"
	"unicode/utf8"
)

var credentials = []Case{
	{
		Name: "key-unauthorized", Want: "key 1 of 2 is refused: asked once, the other answers", Keys: true,
		Targets:  one("unauthorized,only-key=" + KeyA),
		Straight: []Check{fails(401, "invalid_api_key", "incorrect api key")},
		Through:  []Check{whole(0), keyAsked(KeyA, 1, 1), keyAsked(KeyB, 1, 1), ownKeys, took(Time{}, promptly)},
	},
	{
		Name: "key-quota", Want: "key 1 of 2 is out of quota: asked once, the other answers", Keys: true,
		Targets:  one("quota,only-key=" + KeyA),
		Straight: []Check{fails(429, "insufficient_quota", "quota")},
		Through:  []Check{whole(0), keyAsked(KeyA, 1, 1), keyAsked(KeyB, 1, 1), ownKeys, took(Time{}, promptly)},
	},
	{
		Name: "key-limited", Want: "key 1 of 2 is rate limited: the other answers at once, and the next time at once", Keys: true,
		Targets: one("429,retry-after=30,only-key=" + KeyA), Times: 2,
		Straight: []Check{broken},
		Through:  []Check{eachWhole(0), asked(0, 3, 3), lastAsked(0, 1), ownKeys, took(Time{}, promptly)},
	},
	{
		Name: "keys-all-refused", Want: "both of the gateway's own keys are refused: 502 upstream_credentials, each asked once", Keys: true,
		Targets:  one("unauthorized"),
		Straight: []Check{fails(401)},
		Through:  []Check{fails(502, "upstream_credentials"), keyAsked(KeyA, 0, 1), keyAsked(KeyB, 0, 1), ownKeys},
	},
	{
		Name: "own-key-refused", Want: "the client's own key is refused: its 401, unchanged and at once",
		Targets:  one("unauthorized"),
		Straight: []Check{fails(401)},
		Through:  []Check{fails(401, "invalid_api_key", "incorrect api key"), attempts(0, 1, 1), took(Time{}, promptly)},
	},
	{
		Name: "own-key-quota", Want: "the client's own key is out of quota: the upstream's error, asked once a request",
		Targets:  one("quota"),
		Straight: []Check{fails(429, "insufficient_quota", "quota")},
		Through:  []Check{fails(429, "insufficient_quota", "quota"), attempts(0, 1, 1), retryAfter},
	},
	{
		Name: "quota-fallback", Want: "out of quota with a fallback: asked once, the fallback answers at once",
		Targets:  withFallback("quota"),
		Straight: []Check{fails(429)},
		Through:  []Check{whole(1), asked(0, 1, 1), asked(1, 1, 1), took(Time{}, promptly)},
	},
}

var requests = []Case{
	{
		Name: "gone-fallback", Want: "the model is gone: asked once, the fallback answers",
		Targets:  withFallback("gone"),
		Straight: []Check{fails(404)},
		Through:  []Check{whole(1), asked(0, 1, 1), asked(1, 1, 1)},
	},
	{
		Name: "gone", Want: "the model is gone, no fallback: the upstream's own 404",
		Targets:  one("gone"),
		Straight: []Check{fails(404, "model_not_found", "does not exist")},
		Through:  []Check{fails(404, "model_not_found", "does not exist"), attempts(0, 1, 1)},
	},
	{
		Name: "bad-request", Want: "what is simply wrong: the upstream's own 400, asked once",
		Targets:  one("400"),
		Straight: []Check{fails(400)},
		Through:  []Check{fails(400, "refused by the mock"), attempts(0, 1, 1)},
	},
	{
		Name: "content-policy", Want: "refused content is not taken elsewhere: the upstream's own 400",
		Targets:  withFallback("content-filter"),
		Straight: []Check{fails(400, "content_filter", "filtered")},
		Through:  []Check{fails(400, "content_filter", "filtered"), asked(0, 1, 1), asked(1, 0, 0)},
	},
	{
		Name: "max-tokens", Want: "max_tokens is not supported: renamed once, then right the first time", Format: []Format{Chat},
		Targets: one("no-param=max_tokens"), Ask: Ask{MaxTokens: 100}, Times: 2,
		Straight: []Check{except(renames, fails(400))},
		Through: []Check{
			eachWhole(0), except(renames, asked(0, 3, 3)), lastAsked(0, 1),
			sentField("max_tokens", ""), sentField("max_completion_tokens", "100"),
		},
	},
	{
		Name: "max-completion-tokens", Want: "the other way round, for servers that know only max_tokens", Format: []Format{Chat},
		Targets: one("no-param=max_completion_tokens"), Ask: Ask{MaxCompletionTokens: 100}, Times: 2,
		Straight: []Check{fails(400)},
		Through: []Check{
			eachWhole(0), asked(0, 3, 3), lastAsked(0, 1),
			sentField("max_completion_tokens", ""), sentField("max_tokens", "100"),
		},
	},
	{
		Name: "temperature", Want: "temperature is not supported: dropped once, then right the first time",
		Targets: one("no-param=temperature"), Ask: Ask{Temperature: 0.3}, Times: 2,
		Straight: []Check{fails(400)},
		Through:  []Check{eachWhole(0), asked(0, 3, 3), lastAsked(0, 1), sentField("temperature", "")},
	},
	{
		Name: "output-limit", Want: "more output asked for than there can be: clamped once, then right the first time",
		Targets: one("max-out=4096"), Ask: Ask{MaxTokens: 20_000}, Times: 2,
		Straight: []Check{fails(400)},
		Through: []Check{
			eachWhole(0), asked(0, 3, 3), lastAsked(0, 1),
			sentLimit("4096"),
		},
	},
	{
		Name: "context-larger", Want: "too long: not sent there twice, the target with the larger window answers",
		Targets: []Target{{Script: "ctx=8192"}, {On: "backup", Script: "ok", Window: 200_000}}, Ask: Ask{Filler: 60_000},
		Straight: []Check{fails(400, "context_length_exceeded", "maximum context length", "prompt is too long")},
		Through:  []Check{whole(1), notTwice, asked(1, 1, 1)},
	},
	{
		Name: "context-smaller", Want: "a fallback with a smaller window is not asked",
		Targets: []Target{{Script: "ctx=8192"}, {On: "backup", Script: "ok", Window: 4096}}, Ask: Ask{Filler: 60_000},
		Straight: []Check{fails(400)},
		Through:  []Check{fails(400, "context_length_exceeded", "maximum context length", "prompt is too long"), notTwice, asked(1, 0, 0)},
	},
	{
		Name: "context", Want: "nothing larger: the upstream's own context_length_exceeded",
		Targets: one("ctx=8192"), Ask: Ask{Filler: 60_000},
		Straight: []Check{fails(400, "context_length_exceeded", "maximum context length", "prompt is too long")},
		Through:  []Check{fails(400, "context_length_exceeded", "maximum context length", "prompt is too long"), notTwice},
	},
}

// healthy traffic is untouched.
var healthy = []Case{
	{
		Name: "healthy-text", Want: "an answer as without the gateway",
		Targets:  one("ok"),
		Straight: []Check{whole(0)},
		Through:  []Check{whole(0), asStraight, asked(0, 1, 1), header("X-Request-Id")},
	},
	{
		Name: "healthy-tool", Want: "a tool call as without the gateway",
		Targets: one("tool"), Ask: Ask{Tools: true},
		Straight: []Check{toolCall(0)},
		Through:  []Check{toolCall(0), asStraight, asked(0, 1, 1)},
	},
	{
		Name: "healthy-usage", Want: "usage in the stream, if asked for, as without the gateway",
		Targets: one("gap=20ms"), Ask: Ask{Usage: true},
		Straight: []Check{whole(0)},
		Through:  []Check{whole(0), asStraight, asked(0, 1, 1)},
	},
	{
		Name: "healthy-done", Want: "[DONE] at the end, as some servers send it in this format, too: neither added nor removed", Format: []Format{Responses},
		Targets:  one("done"),
		Straight: []Check{whole(0)},
		Through:  []Check{whole(0), asStraight, asked(0, 1, 1)},
	},
	{
		Name: "healthy-slow", Want: "a slow stream flows on, chunk for chunk",
		Targets: one("chunks=30,gap=100ms"), Only: Streamed,
		Straight: []Check{whole(0), streamsOn(time.Second)},
		Through:  []Check{whole(0), asStraight, asked(0, 1, 1), streamsOn(time.Second)},
	},
	{
		Name: "healthy-reasoning", Want: "reasoning before the text as without the gateway",
		Targets:  one("reason=1"),
		Straight: []Check{whole(0)},
		Through:  []Check{whole(0), asStraight, asked(0, 1, 1)},
	},
	{
		Name: "healthy-settings", Want: "settings that are supported arrive as they are",
		Targets: one("ok"), Ask: Ask{MaxTokens: 100, Temperature: 0.3},
		Straight: []Check{whole(0)},
		Through:  []Check{whole(0), asStraight, asked(0, 1, 1), sentField("temperature", "0.3")},
	},
}

// half is the part of a text that the upstream has told when a cut=0.5 comes.
func half(text string) string {
	at := len(text) / 2
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return text[:at]
}
