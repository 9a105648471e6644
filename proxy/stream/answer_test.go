package stream

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// TestGate: what comes before the first meaningful event is held, and an
// answer that fails up to there leaves nothing behind.
func TestGate(t *testing.T) {
	reset := errors.New("reset")
	cut := func(s string) io.Reader { return io.MultiReader(strings.NewReader(s), iotest.ErrReader(reset)) }
	cases := []struct {
		name string
		body io.Reader
		want Broken
		data string // of the event
	}{
		{name: "nothing", body: cut(""), want: Broken{Err: reset}},
		{name: "nothing, ended", body: strings.NewReader(""), want: Broken{Empty: true, Err: ErrEnded}},
		{name: "ping only", body: strings.NewReader(ping + ping), want: Broken{Empty: true, Err: ErrEnded}},
		{name: "role only", body: strings.NewReader(one.role()), want: Broken{Empty: true, Err: ErrEnded}},
		{name: "role, cut", body: cut(one.role()), want: Broken{Err: reset}},
		{name: "role and end mark", body: strings.NewReader(one.role() + end), want: Broken{Empty: true, Err: ErrEnded}},
		{name: "end mark only", body: strings.NewReader(end), want: Broken{Empty: true, Err: ErrEnded}},
		{name: "empty answer", body: strings.NewReader(one.role() + one.finish("stop") + one.usage() + end), want: Broken{Empty: true, Err: ErrEnded}},
		{name: "tool calls without a call", body: strings.NewReader(one.role() + one.finish("tool_calls") + end), want: Broken{Empty: true, Err: ErrEnded}},
		{name: "error first", body: strings.NewReader(failed), data: `{"error":{"message":"overloaded","code":529}}`},
		{name: "error after the role", body: strings.NewReader(one.role() + ping + failed + end), data: `{"error":{"message":"overloaded","code":529}}`},
		{name: "error after a finish reason", body: strings.NewReader(one.role() + one.finish("stop") + failed + end), data: `{"error":{"message":"overloaded","code":529}}`},
		{name: "named error", body: strings.NewReader("event: error\ndata: {\"message\":\"x\"}\n\n"), data: `{"message":"x"}`},
		{name: "malformed only", body: strings.NewReader(noJSON), want: Broken{Empty: true, Err: ErrEnded}},
		{name: "malformed, end mark", body: strings.NewReader(noJSON + end), want: Broken{Empty: true, Err: ErrEnded}},
		{name: "the first chunk cut", body: strings.NewReader(one.role() + half + one.words("It is") + one.finish("stop") + end), want: Broken{Err: ErrCut}},
		{name: "half an event", body: strings.NewReader(one.role() + "data: {"), want: Broken{Err: io.ErrUnexpectedEOF}},
		{name: "pings without end", body: &chunked{rest: strings.Repeat(ping, 10_000)}, want: Broken{Err: ErrAnswerTooLong}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			x := newExchange(func(c *Config) { c.MaxEvent, c.MaxAnswer = 10_000, 20_000 })
			a, broken := Open(respond(c.body), x.options())
			if broken == nil {
				a.Discard()
				t.Fatal("it opened")
			}
			if !errors.Is(broken.Err, c.want.Err) || broken.Empty != c.want.Empty || string(broken.Event) != c.data ||
				broken.Diverged || broken.Stalled || broken.Client {
				t.Errorf("broken: %+v, event %q", *broken, broken.Event)
			}
			if x.got() != "" || x.status != 0 || x.sink.Committed() || x.sink.Released() != recovery.ReleasedNothing {
				t.Errorf("the client got status %d and %q", x.status, x.got())
			}
		})
	}
}

// TestGateOpens: with the first meaningful event, without waiting for more,
// and then with all that came before it, byte for byte.
func TestGateOpens(t *testing.T) {
	before := "\xef\xbb\xbf" + ping + one.role() + noJSON
	for name, c := range map[string]struct {
		event    string
		released recovery.Released
	}{
		"text":      {one.text("hi"), recovery.ReleasedText},
		"reasoning": {one.reason("hm"), recovery.ReleasedReasoning},
		"call":      {one.call(), recovery.ReleasedCall},
		"length":    {one.finish("length"), recovery.ReleasedNothing},
		"filter":    {one.finish("content_filter"), recovery.ReleasedNothing},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExchange()
			src := iotest.OneByteReader(io.MultiReader(strings.NewReader(before+c.event), iotest.ErrReader(errors.New("read on"))))
			a, broken := Open(respond(src), x.options())
			if broken != nil {
				t.Fatalf("%+v", broken)
			}
			if x.got() != "" {
				t.Errorf("the client got %q before the answer is delivered", x.got())
			}
			if _, first := a.Usage(); first <= 0 {
				t.Errorf("the first event took %v", first)
			}
			_ = a.Deliver(context.Background())
			want := strings.Replace(before, noJSON, "", 1) + c.event
			if !strings.HasPrefix(x.got(), want) || x.sink.Released() != c.released {
				t.Errorf("released %d\ngot  %q\nwant %q", x.sink.Released(), x.got(), want)
			}
		})
	}
	x := newExchange()
	body := one.role() + one.finish("stop") + one.usage() + end
	if broken := x.serve(strings.NewReader(body), func(o *Options) { o.AcceptEmpty = true }); broken != nil || x.got() != body {
		t.Errorf("an empty answer that is accepted: %+v, %q", broken, x.got())
	}
}

// TestWholeStream: complete streams reach the client byte for byte, in
// whatever pieces they come.
func TestWholeStream(t *testing.T) {
	text := "It is a fine day."
	plain := one.answer(text)
	everyFinish := one.role()
	for _, w := range strings.SplitAfter(text, " ") {
		everyFinish += one.chunk(`{"content":"`+w+`"}`, "stop")
	}
	cases := []struct {
		name, body, want string // want: empty for as it came
		n                int
	}{
		{name: "plain", body: plain},
		{name: "CRLF", body: strings.ReplaceAll(plain, "\n", "\r\n")},
		{name: "CR", body: strings.ReplaceAll(plain, "\n", "\r")},
		{name: "pings", body: strings.TrimSuffix(strings.ReplaceAll(plain, "\n\n", "\n\n"+ping), ping)},
		{name: "comment lines", body: strings.ReplaceAll(plain, "data:", ": ping\ndata:")},
		{name: "usage last", body: one.role() + one.words(text) + one.finish("stop") + one.usage() + end},
		{name: "length", body: one.role() + one.words(text) + one.finish("length") + end},
		{name: "reasoning", body: one.role() + one.reason("hm") + one.words(text) + one.finish("stop") + end},
		{name: "malformed", body: one.role() + noJSON + one.words(text) + noJSON + one.finish("stop") + noJSON + end, want: plain},
		{name: "no end mark", body: strings.TrimSuffix(plain, end), want: plain},
		{name: "half an end mark", body: strings.TrimSuffix(plain, "\n"), want: plain},
		{name: "error after the finish reason", body: strings.TrimSuffix(plain, end) + failed, want: plain},
		{name: "error and end mark after it", body: strings.TrimSuffix(plain, end) + failed + end, want: plain},
		{name: "a chunk cut after the finish reason", body: strings.TrimSuffix(plain, end) + half + end, want: plain},
		{name: "more after the end mark", body: plain + one.text("more") + end, want: plain},
		{name: "finish reason on every chunk", body: everyFinish + end},
		{name: "finish reason on every chunk, no end mark", body: everyFinish, want: everyFinish + end},
		{name: "finish reason on every chunk, the first without content", body: one.chunk(`{"role":"assistant","content":""}`, "stop") + everyFinish + end},
		{name: "finish reason before the content", body: one.chunk(`{"role":"assistant","content":""}`, "stop") + plain}, // Open WebUI
		{name: "the first of two choices empty", body: one.role() + one.finish("stop") + strings.ReplaceAll(plain, `"index":0`, `"index":1`), n: 2},
		{name: "one choice of two", body: plain, n: 2},
		{name: "one choice of two, no end mark", body: strings.TrimSuffix(plain, end), want: plain, n: 2},
	}
	for _, c := range cases {
		for _, buffer := range []bool{false, true} {
			for how, src := range map[string]io.Reader{
				"whole": strings.NewReader(c.body), "byte by byte": iotest.OneByteReader(strings.NewReader(c.body)),
				"pieces": &chunked{rest: c.body, sizes: []byte{200, 3, 90, 255}}, "the end with the last": iotest.DataErrReader(strings.NewReader(c.body)),
			} {
				x := newExchange(func(c *Config) {
					if buffer {
						c.MidStream = MidStreamBuffer
					}
				})
				broken := x.serve(src, choices(c.n))
				want := c.want
				if want == "" {
					want = c.body
				}
				if broken != nil || x.got() != want {
					t.Errorf("%s, %s, buffer %v: %+v\ngot  %q\nwant %q", c.name, how, buffer, broken, x.got(), want)
					continue
				}
				if x.status != 200 || x.header.Get("X-Up") != "a" {
					t.Errorf("%s: status %d, %v", c.name, x.status, x.header)
				}
				if got := x.read(); got.text != text {
					t.Errorf("%s: text %q", c.name, got.text)
				}
				if buffer && len(x.writes) > 2 {
					t.Errorf("%s: %d writes of a buffered answer", c.name, len(x.writes))
				}
			}
		}
	}
}

// TestCut: what breaks after the gate never looks like an end.
func TestCut(t *testing.T) {
	reset := errors.New("reset")
	said := one.role() + one.words("It is a fine")
	cases := []struct {
		name string
		body string
		err  error
		data string
		n    int
		then error // of reading on
	}{
		{name: "ended", body: said, err: ErrEnded},
		{name: "ended with the end mark", body: said + end, err: ErrEnded},
		{name: "reset", body: said, then: reset, err: reset},
		{name: "reset behind a finish reason that came first", body: one.chunk(`{"role":"assistant","content":""}`, "stop") + said, then: reset, err: reset},
		{name: "within an event", body: said + "data: {", err: io.ErrUnexpectedEOF},
		{name: "error", body: said + failed + end, data: `{"error":{"message":"overloaded","code":529}}`},
		{name: "reset with one choice of two", body: said + one.finish("stop"), then: reset, err: reset, n: 2},
		{name: "error behind a finish reason that came first", body: one.chunk(`{"role":"assistant","content":""}`, "stop") + said + failed + end, data: `{"error":{"message":"overloaded","code":529}}`},
		{name: "error with one choice of two", body: said + one.finish("stop") + failed, data: `{"error":{"message":"overloaded","code":529}}`, n: 2},
		{name: "noise in the place of a finish", body: said + noJSON + end, err: ErrEnded},
		{name: "a chunk cut in its JSON", body: said + half + one.words(" day.") + one.finish("stop") + end, err: ErrCut},
		{name: "a chunk cut in its text", body: said + one.text(" day.")[:110] + "\n\n" + one.finish("stop") + end, err: ErrCut},
		{name: "a chunk cut in a character", body: said + "data: {\"id\":\"one\",\"choices\":[{\"delta\":{\"content\":\"\xe6\x97\n\n" + one.finish("stop") + end, err: ErrCut},
		{name: "a chunk without its beginning", body: said + "data: " + one.text(" day.")[30:] + one.finish("stop") + end, err: ErrCut},
		{name: "a finish cut", body: said + one.finish("stop")[:100] + "\n\n" + end, err: ErrCut},
	}
	for _, c := range cases {
		for _, policy := range []MidStream{MidStreamContinue, MidStreamError, MidStreamBuffer} {
			t.Run(c.name+"/"+string(policy), func(t *testing.T) {
				x := newExchange(func(c *Config) { c.MidStream = policy })
				broken := x.serve(&chunkedReader{rest: []byte(c.body), err: c.then}, choices(c.n), reasoned)
				if broken == nil || !errors.Is(broken.Err, c.err) || string(broken.Event) != c.data || broken.Empty || broken.Stalled || broken.Client || broken.Diverged {
					t.Fatalf("broken: %+v", broken)
				}
				got := x.read()
				switch {
				case got.dones > 0 || strings.Contains(x.got(), "error"):
					t.Errorf("the client got %q", x.got())
				case policy == MidStreamBuffer && x.got() != "":
					t.Errorf("of a buffered answer the client got %q", x.got())
				case policy == MidStreamContinue && c.n < 2 && (x.sink.Sent() != got.text || got.text == ""):
					t.Errorf("sent is %q, the client has %q", x.sink.Sent(), got.text)
				case policy == MidStreamError && x.sink.Sent() != "":
					t.Errorf("%q is kept though it is not continued", x.sink.Sent())
				}
				if policy != MidStreamBuffer && c.n < 2 && x.sink.Released() != recovery.ReleasedText {
					t.Errorf("released %d", x.sink.Released())
				}
			})
		}
	}
}

// chunkedReader gives an event at a time, and the error for itself.
type chunkedReader struct {
	r    io.Reader
	rest []byte
	err  error
}

func (c *chunkedReader) Read(p []byte) (int, error) {
	if c.r != nil {
		c.rest, c.err = io.ReadAll(c.r)
		c.r = nil
	}
	if len(c.rest) == 0 {
		if c.err == nil {
			c.err = io.EOF
		}
		return 0, c.err
	}
	n := strings.Index(string(c.rest), "\n\n") + 2
	if n < 2 {
		n = len(c.rest)
	}
	n = copy(p, c.rest[:n])
	c.rest = c.rest[n:]
	return n, nil
}

// TestBatch: what is at hand together goes out with one write.
func TestBatch(t *testing.T) {
	x := newExchange()
	if broken := x.serve(strings.NewReader(one.answer("a b c d e f g h"))); broken != nil {
		t.Fatalf("%+v", broken)
	}
	if len(x.writes) > 3 || x.flushes != len(x.writes) {
		t.Errorf("%d writes, %d flushes", len(x.writes), x.flushes)
	}
	x = newExchange()
	if broken := x.serve(&chunkedReader{r: strings.NewReader(one.answer("a b c d e f g h"))}); broken != nil {
		t.Fatalf("%+v", broken)
	}
	if len(x.writes) != 10 || x.flushes != 10 {
		t.Errorf("events that come singly: %d writes, %d flushes", len(x.writes), x.flushes)
	}
}

func TestUnrepeatable(t *testing.T) {
	logprobs := strings.Replace(one.text("hi"), `"index":0`, `"index":0,"logprobs":{"content":[]}`, 1)
	for name, c := range map[string]struct {
		event string
		n     int
	}{"call": {one.text("hi") + one.call(), 1}, "logprobs": {logprobs, 1}, "two choices": {one.text("hi"), 2}} {
		x := newExchange()
		if broken := x.serve(&chunkedReader{r: strings.NewReader(one.role() + c.event)}, choices(c.n)); broken == nil || broken.Err == nil {
			t.Errorf("%s: %+v", name, broken)
		}
		if x.sink.Released() != recovery.ReleasedCall {
			t.Errorf("%s: released %d", name, x.sink.Released())
		}
	}
	x := newExchange(func(c *Config) { c.MaxAnswer = 20 })
	x.sink.Begin(200, nil)
	for range 5 {
		_ = x.sink.Write(Piece{Bytes: []byte("x"), Text: "123456", Released: recovery.ReleasedText})
	}
	if x.sink.Sent() != "" {
		t.Errorf("text longer than an answer may be: %q", x.sink.Sent())
	}
}

// TestResume: a second attempt goes on where the first one broke: one
// identity, one role, exactly the remaining text, one end.
func TestResume(t *testing.T) {
	const text = "The quick brown fox jumps over the lazy dog, and then it sleeps."
	const sent = "The quick brown fox jumps over the "
	const rest = "lazy dog, and then it sleeps."
	multi := func(s string) string { // JSON over several data lines
		return strings.ReplaceAll(strings.ReplaceAll(s, `,"object"`, "\ndata: ,\"object\""), `"choices"`, "\ndata: \"choices\"")
	}
	roleWithText := two.chunk(`{"role":"assistant","content":"lazy "}`, "null") + two.words("dog, and then it sleeps.") + two.finish("stop") + end
	cases := []struct {
		name    string
		prefill bool
		body    string
		text    string // what comes after sent; empty for rest
	}{
		{name: "replay", body: two.answer(text)},
		{name: "replay in one event", body: two.role() + two.text(text) + two.finish("stop") + end},
		{name: "replay in the last event", body: two.role() + two.chunk(`{"content":"`+text+`"}`, "stop") + end},
		{name: "replay with reasoning", body: two.role() + two.reason("hm") + two.words(text) + two.finish("stop") + end},
		{name: "replay without end mark", body: strings.TrimSuffix(two.answer(text), end)},
		{name: "replay with pings, malformed", body: two.role() + ping + noJSON + two.words(text) + ping + two.finish("stop") + two.usage() + end},
		{name: "replay with CRLF", body: strings.ReplaceAll(two.answer(text), "\n", "\r\n")},
		{name: "replay over several lines", body: multi(two.answer(text))},
		{name: "replay with usage", body: two.role() + strings.ReplaceAll(two.words(text), `"model"`, `"usage":{"completion_tokens":1},"model"`) + two.finish("stop") + end},
		{name: "replay with reasoning and usage", body: two.role() + strings.ReplaceAll(two.reason("hm"), `"model"`, `"usage":{"completion_tokens":1},"model"`) + two.words(text) + two.finish("stop") + end},
		{name: "replay that is all", body: two.answer(sent), text: "-"},
		{name: "prefill", prefill: true, body: two.answer(rest)},
		{name: "prefill, restart", prefill: true, body: two.answer(text)},
		{name: "prefill, overlap", prefill: true, body: two.answer("fox jumps over the " + rest)},
		{name: "prefill in one event", prefill: true, body: two.role() + two.chunk(`{"content":"`+rest+`"}`, "stop") + end},
		{name: "prefill with overlap in the last event", prefill: true, body: two.role() + two.chunk(`{"content":"fox jumps over the `+rest+`"}`, "stop") + end},
		{name: "prefill held to the end", prefill: true, body: two.answer("the "), text: "the "},
		{name: "prefill held in the last event", prefill: true, body: two.role() + two.chunk(`{"content":"the "}`, "stop") + end, text: "the "},
		{name: "prefill of nothing", prefill: true, body: two.role() + two.finish("stop") + end, text: "-"},
		{name: "prefill over several lines", prefill: true, body: multi(two.answer("fox jumps over the " + rest))},
		{name: "prefill, role with text", prefill: true, body: roleWithText},
	}
	for _, c := range cases {
		for how, src := range map[string]io.Reader{
			"whole": strings.NewReader(c.body), "events": &chunkedReader{r: strings.NewReader(c.body)}, "byte by byte": iotest.OneByteReader(strings.NewReader(c.body)),
		} {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				x := newExchange()
				if broken := x.serve(strings.NewReader(one.role() + one.words(sent))); broken == nil || !errors.Is(broken.Err, ErrEnded) || x.sink.Sent() != sent {
					t.Fatalf("the first attempt: %+v, sent %q", broken, x.sink.Sent())
				}
				broken := x.serve(src, resume(sent, c.prefill))
				if broken != nil {
					t.Fatalf("broken: %+v", broken)
				}
				want := sent + rest
				if c.text != "" {
					want = sent + strings.TrimPrefix(c.text, "-")
				}
				got := x.read()
				if wrong := got.whole(want); wrong != "" || got.finishes == 0 || got.reasoning != "" {
					t.Errorf("%s; %d finish reasons, reasoning %q\n%s", wrong, got.finishes, got.reasoning, x.got())
				}
				if x.sink.Sent() != want {
					t.Errorf("sent is %q", x.sink.Sent())
				}
			})
		}
	}
}

// TestResumeTwice: a continuation that breaks is itself continued.
func TestResumeTwice(t *testing.T) {
	x := newExchange()
	if broken := x.serve(strings.NewReader(one.role() + one.words("one two three "))); broken == nil {
		t.Fatal("not broken")
	}
	if broken := x.serve(strings.NewReader(two.role()+two.words("one two three four five ")), resume(x.sink.Sent(), false)); broken == nil || !errors.Is(broken.Err, ErrEnded) {
		t.Fatalf("broken: %+v", broken)
	}
	if broken := x.serve(strings.NewReader(voice("third").answer("six seven")), resume(x.sink.Sent(), true)); broken != nil {
		t.Fatalf("broken: %+v", broken)
	}
	if wrong := x.read().whole("one two three four five six seven"); wrong != "" {
		t.Error(wrong)
	}
}

// TestResumeFails: another answer is never mixed into the one that was begun.
func TestResumeFails(t *testing.T) {
	const sent = "The quick brown fox jumps "
	reset := errors.New("reset")
	cases := []struct {
		name    string
		prefill bool
		body    io.Reader
		want    Broken
	}{
		{name: "another answer", body: strings.NewReader(two.answer("A fast red fox")), want: Broken{Diverged: true, Err: ErrReplay}},
		{name: "ends early", body: strings.NewReader(two.answer("The quick")), want: Broken{Diverged: true, Err: ErrReplay}},
		{name: "a call", body: strings.NewReader(two.role() + two.call() + two.finish("tool_calls") + end), want: Broken{Diverged: true, Err: ErrReplay}},
		{name: "end mark early", body: strings.NewReader(two.role() + two.words("The quick") + end), want: Broken{Diverged: true, Err: ErrReplay}},
		{name: "empty", body: strings.NewReader(two.role() + two.finish("stop") + end), want: Broken{Diverged: true, Err: ErrReplay}},
		{name: "cut early", body: strings.NewReader(two.role() + two.words("The quick")), want: Broken{Err: ErrEnded}},
		{name: "reset early", body: io.MultiReader(strings.NewReader(two.words("The quick")), iotest.ErrReader(reset)), want: Broken{Err: reset}},
		{name: "prefill, began anew and ended", prefill: true, body: strings.NewReader(two.answer("The quick brown")), want: Broken{Diverged: true, Err: ErrReplay}},
		{name: "prefill, began anew, another answer", prefill: true, body: strings.NewReader(two.answer("The quick brown cow sleeps all day.")), want: Broken{Diverged: true, Err: ErrReplay}},
		{name: "prefill, nothing", prefill: true, body: strings.NewReader(""), want: Broken{Err: ErrEnded}},
		{name: "prefill, signed reasoning", prefill: true, body: strings.NewReader(two.role() + two.chunk(`{"reasoning_details":[{"signature":"s"}]}`, "null")), want: Broken{Diverged: true, Err: ErrReplay}},
		{name: "a call before the text is complete", body: strings.NewReader(two.words("The quick ") + two.call() + two.finish("tool_calls") + end), want: Broken{Diverged: true, Err: ErrReplay}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			x := newExchange()
			if broken := x.serve(strings.NewReader(one.role() + one.words(sent))); broken == nil {
				t.Fatal("not broken")
			}
			before := x.got()
			broken := x.serve(c.body, resume(sent, c.prefill))
			if broken == nil || !errors.Is(broken.Err, c.want.Err) || broken.Diverged != c.want.Diverged || broken.Empty || broken.Client {
				t.Errorf("broken: %+v", broken)
			}
			if x.got() != before {
				t.Errorf("the client got %q", strings.TrimPrefix(x.got(), before))
			}
		})
	}
}

// TestRestart: an answer of which only reasoning was shown begins anew, without
// a second role or more reasoning; so does one whose identity came late.
func TestRestart(t *testing.T) {
	x := newExchange()
	late := `data: {"id":"","created":0,"choices":[],"prompt_filter_results":[{}]}` + "\n\n"
	if broken := x.serve(strings.NewReader(late + one.role() + one.reason("hm "))); broken == nil || x.sink.Released() != recovery.ReleasedReasoning {
		t.Fatalf("broken: %+v", broken)
	}
	if got := x.sink.identity(); got.ID != `"one"` {
		t.Errorf("identity %+v", got)
	}
	before := len(x.got())
	if broken := x.serve(strings.NewReader(two.role() + two.reason("well ") + two.words("It is fine") +
		two.chunk(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"t1"}]}`, "null") + two.finish("stop") + end)); broken != nil {
		t.Fatalf("broken: %+v", broken)
	}
	got := x.read()
	if wrong := got.whole("It is fine"); wrong != "" || got.calls != 1 || strings.Contains(x.got()[before:], "well") || strings.Contains(x.got()[before:], "role") {
		t.Errorf("%s: %q", wrong, x.got())
	}
}

// TestClientGone: a client that cannot be written to is its own failure, and
// the upstream is told.
func TestClientGone(t *testing.T) {
	gone := errors.New("broken pipe")
	for after := range 4 {
		x := newExchange()
		x.fails, x.after = gone, after
		var told error
		broken := x.serve(&chunkedReader{r: strings.NewReader(one.answer("a b c d"))}, func(o *Options) { o.Cancel = func(err error) { told = err } })
		if broken == nil || !broken.Client || !errors.Is(broken.Err, gone) || !errors.Is(told, gone) {
			t.Errorf("after %d writes: %+v, told %v", after, broken, told)
		}
		if len(x.writes) != after {
			t.Errorf("%d writes, want %d", len(x.writes), after)
		}
	}
	x := newExchange()
	x.fails, x.after = gone, 5 // the end mark
	if broken := x.serve(&chunkedReader{r: strings.NewReader(one.answer("a b c d"))}); broken != nil {
		t.Errorf("gone at the end mark: %+v", broken)
	}
	x = newExchange()
	x.fails, x.after = gone, 5
	if broken := x.serve(&chunkedReader{r: strings.NewReader(strings.TrimSuffix(one.answer("a b c d"), end))}); broken == nil || !broken.Client {
		t.Errorf("gone before an end mark that did not come: %+v", broken)
	}
}

func TestAnswerUsage(t *testing.T) {
	x := newExchange()
	a, broken := Open(respond(strings.NewReader(one.role()+one.words("a b")+one.finish("stop")+one.usage()+end)), x.options(func(o *Options) { o.Started = time.Now().Add(-time.Second) }))
	if broken != nil {
		t.Fatalf("%+v", broken)
	}
	if broken := a.Deliver(context.Background()); broken != nil {
		t.Fatalf("%+v", broken)
	}
	if usage, first := a.Usage(); usage != (recovery.Usage{Input: 3, Output: 2}) || first < time.Second || first > time.Minute {
		t.Errorf("%+v, %v", usage, first)
	}
}

// closing notes that it was closed.
type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

func TestDiscard(t *testing.T) {
	x := newExchange()
	resp := respond(nil)
	body := &closing{Reader: strings.NewReader(one.answer("a b"))}
	resp.Body = body
	cancelled := 0
	a, broken := Open(resp, x.options(func(o *Options) { o.Cancel = func(error) { cancelled++ } }))
	if broken != nil {
		t.Fatalf("%+v", broken)
	}
	a.Discard()
	if body.closed == 0 || cancelled == 0 || x.got() != "" || x.status != 0 {
		t.Errorf("closed %d, cancelled %d, the client got %q", body.closed, cancelled, x.got())
	}
}
