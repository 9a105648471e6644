package count

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func meter() *Meter { return NewMeter() }

// OpenAI's cookbook documents what its API reports for these messages.
const cookbook = `[{"role":"system","content":"You are a helpful, pattern-following assistant that translates corporate jargon into plain English."},
{"role":"system","name":"example_user","content":"New synergies will help drive top-line growth."},
{"role":"system","name":"example_assistant","content":"Things working well together will increase revenue."},
{"role":"system","name":"example_user","content":"Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage."},
{"role":"system","name":"example_assistant","content":"Let's talk later when we're less busy about how to do better."},
{"role":"user","content":"This late pivot means we don't have time to boil the ocean for the client deliverable."}]`

func TestMessagesAsOpenAIReportsThem(t *testing.T) {
	for model, want := range map[string]int{"gpt-3.5-turbo": 129, "gpt-4-0613": 129, "gpt-4": 129, "gpt-4o": 124, "gpt-4o-mini": 124, "openai/gpt-4o": 124} {
		c := meter().Measure(parse(t, `{"model":"x","messages":`+cookbook+`}`), model)
		if c.Total != want || !c.Exact {
			t.Errorf("%s: %d tokens, exact %v; the API reports %d", model, c.Total, c.Exact, want)
		}
		sum := c.Fixed
		for _, n := range c.Messages {
			sum += n
		}
		if sum != c.Total || len(c.Messages) != 6 {
			t.Errorf("%s: %d messages and the fixed part are %d, the total %d", model, len(c.Messages), sum, c.Total)
		}
	}
}

const (
	hello   = `[{"role":"user","content":"hello"}]`
	doStuff = `[{"name":"do_stuff","parameters":{"type":"object","properties":{}}}]`
)

// measured are reports of gpt-3.5-turbo, from the tests of github.com/hmarr/openai-chat-tokens.
var measured = []struct {
	messages, functions string
	want                int
}{
	{hello, "", 8},
	{`[{"role":"user","content":"hello world"}]`, "", 9},
	{`[{"role":"system","content":"hello:"}]`, "", 9},
	{`[{"role":"system","content":"# Important: you're the best robot"},{"role":"user","content":"hello robot"},{"role":"assistant","content":"hello world"}]`, "", 27},
	{hello, `[{"name":"foo","parameters":{"type":"object","properties":{}}}]`, 31},
	{hello, `[{"name":"foo","description":"Do a foo","parameters":{"type":"object","properties":{}}}]`, 36},
	{hello, `[{"name":"bing_bong","description":"Do a bing bong","parameters":{"type":"object","properties":{"foo":{"type":"string"}}}}]`, 49},
	{hello, `[{"name":"bing_bong","description":"Do a bing bong","parameters":{"type":"object","properties":{"foo":{"type":"string"},"bar":{"type":"number","description":"A number"}}}}]`, 57},
	{hello, `[{"name":"bing_bong","description":"Do a bing bong","parameters":{"type":"object","properties":{"foo":{"type":"object","properties` +
		`":{"bar":{"type":"string","enum":["a","b","c"]},"baz":{"type":"boolean"}}}}}}]`, 68},
	{`[{"role":"user","content":"hello world"},{"role":"function","name":"do_stuff","content":"{}"}]`, "", 15},
	{`[{"role":"user","content":"hello world"},{"role":"function","name":"do_stuff","content":"{\"foo\": \"bar\", \"baz\": 1.5}"}]`, "", 28},
	{`[{"role":"function","name":"dance_the_tango","content":"{\"a\": { \"b\" : { \"c\": false}}}"}]`, "", 24},
	{`[{"role":"assistant","content":"","function_call":{"name":"do_stuff","arguments":"{\"foo\": \"bar\", \"baz\": 1.5}"}}]`, "", 26},
	{`[{"role":"system","content":"Hello"},{"role":"user","content":"Hi there"}]`, doStuff, 35},
	{`[{"role":"system","content":"Hello:"},{"role":"system","content":"Hello"},{"role":"user","content":"Hi there"}]`, doStuff, 40},
	{hello, `[{"name":"get_recipe","parameters":{"type":"object","required":["ingredients","instructions","time_to_cook"],"properties":{"ingred` +
		`ients":{"type":"array","items":{"type":"object","required":["name","unit","amount"],"properties":{"name":{"type":"string"},"unit":{"enum"` +
		`:["grams","ml","cups","pieces","teaspoons"],"type":"string"},"amount":{"type":"number"}}}},"instructions":{"type":"array","items":{"type"` +
		`:"string"},"description":"Steps to prepare the recipe (no numbering)"},"time_to_cook":{"type":"number","description":"Total time to prepare the recipe in minutes"}}}}]`, 106},
}

func TestToolsAsOpenAIReportsThem(t *testing.T) {
	for _, tt := range measured {
		raw := `{"messages":` + tt.messages
		if tt.functions != "" { // the same definitions as "tools"
			raw += `,"tools":` + strings.ReplaceAll(strings.ReplaceAll(tt.functions, `[{"name"`, `[{"type":"function","function":{"name"`), "}]", "}}]")
		}
		b := recoverytest.Parse(t, raw+"}", transcript.Chat)
		c := meter().Measure(b, "gpt-3.5-turbo")
		if d := c.Total - tt.want; d < -1 || d > 1 {
			t.Errorf("%s with %s: %d tokens, the API reports %d", tt.messages, tt.functions, c.Total, tt.want)
		} else if d != 0 {
			t.Logf("%d off: %s", d, raw)
		}
	}
}
