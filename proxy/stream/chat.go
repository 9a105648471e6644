package stream

import (
	"bytes"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// Chat is the format of chat completions.
type Chat struct{}

var _ Format = Chat{}

// Delta reads one chunk.
func (Chat) Delta(ev *Event, known *Known) *Delta {
	d := &known.means
	data, kind := payload(ev)
	if len(data) == 0 {
		*d, known.like.filled = Delta{Kind: kind}, false
		return d
	}
	if !known.like.match(data, d, known.ID) {
		d.read(data, "delta", &known.ID)
		if d.ID.ID != "" {
			known.ID = d.ID
		}
		known.like.learn(data, d, known.ID)
	}
	switch {
	case d.Kind == KindNoise && partOfChunk(data):
		d.Kind = KindCut
	case string(ev.Name) == "error" && d.Kind != KindNoise:
		d.Kind = KindError
	}
	return d
}

// chunkFields are the fields that chunks begin with.
var chunkFields = [...]string{"id", "choices", "object", "created", "model", "provider", "usage", "system_fingerprint", "service_tier"}

// partOfChunk reports whether data that is not JSON is what was left of a chunk: an
// object that begins with a chunk's field, as far as it goes, or anything with choices.
func partOfChunk(data []byte) bool {
	if bytes.Contains(data, []byte(`"choices"`)) {
		return true
	}
	rest, ok := bytes.CutPrefix(data, []byte("{"))
	if !ok {
		return false
	}
	if rest = bytes.TrimLeft(rest, " \t\r\n"); len(rest) == 0 {
		return true
	}
	name, whole := rest[1:], false
	if i := bytes.IndexByte(name, '"'); i >= 0 {
		name, whole = name[:i], true
	}
	return rest[0] == '"' && slices.ContainsFunc(chunkFields[:], func(f string) bool {
		return f == string(name) || !whole && strings.HasPrefix(f, string(name))
	})
}

// Whole reads a complete answer without its calls.
func (c Chat) Whole(body []byte) Delta { return c.WholeIn(body, nil) }

// WholeIn reads a complete answer, and its calls into room.
func (Chat) WholeIn(body []byte, room []recovery.DraftCall) (d Delta) {
	d.drafts = room
	d.read(body, "message", nil)
	return d
}

// Ending is the end mark, or an error body as an event.
func (Chat) Ending(failure []byte, _ *Sink) []byte {
	if failure == nil {
		return doneEvent
	}
	return append(append([]byte("data: "), oneLine(failure)...), "\n\n"...)
}
