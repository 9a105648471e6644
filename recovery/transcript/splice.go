package transcript

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Splice replaces the bytes from Start to End.
type Splice struct {
	Start, End int
	Raw        []byte
}

// Spliced returns src with all splices applied in one pass. Splices that overlap are an error.
func Spliced(src []byte, list []Splice) ([]byte, error) {
	slices.SortStableFunc(list, func(a, b Splice) int { return cmp.Compare(a.Start, b.Start) })
	size, at := len(src), 0
	for _, s := range list {
		if s.Start < at {
			return nil, fmt.Errorf("two changes touch the bytes at %d", s.Start)
		}
		at = s.End
		size += len(s.Raw) - (s.End - s.Start)
	}
	out := make([]byte, 0, size)
	at = 0
	for _, s := range list {
		out = append(append(out, src[at:s.Start]...), s.Raw...)
		at = s.End
	}
	return append(out, src[at:]...), nil
}

// slot is one member of an object or element of an array, with its changes.
type slot struct {
	name                     string
	key, keyEnd, val, valEnd int    // its offsets; key equals val in arrays
	before                   []byte // elements inserted before it, each followed by a comma
	behind                   []byte // elements inserted behind it, each after a comma
	raw                      []byte // new value, nil to keep
	renamed, deleted, added  bool
}

// objectSplices appends the splices that set and remove fields of the object in raw, which is at offset base.
func objectSplices(out []Splice, raw []byte, base int, changes []change) []Splice {
	s := scanner{data: raw, limit: math.MaxInt}
	w := s.walk(s.space(0), 0)
	open := base + w.i
	var slots []slot
	for w.step() {
		slots = append(slots, slot{name: string(w.name),
			key: base + w.key, keyEnd: base + w.keyEnd, val: base + w.val, valEnd: base + w.valEnd})
	}
	n := len(slots)
	slots, _ = resolve(slots, changes) // only a new name may be taken
	return emit(out, slots, n, open, true)
}

// changedObject returns a JSON object with some of its fields set or removed; any other value as it is.
func changedObject(raw []byte, changes ...change) []byte {
	if !isObject(bytes.TrimLeft(raw, " \t\r\n")) || len(changes) == 0 {
		return raw
	}
	out, _ := Spliced(raw, objectSplices(nil, raw, 0, changes)) // fields do not overlap
	return out
}

// resolve carries out the changes on slots; new fields are appended.
func resolve(slots []slot, changes []change) ([]slot, error) {
	// Of equal names the last counts, as in member.
	find := func(name string, deleted bool) *slot {
		for i := len(slots) - 1; i >= 0; i-- {
			if slots[i].name == name && slots[i].deleted == deleted {
				return &slots[i]
			}
		}
		return nil
	}
	for _, c := range changes {
		s := find(c.name, false)
		switch c.kind {
		case changeSet:
			if s == nil {
				if s = find(c.name, true); s == nil {
					slots = append(slots, slot{name: c.name, added: true})
					s = &slots[len(slots)-1]
				}
			}
			s.raw, s.deleted = c.raw, false
		case changeDelete:
			for ; s != nil; s = find(c.name, false) {
				s.deleted = true
			}
		case changeRename:
			if s == nil || c.to == c.name {
				break
			}
			if find(c.to, false) != nil {
				return nil, fmt.Errorf("cannot rename %q: there is a field %q", c.name, c.to)
			}
			s.name, s.renamed = c.to, true
		}
	}
	return slots, nil
}

// emit appends the splices for slots, of which the first n exist in the source
// and the rest are new. open is the offset behind the opening bracket; named
// is true for an object and false for an array.
func emit(out []Splice, slots []slot, n, open int, named bool) []Splice {
	left := 0
	for i := 0; i < n; i++ {
		s := &slots[i]
		if !s.deleted {
			left++
			if len(s.before) > 0 {
				out = append(out, Splice{s.key, s.key, s.before})
			}
			if s.renamed {
				out = append(out, Splice{s.key, s.keyEnd, String(s.name)})
			}
			if s.raw != nil {
				out = append(out, Splice{s.val, s.valEnd, s.raw})
			}
			if len(s.behind) > 0 {
				out = append(out, Splice{s.valEnd, s.valEnd, s.behind})
			}
			continue
		}
		first := i
		for i+1 < n && slots[i+1].deleted {
			i++
		}
		switch {
		case first > 0: // with the comma before
			out = append(out, Splice{slots[first-1].valEnd, slots[i].valEnd, nil})
		case i+1 < n: // with the comma after
			out = append(out, Splice{slots[0].key, slots[i+1].key, nil})
		default:
			out = append(out, Splice{slots[0].key, slots[i].valEnd, nil})
		}
	}
	if n > 0 {
		open = slots[n-1].valEnd
	}
	var added []byte
	for _, s := range slots[n:] {
		if s.deleted {
			continue
		}
		if left > 0 {
			added = append(added, ',')
		}
		left++
		if named {
			added = append(AppendString(added, s.name), ':')
		}
		added = append(added, s.raw...)
	}
	if len(added) > 0 {
		out = append(out, Splice{open, open, added})
	}
	return out
}

// join appends values, each followed by a comma.
func join(dst []byte, values [][]byte) []byte {
	for _, v := range values {
		dst = append(append(dst, v...), ',')
	}
	return dst
}
