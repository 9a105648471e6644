package recovery_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// TestBuild is what goes upstream for one action, and whether that counts as edited:
// a refusal of what was edited may be the edit's fault.
func TestBuild(t *testing.T) {
	const (
		head = `{"model":"m","max_tokens":20,`
		said = `"messages":[{"role":"user","content":"hi"}`
		tail = `],"tools":[{"type":"function","function":{"name":"ls","parameters":{}}}]}`
		body = head + said + tail
	)
	told := func(text string) string { return strings.Replace(body, `"hi"`, `"hi\n\n`+text+`"`, 1) }
	for _, c := range []struct {
		name   string
		action recovery.Action
		set    func(g *rig, x *recovery.Exchange)
		stages recovery.Stage
		want   string // empty for the client's bytes
		edited bool
		did    string
	}{
		{name: "the same again"},
		{name: "another model's name", set: func(_ *rig, x *recovery.Exchange) { x.Candidates[0].Model = "n" }, want: strings.Replace(body, `"m"`, `"n"`, 1)},
		{name: "a note", action: recovery.Action{Note: "N"}, want: told("N"), edited: true},
		{name: "guidance", stages: prepares(func(x *recovery.Exchange) { x.Guidance = "G" }), want: told("G"), edited: true, did: "guidance"},
		{name: "guidance and a note", stages: prepares(func(x *recovery.Exchange) { x.Guidance = "G" }), action: recovery.Action{Note: "N"},
			want: told(`G\n\nN`), edited: true, did: "guidance"},
		{name: "a tool", action: recovery.Action{Tool: "ls"}, want: body[:len(body)-1] + `,"tool_choice":{"type":"function","function":{"name":"ls"}}}`,
			edited: true},
		{name: "no tool", action: recovery.Action{Tool: recovery.ToolNone}, want: body[:len(body)-1] + `,"tool_choice":"none"}`, edited: true},
		{name: "more room for the answer", action: recovery.Action{Output: 30}, want: strings.Replace(body, "20", "30", 1), edited: true},
		{name: "room for one token", action: recovery.Action{Output: 1}, want: strings.Replace(body, "20", "1", 1), edited: true},
		{name: "less than nothing", action: recovery.Action{Output: -1}},
		{name: "what was learned", set: func(g *rig, x *recovery.Exchange) {
			g.facts.Learn(x.Candidates[0].Target, []recovery.Edit{{Field: "max_tokens", Rename: "max_completion_tokens"}}, "r1")
		}, want: strings.Replace(body, "max_tokens", "max_completion_tokens", 1), edited: true, did: "learned"},
		{name: "what was learned and changes nothing", set: func(g *rig, x *recovery.Exchange) {
			g.facts.Learn(x.Candidates[0].Target, []recovery.Edit{{Field: "seed", Drop: true}}, "r1")
		}},
		{name: "more room, under the name that was learned", action: recovery.Action{Output: 30}, set: func(g *rig, x *recovery.Exchange) {
			g.facts.Learn(x.Candidates[0].Target, []recovery.Edit{{Field: "max_tokens", Rename: "max_completion_tokens"}}, "r1")
		}, want: strings.Replace(body, `"max_tokens":20`, `"max_completion_tokens":30`, 1), edited: true, did: "learned"},
		{name: "an edit of this action", action: recovery.Action{Edits: []recovery.Edit{{Field: "max_tokens", Clamp: 5}}},
			want: strings.Replace(body, "20", "5", 1), edited: true},
		{name: "the client's bytes, whatever is known", stages: prepares(func(x *recovery.Exchange) { x.Guidance = "G" }),
			action: recovery.Action{Plain: true, Note: "N"},
			set: func(g *rig, x *recovery.Exchange) {
				g.facts.Learn(x.Candidates[0].Target, []recovery.Edit{{Field: "max_tokens", Rename: "max_completion_tokens"}}, "r1")
			}, want: told("N"), edited: true, did: "guidance learned"},
		{name: "a fitted copy", stages: &fitter{known: parsedNow(smaller)}, want: smaller, edited: true, did: "fit"},
		{name: "a fitted copy, another model's name", stages: &fitter{known: parsedNow(smaller)},
			set:  func(_ *rig, x *recovery.Exchange) { x.Candidates[0].Model = "n" },
			want: strings.Replace(smaller, `"m"`, `"n"`, 1), edited: true, did: "fit"},
		{name: "the beginning of an answer", action: recovery.Action{Resume: &recovery.Resume{Sent: "a b c", Way: recovery.WayPrefill}},
			set:  func(_ *rig, x *recovery.Exchange) { x.Candidates[0].Prefill = recovery.PrefillAssistant },
			want: strings.Replace(head, "20", "17", 1) + said + `,{"role":"assistant","content":"a b c"}` + tail, edited: true},
		{name: "the beginning of an answer, and a question", action: recovery.Action{Resume: &recovery.Resume{Sent: "a b c", Way: recovery.WayAsk,
			Question: "go on", Quoted: 1}},
			want: strings.Replace(head, "20", "18", 1) + said + `,{"role":"assistant","content":"a b c"}` + `,{"role":"user","content":"go on"}` + tail, edited: true},
		{name: "a replay", action: recovery.Action{Resume: &recovery.Resume{Sent: "a b c", Way: recovery.WayReplay}}},
		{name: "calls only", action: recovery.Action{Resume: &recovery.Resume{Sent: "a b c", Calls: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": {busy, ok}})
				g.Tokens, g.Strategies = words{}, []recovery.Strategy{inTurn("resend", c.action)}
				if c.stages != nil {
					g.Stages = []recovery.Stage{c.stages}
				}
				x := exchange(t, body, "a")
				if c.set != nil {
					c.set(g, x)
				}
				f, err := g.run(t, t.Context(), x)
				answered(t, f, err)
				if c.want == "" {
					c.want = body
				}
				if a := g.attempts[1]; string(a.Body) != c.want || a.Edited != c.edited || a.Resume != c.action.Resume {
					t.Errorf("sent, edited %t:\n%s\nwant, edited %t:\n%s", a.Edited, a.Body, c.edited, c.want)
				}
				did := slices.DeleteFunc(slices.Clone(x.Actions()), func(s string) bool { return s == "resend" })
				slices.Sort(did)
				if got := strings.Join(did, " "); got != c.did {
					t.Errorf("did %s, want %s", got, c.did)
				}
			})
		})
	}
}

func parsedNow(body string) *transcript.Body {
	b, err := transcript.Parse([]byte(body), transcript.Chat, transcript.Limits{})
	if err != nil {
		panic(err)
	}
	return b
}

// In each mode the model is told what that allows.
func TestModesTell(t *testing.T) {
	for mode, told := range map[recovery.Mode]bool{recovery.ModeAct: true, recovery.ModeAnnotate: true, recovery.ModeObserve: true, recovery.ModeOff: false} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {ok}})
			g.Stages = []recovery.Stage{prepares(func(x *recovery.Exchange) { x.Guidance = "try b" })} // the stage itself heeds the mode
			x := exchange(t, plainBody, "a")
			x.Mode = mode
			f, err := g.run(t, t.Context(), x)
			answered(t, f, err)
			if got := strings.Contains(string(g.attempts[0].Body), "try b"); got != told {
				t.Errorf("%s: told %t", mode, got)
			}
		})
	}
}

// Where the edits of a request cannot be carried out, it goes without them, unless
// the attempt is made for what it asks of the model.
func TestBare(t *testing.T) {
	renamed := strings.Replace(plainBody, `"m"`, `"n"`, 1)
	for _, c := range []struct {
		name   string
		action recovery.Action
		model  string
		fitted string
		want   string // of the second attempt; empty where none is made
		edited bool
	}{
		{name: "the same again", want: plainBody},
		{name: "another model's name", model: "n", want: renamed},
		{name: "a note about a failure", action: recovery.Action{Note: "smaller"}, want: plainBody},
		{name: "a fitted copy", fitted: smaller, want: smaller, edited: true},
		{name: "a fitted copy, another model's name", fitted: smaller, model: "n", want: strings.Replace(smaller, `"m"`, `"n"`, 1), edited: true},
		{name: "a question for a flawed answer", action: recovery.Action{Reask: true, Note: "again"}},
		{name: "an explanation", action: recovery.Action{Explain: true, Note: "say why"}},
		{name: "a continuation", action: recovery.Action{Resume: &recovery.Resume{Sent: "Hel", Way: recovery.WayPrefill}}},
	} {
		for how, conformer := range map[string]recovery.Conformer{"breaks": breakingConformer{}, "fails": breakingEdit{}} {
			t.Run(c.name+", "+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					g := newRig(map[string][]step{"a": {busy, ok}})
					g.Strategies, g.Config.Attempts = []recovery.Strategy{inTurn("resend", c.action)}, 2
					if c.fitted != "" {
						g.Stages = []recovery.Stage{&fitter{known: parsed(t, c.fitted)}}
					}
					x := exchange(t, plainBody, "a")
					if c.model != "" {
						x.Candidates[0].Model = c.model
					}
					g.Conformer = conformer
					g.facts.Learn(x.Candidates[0].Target, []recovery.Edit{{Conform: recovery.ConformPairing}}, "r1")
					f, err := g.run(t, t.Context(), x)
					if c.want == "" {
						if err != nil || f == nil || f.Response.Status != 500 || len(g.attempts) != 1 || len(x.Attempts) != 2 {
							t.Errorf("%v, %v; %d attempts were sent, %d are on record", f, err, len(g.attempts), len(x.Attempts))
						}
						return
					}
					answered(t, f, err)
					if a := g.attempts[1]; string(a.Body) != c.want || a.Edited != c.edited {
						t.Errorf("sent %s, edited %t", a.Body, a.Edited)
					}
				})
			})
		}
	}
}

// What was made of a request for a question that met an outage is made again, or the
// attempt is not made.
func TestCarriedBare(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {flawed(""), busy, ok}})
		x := exchange(t, agentBody, "a")
		g.Conformer = conforms(func() bool {
			if len(g.attempts) > 1 {
				panic("no such edit")
			}
			return false
		})
		g.facts.Learn(x.Candidates[0].Target, []recovery.Edit{{Conform: recovery.ConformPairing}}, "r1")
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err) // with the flawed one, as it was
		if g.asked() != "aa" || g.answers[0].delivered != 1 {
			t.Errorf("asked %s", g.asked())
		}
	})
}

// Changes says whether one more edit would change what goes to a candidate.
func TestChanges(t *testing.T) {
	learned := recovery.Edit{Field: "max_tokens", Rename: "max_completion_tokens"}
	for _, c := range []struct {
		name      string
		edit      recovery.Edit
		conformer recovery.Conformer
		want      bool
	}{
		{"a field that is there", recovery.Edit{Field: "seed", Drop: true}, nil, true},
		{"a field that is not", recovery.Edit{Field: "user", Drop: true}, nil, false},
		{"what is known already", learned, nil, false},
		{"an edit that nobody makes", recovery.Edit{Conform: recovery.ConformPairing}, nil, false},
		{"an edit that says that it changes something", recovery.Edit{Conform: recovery.ConformPairing}, conforms(func() bool { return true }), false},
		{"an edit that fails", recovery.Edit{Conform: recovery.ConformPairing}, breakingEdit{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var got []bool
				g := newRig(map[string][]step{"a": {busy}, "b": {ok}})
				g.Conformer = c.conformer
				g.Strategies = []recovery.Strategy{{Name: "resend", Propose: func(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
					got = append(got, s.Changes(0, c.edit))
					return recovery.Action{}, false
				}}}
				x := exchange(t, `{"model":"m","seed":1,"max_tokens":7,"messages":[]}`, "ab")
				g.facts.Learn(x.Candidates[0].Target, []recovery.Edit{learned}, "r1")
				_, _ = g.run(t, context.Background(), x)
				if len(got) != 1 || got[0] != c.want {
					t.Errorf("changes: %v, want %t", got, c.want)
				}
			})
		})
	}
	bubble(t, func(t *testing.T) { // what is known of a target may fail, too
		var got []bool
		g := newRig(map[string][]step{"a": {busy}})
		g.Conformer = breakingEdit{}
		g.Strategies = []recovery.Strategy{{Name: "resend", Propose: func(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
			got = append(got, s.Changes(0, recovery.Edit{Field: "seed", Drop: true}))
			return recovery.Action{}, false
		}}}
		x := exchange(t, `{"model":"m","seed":1,"messages":[]}`, "a")
		g.facts.Learn(x.Candidates[0].Target, []recovery.Edit{{Conform: recovery.ConformPairing}}, "r1")
		_, _ = g.run(t, context.Background(), x)
		if !slices.Equal(got, []bool{false}) {
			t.Errorf("changes: %v", got)
		}
	})
}
