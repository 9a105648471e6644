package stream_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/recovery"
)

// message is what a client of the Messages API puts together, as its SDK does.
func message(t *testing.T, body string) (text, thinking, input, reason string) {
	t.Helper()
	blocks := 0
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		v := gjson.Parse(data)
		switch v.Get("type").Str {
		case "content_block_start":
			if int(v.Get("index").Int()) != blocks {
				t.Errorf("block %s is number %d", v.Get("index").Raw, blocks)
			}
			blocks++
		case "content_block_delta":
			if int(v.Get("index").Int()) != blocks-1 {
				t.Errorf("a piece of block %s while %d is open", v.Get("index").Raw, blocks-1)
			}
			text, thinking, input = text+v.Get("delta.text").Str, thinking+v.Get("delta.thinking").Str, input+v.Get("delta.partial_json").Str
		case "message_delta":
			reason = v.Get("delta.stop_reason").Str
		}
	}
	return text, thinking, input, reason
}

// TestMessagesUpstream: answers of a scripted upstream, and what the next attempt completes.
func TestMessagesUpstream(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{Chunks: 8}).Start(t)
	for script, want := range map[string]struct {
		attempts                int
		thinking, input, reason string
	}{
		"ok": {1, "", "", "end_turn"}, "reason,text-tool": {1, upstreamtest.ReasoningText, upstreamtest.ToolArguments, "tool_use"}, "no-done": {1, "", "", "end_turn"},
		"finish=length": {1, "", "", "max_tokens"}, "cut=0.5/ok": {2, "", "", "end_turn"}, "error-event=0.5/ok": {2, "", "", "end_turn"}, "fin=0.7/ok": {2, "", "", "end_turn"},
		"crlf": {1, "", "", "end_turn"}, "reason,cut=0.8/reason": {2, upstreamtest.ReasoningText, "", "end_turn"},
	} {
		t.Run(script, func(t *testing.T) {
			rec, cfg := httptest.NewRecorder(), stream.Defaults()
			sink := stream.NewSink(rec, cfg)
			defer sink.Close()
			for n := 1; ; n++ {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				r, _ := http.NewRequestWithContext(ctx, http.MethodPost, up.URL()+"/v1/messages",
					strings.NewReader(`{"model":"m@`+script+`","max_tokens":99,"stream":true,"messages":[{"role":"user","content":"Hi"}]}`))
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				raw := &strings.Builder{}
				res.Body = struct {
					io.Reader
					io.Closer
				}{io.TeeReader(res.Body, raw), res.Body}
				o := stream.Options{Config: cfg, Format: stream.Messages{}, Sink: sink, Choices: 1, Started: time.Now(), Cancel: cancel, Ending: new(stream.Ending), Life: new(recovery.Life)}
				if n > 1 {
					o.Resume = &recovery.Resume{Sent: sink.Sent(), Way: recovery.WayReplay}
				}
				a, broken := stream.Open(res, o)
				if broken == nil {
					broken = a.Deliver(ctx)
				}
				if broken != nil && n < want.attempts {
					continue
				}
				if broken != nil || n != want.attempts {
					t.Fatalf("attempt %d: %+v\n%s", n, broken, rec.Body)
				}
				if n == 1 && script != "no-done" && rec.Body.String() != raw.String() {
					t.Errorf("changed:\n%s\n%s", raw, rec.Body)
				}
				break
			}
			text, thinking, input, reason := message(t, rec.Body.String())
			if text != upstreamtest.TextFor("m") || thinking != want.thinking || input != want.input || reason != want.reason ||
				strings.Count(rec.Body.String(), "event: message_start") != 1 || !strings.HasSuffix(strings.TrimSpace(rec.Body.String()), `{"type":"message_stop"}`) {
				t.Errorf("%q %q %q %q\n%s", text, thinking, input, reason, rec.Body)
			}
		})
	}
}
