package stream

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

// TestReplaceText: text that is held can be replaced, and calls taken away.
func TestReplaceText(t *testing.T) {
	fixed := `{"a":1}`
	for name, hold := range map[string]recovery.Hold{"held": {Text: true}, "buffered": {Calls: true}} {
		x := newExchange(func(c *Config) {
			if name == "buffered" {
				c.MidStream = MidStreamBuffer
			}
		})
		m := replacing(&fixed, "")
		m.hold = hold
		body := one.role() + one.reason("hm") + one.text("```{") + one.text(`"a":1}`) + one.chunk("{\"content\":\"```\"}", "stop") + one.usage() + end
		if broken := x.serve(strings.NewReader(body), mended(t, m)); broken != nil {
			t.Fatalf("%s: %+v", name, broken)
		}
		if x.read().text != fixed {
			t.Errorf("%s: got  %q", name, x.got())
		}
		if m.drafts[0].Shown > 0 || m.drafts[0].Unsaid || m.drafts[0].Text != "```{\"a\":1}```" {
			t.Errorf("%s: judged %+v", name, m.drafts[0])
		}
	}
	x, m := newExchange(), &mender{hold: recovery.Hold{Text: true}}
	body := one.role() + one.words("a b c") + one.call() + one.finish("stop") + end
	if broken := x.serve(strings.NewReader(body), mended(t, m)); broken != nil || x.got() != body || len(x.writes) > 2 {
		t.Errorf("%+v %q", broken, x.got())
	}
}

// TestOnlyCalls: after text that was complete only the calls of another answer
// are wanted.
func TestOnlyCalls(t *testing.T) {
	start := func(t *testing.T) *exchange {
		x := newExchange()
		if broken := x.serve(strings.NewReader(one.role()+one.words("I will list.")+one.calls(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{"}}`)+one.finish("tool_calls")+end), mended(t, asking(recovery.FlawArguments))); broken == nil || broken.Flawed == nil {
			t.Fatalf("%+v", broken)
		}
		return x
	}
	only := func(o *Options) { o.Resume = &recovery.Resume{Sent: "I will list.", Calls: true} }
	call := two.chunk(`{"role":"assistant","content":"Again: ","tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"ls","arguments":"{}"}}]}`, "null")
	for name, body := range map[string]string{
		"calls": two.role() + two.call(), "text and calls": two.role() + two.reason("hm") + two.words("Sorry. I list.") + ping + two.call(),
		"together": call, "text after": call + two.text("done"),
	} {
		x := start(t)
		m := judging(nil)
		if broken := x.serve(strings.NewReader(body+two.finish("tool_calls")+two.usage()+end), mended(t, m), only); broken != nil {
			t.Errorf("%s: %+v", name, broken)
			continue
		}
		got := x.read()
		if wrong := got.whole("I will list."); wrong != "" || got.calls != 1 || got.finishes != 1 || got.reasoning != "" || m.drafts[0].Shown != len(m.drafts[0].Text) {
			t.Errorf("%s: %s; %d calls\n%s", name, wrong, got.calls, x.got())
		}
	}
	for name, c := range map[string]struct {
		body string
		want Broken
		m    *mender
	}{
		"no calls":     {two.answer("I will list."), Broken{Diverged: true, Err: ErrReplay}, judging(nil)},
		"bad again":    {two.call() + two.finish("tool_calls") + end, Broken{Err: recovery.ErrFlawed}, asking(recovery.FlawName)},
		"cut":          {two.words("x ") + two.call(), Broken{Err: ErrEnded}, judging(nil)},
		"all replaced": {two.call() + two.finish("tool_calls") + end, Broken{Diverged: true, Err: ErrReplay}, replacing(nil, "")},
		"nothing":      {two.role() + two.finish("stop") + end, Broken{Err: ErrEnded, Empty: true}, judging(nil)},
	} {
		x := start(t)
		before := x.got()
		broken := x.serve(strings.NewReader(c.body), mended(t, c.m), only)
		if broken == nil || !errors.Is(broken.Err, c.want.Err) || broken.Diverged != c.want.Diverged || broken.Empty != c.want.Empty || x.got() != before {
			t.Errorf("%s: %+v, %q", name, broken, strings.TrimPrefix(x.got(), before))
		}
	}
	x := newExchange(func(c *Config) { c.MidStream = MidStreamError }) // text that is shown but not kept
	if broken := x.serve(strings.NewReader(one.role()+one.text("I ")+one.call()+one.finish("tool_calls")+end), mended(t, asking(recovery.FlawName))); broken == nil ||
		broken.Flawed == nil || x.sink.Sent() != "" {
		t.Fatalf("%+v", broken)
	}
	other := "other text"
	m := replacing(&other, "", fn("b", "ls", "{}"))
	m.hold.Text = true
	if broken := x.serve(strings.NewReader(two.text("x")+two.call()+two.finish("tool_calls")+end), mended(t, m),
		func(o *Options) { o.Resume = &recovery.Resume{Calls: true} }); broken != nil || x.read().text != "I " || x.read().calls != 1 {
		t.Errorf("%+v %s", broken, x.got())
	}
	x = start(t) // without a mender, too, only calls go on
	if broken := x.serve(strings.NewReader(two.text("x")+two.call()+two.finish("tool_calls")+end), only); broken != nil || x.read().text != "I will list." || x.read().calls != 1 {
		t.Errorf("%+v %s", broken, x.got())
	}
}

// TestResumeCalls: an answer that broke within its calls is continued as text
// that is complete, followed by calls.
func TestResumeCalls(t *testing.T) {
	const sent = "I will list."
	call := two.call() + two.finish("tool_calls") + end
	for name, c := range map[string]struct {
		prefill bool
		body    string
	}{
		"replay": {false, two.role() + two.words(sent) + call}, "replay with calls in the last chunk of text": {false, two.role() + two.chunk(`{"content":"`+sent+`","tool_calls":[{"index":0,"id":"b","function":{"name":"ls","arguments":"{}"}}]}`, "tool_calls") + end},
		"prefill": {true, two.role() + call}, "prefill, text that repeats": {true, two.role() + two.words(sent) + call},
	} {
		for _, held := range []bool{true, false} {
			x := newExchange()
			if broken := x.serve(io.MultiReader(strings.NewReader(one.role()+one.words(sent)+one.call())), mended(t, judging(nil))); broken == nil || x.sink.Sent() != sent {
				t.Fatalf("%+v", broken)
			}
			change := func(*Options) {}
			if held {
				change = mended(t, judging(nil))
			}
			if broken := x.serve(strings.NewReader(c.body), resume(sent, c.prefill), change); broken != nil {
				t.Errorf("%s: %+v", name, broken)
				continue
			}
			if got := x.read(); got.whole(sent) != "" || got.calls != 1 {
				t.Errorf("%s, held %v: %s, %d calls\n%s", name, held, got.whole(sent), got.calls, x.got())
			}
		}
	}
	x := newExchange() // text that is held back until a call comes
	if broken := x.serve(strings.NewReader(one.role() + one.words(sent))); broken == nil {
		t.Fatal("not broken")
	}
	if broken := x.serve(strings.NewReader(two.role()+two.text("list.")+call), resume(sent, true), mended(t, judging(nil))); broken != nil || x.read().text != sent+"list." || x.read().calls != 1 {
		t.Errorf("%+v %s", broken, x.got())
	}
}

// watching counts what it is fed, and finds a runaway after so many bytes.
type watching struct {
	after int
	parts [3]int
}

func (w *watching) Feed(p recovery.Part, piece []byte) bool {
	w.parts[p] += len(piece)
	return w.parts[0]+w.parts[1]+w.parts[2] >= w.after
}

func TestRunaway(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		stop bool
		hold recovery.Hold
		want bool // that it breaks
	}{
		"reasoning":      {one.role() + strings.Repeat(one.reason("again "), 20), false, recovery.Hold{}, true},
		"calls":          {one.role() + one.call() + strings.Repeat(one.calls(`{"index":0,"function":{"arguments":"again "}}`), 20), false, recovery.Hold{Calls: true}, true},
		"held text":      {one.role() + strings.Repeat(one.text("again "), 20), false, recovery.Hold{Text: true}, true},
		"text":           {one.role() + strings.Repeat(one.text("again "), 20), false, recovery.Hold{Calls: true}, false},
		"text, stopped":  {one.role() + strings.Repeat(one.text("again "), 20), true, recovery.Hold{}, true},
		"text and calls": {one.role() + one.text("So ") + one.call() + strings.Repeat(one.calls(`{"index":0,"function":{"arguments":"again "}}`), 20), false, recovery.Hold{Calls: true}, false},
	} {
		x, w := newExchange(), &watching{after: 60}
		var told error
		m := &mender{hold: c.hold, watch: w}
		body := c.body + one.finish("stop") + end
		a, broken := Open(respond(&chunkedReader{r: strings.NewReader(body)}), x.options(mended(t, m), func(o *Options) {
			o.Cancel = func(err error) { told = err }
			if c.stop {
				o.Config.Repetition = RepetitionStop
			}
		}))
		if broken == nil {
			broken = a.Deliver(t.Context())
		}
		if (broken != nil) != c.want {
			t.Errorf("%s: %+v", name, broken)
			continue
		}
		if c.want && (broken.Flaw == nil || broken.Flaw.Kind != recovery.FlawRepetition || broken.Flawed != nil || !errors.Is(broken.Err, recovery.ErrFlawed) || !errors.Is(told, recovery.ErrFlawed)) {
			t.Errorf("%s: %+v, cancelled with %v", name, broken, told)
		}
		if !c.want && (x.got() != body || !a.Runaway()) {
			t.Errorf("%s: runaway %v, %q", name, a.Runaway(), x.got())
		}
		if c.want && !c.stop && (x.sink.Released() >= recovery.ReleasedText || strings.Count(x.got(), "again") >= 20) {
			t.Errorf("%s: the client has %q", name, x.got())
		}
	}
}

// TestExplain: the identity is the only change.
func TestExplain(t *testing.T) {
	const id = `"chatcmpl-rebound-req_1"`
	explain := func(o *Options) { o.Explain, o.ID = true, "req_1" }
	multi := strings.ReplaceAll(one.text("x"), `,"object"`, "\ndata: ,\"object\"")
	body := ping + one.role() + one.words("It failed.") + multi + one.finish("stop") + one.usage() + end
	x := newExchange()
	if broken := x.serve(&chunkedReader{r: strings.NewReader(body)}, explain); broken != nil || x.got() != strings.ReplaceAll(body, `"id":"one"`, `"id":`+id) {
		t.Errorf("%+v\n%s", broken, x.got())
	}
	if x.sink.identity().ID != id {
		t.Errorf("a continuation would have the identity %s", x.sink.identity().ID)
	}
	x = newExchange() // without an id
	if broken := x.serve(strings.NewReader(strings.ReplaceAll(body, `"id":"one",`, "")), explain); broken != nil || x.got() != strings.ReplaceAll(body, `"id":"one"`, `"id":`+id) {
		t.Errorf("%+v\n%s", broken, x.got())
	}
	for body, want := range map[string]string{
		`{"id":"a","choices":[{"message":{"id":"x","content":"hi"},"finish_reason":"stop"}]}`: `{"id":` + id + `,"choices":[{"message":{"id":"x","content":"hi"},"finish_reason":"stop"}]}`,
		" {\"choices\":[{\"message\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n":    ` {"id":` + id + ",\"choices\":[{\"message\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n",
	} {
		x := newExchange()
		w, broken := ReadWhole(respond(strings.NewReader(body)), x.options(explain))
		if broken != nil {
			t.Fatalf("%+v", broken)
		}
		if broken := w.Deliver(t.Context()); broken != nil || x.got() != want || !gjson.Valid(want) {
			t.Errorf("%+v %q, want %q", broken, x.got(), want)
		}
	}
}
