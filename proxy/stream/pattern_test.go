package stream

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// plainChunk is an event as upstreams send them, with a text put in.
func plainChunk(delta, behind string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]` + behind + `}`
}

// patterned are events with text, and for each whether it has the pattern of the one before it.
var patterned = []struct {
	data  string
	alike bool
}{
	{plainChunk(`{"role":"assistant","content":""}`, ""), false},
	{plainChunk(`{"content":"Hello"}`, ""), false},
	{plainChunk(`{"content":" world, a longer piece of text"}`, ""), true},
	{plainChunk(`{"content":"a \"quoted\" line\nand \u00e9\ud83d\ude00 ü"}`, ""), true},
	{plainChunk(`{"content":""}`, ""), false},
	{plainChunk(`{"content":"after nothing"}`, ""), false},
	{plainChunk(`{"content":null}`, ""), false},
	{plainChunk(`{"content":"x","content":"y"}`, ""), false},
	{plainChunk(`{"content":"z"}`, ""), false},
	{plainChunk(`{"content":"z","tool_calls":[{"index":0,"function":{"name":"f"}}]}`, ""), false},
	{plainChunk(`{"content":"text","tool_calls":null,"reasoning_content":null}`, ""), false},
	{plainChunk(`{"content":"more","tool_calls":null,"reasoning_content":null}`, ""), true},
	{plainChunk(`{"content":"bad \x","tool_calls":null,"reasoning_content":null}`, ""), false},
	{plainChunk(`{"content":null,"reasoning_content":"think"}`, ""), false},
	{plainChunk(`{"content":null,"reasoning_content":"and think on"}`, ""), true},
	{plainChunk(`{"content":"both","reasoning_content":"and think on"}`, ""), false},
	{plainChunk(`{"content":"of them","reasoning_content":"and think on"}`, ""), true},
	{plainChunk(`{"content":"of them","reasoning_content":"and on"}`, ""), false},
	{plainChunk(`{"content":"padded"}`, `,"usage":null,"obfuscation":"Xy"`), false},
	{plainChunk(`{"content":" with another"}`, `,"usage":null,"obfuscation":"abcdefg"`), true},
	{plainChunk(`{"content":"cut"}`, `,"usage":null,"obfuscation":"abc`), false},
	{plainChunk(`{"content":"before"}`, `,"usage":{"prompt_tokens":1,"completion_tokens":1}`), false},
	{plainChunk(`{"content":"after"}`, `,"usage":{"prompt_tokens":1,"completion_tokens":1}`), false},
	{plainChunk(`{"content":"more"}`, `,"usage":{"prompt_tokens":1,"completion_tokens":2}`), false},
	{plainChunk(`{"content":"more"}`, `,"usage":{"prompt_tokens":1,"completion_tokens":2}} `), false},
	{`{"obfuscation":"q","id":"c1","created":7,"choices":[{"index":0,"text":"legacy","delta":{"role":"assistant"}}]}`, false},
	{`{"obfuscation":"q","id":"c1","created":7,"choices":[{"index":0,"text":"older","delta":{"role":"assistant"}}]}`, true},
	{`{"obfuscation":"r","id":"c1","created":7,"choices":[{"index":0,"text":"oldest","delta":{"role":"assistant"}}]}`, false},
	{`{"choices":[{"index":1,"delta":{"content":"second"}}]}`, false},
	{`{"choices":[{"index":1,"delta":{"content":"choice"}}]}`, false},
	{`{"choices":[{"index":0,"delta":{"content":"choice"}}]}`, false},
	{`{"choices":[{"index":0,"delta":{"content":"end"},"finish_reason":"stop"}]}`, false},
	{`{"choices":[{"index":0,"delta":{"content":"once more"},"finish_reason":"stop"}]}`, false},
	{`{"error":{"message":"no"}}`, false},
}

// meaning is a Delta without what only the pattern needs.
func meaning(data string, known *Known) Delta {
	d := *Chat{}.Decode(&Event{Data: []byte(data), HasData: true}, known)
	d.texts, d.padding = nil, nil
	return d
}

func TestAnEventOfThePatternMeansWhatItIsReadToMean(t *testing.T) {
	var known Known
	for i, x := range patterned {
		alike := known.like.match([]byte(x.data), new(Delta), known.ID)
		if alike != x.alike {
			t.Errorf("event %d %s: of the pattern %v, want %v", i, x.data, alike, x.alike)
		}
		if got, want := meaning(x.data, &known), meaning(x.data, &Known{ID: known.ID}); !reflect.DeepEqual(got, want) {
			t.Errorf("event %d %s:\nafter others %+v\nby itself    %+v", i, x.data, got, want)
		}
	}
}

func TestThePatternDoesNotChangeWithTheBufferItWasReadFrom(t *testing.T) {
	var known Known
	buf := []byte(plainChunk(`{"content":"first","tool_calls":null}`, ""))
	Chat{}.Decode(&Event{Data: buf, HasData: true}, &known)
	for i := range buf {
		buf[i] = '!'
	}
	want := plainChunk(`{"content":"second","tool_calls":null}`, "")
	got := meaning(want, &known)
	if got.Text != "second" || string(got.calls) != "null" || !strings.Contains(string(got.message), `"second"`) {
		t.Errorf("text %q, calls %q, message %q", got.Text, got.calls, got.message)
	}
}

func TestLongEventsMakeNoPattern(t *testing.T) {
	var known Known
	long := plainChunk(`{"content":"`+strings.Repeat("x", maxPattern)+`"}`, "")
	meaning(long, &known)
	if cap(known.like.data) > 0 {
		t.Errorf("%d bytes are kept", cap(known.like.data))
	}
}

// FuzzPattern checks that events mean the same after any other event as by themselves.
func FuzzPattern(f *testing.F) {
	for i := 1; i < len(patterned); i++ {
		f.Add([]byte(patterned[i-1].data), []byte(patterned[i].data))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var known Known
		for _, data := range [][]byte{first, second, first, second} {
			if bytes.ContainsAny(data, "\r\n") {
				return
			}
			got, want := meaning(string(data), &known), meaning(string(data), &Known{ID: known.ID})
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%q after %q:\n%+v\nby itself\n%+v", data, first, got, want)
			}
		}
	})
}
