package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

func wholeOf(message, finish string) string {
	return "\n" + `{ "id":"c1", "x" : 1.0e2,"choices":[{"index":0, "message": ` + message + ` ,"logprobs":null,"finish_reason":"` + finish + `"}],"usage":{"prompt_tokens":3} }` + " \n"
}

func (x *exchange) whole(body string, change ...func(*Options)) *Broken {
	w, broken := ReadWhole(respond(strings.NewReader(body)), x.options(change...))
	if broken != nil {
		return broken
	}
	return w.Deliver(context.Background())
}

func TestMendWhole(t *testing.T) {
	const bad = `{"role":"assistant","content":null, "tool_calls": [ {"id":"a","type":"function","function":{"name":"ls","arguments":"{'p':1}"},"extra_content":{"s":"1"}} , {"type":"function","function":{"name":"f", "arguments":"{}"},"id":"b"} ],"refusal":null}`
	text := "So."
	cases := []struct {
		name, message, finish string
		m                     *mender
		want, wantFinish      string // empty: unchanged
		draft                 string
		old                   bool // its client offers functions, and no tools
	}{
		{name: "pass", message: bad, finish: "tool_calls", m: judging(nil), draft: fmt.Sprint([]recovery.DraftCall{fn("a", "ls", "{'p':1}"), fn("b", "f", "{}")})},
		{name: "arguments", message: bad, finish: "stop", m: replacing(nil, recovery.FinishCalls, fn("a", "ls", `{"p":1}`), fn("b", "f", "{}")), wantFinish: "tool_calls",
			want: strings.NewReplacer(`"{'p':1}"`, `"{\"p\":1}"`, `[ {`, `[{`, `} , {`, `},{`, `} ]`, `}]`).Replace(bad)},
		{name: "one less", message: bad, finish: "tool_calls", m: replacing(nil, "", fn("b", "f", "{}")),
			want: strings.Replace(bad, bad[strings.Index(bad, "[ "):strings.Index(bad, ` ],"refusal`)+2], `[{"type":"function","function":{"name":"f", "arguments":"{}"},"id":"b"}]`, 1)},
		{name: "leaked", message: `{"content":"<call>ls</call>"}`, finish: "stop", m: replacing(&text, recovery.FinishCalls, fn("a", "ls", "{}")), wantFinish: "tool_calls",
			want: `{"content":"So.","tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]}`},
		{name: "null calls", message: `{"content":"x","tool_calls":null,"y":1}`, finish: "stop", m: replacing(nil, recovery.FinishCalls, fn("a", "ls", "{}")), wantFinish: "tool_calls",
			want: `{"content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}],"y":1}`},
		{name: "content only", message: `{"content":"` + "```" + `{}","reasoning":"r"}`, finish: "stop", m: replacing(&text, ""), want: `{"content":"So.","reasoning":"r"}`},
		{name: "content beside calls", message: strings.Replace(bad, "null", `"x"`, 1), finish: "tool_calls", m: replacing(&text, "", fn("a", "ls", "{'p':1}"), fn("b", "f", "{}")), want: strings.Replace(bad, "null", `"So."`, 1)},
		{name: "no calls left", message: bad, finish: "tool_calls", m: replacing(&text, recovery.FinishStop), wantFinish: "stop",
			want: `{"role":"assistant","content":"So.", "tool_calls": [],"refusal":null}`},
		{name: "object arguments", message: `{"content":null,"tool_calls":[{"id":"a","function":{"arguments":{"p": 1},"name":"ls"}}]}`, finish: "tool_calls", m: judging(nil),
			want: `{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{\"p\": 1}"}}]}`},
		{name: "no id", message: `{"content":null,"tool_calls":[{"function":{"arguments":"{}","name":"ls"}}]}`, finish: "tool_calls", m: replacing(nil, "", fn("n", "ls", "{}")),
			want: `{"content":null,"tool_calls":[{"id":"n","type":"function","function":{"name":"ls","arguments":"{}"}}]}`},
		{name: "old form", message: `{"content":null,"function_call":{"name":"ls","arguments":"{"}}`, finish: "function_call", m: judging(nil), old: true},
		{name: "old form with an object", message: `{"content":null,"function_call":{"name":"ls","arguments":{}}}`, m: judging(nil), old: true},
		{name: "old form for a client with tools", message: `{"content":null,"function_call":{"name":"ls","arguments":"{}"}}`, finish: "function_call", m: replacing(nil, "", fn("n", "ls", "{}")),
			wantFinish: "tool_calls", want: `{"content":null,"function_call":null,"tool_calls":[{"id":"n","type":"function","function":{"name":"ls","arguments":"{}"}}]}`},
		{name: "custom", message: `{"content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"sh","input":"ls"}}]}`, finish: "tool_calls",
			m: replacing(nil, "", recovery.DraftCall{ID: "a", Kind: "custom", Name: "sh", Arguments: "ls -l"}), want: `{"content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"sh","input":"ls -l"}}]}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			x := newExchange()
			told := 0
			body := wholeOf(c.message, c.finish)
			if broken := x.whole(body, mended(t, c.m), func(o *Options) {
				o.Repaired = func([]recovery.Repair) { told++ }
				if c.old {
					o.Request = request(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"functions":[{"name":"ls"}]}`)
				}
			}); broken != nil {
				t.Fatalf("%+v", broken)
			}
			want := body
			if c.want != "" {
				want = strings.Replace(want, c.message, c.want, 1)
			}
			if c.wantFinish != "" {
				want = strings.Replace(want, `"finish_reason":"`+c.finish, `"finish_reason":"`+c.wantFinish, 1)
			}
			if x.got() != want || !json.Valid([]byte(want)) || (told == 1) != (c.want != "") || x.header.Get("Content-Length") != fmt.Sprint(len(want)) {
				t.Errorf("told %d times\ngot  %q\nwant %q", told, x.got(), want)
			}
			if c.draft != "" && fmt.Sprint(c.m.drafts[0].Calls) != c.draft {
				t.Errorf("judged %+v", c.m.drafts)
			}
		})
	}
}

// TestWholeCalls: a call of a complete message is read as one of a stream is, whatever its fields are.
func TestWholeCalls(t *testing.T) {
	for _, v := range []string{`null`, `3`, `1.50`, `true`, `""`, `"a"`, `"{\"a\":\"\\n\u00e9\"}"`, `{"a":[1]}`, `[ ]`, `{}`} {
		for _, call := range []string{
			`{"id":"a"}`, `{"id":` + v + `,"id":"later","type":"function","function":{"name":"f","arguments":` + v + `}}`,
			`{"function":{"name":"f","arguments":` + v + `,"arguments":"later"}}`, `{"id":"a","type":` + v + `,"function":` + v + `}`, `{"custom":{"name":"f","input":` + v + `}}`,
			`{"id":"a","function":` + v + `,"custom":{"name":"f","input":"x"}}`, `{"fu\u006ection":{"na\u006de":"f","arguments":` + v + `},"x":` + v + `}`,
		} {
			d := Chat{}.DecodeWhole([]byte(`{"choices":[{"message":{"tool_calls":[` + call + `]},"finish_reason":"tool_calls"}]}`))
			whole, streamed := calls{whole: true}, calls{}
			Chat{}.calls(nil, &d, &whole)
			Chat{}.calls(nil, Chat{}.Decode(&Event{Data: []byte(`{"choices":[{"delta":{"tool_calls":[` + call + `]}}]}`), HasData: true}, new(Known)), &streamed)
			if got, want := fmt.Sprint(whole.drafts()), fmt.Sprint(streamed.draft()); got != want || whole.list[0].raw != call {
				t.Errorf("%s\ngot  %s\nwant %s", call, got, want)
			}
		}
	}
}

func TestAskWhole(t *testing.T) {
	body := wholeOf(`{"content":null,"tool_calls":[{"id":"a","function":{"name":"nope","arguments":"{}"}}]}`, "tool_calls")
	x := newExchange()
	broken := x.whole(body, mended(t, asking(recovery.FlawName)))
	if broken == nil || !errors.Is(broken.Err, recovery.ErrFlawed) || broken.Flaw == nil || broken.Flawed == nil || x.status != 0 {
		t.Fatalf("%+v", broken)
	}
	if b := broken.Flawed.Deliver(context.Background()); b != nil || x.got() != body {
		t.Errorf("%+v %q", b, x.got())
	}
	if u, first := broken.Flawed.Usage(); u.Input != 3 || first <= 0 {
		t.Errorf("%+v %v", u, first)
	}
	x = newExchange()
	if broken = x.whole(body, mended(t, asking(recovery.FlawName))); broken == nil || broken.Flawed == nil {
		t.Fatalf("%+v", broken)
	}
	broken.Flawed.Discard()
	x = newExchange()
	m := &mender{watch: &watching{after: 20}}
	if broken = x.whole(wholeOf(`{"content":"again again ","reasoning":"and again"}`, "length"), mended(t, m)); broken == nil || broken.Flaw.Kind != recovery.FlawRepetition || broken.Flawed == nil {
		t.Errorf("a runaway: %+v", broken)
	}
	two := strings.Replace(body, `"choices":[`, `"choices":[{"index":1,"message":{"content":"x"},"finish_reason":"stop"},`, 1)
	for name, body := range map[string]string{"two choices": two, "logprobs": strings.Replace(body, `"logprobs":null`, `"logprobs":{}`, 1)} {
		x, m := newExchange(), asking(recovery.FlawName)
		if broken := x.whole(body, mended(t, m)); broken != nil || x.got() != body || len(m.drafts) != 0 {
			t.Errorf("%s: %+v", name, broken)
		}
	}
}

// TestWholeKeepsNothing: what is said of an answer is no part of its buffer, which
// the next answer gets.
func TestWholeKeepsNothing(t *testing.T) {
	body := wholeOf(`{"content":"some text","tool_calls":[{"id":"call_1","type":"function","function":{"name":"tool","arguments":"value"}}]}`, "tool_calls")
	echo := judging(func(d recovery.Draft) recovery.Verdict {
		c := d.Calls[0]
		return recovery.Verdict{Judgement: recovery.JudgeAsk, Flaw: &recovery.Flaw{Kind: recovery.FlawName, Tool: c.Name, Quote: d.Text, Problem: c.ID + c.Kind + c.Arguments}}
	})
	x := newExchange()
	w, broken := ReadWhole(respond(strings.NewReader(body)), x.options(mended(t, echo)))
	if w != nil || broken == nil || broken.Flaw == nil {
		t.Fatalf("%+v", broken)
	}
	clear(broken.Flawed.(*Whole).buf.Bytes())
	if f := *broken.Flaw; f.Tool != "tool" || f.Quote != "some text" || f.Problem != "call_1functionvalue" {
		t.Errorf("%+v", f)
	}
}

// TestMendBranded: an answer that gets another identity is judged as it was.
func TestMendBranded(t *testing.T) {
	body := wholeOf(`{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"tool","arguments":"{\"a\":1"}}]}`, "tool_calls")
	m := replacing(nil, recovery.FinishNone, fn("a", "tool", `{"a":1}`))
	x := newExchange()
	broken := x.whole(body, mended(t, m), func(o *Options) { o.Explain, o.ID = true, "req_of_some_length" })
	if broken != nil || len(m.drafts) == 0 || m.drafts[0].Calls[0] != fn("a", "tool", `{"a":1`) {
		t.Fatalf("%+v %+v", broken, m.drafts)
	}
	if got := gjson.Parse(x.got()); got.Get("id").Str != IDPrefix+"req_of_some_length" || got.Get("choices.0.message.tool_calls.0.function.arguments").Str != `{"a":1}` {
		t.Error(x.got())
	}
}

// What the gateway composes is reported once, in the form that the request asks for.
func TestCompose(t *testing.T) {
	for body, kind := range map[string]string{`{"model":"m","stream":true,"messages":[]}`: "text/event-stream; charset=utf-8", `{"model":"m","messages":[]}`: "application/json"} {
		x, reported := newExchange(), 0
		n := Compose(request(t, body), Composition{ID: "req_1", Model: "m"}, []recovery.Repair{{Rule: "r"}}, x.options(func(o *Options) { o.Repaired = func([]recovery.Repair) { reported++ } }))
		if broken := n.Deliver(context.Background()); broken != nil || reported != 1 || x.status != 200 || x.header.Get("Content-Type") != kind || !strings.Contains(x.got(), `"finish_reason":"stop"`) {
			t.Errorf("%+v, reported %d times, %v\n%s", broken, reported, x.header, x.got())
		}
	}
}

func TestRejected(t *testing.T) {
	groq := `{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=ls>{}</function>"}}`
	quoted, _ := json.Marshal(groq)
	for body, want := range map[string]string{
		groq: "<function=ls>{}</function>", `{"error":{"message":"Provider returned error","metadata":{"raw":` + string(quoted) + `}}}`: "<function=ls>{}</function>",
		`{"failed_generation":"x"}`: "x", `{"error":{"failed_generation":""}}`: "", `{"error":{"failed_generation":{"a":1}}}`: "", `{"error":"x"}`: "", `no JSON`: "", ``: "",
	} {
		if got, ok := Rejected([]byte(body)); got != want || ok != (want != "") {
			t.Errorf("%s: %q %v", body, got, ok)
		}
	}
}

// TestFlawedAfterTool: an answer behind a tool that has run at the provider is not asked for again, which would run the tool a
// second time. Tools that only read may run again.
func TestFlawedAfterTool(t *testing.T) {
	const response = `{"id":"r","object":"response","status":"completed","output":[{"id":"p","type":"TOOL"},{"type":"function_call","call_id":"a","name":"f","arguments":"{"}]}`
	const message = `{"id":"m","type":"message","role":"assistant","content":[{"type":"TOOL","id":"p","name":"send","input":{}},{"type":"tool_use","id":"a","name":"f","input":{}}],"stop_reason":"tool_use"}`
	for _, c := range []struct {
		format     Format
		body, tool string
		asked      bool
	}{
		{Responses{}, response, "mcp_call", false},
		{Responses{}, response, "code_interpreter_call", false},
		{Responses{}, response, "web_search_call", true},
		{Messages{}, message, "mcp_tool_use", false},
		{Messages{}, message, "text", true},
	} {
		x, body := newExchange(), strings.Replace(c.body, "TOOL", c.tool, 1)
		broken := x.whole(body, mended(t, asking(recovery.FlawArguments)), func(o *Options) { o.Format = c.format })
		if asked := broken != nil && broken.Flaw != nil; asked != c.asked || !asked && x.got() != body {
			t.Errorf("%s: %+v, %s", c.tool, broken, x.got())
		}
	}
}
