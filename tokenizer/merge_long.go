package tokenizer

import "math/bits"

// A long piece (one letter a million times, Chinese without punctuation, base64)
// is encoded in windows, so that the work stays in the processor's cache and
// memory does not grow with the piece. That this gives the same tokens as
// encoding the piece at once rests on two facts, which hold for any ranks. Let
// enc be the encoding and A, B, u, v texts.
//
//  1. Cut: if enc(AB) has a boundary between A and B, it is enc(A) enc(B).
//     No merge crossed the boundary, so each side saw the merges it sees alone.
//  2. Join: if u is the last token of enc(A), v the first of enc(B), and enc(uv)
//     is u, v, then enc(AB) is enc(A) enc(B). Suppose a merge crossed the
//     boundary, and look at the first that does. Up to then the merges inside u
//     and v came in the order in which they come when uv stands alone, because
//     the lowest pair of the whole, when it lies in uv, is the lowest of uv. So
//     this merge would happen in uv alone, too.
//
// A window is encoded and cut at a token boundary some way before its end (fact
// 1); the next window starts there, and the join is checked by encoding two
// tokens (fact 2). If a join fails, the windows are too narrow for this text:
// start again with wider ones, in the end with the whole piece.
const (
	windowSize  = 8 << 10 // bytes of a window
	windowSlack = 512     // bytes before a window's end that are encoded again
)

// countLong returns the number of tokens of a piece of any length, starting with
// windows of that many bytes. Real texts never needed wider ones; tests do.
func (v *vocabulary) countLong(piece string, window, slack int, sc *scratch) int {
	for {
		if n, ok := v.countWindows(piece, window, slack, sc); ok {
			return n
		}
		window, slack = 2*window, 2*slack
	}
}

// countWindows is countLong for one width of windows. It reports false if they
// are too narrow; they are not once a window holds the piece.
func (v *vocabulary) countWindows(piece string, window, slack int, sc *scratch) (total int, ok bool) {
	from := 0   // start of the window
	before := 0 // start of the last token before the window
	for {
		end := min(from+window, len(piece))
		n := v.mergeLong(piece[from:end], &sc.long)
		if from > 0 {
			pair := piece[before : from+int(sc.long.next[0])]
			parts := v.mergeShort(pair, &sc.short)
			if parts != 2 || int(sc.short.start[1]) != from-before {
				return 0, false
			}
		}
		if end == len(piece) {
			return total + n, true
		}
		cut := int32(end - from)
		for cut > 0 && int(cut) > end-from-slack {
			cut = sc.long.prev[cut]
			n--
		}
		if cut == 0 {
			return 0, false
		}
		total += n
		before = from + int(sc.long.prev[cut])
		from += int(cut)
	}
}

// longScratch holds the parts of a window of n bytes as a list over the places 0
// to n: a part starts at each place in the list, n is the end.
type longScratch struct {
	next, prev []int32
	rank       []uint32 // of the part at this place joined with the next one; unset at the last
	heap       []uint64 // candidates, see candidate
	steps      int      // rank look-ups and moves in the heap, for tests
}

// A candidate for merging: the rank of the pair above the place of its left
// part, so that comparing numbers gives the order of merging.
func candidate(rank uint32, place int32) uint64 { return uint64(rank)<<32 | uint64(place) }

// mergeLong encodes a text of at least one byte in O(n log n) and returns the
// number of parts, which it leaves in sc.next and sc.prev.
func (v *vocabulary) mergeLong(text string, sc *longScratch) int {
	n := len(text)
	sc.reset(n)
	next, prev, rank := sc.next, sc.prev, sc.rank
	for i := range n - 1 {
		r := v.rank(text[i : i+2])
		rank[i] = r
		if r != noRank {
			sc.heap = append(sc.heap, candidate(r, int32(i)))
		}
	}
	sc.steps += n
	for i := len(sc.heap)/2 - 1; i >= 0; i-- {
		sc.down(i)
	}
	parts := n
	for len(sc.heap) > 0 {
		c := sc.pop()
		i := int32(uint32(c))
		if rank[i] != uint32(c>>32) {
			continue // the pair is gone; a place never sees a rank twice
		}
		gone := next[i]
		after := next[gone]
		next[i], prev[after] = after, i
		rank[gone] = noRank
		parts--
		rank[i] = noRank
		if int(after) < n {
			sc.offer(v.rank(text[i:next[after]]), i)
		}
		if i > 0 {
			sc.offer(v.rank(text[prev[i]:after]), prev[i])
		}
	}
	return parts
}

// reset makes a list of n parts of one byte each, without pairs.
func (sc *longScratch) reset(n int) {
	if cap(sc.rank) <= n {
		size := 1 << bits.Len(uint(n))
		sc.next = make([]int32, size)
		sc.prev = make([]int32, size)
		sc.rank = make([]uint32, size)
		sc.heap = make([]uint64, 0, size)
	}
	sc.next, sc.prev, sc.rank, sc.heap = sc.next[:n+1], sc.prev[:n+1], sc.rank[:n+1], sc.heap[:0]
	for i := range n + 1 {
		sc.next[i], sc.prev[i] = int32(i+1), int32(i-1)
	}
}

// offer sets the rank of the pair at a place and, if it is a token, queues it.
func (sc *longScratch) offer(rank uint32, place int32) {
	sc.steps++
	sc.rank[place] = rank
	if rank == noRank {
		return
	}
	h := append(sc.heap, 0)
	c := candidate(rank, place)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if h[parent] <= c {
			break
		}
		h[i] = h[parent]
		i = parent
		sc.steps++
	}
	h[i] = c
	sc.heap = h
}

// pop takes the lowest candidate off the heap, which has four children a node.
func (sc *longScratch) pop() uint64 {
	h := sc.heap
	c := h[0]
	h[0] = h[len(h)-1]
	sc.heap = h[:len(h)-1]
	if len(sc.heap) > 1 {
		sc.down(0)
	}
	return c
}

// down moves the candidate at i below smaller ones.
func (sc *longScratch) down(i int) {
	h := sc.heap
	c := h[i]
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for k := first + 1; k < min(first+4, len(h)); k++ {
			if h[k] < h[least] {
				least = k
			}
		}
		if h[least] >= c {
			break
		}
		h[i] = h[least]
		i = least
		sc.steps++
	}
	h[i] = c
}
