package fit

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"

	"github.com/rebound-llm/rebound/store"
)

// session is what is remembered of one conversation. It holds no text but what
// is sealed. A value is never changed once it is shared.
//
// It is stored as two values: the edits, which change rarely and are written
// before the answer that they made possible is, and what the last answer
// reported, which is written behind each. So a late report of one replica never
// takes the place of another's new edits.
type session struct {
	// The edits.
	Gen     uint64 // grows with every change of the edits
	Written uint64 // when they were last stored, in Unix seconds
	Scale   uint32 // tokens that upstreams count for a thousand of ours; 0 unknown
	Window  uint32 // of the target that refused, 0 unknown
	Target  uint64 // hash of that target
	Recipes []recipe
	Sealed  []*sealed

	// The report.
	Anchor Anchor
	Short  bool // the target was seen to drop a part of a prompt in silence
}

// edited reports whether there are edits.
func (s *session) edited() bool { return s != nil && len(s.Recipes)+len(s.Sealed) > 0 }

// The bounds of a session's value. What exceeds them is not kept.
const (
	maxRecipes = 16 << 10
	maxSealed  = 256
	maxSpan    = 1 << 20
	maxBox     = 256 << 10
	maxAnchor  = 4 << 10
	maxTime    = 1 << 40
)

// codeVersion is the first byte of a value. Another one means another program:
// its edits are none of ours.
const codeVersion = 3

var errSession = errors.New("the value is no session of this version")

// encode is the value of the edits for the store: as small as it can be without
// effort. A session that does not fit loses its newest edits.
func (s *session) encode() []byte {
	b := []byte{codeVersion}
	b = binary.AppendUvarint(b, s.Gen)
	b = binary.AppendUvarint(b, s.Written)
	b = binary.AppendUvarint(b, uint64(s.Scale))
	b = binary.AppendUvarint(b, uint64(s.Window))
	b = binary.LittleEndian.AppendUint64(b, s.Target)
	recipes := s.Recipes[:min(len(s.Recipes), maxRecipes)]
	b = binary.AppendUvarint(b, uint64(len(recipes)))
	for _, r := range recipes {
		b = append(binary.LittleEndian.AppendUint64(b, r.Key), byte(r.Op))
		b = binary.AppendUvarint(b, uint64(r.A))
		b = binary.AppendUvarint(b, uint64(r.B))
	}
	var boxes []byte
	n := 0
	for _, box := range s.Sealed {
		if n == maxSealed || len(b)+len(boxes)+len(box.Box) > store.MaxValue-64<<10 || len(box.Box) > maxBox {
			break
		}
		boxes = append(binary.LittleEndian.AppendUint64(boxes, box.First), byte(box.Op))
		boxes = binary.AppendUvarint(boxes, uint64(box.Span))
		boxes = binary.AppendUvarint(boxes, uint64(len(box.Kept)))
		last := 0
		for _, k := range box.Kept {
			boxes = binary.AppendUvarint(boxes, uint64(k-last))
			last = k
		}
		boxes = appendBytes(boxes, box.Box)
		n++
	}
	return checked(append(binary.AppendUvarint(b, uint64(n)), boxes...))
}

// encodeReport is the value of the report.
func (s *session) encodeReport() []byte {
	b := []byte{codeVersion, 0}
	if s.Short {
		b[1] = 1
	}
	anchor, err := json.Marshal(s.Anchor)
	if err != nil || len(anchor) > maxAnchor {
		anchor = nil
	}
	return checked(appendBytes(b, anchor))
}

// checked appends a checksum.
func checked(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b)) }

// unchecked is what checked was given, without the version.
func unchecked(b []byte) (reader, error) {
	if len(b) < 5 || len(b) > store.MaxValue || b[0] != codeVersion {
		return reader{}, errSession
	}
	body := b[:len(b)-4]
	if binary.LittleEndian.Uint32(b[len(b)-4:]) != crc32.ChecksumIEEE(body) {
		return reader{}, errSession
	}
	return reader{b: body[1:]}, nil
}

func appendBytes(b, v []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(v))), v...) }

// decodeReport reads a report into s. What encodeReport did not write is an
// error, and changes nothing.
func (s *session) decodeReport(b []byte) error {
	r, err := unchecked(b)
	if err != nil {
		return err
	}
	short, raw := r.byte(), r.bytes(maxAnchor)
	var anchor Anchor
	if r.bad || len(r.b) > 0 || short > 1 || len(raw) > 0 && json.Unmarshal(raw, &anchor) != nil {
		return errSession
	}
	s.Short, s.Anchor = short == 1, anchor
	return nil
}

// decodeSession reads the edits. What encode did not write is an error, whatever
// it is; memory is bounded by the size of the value.
func decodeSession(b []byte) (*session, error) {
	r, err := unchecked(b)
	if err != nil {
		return nil, err
	}
	s := &session{Gen: r.uint(1 << 62), Written: r.uint(maxTime), Scale: uint32(r.uint(1 << 20)), Window: uint32(r.uint(maxWindow)), Target: r.word()}
	for range r.uint(maxRecipes) {
		e := recipe{Key: r.word(), Op: op(r.byte())}
		e.A, e.B = uint32(r.uint(maxKeep)), uint32(r.uint(maxKeep))
		if r.bad || e.Op < 1 || e.Op > opLast || e.Op == opSealed || e.Op == opCut {
			return nil, errSession
		}
		s.Recipes = append(s.Recipes, e)
	}
	for range r.uint(maxSealed) {
		e := &sealed{First: r.word(), Op: op(r.byte()), Span: int(r.uint(maxSpan))}
		last := 0
		for n := range r.uint(maxSpan) {
			step := int(r.uint(maxSpan))
			last += step
			if r.bad || last >= e.Span || n > 0 && step == 0 {
				return nil, errSession
			}
			e.Kept = append(e.Kept, last)
		}
		e.Box = r.bytes(maxBox)
		if r.bad || e.Span < 1 || e.Op != opSealed && e.Op != opCut || e.Op == opSealed && e.Span != 1 {
			return nil, errSession
		}
		s.Sealed = append(s.Sealed, e)
	}
	if r.bad || len(r.b) > 0 {
		return nil, errSession
	}
	return s, nil
}

// reader reads a value from the front; bad is set once something was not there.
type reader struct {
	b   []byte
	bad bool
}

// uint is a number up to limit.
func (r *reader) uint(limit uint64) uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > limit {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return make([]byte, min(n, 8))
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) word() uint64           { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *reader) byte() byte             { return r.take(1)[0] }
func (r *reader) bytes(limit int) []byte { return r.take(int(r.uint(uint64(limit)))) }
