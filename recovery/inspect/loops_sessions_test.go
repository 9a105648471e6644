package inspect_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/inspect/looptest"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// These choose the made sessions that are measured, and where the recorded ones lie.
var (
	loopSeed   = flag.Uint64("loopseed", 1, "first seed of the measured sessions")
	loopSeeds  = flag.Int("loopseeds", 1, "number of seeds")
	loopCases  = flag.Int("loopcases", 80, "sessions per seed")
	loopFolder = flag.String("loopfolder", "testdata/trajectories", "folder with recorded sessions")
)

func parse(t testing.TB, raw []byte) *transcript.Body {
	t.Helper()
	return recoverytest.Parse(t, raw, transcript.Chat)
}

// tally is what was found in made sessions.
type tally struct{ healthy, planted, alarms, missed, early, after, named int }

// watch asks for loops at each request of a session, and says what is wrong.
func (n *tally) watch(t *testing.T, c looptest.Case) (problem string) {
	found := -1
	for k, raw := range c.Bodies {
		loops := inspect.Loops(parse(t, raw))
		if len(loops) == 0 {
			continue
		}
		l := loops[0]
		switch {
		case c.Kind == "":
			n.alarms++
			problem += fmt.Sprintf("\n  body %d: false alarm %s of %d", k, l.Kind, l.Count)
		case k < c.From:
			n.early++
			problem += fmt.Sprintf("\n  body %d: early %s of %d", k, l.Kind, l.Count)
		case k > c.Until:
			n.after++
			problem += fmt.Sprintf("\n  body %d: %s of %d after the end", k, l.Kind, l.Count)
		case string(l.Kind) != c.Kind:
			n.named++
			problem += fmt.Sprintf("\n  body %d: named %s", k, l.Kind)
		case found < 0:
			found = k
		}
	}
	if c.Kind == "" {
		n.healthy++
	} else if n.planted++; found < 0 || found > c.By {
		n.missed++
		problem += "\n  missed"
	}
	return problem
}

// Made sessions: no alarm in healthy ones, none before the second occurrence of
// a loop or after its end, and each loop found by its third, by name. A counter
// is found by the fourth.
func TestMadeSessions(t *testing.T) {
	for name, at := range map[string]func(uint64, int) looptest.Case{"calls": looptest.At, "rounds": looptest.RoundsAt} {
		t.Run(name, func(t *testing.T) {
			var n tally
			for seed := *loopSeed; seed < *loopSeed+uint64(*loopSeeds); seed++ {
				for i := range *loopCases {
					c := at(seed, i)
					if problem := n.watch(t, c); problem != "" {
						t.Errorf("%s (%s; from %d by %d until %d):%s", c.Name, c.Why, c.From, c.By, c.Until, problem)
					}
				}
			}
			t.Logf("%d healthy: %d alarms; %d with a loop: %d missed, %d early, %d after the end, %d misnamed",
				n.healthy, n.alarms, n.planted, n.missed, n.early, n.after, n.named)
		})
	}
}

// Recorded sessions, request by request. The only repetition in them was found
// by reading: an agent that thinks the same and makes the same booking, which a
// rule of the business refuses.
func TestRecordedSessions(t *testing.T) {
	known := map[string][]string{"tau-airline-109.json": {"56 alternation 2", "58 alternation 2", "60 alternation 3", "62 alternation 3"}}
	files, err := filepath.Glob(filepath.Join(*loopFolder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no sessions: %v", err)
	}
	requests := 0
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var session struct{ Messages []json.RawMessage }
		if err := json.Unmarshal(raw, &session); err != nil {
			t.Fatal(err)
		}
		var found []string
		for n := 1; n <= len(session.Messages); n++ {
			var m struct{ Role string }
			if err := json.Unmarshal(session.Messages[n-1], &m); err != nil {
				t.Fatal(err)
			}
			if m.Role != "user" && m.Role != "tool" {
				continue
			}
			requests++
			body, err := json.Marshal(map[string]any{"model": "m", "messages": session.Messages[:n]})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range inspect.Loops(parse(t, body)) {
				found = append(found, fmt.Sprint(n, " ", l.Kind, " ", l.Count))
			}
		}
		if want := known[filepath.Base(name)]; !slices.Equal(found, want) {
			t.Errorf("%s: alarms %q, want %q", filepath.Base(name), found, want)
		}
	}
	t.Logf("%d requests of %d sessions", requests, len(files))
}

// A loop's description fits the history.
func TestLoopBounds(t *testing.T) {
	for i := range 160 {
		c := looptest.At(5, i)
		if i >= 80 {
			c = looptest.RoundsAt(5, i)
		}
		if c.Kind == "" {
			continue
		}
		b := parse(t, c.Bodies[c.By])
		loops := inspect.Loops(b)
		if len(loops) != 1 {
			t.Fatalf("%s: %d loops", c.Name, len(loops))
		}
		l, list := loops[0], b.Messages()
		if l.Count < 2 || l.From < 1 || l.To <= l.From || l.To >= len(list) || list[l.From].Role != transcript.RoleAssistant || l.Fingerprint == 0 ||
			(len(l.Tools) == 0) != (l.Kind == recovery.LoopMonologue) {
			t.Errorf("%s: %+v in a history of %d", c.Name, l, len(list))
		}
		next := inspect.Loops(parse(t, c.Bodies[c.Until]))
		if len(next) != 1 || next[0].Fingerprint != l.Fingerprint || next[0].Count < l.Count {
			t.Errorf("%s: the same loop became %+v, was %+v", c.Name, next, l)
		}
	}
}
