package main

import (
	"strings"
	"testing"
	"time"
)

// A stream that breaks the rules of /v1/messages must not look well.
func TestWrongMessages(t *testing.T) {
	const (
		start  = `message_start {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`
		ping   = `ping {"type":"ping"}`
		text   = `content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
		one    = `content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"one"}}`
		shut   = `content_block_stop {"type":"content_block_stop","index":0}`
		call   = `content_block_start {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}`
		input  = `content_block_delta {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`
		called = `content_block_stop {"type":"content_block_stop","index":1}`
		reason = `message_delta {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}`
		stop   = `message_stop {"type":"message_stop"}`
	)
	well := []string{start, ping, text, one, shut, call, input, called, reason, stop}
	with := func(i int, old, new string) []string {
		out := append([]string(nil), well...)
		if out[i] = strings.ReplaceAll(out[i], old, new); out[i] == well[i] {
			t.Fatalf("%q is not in %s", old, out[i])
		}
		return out
	}
	without := func(i int) []string { return append(append([]string(nil), well[:i]...), well[i+1:]...) }
	for name, tt := range map[string]struct {
		events []string
		good   bool
	}{
		"well":                  {well, true},
		"without pings":         {without(1), true},
		"not started":           {without(0), false},
		"started twice":         {append([]string{start}, well...), false},
		"started without usage": {with(0, `,"usage":{"input_tokens":3,"output_tokens":1}`, ``), false},
		"not begun":             {without(2), false},
		"an empty text":         {without(3), false},
		"not closed":            {without(4), false},
		"closed twice":          {append(append([]string(nil), well[:5]...), well[4:]...), false},
		"a gap":                 {with(5, `"index":1`, `"index":2`), false},
		"the same index":        {with(5, `"index":1`, `"index":0`), false},
		"a piece of another":    {with(6, `"index":1`, `"index":0`), false},
		"another kind of piece": {with(3, `"text_delta"`, `"thinking_delta"`), false},
		"half an input":         {with(6, `1}`, `1`), false},
		"no call id":            {with(5, `toolu_1`, ``), false},
		"no stop_reason":        {without(8), false},
		"another stop_reason":   {with(8, `tool_use`, `end_turn`), false},
		"no usage":              {with(8, `,"usage":{"output_tokens":7}`, ``), false},
		"no message_stop":       {without(9), false},
		"after the end":         {append(append([]string(nil), well...), ping), false},
		"another name":          {with(3, `content_block_delta {`, `message {`), false},
		"an unknown event":      {append([]string{start, `done {"type":"done"}`}, well[1:]...), false},
	} {
		var b strings.Builder
		for _, e := range tt.events {
			kind, data, _ := strings.Cut(e, " ")
			b.WriteString("event: " + kind + "\ndata: " + data + "\n\n")
		}
		a := Answer{FirstTokenMS: -1, Header: map[string]string{}}
		if err := a.readStream(strings.NewReader(b.String()), time.Now(), Messages, a.messagesReader(time.Now())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		a.OK = true
		err := wellFormed(&Run{Case: &Case{}, Client: plainMessages, Mode: Streamed}, &Leg{Answers: []Answer{a}})
		if (err == nil) != tt.good {
			t.Errorf("%s: %v", name, err)
		}
		if tt.good && (a.Text != "one" || len(a.ToolCalls) != 1 || a.ToolCalls[0] != (ToolCall{"toolu_1", "f", `{"a":1}`}) || *a.Usage != (Usage{3, 7, 10})) {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// Clients of /v1/messages read Anthropic's envelope, and no other.
func TestWrongErrors(t *testing.T) {
	r := &Run{Case: &Case{}, Client: plainMessages, Mode: Whole}
	for data, good := range map[string]bool{
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`: true,
		`{"type":"error","error":{"type":"server_error","message":"Overloaded"}}`:     false,
		`{"error":{"type":"overloaded_error","message":"Overloaded"}}`:                false,
		`{"type":"error","error":{"type":"overloaded_error","message":""}}`:           false,
		`Bad Gateway`: false,
	} {
		a := Answer{}
		a.judgeError([]byte(data))
		if err := wellFormed(r, &Leg{Answers: []Answer{a}}); (err == nil) != good {
			t.Errorf("%s: %v", data, err)
		}
	}
}
