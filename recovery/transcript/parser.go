package transcript

import (
	"container/list"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"
	"unsafe"
)

// Parser parses bodies and remembers how long ones began: an agent sends its
// whole history with each request, and all but the end of it was validated and
// indexed when it came the last time. It keeps offsets and hashes, no text.
// Bounded; safe for concurrent use.
type Parser struct {
	seed maphash.Seed

	mu     sync.Mutex
	recent *list.List                 // of *beginning, the latest in front
	index  map[uint64][]*list.Element // by the hash of the first bytes
	size   int
}

// The bounds of what a Parser remembers.
const (
	// worthwhile is the size from which a body is remembered: a shorter one is
	// parsed in the time that a look takes.
	worthwhile = 8 << 10
	// opening is how many of a body's first bytes find its beginning. Agents of
	// one kind share them, so that there may be some to choose from.
	opening       = 1 << 10
	maxSame       = 64
	maxBeginnings = 4096
	maxParserSize = 16 << 20
)

// beginning is a body up to the end of its history's last element, and what
// came behind its history.
type beginning struct {
	format Format
	limits Limits
	key    uint64 // hash of the first bytes
	sum    uint64 // hash of the bytes up to end
	last   uint64 // the eight bytes before end

	called   int     // calls of the elements
	offered  int     // tools
	values   int     // up to end
	fields   []field // before the history, and the history's own
	elements []element
	splits   []split
	end      int

	rest       []field // behind the history, their offsets counted from its end
	restSum    uint64
	restLength int
	restValues int
}

// NewParser makes a Parser that remembers nothing yet.
func NewParser() *Parser {
	return &Parser{seed: maphash.MakeSeed(), recent: list.New(), index: map[uint64][]*list.Element{}}
}

// Parse is the function Parse: the same body, the same error.
func (p *Parser) Parse(raw []byte, f Format, lim Limits) (*Body, error) {
	if len(raw) < worthwhile {
		return Parse(raw, f, lim)
	}
	key := p.sum(0, raw[:opening])
	var begun summing
	known := p.find(key, raw, f, lim.checked())
	if known != nil && begun.upTo(p, raw, known.end) != known.sum {
		known = nil
	}
	t := parsing{known: known, behind: func(from int) bool {
		return len(raw)-from == known.restLength && p.sum(0, raw[from:]) == known.restSum
	}}
	b, err := t.parse(raw, f, lim)
	if err != nil || len(b.elements) == 0 || known != nil && len(b.elements) == len(known.elements) && t.same {
		return b, err
	}
	next := &beginning{format: f, limits: b.limits, key: key, end: b.behindElements(), elements: slices.Clip(b.elements), splits: slices.Clip(b.splits), called: b.called, offered: b.offered}
	next.values, next.restValues = t.inList, t.values-t.inList
	next.sum, next.last = begun.upTo(p, raw, next.end), binary.LittleEndian.Uint64(raw[next.end-8:])
	next.restLength = len(raw) - t.behindList
	if t.same {
		next.fields, next.rest, next.restSum = known.fields, known.rest, known.restSum
	} else {
		next.restSum = p.sum(0, raw[t.behindList:])
		next.fields, next.rest = b.split(t.listAt, t.behindList)
	}
	p.keep(known, next)
	return b, nil
}

// chunk is how much of a body is hashed in one go, in bytes.
const chunk = 8 << 10

// summing hashes the beginnings of one body, of which each goes on where the one
// before it ended, but for less than a chunk.
type summing struct {
	done  int // bytes in state, whole chunks
	state uint64
}

// upTo is the hash of the bytes up to end, which is no smaller than the time before.
func (s *summing) upTo(p *Parser, raw []byte, end int) uint64 {
	for ; s.done+chunk <= end; s.done += chunk {
		s.state = p.sum(s.state, raw[s.done:s.done+chunk])
	}
	return p.sum(s.state, raw[s.done:end])
}

// sum is a hash of bytes and of what came before them.
func (p *Parser) sum(before uint64, raw []byte) uint64 { return Sum(p.seed, before, raw) }

// Sum is a hash of bytes, and of what came before them, that nobody without the
// seed can foresee. It takes them as one string, since maphash.Bytes goes through
// them in small pieces, which takes five times as long.
func Sum(seed maphash.Seed, before uint64, raw []byte) uint64 {
	return maphash.Comparable(seed, link{before, unsafe.String(unsafe.SliceData(raw), len(raw))})
}

// link is what Sum hashes.
type link struct {
	before uint64
	bytes  string
}

// find is the longest known beginning that raw may have. Whether it has it, its
// sum tells.
func (p *Parser) find(key uint64, raw []byte, f Format, lim Limits) (found *beginning) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var at *list.Element
	for _, e := range p.index[key] {
		k := e.Value.(*beginning)
		if k.end < len(raw) && k.format == f && k.limits == lim && (found == nil || k.end > found.end) &&
			binary.LittleEndian.Uint64(raw[k.end-8:]) == k.last {
			found, at = k, e
		}
	}
	if at != nil {
		p.recent.MoveToFront(at)
	}
	return found
}

// keep remembers a beginning in place of another (nil: of none), which it continues.
func (p *Parser) keep(old, next *beginning) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old != nil {
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

// forget drops a beginning. The lock is held.
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

// weight is about what a beginning takes, in bytes.
func (k *beginning) weight() int {
	return 512 + 64*len(k.elements) + 20*len(k.splits) + 16*(len(k.fields)+len(k.rest))
}

// split copies the fields up to the one at list, and those from behind on with
// offsets counted from there.
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

// moved is a field whose offsets are larger by n.
func (f field) moved(n int) field {
	d := int32(n)
	return field{f.key + d, f.keyEnd + d, f.val + d, f.valEnd + d}
}
