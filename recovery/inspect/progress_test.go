package inspect_test

import (
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/inspect/looptest"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// TestProgressOfMadeSessions: agents that repeat themselves are stuck at the end,
// those that wait never are, and hardly one that gets on: who looks for three things
// in a row that are not there is.
func TestProgressOfMadeSessions(t *testing.T) {
	rules := inspect.RulesForTests()
	for _, c := range []struct {
		label       looptest.Label
		least, most float64 // share of the sessions that are stuck at the end
	}{{looptest.Progress, 0, .06}, {looptest.Waits, 0, 0}, {looptest.Repeats, .95, 1}} {
		stuck, sessions := 0, 100
		for i := range sessions {
			w := looptest.WorkAt(c.label, 1, i)
			b := recoverytest.Parse(t, w.Bodies[len(w.Bodies)-1], transcript.Chat)
			p := rules.Progress(b)
			if p.Stuck {
				stuck++
			}
			if p.Steps == 0 && c.label != looptest.Waits || p.Percent < 0 || p.Percent > 100 || p.Steps > 12 || p.Task == "" {
				t.Errorf("%s: %+v", w.Name, p)
			}
		}
		if share := float64(stuck) / float64(sessions); share < c.least || share > c.most {
			t.Errorf("%s: %d of %d are stuck at the end", c.label, stuck, sessions)
		}
	}
}

// TestStageFindings: where a tool failed, the stage says whether the agent gets on and
// what is ruled out; where nothing is wrong it says neither.
func TestStageFindings(t *testing.T) {
	const start = `{"messages":[{"role":"system","content":"You are an agent. Never use sudo."},{"role":"user","content":"Fix it, but install nothing: do not install packages."}`
	step := func(id, command, output string) string {
		return `,{"role":"assistant","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"bash","arguments":"{\"command\":\"` + command +
			`\"}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"` + output + `"}`
	}
	fails := step("2", "jq . a.json", "bash: jq: command not found")
	for name, c := range map[string]struct {
		body string
		want recovery.Progress
		bars recovery.Deeds
	}{
		"a failure": {start + step("1", "ls", "a.json b.txt c.go") + fails, recovery.Progress{Steps: 2, Percent: 67, Recent: 67, Task: recovery.Exploring}, recovery.Installs | recovery.Elevates},
		"after a change": {start + step("1", "touch x.go && ls x.go", "x.go of the list") + fails, recovery.Progress{Steps: 2, Percent: 67, Recent: 67, Task: recovery.Changing},
			recovery.Installs | recovery.Elevates},
		"stuck": {start + fails + fails + fails + fails + fails + fails, recovery.Progress{Steps: 6, Percent: 6, Stuck: true, Task: recovery.Exploring},
			recovery.Installs | recovery.Elevates},
		"a success": {body: start + step("1", "ls", "a.json b.txt c.go")},
	} {
		b := recoverytest.Parse(t, c.body+"]}", transcript.Chat)
		stage := inspect.NewStage(inspect.Defaults(), inspect.RulesForTests(), unheard{})
		stage.Preferences = inspect.NewPreferences(configs.PreferenceRules)
		x := &recovery.Exchange{Request: recovery.Request{Body: b, Mode: recovery.ModeAct}}
		if err := stage.Prepare(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if x.Progress != c.want || x.Barred != c.bars {
			t.Errorf("%s: %+v, barred %s, want %+v, %s", name, x.Progress, x.Barred, c.want, c.bars)
		}
	}
}

type unheard struct{}

func (unheard) Observe(recovery.Event) {}

func FuzzBarred(f *testing.F) {
	p := inspect.NewPreferences(configs.PreferenceRules)
	for _, s := range []string{"never use sudo", "不要安装", "ne ne ne ne", "削除しないで。", "don't don't don't delete"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		raw := []byte(`{"messages":[{"role":"user","content":` + string(transcript.String(text)) + `}]}`)
		if b, err := transcript.Parse(raw, transcript.Chat, transcript.Limits{}); err == nil {
			p.Barred(b)
		}
	})
}
