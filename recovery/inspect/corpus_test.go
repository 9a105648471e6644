package inspect

import (
	"bufio"
	"crypto/md5"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// wrongRows prints the rows that are not as labelled.
var wrongRows = flag.String("wrong", "", "print the wrong rows of this round")

// row is one labelled result.
type row struct {
	Round     string
	ID        string
	Tool      string
	Content   string
	Label     recovery.Category
	Failed    bool
	Ambiguous bool
	Cmd       string
	Args      string // the call's arguments, where it has no command
}

// rounds returns the labelled results by their round.
func rounds(t testing.TB) map[string][]row {
	t.Helper()
	f, err := os.Open("testdata/results.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string][]row{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		out[r.Round] = append(out[r.Round], r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// toolResult is what the measurement hands in: never the command.
func toolResult(r row) recovery.ToolResult {
	return recovery.ToolResult{Tool: r.Tool, Content: r.Content}
}

// half splits the rows for good: 0 was worked with, 1 only measured at first.
func half(id string) byte { return md5.Sum([]byte(id))[0] % 2 }

// score is how well results are judged. Ambiguous rows count for the numbers of
// categories only where they are as labelled.
type score struct {
	rows, sent, right, worth, recalled int
	flagged                            int // successes that were called failures
	sentOnSuccess                      int
	failedRight                        int
	tp, fp, fn                         map[recovery.Category]int
}

func measure(t testing.TB, list []row, show bool) score {
	s := score{tp: map[recovery.Category]int{}, fp: map[recovery.Category]int{}, fn: map[recovery.Category]int{}}
	for _, r := range list {
		f := Judge(toolResult(r))
		s.rows++
		sent := f.Failed && f.Category != recovery.CategoryNone && f.Confidence >= Threshold
		ok := f.Category == r.Label
		if r.Ambiguous && (!ok || f.Failed != r.Failed) {
			s.rows--
			if show {
				t.Logf("AMB %s %s: want %s, got %s %v %.2f %s %q", r.ID, r.Tool, r.Label, f.Category, f.Failed, f.Confidence, f.Rule, f.Line)
			}
			continue
		}
		if f.Failed == r.Failed {
			s.failedRight++
		}
		if !r.Failed && f.Failed {
			s.flagged++
		}
		if sent {
			s.sent++
			if ok {
				s.right++
			}
			if !r.Failed {
				s.sentOnSuccess++
			}
		}
		if r.Label != recovery.CategoryNone {
			s.worth++
			if sent && ok {
				s.recalled++
			}
		}
		if ok {
			s.tp[r.Label]++
		} else {
			s.fp[f.Category]++
			s.fn[r.Label]++
		}
		if show && (!ok || f.Failed != r.Failed || r.Label != recovery.CategoryNone && !sent) {
			content := r.Content
			if len(content) > 700 {
				content = content[:300] + " …… " + content[len(content)-400:]
			}
			t.Logf("### %s %s cmd=%q: want %s %v, got %s %v %.2f %s %q\n%s", r.ID, r.Tool, r.Cmd, r.Label, r.Failed, f.Category, f.Failed, f.Confidence, f.Rule, f.Line, content)
		}
	}
	return s
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 1
	}
	return float64(a) / float64(b)
}

func (s score) precision() float64 { return ratio(s.right, s.sent) }
func (s score) recall() float64    { return ratio(s.recalled, s.worth) }

// macroF1 is the mean over those of the ten categories that occur.
func (s score) macroF1() float64 {
	sum, n := 0.0, 0
	for _, c := range recovery.Categories() {
		if s.tp[c]+s.fn[c]+s.fp[c] == 0 {
			continue
		}
		n++
		sum += ratio(2*s.tp[c], 2*s.tp[c]+s.fp[c]+s.fn[c])
	}
	return sum / float64(max(n, 1))
}

func (s score) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows; notes: precision %.3f (%d of %d), recall %.3f (%d of %d); macro-F1 %.3f; failed or not right %.3f; successes flagged %d, with a note %d\n",
		s.rows, s.precision(), s.right, s.sent, s.recall(), s.recalled, s.worth, s.macroF1(), ratio(s.failedRight, s.rows), s.flagged, s.sentOnSuccess)
	for _, c := range append(recovery.Categories(), recovery.CategoryNone) {
		fmt.Fprintf(&b, "  %-18s right %3d, wrongly said %2d, missed %2d\n", c, s.tp[c], s.fp[c], s.fn[c])
	}
	return b.String()
}

// The floors are below what was measured last, and above what the product promises.
func (s score) check(t *testing.T, recall float64) {
	t.Helper()
	if s.precision() < 0.99 || s.recall() < recall || s.macroF1() < recall+0.04 || s.flagged > 0 || s.rows == 0 {
		t.Errorf("below the floor: %v", s)
	}
}

func TestCorpus(t *testing.T) {
	var halves [2][]row
	for _, r := range rounds(t)["first"] {
		halves[half(r.ID)] = append(halves[half(r.ID)], r)
	}
	for i, list := range halves {
		s := measure(t, list, *wrongRows == fmt.Sprint("corpus", i))
		t.Logf("half %d: %v", i, s)
		s.check(t, 0.93)
	}
}

// TestBlind checks every other round but those of TestWordsAlone: most had been labelled before the rules had seen
// them. testdata/README.md has the numbers of the first run.
func TestBlind(t *testing.T) {
	for name, list := range rounds(t) {
		if name == "first" || slices.ContainsFunc(wordsAlone, func(w wordsRound) bool { return w.round == name }) {
			continue
		}
		s := measure(t, list, *wrongRows == name)
		t.Logf("%s: %v", name, s)
		floor := 0.93
		if name == "round19" || name == "round20" { // nothing was mended for them word for word
			floor = 0.88
		}
		s.check(t, floor)
	}
}
