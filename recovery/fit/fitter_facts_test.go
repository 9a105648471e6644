package fit_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/fit/probetest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// TestKept counts what survives at a half and at a quarter of the size of every recorded
// session: touched files, and of five sessions forty written-down facts each. It compares two
// simple methods: cutting every result to the same length, and dropping the oldest
// messages. The half is 0.49, since a budget as large as the session needs no fitting.
func TestKept(t *testing.T) {
	if fit.RaceEnabled {
		t.Skip("nothing in it is parallel")
	}
	m := count.NewMeter()
	for _, size := range []struct {
		share        float64
		facts, paths float64 // the least, as shares
	}{{0.49, 0.96, 0.97}, {0.25, 0.84, 0.97}} {
		var paths, allPaths, facts, allFacts int
		for _, c := range recorded(t) {
			list := factsOf(t, c.name)
			b := c.body(t, len(c.Messages))
			total := m.Measure(b, simModel).Total
			cfg := fit.Defaults()
			out, r, ok := fit.Compress(cfg, b, m, simModel, int(float64(total)*size.share/cfg.TargetShare), 0)
			if !ok {
				t.Logf("%s at %.2f: not fitted", c.name, size.share)
				if list != nil {
					t.Errorf("%s is not fitted to %.2f", c.name, size.share)
				}
				continue
			}
			text := probetest.Text(out.Raw())
			touched := probetest.Touched(b.Raw())
			kept := countIn(text, touched)
			paths, allPaths = paths+kept, allPaths+len(touched)
			if list == nil {
				t.Logf("%s at %.2f: %d of %d paths in %d of %d tokens, %v", c.name, size.share, kept, len(touched), r.TokensAfter, total, r.Tiers)
				continue
			}
			verify(t, b, out)
			if n := countIn(probetest.Text(b.Raw()), list); n != len(list) {
				t.Fatalf("%s itself has %d of its facts", c.name, n)
			}
			n := countIn(text, list)
			facts, allFacts = facts+n, allFacts+len(list)
			even := cutEvenly(t, m, b, int(float64(total)*size.share))
			dropped := probetest.DropOldest(b.Raw(), int(float64(len(b.Raw()))*size.share))
			t.Logf("%s at %.2f: %d of %d facts, %d of %d paths in %d of %d tokens, %v; every result cut to one length %d, the oldest dropped %d", c.name,
				size.share, n, len(list), kept, len(touched), r.TokensAfter, total, r.Tiers, countIn(probetest.Text(even), list), countIn(probetest.Text(dropped), list))
			if r.TokensAfter > int(1.05*float64(total)*size.share) {
				t.Errorf("%s at %.2f: %d tokens", c.name, size.share, r.TokensAfter)
			}
		}
		t.Logf("at %.2f: %d of %d facts, %d of %d paths", size.share, facts, allFacts, paths, allPaths)
		if allFacts < 200 || float64(facts) < size.facts*float64(allFacts) || allPaths < 90 || float64(paths) < size.paths*float64(allPaths) {
			t.Errorf("at %.2f: only %d of %d facts and %d of %d paths", size.share, facts, allFacts, paths, allPaths)
		}
	}
}

// countIn returns how many of the strings occur in a text.
func countIn(text string, list []string) (n int) {
	for _, s := range list {
		if strings.Contains(text, s) {
			n++
		}
	}
	return n
}

// factsOf returns the facts written down for a session, nil if there are none.
func factsOf(t *testing.T, session string) (list []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "facts", session+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var facts []struct{ Kind, Text string }
	if err != nil || json.Unmarshal(raw, &facts) != nil || len(facts) != 40 {
		t.Fatal(session, err, len(facts))
	}
	for _, f := range facts {
		list = append(list, f.Text)
	}
	return list
}

// cutEvenly cuts every result to the same length, half of it from each end.
func cutEvenly(t *testing.T, m *count.Meter, b *transcript.Body, tokens int) []byte {
	var out *transcript.Body
	for length := 64 << 10; length > 16; length = length * 9 / 10 {
		e := b.Edit()
		for i, msg := range b.Messages() {
			if text := msg.Text(); msg.Role == transcript.RoleTool && len(text) > length {
				e.SetText(i, strings.ToValidUTF8(text[:length/2]+"…"+text[len(text)-length/2:], ""), false)
			}
		}
		var err error
		if out, err = e.Body(); err != nil {
			t.Fatal(err)
		}
		if m.Measure(out, simModel).Total <= tokens {
			break
		}
	}
	return out.Raw()
}
