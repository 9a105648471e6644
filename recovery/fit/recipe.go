package fit

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strconv"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// op is what a recipe does to a message. The values are stored.
type op uint8

const (
	opShorten   op = 1 // an old result: keep about A bytes of it; images go
	opArguments op = 2 // keep the structure of call arguments, and about A bytes of them
	opLong      op = 3 // any result, wherever it stands, or what was pasted into a person's message
	opMedia     op = 4 // the images and files of a finished turn go
	opSealed    op = 5 // a result in the words of the summariser; see sealed
	opCut       op = 6 // a run of messages with a text at its end; see sealed
)

// recipe is one edit of one message without any of its text: with the same
// message it makes the same bytes, everywhere.
type recipe struct {
	Key    uint64 `json:"k"` // content of the message, see keyed
	Op     op     `json:"o"`
	Length uint32 `json:"a,omitempty"`
}

// maxKeep bounds A.
const maxKeep = 1 << 24

// rendered is what a recipe makes of its message.
type rendered struct {
	text  string         // the new text, if texts
	texts bool           // the text changes
	args  map[int]string // the new arguments by the call's place in the message
	media bool           // attachments go
}

// mediaGone is what stands in place of an attachment.
const mediaGone = "it belonged to a finished turn, and the request was too large"

// render carries a recipe out; ok is false where it does not apply to the
// message, or would not make it smaller. What was made before is kept.
func (v *history) render(i int, r recipe) (out rendered, ok bool) {
	kept, key := v.cache, renderKey{v.items[i].sum, r.Op, r.Length}
	if m, known := kept.renders.Get(key); known {
		return m.rendered, m.ok
	}
	out, ok = v.renderUncached(i, r)
	size := 256 + len(out.text)
	for _, text := range out.args {
		size += len(text)
	}
	kept.renders.Put(key, renderResult{out, ok}, size)
	return out, ok
}

// renderUncached returns item i as a recipe shortens it; false if the recipe does not fit it.
func (v *history) renderUncached(i int, r recipe) (out rendered, ok bool) {
	it, room := &v.items[i], int(min(r.Length, maxKeep))
	switch {
	case r.Op == opArguments:
		return v.renderArguments(it, room)
	case isCompressed(it.text) || it.text == "" && it.shape.Media == 0:
		return out, false
	case r.Op == opMedia && !it.result:
		return rendered{media: true}, it.shape.Media > 0
	case r.Op == opMedia:
		room = maxKeep
	}
	switch {
	case it.result && it.shape.Media > 0:
		what := strconv.Itoa(it.shape.Media) + " images or files removed; "
		if out.text, ok = v.excerpts.shorten(what, it.text, room); !ok {
			out.text, ok = mark(what+"the text beside them was:\n"+it.text), true
		}
	case it.result:
		out.text, ok = v.excerpts.shorten("", it.text, room)
	default:
		out.text, ok = v.excerpts.shortenPastes(it.text, room, it.Index >= v.leadEnd)
	}
	out.texts = true
	return out, ok
}

// edit adds what was rendered to an edit of the body.
func (out rendered) edit(v *history, e *transcript.Edit, i int) {
	if out.texts {
		e.SetText(i, out.text, !v.items[i].result)
	}
	if out.media {
		e.DropMedia(i, mediaGone)
	}
	for n, c := range v.items[i].calls {
		text, ok := out.args[n]
		if !ok {
			continue
		}
		raw := []byte(text)
		if len(c.Arguments) > 0 && c.Arguments[0] == '"' {
			raw = transcript.String(text)
		}
		e.Replace(c.Span, raw)
	}
}

// secretOf is what content hashes are made with for one credential: what is stored of a
// session tells nothing of its texts without the credential.
func secretOf(credential []byte) []byte {
	secret, _ := hkdf.Key(sha256.New, append([]byte{1}, credential...), nil, "rebound fit content keys v1", sha256.Size) // fails for long keys only
	return secret
}

// setKeys gives every message its key: its role, text, media and calls, for a
// result also the call that it answers, and which of several equal messages it
// is. Cache marks, the spelling of the JSON and reasoning do not matter:
// clients change those.
func (v *history) setKeys() {
	seen := make(map[uint64]uint64, len(v.items))
	h := sha256.New()
	for i := range v.items {
		it := &v.items[i]
		h.Reset()
		h.Write(v.secret)
		h.Write(it.parsedMessage.sum[:])
		if it.result {
			hashString(h, it.answers)
			hashString(h, it.call.Name)
			switch {
			case it.caller < 0:
			case v.textProtocol:
				hashString(h, it.call.text)
			default:
				h.Write(v.items[it.caller].callSums[it.callIndex][:])
			}
		}
		h.Sum(it.sum[:0])
		n := binary.LittleEndian.Uint64(it.sum[:])
		it.key = n + seen[n]*0x9e3779b97f4a7c15
		seen[n]++
	}
}

// hashString writes a string so that it cannot be confused with its neighbours.
func hashString(h hash.Hash, s string) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
	h.Write(n[:])
	h.Write([]byte(s))
}
