package stream

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

// said is one event of a message.
func said(data string) string {
	return "event: " + gjson.Get(data, "type").Str + "\ndata: " + data + "\n\n"
}

func msgStart(id string) string {
	return said(`{"type":"message_start","message":{"id":"` + id +
		`","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":10,"cache_creation_input_tokens":2,"cache_read_input_tokens":30,"output_tokens":1}}}`)
}

func msgBlock(i int, block string) string {
	return said(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block))
}

func msgPiece(i int, delta string) string {
	return said(fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, delta))
}

func msgStop(i int) string { return said(fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i)) }

func msgText(i int, text string) string {
	return msgPiece(i, `{"type":"text_delta","text":"`+text+`"}`)
}

func msgEnd(reason string) string {
	return said(`{"type":"message_delta","delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":7}}`) + said(`{"type":"message_stop"}`)
}

const (
	textBlock     = `{"type":"text","text":""}`
	thinkingBlock = `{"type":"thinking","thinking":"","signature":""}`
	toolBlock     = `{"type":"tool_use","id":"toolu_1","name":"ls","input":{}}`
	msgPing       = "event: ping\ndata: {\"type\": \"ping\"}\n\n"
)

func newMessages(change ...func(*Config)) *exchange {
	x := newExchange(change...)
	x.format = Messages{}
	return x
}

// TestMessagesStartTwice: SDKs refuse a second start of a message, so the client gets one.
func TestMessagesStartTwice(t *testing.T) {
	rest := msgBlock(0, textBlock) + msgText(0, "a") + msgStop(0) + msgEnd("end_turn")
	for name, again := range map[string]string{"the same": msgStart("m"), "another": msgStart("n"), "many": strings.Repeat(msgStart("m"), 20)} {
		for where, body := range map[string]string{"at once": msgStart("m") + again + rest, "later": msgStart("m") + strings.Replace(rest, msgStop(0), again+msgStop(0), 1)} {
			x := newMessages()
			if broken := x.serve(&chunkedReader{rest: []byte(body)}, mended(t, judging(nil))); broken != nil || x.got() != msgStart("m")+rest {
				t.Errorf("%s, %s: %+v\n%s", name, where, broken, x.got())
			}
		}
	}
}

// What an event commits an answer to: the commit gate opens with reasoning, text and calls.
func TestMessagesKind(t *testing.T) {
	for _, c := range []struct {
		events string
		want   Kind // of the last
	}{
		{msgStart("m"), KindNothing}, {msgPing, KindNothing}, {msgBlock(0, textBlock), KindNothing}, {msgBlock(0, thinkingBlock), KindNothing},
		{msgBlock(0, textBlock) + msgText(0, ""), KindNothing}, {msgBlock(0, textBlock) + msgText(0, "a"), KindText},
		{msgBlock(0, `{"type":"text","text":"a"}`), KindText},
		{msgBlock(0, thinkingBlock) + msgPiece(0, `{"type":"thinking_delta","thinking":""}`), KindNothing},
		{msgBlock(0, thinkingBlock) + msgPiece(0, `{"type":"thinking_delta","thinking":"a"}`), KindReasoning},
		{msgBlock(0, thinkingBlock) + msgPiece(0, `{"type":"signature_delta","signature":"a"}`), KindReasoning},
		{msgBlock(0, `{"type":"redacted_thinking","data":"a"}`), KindReasoning},
		{msgBlock(0, toolBlock), KindCall}, {msgBlock(0, toolBlock) + msgPiece(0, `{"type":"input_json_delta","partial_json":""}`), KindCall}, {msgBlock(0, toolBlock) + msgStop(0), KindCall},
		{msgBlock(0, textBlock) + msgStop(0), KindNothing},
		{msgBlock(0, textBlock) + msgPiece(0, `{"type":"citations_delta","citation":{}}`), KindCall},
		{msgBlock(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), KindCall}, {msgBlock(0, `{"type":"new"}`), KindCall},
		{said(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), KindError}, {`data: {"error":{"message":"x"}}` + "\n\n", KindError},
		{said(`{"type":"message_stop"}`), KindDone}, {"event: message_stop\ndata: {}\n\n", KindDone}, {said(`{"type":"new_event"}`), KindNothing},
		{"event: content_block_delta\ndata: {\"type\":\"content_block_de\n\n", KindCut}, {"data: x\n\n", KindNoise}, {said(`{"type":"message_delta","delta":{"stop_reason":"network_error"}}`), KindCut},
	} {
		known, got := new(Known), Kind(255)
		eachEvent([]byte(c.events), func(ev *Event) { got = Messages{}.Decode(ev, known).Kind })
		if got != c.want {
			t.Errorf("%s: %d, want %d", c.events, got, c.want)
		}
	}
}

func TestMessagesFinish(t *testing.T) {
	for reason, want := range map[string]recovery.Finish{
		"end_turn": recovery.FinishStop, "stop_sequence": recovery.FinishStop, "tool_use": recovery.FinishCalls, "max_tokens": recovery.FinishLength,
		"model_context_window_exceeded": recovery.FinishLength, "refusal": recovery.FinishFilter, "pause_turn": "pause_turn",
	} {
		known := new(Known)
		var d Delta
		eachEvent([]byte(msgStart("m")+msgEnd(reason)), func(ev *Event) {
			if e := (Messages{}).Decode(ev, known); e.Finishes > 0 {
				d = *e
			}
		})
		w := Messages{}.DecodeWhole([]byte(`{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"` + reason + `"}`))
		if d.finish != want || w.finish != want || d.Truthful != (reason != "end_turn" && reason != "tool_use") {
			t.Errorf("%s is %q, whole %q, truthful %v", reason, d.finish, w.finish, d.Truthful)
		}
		if want := (recovery.Usage{Input: 42, CacheRead: 30, CacheWrite: 2, Output: 7}); d.Usage != want {
			t.Errorf("usage %+v, want %+v", d.Usage, want)
		}
	}
	if u, _ := UsageIn([]byte(`{"type":"message","usage":{"input_tokens":10,"cache_creation_input_tokens":2,"cache_read_input_tokens":30,"output_tokens":7}}`)); u != (recovery.Usage{Input: 42, CacheRead: 30, CacheWrite: 2, Output: 7}) {
		t.Errorf("of a body: %+v", u)
	}
}

// A whole message is read as its stream is.
func TestMessagesWhole(t *testing.T) {
	for body, want := range map[string]Kind{
		`{"type":"message","content":[],"stop_reason":"end_turn"}`:                                                   KindNothing,
		`{"type":"message","content":[{"type":"thinking","thinking":"a"}],"stop_reason":"end_turn"}`:                 KindNothing,
		`{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}`:                         KindText,
		`{"type":"message","content":[{"type":"tool_use","id":"a","name":"f","input":{}}],"stop_reason":"end_turn"}`: KindCall,
		`{"type":"error","error":{"type":"api_error","message":"x"}}`:                                                KindError, `{"detail":"x"}`: KindNothing, `[1]`: KindNoise, `{"type"`: KindNoise,
	} {
		if d := (Messages{}).DecodeWhole([]byte(body)); d.Kind != want {
			t.Errorf("%s: %d, want %d", body, d.Kind, want)
		}
	}
}

// Answers that broke: what of them the client has, and what an answer behind them adds.
func TestMessagesBroken(t *testing.T) {
	begun := msgStart("m1") + msgPing
	thought := msgBlock(0, thinkingBlock) + msgPiece(0, `{"type":"thinking_delta","thinking":"hm"}`)
	signed := thought + msgPiece(0, `{"type":"signature_delta","signature":"s"}`) + msgStop(0)
	cut := "event: content_block_delta\ndata: {\"type\":\"content_block_de"
	second := msgStart("m2") + strings.ReplaceAll(signed, "hm", "again") + msgBlock(1, textBlock) + msgText(1, "Done.") + msgStop(1) + msgEnd("end_turn")
	rest := func(index int) string {
		return msgBlock(index, textBlock) + msgText(index, "Done.") + msgStop(index) + msgEnd("end_turn")
	}
	for name, c := range map[string]struct{ first, shown, all string }{
		"nothing but its beginning": {begun, "", ""},
		"cut within its thinking":   {begun + thought + cut, begun + thought, begun + thought + msgStop(0) + strings.NewReplacer(`"index":0`, `"index":1`, "hm", "again").Replace(signed) + rest(2)},
		"cut behind its thinking":   {begun + signed, strings.TrimSuffix(begun+signed, msgStop(0)), begun + signed + rest(1)},
		"cut before any text":       {begun + signed + msgBlock(1, textBlock), strings.TrimSuffix(begun+signed, msgStop(0)), begun + signed + rest(1)},
		"an error within it":        {begun + thought + said(`{"type":"error","error":{"type":"overloaded_error"}}`), begun + thought, begun + thought + msgStop(0) + strings.NewReplacer(`"index":0`, `"index":1`, "hm", "again").Replace(signed) + rest(2)},
	} {
		x := newMessages(func(c *Config) { c.ReasoningAfter = 0 })
		broken := x.serve(&chunkedReader{rest: []byte(c.first)})
		if broken == nil || x.got() != c.shown {
			t.Errorf("%s: %+v\ngot  %s\nwant %s", name, broken, x.got(), c.shown)
			continue
		}
		if c.all == "" {
			continue
		}
		if broken = x.serve(strings.NewReader(second)); broken != nil || x.got() != c.all {
			t.Errorf("%s: %+v\ngot  %s\nwant %s", name, broken, x.got(), c.all)
		}
	}
	x := newMessages()
	if broken := x.serve(strings.NewReader(begun + msgBlock(0, textBlock) + msgText(0, "a") + msgStop(0) + said(`{"type":"message_stop"}`))); broken == nil || !errors.Is(broken.Err, ErrEnded) {
		t.Errorf("an end without a reason: %+v", broken)
	}
}

// The usage of a continuation is that of one answer.
func TestMessagesUsageAdds(t *testing.T) {
	x := newMessages()
	first := msgStart("m1") + msgBlock(0, textBlock) + msgText(0, "The quick ")
	if broken := x.serve(&chunkedReader{rest: []byte(first)}); broken == nil {
		t.Fatal("not broken")
	}
	second := msgStart("m2") + msgBlock(0, textBlock) + msgText(0, "The quick ") + msgText(0, "fox.") + msgStop(0) +
		strings.Replace(msgEnd("end_turn"), `{"output_tokens":7}`, `{"input_tokens":50,"output_tokens":7}`, 1)
	if broken := x.serve(strings.NewReader(second), func(o *Options) {
		o.Resume = &recovery.Resume{Sent: "The quick ", Way: recovery.WayReplay, Tokens: 2, Prompt: 20}
	}); broken != nil {
		t.Fatalf("%+v", broken)
	}
	got := gjson.Get(x.got()[strings.Index(x.got(), `{"type":"message_delta"`):], "usage").Raw
	if got != `{"input_tokens":30,"output_tokens":7}` {
		t.Error(got)
	}
}

// Before an answer has begun comments keep the connection alive, then pings.
func TestMessagesPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newMessages()
		x.sink.KeepAwake(nil, true)
		time.Sleep(16 * time.Second)
		r, w := io.Pipe()
		done := make(chan *Broken)
		go func() { done <- x.serve(r) }()
		begun := msgStart("m") + msgBlock(0, textBlock) + msgText(0, "a")
		_, _ = io.WriteString(w, begun)
		time.Sleep(25 * time.Second)
		rest := msgStop(0) + msgEnd("end_turn")
		_, _ = io.WriteString(w, rest)
		_ = w.Close()
		if broken := <-done; broken != nil {
			t.Errorf("%+v", broken)
		}
		x.sink.Close()
		if want := comment + begun + msgPing + msgPing + rest; x.got() != want {
			t.Errorf("got  %q\nwant %q", x.got(), want)
		}
	})
}

// FuzzMessages: whatever an upstream sends, reading it ends, what is passed on is what came
// or events that can be read, and the blocks that a client gets have dense indexes.
func FuzzMessages(f *testing.F) {
	whole := msgStart("m1") + msgBlock(0, textBlock) + msgText(0, "The quick brown fox") + msgStop(0) + msgBlock(1, toolBlock) +
		msgPiece(1, `{"type":"input_json_delta","partial_json":"{}"}`) + msgStop(1) + msgEnd("tool_use")
	f.Add(whole, uint16(len(whole)/2), whole)
	f.Add(whole, uint16(600), strings.ReplaceAll(whole, `"index":0`, `"index":99999999999`))
	f.Add(whole, uint16(9999), "data: {\"type\":\"content_block_delta\",\"index\":-1,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n")
	f.Fuzz(func(t *testing.T, first string, cut uint16, second string) {
		x := newMessages()
		body := first[:min(len(first), int(cut))]
		broken := x.serve(strings.NewReader(body), mended(t, judging(func(recovery.Draft) recovery.Verdict { return recovery.Verdict{} })))
		if got := strings.TrimSuffix(x.got(), said(`{"type":"message_stop"}`)); broken == nil && !strings.Contains(body, got) && strings.Count(body, "tool_use") < 2 {
			t.Fatalf("%q became %q", body, x.got())
		}
		if broken == nil || x.sink.Sent() == "" || x.sink.Released() != recovery.ReleasedText {
			return
		}
		before := x.got()
		_ = x.serve(strings.NewReader(second), func(o *Options) { o.Resume = &recovery.Resume{Sent: x.sink.Sent(), Way: recovery.WayReplay} })
		next := strings.Count(before, `"content_block_start"`)
		eachEvent([]byte(x.got()[len(before):]), func(ev *Event) {
			switch v := gjson.ParseBytes(ev.Data); {
			case !ev.HasData:
			case !gjson.ValidBytes(ev.Data) && !strings.Contains(second, string(ev.Data)):
				t.Fatalf("wrote %q", ev.Data)
			case v.Get("type").Str == "content_block_start" && string(ev.Name) == "content_block_start" && strings.Count(before, "content_block_start") == 2*next:
				if v.Get("index").Int() != int64(next) {
					t.Fatalf("block %d at %s", next, v.Get("index").Raw)
				}
				next++
			}
		})
		Messages{}.DecodeWhole([]byte(second))
		End(Messages{}, []byte(second), x.sink)
	})
}

// A call that cannot be used: the model is asked again, and the answer stays deliverable as it was.
func TestMessagesAsk(t *testing.T) {
	body := msgStart("m1") + msgBlock(0, toolBlock) + msgPiece(0, `{"type":"input_json_delta","partial_json":"{\"p\":"}`) + msgStop(0) + msgEnd("tool_use")
	x, m := newMessages(), asking(recovery.FlawArguments)
	_, broken := Open(respond(strings.NewReader(body)), x.options(mended(t, m)))
	if broken == nil || broken.Flaw == nil || broken.Flawed == nil || x.got() != "" {
		t.Fatalf("%+v %q", broken, x.got())
	}
	if want := (recovery.DraftCall{ID: "toolu_1", Kind: "function", Name: "ls", Arguments: `{"p":`}); len(m.drafts) != 1 || m.drafts[0].Calls[0] != want || m.drafts[0].Finish != recovery.FinishCalls {
		t.Errorf("judged %+v", m.drafts)
	}
	if b := broken.Flawed.Deliver(t.Context()); b != nil || x.got() != body {
		t.Errorf("%+v\n%s", b, x.got())
	}
	whole := `{"id":"m1","type":"message","content":[{"type":"tool_use","id":"toolu_1","name":"ls","input":{"p":1}}],"stop_reason":"tool_use"}`
	x, m = newMessages(), asking(recovery.FlawName)
	if broken := x.whole(whole, mended(t, m)); broken == nil || broken.Flawed == nil || m.drafts[0].Calls[0] != fn("toolu_1", "ls", `{"p":1}`) {
		t.Errorf("%+v %+v", broken, m.drafts)
	}
}

// A call without arguments has an empty object, whether a piece said so or none came.
func TestMessagesNoArguments(t *testing.T) {
	for _, piece := range []string{"", msgPiece(0, `{"type":"input_json_delta","partial_json":""}`), msgPiece(0, `{"type":"input_json_delta","partial_json":"{}"}`)} {
		body := msgStart("m1") + msgBlock(0, toolBlock) + piece + msgStop(0) + msgEnd("tool_use")
		x, m := newMessages(), judging(nil)
		if broken := x.serve(&chunkedReader{rest: []byte(body)}, mended(t, m)); broken != nil || x.got() != body || m.drafts[0].Calls[0].Arguments != "{}" {
			t.Errorf("%+v %+v\n%s", broken, m.drafts, x.got())
		}
	}
}

// Blocks that begin without end are passed on, and do not pile up.
func TestMessagesManyBlocks(t *testing.T) {
	var b strings.Builder
	b.WriteString(msgStart("m1"))
	for i := range 1000 {
		b.WriteString(msgBlock(i, textBlock))
	}
	b.WriteString(msgText(999, "a") + msgEnd("end_turn"))
	x := newMessages()
	a, broken := Open(respond(strings.NewReader(b.String())), x.options())
	if broken != nil || cap(a.late) > 4*maxLate {
		t.Fatalf("%+v", broken)
	}
	if broken = a.Deliver(t.Context()); broken != nil || x.got() != b.String() {
		t.Errorf("%+v, %d of %d bytes", broken, len(x.got()), b.Len())
	}
}

// TestPingKeepsItsPlace: Anthropic's first ping comes behind the start of a text block, and stays there.
func TestPingKeepsItsPlace(t *testing.T) {
	text := msgBlock(0, textBlock) + msgPing + msgText(0, "a") + msgText(0, "b") + msgStop(0)
	for name, body := range map[string]string{
		"text": msgStart("m") + text + msgEnd("end_turn"),
		"thoughts": msgStart("m") + msgBlock(0, `{"type":"thinking","thinking":""}`) + msgPing + msgPiece(0, `{"type":"thinking_delta","thinking":"hm"}`) + msgStop(0) + msgPing +
			strings.ReplaceAll(text, `"index":0`, `"index":1`) + msgEnd("end_turn"),
	} {
		x := newExchange()
		x.format = Messages{}
		if broken := x.serve(strings.NewReader(body)); broken != nil || x.got() != body {
			t.Errorf("%s: %+v\n%s", name, broken, x.got())
		}
	}
}
