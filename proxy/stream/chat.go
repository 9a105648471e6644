package stream

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
		other := d.numberless(data)
		if other != nil {
			d.read(other, "delta", &known.ID)
		}
		if d.ID.ID != "" {
			known.ID = d.ID
		}
		if known.like.filled = false; other == nil {
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

// Whole reads a complete answer.
func (Chat) Whole(body []byte) (d Delta) {
	d.read(body, "message", nil)
	if other := d.numberless(body); other != nil {
		d.read(other, "message", nil)
	}
	return d
}

// ErrorEnds is false: langchaingo passes over error events, and takes what came before one
// for the answer.
func (Chat) ErrorEnds() bool { return false }

// Ending is the end mark, or an error body as an event.
func (Chat) Ending(failure []byte, _ *Sink) []byte {
	if failure == nil {
		return doneEvent
	}
	return append(append([]byte("data: "), oneLine(failure)...), "\n\n"...)
}
