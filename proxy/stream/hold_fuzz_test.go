package stream

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// TestLeaks: what may be a call is held from its first sign on, and comes out of
// the text that was shown before. What turns out to be text goes on at once, as it came.
func TestLeaks(t *testing.T) {
	none := ""
	for name, c := range map[string]struct {
		chunks []string
		shown  int // bytes of the first chunks that the client has before the call
	}{
		"at the beginning": {[]string{"\n", "<tool_", "call>ls</tool_call>"}, 0},
		"after a sentence": {[]string{"I ", "look.\n", "<", "tool_call>ls</tool_call>"}, 8},
		"in one chunk":     {[]string{"I ", "look.\n<tool_call>ls</tool_call>"}, 2},
		"after a false":    {[]string{"a <", "td> <tool_", "x ", "<tool_call>", "ls</tool_call>"}, 15},
	} {
		x, m := newExchange(), replacing(&none, recovery.FinishCalls, fn("a", "ls", "{}"))
		body := one.role() + one.reason("hm")
		for _, s := range c.chunks {
			body += one.text(s)
		}
		all := strings.Join(c.chunks, "")
		body += one.finish("stop") + one.usage() + end
		if broken := x.serve(&chunkedReader{r: strings.NewReader(body)}, mended(t, m)); broken != nil || m.drafts[0].Shown != c.shown || m.drafts[0].Text != all {
			t.Fatalf("%s: %+v, judged %+v", name, broken, m.drafts)
		}
		if text, list, finish := merged(t, x.got()); text != all[:c.shown] || len(list) != 1 || finish != "tool_calls" || !strings.HasPrefix(x.got(), one.role()+one.reason("hm")) {
			t.Errorf("%s: %q %v %q\n%s", name, text, list, finish, x.got())
		}
	}
	for _, first := range []string{"\n", "<", " <tool", "so <tool_call"} { // held until the next chunk tells, and no longer
		x, m := newExchange(), judging(nil)
		body := one.role() + one.text(first) + one.text("x, and ")
		a, broken := Open(respond(&chunkedReader{r: strings.NewReader(body + one.words("more") + one.finish("stop") + end)}), x.options(mended(t, m)))
		if broken != nil || string(a.held.Bytes) != body {
			t.Fatalf("%q: %+v", first, broken)
		}
		if broken := a.Deliver(t.Context()); broken != nil || m.drafts[0].Shown != len(first+"x, and more") || m.drafts[0].Text != first+"x, and more" {
			t.Errorf("%q: %+v %+v", first, broken, m.drafts)
		}
	}
}

// randomAnswer is a valid stream as servers send them.
func randomAnswer(rnd *rand.Rand) string {
	var b strings.Builder
	one := voice("v" + strconv.Itoa(rnd.IntN(1000)))
	if rnd.IntN(4) > 0 {
		b.WriteString(one.role())
	}
	for range rnd.IntN(3) {
		b.WriteString(one.reason("hm "))
	}
	texts := []string{"a ", "<", "[", "\n", "<tool_", "ü ", "<tool_call>", "word "}
	for range rnd.IntN(5) {
		b.WriteString(one.text(texts[rnd.IntN(len(texts))]))
	}
	if rnd.IntN(5) == 0 {
		b.WriteString(ping)
	}
	n := rnd.IntN(4)
	for i := range n {
		args, _ := json.Marshal(map[string]any{"p": strings.Repeat("x\"{", rnd.IntN(5)), "n": rnd.IntN(9)})
		b.WriteString(one.calls(`{"index":` + strconv.Itoa(i) + `,"id":"c` + strconv.Itoa(i) + `","type":"function","function":{"name":"ls","arguments":""}}`))
		for _, piece := range pieces(string(args), 1+rnd.IntN(9)) {
			b.WriteString(one.calls(`{"index":` + strconv.Itoa(i) + `,"function":{"arguments":` + strconv.Quote(piece) + `}}`))
			if rnd.IntN(9) == 0 {
				b.WriteString([]string{ping, one.text("late "), one.reason("so ")}[rnd.IntN(3)])
			}
		}
	}
	switch {
	case n > 0:
		b.WriteString(one.finish("tool_calls"))
	case rnd.IntN(2) == 0:
		b.WriteString(one.chunk(`{"content":"end."}`, "stop"))
	default:
		b.WriteString(one.text(".") + one.finish("stop"))
	}
	if rnd.IntN(2) == 0 {
		b.WriteString(one.usage())
	}
	out := b.String() + end
	if rnd.IntN(4) == 0 {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	}
	return out
}

// TestValidUntouched: of answers that pass the judgement the client gets the
// upstream's very bytes, whatever is held and however they come.
func TestValidUntouched(t *testing.T) {
	holds := []recovery.Hold{{}, {Calls: true}, {Text: true}, {Calls: true, Text: true}}
	for seed := range uint64(4000) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		body := randomAnswer(rnd)
		var src io.Reader = strings.NewReader(body)
		if rnd.IntN(2) == 0 {
			src = &chunked{rest: body, sizes: []byte{byte(1 + rnd.IntN(250)), byte(1 + rnd.IntN(9)), byte(1 + rnd.IntN(100))}}
		}
		m := &mender{hold: holds[rnd.IntN(len(holds))]}
		x := newExchange(func(c *Config) {
			if rnd.IntN(4) == 0 {
				c.MidStream = MidStreamBuffer
			}
		})
		if broken := x.serve(src, mended(t, m)); broken != nil || x.got() != body {
			t.Fatalf("seed %d, %+v: %+v\ngot  %q\nwant %q", seed, m.hold, broken, x.got(), body)
		}
		if held := m.hold != (recovery.Hold{}); len(m.drafts) > 1 || (len(m.drafts) == 1) != held {
			t.Fatalf("seed %d: judged %d times", seed, len(m.drafts))
		}
	}
}

// FuzzHold: whatever an upstream sends and whatever is judged of it: nothing of
// a call is out before its judgement, what is written is made of whole events,
// and a flawed answer can be delivered as it is.
func FuzzHold(f *testing.F) {
	f.Add(one.role()+one.words("a b")+one.call()+one.finish("tool_calls")+end, uint8(0), uint8(1))
	f.Add(one.calls(`{"id":"a","function":{"name":"ls","arguments":{"a":1}}},{"id":"b","function":{"name":"f"}}`)+one.chunk(`{"content":"x"}`, "stop")+one.usage(), uint8(1), uint8(3))
	f.Add(one.chunk(`{"function_call":{"name":"ls","arguments":"{}"}}`, "function_call")+end, uint8(2), uint8(2))
	f.Add(one.text("<tool_call>")+strings.Replace(one.finish("stop"), `"delta":{}`, `"delta":null,"message":{"tool_calls":[{}]}`, 1)+end, uint8(1), uint8(7))
	f.Add(one.role()+one.call()+one.call()+one.usage()+end, uint8(1), uint8(3))
	f.Add(one.text("a")+one.call()+one.finish("tool_calls")+one.call()+one.finish("stop")+end, uint8(1), uint8(3))
	f.Add(one.text("a")+one.finish("network_error")+strings.Replace(one.text("b"), `"index":0`, `"index":NaN`, 1)+end, uint8(0), uint8(3))
	f.Add("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1,\"id\":1,\ndata: \"function\":[]}]},\"finish_reason\":\"stop\"}]}\r\n\r\n"+end, uint8(1), uint8(1))
	f.Fuzz(fuzzOne)
}

func fuzzOne(t *testing.T, body string, verdict, how uint8) {
	text := "fixed"
	m := &mender{hold: recovery.Hold{Calls: how&1 > 0, Text: how&2 > 0}, mend: func(d recovery.Draft) recovery.Verdict {
		switch verdict % 4 {
		case 1:
			return recovery.Verdict{Judgement: recovery.JudgeReplace, Calls: append(d.Calls, fn("n", "f", "{}")), Text: &text, Finish: recovery.FinishCalls}
		case 2:
			return recovery.Verdict{Judgement: recovery.JudgeReplace, Text: &text}
		case 3:
			return recovery.Verdict{Judgement: recovery.JudgeAsk, Flaw: &recovery.Flaw{}}
		}
		return recovery.Verdict{}
	}}
	x := newExchange(func(c *Config) { c.MaxEvent, c.MaxAnswer = 1<<16, 1<<16 })
	var src io.Reader = strings.NewReader(body)
	if how&4 > 0 {
		src = &chunked{rest: body, sizes: []byte{how/8 + 1, 77}}
	}
	broken := x.serve(src, mended(t, m))
	if x.fails != nil {
		t.Fatal("the client failed")
	}
	if broken != nil && broken.Flaw == nil && how&1 > 0 && x.read().calls > 0 && len(m.drafts) == 0 && x.sink.Released() < recovery.ReleasedCall {
		t.Fatalf("%+v, but the client has %q", broken, x.got())
	}
	if broken != nil && (broken.Flaw != nil || broken.Odd == OddEnd) != (broken.Flawed != nil) {
		t.Fatalf("%+v", broken)
	}
	if broken != nil && broken.Flawed != nil {
		if b := broken.Flawed.Deliver(context.Background()); b != nil {
			t.Fatalf("as it is: %+v", b)
		}
	}
	r := NewReader(strings.NewReader(x.got()), 1<<20)
	for {
		ev, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in %q", err, x.got())
		}
		if d := *(Chat{}).Decode(&ev, new(Known)); d.Kind == KindNoise || d.Kind == KindCut {
			t.Fatalf("malformed: %q", ev.Raw)
		}
	}
	if verdict%4 == 0 && !m.odd(t, body) {
		plain := newExchange(func(c *Config) { c.MaxEvent, c.MaxAnswer = 1<<16, 1<<16 })
		if other := plain.serve(strings.NewReader(body), func(o *Options) { o.Request = request(t, toolRequest) }); other == nil && broken == nil && plain.got() != x.got() {
			t.Fatalf("changed:\n%q\n%q", x.got(), plain.got())
		}
	}
}

// odd reports whether a stream has calls that have to be rewritten.
func (m *mender) odd(t *testing.T, body string) bool {
	c := calls{known: request(t, toolRequest).HasTool}
	r := NewReader(strings.NewReader(body), 1<<16)
	for {
		ev, err := r.Next()
		if err != nil {
			c.draft()
			return c.odd || c.legacy
		}
		if d := *(Chat{}).Decode(&ev, new(Known)); d.Kind != KindNoise && d.Kind != KindCut && d.Kind != KindDone {
			Chat{}.calls(ev.Data, &d, &c)
		}
	}
}

// FuzzMendWhole: a complete answer stays valid JSON whatever replaces its calls,
// and what is not replaced stays as it was.
func FuzzMendWhole(f *testing.F) {
	f.Add(wholeOf(`{"content":null,"tool_calls":[{"id":"a","function":{"name":"ls","arguments":{"a":1}}},{"id":"a"}]}`, "tool_calls"), uint8(1))
	f.Add(wholeOf(`{"content":"x","function_call":{"name":"ls","arguments":"{"}}`, "stop"), uint8(0))
	f.Add(`{"choices":[{"message":{"a":1,"tool_calls":[1,null,{"function":3}],"tool_calls":[]}}]}`, uint8(2))
	f.Add(`{"choices":[{"message":{},"finish_reason":"length"}]}`, uint8(1))
	f.Fuzz(func(t *testing.T, body string, verdict uint8) {
		text := "fixed"
		m := judging(func(d recovery.Draft) recovery.Verdict {
			switch verdict % 3 {
			case 1:
				return recovery.Verdict{Judgement: recovery.JudgeReplace, Calls: append(d.Calls, fn("n", "f", "{}")), Text: &text, Finish: recovery.FinishCalls}
			case 2:
				for i := range d.Calls {
					d.Calls[i].Arguments, d.Calls[i].ID = "{}", strconv.Itoa(i)
				}
				return recovery.Verdict{Judgement: recovery.JudgeReplace, Calls: d.Calls}
			}
			return recovery.Verdict{}
		})
		x := newExchange()
		started := time.Now()
		if broken := x.whole(body, mended(t, m)); broken != nil {
			return
		}
		if time.Since(started) > 5*time.Second {
			t.Fatal("slow")
		}
		d := Chat{}.DecodeWhole([]byte(strings.TrimSpace(x.got())))
		if d.Kind == KindNoise || d.Kind == KindCut {
			t.Fatalf("%q", x.got())
		}
		if len(m.drafts) == 0 && x.got() != body {
			t.Fatalf("changed without a judgement: %q", x.got())
		}
	})
}
