package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// mender is a judge by function, which remembers what it was shown.
type mender struct {
	hold   recovery.Hold
	mend   func(recovery.Draft) recovery.Verdict
	watch  recovery.Watch
	drafts []recovery.Draft
}

func (m *mender) Holds(*transcript.Body) recovery.Hold { return m.hold }
func (m *mender) Watch(*transcript.Body, int) recovery.Watch {
	if m.watch == nil {
		return nil
	}
	return m.watch
}
func (m *mender) Lookout(*transcript.Body) recovery.Lookout { return &lookout{} }

// lookout knows one mark, <tool_call>.
type lookout struct{ free int }

func (l *lookout) Free(text string) int {
	const mark = "<tool_call>"
	for l.free < len(text) && !strings.HasPrefix(text[l.free:], mark) && !strings.HasPrefix(mark, text[l.free:]) && strings.TrimSpace(text) != "" {
		l.free++
	}
	return l.free
}

func (m *mender) Mend(_ *transcript.Body, d recovery.Draft) recovery.Verdict {
	own := d
	own.Text, own.Calls = strings.Clone(d.Text), slices.Clone(d.Calls)
	for i, c := range own.Calls {
		own.Calls[i] = recovery.DraftCall{ID: strings.Clone(c.ID), Kind: strings.Clone(c.Kind), Name: strings.Clone(c.Name), Arguments: strings.Clone(c.Arguments)}
	}
	m.drafts = append(m.drafts, own)
	if m.mend == nil {
		return recovery.Verdict{}
	}
	return m.mend(d)
}

// judging is a mender that holds calls.
func judging(mend func(recovery.Draft) recovery.Verdict) *mender {
	return &mender{hold: recovery.Hold{Calls: true}, mend: mend}
}

func asking(kind recovery.FlawKind) *mender {
	return judging(func(recovery.Draft) recovery.Verdict {
		return recovery.Verdict{Judgement: recovery.JudgeAsk, Flaw: &recovery.Flaw{Kind: kind, Tool: "f"}}
	})
}

// replacing gives these calls and this end in place of whatever came.
func replacing(text *string, finish recovery.Finish, list ...recovery.DraftCall) *mender {
	return judging(func(recovery.Draft) recovery.Verdict {
		return recovery.Verdict{Judgement: recovery.JudgeReplace, Calls: list, Text: text, Finish: finish, Repairs: []recovery.Repair{{Rule: "r", Tool: "f"}}}
	})
}

const toolRequest = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"get_weather"}},{"type":"function","function":{"name":"ls"}}]}`

func request(t testing.TB, body string) *transcript.Body {
	t.Helper()
	return recoverytest.Parse(t, body, transcript.Chat)
}

func mended(t testing.TB, m recovery.Mender) func(*Options) {
	b := request(t, toolRequest)
	return func(o *Options) { o.Mender, o.Request = m, b }
}

func fn(id, name, args string) recovery.DraftCall {
	return recovery.DraftCall{ID: id, Kind: "function", Name: name, Arguments: args}
}

func (v voice) calls(json string) string { return v.chunk(`{"tool_calls":[`+json+`]}`, "null") }

// merged is what a client that goes by the index makes of a stream: names are
// concatenated, as most SDKs do, and arguments are strings.
func merged(t testing.TB, stream string) (text string, list []recovery.DraftCall, finish string) {
	t.Helper()
	r := NewReader(strings.NewReader(stream), 1<<24)
	for {
		ev, err := r.Next()
		if err != nil {
			return text, list, finish
		}
		if !ev.HasData || string(ev.Data) == "[DONE]" {
			continue
		}
		if !json.Valid(ev.Data) {
			t.Fatalf("not JSON: %q", ev.Data)
		}
		c := gjson.GetBytes(ev.Data, "choices.0")
		text += c.Get("delta.content").Str
		if f := c.Get("finish_reason").Str; f != "" {
			finish = f
		}
		chunk := c.Get("delta.tool_calls")
		if !chunk.IsArray() {
			continue
		}
		chunk.ForEach(func(_, e gjson.Result) bool {
			i := int(e.Get("index").Int())
			if !e.Get("index").Exists() || i > len(list) {
				t.Fatalf("index %s in %s", e.Get("index").Raw, stream)
			}
			if i == len(list) {
				list = append(list, recovery.DraftCall{Kind: "function"})
			}
			d := &list[i]
			if id := e.Get("id").Str; id != "" {
				d.ID = id
			}
			d.Name += e.Get("function.name").Str
			if a := e.Get("function.arguments"); a.Exists() && a.Type != gjson.String && a.Type != gjson.Null {
				t.Fatalf("arguments %s", a.Raw)
			}
			d.Arguments += e.Get("function.arguments").Str
			return true
		})
	}
}

// TestAssembly: calls are put together in all the ways in which servers send
// them; where a client that goes by the index would not, it gets them rewritten.
func TestAssembly(t *testing.T) {
	a, b := fn("a", "get_weather", `{"city":"Paris"}`), fn("b", "ls", `{}`)
	cases := []struct {
		name   string
		chunks []string
		want   []recovery.DraftCall
		odd    bool
	}{
		{"fragments", []string{`{"index":0,"id":"a","type":"function","function":{"name":"get_weather","arguments":""}}`, `{"index":0,"function":{"arguments":"{\"city\":"}}`, `{"index":0,"function":{"arguments":"\"Paris\"}"}}`}, []recovery.DraftCall{a}, false},
		{"parallel", []string{`{"index":0,"id":"a","function":{"name":"get_weather","arguments":""}}`, `{"index":1,"id":"b","function":{"name":"ls","arguments":"{}"}}`, `{"index":0,"function":{"arguments":"{\"city\":\"Paris\"}"}}`}, []recovery.DraftCall{a, b}, false},
		{"whole in one chunk", []string{`{"index":0,"id":"a","function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}},{"index":1,"id":"b","function":{"name":"ls","arguments":"{}"}}`}, []recovery.DraftCall{a, b}, false},
		{"id on each chunk", []string{`{"index":0,"id":"a","function":{"name":"get_weather","arguments":"{\"city\""}}`, `{"index":0,"id":"a","function":{"arguments":":\"Paris\"}"}}`}, []recovery.DraftCall{a}, false},
		{"another id on each piece", []string{`{"index":0,"id":"a","type":"function","function":{"name":"get_weather","arguments":""}}`, `{"index":0,"id":"x","function":{"arguments":"{\"city\":"}}`, `{"index":0,"id":"y","function":{"arguments":"\"Paris\"}"}}`, `{"index":0,"id":"z","function":{"arguments":""}}`, `{"index":1,"id":"b","function":{"name":"ls","arguments":""}}`, `{"index":1,"id":"c","function":{"arguments":"{}"}}`}, []recovery.DraftCall{a, b}, true},
		{"null fields", []string{`{"index":0,"id":"a","function":{"name":"get_weather","arguments":null}}`, `{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"{\"city\":\"Paris\"}"}}`}, []recovery.DraftCall{a}, false},
		{"no index", []string{`{"id":"a","function":{"name":"get_weather","arguments":"{\"city\""}}`, `{"function":{"arguments":":\"Paris\"}"}}`, `{"id":"b","function":{"name":"ls","arguments":"{}"}}`}, []recovery.DraftCall{a, b}, true},
		{"all index 0", []string{`{"index":0,"id":"a","function":{"name":"get_weather","arguments":"{\"city\""}}`, `{"index":0,"function":{"arguments":":\"Paris\"}"}}`, `{"index":0,"id":"b","function":{"name":"ls","arguments":"{}"}}`}, []recovery.DraftCall{a, b}, true},
		{"all index 0 in one chunk", []string{`{"index":0,"id":"a","function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}},{"index":0,"id":"b","function":{"name":"ls","arguments":"{}"}}`}, []recovery.DraftCall{a, b}, true},
		{"index 0 without ids, the same tool", []string{`{"index":0,"function":{"name":"ls","arguments":"{\"p\":1}"}}`, `{"index":0,"function":{"name":"ls","arguments":"{\"p\":2}"}}`}, []recovery.DraftCall{fn("", "ls", `{"p":1}`), fn("", "ls", `{"p":2}`)}, true},
		{"index 0 without ids, no arguments", []string{`{"index":0,"function":{"name":"f","arguments":""}}`, `{"index":0,"function":{"name":"ls","arguments":"{}"}}`}, []recovery.DraftCall{fn("", "f", ""), fn("", "ls", `{}`)}, true},
		{"index 0 without ids, the same tool, a bracket in a string", []string{`{"index":0,"function":{"name":"ls","arguments":"{\"p\":\"\\\"{\"}"}}`, `{"index":0,"function":{"name":"ls","arguments":"{\"p\":2}"}}`}, []recovery.DraftCall{fn("", "ls", `{"p":"\"{"}`), fn("", "ls", `{"p":2}`)}, true},
		{"index 0 without ids, arguments of the first only", []string{`{"index":0,"function":{"name":"f","arguments":"{}"}}`, `{"index":0,"function":{"name":"ls","arguments":""}}`}, []recovery.DraftCall{fn("", "f", "{}"), fn("", "ls", "")}, true},
		{"index 0, the same tool by another id", []string{`{"index":0,"id":"a","function":{"name":"ls","arguments":""}}`, `{"index":0,"id":"b","function":{"name":"ls","arguments":"{}"}}`}, []recovery.DraftCall{fn("a", "ls", ""), b}, true},
		{"index 0 in one chunk, the same tool without ids", []string{`{"index":0,"function":{"name":"ls","arguments":""}},{"index":0,"function":{"name":"ls","arguments":"{}"}}`}, []recovery.DraftCall{fn("", "ls", ""), fn("", "ls", "{}")}, true},
		{"name on each chunk, an object inside", []string{`{"index":0,"id":"b","function":{"name":"ls","arguments":"{\"p\":"}}`, `{"index":0,"function":{"name":"ls","arguments":"{}"}}`, `{"index":0,"function":{"name":"ls","arguments":"}"}}`}, []recovery.DraftCall{fn("b", "ls", `{"p":{}}`)}, true},
		{"interleaved ids without index", []string{`{"id":"a","function":{"name":"get_weather","arguments":"{\"city\""}}`, `{"id":"b","function":{"name":"ls","arguments":"{"}}`, `{"id":"a","function":{"arguments":":\"Paris\"}"}}`, `{"id":"b","function":{"arguments":"}"}}`}, []recovery.DraftCall{a, b}, true},
		{"name on each chunk", []string{`{"index":0,"id":"a","function":{"name":"get_weather","arguments":"{\"city\""}}`, `{"index":0,"function":{"name":"get_weather","arguments":":\"Paris\"}"}}`}, []recovery.DraftCall{a}, true},
		{"name in pieces", []string{`{"index":0,"id":"a","function":{"name":"get_"}}`, `{"index":0,"function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}`}, []recovery.DraftCall{a}, true},
		{"name as far as known", []string{`{"index":0,"id":"a","function":{"name":"get_"}}`, `{"index":0,"function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}}`}, []recovery.DraftCall{a}, true},
		{"nameless continuation with another index", []string{`{"index":0,"id":"a","function":{"name":"get_weather","arguments":""}}`, `{"index":1,"function":{"arguments":"{\"city\":\"Paris\"}"}}`}, []recovery.DraftCall{a}, true},
		{"id after the name", []string{`{"function":{"name":"get_weather"}}`, `{"id":"a","function":{"arguments":"{\"city\":\"Paris\"}"}}`}, []recovery.DraftCall{a}, true},
		{"arguments as an object", []string{`{"index":0,"id":"a","function":{"name":"get_weather","arguments":{"city":"Paris"}}}`}, []recovery.DraftCall{a}, true},
		{"index from 1", []string{`{"index":1,"id":"a","function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}}`, `{"index":2,"id":"b","function":{"name":"ls","arguments":"{}"}}`}, []recovery.DraftCall{a, b}, true},
		{"one id for all", []string{`{"index":0,"id":"x","function":{"name":"ls","arguments":"{}"}}`, `{"index":1,"id":"x","function":{"name":"f","arguments":"{}"}}`}, []recovery.DraftCall{fn("x", "ls", "{}"), fn("x", "f", "{}")}, false},
	}
	for _, c := range cases {
		body := one.role() + one.chunk(`{"content":"Well. ","tool_calls":null}`, "null")
		for _, s := range c.chunks {
			body += one.calls(s)
		}
		body += one.finish("tool_calls") + one.usage() + end
		for how, src := range map[string]io.Reader{"whole": strings.NewReader(body), "events": &chunkedReader{r: strings.NewReader(body)}, "byte by byte": iotest.OneByteReader(strings.NewReader(body))} {
			m, x := judging(nil), newExchange()
			var repairs []recovery.Repair
			if broken := x.serve(src, mended(t, m), func(o *Options) { o.Repaired = func(r []recovery.Repair) { repairs = append(repairs, r...) } }); broken != nil {
				t.Errorf("%s, %s: %+v", c.name, how, broken)
				continue
			}
			if len(m.drafts) != 1 || fmt.Sprint(m.drafts[0].Calls) != fmt.Sprint(c.want) || m.drafts[0].Text != "Well. " || m.drafts[0].Shown == 0 || m.drafts[0].Finish != recovery.FinishCalls {
				t.Errorf("%s, %s: judged %+v", c.name, how, m.drafts)
			}
			if (x.got() == body) == c.odd || (len(repairs) > 0) != c.odd {
				t.Errorf("%s, %s: rewritten %v, told %v\n%s", c.name, how, x.got() != body, repairs, x.got())
			}
			text, list, finish := merged(t, x.got())
			if text != "Well. " || fmt.Sprint(list) != fmt.Sprint(c.want) || finish != "tool_calls" || !strings.HasSuffix(x.got(), one.usage()+end) {
				t.Errorf("%s, %s: a client reads %q, %v, %q", c.name, how, text, list, finish)
			}
		}
	}
}

// TestOtherForms: calls where clients do not look for them.
func TestOtherForms(t *testing.T) {
	want := fmt.Sprint([]recovery.DraftCall{fn("a", "ls", "{}")})
	inMessage := strings.Replace(one.finish("tool_calls"), `"delta":{}`,
		`"delta":{},"message":{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]}`, 1)
	again := one.calls(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}`) + inMessage
	asObject := one.chunk(`{"tool_calls":{"id":"a","function":{"name":"ls","arguments":"{}"}}}`, "tool_calls")
	for name, body := range map[string]string{"in the message": inMessage, "once more in the message": again, "no list": asObject} {
		m, x := judging(nil), newExchange()
		body = one.role() + body + end
		if broken := x.serve(strings.NewReader(body), mended(t, m)); broken != nil || len(m.drafts) != 1 || fmt.Sprint(m.drafts[0].Calls) != want {
			t.Errorf("%s: %+v, %+v", name, broken, m.drafts)
		}
		if _, list, finish := merged(t, x.got()); fmt.Sprint(list) != want || finish != "tool_calls" || (x.got() == body) != (name == "once more in the message") {
			t.Errorf("%s: %v %q\n%s", name, list, finish, x.got())
		}
	}
	legacy := one.role() + one.chunk(`{"function_call":{"name":"ls","arguments":"{"}}`, "null") + one.chunk(`{"function_call":{"arguments":"}"}}`, "null") + one.finish("function_call") + end
	m, x := judging(nil), newExchange()
	if broken := x.serve(strings.NewReader(legacy), mended(t, m)); broken != nil {
		t.Fatalf("%+v", broken)
	}
	if _, list, finish := merged(t, x.got()); len(list) != 1 || list[0].Name != "ls" || list[0].Arguments != "{}" || finish != "tool_calls" {
		t.Errorf("the old form for a client with tools: %s", x.got())
	}
	old := request(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"functions":[{"name":"ls"}]}`)
	x = newExchange()
	if broken := x.serve(strings.NewReader(legacy), mended(t, m), func(o *Options) { o.Request = old }); broken != nil || x.got() != legacy {
		t.Errorf("the old form for a client of that time: %+v %s", broken, x.got())
	}
}

// TestHeld: nothing of a call is out before all of it is, and text never waits.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, m := newExchange(), judging(nil)
		start := one.calls(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{"}}`)
		rest := one.calls(`{"index":0,"function":{"arguments":"}"}}`)
		u := play(false, nil, step{0, one.role() + one.text("a ")}, step{time.Second, one.text("b")}, step{time.Second, start}, step{time.Second, ping + one.text("after")}, step{time.Second, rest},
			step{time.Second, one.finish("tool_calls")}, step{time.Second, one.usage() + end})
		a, broken := Open(respond(u), x.options(mended(t, m), func(o *Options) { o.Cancel = u.cancel }))
		if broken != nil {
			t.Fatalf("%+v", broken)
		}
		begin := time.Now()
		done := make(chan *Broken)
		go func() { done <- a.Deliver(t.Context()) }()
		for _, c := range []struct {
			at   time.Duration
			want string
		}{{500 * time.Millisecond, one.role() + one.text("a ")}, {1500 * time.Millisecond, one.role() + one.text("a ") + one.text("b")},
			{4500 * time.Millisecond, one.role() + one.text("a ") + one.text("b")},
			{5500 * time.Millisecond, one.role() + one.text("a ") + one.text("b") + start + ping + one.text("after") + rest + one.finish("tool_calls")}} {
			time.Sleep(c.at - time.Since(begin))
			synctest.Wait()
			if x.got() != c.want {
				t.Errorf("after %v: %q", c.at, x.got())
			}
		}
		if broken := <-done; broken != nil || len(x.writes) != 4 {
			t.Errorf("%+v, %d writes", broken, len(x.writes))
		}
	})
}

// TestHeldBegan: only calls: headers come when all is complete, and the engine
// knows that the model writes.
func TestHeldBegan(t *testing.T) {
	var life recovery.Life
	body := one.role() + one.call()
	x := newExchange()
	broken := x.serve(io.MultiReader(strings.NewReader(body), iotest.ErrReader(errors.New("reset"))), mended(t, judging(nil)), func(o *Options) { o.Life = &life })
	if broken == nil || broken.Empty || broken.Flaw != nil || life.Sign() != recovery.SignWrites || x.status != 0 || x.got() != "" {
		t.Errorf("cut in a call: %+v, began %v, status %d, %q", broken, life.Sign(), x.status, x.got())
	}
	x = newExchange()
	broken = x.serve(strings.NewReader(one.role()+one.words("I will ")+one.call()), mended(t, judging(nil)))
	if broken == nil || x.sink.Released() != recovery.ReleasedText || x.sink.Sent() != "I will " || strings.Contains(x.got(), "tool_calls") {
		t.Errorf("cut in a call after text: %+v, released %d, %q", broken, x.sink.Released(), x.got())
	}
}

// TestHeldStall: a pause within calls of which nothing was shown ends the attempt.
func TestHeldStall(t *testing.T) {
	for name, c := range map[string]struct {
		pings bool
		want  time.Duration
	}{"silent": {false, 120 * time.Second}, "pings": {true, 120 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, begin := newExchange(), time.Now()
				steps := []step{{0, one.role()}, {30 * time.Second, one.call()}, {15 * time.Second, one.calls(`{"index":0,"function":{"arguments":" "}}`)}}
				for range 50 {
					if c.pings {
						steps = append(steps, step{5 * time.Second, ping})
					}
				}
				u := play(true, nil, steps...)
				_, broken := Open(respond(u), x.options(mended(t, judging(nil)), func(o *Options) { o.Cancel = u.cancel }))
				if broken == nil || !broken.Stalled || !errors.Is(u.cause, ErrStalled) || x.status != 0 {
					t.Fatalf("%+v, cancelled with %v", broken, u.cause)
				}
				if got := time.Since(begin) - 45*time.Second; !between(got, c.want, c.want+3*time.Second) {
					t.Errorf("given up after %v", got)
				}
				u.Close()
			})
		})
	}
}

// TestTail: an end that comes with content is one only if nothing follows.
func TestTail(t *testing.T) {
	every := one.role() + one.chunk(`{"content":"a "}`, "stop") + one.chunk(`{"content":"b "}`, "stop") + one.chunk(`{"content":"c"}`, "stop")
	callEvery := one.role() + one.chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":"{"}}]}`, "tool_calls") +
		one.chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`, "tool_calls")
	for name, c := range map[string]struct {
		body, text string
		calls      int
	}{
		"text": {every + end, "a b c", 0}, "text, usage": {every + one.usage() + end, "a b c", 0}, "calls": {callEvery + end, "", 1},
		"calls, usage": {callEvery + one.usage() + end, "", 1}, "text, open end": {every, "a b c", 0}, "calls, open end": {callEvery, "", 1},
	} {
		for how, src := range map[string]io.Reader{"whole": strings.NewReader(c.body), "events": &chunkedReader{r: strings.NewReader(c.body)}} {
			x, m := newExchange(), judging(nil)
			broken := x.serve(src, mended(t, m))
			if broken != nil || len(m.drafts) != 1 || m.drafts[0].Text != c.text || len(m.drafts[0].Calls) != c.calls {
				t.Errorf("%s, %s: %+v, judged %+v", name, how, broken, m.drafts)
			}
			if want := strings.TrimSuffix(c.body, end) + end; x.got() != want {
				t.Errorf("%s, %s: got %q", name, how, x.got())
			}
			if c.text != "" && how == "events" && !strings.Contains(x.writes[1], `"b "`) {
				t.Errorf("%s: text waits for the end: %q", name, x.writes)
			}
		}
	}
}

// TestAsk: what cannot be used is not shown, and can be shown later as it is.
func TestAsk(t *testing.T) {
	calls := one.calls(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{"}}`) + one.finish("length") + one.usage() + end
	for name, c := range map[string]struct{ shown, body, tail string }{
		"nothing shown": {"", one.role() + calls, ""}, "reasoning shown": {one.role() + one.reason("hm"), calls, ""},
		"text shown": {one.role() + one.words("I will "), calls, ""}, "no end mark": {"", strings.TrimSuffix(one.role()+calls, end), end},
		"required call": {one.role() + one.words("No."), one.finish("stop") + end, ""},
	} {
		for how, src := range map[string]io.Reader{"whole": strings.NewReader(c.shown + c.body), "events": &chunkedReader{r: strings.NewReader(c.shown + c.body)}} {
			t.Run(name+"/"+how, func(t *testing.T) {
				x, m := newExchange(), asking(recovery.FlawTruncated)
				ctx, cancel := context.WithCancelCause(context.Background())
				broken := x.serve(src, mended(t, m), func(o *Options) { o.Cancel = cancel })
				if broken == nil || !errors.Is(broken.Err, recovery.ErrFlawed) || broken.Flaw == nil || broken.Flawed == nil || broken.Empty || broken.Diverged {
					t.Fatalf("%+v", broken)
				}
				if x.got() != c.shown {
					t.Errorf("the client got %q", x.got())
				}
				cancel(nil)
				if ctx.Err() == nil {
					t.Fatal("the attempt goes on")
				}
				if broken := broken.Flawed.Deliver(context.Background()); broken != nil || x.got() != c.shown+c.body+c.tail {
					t.Errorf("as it is: %+v, %q", broken, x.got())
				}
				if u, _ := broken.Flawed.Usage(); (u.Output == 2) != strings.Contains(c.body, "usage") {
					t.Errorf("usage %+v", u)
				}
			})
		}
	}
	x, m := newExchange(), judging(nil) // the mender passes what the limit cut: it goes out as it came
	body := one.role() + calls
	if broken := x.serve(strings.NewReader(body), mended(t, m)); broken != nil || x.got() != body || m.drafts[0].Finish != recovery.FinishLength {
		t.Errorf("%+v, %q", broken, x.got())
	}
}

// TestNotJudged: several choices, log probabilities and sound are passed on.
func TestNotJudged(t *testing.T) {
	body := one.role() + one.call() + one.finish("tool_calls") + end
	logprobs := strings.ReplaceAll(body, `"index":0,"delta"`, `"index":0,"logprobs":{"content":[]},"delta"`)
	for name, c := range map[string]struct {
		request, body string
		n             int
	}{
		"n": {toolRequest, body, 2}, "logprobs": {strings.Replace(toolRequest, `{"model"`, `{"logprobs":true,"model"`, 1), body, 1},
		"audio": {strings.Replace(toolRequest, `{"model"`, `{"modalities":["text","audio"],"model"`, 1), body, 1}, "logprobs that nobody asked for": {toolRequest, logprobs, 1},
	} {
		x, m := newExchange(), asking(recovery.FlawName)
		b := request(t, c.request)
		if broken := x.serve(strings.NewReader(c.body), func(o *Options) { o.Mender, o.Request, o.Choices = m, b, c.n }); broken != nil || x.got() != c.body || len(m.drafts) > 0 {
			t.Errorf("%s: %+v, %d judged, %q", name, broken, len(m.drafts), x.got())
		}
	}
}
