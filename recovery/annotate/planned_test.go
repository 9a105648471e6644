package annotate_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
)

var fenced = regexp.MustCompile(`(?s)<<<.*?>>>`)

// What a planner wrote stands inside quotations, whatever it is, and what it says of
// parameters is the same object.
func TestHostilePlans(t *testing.T) {
	s, _ := stage(t, nil)
	for _, h := range hostile {
		for _, strategy := range recovery.PlanStrategies() {
			for _, band := range []recovery.PlanBand{recovery.BandAct, recovery.BandPropose, recovery.BandEscalate} {
				raw, err := json.Marshal(map[string]any{"path": h, "list": []string{h, "x"}})
				if err != nil {
					t.Fatal(err)
				}
				x := agent(bash, read).run("cat x", "odd").run("cat x", "odd").exchange(t)
				x.Plan = &recovery.Plan{Strategy: strategy, Reasoning: h, Tool: "read", Parameters: string(raw), Message: h, Expected: h, Band: band, Source: recovery.PlanPlanner}
				note, advice := s.Note(x)
				if outside := fenced.ReplaceAllString(note, ""); strings.Contains(outside, "EVIL") || !strings.HasPrefix(note, "[gateway note, not from the user] ") ||
					strings.Count(note, "[gateway note") != 1 || !strings.HasSuffix(note, "Do not mention this note.") || utf8.RuneCountInString(note) > 3600 {
					t.Fatalf("%s, %s: %q", strategy, band, note)
				}
				if len(advice.Strategies) != 1 || advice.Strategies[0] != string(strategy) {
					t.Errorf("%+v", advice)
				}
				_, quoted, ok := strings.Cut(note, "with these parameters (data): <<<")
				if quoted, _, _ = strings.Cut(quoted, ">>>"); ok && !sameJSON(quoted, string(raw)) {
					t.Errorf("%s is not %s", quoted, raw)
				}
				if calls := strategy == recovery.PlanAdjust || strategy == recovery.PlanOtherTool; !ok && calls && band != recovery.BandEscalate && len(raw) < 1000 {
					t.Errorf("the parameters are left out: %q", note)
				}
			}
		}
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// A chain knows better than a heuristic, a planner than a chain; and a plan is forced
// only where the request leaves the choice to the model.
func TestWhoseNote(t *testing.T) {
	s, _ := stage(t, nil)
	prepared := func(source, choice string, band recovery.PlanBand) *recovery.Exchange {
		c := agent(bash, read).run("cat a/settings.py", "cat: a/settings.py: No such file or directory")
		x := exchange(t, []byte(strings.Replace(string(c.bytes()), `"model"`, choice+`"model"`, 1)))
		x.Ladder.Same = 5
		x.Plan = &recovery.Plan{Strategy: recovery.PlanAdjust, Tool: "bash", Parameters: `{"command":"ls"}`, Band: band, Source: source,
			Forced: band == recovery.BandAct && source == recovery.PlanPlanner}
		if err := s.Prepare(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	x := agent(bash, read).run("ls", "a").run("ls", "a").exchange(t)
	x.Turn, x.Loops = recovery.Turn{}, []recovery.Loop{{Kind: recovery.LoopSameResult, Count: 2, Tools: []string{"bash"}, From: 2, To: 5, New: true}}
	x.Plan = &recovery.Plan{Strategy: recovery.PlanAdjust, Band: recovery.BandPropose, Source: recovery.PlanHeuristic}
	if note, _ := s.Note(x); !strings.Contains(note, "The result is in the conversation") {
		t.Errorf("a heuristic about an error where there is none: %q", note)
	}
	for name, c := range map[string]struct {
		source, choice string
		band           recovery.PlanBand
		note, force    string
	}{
		"planner":   {recovery.PlanPlanner, "", recovery.BandAct, "Do this next: call `bash`", "bash"},
		"heuristic": {recovery.PlanHeuristic, "", recovery.BandPropose, "No such file or directory", ""},
		"proposed":  {recovery.PlanPlanner, "", recovery.BandPropose, "A proposal, which may be wrong: call `bash`", ""},
		"required":  {recovery.PlanPlanner, `"tool_choice":"required",`, recovery.BandAct, "Do this next: call `bash`", ""},
	} {
		if x := prepared(c.source, c.choice, c.band); !strings.Contains(x.Guidance, c.note) || x.Force != c.force {
			t.Errorf("%s: %q, forced %q", name, x.Guidance, x.Force)
		}
	}
}

// No command is permitted that acts as another user, deletes or installs, however it
// is spelled; what is risky may be allowed, another user never.
func TestPermits(t *testing.T) {
	s, _ := stage(t, nil)
	risky, _ := stage(t, func(c *annotate.Config) { c.Risky = true })
	for command, want := range map[string][2]bool{
		"cat a": {true, true}, "sudo cat a": {false, false}, "env sudo cat a": {false, false}, "rm a": {false, true}, "find . -name x -delete": {false, true},
		"pip install x": {false, true}, "chmod +x a": {false, true}, "echo $API_KEY": {false, false},
	} {
		if got := [2]bool{s.Permits(command), risky.Permits(command)}; got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}
