package annotate

import (
	"cmp"
	"fmt"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// firmTimes is the count from which a note about a loop is firm.
const firmTimes = 3

// loops holds the sentences about an agent that repeats itself, by the kind of loop.
var loops = map[recovery.LoopKind]struct {
	said  string // what the agent did: with placeholders for the call and the count
	never string // what a firm note forbids
	hint  string // what to do about it
	firm  string // the same in a firm note; "" if the kind never gets one
}{
	recovery.LoopSameError: {
		"made the same call%s %s, with the same error.",
		"Do not make it again as it is.",
		"Change what the error complains about before the next call.",
		"Look at what the error names, then make a call that differs in just that.",
	},
	recovery.LoopSameResult: {
		"made the same call%s %s, with the same result.",
		"Do not make it again as it is.",
		"The result is in the conversation: use it, or change the call.",
		"The result will not change: say in one sentence what it tells you and what is missing, then make the call that gets what is missing.",
	},
	recovery.LoopAlternation: {
		"gone back and forth%s %s, with the same results.",
		"Do not start another round.",
		"The results are in the conversation: use them, or change what one of them depends on.",
		"Say in one sentence what the two results tell you. Then change something that one of them depends on.",
	},
	recovery.LoopCycle: {
		"made the same round of calls%s %s, with the same results.",
		"Do not start another round.",
		"The results are in the conversation: use them, or change what one of them depends on.",
		"Say in one sentence what the round tells you. Then change something that one of its results depends on.",
	},
	// A counter or a rephrased search may still lead somewhere, so these get no firm note.
	recovery.LoopCounter: {
		"made the same call%s %s with only a higher number each time, and nothing new came back.", "",
		"Work with what you have, or look in another way (another name or filter, a list of what there is, the log of what you wait for).", "",
	},
	recovery.LoopRephrasing: {
		"searched%s %s with the same words in another order, and nothing was found.", "",
		"Search with other words (another name, a broader term, another source), or say what is known and that it was not found.", "",
	},
	recovery.LoopMonologue: {
		"written the same text%s %s, without calling a tool.",
		"Do not write it again.",
		"If there is something to do, make the call now; if all is done, give the final answer.",
		"Make the call that you announce, now; or, if all is done, give the final answer.",
	},
	recovery.LoopNoProgress: {
		hint: "Say what is known and what is missing, then make the one call that gets what is missing.",
	},
}

// firmly reports whether the note about a loop is firm. Only exact repetitions get a firm note.
func firmly(l *recovery.Loop) bool { return l.Count >= firmTimes && loops[l.Kind].firm != "" }

// repeating states the repetition and, from the third time on, forbids it, unless a person refused the call or
// the agent has no tools that work on a computer.
func (s *failureContext) repeating(x *recovery.Exchange, l *recovery.Loop) string {
	text := stated(x, l)
	if firmly(l) && !x.Refused() && !s.lacksWorkTools() {
		text += " " + loops[l.Kind].never
	}
	return text
}

// stated states the repetition only.
func stated(x *recovery.Exchange, l *recovery.Loop) string {
	said := loops[l.Kind].said
	if said == "" {
		return fmt.Sprintf("The last %d steps brought nothing new.", l.Count)
	}
	times := "twice"
	if l.Count != 2 {
		times = fmt.Sprintf("%d times", l.Count)
	}
	return fmt.Sprintf("You have "+said, repeated(x, l), times)
}

// loopNote returns the note about a repetition: when it is found, a firm one the third time, and one to ask the
// user the fourth time; then none until something new happens.
func (st *Stage) loopNote(x *recovery.Exchange, l *recovery.Loop) (string, recovery.Advice) {
	if l == nil || !l.New || firmly(l) && l.Count > firmTimes+1 && !x.Turn.Untold {
		return "", recovery.Advice{}
	}
	advice := recovery.Advice{Loop: l.Kind, Count: l.Count, Strategies: []string{recovery.Hint}}
	st.mayWithhold(x, l, recovery.Hint, false, &advice)
	s := st.newContext(x, nil)
	said := s.repeating(x, l)
	if f := x.FirstFailed(); f != nil && l.Kind == recovery.LoopSameError {
		said += printed(f.Line)
	}
	step := loops[l.Kind]
	if call := repeatedCall(x, l); call != "" && len(call) < maxLine && l.Kind == recovery.LoopSameResult {
		step.hint = "The result is in the conversation: use it, or change " + call + "."
	}
	switch {
	case x.Refused() || s.lacksWorkTools() && l.Kind != recovery.LoopRephrasing:
		return s.note(said, unmentioned), advice
	case firmly(l) && l.Count > firmTimes && !x.Turn.Untold:
		advice.Strategies = append(advice.Strategies, AskUser)
		return s.note(said, "If you cannot tell what blocks you, ask the user"+s.asking()+". "+unmentioned), advice
	case firmly(l):
		return s.note(said, step.firm+" "+onward), advice
	}
	return s.note(said, step.hint+" "+onward), advice
}

// untilNote returns the note for an agent that repeats something until it ends in a certain way because the user
// asked for that: one note, at the third time.
func untilNote(x *recovery.Exchange) (string, recovery.Advice) {
	if x.Turn.Streak != firmTimes {
		return "", recovery.Advice{}
	}
	return prefix + fmt.Sprintf("The same call has brought the same result %d times: nothing has changed between the runs.\n", x.Turn.Streak) +
			"Repeating it may not be enough: look at what its result depends on, or say what you see so far. " + onward,
		recovery.Advice{Loop: recovery.LoopSameError, Count: x.Turn.Streak, Strategies: []string{recovery.Hint}}
}

// lacksWorkTools reports whether none of the tools works on a computer. Such an agent serves a customer under rules that
// the gateway does not know, so a note only states the repetition.
func (s *failureContext) lacksWorkTools() bool {
	return len(s.tools()) > 0 && !s.textProtocol && s.uses()&(working&^trajectory.UseSearch) == 0
}

// waitNote returns the note for an agent that has waited long.
func waitNote(x *recovery.Exchange) (string, recovery.Advice) {
	return prefix + fmt.Sprintf("You have waited for %d minutes, and the answer has not changed.\n", int(x.Turn.Waited.Minutes())) +
			"If that is longer than it should take, look at what you wait for: its log, its events, whether it still runs. Else go on waiting. " + unmentioned,
		recovery.Advice{Loop: recovery.LoopWaiting, Count: x.Turn.Streak}
}

// repeated names the repeated calls, quoted as data: the tool with its arguments, or the tools.
func repeated(x *recovery.Exchange, l *recovery.Loop) string {
	tools := listed(l.Tools, 4, "and")
	switch l.Kind {
	case recovery.LoopSameError, recovery.LoopSameResult, recovery.LoopCounter:
		out := ""
		if len(l.Tools) > 0 && quoted(l.Tools[0]) != "" {
			out = " of " + quoted(l.Tools[0])
		}
		if args := repeatedCall(x, l); args != "" && l.Kind != recovery.LoopCounter {
			out += " (" + args + ")"
		}
		return out
	case recovery.LoopAlternation:
		if len(l.Tools) == 1 {
			tools = "two calls of " + tools
		}
		if tools != "" {
			return " between " + tools
		}
	case recovery.LoopCycle:
		if tools != "" {
			return " (" + tools + ")"
		}
	}
	return ""
}

// repeatedCall returns the arguments of the repeated call, quoted as data.
func repeatedCall(x *recovery.Exchange, l *recovery.Loop) string {
	for i := range x.Results {
		made := trajectory.Call{Tool: x.Results[i].Tool, Arguments: x.Results[i].Arguments}
		if len(l.Tools) == 0 || made.Tool != l.Tools[0] {
			continue
		}
		if args := quoted(cmp.Or(made.Line(), made.Arguments)); args != "`{}`" && !secret.MatchString(args) {
			return args
		}
		break
	}
	return ""
}
