package rule

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Hits are the numbers of the wordings and patterns that a line may match, in the order of the rules. Next notes which of
// them do match, so that none is tried twice on a line: several classes ask about a line, some of them often.
type Hits []uint16

// maxHits limits the wordings and patterns of a list with an index. The notes are the bits above it.
const (
	maxHits = 4096
	matches = 1 << 14
	differs = 1 << 15
)

// scanner finds in one pass over a line which wordings and patterns may match it: most of them require a certain text in
// the line, or a certain first byte. Most lines have none of these, so that no expression is tried.
type scanner struct {
	always []uint16              // wordings and patterns without a known need
	first  [256][]uint16         // by the first byte of the line
	needs  map[string][]uint16   // by the required text; nil after build
	marks  [scanBits / 64]uint64 // a bit for the hash of each text's mark
	texts  [scanBuckets][]scanned
}

// scanned is a required text with its mark: four bytes of it that few other texts contain, so that few texts are compared
// with a line.
type scanned struct {
	text string
	mark int // offset of the mark in text
	ids  []uint16
}

// scanBits is the number of hashes of four bytes: five bits of each byte, which are equal for capitals and small letters.
// scanBuckets is the number of buckets for these hashes.
const (
	scanBits    = 1 << 20
	scanBuckets = 1 << 12
)

func (x *scanner) add(id uint16, n Need) {
	switch {
	case n.Texts != nil:
		for _, t := range n.Texts {
			x.needs[t] = append(x.needs[t], id)
		}
	case n.First == nil:
		x.always = append(x.always, id)
	default:
		for c, may := range n.First {
			if may {
				x.first[c] = append(x.first[c], id)
			}
		}
	}
}

// build chooses the marks; it is called after all texts were added.
func (x *scanner) build() {
	common := make([]uint16, 1<<16) // how many texts have four bytes, by a hash of them
	count := func(t string, k int) *uint16 { left := leftAt(t, k); return &common[uint16(left^left>>16)] }
	for t := range x.needs {
		for k := range len(t) - 3 {
			*count(t, k)++
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
			if *count(t, k) < *count(t, mark) {
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

// find appends the numbers of the wordings and patterns that may match a line to dst. It ignores case.
func (x *scanner) find(dst Hits, line string) Hits {
	from := len(dst)
	dst = append(dst, x.always...)
	if line != "" {
		dst = append(dst, x.first[line[0]]...)
	}
	dst, ascii := x.pass(dst, line)
	if !ascii { // the line may have capitals outside ASCII, some with a small letter in ASCII
		dst, _ = x.pass(dst, strings.ToLower(line))
	}
	slices.Sort(dst[from:])
	return dst[:from+len(slices.Compact(dst[from:]))]
}

// pass makes one pass over a line. ascii reports whether the line is pure ASCII.
func (x *scanner) pass(dst Hits, line string) (_ Hits, ascii bool) {
	var left uint
	var all byte
	for i := range len(line) + 1 {
		var c byte // 0 after the end of the line
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

// beginsLower reports whether s, which is at least as long as text, begins with text after its ASCII capitals are lowered.
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

// needOfPhrase returns the longest run of letters and digits in a wording's parts as its need. This works for texts that
// are not folded, since folding changes letters and digits only in their case.
func needOfPhrase(p phrase) (n Need) {
	best := ""
	for _, w := range p {
		for run := range strings.FieldsFuncSeq(w.text, func(r rune) bool { return r < utf8.RuneSelf && !isWord(byte(r)) }) {
			if len(run) > len(best) {
				best = run
			}
		}
	}
	if len(best) >= minNeed {
		n.Texts = []string{best}
	}
	return n
}

// Scan appends the wordings and patterns that a line may match to dst; all others certainly do not match. Its time is
// linear in the length of the line. It does not find rules that have neither wordings nor patterns. Index must be called
// first.
func (l *List) Scan(dst Hits, line string) Hits { return l.scanner.find(dst, line) }

// Mask is a set of the rules of a list.
type Mask []bool

// Mask returns the rules for which want returns true.
func (l *List) Mask(want func(*Rule) bool) Mask {
	m := make(Mask, len(l.rules))
	for i := range l.rules {
		m[i] = want(&l.rules[i].Rule)
	}
	return m
}

// FirstOf returns the index of the first rule of a mask that matches a line, -1 if none does. hits is the result of Scan
// for the line, whose text s has.
func (l *List) FirstOf(m Mask, hits Hits, s *Subject) int {
	return l.Next(m, hits, s, -1)
}

// Next is FirstOf for the rules after the one with index after.
func (l *List) Next(m Mask, hits Hits, s *Subject, after int) int {
	for k, hit := range hits {
		id := hit % maxHits
		i := l.of[id]
		if i <= after || !m[i] || hit&differs != 0 {
			continue
		}
		c := &l.rules[i]
		if hit&matches == 0 {
			if !c.has(int(id)-c.from, s) {
				hits[k] |= differs
				continue
			}
			if after = i; len(c.status)+len(c.notStatus)+len(c.codes)+len(c.notCodes) > 0 || c.missingText(s) != "" {
				hits[k] |= differs
				continue
			}
			hits[k] |= matches
		}
		if after = i; c.missingFact(s) == "" {
			return i
		}
	}
	return -1
}

// has reports whether wording n of any, or the pattern that follows as number n, is in a subject.
func (c *compiled) has(n int, s *Subject) bool {
	if n < len(c.any) {
		return c.any[n].in(s.folded())
	}
	return c.patterns[n-len(c.any)].in(s.raw())
}

// Index prepares a list for Scan. It must be called once, before the list is shared. It returns an error if the list has
// too many wordings and patterns.
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

// Submatch returns the match and groups of the first matching pattern of the first rule of a mask that matches, as
// regexp.FindStringSubmatch does; nil if there is none.
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
