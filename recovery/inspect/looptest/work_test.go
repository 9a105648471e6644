package looptest

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"testing"
)

// Each label has sessions of all its situations and all agents, the bytes of a
// seed do not change, and every body goes on from the one before.
func TestWork(t *testing.T) {
	for label, list := range map[Label][]situation{Progress: progressing, Repeats: repeating, Waits: waiting} {
		seen := map[string]bool{}
		for i := range len(list) * len(agents) {
			w := WorkAt(label, 3, i)
			seen[w.Name[:len(w.Name)-len(regexp.MustCompile(`/\d+-\d+$`).FindString(w.Name))]] = true
			if i%7 > 0 {
				continue
			}
			if again := WorkAt(label, 3, i); again.Name != w.Name || !slices.EqualFunc(again.Bodies, w.Bodies, bytes.Equal) {
				t.Fatalf("%s: the same seed gave other bytes", w.Name)
			}
			if w.Label != label || (label == Repeats) != (len(w.Seen) > 4) {
				t.Errorf("%s: label %s, seen %v", w.Name, w.Label, w.Seen)
			}
			last, _ := read1(t, w.Bodies[len(w.Bodies)-1])
			for k, body := range w.Bodies {
				part, messages := read1(t, body)
				if len(part) > len(last) || !slices.EqualFunc(part, last[:len(part)], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) || messages[len(messages)-1].Role == "assistant" {
					t.Fatalf("%s: body %d does not go on from the one before", w.Name, k)
				}
			}
		}
		if len(seen) != len(list)*len(agents) {
			t.Errorf("%s: %d of %d pairs of a situation and an agent", label, len(seen), len(list)*len(agents))
		}
	}
}

// idle is what says nothing in the sessions of WorkAt: the agents' wrappers, the
// models' own words, counters and times.
var idle = regexp.MustCompile(`"(?:description|security_risk|timeout_ms|yield_time_ms)": ?(?:"[^"]*"|\d+)|0x\w+|[0-9a-f]{4,}\b|\d+`)

// The labels say what is in the bodies, found here anew from the bytes: outcomes
// that follow each other are the same but for what says nothing, or are not.
func TestLabelsOfWork(t *testing.T) {
	for i := range 400 {
		w := WorkAt(Repeats, 5, i)
		done, _ := outcomes(t, w.Bodies[len(w.Bodies)-1])
		done = done[len(done)-len(w.Seen):]
		for _, o := range done[1:] {
			if a, b := idle.ReplaceAllString(done[0].result, ""), idle.ReplaceAllString(o.result, ""); a != b {
				t.Errorf("%s: %q is not %q", w.Name, b, a)
			}
		}
		w = WorkAt(Progress, 5, i)
		done, _ = outcomes(t, w.Bodies[len(w.Bodies)-1])
		for k := 1; k < len(done); k++ {
			if done[k].stable() == done[k-1].stable() && done[k] == done[k-1] {
				t.Errorf("%s: %v twice", w.Name, done[k])
			}
		}
	}
}
