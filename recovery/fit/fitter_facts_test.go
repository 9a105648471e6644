package fit_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/probetest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// fact is something that a model may need of a session later.
type fact struct{ Kind, Text string }

// TestFacts counts how many of forty facts of a session survive at half and at a
// quarter of its size, beside two simple ways to get there: cutting every result
// to the same length, and dropping the oldest messages.
func TestFacts(t *testing.T) {
	if fit.RaceEnabled {
		t.Skip("nothing in it is parallel")
	}
	files, err := filepath.Glob(filepath.Join("testdata", "facts", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no facts", err)
	}
	m := fit.NewMeter(fit.Offline(), fit.MeterConfig{})
	for _, file := range files {
		var facts []fact
		raw, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(raw, &facts) != nil || len(facts) != 40 {
			t.Fatal(file, err, len(facts))
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		c := made(t, name, gunzip(t, filepath.Join("testdata", "usage", name+".json.gz")))
		b := c.body(t, len(c.Messages))
		total := m.Measure(b, simModel).Total
		kept := func(body []byte, log string) (n int) {
			text := probetest.Text(body)
			for _, f := range facts {
				if strings.Contains(text, f.Text) {
					n++
				} else if log != "" {
					t.Logf("%s lost: %s %q", log, f.Kind, f.Text)
				}
			}
			return n
		}
		if n := kept(b.Raw(), "whole"); n != 40 {
			t.Fatalf("%s itself has %d of its facts", name, n)
		}
		for _, c := range []struct {
			share float64
			least int
		}{{0.5, 34}, {0.25, 31}} {
			cfg := fit.Defaults()
			limit := int(float64(total) * c.share / cfg.TargetShare)
			out, r, ok := fit.Compress(cfg, b, m, simModel, limit, 0)
			if !ok {
				t.Fatalf("%s is not fitted to %.2f", name, c.share)
			}
			verify(t, b, out)
			ours := kept(out.Raw(), "")
			even := evenly(t, m, b, int(float64(total)*c.share))
			dropped := probetest.DropOldest(b.Raw(), int(float64(len(b.Raw()))*c.share))
			t.Logf("%s at %.2f: %d of 40 in %d of %d tokens; every result cut to one length %d, the oldest dropped %d", name, c.share,
				ours, r.TokensAfter, total, kept(even, ""), kept(dropped, ""))
			if ours < c.least || r.TokensAfter > int(1.09*float64(total)*c.share) {
				t.Errorf("%s at %.2f: %d facts in %d tokens", name, c.share, ours, r.TokensAfter)
			}
		}
	}
}

// evenly cuts every result to the same length, half of it from each end.
func evenly(t *testing.T, m *fit.Meter, b *transcript.Body, tokens int) []byte {
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
