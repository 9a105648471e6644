package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func loaded(tb testing.TB, name string) *vocabulary {
	tb.Helper()
	enc := mustGet(tb, name)
	enc.Count("x")
	return enc.core.vocab
}

// randomPiece returns a random piece, which need not be one that a splitter returns.
func randomPiece(rng *rand.Rand, n int) string {
	if rng.IntN(4) == 0 { // few letters: long chains of equal ranks
		return randomOf(rng, strings.Split("ab", ""), n)
	}
	return randomOf(rng, alphabets[rng.IntN(len(alphabets))], n)
}

func randomOf(rng *rand.Rand, parts []string, n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(parts[rng.IntN(len(parts))])
	}
	return b.String()[:n]
}

// parts returns the ends of the parts that mergeLong left.
func (sc *longScratch) parts() []int32 {
	var ends []int32
	for i := 0; i < len(sc.next)-1; i = int(sc.next[i]) {
		ends = append(ends, sc.next[i])
	}
	return ends
}

func TestHeapMergesAsScan(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	var sc scratch
	for _, name := range []string{O200K, CL100K} {
		v := loaded(t, name)
		for range scaled(5000) {
			piece := randomPiece(rng, 1+rng.IntN(120))
			n := v.mergeShort(piece, &sc.short)
			if m := v.mergeLong(piece, &sc.long); m != n {
				t.Fatalf("%s: %q has %d parts by heap, %d by scan", name, piece, m, n)
			}
			for i, end := range sc.long.parts() {
				if sc.short.start[i+1] != end || sc.long.prev[end] != sc.short.start[i] {
					t.Fatalf("%s: %q: other boundaries by heap than by scan", name, piece)
				}
			}
		}
	}
}

// With tiny windows joins fail often; the result must not change.
func TestWindowsCountAsWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	var sc scratch
	narrow := 0
	for _, name := range []string{O200K, CL100K} {
		v := loaded(t, name)
		for range scaled(5000) {
			piece := randomPiece(rng, 1+rng.IntN(600))
			want := v.mergeLong(piece, &sc.long)
			window := 4 + rng.IntN(60)
			slack := 1 + rng.IntN(window/2)
			if _, ok := v.countWindows(piece, window, slack, &sc); !ok {
				narrow++
			}
			if got := v.countLong(piece, window, slack, &sc); got != want {
				t.Fatalf("%s: %q has %d tokens in windows of %d, %d at once", name, piece, got, window, want)
			}
		}
	}
	if narrow == 0 || narrow == 2*scaled(5000) {
		t.Errorf("%d texts needed wider windows; some must, some must not", narrow)
	}
}

func TestWindowsCountAsWholeAtFullSize(t *testing.T) {
	var whole, windows scratch
	for _, name := range []string{O200K, CL100K} {
		v := loaded(t, name)
		for _, tc := range hardTexts(5 * windowSize) {
			want := v.mergeLong(tc.text, &whole.long)
			got, ok := v.countWindows(tc.text, windowSize, windowSlack, &windows)
			if !ok || got != want {
				t.Errorf("%s: %s: %d tokens (%v) in windows, %d at once", name, tc.name, got, ok, want)
			}
			if !windows.small() {
				t.Errorf("%s: %s: scratch grew to %d", name, tc.name, cap(windows.long.heap))
			}
		}
	}
}

// The work per byte is constant with windows, and grows at most logarithmically without.
// The test counts steps, because times vary.
func TestMergeWork(t *testing.T) {
	v := loaded(t, O200K)
	const n = 2 * windowSize
	small, large := hardTexts(n), hardTexts(8*n)
	for i := range small {
		var a, b, whole scratch
		v.countLong(small[i].text, windowSize, windowSlack, &a)
		v.countLong(large[i].text, windowSize, windowSlack, &b)
		if a.long.steps > 40*len(small[i].text) || b.long.steps > 9*a.long.steps {
			t.Errorf("%s: %d steps for %d bytes, %d for eight times as many", small[i].name, a.long.steps, len(small[i].text), b.long.steps)
		}
		v.mergeLong(large[i].text, &whole.long)
		if whole.long.steps > 80*len(large[i].text) {
			t.Errorf("%s: %d steps for %d bytes at once", large[i].name, whole.long.steps, len(large[i].text))
		}
	}
}

// A quadratic merge would take minutes for each text. Counts stay within the bound.
func TestCountHardTexts(t *testing.T) {
	for _, tc := range hardTexts(scaled(megabyte)) {
		for _, name := range []string{O200K, CL100K} {
			if name == CL100K && len(tc.text) > megabyte/4 {
				tc.text = replaceInvalid(tc.text[:megabyte/4])
			}
			got := mustGet(t, name).Count(tc.text)
			if got <= 0 || got > len(tc.text) {
				t.Errorf("%s: %s: %d tokens of %d bytes", name, tc.name, got, len(tc.text))
			}
		}
	}
}
