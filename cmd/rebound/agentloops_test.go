package main_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
	"github.com/rebound-llm/rebound/recovery/breaker"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/inspect/looptest"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store/memory"
)

var (
	workSeed = flag.Uint64("workseed", 1, "seed of the measured sessions")
	workRuns = flag.Int("workruns", 0, "measured sessions of each label; 0 is a few of each situation")
)

// stages are the stages that an agent's request passes before a model is called.
type stages struct {
	list     []recovery.Stage
	observer *recoverytest.Observer
}

func newStages(t *testing.T) *stages {
	t.Helper()
	chains, err := configs.Chains()
	if err != nil {
		t.Fatal(err)
	}
	s := &stages{observer: &recoverytest.Observer{}}
	cfg := annotate.Defaults()
	cfg.Holdout = 0
	notes, err := annotate.New(cfg, chains, s.observer)
	if err != nil {
		t.Fatal(err)
	}
	st := memory.New(memory.Defaults())
	t.Cleanup(func() { _ = st.Close() })
	seen := inspect.NewStage(inspect.Defaults(), sessionRules, s.observer)
	seen.HeldOut = notes.HeldOut
	s.list = []recovery.Stage{seen, breaker.NewSessions(breaker.Defaults(), st, recoverytest.NewBoard(), s.observer, notes.Ask), notes}
	return s
}

// sessionRules are the built-in rules, compiled once.
var sessionRules = inspect.NewRules(configs.ToolRules)

// stageResult is what a request gets from the stages.
type stageResult struct {
	hinted, firm, stopped bool
	note                  string
}

func (s *stages) prepare(t *testing.T, session string, raw []byte) stageResult {
	t.Helper()
	b := recoverytest.Parse(t, raw, transcript.Chat)
	x := &recovery.Exchange{Request: recovery.Request{ID: "r", Mode: recovery.ModeAct, Body: b, Started: time.Now()},
		Conversation: recovery.Conversation{Session: session},
		Caller:       recovery.Caller{Trusted: true}}
	for _, st := range s.list {
		if err := st.Prepare(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	m := stageResult{note: x.Guidance, stopped: x.Reply != nil}
	m.hinted = x.Guidance != "" && x.Turn.Waits
	for i := range x.Loops {
		l := &x.Loops[i]
		m.hinted = m.hinted || x.Guidance != ""
		m.firm = m.firm || x.Guidance != "" && l.Count >= 3 && l.Kind != recovery.LoopCounter && l.Kind != recovery.LoopNoProgress
	}
	return m
}

// Agents that make progress are never stopped and get no firm note. Agents that wait get no note. Agents that repeat
// themselves get a hint the second time and a firm note the third, and are stopped at the fifth, never before a firm note.
func TestAgentsAtWork(t *testing.T) {
	runs := *workRuns
	if runs == 0 {
		runs = 120
	}
	for _, label := range []looptest.Label{looptest.Progress, looptest.Waits, looptest.Repeats} {
		t.Run(string(label), func(t *testing.T) {
			s := newStages(t)
			stopped, firm, soft, missed, unwarned, wrong, requests := 0, 0, 0, 0, 0, map[string]int{}, 0
			for i := range runs {
				w := looptest.WorkAt(label, *workSeed, i)
				var all []stageResult
				for _, raw := range w.Bodies {
					all = append(all, s.prepare(t, w.Name, raw))
					requests++
				}
				is := func(what func(stageResult) bool) bool { return slices.ContainsFunc(all, what) }
				note := func(bad bool, n *int, what string) {
					if bad {
						*n++
						wrong[what+": "+w.Why]++
						if wrong[what+": "+w.Why] == 1 {
							k := slices.IndexFunc(all, func(m stageResult) bool { return m.hinted || m.stopped })
							t.Errorf("%s: %s%s", w.Name, what, detail(all, k, w))
						}
					}
				}
				if label != looptest.Repeats {
					note(is(func(m stageResult) bool { return m.stopped }), &stopped, "stopped")
					note(is(func(m stageResult) bool { return m.firm }), &firm, "told firmly")
					if bad := is(func(m stageResult) bool { return m.hinted }); label == looptest.Waits {
						note(bad, &soft, "hinted")
					} else if bad {
						soft++
					}
					continue
				}
				late := !all[w.Seen[1]].hinted || !all[w.Seen[2]].firm || w.Fails && !all[w.Seen[4]].stopped
				note(late, &missed, "missed")
				k := slices.IndexFunc(all, func(m stageResult) bool { return m.stopped })
				note(k >= 0 && !slices.ContainsFunc(all[:k], func(m stageResult) bool { return m.firm }), &unwarned, "stopped without a firm hint")
				note(slices.ContainsFunc(all[:w.Seen[1]], func(m stageResult) bool { return m.hinted }), &soft, "hinted too early")
			}
			t.Logf("%d sessions, %d requests: %d stopped, %d told firmly, %d hinted, %d missed, %d stopped without a firm hint", runs, requests, stopped, firm, soft, missed, unwarned)
		})
	}
}

func detail(all []stageResult, k int, w looptest.Work) string {
	var b strings.Builder
	for i, m := range all {
		if m.hinted || m.stopped || m.firm {
			fmt.Fprintf(&b, " %d:%v,%v,%v", i, m.hinted, m.firm, m.stopped)
		}
	}
	if k >= 0 {
		b.WriteString("\n" + all[k].note)
	}
	fmt.Fprintf(&b, " seen %v", w.Seen)
	return b.String()
}
