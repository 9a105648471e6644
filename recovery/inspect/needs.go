package inspect

import (
	"iter"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// ruleSet is a set of rules by their number, in the order of the tables.
type ruleSet [4]uint64

func (s *ruleSet) add(n int)      { s[n/64] |= 1 << (n % 64) }
func (s *ruleSet) has(n int) bool { return s[n/64]&(1<<(n%64)) != 0 }

// mayRefuse is in the set of a line that has one of refusalSigns. It is no rule's number.
const mayRefuse = 64*len(ruleSet{}) - 1

// entry is a text that some rules need.
type entry struct {
	text  string
	rules ruleSet
}

// needBuckets is the number of buckets for the first three bytes of a text, a power of two.
const needBuckets = 1 << 11

// needIndex finds, in one pass over a line, the rules of which it has a text
// that they need.
type needIndex struct {
	rules   []*rule                  // by their number
	filled  [needBuckets / 64]uint64 // a bit for each bucket that has entries
	buckets [needBuckets][]entry
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
	k := needBucket(uint(text[0]), uint(text[1]), uint(text[2]))
	x.filled[k/64] |= 1 << (k % 64)
	b := &x.buckets[k]
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

func needBucket(a, b, c uint) uint { return (a*961 + b*31 + c) & (needBuckets - 1) }

// matchable is the rules that may match a line, in order.
func (x *needIndex) matchable(line string) iter.Seq[*rule] {
	found := x.find(line)
	return func(yield func(*rule) bool) {
		for k, left := range found {
			for ; left != 0; left &= left - 1 {
				if n := 64*k + bits.TrailingZeros64(left); n < len(x.rules) && !yield(x.rules[n]) {
					return
				}
			}
		}
	}
}

// find is the numbers of those rules, and mayRefuse. Capitals do not matter.
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
	var a, b uint
	var all byte
	for i := range len(line) {
		all |= line[i]
		c := lower(line[i])
		if k := needBucket(a, b, c); x.filled[k/64]&(1<<(k%64)) != 0 && i > 1 {
			x.look(k, line[i-2:], &found)
		}
		a, b = b, c
	}
	return found, all < utf8.RuneSelf
}

// look adds the rules of a bucket's entries that s begins with.
func (x *needIndex) look(bucket uint, s string, found *ruleSet) {
	for i := range x.buckets[bucket] {
		e := &x.buckets[bucket][i]
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
		if lower(s[i]) != uint(text[i]) {
			return false
		}
	}
	return true
}

// lower is c, a capital of ASCII as its small letter.
func lower(c byte) uint {
	if c-'A' < 26 {
		c |= 0x20
	}
	return uint(c)
}
