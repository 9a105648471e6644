package stream

import (
	"cmp"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Chat is the format of chat completions.
type Chat struct{}

var _ Format = Chat{}

// Decode reads one chunk.
func (Chat) Decode(ev *Event, known *Known) *Delta {
	d := &known.means
	data, kind := payload(ev)
	if len(data) == 0 {
		*d, known.like.filled = Delta{Kind: kind}, false
		return d
	}
	if !known.like.match(data, d, known.ID) {
		lenient := d.readAny(data, "delta", &known.ID)
		if d.ID.ID != "" {
			d.ID.Created = cmp.Or(d.ID.Created, known.ID.Created)
			known.ID = d.ID
		}
		if known.like.filled = false; !lenient {
			known.like.learn(data, d, known.ID)
		}
	}
	switch {
	case d.Kind == KindNoise && partOf(data, chunkFields[:], `"choices"`):
		d.Kind = KindCut
	case string(ev.Name) == "error" && d.Kind != KindNoise:
		d.Kind = KindError
	}
	return d
}

// chunkFields are the fields that chunks begin with.
var chunkFields = [...]string{"id", "choices", "object", "created", "model", "provider", "usage", "system_fingerprint", "service_tier"}

// DecodeWhole reads a complete answer.
func (Chat) DecodeWhole(body []byte) (d Delta) {
	d.readAny(body, "message", nil)
	return d
}

// ErrorEnds returns false: langchaingo ignores error events, and accepts the text before one as the
// answer.
func (Chat) ErrorEnds() bool { return false }

// finishIn converts a finish reason, as raw JSON, to the neutral one.
func finishIn(raw []byte) recovery.Finish {
	reason, _, _ := strings.Cut(strings.ToLower(textOf(raw)), ":") // Gemini: content_filter: PROHIBITED_CONTENT
	switch reason {
	case "stop":
		return recovery.FinishStop
	case "tool_calls", "function_call":
		return recovery.FinishCalls
	case "content_filter", "sensitive", "safety", "recitation", "blocklist", "prohibited_content", "spii", "image_safety": // OpenAI, Z.ai, Gemini
		return recovery.FinishFilter
	case "length", "model_length", "model_context_window_exceeded", "max_tokens", "max_output_tokens": // OpenAI, Mistral, Z.ai, Gemini, Responses
		return recovery.FinishLength
	}
	return recovery.Finish(transcript.Text(raw))
}
