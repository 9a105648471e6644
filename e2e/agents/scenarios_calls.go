package agents

import (
	"errors"
	"maps"
	"slices"
)

// bad is a scenario about a call that is wrong at first.
type bad struct {
	name, want string
	good       func(r *Request) Call
	reply      func(r *Request) Reply
	run        []Call // default: the plan is read
	end        string // default: the launch code
	reasks     int
	guessed    bool // mended by a guess: codex, whose tool runs commands, is asked again
	// fine are clients that take the call as it is.
	fine     []string
	straight map[string][]Check
	through  []Check
	clients  []string // default: all
}

func (b bad) scenario() Scenario {
	if b.good == nil {
		b.good = plan
	}
	if b.run == nil {
		b.run = []Call{readPlan}
	}
	prompt := planPrompt
	if b.end == "" {
		b.end = saidCode
	} else {
		prompt = rainPrompt
	}
	straight := map[string][]Check{}
	for _, c := range Clients() {
		if !slices.Contains(b.fine, c) {
			straight[c] = []Check{degraded(b.end, b.run...)}
		}
	}
	for _, c := range slices.Sorted(maps.Keys(b.straight)) {
		straight[c] = append(straight[c], b.straight[c]...)
	}
	again := func(e *Evidence) error {
		n := b.reasks
		if b.guessed && e.Client == Codex {
			n++
		}
		return errors.Join(reasked(n, n)(e), asked(2+n, 2+n)(e))
	}
	through := []Check{noneElse(b.run...), sent(2, 2), again}
	for _, c := range b.run {
		through = append(through, repeated(c, 1))
	}
	return Scenario{
		Name: b.name, Want: b.want, Files: planFiles(), Prompts: []string{prompt}, Play: misspells(b.good, b.reply), End: []string{b.end},
		Clients:    b.clients,
		StraightOf: straight,
		Through:    append(through, b.through...),
	}
}

// dies: these clients end with an error.
func dies(with string, clients ...string) map[string][]Check {
	out := map[string][]Check{}
	for _, c := range clients {
		out[c] = []Check{fails(with)}
	}
	return out
}

// loopsDie: so do the loops, which parse what they get without care.
func loopsDie(python, node string) map[string][]Check {
	return map[string][]Check{LoopPython: {fails(python)}, LoopNode: {fails(node)}}
}

// badCalls are scenarios about one call.
func badCalls() (out []Scenario) {
	for _, b := range []bad{
		{name: "name-prefix", want: "functions.read_file is the tool read_file", reply: misnamed(plan, prefixed), straight: dies("ModelBehaviorError", OpenAIAgents)},
		{name: "name-case", want: "Read_File is the tool read_file", reply: misnamed(plan, inCapitals), guessed: true, straight: dies("ModelBehaviorError", OpenAIAgents)},
		{name: "name-unknown", want: "a name that is near nothing is asked again", reply: misnamed(plan, oracle), reasks: 1, straight: dies("ModelBehaviorError", OpenAIAgents)},
		{
			name: "args-cut", want: "arguments that stop inside a value are asked again, never guessed", reply: with(plan, cutOff), reasks: 1,
			straight: map[string][]Check{
				LoopPython: {fails("JSONDecodeError")}, LoopNode: {fails("SyntaxError")},
				LangGraph: {streamed(ranPart)}, // it closes the brackets and runs what it guessed
			},
		},
		{name: "args-cut-command", want: "the same for a command", good: catPlan, reply: with(catPlan, cutOff), run: []Call{ranCat}, reasks: 1, straight: loopsDie("JSONDecodeError", "SyntaxError")},
		{name: "args-fenced", want: "a fence around arguments is taken off", reply: with(plan, fenced), straight: loopsDie("JSONDecodeError", "SyntaxError")},
		{name: "args-fenced-command", want: "also for commands: nothing is guessed", good: catPlan, reply: with(catPlan, fenced), run: []Call{ranCat}, straight: loopsDie("JSONDecodeError", "SyntaxError")},
		{name: "args-double", want: "arguments encoded twice are decoded", reply: with(plan, twice), straight: dies("TypeError", LoopPython)},
		{name: "args-missing", want: "a missing argument is asked again", reply: with(plan, emptied), reasks: 1, straight: dies("TypeError", LoopPython)},
		{
			name: "args-number", want: "a number in quotes becomes one", good: forecast, run: []Call{gotForecast}, end: "Reference RAIN-Oslo-3",
			reply: with(forecast, func(string) string { return `{"city":"Oslo","days":"3"}` }), fine: []string{OpenAIAgents, OpenAIAgentsResponses, LangGraph, PydanticAI},
			clients: []string{LoopPython, LoopNode, OpenAIAgents, LangGraph, PydanticAI, Vercel}, // pi has no such tool
		},
		{name: "two-calls", want: "of two calls at once one is mended, the other stays", reply: both, run: []Call{readPlan, ranCat}, straight: loopsDie("JSONDecodeError", "SyntaxError")},
		{
			name: "args-cut-after-text", want: "the same after a text, which is not told twice", reply: after(chatter, with(plan, cutOff)), reasks: 1,
			through: []Check{streamed(saidOnce(chatter))}, straight: loopsDie("JSONDecodeError", "SyntaxError"),
		},
		{name: "leaked", want: "a call that stands in the text becomes one", reply: leaks, through: []Check{noLeak}},
		{name: "leaked-after-text", want: "the same after other text", reply: after(chatter+"\n", leaks), through: []Check{noLeak, saidOnce(chatter)}},
	} {
		out = append(out, b.scenario())
	}
	return out
}

// chatter is the text before a call that breaks.
const chatter = "I will have a look at the plan of the launch now, because the code should stand there; then I will tell it."

// always is more often than anybody asks.
const always = 1 << 20

// brokenStreams are scenarios about streams that break inside a call.
func brokenStreams() []Scenario {
	plain := func(name, want string, play Play, through ...Check) Scenario {
		return Scenario{
			Name: name, Want: want, Files: planFiles(), Prompts: []string{planPrompt}, Play: play, End: []string{saidCode}, Only: Streamed,
			Through: append([]Check{executed(readPlan), sent(2, 2), asked(3, 3)}, through...),
		}
	}
	sdks := []string{LoopPython, LoopNode, OpenAIAgents, LangGraph, PydanticAI, Vercel}
	broken := map[string][]Check{}
	for _, c := range sdks {
		broken[c] = []Check{fails(""), executed()}
	}
	ended := loopsDie("JSONDecodeError", "SyntaxError")
	ended[Vercel] = []Check{fails("")}
	ended[LangGraph] = []Check{ranPart}
	ended[LoopPythonResponses] = []Check{fails("without its last event")}
	ended[VercelResponses] = []Check{degraded(saidCode, readPlan)} // and no error
	ended[VercelAnthropic] = ended[VercelResponses]
	all := []Scenario{
		plain("cut-call", "a stream that breaks inside a call is asked again", breaksOff("", 1, false)),
		plain("cut-after-text", "also after text, which is not said twice", breaksOff(chatter, 1, false), saidOnce(chatter)),
		plain("end-call", "a stream that just ends inside a call is asked again", breaksOff("", 1, true)),
		plain("end-after-text", "also after text", breaksOff(chatter, 1, true), saidOnce(chatter)),
	}
	for i, straight := range []map[string][]Check{broken, broken, ended, ended} {
		all[i].StraightOf = straight
	}
	return append(all,
		Scenario{
			Name: "stubborn", Want: "a model that never learns a tool's name is asked again twice each time, no more, and its answer passes as it is",
			Files: planFiles(), Prompts: []string{planPrompt}, Play: bounded(misnamed(plan, oracle)), Clients: []string{LangGraph, PydanticAI, Vercel, OpenAIAgents},
			StraightOf: dies("ModelBehaviorError", OpenAIAgents),
			Through:    []Check{executed(), askedEach(3)},
		},
		Scenario{
			Name: "args-length", Want: "a call that the limit of the output cut off never runs as far as it goes; it is asked again",
			Files: planFiles(), Prompts: []string{planPrompt}, Play: misspells(plan, stopsAtLength(plan)), End: []string{saidCode}, Clients: sdks,
			Through: []Check{executed(readPlan), sent(2, 2), reasked(1, 1), asked(3, 3)},
		},
		Scenario{
			Name: "cut-end", Want: "a stream that breaks in the text of a later turn goes on, also where the upstream stores it: the client tells its history again",
			Files: planFiles(), Prompts: []string{planPrompt}, Play: breaksAtTheEnd, End: []string{saidCode}, Only: Streamed, Clients: []string{LoopPython, LoopNode, OpenAIAgents},
			Through: []Check{executed(readPlan), sent(2, 2), asked(3, 3)},
		},
		Scenario{
			Name: "text-flows", Want: "text is not held back while a call is",
			Files: planFiles(), Prompts: []string{planPrompt}, Play: thinks, End: []string{saidCode}, Only: Streamed,
			Through: []Check{untouched, flows},
		},
		Scenario{
			Name: "cut-other-text", Want: "if the model says something else the second time: one whole call, or an honest error",
			Files: planFiles(), Prompts: []string{planPrompt}, Play: otherText, Only: Streamed, StraightOf: broken,
			Through: []Check{wholeOrHonest([]string{saidCode}, readPlan)},
		},
		Scenario{
			Name: "cut-always", Want: "if it always breaks: an honest error, and no part of a call runs",
			Files: planFiles(), Prompts: []string{planPrompt}, Play: breaksOff("", always, false), Only: Streamed, Clients: sdks, StraightOf: broken,
			// A client that asks again by itself does so with a budget of six attempts
			// each time.
			Through: []Check{fails(""), executed(), asked(6, 18)},
		},
	)
}
