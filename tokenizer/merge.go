package tokenizer

// Byte pair encoding of one piece: start with single bytes; while any two
// neighbours together are a token, join the pair with the lowest rank, of equal
// ones the leftmost. The number of remaining parts is the count.

// shortPiece is the maximum length in bytes of a piece that is merged by scanning for
// the lowest rank. Longer pieces use a heap, with the same result. Values between 24
// and 96 make no measurable difference.
const shortPiece = 48

// scratch is the working memory of one count. A pool reuses it.
type scratch struct {
	short shortScratch
	long  longScratch
}

// small reports whether the scratch may go back to the pool: not if a rare piece has made
// it much larger than a window.
func (sc *scratch) small() bool { return cap(sc.long.heap) <= 4*windowSize }

// countPiece returns the number of tokens of one non-empty piece.
func (v *vocabulary) countPiece(piece string, sc *scratch) int {
	switch {
	case len(piece) == 1:
		return 1 // every byte is a token
	case v.rank(piece) != noRank:
		return 1
	case len(piece) <= shortPiece:
		return v.mergeShort(piece, &sc.short)
	}
	return v.countLong(piece, windowSize, windowSlack, sc)
}

// shortScratch holds the parts of a short piece: part i is piece[start[i]:start[i+1]].
type shortScratch struct {
	start []int32
	// rank[i] is the rank of part i and part i+1 joined.
	rank []uint32
}

// mergeShort encodes a piece by scanning all pairs for each merge. That is quadratic,
// so it is only for pieces of bounded length. It leaves the parts in sc.start.
func (v *vocabulary) mergeShort(piece string, sc *shortScratch) int {
	start, rank := sc.start[:0], sc.rank[:0]
	for i := range len(piece) - 1 {
		start = append(start, int32(i))
		rank = append(rank, v.rank(piece[i:i+2]))
	}
	start = append(start, int32(len(piece)-1), int32(len(piece)))
	sc.start, sc.rank = start, rank // keep the larger capacity
	// The invariant: len(rank) pairs, len(rank)+1 parts, len(rank)+2 starts.
	for len(rank) > 0 {
		best, at := rank[0], 0
		for i, r := range rank {
			if r < best {
				best, at = r, i
			}
		}
		if best == noRank {
			break
		}
		copy(start[at+1:], start[at+2:])
		start = start[:len(start)-1]
		copy(rank[at:], rank[at+1:])
		rank = rank[:len(rank)-1]
		if at < len(rank) {
			rank[at] = v.rank(piece[start[at]:start[at+2]])
		}
		if at > 0 {
			rank[at-1] = v.rank(piece[start[at-1]:start[at+1]])
		}
	}
	sc.start = start
	return len(rank) + 1
}
