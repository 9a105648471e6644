package inspect

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// ruleSet is a set of rules by their number, in the order of the tables.
type ruleSet [4]uint64

func (s *ruleSet) add(n int)      { s[n/64] |= 1 << (n % 64) }
func (s *ruleSet) has(n int) bool { return s[n/64]&(1<<(n%64)) != 0 }

// next is the first rule from number n on, -1 without one.
func (s *ruleSet) next(n int) int {
	for k := n / 64; k < len(s); k++ {
		if left := s[k] >> (n % 64); left != 0 {
			if n += bits.TrailingZeros64(left); n < mayRefuse {
				return n
			}
			return -1
		}
		n = 64 * (k + 1)
	}
	return -1
}

// mayRefuse is in the set of a line that has one of refusalSigns. It is no rule's number.
const mayRefuse = 64*len(ruleSet{}) - 1

// entry is a text that some rules need.
type entry struct {
	text  string
	rules ruleSet
}

// needBuckets is the number of buckets for the first three bytes of a text, and
// needBits the number of what is left of those, five bits of each: the same for
// capitals.
const (
	needBuckets = 1 << 11
	needBits    = 1 << 15
)

// needIndex finds, in one pass over a line, the rules of which it has a text
// that they need.
type needIndex struct {
	rules   []*rule               // by their number
	begins  [needBits / 64]uint64 // a bit for what is left of a text's first three bytes
	buckets [needBuckets][]entry  // by the same
}

// needs is the index of all tables and of refusals. It is read only.
var needs = indexNeeds(tables, refusalSigns)

// indexNeeds builds the index. Texts have at least three bytes, in lower case; a
// test holds that.
func indexNeeds(tables [][]rule, refusals []string) *needIndex {
	x := new(needIndex)
	for _, table := range tables {
		for i := range table {
			for _, text := range table[i].need {
				x.add(text, len(x.rules))
			}
			x.rules = append(x.rules, &table[i])
		}
	}
	for _, text := range refusals {
		x.add(text, mayRefuse)
	}
	return x
}

func (x *needIndex) add(text string, n int) {
	left := needLeft(needLeft(needLeft(0, text[0]), text[1]), text[2])
	x.begins[left/64] |= 1 << (left % 64)
	b := x.bucket(left)
	for i := range *b {
		if (*b)[i].text == text {
			(*b)[i].rules.add(n)
			return
		}
	}
	e := entry{text: text}
	e.rules.add(n)
	*b = append(*b, e)
}

// needLeft is what is left of three bytes, the last of which is c.
func needLeft(before uint, c byte) uint { return (before<<5 | uint(c&31)) % needBits }

func (x *needIndex) bucket(left uint) *[]entry { return &x.buckets[(left^left>>5)%needBuckets] }

// find is the rules that may match a line, and mayRefuse. Capitals do not matter.
func (x *needIndex) find(line string) ruleSet {
	found, ascii := x.scan(line)
	if !ascii { // capitals beyond ASCII, and those that become ASCII
		found, _ = x.scan(strings.ToLower(line))
	}
	return found
}

// scan is find where the line's only capitals are those of ASCII. ascii reports
// whether it has nothing else.
func (x *needIndex) scan(line string) (found ruleSet, ascii bool) {
	var left uint
	var all byte
	for i := range len(line) {
		all |= line[i]
		if left = needLeft(left, line[i]); x.begins[left/64]&(1<<(left%64)) != 0 && i > 1 {
			x.look(line[i-2:], *x.bucket(left), &found)
		}
	}
	return found, all < utf8.RuneSelf
}

// look adds the rules of the entries that s begins with.
func (x *needIndex) look(s string, entries []entry, found *ruleSet) {
	for i := range entries {
		e := &entries[i]
		if len(s) < len(e.text) || !beginsLower(s, e.text) {
			continue
		}
		for k := range found {
			found[k] |= e.rules[k]
		}
	}
}

// beginsLower reports whether s, which is no shorter than text, begins with it but
// for capitals of ASCII.
func beginsLower(s, text string) bool {
	for i := range len(text) {
		if lower(s[i]) != text[i] {
			return false
		}
	}
	return true
}

// lower is c, a capital of ASCII as its small letter.
func lower(c byte) byte {
	if c-'A' < 26 {
		c |= 0x20
	}
	return c
}
