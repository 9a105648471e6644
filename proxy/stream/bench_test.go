package stream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// flow is an upstream whose events come one by one.
type flow struct {
	rest   string // of the event that is read
	events []string
	end    string
	left   int
}

func (f *flow) Read(b []byte) (n int, _ error) {
	if f.rest == "" {
		switch f.left--; {
		case f.left > 0:
			f.rest = f.events[f.left%len(f.events)]
		case f.left == 0:
			f.rest = f.end
		default:
			return 0, io.EOF
		}
	}
	n = copy(b, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (*flow) Close() error { return nil }

// nobody is a client that costs nothing.
type nobody struct{ header http.Header }

func (n nobody) Header() http.Header              { return n.header }
func (nobody) WriteHeader(int)                    {}
func (nobody) Write(b []byte) (int, error)        { return len(b), nil }
func (nobody) FlushError() error                  { return nil }
func (nobody) SetWriteDeadline(_ time.Time) error { return nil }

// onlooker wants calls held, and watches.
type onlooker struct{ recovery.Mender }

func (onlooker) Holds(*transcript.Body) recovery.Hold                   { return recovery.Hold{Calls: true} }
func (onlooker) Watch(*transcript.Body, int) recovery.Watch             { return onlooker{} }
func (onlooker) Feed(recovery.Part, []byte) bool                        { return false }
func (onlooker) Mend(*transcript.Body, recovery.Draft) recovery.Verdict { return recovery.Verdict{} }

// BenchmarkEvent is what an event of a healthy stream costs, apart from its reads and writes.
func BenchmarkEvent(b *testing.B) {
	var p transcript.Parser
	req, perr := p.Parse([]byte(`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}]}`), transcript.Chat, transcript.Limits{})
	if perr != nil {
		b.Fatal(perr)
	}
	chunks := []string{one.text(" token"), one.text(" of some"), one.text(" text")}
	const delta = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":%d,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\" some\",\"logprobs\":[],\"obfuscation\":\"q8Zt3\"}\n\n"
	deltas := []string{fmt.Sprintf(delta, 114), fmt.Sprintf(delta, 115), fmt.Sprintf(delta, 116)}
	const ended = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\"output\":[]}}\n\n"
	for _, c := range []struct {
		name   string
		format Format
		flow   flow
		mender recovery.Mender
	}{
		{"passed", Chat{}, flow{events: chunks, end: one.finish("stop") + end}, nil},
		{"watched", Chat{}, flow{events: chunks, end: one.finish("stop") + end}, onlooker{}},
		{"messages", Messages{}, flow{events: []string{msgText(0, " token"), msgText(0, " of some")}, end: msgEnd("end_turn")}, onlooker{}},
		{"batched", Chat{}, flow{events: []string{strings.Repeat(one.text(" token"), 16)}, end: one.finish("stop") + end}, onlooker{}},
		{"batched responses", Responses{}, flow{events: []string{strings.Repeat(fmt.Sprintf(delta, 114), 16)}, end: ended}, onlooker{}},
		{"responses", Responses{}, flow{events: deltas, end: ended}, onlooker{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			cfg := Defaults()
			sink := NewSink(nobody{http.Header{}}, cfg)
			c.flow.left = b.N + 2
			resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: &c.flow}
			b.ReportAllocs()
			a, broken := Open(resp, Options{Config: cfg, Format: c.format, Sink: sink, Choices: 1, Started: time.Now(), Cancel: cancel, Mender: c.mender, Request: req, Ending: new(Ending), Life: new(recovery.Life)})
			if broken == nil {
				broken = a.Deliver(ctx)
			}
			if broken != nil {
				b.Fatal(broken.Err)
			}
		})
	}
}
