package annotate_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
)

// situation is a failure with what an engineer would say; see testdata/README.md.
type situation struct {
	ID       string   `json:"id"`
	Kits     []string `json:"kits"`
	User     string   `json:"user"`
	History  [][]any  `json:"history"`
	Turn     [][]any  `json:"turn"`
	Category string   `json:"category"`
	Given    bool     `json:"given"`
	Seen     int      `json:"seen"`
	Text     bool     `json:"text"`
	Says     string   `json:"says"`
	Must     []string `json:"must"`
	Not      []string `json:"not"`
	Max      int      `json:"max"`
}

// situations reads a round, and the tools.
func situations(t testing.TB, name string) (list []situation, kits map[string][]object) {
	t.Helper()
	raw, err := os.ReadFile("testdata/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &kits); err != nil {
		t.Fatal(err)
	}
	if raw, err = os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		var s situation
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		list = append(list, s)
	}
	return list, kits
}

// exchange is what the stages before this one know of a situation; found is
// whether they know the kind of the failure.
func (s situation) exchange(t testing.TB, kits map[string][]object) (x *recovery.Exchange, found bool) {
	var tools []object
	for _, k := range s.Kits {
		if kits[k] == nil {
			t.Fatalf("%s: no kit %q", s.ID, k)
		}
		tools = append(tools, kits[k]...)
	}
	c := agent(tools...)
	c.messages[1]["content"] = s.User
	turns := make([][][]any, 0, len(s.History)+1)
	for _, h := range s.History {
		turns = append(turns, [][]any{h})
	}
	for _, calls := range append(turns, s.Turn) {
		if !s.Text {
			c.turn(calls)
			continue
		}
		for _, call := range calls {
			c.says("```\n" + call[1].(object)["command"].(string) + "\n```").user(call[2].(string))
		}
	}
	x = c.exchange(t)
	x.Turn.Seen = max(s.Seen, 1)
	kinds := strings.Split(s.Category, "|")
	for _, r := range x.Results {
		if slices.Contains(kinds, chain(r)) && (r.Failed || s.Category == "none") {
			found = true
		}
	}
	if found || kinds[0] == "none" || len(x.Results) == 0 {
		return x, found
	}
	r := &x.Results[0]
	r.Failed, r.Confidence, r.Category = true, 0.95, recovery.Category(kinds[0])
	if kinds[0] == annotate.EditFailed {
		r.Category, r.Rule = recovery.InvalidArguments, "edit-refused"
	}
	if r.Line == "" {
		for line := range strings.Lines(s.Turn[0][2].(string)) {
			if r.Line = strings.TrimSpace(line); r.Line != "" {
				break
			}
		}
	}
	x.Turn.Failure = r
	return x, false
}

func chain(r recovery.ToolFailure) string {
	if r.Rule == "edit-refused" && r.Category == recovery.InvalidArguments {
		return annotate.EditFailed
	}
	return string(r.Category)
}

// wrong is what a note lacks of what it should say.
func (s situation) wrong(note string) (out []string) {
	if note == "" {
		if !strings.Contains(s.Category, "none") {
			out = append(out, "no note")
		}
		return out
	}
	if s.Category == "none" {
		return []string{"a note"}
	}
	low := strings.ToLower(note)
	for _, m := range s.Must {
		if !slices.ContainsFunc(strings.Split(m, "|"), func(w string) bool { return strings.Contains(low, strings.ToLower(w)) }) {
			out = append(out, "lacks "+m)
		}
	}
	for _, n := range s.Not {
		if strings.Contains(low, strings.ToLower(n)) {
			out = append(out, "says "+n)
		}
	}
	if n := utf8.RuneCountInString(note); n > s.Max {
		out = append(out, "too long")
	}
	return out
}

// TestSituations: what the notes say of each situation is what an engineer would.
func TestSituations(t *testing.T) {
	st, _ := stage(t, nil)
	for name, floor := range map[string]int{"testdata/blind1.jsonl": 177, "testdata/blind2.jsonl": 75, "testdata/blind3.jsonl": 57, "testdata/blind4.jsonl": 229, "testdata/blind5.jsonl": 47, "testdata/blind6.jsonl": 68, "testdata/blind7.jsonl": 98, "testdata/blind8.jsonl": 40, "testdata/blind9.jsonl": 78} {
		list, kits := situations(t, name)
		right, found, seen := 0, 0, 0
		var lengths []int
		for _, s := range list {
			x, ok := s.exchange(t, kits)
			note := ""
			if s.Category != "none" || ok {
				note, _ = st.Note(x)
			}
			wrong := s.wrong(note)
			if ok {
				found++
			}
			if len(wrong) == 0 {
				right++
				if ok {
					seen++
				}
			}
			if note != "" {
				lengths = append(lengths, utf8.RuneCountInString(note))
			}
			if len(wrong) > 0 || testing.Verbose() {
				t.Logf("%s found=%v WRONG %q\nENGINEER %s\nNOTE %s\n", s.ID, ok, wrong, s.Says, note)
			}
		}
		if right < floor {
			t.Errorf("%s: %d are right, %d were before", name, right, floor)
		}
		slices.Sort(lengths)
		t.Logf("%s: %d situations, kind found in %d, notes right in %d (%d with the kind found), %d notes of %d characters in the middle and %d at most",
			name, len(list), found, right, seen, len(lengths), lengths[len(lengths)/2], lengths[len(lengths)-1])
	}
}

// TestFollowingNotes: each note proposes one thing, none what another one did; then
// only a person is left to ask.
func TestFollowingNotes(t *testing.T) {
	st, _ := stage(t, nil)
	list, kits := situations(t, "testdata/blind2.jsonl")
	for _, s := range list {
		x, ok := s.exchange(t, kits)
		if !ok || s.Category == "none" || x.Turn.Failure == nil {
			continue
		}
		said := map[string]bool{}
		for n := range 12 {
			x.Turn.Seen = n + 1
			note, advice := st.Note(x)
			if note == "" {
				break
			}
			names := advice.Strategies[:len(advice.Strategies)-1]
			if len(names) > 1 || n == 11 && len(names) > 0 || len(names) == 1 && said[names[0]] {
				t.Errorf("%s: note %d proposes %v", s.ID, n+1, names)
			}
			for _, name := range names {
				said[name] = true
			}
		}
	}
}
