package stream

import (
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// respondedWith is a streamed response with a text, and a call behind it.
func respondedWith(id, text, args string) string {
	c := Composition{ID: id, Model: "m", Created: epoch, Text: text}
	if args != "" {
		c.Calls = []recovery.DraftCall{{ID: "call_" + id, Kind: transcript.KindFunction, Name: "ls", Arguments: args}}
	}
	return string(c.encode(Responses{}, true))
}

// FuzzResponses: whatever an upstream sends, reading it ends, what is passed on is what came
// or events that can be read, and a second answer behind a first is numbered on.
func FuzzResponses(f *testing.F) {
	whole := respondedWith("1", "The quick brown fox", `{"p":1}`)
	f.Add(whole, uint16(len(whole)/2), respondedWith("2", "The quick brown fox", ""))
	f.Add(whole, uint16(300), strings.ReplaceAll(whole, `"output_index":0`, `"output_index":9`))
	f.Add("data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n", uint16(60), "data: {\"type\":\"response.completed\",\"response\":{}}\n\n")
	f.Add(strings.ReplaceAll(whole, "sequence_number", "n"), uint16(900), "data: {\"type\":\"response.output_item.done\",\"output_index\":-1,\"item\":7}\n\n")
	f.Add(reply("", `{"type":"function_call","call_id":"c1","name":"ls","arguments":"{}"}`, `{"type":"function_call","call_id":"c1","name":"ls","arguments":"{ }"}`), uint16(9999), whole)
	f.Add("data: {\"type\":\"response.output_text.done\",\"text\":\"a\",\"score\":NaN}\n\n", uint16(99), whole)
	f.Fuzz(func(t *testing.T, first string, cut uint16, second string) {
		x := newExchange()
		x.format = Responses{}
		body := first[:min(len(first), int(cut))]
		broken := x.serve(strings.NewReader(body), mended(t, judging(func(recovery.Draft) recovery.Verdict { return recovery.Verdict{} })))
		if broken == nil && !strings.Contains(body, x.got()) && strings.Count(body, "call_id") < 2 { // else it may be one call, sent again
			t.Fatalf("%q became %q", body, x.got())
		}
		if broken == nil || x.sink.Sent() == "" || x.sink.Released() != recovery.ReleasedText {
			return
		}
		_ = x.serve(strings.NewReader(second), func(o *Options) { o.Resume = &recovery.Resume{Sent: x.sink.Sent(), Way: recovery.WayReplay} })
		known := new(Known)
		eachEvent([]byte(x.got()), func(ev *Event) {
			d := Responses{}.Decode(ev, known)
			if ev.HasData && d.Kind != KindDone && !gjson.ValidBytes(ev.Data) && !strings.Contains(first+second, string(ev.Data)) {
				t.Fatalf("wrote %q", ev.Data)
			}
		})
		for _, r := range []Format{Responses{}, Object{}} {
			r.DecodeWhole([]byte(second))
		}
		End(Responses{}, []byte(second), x.sink)
	})
}

var epoch = time.Unix(1_760_000_000, 0)
