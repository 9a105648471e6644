package stream

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// reasoned is a target that was seen to give finish reasons, silent one that was not.
func reasoned(o *Options) {
	o.Ending = &Ending{}
	o.Ending.reasons.Store(true)
}

func bare(o *Options) {
	o.Ending = &Ending{}
	o.Ending.bare.Store(true)
}

func silent(o *Options) { o.Ending = &Ending{} }

func faulted(o *Options) {
	silent(o)
	o.Fault = func(b []byte) bool { return bytes.Contains(b, []byte("internal error")) }
}

// untyped is a stream whose chunks have this in the place of a finish reason that is null.
func untyped(stream, reason string) string {
	return strings.ReplaceAll(stream, `"finish_reason":null`, `"finish_reason":`+reason)
}

// TestNoFinishReason: an answer of a target that gives no finish reason is complete with its
// end mark or its usage, and gets the one that is missing.
func TestNoFinishReason(t *testing.T) {
	said := one.role() + one.words("It is fine")
	called := one.role() + one.call()
	stop, calls := one.finish("stop"), one.finish("tool_calls")
	for _, c := range []struct {
		name, in, want string
		target         func(*Options)
		err            error
	}{
		{name: "end mark", in: said + end, want: said + stop + end},
		{name: "usage, end mark", in: said + one.usage() + end, want: said + stop + one.usage() + end},
		{name: "usage, end", in: said + one.usage(), want: said + stop + one.usage() + end},
		{name: "empty strings", in: untyped(said, `""`) + end, want: untyped(said, `""`) + stop + end},
		{name: "the word null", in: untyped(said, `"null"`) + end, want: untyped(said, `"null"`) + stop + end},
		{name: "a call", in: called + end, want: called + calls + end},
		{name: "a call and usage", in: called + one.usage() + end, want: called + calls + one.usage() + end},
		{name: "a call and no end mark", in: called, err: ErrEnded},
		{name: "a call and no end mark, of a target that gives none", in: called, target: bare, want: called + calls + end},
		{name: "text, a call and no end mark", in: said + one.call(), target: bare, want: said + one.call() + calls + end},
		{name: "half a call and no end mark", in: said + one.chunk(`{"tool_calls":[{"index":0,"id":"t1","function":{"name":"f","arguments":"{\"a\":"}}]}`, "null"), target: bare, err: ErrEnded},
		{name: "text and a call", in: said + one.call() + end, want: said + one.call() + calls + end},
		{name: "half a call", in: one.role() + one.chunk(`{"tool_calls":[{"index":0,"id":"t1","function":{"name":"f","arguments":"{\"a\":"}}]}`, "null") + end, err: ErrEnded},
		{name: "nothing behind it", in: said, err: ErrEnded},
		{name: "usage before the reason", in: said + one.usage() + stop + end, want: said + one.usage() + stop + end},
		{name: "usage in between", in: said + one.usage() + one.words(" too") + one.usage() + stop + end, want: said + one.usage() + one.words(" too") + one.usage() + stop + end},
		{name: "usage again and again", in: said + one.usage() + one.words(" too") + one.usage() + end, want: said + one.usage() + one.words(" too") + stop + one.usage() + end},
		{name: "usage before a cut", in: said + one.usage() + one.words(" too"), err: ErrEnded},
		{name: "usage first", in: one.usage() + said, err: ErrEnded},
		{name: "an error of an unknown form behind it", in: said + `data: {"code":20000,"message":"internal error"}` + "\n\n" + one.usage() + end, target: faulted, err: ErrEnded},
		{name: "a line with an error behind it", in: said + "error: internal error\n\n" + end, target: faulted, err: ErrEnded},
		{name: "odd events behind it that are no error", in: said + `data: {"idle":true}` + "\n\nretry: 3\n\n" + end, target: faulted, want: said + `data: {"idle":true}` + "\n\nretry: 3\n\n" + stop + end},
		{name: "a target that gives them", in: said + end, target: reasoned, err: ErrEnded},
		{name: "a target that gives them, with usage", in: said + one.usage() + end, target: reasoned, want: said + stop + one.usage() + end},
		{name: "a target that gives them, cut behind usage", in: said + one.usage(), target: reasoned, err: ErrEnded},
	} {
		for _, m := range []recovery.Mender{nil, judging(nil)} {
			if m == nil && strings.Contains(c.in, "tool_calls") {
				continue // nobody puts its calls together
			}
			t.Run(fmt.Sprintf("%s/%v", c.name, m != nil), func(t *testing.T) {
				x := newExchange()
				if c.target == nil {
					c.target = silent
				}
				change := []func(*Options){c.target, func(o *Options) { o.Request = request(t, toolRequest) }}
				if m != nil {
					change = append(change, mended(t, m))
				}
				broken := x.serve(&chunkedReader{rest: []byte(c.in)}, change...)
				if c.err != nil {
					if broken == nil || broken.Err != c.err || strings.Contains(x.got(), "stop") || strings.Contains(x.got(), end) {
						t.Errorf("%+v: %s", broken, x.got())
					}
					return
				}
				if broken != nil || x.got() != c.want {
					t.Errorf("%+v\ngot  %s\nwant %s", broken, x.got(), c.want)
				}
			})
		}
	}
}

// A target that leaves out the finish reason behind whole calls, or all of the end: odd, and
// deliverable as it is.
func TestReasonLeftOut(t *testing.T) {
	called := one.role() + one.call()
	for in, bare := range map[string]bool{called + end: false, called: true} {
		x, target := newExchange(), &Ending{}
		target.reasons.Store(true)
		_, broken := Open(respond(strings.NewReader(in)), x.options(mended(t, judging(nil)), func(o *Options) { o.Ending = target }))
		if broken == nil || broken.Odd != OddEnd || broken.Flawed == nil {
			t.Fatalf("%+v", broken)
		}
		if b := broken.Flawed.Deliver(t.Context()); b != nil || x.got() != called+one.finish("tool_calls")+end {
			t.Errorf("%+v: %s", b, x.got())
		}
		if target.reasons.Load() || target.bare.Load() != bare {
			t.Error("the next answer of the kind is asked for twice again")
		}
	}
}

// TestTwoReasons: of two finish reasons the client gets the last that fits the content.
func TestTwoReasons(t *testing.T) {
	said, called := one.role()+one.words("It is fine"), one.role()+one.call()
	void := func(chunk, reason string) string {
		return strings.Replace(chunk, `"finish_reason":"`+reason+`"`, `"finish_reason":null`, 1)
	}
	stop, calls := one.finish("stop"), one.finish("tool_calls")
	for name, c := range map[string][2]string{
		"calls, then stop":       {called + calls + stop + end, called + calls + void(stop, "stop") + end},
		"text, then calls":       {said + stop + calls + end, said + stop + void(calls, "tool_calls") + end},
		"the same twice":         {said + stop + stop + end, said + stop + stop + end},
		"length after stop":      {said + stop + one.finish("length") + end, said + stop + one.finish("length") + end},
		"the same twice, called": {called + calls + calls + end, called + calls + calls + end},
	} {
		x := newExchange()
		if broken := x.serve(strings.NewReader(c[0]), mended(t, judging(nil))); broken != nil || x.got() != c[1] {
			t.Errorf("%s: %+v\ngot  %s\nwant %s", name, broken, x.got(), c[1])
		}
	}
}

// TestOneChoiceEndsTwice: a choice that ends twice does not end another.
func TestOneChoiceEndsTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := func(s string) string { return strings.Replace(s, `"index":0`, `"index":1`, 1) }
		x := newExchange()
		u := play(true, nil, step{0, one.text("a") + second(one.text("b "))}, step{0, one.finish("stop")}, step{0, one.finish("stop")},
			step{5 * time.Second, second(one.text("c")+one.finish("stop")) + second(one.finish("stop")) + end})
		if broken := x.deliver(t, u, nil, choices(2)); broken != nil || !strings.Contains(x.got(), `"c"`) {
			t.Errorf("%+v\n%s", broken, x.got())
		}
	})
}

// TestUsageInTheMiddle: a pause behind usage is no end of an answer.
func TestUsageInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, p := newExchange(), &pauses{}
		u := play(true, nil, step{0, one.role() + one.text("a ")}, step{0, one.usage()}, step{25 * time.Second, one.text("b") + one.finish("stop") + one.usage() + end})
		if broken := x.deliver(t, u, p.giveUp); broken != nil || x.read().whole("a b") != "" || len(p.at) != 0 {
			t.Errorf("%+v, %d pauses\n%s", broken, len(p.at), x.got())
		}
	})
}

// TestOneCallTwice: the same call sent again is one call, streamed and whole.
func TestOneCallTwice(t *testing.T) {
	whole := func(index, id, args string) string {
		return `{` + index + `"id":"` + id + `","type":"function","function":{"name":"f","arguments":` + fmt.Sprintf("%q", args) + `}}`
	}
	push, spaced := `{"command":"git push"}`, `{ "command": "git \u0070ush" }`
	first := one.calls(whole(`"index":0,`, "c1", push))
	pieces := one.calls(`{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\"command\":"}}`) +
		one.calls(`{"index":0,"function":{"arguments":"\"git push\"}"}}`)
	for name, c := range map[string]struct {
		in   string
		want int
	}{
		"same index":                {one.role() + first + first + one.finish("tool_calls") + end, 1},
		"other index":               {one.role() + first + one.calls(whole(`"index":1,`, "c1", push)) + one.finish("tool_calls") + end, 1},
		"no index":                  {one.role() + one.calls(whole("", "c1", push)) + one.calls(whole("", "c1", push)) + one.finish("tool_calls") + end, 1},
		"written otherwise":         {one.role() + first + one.calls(whole(`"index":1,`, "c1", spaced)) + one.finish("tool_calls") + end, 1},
		"pieces, then whole":        {one.role() + pieces + first + one.finish("tool_calls") + end, 1},
		"pieces twice":              {one.role() + pieces + pieces + one.finish("tool_calls") + end, 1},
		"with the finish reason":    {one.role() + first + one.chunk(`{"tool_calls":[`+whole(`"index":0,`, "c1", push)+`]}`, "tool_calls") + end, 1},
		"behind the finish reason":  {one.role() + first + one.finish("tool_calls") + first + end, 1},
		"in one list":               {one.role() + one.calls(whole(`"index":0,`, "c1", push)+","+whole(`"index":1,`, "c1", push)) + one.finish("tool_calls") + end, 1},
		"another id":                {one.role() + first + one.calls(whole(`"index":1,`, "c2", push)) + one.finish("tool_calls") + end, 2},
		"other arguments, one id":   {one.role() + first + one.calls(whole(`"index":1,`, "c1", `{"command":"ls"}`)) + one.finish("tool_calls") + end, 2},
		"no id":                     {one.role() + one.calls(whole(`"index":0,`, "", push)) + one.calls(whole(`"index":1,`, "", push)) + one.finish("tool_calls") + end, 2},
		"another, and both again":   {one.role() + first + one.calls(whole(`"index":1,`, "c2", "{}")) + first + one.calls(whole(`"index":1,`, "c2", "{}")) + one.finish("tool_calls") + end, 2},
		"another, then the summary": {one.role() + first + one.calls(whole(`"index":1,`, "c2", "{}")) + one.calls(whole(`"index":0,`, "c1", push)+","+whole(`"index":1,`, "c2", "{}")) + one.finish("tool_calls") + end, 2},
	} {
		x := newExchange()
		if broken := x.serve(strings.NewReader(c.in), mended(t, judging(nil))); broken != nil {
			t.Errorf("%s: %+v", name, broken)
			continue
		}
		_, list, finish := merged(t, x.got())
		if len(list) != c.want || finish != "tool_calls" || list[0].Arguments != push {
			t.Errorf("%s: %d calls, %+v\n%s", name, len(list), list, x.got())
		}
	}
	call, other := whole("", "c1", push), whole("", "c2", "{}")
	for list, want := range map[string]string{
		call + "," + call: call, call + "," + other + "," + whole("", "c1", spaced): call + "," + other, call + "," + other: call + "," + other,
	} {
		x := newExchange()
		body := wholeOf(`{"content":null,"tool_calls":[`+list+`]}`, "tool_calls")
		fresh := judging(func(d recovery.Draft) recovery.Verdict { // as ids that occur twice get another
			if strings.Count(fmt.Sprint(d.Calls), "c1") > 1 {
				return recovery.Verdict{Judgement: recovery.JudgeReplace, Calls: d.Calls}
			}
			return recovery.Verdict{}
		})
		if broken := x.whole(body, mended(t, fresh)); broken != nil || x.got() != strings.Replace(body, list, want, 1) {
			t.Errorf("%+v\n%s\nbecame\n%s", broken, body, x.got())
		}
	}
}

// TestHollow: what a target is known to announce without a call means nothing.
func TestHollow(t *testing.T) {
	target := &Ending{}
	known := func(o *Options) { o.Ending = target }
	thought := one.role() + one.reason("hm") + one.finish("tool_calls") + end
	picky := judging(func(d recovery.Draft) recovery.Verdict {
		if d.Finish == recovery.FinishCalls && len(d.Calls) == 0 {
			return recovery.Verdict{Judgement: recovery.JudgeAsk, Flaw: &recovery.Flaw{Kind: recovery.FlawMissing}}
		}
		return recovery.Verdict{}
	})
	for i, flawed := range []bool{true, false} {
		x := newExchange()
		broken := x.serve(strings.NewReader(thought), mended(t, picky), known)
		if (broken != nil && broken.Flaw != nil) != flawed || !flawed && x.got() != thought {
			t.Errorf("answer %d: %+v, %s", i+1, broken, x.got())
		}
	}
	target = &Ending{}
	for i, empty := range []bool{true, false} {
		x := newExchange()
		broken := x.serve(strings.NewReader(one.role()+one.finish("tool_calls")+end), mended(t, picky), known)
		if (broken != nil && broken.Empty) != empty {
			t.Errorf("empty answer %d: %+v", i+1, broken)
		}
		y := newExchange()
		broken = y.whole(wholeOf(`{"content":""}`, "tool_calls"), mended(t, picky), known)
		if (broken != nil && broken.Empty) != (i < 0) {
			t.Errorf("empty whole answer %d: %+v", i+1, broken)
		}
	}
}

// TestEndingsBounded: clients name models, so that there may be any number.
func TestEndingsBounded(t *testing.T) {
	var e Endings
	e.Of("up", "m").reasons.Store(true)
	for i := range maxEndings + 100 {
		e.Of("up", fmt.Sprint(i))
	}
	if !e.Of("up", "m").reasons.Load() || e.n.Load() != maxEndings {
		t.Errorf("%d are kept", e.n.Load())
	}
}

// reply is a stream of a response: its beginning, some events, and its end with this output.
func reply(events string, output ...string) string {
	c := Composition{ID: "1", Model: "m", Created: epoch}
	items := make([][]byte, len(output))
	for i := range output {
		items[i] = []byte(output[i])
	}
	var begin, rest script
	begin.say("response.created", "response", c.response("in_progress"))
	rest.say("response.completed", "response", with(c.response("completed"), "output", transcript.List(items)))
	return string(begin.out) + events + string(rest.out)
}

// TestOnlyAtTheEnd: a response whose output stands in one late event is an answer, and its
// calls are judged.
func TestOnlyAtTheEnd(t *testing.T) {
	text := "It prints hello."
	said := string(message("msg_1", text))
	called := `{"id":"fc_1","type":"function_call","status":"completed","call_id":"c1","name":"f","arguments":"{}"}`
	again := strings.Replace(called, "fc_1", "fc_2", 1)
	other := strings.NewReplacer("fc_1", "fc_2", "c1", "c2", `"f"`, `"ls"`).Replace(called)
	event := func(kind, rest string) string {
		return "event: response." + kind + "\n" + `data: {"type":"response.` + kind + `","output_index":0,"content_index":0,` + rest + "}\n\n"
	}
	item := func(raw string) string {
		return event("output_item.added", `"item":`+raw) + event("output_item.done", `"item":`+raw)
	}
	for name, c := range map[string]struct {
		in, want string // want is empty for the same
		empty    bool
		draft    string
	}{
		"text in the end":           {in: reply("", said), draft: text},
		"a call in the end":         {in: reply("", called), draft: "f({})"},
		"text and a call":           {in: reply("", said, called), draft: text + "f({})"},
		"a call twice":              {in: reply("", called, again), want: reply("", called), draft: "f({})"},
		"two calls with one index":  {in: reply(item(called)+item(other), called, other), draft: "f({})ls({})"},
		"text done":                 {in: reply(event("output_text.done", `"text":"It prints hello."`)), draft: text},
		"text done, and in the end": {in: reply(event("output_text.done", `"text":"It prints hello."`), said), draft: text},
		"a part done":               {in: reply(event("content_part.done", `"part":{"type":"output_text","text":"It prints hello."}`)), draft: text},
		"an item done":              {in: reply(event("output_item.done", `"item":`+said)), draft: text},
		"nothing":                   {in: reply(""), empty: true},
		"no text":                   {in: reply("", string(message("msg_1", ""))), empty: true},
	} {
		x, m := newExchange(), judging(nil)
		x.format = Responses{}
		broken := x.serve(strings.NewReader(c.in), mended(t, m))
		if c.empty {
			if broken == nil || !broken.Empty {
				t.Errorf("%s: %+v", name, broken)
			}
			continue
		}
		if c.want == "" {
			c.want = c.in
		}
		if broken != nil || x.got() != c.want || len(m.drafts) != 1 {
			t.Errorf("%s: %+v, judged %+v\ngot  %s\nwant %s", name, broken, m.drafts, x.got(), c.want)
			continue
		}
		got := m.drafts[0].Text
		for _, c := range m.drafts[0].Calls {
			got += c.Name + "(" + c.Arguments + ")"
		}
		if got != c.draft {
			t.Errorf("%s: judged %q", name, got)
		}
	}
	broke := strings.Replace(reply("", said), `"incomplete_details":null`, `"incomplete_details":{"reason":"upstream_error"}`, 2)
	x := newExchange()
	x.format = Responses{}
	if broken := x.serve(strings.NewReader(strings.ReplaceAll(broke, "completed", "incomplete"))); broken == nil || broken.Err != ErrCut {
		t.Errorf("a response that broke off: %+v", broken)
	}
}

// TestWholeWithoutReason: a whole answer gets the finish reason that it lacks, if its calls are
// whole; strict clients refuse one without.
func TestWholeWithoutReason(t *testing.T) {
	call := func(args string) string {
		return `{"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":` + fmt.Sprintf("%q", args) + `}}]}`
	}
	for _, c := range []struct{ message, was, want string }{
		{`{"content":"A"}`, `"finish_reason":null`, `"finish_reason":"stop"`},
		{`{"content":"A"}`, `"finish_reason":""`, `"finish_reason":"stop"`},
		{`{"content":"A"}`, `"other":1`, `"other":1,"finish_reason":"stop"`},
		{call("{}"), `"finish_reason":null`, `"finish_reason":"tool_calls"`},
		{call(`{"a":`), `"finish_reason":null`, `"finish_reason":null`},
		{`{"content":"A"}`, `"finish_reason":"eos"`, `"finish_reason":"eos"`},
	} {
		x := newExchange()
		body := strings.Replace(wholeOf(c.message, "stop"), `"finish_reason":"stop"`, c.was, 1)
		if broken := x.whole(body, mended(t, judging(nil))); broken != nil || x.got() != strings.Replace(body, c.was, c.want, 1) {
			t.Errorf("%+v: %s", broken, x.got())
		}
	}
}
