package repair

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// plainly is the watch without its shortcuts: every byte goes through the ring,
// and every search compares everything. It returns where the answer runs away, or -1.
func plainly(cfg RepetitionConfig, p recovery.Part, text []byte) int {
	w := newWatch(cfg)
	need, period, run, since := 0, 0, 0, 0
	for n, c := range text {
		if period > 0 {
			if text[n-period] == c {
				run++
			} else {
				period, run = 0, 0
			}
		}
		if since++; since >= stride && period == 0 {
			since = 0
			period, run = longest(text[:n+1], cfg.Unit)
			if run < 256 {
				period, run = 0, 0
			} else {
				need = w.need(text[n+1-period:n+1:n+1], p)
			}
		}
		if period > 0 && run >= need {
			return n
		}
	}
	return -1
}

// longest is the period that covers most of the end of a text, of the shortest
// unit, and what it covers of the last 8192 bytes.
func longest(text []byte, unit int) (period, cover int) {
	text = text[max(0, len(text)-8192):]
	for i := 1; i <= min(unit, len(text)-1); i++ {
		n := 0
		for n+i < len(text) && text[len(text)-1-n] == text[len(text)-1-n-i] {
			n++
		}
		if n >= i && n+i > cover {
			period, cover = i, n+i
		}
	}
	return period, cover
}

// TestWatchPlainly: the shortcuts change nothing, however the answer comes in.
func TestWatchPlainly(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	units := []string{"a", "\\n", " ", "=", "ab", "{\"x\": 1}, ", "I will try again. ", strings.Repeat("0", 130), prose(48), prose(127), prose(129), prose(300), prose(1999), prose(2001)}
	caught, passed := 0, 0
	for i := range 150 {
		var b strings.Builder
		for size := 500 + r.IntN(30_000); b.Len() < size; {
			switch unit := units[r.IntN(len(units))]; r.IntN(6) {
			case 0:
				fmt.Fprintf(&b, "Something else, number %x. ", r.Uint64())
			case 1:
				b.WriteString(prose(1 + r.IntN(3000))[r.IntN(2):])
			default:
				b.WriteString(strings.Repeat(unit, 1+r.IntN(1+16_000/len(unit))))
			}
		}
		text, cfg, part := []byte(b.String()), Defaults().Repetition, recovery.Part(r.IntN(3))
		if i%5 == 0 {
			cfg.Unit, cfg.Bytes, cfg.Repetitions = 1+r.IntN(4000), 512+r.IntN(8192), 10+r.IntN(40)
		}
		if cfg.Unit > 3000 { // the ring would be another
			cfg.Unit = 3000
		}
		want := plainly(cfg, part, text)
		if want < 0 {
			passed++
		} else {
			caught++
		}
		for _, piece := range []int{1, 7, 900, len(text)} {
			w, got := newWatch(cfg), -1
			for at := 0; at < len(text) && got < 0; at += piece {
				if w.Feed(part, text[at:min(at+piece, len(text))]) {
					got = at
				}
			}
			if want < 0 && got >= 0 || want >= 0 && (got < 0 || got/piece != want/piece) {
				t.Fatalf("case %d, by %d: at %d, plainly at %d", i, piece, got, want)
			}
		}
	}
	if caught < 20 || passed < 20 {
		t.Errorf("%d caught, %d passed", caught, passed)
	}
}
