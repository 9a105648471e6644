package transcript

import (
	"container/list"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"
	"unsafe"
)

// Parser parses bodies and remembers the index of long ones: an agent sends its
// whole history with each request, and all but the end of it was already validated
// and indexed with the request before. It keeps offsets and hashes, no text, at most
// 16 MiB. Safe for concurrent use.
type Parser struct {
	seed maphash.Seed

	mu     sync.Mutex
	recent *list.List                 // of *beginning, the most recently used first
	index  map[uint64][]*list.Element // by the hash of the first bytes
	size   int                        // approximate memory, in bytes
}

// The limits of a Parser.
const (
	// minParserBody is the smallest body that a Parser remembers, in bytes: to parse
	// a shorter one takes no longer than to look it up.
	minParserBody = 8 << 10
	// keyLength is the number of first bytes whose hash finds a body's beginning.
	// Agents of one kind share them, so that there may be several candidates.
	keyLength     = 1 << 10
	maxSame       = 64       // beginnings with the same first bytes
	maxBeginnings = 4096     // beginnings in all
	maxParserSize = 16 << 20 // approximate memory, in bytes
)

// beginning is the index of a body up to the end of its history's last element, and
// of the fields behind its history.
type beginning struct {
	format Format
	limits Limits
	key    uint64 // hash of the first bytes

	checkpoints []checkpoint // the shortest first; the last one is the end of the history
	offered     int          // tools
	fields      []field      // the fields before the history, and the history's own
	elements    []element
	splits      []split

	rest       []field // the fields behind the history, with offsets from its end
	restSum    uint64
	restLength int
	restValues int
}

// checkpoint is a place behind a whole message, from which a pass can go on. A beginning
// has several because clients change the end of what they sent: those of the Messages API
// move the mark of their prompt cache, others cut long results or try the last turn again.
type checkpoint struct {
	end  int    // offset
	sum  uint64 // hash of the bytes up to end
	last uint64 // the eight bytes before end

	// The number of each up to end.
	messages, elements, splits, called, values int
}

// NewParser returns an empty Parser.
func NewParser() *Parser {
	return &Parser{seed: maphash.MakeSeed(), recent: list.New(), index: map[uint64][]*list.Element{}}
}

// Parse returns the same body or error as the function Parse.
func (p *Parser) Parse(raw []byte, f Format, lim Limits) (*Body, error) {
	if len(raw) < minParserBody {
		return Parse(raw, f, lim)
	}
	key := p.sum(0, raw[:keyLength])
	known := p.find(key, raw, f, lim.checked())
	checkpoints, begun := p.shared(known, raw)
	t := parsing{behind: func(from int) bool {
		return len(raw)-from == known.restLength && p.sum(0, raw[from:]) == known.restSum
	}}
	if len(checkpoints) > 0 {
		t.known, t.at = known, checkpoints[len(checkpoints)-1]
	}
	b, err := t.parse(raw, f, lim)
	if err != nil || len(t.passed) == 0 {
		return b, err
	}
	next := &beginning{format: f, limits: b.limits, key: key, elements: slices.Clip(b.elements), splits: slices.Clip(b.splits), offered: b.offered}
	next.checkpoints = spread(append(slices.Clip(checkpoints), t.passed...))
	for i := range next.checkpoints {
		if c := &next.checkpoints[i]; c.end > t.at.end {
			c.sum, c.last = begun.upTo(p, raw, c.end), binary.LittleEndian.Uint64(raw[c.end-8:])
		}
	}
	next.restValues, next.restLength = t.values-t.inList, len(raw)-t.behindList
	if t.same {
		next.fields, next.rest, next.restSum = known.fields, known.rest, known.restSum
	} else {
		next.restSum = p.sum(0, raw[t.behindList:])
		next.fields, next.rest = b.split(t.listAt, t.behindList)
	}
	p.keep(t.known, next)
	return b, nil
}

// shared returns the checkpoints of a beginning that raw has too, and the hash of raw up
// to the last of them. known may be nil.
func (p *Parser) shared(known *beginning, raw []byte) (list []checkpoint, begun prefixHash) {
	if known == nil {
		return nil, begun
	}
	list = known.checkpoints
	last := len(list) - 1
	if longest := begun; list[last].end < len(raw) && longest.upTo(p, raw, list[last].end) == list[last].sum {
		return list, longest
	}
	for i, c := range list[:last] {
		longer := begun
		if c.end >= len(raw) || longer.upTo(p, raw, c.end) != c.sum {
			return list[:i], begun
		}
		begun = longer
	}
	return list[:last], begun
}

// spread returns some of the checkpoints: the last one, and others that are ever more
// messages before it.
func spread(all []checkpoint) (kept []checkpoint) {
	end, distance := all[len(all)-1].messages, 0
	kept = make([]checkpoint, 0, 16)
	for _, c := range slices.Backward(all) {
		if before := end - c.messages; before >= distance {
			kept, distance = append(kept, c), max(1, 2*before)
		}
	}
	slices.Reverse(kept)
	return kept
}

// chunk is the number of bytes that upTo hashes at a time.
const chunk = 8 << 10

// prefixHash hashes ever longer beginnings of one body without hashing whole chunks again.
type prefixHash struct {
	done  int // the number of bytes in state: whole chunks
	state uint64
}

// upTo returns the hash of the bytes up to end, which must not decrease between calls.
func (s *prefixHash) upTo(p *Parser, raw []byte, end int) uint64 {
	for ; s.done+chunk <= end; s.done += chunk {
		s.state = p.sum(s.state, raw[s.done:s.done+chunk])
	}
	return p.sum(s.state, raw[s.done:end])
}

// sum hashes bytes together with the hash of those before them.
func (p *Parser) sum(before uint64, raw []byte) uint64 { return Sum(p.seed, before, raw) }

// Sum hashes bytes together with the hash of those before them. Nobody without the
// seed can predict the result. It hashes the bytes as one string because maphash.Bytes
// hashes them in small pieces, which takes five times as long.
func Sum(seed maphash.Seed, before uint64, raw []byte) uint64 {
	return maphash.Comparable(seed, link{before, unsafe.String(unsafe.SliceData(raw), len(raw))})
}

// link is the value that Sum hashes.
type link struct {
	before uint64
	bytes  string
}

// find returns the beginning of which raw may have the most. The caller compares sums
// to be sure.
func (p *Parser) find(key uint64, raw []byte, f Format, lim Limits) (found *beginning) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var at *list.Element
	end := 0
	for _, e := range p.index[key] {
		k := e.Value.(*beginning)
		if k.format != f || k.limits != lim {
			continue
		}
		for _, c := range slices.Backward(k.checkpoints) {
			if c.end <= end {
				break
			}
			if c.end < len(raw) && binary.LittleEndian.Uint64(raw[c.end-8:]) == c.last {
				found, at, end = k, e, c.end
				break
			}
		}
	}
	if at != nil {
		p.recent.MoveToFront(at)
	}
	return found
}

// keep adds a beginning. It drops old (nil: none), with which next shares its first
// messages, unless old is longer.
func (p *Parser) keep(old, next *beginning) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old != nil && len(old.elements) <= len(next.elements) {
		for _, e := range p.index[next.key] {
			if e.Value == old {
				p.forget(e)
				break
			}
		}
	}
	if same := p.index[next.key]; len(same) == maxSame {
		p.forget(same[0])
	}
	p.index[next.key] = append(p.index[next.key], p.recent.PushFront(next))
	p.size += next.weight()
	for p.recent.Len() > maxBeginnings || p.size > maxParserSize {
		p.forget(p.recent.Back())
	}
}

// forget drops a beginning. The caller holds the lock.
func (p *Parser) forget(e *list.Element) {
	k := p.recent.Remove(e).(*beginning)
	p.size -= k.weight()
	same := p.index[k.key]
	for i := range same {
		if same[i] == e {
			same = append(same[:i], same[i+1:]...)
			break
		}
	}
	if p.index[k.key] = same; len(same) == 0 {
		delete(p.index, k.key)
	}
}

// weight returns the approximate memory of a beginning, in bytes.
func (k *beginning) weight() int {
	return 512 + 64*(len(k.checkpoints)+len(k.elements)) + 20*len(k.splits) + 16*(len(k.fields)+len(k.rest))
}

// split copies the fields up to the one at list, and the fields after it with
// offsets counted from behind.
func (b *Body) split(list, behind int) (before, rest []field) {
	for _, f := range b.fields {
		if int(f.key) <= list {
			before = append(before, f)
		} else {
			rest = append(rest, f.moved(-behind))
		}
	}
	return before, rest
}

// moved returns the field with n added to its offsets.
func (f field) moved(n int) field {
	d := int32(n)
	return field{f.key + d, f.keyEnd + d, f.val + d, f.valEnd + d}
}
