package stream

import (
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Replay returns the events of a complete stored response, as if it were streamed again, or none if it
// is not complete. underway means that the server is still working on it.
func (Responses) Replay(body []byte) (events []byte, underway bool) {
	if transcript.Valid(body, maxDepth) != nil {
		return nil, false
	}
	if status := gjson.GetBytes(body, "status").Str; status != "completed" {
		return nil, status == "queued" || status == "in_progress"
	}
	var s script
	s.say("response.created", "response", with(body, "status", "in_progress", "output", []byte("[]")))
	for i, v := range gjson.GetBytes(body, "output").Array() {
		s.item([]byte(v.Raw), i)
	}
	s.say("response.completed", "response", body)
	return s.out, false
}

// item writes the events of a complete item.
func (s *script) item(item []byte, index int) {
	parts := gjson.GetBytes(item, "content").Array()
	switch kind := itemKind(item); {
	case isCall(kind):
		s.call(item, index)
	case kind == "message" && len(parts) == 1 && parts[0].Get("text").Type == gjson.String:
		s.message(item, index)
	default:
		s.say("response.output_item.added", "output_index", index, "item", item)
		s.say("response.output_item.done", "output_index", index, "item", item)
	}
}

// maxThought limits the reasoning that is kept of an answer, in bytes.
const maxThought = 128 << 10

// reportThought passes the reasoning that led to a call to Options.Thought, unless it was too long.
func (o *Options) reportThought(text string, c recovery.DraftCall) {
	tell := o.Thought
	if o.Thought = nil; tell != nil && text != "" && len(text) <= maxThought {
		o.Guard(func() { tell(text, c) })
	}
}

// write sends a piece to the client. Before the end of an answer it calls Options.Thought with the
// reasoning of its calls, and Options.Joined if another attempt wrote its beginning, because no server
// has that response as the client does.
func (a *Answer) write(p Piece) error {
	if a.finished() && a.calling() {
		a.h.calls.list[0].assembled()
		a.o.reportThought(string(a.thought), a.h.calls.list[0].DraftCall)
	}
	if tell := a.o.ItemIDs; tell != nil && a.finished() {
		a.o.ItemIDs = nil
		tell(a.known.items)
	}
	if a.o.Joined != nil && a.continues && a.finished() {
		known := new(Known)
		eachEvent(p.Bytes, func(ev *Event) {
			if d := a.o.Format.Decode(ev, known); d.item.event == eventEnd && a.o.Joined != nil {
				response := gjson.GetBytes(ev.Data, "response")
				joined := a.o.Joined
				a.o.Joined = nil
				a.o.Guard(func() { joined(response.Get("id").Str, []byte(response.Get("output").Raw)) })
			}
		})
	}
	return a.o.Sink.Write(p)
}
