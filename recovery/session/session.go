package session

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"hash"
	"slices"
	"strings"
	"sync"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Input is the data that identifies a session. The package does not keep it.
type Input struct {
	// Body is the request as the client sent it, before any edit.
	Body *transcript.Body
	// Credential is the client's raw credential, the key of all hashes. All
	// clients without one are one tenant.
	Credential []byte
	// Explicit is X-Rebound-Session: the client's own name for the conversation, which may be any text, since only its
	// keyed hash is used, or an ID that was returned to the same credential earlier, which selects that session.
	Explicit string
	// Hints are the values of session-id, thread-id, x-session-id and x-session-affinity. Their order, repeated values and
	// empty values do not matter. The body's cache key is added to them.
	Hints []string
}

// ID identifies a conversation of one credential. It is comparable, and the
// zero ID means that there is no session yet. It may be shown to the client
// and in logs.
type ID [16]byte

// hashSize is the length of an ID's first part, a keyed hash, in bytes. The second part is a keyed hash of the first, which
// distinguishes an ID that a client sends back from a name that looks like one.
const hashSize = 10

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

const prefix = "s_"

// IsZero reports whether there is no session yet.
func (id ID) IsZero() bool { return id == ID{} }

// String returns "s_" and 26 letters and digits; "" for the zero ID.
func (id ID) String() string {
	if id.IsZero() {
		return ""
	}
	var out [len(prefix) + 26]byte
	encoding.Encode(out[copy(out[:], prefix):], id[:])
	return string(out[:])
}

// ParseID reads the result of String.
func ParseID(s string) (id ID, ok bool) {
	if len(s) != len(prefix)+26 || s[:len(prefix)] != prefix {
		return ID{}, false
	}
	n, err := encoding.Decode(id[:], []byte(s[len(prefix):]))
	if err != nil || n != len(id) || id.String() != s {
		return ID{}, false
	}
	return id, true
}

// Identify returns the ID of the conversation that the request belongs to. It returns the zero ID if the request has
// neither an answer, nor an explicit name, nor a conversation that a server stores. It is pure; the package's comment
// describes the parts of the identity.
func Identify(in Input) ID {
	if name := strings.TrimSpace(in.Explicit); name != "" {
		k := newKeyed(in.Credential)
		defer k.release()
		if id, ok := ParseID(name); ok && k.owns(id) {
			return id
		}
		k.begin("explicit")
		k.text('n', name)
		return k.id()
	}
	begin, ok := findBeginning(in.Body)
	if !ok {
		return conversation(in)
	}
	return derive(in, begin)
}

// conversation returns the ID of a conversation that a server stores under a name; zero if the request names none. It is
// used for requests without an answer.
func conversation(in Input) ID {
	name := in.Body.Conversation()
	if name == "" {
		return ID{}
	}
	k := newKeyed(in.Credential)
	defer k.release()
	k.begin("conversation")
	k.text('n', name)
	return k.id()
}

// derive returns the ID of a conversation with this beginning. It reads only the messages up to begin.end, which [Known]
// relies on.
func derive(in Input, begin beginning) ID {
	k := newKeyed(in.Credential)
	defer k.release()
	k.begin("derived")
	k.hints(in)
	k.buf = maskDates(in.Body.AppendSystem(k.room(in.Body)))
	k.part('s', bytes.TrimSpace(k.buf))
	if begin.user >= 0 {
		k.message('u', in.Body, begin.user)
	}
	if begin.prompt != begin.user {
		k.message('p', in.Body, begin.prompt)
	}
	whole := in.Body.State().Kind == transcript.Stateless
	for i := begin.answer; i < begin.end; i++ {
		k.message('a', in.Body, i)
		m := in.Body.Messages()[i]
		for _, c := range m.ToolCalls() {
			k.text('t', c.Name)
			k.text('i', c.ID)
		}
		if !whole { // the answer may be only a reference to stored items
			k.part('r', m.Raw())
		}
	}
	return k.id()
}

// Affinity returns a number that is the same for all requests of a conversation, from the first one on, and for
// conversations with the same beginning. It selects among equal keys and targets, so that requests find their prompt in a
// provider's cache; it does not identify a conversation.
func Affinity(in Input) uint64 {
	k := newKeyed(in.Credential)
	defer k.release()
	k.begin("affinity")
	if name := strings.TrimSpace(in.Explicit); name != "" {
		k.text('n', name)
		return k.number()
	}
	k.hints(in)
	for i, m := range in.Body.Messages() {
		if m.Role == transcript.RoleUser {
			k.message('u', in.Body, i)
			break
		}
	}
	return k.number()
}

// keyed is a keyed hash of labelled parts, with a buffer for their texts: SHA-256 over the key and the parts. It does not
// use HMAC, which costs twice as much: only a part of the sum is ever shown, so that length extension is impossible.
type keyed struct {
	mac hash.Hash
	key []byte
	sum [sha256.Size]byte
	buf []byte
	in  []byte // short parts that mac has not got yet, since writing each one separately is slow
	fed bool   // mac has got parts
}

// hashes reuses hashes with their buffers, since system prompts have tens of KB.
var hashes = sync.Pool{New: func() any { return &keyed{mac: sha256.New()} }}

// keepBuffer limits the capacity of a buffer that is reused, in bytes.
const keepBuffer = 256 << 10

// newKeyed returns a hash for one goroutine, until release.
func newKeyed(credential []byte) *keyed {
	k := hashes.Get().(*keyed)
	k.key = credential
	return k
}

func (k *keyed) release() {
	k.key = nil
	if cap(k.buf) <= keepBuffer {
		hashes.Put(k)
	}
}

// begin starts a hash for one purpose.
func (k *keyed) begin(purpose string) {
	k.in, k.fed = k.in[:0], false
	k.part('k', k.key)
	k.text('!', purpose)
}

// part adds one part. Its label and length separate it from the next one. Of a long text it adds both ends and the length.
func (k *keyed) part(label byte, text []byte) {
	const ends, short = 32 << 10, 512
	k.head(label, len(text))
	if len(text) <= short {
		k.in = append(k.in, text...)
		return
	}
	k.flush()
	if len(text) > 2*ends {
		k.mac.Write(text[:ends])
		text = text[len(text)-ends:]
	}
	k.mac.Write(text)
}

// text adds a short string as a part.
func (k *keyed) text(label byte, s string) {
	k.buf = append(k.buf[:0], s...)
	k.part(label, k.buf)
}

func (k *keyed) head(label byte, n int) {
	k.in = binary.LittleEndian.AppendUint64(append(k.in, label), uint64(n))
}

func (k *keyed) flush() {
	if !k.fed {
		k.mac.Reset()
		k.fed = true
	}
	k.mac.Write(k.in)
	k.in = k.in[:0]
}

// message adds the parts of one message's content that identify a conversation: its cleaned text and its attachments.
func (k *keyed) message(label byte, b *transcript.Body, i int) {
	m := b.Messages()[i]
	clean := transcript.WithoutReminders
	if m.Role == transcript.RoleAssistant {
		clean = recovery.WithoutThoughts
	}
	text, alone := plain(b, m)
	if !alone || bytes.IndexByte(text, '\\') >= 0 || bytes.Contains(text, []byte(transcript.ReminderTag)) {
		if n := m.End - m.Start; cap(k.buf) < n {
			k.buf = make([]byte, 0, n)
		}
		k.buf = m.AppendText(k.buf[:0])
		text = k.buf
	}
	k.part(label, clean(text))
	if alone {
		return
	}
	if k.buf = m.AppendMedia(k.buf[:0]); len(k.buf) > 0 {
		k.part('m', k.buf)
	}
}

// plain returns the text of a message whose content is one string, with the JSON escapes of the body; ok is false for
// content in parts.
func plain(b *transcript.Body, m transcript.Message) (text []byte, ok bool) {
	at, ok := m.Content()
	if !ok {
		for range m.Contents {
			return nil, false // several
		}
		return nil, true
	}
	raw := b.Raw()[at.Start:at.End]
	if raw[0] != '"' {
		return nil, false
	}
	return raw[1 : len(raw)-1 : len(raw)-1], true
}

// HintOf returns the client's names of the conversation, hashed with its credential; empty if there are none. Unlike the ID, the
// result stays the same when the client replaces its history. The body's cache key is no such name: conversations of one
// application or user may share it.
func HintOf(in Input) string {
	if len(in.Hints) == 0 {
		return ""
	}
	list := slices.Sorted(slices.Values(in.Hints))
	mac := hmac.New(sha256.New, in.Credential)
	for _, h := range slices.Compact(list) {
		_, _ = mac.Write(append([]byte(h), 0)) // a hash returns no error
	}
	return "h_" + encoding.EncodeToString(mac.Sum(nil)[:16])
}

// hints adds the set of hints.
func (k *keyed) hints(in Input) {
	if key := in.Body.CacheKey(); len(in.Hints) > 0 || key != "" {
		list := append(slices.Clone(in.Hints), key)
		slices.Sort(list)
		for _, h := range slices.Compact(list) {
			if h != "" {
				k.text('h', h)
			}
		}
	}
}

// room returns the empty buffer, large enough for a system message at the beginning.
func (k *keyed) room(b *transcript.Body) []byte {
	if list := b.Messages(); len(list) > 0 && (list[0].Role == transcript.RoleSystem || list[0].Role == transcript.RoleDeveloper) {
		if n := list[0].End - list[0].Start; cap(k.buf) < n {
			k.buf = make([]byte, 0, n)
		}
	}
	return k.buf[:0]
}

func (k *keyed) end() []byte {
	if !k.fed {
		k.sum = sha256.Sum256(k.in)
		return k.sum[:]
	}
	k.flush()
	return k.mac.Sum(k.sum[:0])
}

func (k *keyed) number() uint64 { return binary.LittleEndian.Uint64(k.end()) }

func (k *keyed) id() (id ID) {
	copy(id[:hashSize], k.end())
	k.seal(&id)
	return id
}

// seal sets an ID's second part, the keyed hash of the first.
func (k *keyed) seal(id *ID) {
	k.begin("id")
	k.part('i', id[:hashSize])
	copy(id[hashSize:], k.end())
}

// owns reports whether the ID was made for this credential.
func (k *keyed) owns(id ID) bool {
	want := id
	k.seal(&want)
	return subtle.ConstantTimeCompare(want[:], id[:]) == 1
}
