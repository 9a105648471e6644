package stream

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
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

func toJoin(sent string, way recovery.Way) *seam {
	return newSeam(&recovery.Resume{Sent: sent, Way: way})
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
	const story = "Once there was a fox. It had a dog. The dog was lazy, and the fox was quick"
	cases := []struct {
		name     string
		sent     string
		way      recovery.Way
		answer   string
		fresh    string
		diverged bool
	}{
		{name: "replay", sent: sent, way: recovery.WayReplay, answer: sent + " the dog", fresh: " the dog"},
		{name: "replay that is nothing more", sent: sent, way: recovery.WayReplay, answer: sent},
		{name: "replay that is another", sent: sent, way: recovery.WayReplay, answer: "A fast red fox", diverged: true},
		{name: "replay that is another late", sent: sent, way: recovery.WayReplay, answer: "The quick brown fox jumps onto the dog", diverged: true},
		{name: "replay that ends early", sent: sent, way: recovery.WayReplay, answer: "The quick brown", diverged: true},
		{name: "replay of nothing", sent: sent, way: recovery.WayReplay, answer: "", diverged: true},
		{name: "replay with other spaces", sent: sent, way: recovery.WayReplay, answer: " " + sent, diverged: true},
		{name: "prefill", sent: sent, way: recovery.WayPrefill, answer: " the dog", fresh: " the dog"},
		{name: "prefill with nothing more", sent: sent, way: recovery.WayPrefill, answer: ""},
		{name: "prefill of one byte", sent: sent, way: recovery.WayPrefill, answer: ".", fresh: "."},
		{name: "prefill with an overlap", sent: sent, way: recovery.WayPrefill, answer: "fox jumps over the dog", fresh: " the dog"},
		{name: "overlap as long as the minimum", sent: sent, way: recovery.WayPrefill, answer: "x jumps over the dog", fresh: " the dog"},
		{name: "overlap shorter than the minimum", sent: sent, way: recovery.WayPrefill, answer: " jumps over the dog", fresh: " jumps over the dog"},
		{name: "a word said twice", sent: "π≈3.14 Ελλάδα ", way: recovery.WayPrefill, answer: "Ελλάδα turn", fresh: "Ελλάδα turn"},
		{name: "an overlap of long characters", sent: "Αυτή είναι η Ελλάδα ", way: recovery.WayPrefill, answer: "η Ελλάδα είναι η Ελλάδα", fresh: "η Ελλάδα είναι η Ελλάδα"},
		{name: "an overlap of as many long ones", sent: "Αυτή είναι η Ελλάδα ", way: recovery.WayPrefill, answer: "είναι η Ελλάδα και", fresh: "και"},
		{name: "overlap and nothing more", sent: sent, way: recovery.WayPrefill, answer: "fox jumps over"},
		{name: "short overlap and nothing more", sent: sent, way: recovery.WayPrefill, answer: "over", fresh: "over"},
		{name: "restart", sent: sent, way: recovery.WayPrefill, answer: sent + " the dog", fresh: " the dog"},
		{name: "restart that is nothing more", sent: sent, way: recovery.WayPrefill, answer: sent},
		{name: "restart that ends early", sent: sent, way: recovery.WayPrefill, answer: "The quick brown", diverged: true},
		{name: "restart that becomes another", sent: sent, way: recovery.WayPrefill, answer: "The quick brown fox sleeps all day", diverged: true},
		{name: "begins like the answer by chance", sent: sent, way: recovery.WayPrefill, answer: "The dog", fresh: "The dog"},
		{name: "restart of a short text", sent: "Hi", way: recovery.WayPrefill, answer: "Hi there", fresh: " there"},
		{name: "repeated words", sent: "It says: ha ha ha", way: recovery.WayPrefill, answer: " ha ha!", fresh: " ha ha!"},
		{name: "repeated words of a few bytes", sent: "Well, ha ha ", way: recovery.WayPrefill, answer: "ha ha", fresh: "ha ha"},
		{name: "repeated line", sent: "x\n- a\n- b\n", way: recovery.WayPrefill, answer: "- b\n- c\n", fresh: "- b\n- c\n"},
		{name: "not ASCII", sent: "Größe und Länge der Straße", way: recovery.WayPrefill, answer: "e der Straße sind", fresh: " sind"},
		{name: "longest overlap", sent: "start abcabcabcabcabc", way: recovery.WayPrefill, answer: "abcabcabcabcabc end", fresh: " end"},
		{name: "an indentation goes on", sent: "def f():\n" + strings.Repeat(" ", 14), way: recovery.WayPrefill, answer: strings.Repeat(" ", 14) + "x", fresh: strings.Repeat(" ", 14) + "x"},
		{name: "a table's rule goes on", sent: "| a | b | c |\n|-------------", way: recovery.WayPrefill, answer: "------------|---|", fresh: "------------|---|"},
		{name: "asked, the last words", sent: sent, way: recovery.WayAsk, answer: "fox jumps over the dog", fresh: " the dog"},
		{name: "asked, blanks before them", sent: sent, way: recovery.WayAsk, answer: "\n\n fox jumps over the dog", fresh: " the dog"},
		{name: "asked, the last sentence", sent: story, way: recovery.WayAsk, answer: "The dog was lazy, and the fox was quick.", fresh: "."},
		{name: "asked, the last words and no more", sent: story, way: recovery.WayAsk, answer: "fox was quick"},
		{name: "asked, from the beginning", sent: " " + story, way: recovery.WayAsk, answer: story + ".", fresh: "."},
		{name: "asked, begins anew", sent: story, way: recovery.WayAsk, answer: "Once there was a wolf.", diverged: true},
		{name: "asked, begins anew with other words", sent: story, way: recovery.WayAsk, answer: "There once was a quick fox.", diverged: true},
		{name: "asked, apologises", sent: story, way: recovery.WayAsk, answer: "I apologise. The fox was quick and brown.", diverged: true},
		{name: "asked, says what it does", sent: story, way: recovery.WayAsk, answer: "Continuing: the fox was quick and brown.", diverged: true},
		{name: "asked, goes on without the words", sent: story, way: recovery.WayAsk, answer: " and brown.", diverged: true},
		{name: "asked, too few words", sent: story, way: recovery.WayAsk, answer: "was quick and brown", diverged: true},
		{name: "asked, other words at the end", sent: story, way: recovery.WayAsk, answer: "and the fox was quicker"[:20] + "red", diverged: true},
		{name: "asked, nothing", sent: story, way: recovery.WayAsk, answer: "", diverged: true},
		{name: "asked, in the middle of a word", sent: story[:len(story)-3], way: recovery.WayAsk, answer: "and the fox was quick.", fresh: "ick."},
		{name: "asked, a short answer", sent: "Hi th", way: recovery.WayAsk, answer: "Hi there", fresh: "ere"},
		{name: "asked, table", sent: "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 ", way: recovery.WayAsk, answer: "| 1 | 2 |\n| 3 | 4 |", fresh: "| 4 |"},
		{name: "asked, code", sent: "func f() {\n\tif x {\n\t\treturn", way: recovery.WayAsk, answer: "if x {\n\t\treturn nil\n\t}", fresh: " nil\n\t}"},
		{name: "asked, code with other blanks", sent: "func f() {\n\tif x {\n\t\treturn", way: recovery.WayAsk, answer: "if x {\n    return nil", diverged: true},
		{name: "asked, not Latin", sent: "敏捷的棕色狐狸跳过了", way: recovery.WayAsk, answer: "狐狸跳过了懒狗。", fresh: "懒狗。"},
		{name: "asked, not Latin, anew", sent: "敏捷的棕色狐狸跳过了", way: recovery.WayAsk, answer: "敏捷的红色狐狸", diverged: true},
		{name: "overlap of the largest size", sent: strings.Repeat("a", 50) + numbers(0, maxTail), way: recovery.WayPrefill, answer: numbers(0, maxTail) + "end", fresh: "end"},
	}
	for _, c := range cases {
		for _, n := range []int{1, 2, 3, 5, 7, 13, 1000} {
			t.Run(fmt.Sprintf("%s/%d", c.name, n), func(t *testing.T) {
				fresh, diverged := joined(toJoin(c.sent, c.way), pieces(c.answer, n)...)
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

// TestSeamLeast: where a tail stands in the text more than once, so many bytes of
// it have to be repeated as stand there only once.
func TestSeamLeast(t *testing.T) {
	const sent = "The answer is 5. The answer is"
	for answer, want := range map[string]string{"The answer is 6.": "-", "5. The answer is 6.": " 6.", " 5. The answer is 6.": " 6."} {
		fresh, diverged := joined(newSeam(&recovery.Resume{Sent: sent, Way: recovery.WayAsk, Least: len("5. The answer is")}), pieces(answer, 3)...)
		if diverged != (want == "-") || !diverged && fresh != want {
			t.Errorf("%q: %q, %v", answer, fresh, diverged)
		}
	}
}

// TestSeamWork: a continuation that repeats a long text piece by piece is
// compared as it comes. Nothing of it is kept, so no piece is looked at twice.
func TestSeamWork(t *testing.T) {
	text := numbers(0, 800<<10)
	for _, way := range []recovery.Way{recovery.WayReplay, recovery.WayPrefill, recovery.WayAsk} {
		s, list := toJoin(text, way), pieces(text, 100)
		if n := testing.AllocsPerRun(1, func() {
			s.same, s.done = 0, false
			for _, p := range list {
				s.feed(p)
			}
		}); n != 0 || !s.done || len(s.got) != 0 {
			t.Errorf("%s: %v allocations, %d bytes kept", way, n, len(s.got))
		}
		s = toJoin(text, way)
		for _, p := range pieces(text[:len(text)-1]+"other", 100) {
			s.feed(p)
		}
		if way != recovery.WayReplay && s.same >= 0 {
			t.Errorf("%s: it differs, and is taken for a repetition", way)
		}
	}
	for _, way := range []recovery.Way{recovery.WayPrefill, recovery.WayAsk} { // a tail that stands there many times
		s := toJoin(strings.Repeat("ab", 400<<10)+"c", way)
		for i := 0; i < 1<<20 && !s.done; i += 10 {
			if s.feed("babababababa"[i%2 : 10+i%2]); len(s.got) > maxTail+10 {
				t.Fatalf("%s: %d bytes kept", way, len(s.got))
			}
		}
	}
}

// TestSeamConsistent: whatever a continuation says, and however it comes, what
// the client has then is what it had and an end of what came, of which all that
// is left out is a repetition of what it had.
func TestSeamConsistent(t *testing.T) {
	words := []string{"the ", "fox ", "jumps ", "ä", "日本", "\n", "| ", "ha ", "```", "5. "}
	for seed := range uint64(20000) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		say := func(n int) (text string) {
			for range rnd.IntN(n) {
				text += words[rnd.IntN(len(words))]
			}
			return text
		}
		sent := "x" + say(40)
		var more string
		switch from := rnd.IntN(len(sent)); rnd.IntN(4) {
		case 0:
			more = say(40)
		case 1:
			more = sent[from:] + say(9) // a tail
		case 2:
			more = sent[:from] + say(9) // from the beginning
		case 3:
			more = sent + say(9)
		}
		for _, way := range []recovery.Way{recovery.WayReplay, recovery.WayPrefill, recovery.WayAsk} {
			r := &recovery.Resume{Sent: sent, Way: way, Least: rnd.IntN(30)}
			fresh, diverged := joined(newSeam(r), cutAtRandom(rnd, more)...)
			whole, other := joined(newSeam(r), more)
			if diverged != other || !diverged && fresh != whole {
				t.Fatalf("seed %d, %s: %q after %q: %q, %v in pieces, %q, %v at once", seed, way, more, sent, fresh, diverged, whole, other)
			}
			again := strings.TrimSuffix(more, fresh)
			switch {
			case diverged:
			case !strings.HasSuffix(more, fresh):
				t.Fatalf("seed %d, %s: %q is no end of %q", seed, way, fresh, more)
			case way == recovery.WayPrefill && again == "":
			case way == recovery.WayAsk && again != "" && strings.HasSuffix(sent, strings.TrimLeft(again, blanks)):
			case way == recovery.WayReplay && again != sent, !strings.HasSuffix(sent, again):
				t.Fatalf("seed %d, %s: %q is left out, which is no repetition of %q", seed, way, again, sent)
			}
		}
	}
}

// TestSeamSoon: text is passed on as soon as it is known to be new.
func TestSeamSoon(t *testing.T) {
	s := toJoin("The quick brown fox jumps over", recovery.WayPrefill)
	if fresh, decided, _ := s.feed(" the"); fresh != " the" || !decided {
		t.Errorf("nothing that was sent begins like it: %q, %v", fresh, decided)
	}
	if fresh, decided, _ := s.feed(" The quick brown"); fresh != " The quick brown" || !decided {
		t.Errorf("after the seam all is new: %q, %v", fresh, decided)
	}
	s = toJoin("abc", recovery.WayReplay)
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
		fresh, diverged := joined(toJoin(text[:cut], recovery.WayReplay), cutAtRandom(rnd, text)...)
		if diverged || fresh != text[cut:] {
			t.Fatalf("seed %d: replay of %q cut at %d: %q, %v", seed, text, cut, fresh, diverged)
		}

		text = numbers(rnd.IntN(1000), 40+rnd.IntN(2000))
		cut = 20 + rnd.IntN(len(text)-20)
		for _, again := range []int{0, minTail + rnd.IntN(cut-minTail), cut} {
			if again > maxTail && again < cut {
				continue
			}
			fresh, diverged = joined(toJoin(text[:cut], recovery.WayPrefill), cutAtRandom(rnd, text[cut-again:])...)
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
		if fresh, diverged := joined(toJoin(text[:cut], recovery.WayReplay), pieces(text, size)...); diverged || fresh != text[cut:] {
			t.Fatalf("replay: %q, %v, want %q", fresh, diverged, text[cut:])
		}
		fresh, diverged := joined(toJoin(text[:cut], recovery.WayReplay), pieces(more, size)...)
		if diverged == strings.HasPrefix(more, text[:cut]) {
			t.Fatalf("replay by %q of %q: diverged %v", more, text[:cut], diverged)
		}
		if !diverged && fresh != more[cut:] {
			t.Fatalf("replay by %q of %q: %q", more, text[:cut], fresh)
		}
		whole, other := joined(toJoin(text, recovery.WayPrefill), more)
		fresh, diverged = joined(toJoin(text, recovery.WayPrefill), pieces(more, size)...)
		if !diverged && !strings.HasSuffix(more, fresh) {
			t.Fatalf("prefill: %q is not the end of %q", fresh, more)
		}
		if diverged != other || !diverged && fresh != whole {
			t.Fatalf("prefill: %q, %v in pieces, %q, %v at once", fresh, diverged, whole, other)
		}
	})
}
