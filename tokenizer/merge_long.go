package tokenizer

import "math/bits"

// A long piece (one letter a million times, Chinese without punctuation, base64)
// is encoded in windows, so that the data stay in the processor's cache and
// memory does not grow with the piece. The tokens are the same as when the piece
// is encoded at once. This follows from two facts, which hold for any ranks. Let
// enc be the encoding and A, B, u, v texts.
//
//  1. Cut: if enc(AB) has a boundary between A and B, it is enc(A) enc(B).
//     No merge crossed the boundary, so each side had the same merges as alone.
//  2. Join: if u is the last token of enc(A), v the first of enc(B), and enc(uv)
//     is u, v, then enc(AB) is enc(A) enc(B). Suppose a merge crosses the
//     boundary, and take the first that does. Up to then the merges inside u
//     and v have the same order as in enc(uv), because the lowest pair of the
//     whole text, if it is in uv, is also the lowest of uv. So enc(uv) would
//     have this merge too.
//
// A window is encoded and cut at a token boundary some way before its end (fact
// 1); the next window starts there, and the join is checked by encoding two
// tokens (fact 2). If a join fails, the windows are too narrow for this text:
// start again with wider ones, in the end with the whole piece.
const (
	windowSize  = 8 << 10 // bytes of a window
	windowSlack = 512     // bytes at a window's end that the next window encodes again
)

// countLong returns the number of tokens of a piece of any length. It starts with windows of
// window bytes, and widens them if a join fails, which was never seen outside of tests.
func (v *vocabulary) countLong(piece string, window, slack int, sc *scratch) int {
	for {
		if n, ok := v.countWindows(piece, window, slack, sc); ok {
			return n
		}
		window, slack = 2*window, 2*slack
	}
}

// countWindows is countLong for one width of windows. It returns false if they are too
// narrow, which cannot happen once one window contains the whole piece.
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

// longScratch holds the parts of a window of n bytes as a doubly linked list of the
// offsets at which parts start; the last element is n.
type longScratch struct {
	next, prev []int32
	rank       []uint32 // of the part at this offset joined with the next; unset for the last
	heap       []uint64 // pairs to merge, see candidate
	steps      int      // rank look-ups and moves in the heap, counted for tests
}

// candidate encodes a pair to merge: the rank in the high bits and the offset of its left
// part in the low bits, so that the order of the numbers is the order of merging.
func candidate(rank uint32, at int32) uint64 { return uint64(rank)<<32 | uint64(at) }

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
		sc.siftDown(i)
	}
	parts := n
	for len(sc.heap) > 0 {
		c := sc.pop()
		i := int32(uint32(c))
		if rank[i] != uint32(c>>32) {
			continue // the pair no longer exists; no offset gets the same rank twice
		}
		gone := next[i]
		after := next[gone]
		next[i], prev[after] = after, i
		rank[gone] = noRank
		parts--
		rank[i] = noRank
		if int(after) < n {
			sc.push(v.rank(text[i:next[after]]), i)
		}
		if i > 0 {
			sc.push(v.rank(text[prev[i]:after]), prev[i])
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

// push sets the rank of the pair at an offset and, if it is a token, adds it to the heap.
func (sc *longScratch) push(rank uint32, at int32) {
	sc.steps++
	sc.rank[at] = rank
	if rank == noRank {
		return
	}
	h := append(sc.heap, 0)
	c := candidate(rank, at)
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

// pop removes the lowest candidate from the heap, whose nodes have four children.
func (sc *longScratch) pop() uint64 {
	h := sc.heap
	c := h[0]
	h[0] = h[len(h)-1]
	sc.heap = h[:len(h)-1]
	if len(sc.heap) > 1 {
		sc.siftDown(0)
	}
	return c
}

// siftDown moves the candidate at i down the heap, below smaller ones.
func (sc *longScratch) siftDown(i int) {
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
