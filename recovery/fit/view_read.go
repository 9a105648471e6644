package fit

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// reading is what a message says, apart from where it stands: what is read once
// of each message of a session, which every request carries again. Safe for
// concurrent use: nothing but fails is ever changed.
type reading struct {
	text     string
	shape    transcript.Shape
	calls    []callInfo // their places are counted from the message's beginning
	callSums [][32]byte
	answers  string   // id of the call that it answers
	broken   int      // calls whose arguments are no JSON object
	sum      [32]byte // of role, text, media and calls
	size     int      // bytes, about

	// fails is whether it says that its call failed: 0 not read yet, 1 yes, -1 no.
	// The second is for calls that show what is there.
	fails [2]atomic.Int32
}

// maxReadings is how many bytes of readings are kept in the process.
const maxReadings = 48 << 20

// readings keeps what was read of messages, by their bytes; the least recently
// used go first. Safe for concurrent use. A nil *readings keeps nothing.
type readings struct {
	seed maphash.Seed
	*lru[readingKey, *reading]
	made *lru[madeKey, made]
}

// readingKey names a message by its content. The hash is seeded in each process.
type readingKey struct {
	hash, tools uint64
	size        int
}

// madeKey names what a recipe makes of a message.
type madeKey struct {
	sum [32]byte
	op  op
	a   uint32
}

// made is what came of a recipe; ok is false where it does not apply.
type made struct {
	rendered
	ok bool
}

func newReadings() *readings {
	return &readings{maphash.MakeSeed(), newLRU[readingKey, *reading](maxReadings), newLRU[madeKey, made](maxReadings / 6)}
}

// messageReader reads the messages of requests with the same tools.
type messageReader struct {
	kept  *readings
	tools *toolbox
	hash  uint64
}

// reader is for the messages of a request. r may be nil.
func (r *readings) reader(b *transcript.Body) *messageReader {
	m := &messageReader{kept: r, tools: newToolbox(b)}
	if r != nil {
		var h maphash.Hash
		h.SetSeed(r.seed)
		for _, t := range b.Tools() {
			h.WriteString(t.Name)
			h.WriteByte(0)
			h.WriteString(cutBefore(t.Description, 60))
			h.WriteByte(0)
		}
		m.hash = h.Sum64()
	}
	return m
}

// read is what a message says.
func (r *messageReader) read(m transcript.Message) *reading {
	raw := m.Raw()
	if r.kept == nil {
		return r.tools.reading(m)
	}
	key := readingKey{maphash.Bytes(r.kept.seed, raw), r.hash, len(raw)}
	if v, ok := r.kept.get(key); ok {
		return v
	}
	v := r.tools.reading(m)
	r.kept.put(key, v, v.size)
	return v
}

// reading reads a message.
func (t *toolbox) reading(m transcript.Message) *reading {
	v := &reading{text: m.Text(), shape: m.Shape()}
	v.shape.Mark = bytes.Clone(v.shape.Mark)
	if m.Role == transcript.RoleTool {
		v.answers = strings.Clone(m.ToolCallID())
	}
	v.size = 512 + len(v.text) + len(v.shape.Mark)
	h := sha256.New()
	part(h, m.Role)
	part(h, v.text)
	if v.shape.Media > 0 {
		part(h, string(m.AppendMedia(nil)))
	}
	for _, c := range m.ToolCalls() {
		text := c.Text()
		if trimmed := strings.TrimSpace(text); trimmed == "" || trimmed[0] != '{' || transcript.Valid([]byte(trimmed), 0) != nil {
			v.broken++
		}
		c.ID, c.Name = strings.Clone(c.ID), strings.Clone(c.Name)
		part(h, c.ID)
		part(h, c.Name)
		part(h, text)
		v.callSums = append(v.callSums, sha256.Sum256([]byte(text)))
		info := t.read(c.Name, text, c)
		info.Arguments = nil
		if info.Span != (transcript.Span{}) {
			info.Span.Start -= m.Start
			info.Span.End -= m.Start
		}
		info.IDSpan = transcript.Span{}
		v.calls = append(v.calls, info)
		v.size += 512 + 2*len(text)
	}
	h.Sum(v.sum[:0])
	return v
}

// callsIn are the calls of a message as they stand in its body.
func (v *reading) callsIn(b *transcript.Body, m transcript.Message) []callInfo {
	if len(v.calls) == 0 {
		return nil
	}
	out := make([]callInfo, len(v.calls))
	for i, c := range v.calls {
		if c.Span != (transcript.Span{}) {
			c.Span.Start += m.Start
			c.Span.End += m.Start
			c.Arguments = b.Raw()[c.Span.Start:c.Span.End:c.Span.End]
		}
		out[i] = c
	}
	return out
}

// lru keeps values up to a size; the least recently used go first. Safe for
// concurrent use.
type lru[K comparable, V any] struct {
	mu     sync.Mutex
	max    int
	size   int
	recent *list.List // of *kept[K, V], the latest in front
	index  map[K]*list.Element
}

type kept[K comparable, V any] struct {
	key   K
	value V
	size  int
}

func newLRU[K comparable, V any](limit int) *lru[K, V] {
	return &lru[K, V]{max: limit, recent: list.New(), index: map[K]*list.Element{}}
}

func (l *lru[K, V]) get(k K) (v V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.index[k]
	if !ok {
		return v, false
	}
	l.recent.MoveToFront(e)
	return e.Value.(*kept[K, V]).value, true
}

// put keeps a value; one that alone is a quarter of what is kept is not.
func (l *lru[K, V]) put(k K, v V, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.index[k]; ok || size > l.max/4 {
		return
	}
	l.index[k] = l.recent.PushFront(&kept[K, V]{k, v, size})
	for l.size += size; l.size > l.max; {
		e := l.recent.Back()
		old := l.recent.Remove(e).(*kept[K, V])
		delete(l.index, old.key)
		l.size -= old.size
	}
}
