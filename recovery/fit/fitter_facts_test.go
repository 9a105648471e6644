package fit_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// TestKept counts what survives at a half and at a quarter of the size of every recorded
// session: touched files, and of five sessions forty written-down facts each. The half is 0.49, since a budget as large as the session needs no fitting.
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
			text := textOf(out.Raw())
			opened := touched(b)
			kept := countIn(text, opened)
			paths, allPaths = paths+kept, allPaths+len(opened)
			if list == nil {
				t.Logf("%s at %.2f: %d of %d paths in %d of %d tokens, %v", c.name, size.share, kept, len(opened), r.TokensAfter, total, r.Tiers)
				continue
			}
			verify(t, b, out)
			if n := countIn(textOf(b.Raw()), list); n != len(list) {
				t.Fatalf("%s itself has %d of its facts", c.name, n)
			}
			n := countIn(text, list)
			facts, allFacts = facts+n, allFacts+len(list)
			t.Logf("%s at %.2f: %d of %d facts, %d of %d paths in %d of %d tokens, %v", c.name, size.share, n, len(list), kept, len(opened), r.TokensAfter, total, r.Tiers)
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

// textOf returns all strings of a request body, decoded. Strings that hold JSON themselves, as arguments of
// calls do, are included in both forms.
func textOf(body []byte) string {
	var b strings.Builder
	var add func(v gjson.Result)
	add = func(v gjson.Result) {
		if v.IsObject() || v.IsArray() {
			v.ForEach(func(_, v gjson.Result) bool { add(v); return true })
			return
		}
		b.WriteString(v.String() + "\n")
		if s := strings.TrimSpace(v.String()); v.Type == gjson.String && (strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[")) && gjson.Valid(s) {
			add(gjson.Parse(s))
		}
	}
	add(gjson.ParseBytes(body))
	return b.String()
}

// opened matches a file in the arguments of a call, and in a command of a text protocol.
var opened = regexp.MustCompile(`\\"(?:path|file_path|file|filename)\\":\s*\\"([^"\\]+\.\w{1,5})\\"|(?:\\n|")(?:open|create|cat) ([\w./-]+\.\w{1,5})`)

// touched returns the files that the agent opened or wrote.
func touched(b *transcript.Body) (list []string) {
	for _, m := range b.Messages() {
		if m.Role != transcript.RoleAssistant {
			continue
		}
		for _, found := range opened.FindAllSubmatch(m.Raw(), -1) {
			if f := string(found[1]) + string(found[2]); !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	return list
}
