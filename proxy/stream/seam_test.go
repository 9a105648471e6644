package stream

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// joined feeds a seam with the pieces of a continuation and returns what of
// them is new.
func joined(s *seam, pieces ...string) (fresh string, diverged bool) {
	for _, p := range pieces {
		f, decided, other := s.feed(p)
		if other {
			return fresh, true
		}
		if decided != s.done {
			panic("decided is not done")
		}
		if !decided && f != "" {
			panic("new text before it is decided")
		}
		fresh += f
	}
	f, other := s.finish()
	return fresh + f, other
}

// pieces cuts a text into pieces of n bytes.
func pieces(text string, n int) (out []string) {
	for len(text) > n {
		out, text = append(out, text[:n]), text[n:]
	}
	return append(out, text)
}

func TestSeam(t *testing.T) {
	const sent = "The quick brown fox jumps over"
	cases := []struct {
		name     string
		sent     string
		prefill  bool
		answer   string
		fresh    string
		diverged bool
	}{
		{name: "replay", sent: sent, answer: sent + " the dog", fresh: " the dog"},
		{name: "replay that is nothing more", sent: sent, answer: sent},
		{name: "replay that is another", sent: sent, answer: "A fast red fox", diverged: true},
		{name: "replay that is another late", sent: sent, answer: "The quick brown fox jumps onto the dog", diverged: true},
		{name: "replay that ends early", sent: sent, answer: "The quick brown", diverged: true},
		{name: "replay of nothing", sent: sent, answer: "", diverged: true},
		{name: "replay with other spaces", sent: sent, answer: " " + sent, diverged: true},
		{name: "prefill", sent: sent, prefill: true, answer: " the dog", fresh: " the dog"},
		{name: "prefill with nothing more", sent: sent, prefill: true, answer: ""},
		{name: "prefill of one byte", sent: sent, prefill: true, answer: ".", fresh: "."},
		{name: "prefill with an overlap", sent: sent, prefill: true, answer: "fox jumps over the dog", fresh: " the dog"},
		{name: "overlap as long as the minimum", sent: sent, prefill: true, answer: "x jumps over the dog", fresh: " the dog"},
		{name: "overlap shorter than the minimum", sent: sent, prefill: true, answer: " jumps over the dog", fresh: " jumps over the dog"},
		{name: "overlap and nothing more", sent: sent, prefill: true, answer: "fox jumps over"},
		{name: "short overlap and nothing more", sent: sent, prefill: true, answer: "over", fresh: "over"},
		{name: "restart", sent: sent, prefill: true, answer: sent + " the dog", fresh: " the dog"},
		{name: "restart that is nothing more", sent: sent, prefill: true, answer: sent},
		{name: "restart that ends early", sent: sent, prefill: true, answer: "The quick brown", diverged: true},
		{name: "restart that becomes another", sent: sent, prefill: true, answer: "The quick brown fox sleeps all day", diverged: true},
		{name: "begins like the answer by chance", sent: sent, prefill: true, answer: "The dog", fresh: "The dog"},
		{name: "restart of a short text", sent: "Hi", prefill: true, answer: "Hi there", fresh: " there"},
		{name: "repeated words", sent: "It says: ha ha ha", prefill: true, answer: " ha ha!", fresh: " ha ha!"},
		{name: "repeated words of a few bytes", sent: "Well, ha ha ", prefill: true, answer: "ha ha", fresh: "ha ha"},
		{name: "repeated line", sent: "x\n- a\n- b\n", prefill: true, answer: "- b\n- c\n", fresh: "- b\n- c\n"},
		{name: "not ASCII", sent: "Größe und Länge der Straße", prefill: true, answer: "e der Straße sind", fresh: " sind"},
		{name: "longest overlap", sent: "start abcabcabcabcabc", prefill: true, answer: "abcabcabcabcabc end", fresh: " end"},
		{name: "overlap of the largest size", sent: strings.Repeat("a", 50) + numbers(0, 400), prefill: true, answer: numbers(0, 400) + "end", fresh: "end"},
	}
	for _, c := range cases {
		for _, n := range []int{1, 2, 3, 5, 7, 13, 1000} {
			t.Run(fmt.Sprintf("%s/%d", c.name, n), func(t *testing.T) {
				fresh, diverged := joined(&seam{sent: c.sent, prefill: c.prefill}, pieces(c.answer, n)...)
				if diverged != c.diverged || !diverged && fresh != c.fresh {
					t.Errorf("new is %q, diverged %v, want %q, %v", fresh, diverged, c.fresh, c.diverged)
				}
				if diverged && fresh != "" {
					t.Errorf("%q of another answer was passed on", fresh)
				}
			})
		}
	}
}

// numbers is a text of n bytes that repeats nothing.
func numbers(from, n int) string {
	var b strings.Builder
	for i := from; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d:%x ", i, i*7919)
	}
	return b.String()[:n]
}

// TestSeamSoon: text is passed on as soon as it is known to be new.
func TestSeamSoon(t *testing.T) {
	s := &seam{sent: "The quick brown fox jumps over", prefill: true}
	if fresh, decided, _ := s.feed(" the"); fresh != " the" || !decided {
		t.Errorf("nothing that was sent begins like it: %q, %v", fresh, decided)
	}
	if fresh, decided, _ := s.feed(" The quick brown"); fresh != " The quick brown" || !decided {
		t.Errorf("after the seam all is new: %q, %v", fresh, decided)
	}
	s = &seam{sent: "abc"}
	for _, p := range []struct{ text, fresh string }{{"a", ""}, {"", ""}, {"bcd", "d"}, {"abc", "abc"}} {
		if fresh, _, diverged := s.feed(p.text); fresh != p.fresh || diverged {
			t.Errorf("of %q %q is new, want %q", p.text, fresh, p.fresh)
		}
	}
	if fresh, diverged := s.finish(); fresh != "" || diverged {
		t.Errorf("finished: %q, %v", fresh, diverged)
	}
}

// cutAtRandom cuts a text into pieces of random sizes, some of them empty.
func cutAtRandom(rnd *rand.Rand, text string) (out []string) {
	for text != "" {
		n := min(rnd.IntN(12), len(text))
		out, text = append(out, text[:n]), text[n:]
	}
	return out
}

// TestSeamProperties: for any text, place to cut it and pieces, a replay
// yields exactly the rest; so does a prefill, with a repetition or without, of
// a text that does not repeat itself.
func TestSeamProperties(t *testing.T) {
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		alphabet := []string{"a", "ab ", "ha ", "\n", "ö", "word "}[:1+rnd.IntN(6)]
		var b strings.Builder
		for range rnd.IntN(200) {
			b.WriteString(alphabet[rnd.IntN(len(alphabet))])
		}
		text := b.String()
		cut := rnd.IntN(len(text) + 1)
		fresh, diverged := joined(&seam{sent: text[:cut]}, cutAtRandom(rnd, text)...)
		if diverged || fresh != text[cut:] {
			t.Fatalf("seed %d: replay of %q cut at %d: %q, %v", seed, text, cut, fresh, diverged)
		}

		text = numbers(rnd.IntN(1000), 40+rnd.IntN(2000))
		cut = 20 + rnd.IntN(len(text)-20)
		for _, again := range []int{0, minOverlap + rnd.IntN(cut-minOverlap), cut} {
			if again > maxOverlap && again < cut {
				continue
			}
			fresh, diverged = joined(&seam{sent: text[:cut], prefill: true}, cutAtRandom(rnd, text[cut-again:])...)
			if diverged || fresh != text[cut:] {
				t.Fatalf("seed %d: prefill of %q cut at %d that repeats %d bytes: %q, %v", seed, text, cut, again, fresh, diverged)
			}
		}
	}
}

// FuzzSeam: a replay yields exactly the rest, and what a prefill yields is
// always the end of what came.
func FuzzSeam(f *testing.F) {
	f.Add("The quick brown fox", uint16(9), "brown fox jumps", uint8(3))
	f.Add("ha ha ha ha ha ha ha", uint16(12), " ha ha ha", uint8(1))
	f.Fuzz(func(t *testing.T, text string, at uint16, more string, n uint8) {
		cut, size := int(at)%(len(text)+1), 1+int(n)
		if fresh, diverged := joined(&seam{sent: text[:cut]}, pieces(text, size)...); diverged || fresh != text[cut:] {
			t.Fatalf("replay: %q, %v, want %q", fresh, diverged, text[cut:])
		}
		fresh, diverged := joined(&seam{sent: text[:cut]}, pieces(more, size)...)
		if diverged == strings.HasPrefix(more, text[:cut]) {
			t.Fatalf("replay by %q of %q: diverged %v", more, text[:cut], diverged)
		}
		if !diverged && fresh != more[cut:] {
			t.Fatalf("replay by %q of %q: %q", more, text[:cut], fresh)
		}
		whole, other := joined(&seam{sent: text, prefill: true}, more)
		fresh, diverged = joined(&seam{sent: text, prefill: true}, pieces(more, size)...)
		if !diverged && !strings.HasSuffix(more, fresh) {
			t.Fatalf("prefill: %q is not the end of %q", fresh, more)
		}
		if diverged != other || !diverged && fresh != whole {
			t.Fatalf("prefill: %q, %v in pieces, %q, %v at once", fresh, diverged, whole, other)
		}
	})
}
