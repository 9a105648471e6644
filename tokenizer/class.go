package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is the set of character classes of one rune that the patterns distinguish.
// The zero class is everything else: symbols, control characters.
type class uint8

const (
	classUpper    class = 1 << iota // \p{Lu} \p{Lt}
	classLower                      // \p{Ll}
	classCaseless                   // \p{Lm} \p{Lo}: stands for upper and lower
	classMark                       // \p{M}
	classNumber                     // \p{N}
	classSpace                      // \s
	classNewline                    // \r \n, in addition to classSpace

	classLetter = classUpper | classLower | classCaseless
	// The two halves of a word in o200k_base.
	classHead = classUpper | classCaseless | classMark
	classTail = classLower | classCaseless | classMark
)

// blockBits makes a block of the class table 256 runes long.
const blockBits = 8

// classTable maps each rune to its class in two steps; equal blocks are stored
// once. Block 0 comes first, so blocks[c] is the class of an ASCII byte c.
type classTable struct {
	index  [(unicode.MaxRune + 1) >> blockBits]uint16
	blocks []class
}

// runeClasses returns the table. It builds it from package unicode on first
// use, which takes milliseconds; afterwards it never changes.
var runeClasses = sync.OnceValue(buildClasses)

func buildClasses() *classTable {
	all := make([]class, unicode.MaxRune+1)
	for _, part := range []struct {
		table *unicode.RangeTable
		class class
	}{
		{unicode.Lu, classUpper},
		{unicode.Lt, classUpper},
		{unicode.Ll, classLower},
		{unicode.Lm, classCaseless},
		{unicode.Lo, classCaseless},
		{unicode.M, classMark},
		{unicode.N, classNumber},
		{unicode.White_Space, classSpace},
	} {
		for _, r := range part.table.R16 {
			for c := uint32(r.Lo); c <= uint32(r.Hi); c += uint32(r.Stride) {
				all[c] |= part.class
			}
		}
		for _, r := range part.table.R32 {
			for c := r.Lo; c <= r.Hi; c += r.Stride {
				all[c] |= part.class
			}
		}
	}
	all['\r'] |= classNewline
	all['\n'] |= classNewline

	const size = 1 << blockBits
	t := new(classTable)
	seen := make(map[[size]class]uint16)
	for i := range t.index {
		block := [size]class(all[i*size:])
		at, ok := seen[block]
		if !ok {
			at = uint16(len(seen))
			seen[block] = at
			t.blocks = append(t.blocks, block[:]...)
		}
		t.index[i] = at
	}
	return t
}

// at returns the class of the rune at s[i:] and its width in bytes, 0 at the end.
func (t *classTable) at(s string, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return t.blocks[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return t.blocks[int(t.index[r>>blockBits])<<blockBits|int(r&(1<<blockBits-1))], n
}

// skip returns the end of the run of runes at s[i:] that have one of the given classes.
func (t *classTable) skip(s string, i int, want class) int {
	for {
		c, n := t.at(s, i)
		if c&want == 0 {
			return i
		}
		i += n
	}
}
