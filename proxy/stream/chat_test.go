package stream

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

func delta(data string) Delta {
	return *Chat{}.Decode(&Event{Data: []byte(data), HasData: true}, new(Known))
}

func TestDeltaKind(t *testing.T) {
	in := func(delta string) string {
		return `{"id":"c1","created":7,"choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}`
	}
	cases := []struct {
		name, data string
		want       Kind
		text       string
	}{
		{"role", in(`{"role":"assistant"}`), KindNothing, ""},
		{"role and empty content", in(`{"role":"assistant","content":""}`), KindNothing, ""},
		{"role and null content", in(`{"role":"assistant","content":null,"refusal":null,"function_call":null}`), KindNothing, ""},
		{"empty tool calls", in(`{"content":null,"tool_calls":[]}`), KindNothing, ""},
		{"null tool calls", in(`{"tool_calls":null}`), KindNothing, ""},
		{"null tool calls with text", in(`{"content":"hi","tool_calls":null}`), KindText, "hi"},
		{"empty delta", in(`{}`), KindNothing, ""},
		{"null delta", in(`null`), KindNothing, ""},
		{"text", in(`{"content":"hi"}`), KindText, "hi"},
		{"escaped text", in(`{"content":"a\n\u00e4\ud83d\ude00"}`), KindText, "a\nä😀"},
		{"a space", in(`{"content":" "}`), KindText, " "},
		{"role and text", in(`{"role":"assistant","content":"hi"}`), KindText, "hi"},
		{"parts", in(`{"content":[{"type":"text","text":"hi"}]}`), KindCall, ""},
		{"Mistral's thinking", in(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`), KindReasoning, ""},
		{"Mistral's thinking and text", in(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]}`), KindCall, ""},
		{"no parts", in(`{"content":[]}`), KindNothing, ""},
		{"tool call", in(`{"tool_calls":[{"index":0,"id":"t1","function":{"name":"f","arguments":""}}]}`), KindCall, ""},
		{"tool call and text", in(`{"content":"hi","tool_calls":[{"index":0}]}`), KindCall, "hi"},
		{"function call", in(`{"function_call":{"name":"f"}}`), KindCall, ""},
		{"refusal", in(`{"refusal":"no"}`), KindCall, ""},
		{"audio", in(`{"audio":{"id":"a"}}`), KindCall, ""},
		{"unknown field", in(`{"images":[{"url":"x"}]}`), KindCall, ""},
		{"reasoning", in(`{"reasoning":"hm"}`), KindReasoning, ""},
		{"reasoning_content", in(`{"content":"","reasoning_content":"hm"}`), KindReasoning, ""},
		{"empty reasoning", in(`{"reasoning_content":"","reasoning":null,"reasoning_details":[]}`), KindNothing, ""},
		{"reasoning and text", in(`{"reasoning":"hm","content":"hi"}`), KindText, "hi"},
		{"reasoning as an object", in(`{"reasoning":{"encrypted":"x"}}`), KindCall, ""},
		{"details", in(`{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":null}]}`), KindReasoning, ""},
		{"signed details", in(`{"reasoning_details":[{"type":"reasoning.text","text":""},{"type":"reasoning.text","signature":"abc"}]}`), KindCall, ""},
		{"encrypted details", in(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"abc"}]}`), KindCall, ""},
		{"signed thinking", in(`{"thinking_blocks":[{"type":"thinking","thinking":"x","signature":"abc"}]}`), KindCall, ""},
		{"thinking with an empty signature", in(`{"thinking_blocks":[{"type":"thinking","thinking":"x","signature":""}]}`), KindReasoning, ""},
		{"annotations", in(`{"annotations":[{"type":"url_citation"}]}`), KindNothing, ""},
		{"MiniMax's name", in(`{"content":"hi","role":"assistant","name":"MiniMax AI","audio_content":""}`), KindText, "hi"},
		{"MiniMax's name, and reasoning", in(`{"content":"","role":"assistant","name":"MiniMax AI","audio_content":"","reasoning_content":"hm"}`), KindReasoning, ""},
		{"Groq's channel", in(`{"reasoning":"hm","channel":"analysis"}`), KindReasoning, ""},
		{"usage only", `{"id":"c1","choices":[],"usage":{"prompt_tokens":1}}`, KindNothing, ""},
		{"no choices", `{"id":"c1","choices":[]}`, KindNothing, ""},
		{"legacy text", `{"choices":[{"index":0,"text":"hi","finish_reason":null}]}`, KindText, "hi"},
		{"legacy without text", `{"choices":[{"index":0,"text":""}]}`, KindNothing, ""},
		{"done", "[DONE]", KindDone, ""},
		{"done with spaces", "  [DONE] ", KindDone, ""},
		{"empty", "", KindNothing, ""},
		{"spaces", "  ", KindNothing, ""},
		{"cut", `{"choices":[{"del`, KindCut, ""},
		{"cut at once", `{`, KindCut, ""},
		{"cut in its first name", `{"obj`, KindCut, ""},
		{"cut behind its first name", `{ "id":"x`, KindCut, ""},
		{"without its beginning", `mpl-1","choices":[{"index":0,"delta":{"content":"x"}}]}`, KindCut, ""},
		{"another object", `{"idle":tru`, KindNoise, ""},
		{"another object, cut", `{"ping":tru`, KindNoise, ""},
		{"names in no quotes", `{malformed json}`, KindNoise, ""},
		{"text instead of JSON", "upstream failed", KindNoise, ""},
		{"two values", "{}{}", KindNoise, ""},
		{"not an object", `"hi"`, KindNothing, ""},
		{"a list", `[{"a":1}]`, KindNothing, ""},
		{"too deep", strings.Repeat("[", 300) + strings.Repeat("]", 300), KindNoise, ""},
		{"error object", `{"error":{"message":"overloaded","code":529}}`, KindError, ""},
		{"error text", `{"error":"overloaded"}`, KindError, ""},
		{"error list", `{"error":[{"message":"x"}]}`, KindError, ""},
		{"error true", `{"error":true}`, KindError, ""},
		{"type error", `{"type":"error","error":{"type":"overloaded_error"}}`, KindError, ""},
		{"object error", `{"object":"error","message":"x","code":400}`, KindError, ""},
		{"error beside empty choices", `{"id":"c1","choices":[{"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502}}`, KindError, ""},
		{"finish reason error", `{"choices":[{"delta":{},"finish_reason":"error"}]}`, KindCut, ""},
		{"finish reason error with text", `{"choices":[{"delta":{"content":"hi"},"finish_reason":"error"}]}`, KindCut, "hi"},
		{"finish reason error, and why", `{"choices":[{"delta":{},"finish_reason":"error","error":{"code":502}}]}`, KindError, ""},
		{"Z.ai's break", `{"choices":[{"delta":{"content":"hi"},"finish_reason":"network_error"}]}`, KindCut, "hi"},
		{"DeepSeek's break", `{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}`, KindCut, ""},
		{"vLLM's break", `{"choices":[{"delta":{},"finish_reason":"abort"}]}`, KindCut, ""},
		{"no finish reason, as a string", `{"choices":[{"delta":{"content":"hi"},"finish_reason":"null"}]}`, KindText, "hi"},
		{"no finish reason, in Python", `{"choices":[{"delta":{"content":"hi"},"finish_reason":"None"}]}`, KindText, "hi"},
		{"error null", `{"error":null,"choices":[{"delta":{"content":"hi"}}]}`, KindText, "hi"},
		{"no error", `{"error":{},"choices":[]}`, KindNothing, ""},
		{"no error, spaced", `{"error":{ },"choices":[]}`, KindNothing, ""},
		{"no error, a list", `{"error":[],"choices":[]}`, KindNothing, ""},
		{"no error, text", `{"error":"","choices":[]}`, KindNothing, ""},
		{"error false", `{"error":false,"choices":[]}`, KindNothing, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := delta(c.data)
			if d.Kind != c.want || d.Text != c.text {
				t.Errorf("%s: kind %d, text %q, want %d, %q", c.data, d.Kind, d.Text, c.want, c.text)
			}
			if d.Finishes != 0 {
				t.Errorf("%s: ends %d choices", c.data, d.Finishes)
			}
		})
	}
	if d := *(Chat{}).Decode(&Event{Raw: []byte(": ping\n\n")}, new(Known)); !reflect.DeepEqual(d, Delta{}) {
		t.Errorf("a comment: %+v", d)
	}
	named := Event{Name: []byte("error"), Data: []byte(`{"message":"x"}`), HasData: true}
	if d := *(Chat{}).Decode(&named, new(Known)); d.Kind != KindError {
		t.Errorf("an event called error: kind %d", d.Kind)
	}
}

func TestDeltaFinish(t *testing.T) {
	cases := []struct {
		reason   string
		finishes int
		truthful bool
	}{
		{`"stop"`, 1, false}, {`"length"`, 1, true}, {`"content_filter"`, 1, true}, {`"tool_calls"`, 1, false},
		{`"model_length"`, 1, true}, {`"model_context_window_exceeded"`, 1, true}, {`"max_tokens"`, 1, true}, {`"MAX_TOKENS"`, 1, true}, {`"sensitive"`, 1, true}, {`"SAFETY"`, 1, true},
		{`"content_filter: PROHIBITED_CONTENT"`, 1, true}, {`"RECITATION"`, 1, true}, {`"function_call_filter: MALFORMED_FUNCTION_CALL"`, 1, false},
		{`"function_call"`, 1, false}, {`"end_turn"`, 1, false}, {`""`, 0, false}, {`null`, 0, false}, {`"error"`, 0, false}, {`0`, 0, false},
	}
	for _, c := range cases {
		d := delta(`{"choices":[{"index":0,"delta":{},"finish_reason":` + c.reason + `}]}`)
		if d.Finishes != c.finishes || d.Truthful != c.truthful {
			t.Errorf("%s: %d, %v, want %d, %v", c.reason, d.Finishes, d.Truthful, c.finishes, c.truthful)
		}
	}
	d := delta(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"},{"index":1,"delta":{},"finish_reason":"stop"}]}`)
	if d.Finishes != 2 || d.Choices != 2 || !d.Several {
		t.Errorf("two choices: %+v", d)
	}
	for reasons, want := range map[string]recovery.Finish{ // OpenRouter's pairs
		`"finish_reason":"tool_calls","native_finish_reason":"length"`:            recovery.FinishLength,
		`"native_finish_reason":"max_output_tokens","finish_reason":"tool_calls"`: recovery.FinishLength,
		`"finish_reason":"tool_calls","native_finish_reason":"tool_use"`:          recovery.FinishCalls,
		`"finish_reason":"tool_calls","native_finish_reason":"STOP"`:              recovery.FinishCalls,
		`"finish_reason":null,"native_finish_reason":null`:                        recovery.FinishNone,
	} {
		if d := delta(`{"choices":[{"index":0,"delta":{},` + reasons + `}]}`); d.finish != want || d.Truthful != (want == recovery.FinishLength) {
			t.Errorf("%s: %q, %v", reasons, d.finish, d.Truthful)
		}
	}
	d = delta(`{"error":{"message":"x"},"choices":[{"delta":{},"finish_reason":"stop"}]}`)
	if d.Kind == KindError || d.Finishes != 1 {
		t.Errorf("a finish reason beside an error: %+v", d)
	}
	for data, want := range map[string]bool{
		`{"choices":[{"index":0,"delta":{"content":"a"}}]}`:                        false,
		`{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":null}]}`:        false,
		`{"choices":[{"index":1,"delta":{"content":"a"}}]}`:                        true,
		`{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"a":[1]}}]}`:   true,
		`{"choices":[{"delta":{"content":"a"}},{"index":1,"delta":{"role":"a"}}]}`: true,
	} {
		if d := delta(data); d.Several != want {
			t.Errorf("%s: several %v", data, d.Several)
		}
	}
}

func TestDeltaIdentity(t *testing.T) {
	for data, want := range map[string]Identity{
		`{"id":"c1","created":17,"choices":[]}`:              {`"c1"`, "17"},
		`{ "created" : 1.7e9 , "id" : "a\"b" }`:              {`"a\"b"`, "1.7e9"},
		`{"choices":[{"id":"x"}]}`:                           {},
		`{"id":"","created":0,"choices":[],"model":"gpt"}`:   {"", "0"}, // of content filter results that come first
		`{"id":null,"created":null,"choices":[]}`:            {},
		`{"id":"c1","choices":[{"delta":{"content":"hi"}}]}`: {`"c1"`, ""},
	} {
		if d := delta(data); d.ID != want {
			t.Errorf("%s: %+v", data, d.ID)
		}
	}
}

func TestUsage(t *testing.T) {
	for raw, want := range map[string]recovery.Usage{
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`: {Input: 10, Output: 5},
		`{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":7,"audio_tokens":0},"completion_tokens":5,
		  "completion_tokens_details":{"reasoning_tokens":3}}`: {Input: 10, Output: 5, CacheRead: 7, Reasoning: 3},
		`{"prompt_tokens":10,"prompt_cache_hit_tokens":6,"prompt_cache_miss_tokens":4}`:                                          {Input: 10, CacheRead: 6},
		`{"prompt_tokens":10,"cache_read_input_tokens":6,"cache_creation_input_tokens":2}`:                                       {Input: 10, CacheRead: 6, CacheWrite: 2},
		`{"cache_read_input_tokens":6,"prompt_tokens_details":{"cached_tokens":5}}`:                                              {CacheRead: 6},
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"cached_tokens":6}`:                                         {Input: 10, Output: 5, CacheRead: 6},     // Moonshot
		`{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":4}}`:                                {Input: 10, CacheRead: 3, CacheWrite: 4}, // OpenRouter, GPT-5.6
		`{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}`:      {Input: 32, Output: 103, Reasoning: 94},  // xAI
		`{"prompt_tokens":500,"completion_tokens":500,"total_tokens":1000,"completion_tokens_details":{"reasoning_tokens":200}}`: {Input: 500, Output: 500, Reasoning: 200},
		`{"prompt_tokens":null,"prompt_tokens_details":null,"completion_tokens_details":null,"cost":0.00012}`:                    {},
		`{}`: {},
	} {
		for _, d := range []Delta{delta(`{"choices":[],"usage":` + raw + `}`), (Chat{}).DecodeWhole([]byte(`{"choices":[],"usage":` + raw + `}`))} {
			if !d.HasUsage || d.Usage != want {
				t.Errorf("%s: %+v", raw, d)
			}
		}
	}
	for where, data := range map[string]string{
		"Moonshot's, in the choice": `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":10,"completion_tokens":5}}]}`,
		"Groq's":                    `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"req_1","usage":{"prompt_tokens":10,"completion_tokens":5}}}`,
		"both":                      `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":1}}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`,
	} {
		if d := delta(data); !d.HasUsage || d.Usage != (recovery.Usage{Input: 10, Output: 5}) || d.Finishes != 1 {
			t.Errorf("%s: %+v", where, d)
		}
	}
	for _, none := range []string{`{"choices":[],"usage":null}`, `{"choices":[],"x_groq":{"id":"r"}}`} {
		if delta(none).HasUsage {
			t.Errorf("usage in %s", none)
		}
	}
}

func TestWhole(t *testing.T) {
	cases := []struct {
		name, body string
		want       Kind
		text       string
		finishes   int
	}{
		{"text", `{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`, KindText, "hi", 1},
		{"indented", "{\n  \"choices\": [\n    {\"message\": {\"content\": \"hi\"}, \"finish_reason\": \"stop\"}\n  ]\n}", KindText, "hi", 1},
		{"tool call", `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"t","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, KindCall, "", 1},
		{"refusal", `{"choices":[{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}]}`, KindCall, "", 1},
		{"reasoning only", `{"choices":[{"message":{"content":"","reasoning":"hm"},"finish_reason":"length"}]}`, KindReasoning, "", 1},
		{"empty", `{"choices":[{"message":{"role":"assistant","content":""},"finish_reason":"stop"}],"usage":{"completion_tokens":0}}`, KindNothing, "", 1},
		{"no choices", `{"choices":[]}`, KindNothing, "", 0},
		{"null choices", `{"choices":null}`, KindNothing, "", 0},
		{"two choices", `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"},{"index":1,"message":{"content":"b"},"finish_reason":"stop"}]}`, KindText, "a", 2},
		{"legacy", `{"choices":[{"text":"hi","finish_reason":"stop"}]}`, KindText, "hi", 1},
		{"error", `{"error":{"message":"x"}}`, KindError, "", 0},
		{"error text", `{"error":"x"}`, KindError, "", 0},
		{"error of another kind", `{"type":"error","error":{"message":"x"}}`, KindError, "", 0},
		{"vLLM's", `{"object":"error","message":"x","type":"BadRequestError","code":400}`, KindError, "", 0},
		{"FastAPI's", `{"detail":"Not Found"}`, KindNothing, "", 0},
		{"detail in an answer", `{"detail":"x","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`, KindText, "hi", 1},
		{"half", `{"choices":[{"message":{"content":"hi`, KindNoise, "", 0},
		{"HTML", `<html>`, KindNoise, "", 0},
		{"nothing", ``, KindNoise, "", 0},
		{"a chunk", `{"choices":[{"delta":{"content":"hi"}}]}`, KindNothing, "", 0},
	}
	for _, c := range cases {
		d := Chat{}.DecodeWhole([]byte(c.body))
		if d.Kind != c.want || d.Text != c.text || d.Finishes != c.finishes {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

// FuzzDelta: nothing that upstreams send makes it panic, and what is rewritten
// stays valid JSON with the meaning that it had.
func FuzzDelta(f *testing.F) {
	for _, s := range []string{
		`{"id":"c1","created":7,"choices":[{"index":0,"delta":{"content":"hi","tool_calls":null},"finish_reason":null}]}`,
		`{"id":{"a":[1]},"created":"x","choices":[{"delta":{"reasoning_details":[{"data":"x"}]}}],"usage":{"prompt_tokens":1e99}}`,
		`{"\u0069d":1,"id":2,"id":3,"choices":{"0":{"delta":{"content":"x"}}}}`, `[{"id":1}]`, `[DONE]`, `{"error":{}}`, ` {"id" :"" } `,
		`{"choices":[{"text":"x"}],"model":{"a":1}}`, `{"choices":[{"delta":[{"content":"x"}]}]}`, "\xff", `{"choices":[{"delta":{"content":"\ud800"}}]}`,
	} {
		f.Add([]byte(s), "text")
	}
	id := Identity{ID: `"first"`, Created: "1"}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		before := string(data)
		d := *Chat{}.Decode(&Event{Data: data, HasData: true}, new(Known))
		w := Chat{}.DecodeWhole(data)
		if s := (calls{whole: true}); Chat.calls(Chat{}, data, &w, &s) && w.Kind != KindCall {
			t.Errorf("%q: kind %d with calls %+v", data, w.Kind, s.list)
		}
		if bare := strings.TrimSpace(before); (d.Kind == KindNoise || d.Kind == KindCut) == json.Valid([]byte(bare)) && bare != "" && d.Kind != KindDone && len(data) < 256 {
			t.Fatalf("%q: kind %d, valid JSON %v", data, d.Kind, json.Valid(data))
		}
		if strings.Contains(before, "\r") {
			return // which ends a line of an event
		}
		ev := Event{Raw: frame(data), Data: data, HasData: true}
		for i, e := range []edit{{}, {text: &text}, {before: text}, {usage: &recovery.Usage{Input: 1}}, {recall: true, text: &text},
			{recall: true, calls: []*call{{DraftCall: fn("a", "f", text)}}}, {unfinish: true}} {
			enc := &chatEncoder{id: id, follows: !e.recall && !e.unfinish}
			out, ok := enc.event(nil, &ev, &d, &e)
			if string(data) != before || !ok {
				t.Fatalf("%q became %q", before, data)
			}
			if !json.Valid(data) {
				return
			}
			eachEvent(out, func(ev *Event) {
				if ev.HasData && !json.Valid(ev.Data) {
					t.Fatalf("%d: %q became %q", i, data, out)
				}
				if same := delta(string(ev.Data)); i == 0 && (same.Kind != d.Kind || same.Text != d.Text || same.Finishes != d.Finishes || same.Usage != d.Usage) {
					t.Fatalf("%q means %+v, identified it is %q and means %+v", data, d, out, same)
				}
			})
		}
	})
}

// The usage at the end of an answer that is only passed on.
func TestUsageIn(t *testing.T) {
	for tail, want := range map[string]recovery.Usage{
		`{"data":[],"usage":{"prompt_tokens":7,"total_tokens":7}}`:                                                                          {Input: 7},
		`..."usage" : {"input_tokens":7,"input_tokens_details":{"cached_tokens":3},"output_tokens":2},"user":null}`:                         {Input: 7, Output: 2, CacheRead: 3},
		`{"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":2},"output_tokens":2}}`:                  {Input: 7, Output: 2, CacheRead: 3, CacheWrite: 2},
		"data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\ndata: {\"usage\":null}\n\ndata: [DONE]":                         {Input: 1, Output: 1},
		`{"usage":{"prompt_tokens":5,"completion_tokens":1},"text":"they said \"usage\":{\"prompt_tokens\":9999,\"completion_tokens\":1}"}`: {Input: 5, Output: 1},
		`{"usage":{"prompt_tokens":-5,"completion_tokens":2}}`:                                                                              {Output: 2},
		`{"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":4611686018427387905}}`:                                           {Input: maxCount, Output: maxCount},
		`{"usage":{"prompt_tokens":5}}` + strings.Repeat(`"usage":{`, maxUsages):                                                            {},
		`{"usage":{"prompt_tok`: {}, `"usage"`: {}, `"usage":`: {}, ``: {}, `{"usage":[1]}`: {},
	} {
		if u, ok := UsageIn([]byte(tail)); u != want || ok != (want != recovery.Usage{}) {
			t.Errorf("%s: %+v, %v; want %+v", tail, u, ok, want)
		}
	}
}
