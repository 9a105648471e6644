package rule

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Hits are the wordings and patterns that a line may hold, by their numbers, in
// the order of the rules.
type Hits []uint16

// maxHits is the number of wordings and patterns of a list that is scanned with.
const maxHits = 4096

// scanner finds in one pass over a line which wordings and patterns may match it:
// each has a text that a line must have, or bytes of which it must begin with one.
// Most lines have none, and cost no expression.
type scanner struct {
	always []uint16               // those of which nothing is known
	first  [256][]uint16          // by the first byte of the line
	begins [scanBits / 64]uint64  // a bit for what is left of a text's first three bytes
	texts  [scanBuckets][]scanned // by the same
	words  int                    // of the bits of all
}

type scanned struct {
	text string
	ids  []uint16
}

// scanBits is the number of what is left of three bytes, five bits of each, which
// are the same for capitals, and scanBuckets the number of buckets for that.
const (
	scanBits    = 1 << 15
	scanBuckets = 1 << 11
)

func (x *scanner) add(id uint16, n need) {
	x.words = int(id)/64 + 1
	for _, t := range n.texts {
		left := leftOf(leftOf(leftOf(0, t[0]), t[1]), t[2])
		x.begins[left/64] |= 1 << (left % 64)
		b := &x.texts[bucketOf(left)]
		i := 0
		for i < len(*b) && (*b)[i].text != t {
			i++
		}
		if i == len(*b) {
			*b = append(*b, scanned{text: t})
		}
		(*b)[i].ids = append((*b)[i].ids, id)
	}
	switch {
	case n.texts != nil:
	case n.first == nil:
		x.always = append(x.always, id)
	default:
		for c, may := range n.first {
			if may {
				x.first[c] = append(x.first[c], id)
			}
		}
	}
}

func leftOf(before uint, c byte) uint { return (before<<5 | uint(c&31)) % scanBits }

func bucketOf(left uint) uint { return (left ^ left>>5) % scanBuckets }

// find appends to dst what may match a line. Capitals do not matter.
func (x *scanner) find(dst Hits, line string) Hits {
	var room [maxHits / 64]uint64
	found := room[:x.words]
	for _, id := range x.always {
		found[id/64] |= 1 << (id % 64)
	}
	if line != "" {
		for _, id := range x.first[line[0]] {
			found[id/64] |= 1 << (id % 64)
		}
	}
	if !x.pass(found, line) { // capitals beyond ASCII, and those that become ASCII
		x.pass(found, strings.ToLower(line))
	}
	for k, bits := range found {
		for n := uint16(64 * k); bits != 0; n, bits = n+1, bits>>1 {
			if bits&1 != 0 {
				dst = append(dst, n)
			}
		}
	}
	return dst
}

// pass is the pass over a line. ascii reports whether it has nothing else.
func (x *scanner) pass(found []uint64, line string) (ascii bool) {
	var left uint
	var all byte
	for i := range len(line) {
		all |= line[i]
		if left = leftOf(left, line[i]); x.begins[left/64]&(1<<(left%64)) == 0 || i < 2 {
			continue
		}
		for _, e := range x.texts[bucketOf(left)] {
			if rest := line[i-2:]; len(rest) >= len(e.text) && beginsLower(rest, e.text) {
				for _, id := range e.ids {
					found[id/64] |= 1 << (id % 64)
				}
			}
		}
	}
	return all < utf8.RuneSelf
}

// beginsLower reports whether s, which is no shorter than text, begins with it but
// for capitals of ASCII.
func beginsLower(s, text string) bool {
	for i := range len(text) {
		c := s[i]
		if c-'A' < 26 {
			c |= 0x20
		}
		if c != text[i] {
			return false
		}
	}
	return true
}

// needOfPhrase is the longest run of letters and digits of a wording's parts.
// Folding leaves those of a text as they are, but for capitals.
func needOfPhrase(p phrase) (n need) {
	best := ""
	for _, w := range p {
		for run := range strings.FieldsFuncSeq(w.text, func(r rune) bool { return r < utf8.RuneSelf && !isWord(byte(r)) }) {
			if len(run) > len(best) {
				best = run
			}
		}
	}
	if len(best) >= minNeed {
		n.texts = []string{best}
	}
	return n
}

// Scan appends to dst the wordings and patterns that a line may hold: what is not
// among them surely does not. Its time is linear in the line. Rules that have
// neither wordings nor patterns are not found by it.
func (l *List) Scan(dst Hits, line string) Hits { return l.scanner.find(dst, line) }

// Mask is a set of the rules of a list.
type Mask []bool

// Mask returns the rules that want tells.
func (l *List) Mask(want func(*Rule) bool) Mask {
	m := make(Mask, len(l.rules))
	for i := range l.rules {
		m[i] = want(&l.rules[i].Rule)
	}
	return m
}

// FirstOf returns the place of the first rule of a mask that matches a line whose
// hits are known, -1 if none does.
func (l *List) FirstOf(m Mask, hits Hits, s *Subject) int {
	return l.Next(m, hits, s, -1)
}

// Next is FirstOf of the rules behind one.
func (l *List) Next(m Mask, hits Hits, s *Subject, after int) int {
	for _, id := range hits {
		i := l.of[id]
		if i <= after || !m[i] {
			continue
		}
		c := &l.rules[i]
		n := int(id) - c.from
		if n < len(c.any) && c.any[n].in(s.folded()) || n >= len(c.any) && c.patterns[n-len(c.any)].in(s.raw()) {
			if len(c.status)+len(c.notStatus)+len(c.codes)+len(c.notCodes) == 0 && c.otherwise(s) == "" {
				return i
			}
			after = i
		}
	}
	return -1
}

// Index makes a list ready for Scan. Call it once, before the list is shared.
func (l *List) Index() error {
	l.scanner = new(scanner)
	for i := range l.rules {
		c := &l.rules[i]
		c.from = len(l.of)
		for _, p := range c.any {
			l.scanner.add(uint16(len(l.of)), needOfPhrase(p))
			l.of = append(l.of, i)
		}
		for _, p := range c.patterns {
			l.scanner.add(uint16(len(l.of)), p.need)
			l.of = append(l.of, i)
		}
		if len(l.of) > maxHits {
			return fmt.Errorf("rules: more than %d wordings and patterns", maxHits)
		}
	}
	return nil
}

// Submatch is what the first pattern of a mask's rules that matches finds, with its
// groups, as regexp.FindStringSubmatch; nil if none does.
func (l *List) Submatch(m Mask, hits Hits, s *Subject) []string {
	i := l.FirstOf(m, hits, s)
	if i < 0 {
		return nil
	}
	c := &l.rules[i]
	if n := anyPattern(c.patterns, s.raw()); n >= 0 {
		return c.patterns[n].re.FindStringSubmatch(s.raw())
	}
	return nil
}
