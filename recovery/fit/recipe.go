package fit

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strconv"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// op is the kind of an edit. The values are stored.
type op uint8

const (
	opShorten   op = 1 // shorten an old result to about Length bytes, without its images
	opArguments op = 2 // shorten call arguments to about Length bytes, with their short values whole
	opLong      op = 3 // shorten any result, also a recent one, or what a user pasted into a message
	opMedia     op = 4 // remove images and files of a finished turn
	opSealed    op = 5 // replace a result by the summariser's text; see sealed
	opCut       op = 6 // replace a run of messages by one text; see sealed
)

// recipe is one edit of one message without any of its text. Applied to the same message it
// gives the same bytes on every replica.
type recipe struct {
	Key    uint64 `json:"k"` // of the message, see setKeys
	Op     op     `json:"o"`
	Length uint32 `json:"a,omitempty"`
}

// maxKeep limits a recipe's Length.
const maxKeep = 1 << 24

// rendered is a recipe applied to its message.
type rendered struct {
	text  string         // the new text, if texts
	texts bool           // the text changes
	args  map[int]string // the new arguments, by the call's index in the message
	media bool           // attachments are removed
}

// mediaGone says why an attachment was removed.
const mediaGone = "it belonged to a finished turn, and the request was too large"

// render applies a recipe to message i; ok is false if it does not apply, or would not make
// the message smaller. Results are cached.
func (v *history) render(i int, r recipe) (out rendered, ok bool) {
	kept, key := v.cache, renderKey{v.items[i].sum, r.Op, r.Length, i < v.leadEnd}
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

// renderUncached is render without the cache.
func (v *history) renderUncached(i int, r recipe) (out rendered, ok bool) {
	it, room := &v.items[i], int(min(r.Length, maxKeep))
	switch {
	case r.Op == opArguments:
		return v.renderArguments(it, room)
	case it.shape.Fixed || isCompressed(it.text) || it.text == "" && it.shape.Media == 0:
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
		out.text, ok = v.excerpts.shortenPastes(it.text, room, i >= v.leadEnd)
	}
	out.texts = true
	return out, ok
}

// addTo adds the rendered message i to the changes of e.
func (out rendered) addTo(v *history, e *transcript.Editor, i int) {
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

// secretOf derives the key of content hashes from a credential, so that a stored session reveals
// nothing of its texts without the credential.
func secretOf(credential []byte) []byte {
	secret, _ := hkdf.Key(sha256.New, append([]byte{1}, credential...), nil, "rebound fit content keys v1", sha256.Size) // fails for long keys only
	return secret
}

// setKeys gives every message its key: a hash of its role, text, media and calls, for a
// result also of the call that it answers, and of its number among equal messages. Cache
// marks, JSON formatting and reasoning do not count, since clients change those.
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

// hashString writes a string with its length, so that adjacent strings cannot be confused.
func hashString(h hash.Hash, s string) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
	h.Write(n[:])
	h.Write([]byte(s))
}
