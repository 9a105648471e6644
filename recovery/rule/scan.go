package rule

import (
	"fmt"
	"slices"
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
	always []uint16              // those of which nothing is known
	first  [256][]uint16         // by the first byte of the line
	needs  map[string][]uint16   // by the text; until build
	marks  [scanBits / 64]uint64 // a bit for what is left of each text's mark
	texts  [scanBuckets][]scanned
}

// scanned is a text with its mark: four bytes of it that few others have, so that
// few texts are compared with what a line has there.
type scanned struct {
	text string
	mark int // where in text it stands
	ids  []uint16
}

// scanBits is the number of what is left of four bytes, five bits of each, which
// are the same for capitals, and scanBuckets the number of buckets for that.
const (
	scanBits    = 1 << 20
	scanBuckets = 1 << 12
)

func (x *scanner) add(id uint16, n need) {
	switch {
	case n.texts != nil:
		for _, t := range n.texts {
			x.needs[t] = append(x.needs[t], id)
		}
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

// build chooses the marks, when all texts are known.
func (x *scanner) build() {
	common := map[uint]int{}
	for t := range x.needs {
		for k := range len(t) - 3 {
			common[leftAt(t, k)]++
		}
	}
	for t, ids := range x.needs {
		if len(t) == 3 { // anything may follow, or nothing
			for c := range byte(32) {
				x.put(leftOf(leftAt(t+"\x00", 0)>>5, c), scanned{t, 0, ids})
			}
			continue
		}
		mark := 0
		for k := range len(t) - 3 {
			if common[leftAt(t, k)] < common[leftAt(t, mark)] {
				mark = k
			}
		}
		x.put(leftAt(t, mark), scanned{t, mark, ids})
	}
	x.needs = nil
}

func (x *scanner) put(left uint, s scanned) {
	x.marks[left/64] |= 1 << (left % 64)
	b := &x.texts[bucketOf(left)]
	*b = append(*b, s)
}

func leftAt(t string, k int) uint {
	return leftOf(leftOf(leftOf(leftOf(0, t[k]), t[k+1]), t[k+2]), t[k+3])
}

func leftOf(before uint, c byte) uint { return (before<<5 | uint(c&31)) % scanBits }

func bucketOf(left uint) uint { return (left ^ left>>8) % scanBuckets }

// find appends to dst what may match a line. Capitals do not matter.
func (x *scanner) find(dst Hits, line string) Hits {
	from := len(dst)
	dst = append(dst, x.always...)
	if line != "" {
		dst = append(dst, x.first[line[0]]...)
	}
	dst, ascii := x.pass(dst, line)
	if !ascii { // capitals beyond ASCII, and those that become ASCII
		dst, _ = x.pass(dst, strings.ToLower(line))
	}
	slices.Sort(dst[from:])
	return dst[:from+len(slices.Compact(dst[from:]))]
}

// pass is the pass over a line. ascii reports whether it has nothing else.
func (x *scanner) pass(dst Hits, line string) (_ Hits, ascii bool) {
	var left uint
	var all byte
	for i := range len(line) + 1 {
		var c byte // nothing follows the line
		if i < len(line) {
			c = line[i]
		}
		all |= c
		if left = leftOf(left, c); x.marks[left/64]&(1<<(left%64)) == 0 || i < 3 {
			continue
		}
		for _, e := range x.texts[bucketOf(left)] {
			if at := i - 3 - e.mark; at >= 0 && len(line)-at >= len(e.text) && beginsLower(line[at:], e.text) {
				dst = append(dst, e.ids...)
			}
		}
	}
	return dst, all < utf8.RuneSelf
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
			if len(c.status)+len(c.notStatus)+len(c.codes)+len(c.notCodes) == 0 && c.missingElse(s) == "" {
				return i
			}
			after = i
		}
	}
	return -1
}

// Index makes a list ready for Scan. Call it once, before the list is shared.
func (l *List) Index() error {
	l.scanner = &scanner{needs: map[string][]uint16{}}
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
	l.scanner.build()
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
