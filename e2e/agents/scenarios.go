package agents

import "slices"

const (
	planPrompt = "Read notes/plan.txt and tell me the launch code."
	rainPrompt = "How many days will it rain in Oslo? Tell me the reference of the forecast for three days."
)

// The calls that the tasks need.
var (
	readPlan    = Call{Name: "read_file", Arguments: arguments("path", planFile)}
	ranCat      = Call{Name: "run_command", Arguments: arguments("command", "cat "+planFile)}
	gotForecast = Call{Name: "get_forecast", Arguments: `{"city":"Oslo","days":3}`}
	readMissing = Call{Name: "read_file", Arguments: arguments("path", "missing/report.txt")}
	ranFind     = Call{Name: "run_command", Arguments: arguments("command", findSettings)}
	readBare    = Call{Name: "read_file", Arguments: arguments("path", "app-settings.toml")}
	ranPython   = Call{Name: "run_command", Arguments: arguments("command", "python total.py")}
	ranPython3  = Call{Name: "run_command", Arguments: arguments("command", "python3 total.py")}
	ranPoll     = Call{Name: "run_command", Arguments: arguments("command", poll)}
)

// planFiles are the files of the short tasks.
func planFiles() map[string]string { return map[string]string{planFile: planText} }

// Scenarios is the table.
func Scenarios() []Scenario {
	return slices.Concat(overflows(), tasks(), badCalls(), brokenStreams())
}

// tasks are scenarios of whole sessions.
func tasks() []Scenario {
	return []Scenario{
		{
			Name: "wrong-place", Want: "the model is told the path that an earlier search printed",
			Files: map[string]string{settingsPath: settingsText}, Prompts: []string{"Which port do the app settings (app-settings.toml) name?"},
			Play: looksInTheWrongPlace, End: []string{"The port is 8123."},
			Straight: []Check{says(gaveUp)},
			Through:  []Check{guided(settingsPath), asked(4, 4), repeated(readBare, 1), repeated(ranFind, 1)},
		},
		{
			Name: "no-python", Want: "the model is told of python3 where there is no python",
			Files: map[string]string{"total.py": scriptText}, Prompts: []string{"Run total.py with python and tell me the total."},
			Play: hasNoPython, End: []string{"The total is 42."},
			Straight: []Check{says(gaveUp)},
			Through:  []Check{guided("python3"), asked(3, 3), executed(ranPython, ranPython3)},
		},
		{
			Name: "never-learns", Want: "the fifth identical failure ends the turn with an explanation; a new prompt goes on",
			Files: planFiles(), Prompts: []string{"Read missing/report.txt and tell me what it says.", secondPrompt},
			Play: neverLearns, End: []string{saidCode},
			Straight: []Check{firstSays(gaveUp)},
			Through:  []Check{firstSays("I stopped here", "5 times"), stopped, repeated(readMissing, 5), asked(7+planned, 7+planned)},
		},
		{
			Name: "stopped-for-good", Want: "without a new prompt the explanation is what the user reads, and what pi prints with exit code 0",
			Files: planFiles(), Prompts: []string{"Read missing/report.txt and tell me what it says."},
			Play: neverLearns, End: []string{"I stopped here", "missing/report.txt", "5 times"}, Clients: []string{LoopPython, Vercel, Pi},
			Straight: []Check{says(gaveUp)},
			Through:  []Check{stopped, repeated(readMissing, 5), asked(5+planned, 5+planned)},
		},
		{
			Name: "never-learns-same-ids", Want: "the same with a model that gives all its calls one id",
			Files: planFiles(), Prompts: []string{"Read missing/report.txt and tell me what it says.", secondPrompt},
			Play: sameIDs(neverLearns), End: []string{saidCode}, Clients: []string{LoopPython, LoopNode, Vercel},
			Straight: []Check{firstSays(gaveUp)},
			Through:  []Check{firstSays("I stopped here", "5 times"), stopped, repeated(readMissing, 5), asked(7+planned, 7+planned)},
		},
		{
			Name: "keeps-trying", Want: "six different places that do not exist are no reason to stop: a plain proxy would let it finish",
			Files: planFiles(), Prompts: []string{"Find the plan of the launch and tell me the launch code."},
			Play: keepsTrying, End: []string{saidCode},
			Straight: []Check{says(saidCode)},
			Through:  []Check{asked(8+planned, 8+planned), repeated(readPlan, 1)},
		},
		{
			Name: "keeps-asking", Want: "nor are six different questions, although the framework hides what was wrong with each",
			Prompts: []string{rainPrompt}, Play: asksCities, End: []string{"Reference RAIN-Oslo-3"}, Clients: []string{OpenAIAgents},
			Straight: []Check{says("Reference RAIN-Oslo-3")},
			Through:  []Check{asked(8+planned, 8+planned), repeated(gotForecast, 1)},
		},
		{
			Name: "run-again", Want: "a second run of a task whose first run was stopped is a run of its own, although the model's ids are the same",
			Files: planFiles(), Prompts: []string{"Read missing/report.txt; if it is not there, notes/plan.txt. Tell me the launch code."},
			Play: fromZero, Times: 2, Clients: []string{LoopPython, LoopNode},
			Through: []Check{lastSays(saidCode), stopped},
		},
		{
			Name: "rough-road", Want: "a task goes through although every other answer has a fault, each time another one",
			Files: stoneFiles(), Prompts: []string{"Read the stones of the road one after another and tell me the last mark."},
			Play: roughRoad, End: []string{"The last mark is s2511."},
			Through: []Check{executed(readStones()...), sent(stones+1, stones+1), asked(2*stones-3, 2*stones+4)},
		},
		{
			Name: "fixes-slowly", Want: "a check that fails seven times in the same words is no reason to stop while the agent changes something in between",
			Files: map[string]string{"check.sh": checkText}, Prompts: []string{"Make check.sh pass."},
			Play: fixesSlowly, End: []string{"It works after 7 changes."},
			Straight: []Check{says("It works after 7 changes.")},
			Through:  []Check{executed(ranFixes()...), asked(2*fixes+1, 2*fixes+1)},
		},
		{
			Name: "finds-nothing", Want: "a search without a match is no failure: nothing is touched",
			Files: planFiles(), Prompts: []string{"Does the plan know of a rollback, an abort or a delay?"},
			Play: findsNothing, End: []string{"The plan has none of these words."},
			Through: []Check{untouched},
		},
		{
			Name: "provider-refuses-call", Want: "what a provider refuses of its own model is salvaged or asked again",
			Files: planFiles(), Prompts: []string{planPrompt}, Play: refusedCall, End: []string{saidCode},
			StraightOf: dies("", LoopPython, LoopNode, OpenAIAgents, LangGraph, PydanticAI, Vercel),
			Through:    []Check{executed(readPlan), sent(2, 2), asked(2, 3)},
		},
		{
			Name: "graceful", Want: "a refusal that nothing helps, in the middle of a session, ends the turn with the model's own explanation",
			Files: planFiles(), Prompts: []string{planPrompt}, Play: refusesToGoOn, End: []string{cannotGoOn},
			StraightOf: dies("", LoopPython, LoopNode, OpenAIAgents, LangGraph, PydanticAI, Vercel),
			Through:    []Check{executed(readPlan), asked(3, 4), madeByGateway("")},
		},
		{
			Name: "empty-turn", Want: "an answer with nothing in it is asked for again",
			Files: planFiles(), Prompts: []string{planPrompt}, Play: saysNothing, End: []string{saidCode},
			Through: []Check{executed(readPlan), sent(2, 2), asked(3, 3)},
		},
		{
			Name: "same-ids", Want: "ids that repeat from turn to turn are the model's own business: nothing is touched",
			Files:   map[string]string{planFile: planText, "notes/log.txt": logText},
			Prompts: []string{planPrompt}, Play: sameIDs(worksWell), End: []string{saidCode},
			Clients: []string{LoopPython, LoopNode, LangGraph, PydanticAI, Vercel, Pi}, // openai-agents refuses such ids
			Through: []Check{untouched},
		},
		{
			Name: "polls", Want: "the same call with a different result each time is no loop: nothing is touched",
			Prompts: []string{"Look at the ticks until they are enough."}, Play: waits, End: []string{"It took 9 looks."},
			Straight: []Check{says("It took 9 looks.")},
			Through:  []Check{repeated(ranPoll, polls), untouched},
		},
		{
			Name: "healthy", Want: "a task without faults is not touched, three times in a row",
			Files:   map[string]string{planFile: planText, "notes/log.txt": logText},
			Prompts: []string{planPrompt}, Play: worksWell, End: []string{saidCode}, Times: 3,
			Straight: []Check{says(saidCode)},
			Through:  []Check{untouched},
		},
	}
}

func readStones() (out []Call) {
	for i := 1; i <= stones; i++ {
		out = append(out, Call{Name: "read_file", Arguments: arguments("path", stoneName(i))})
	}
	return out
}

func ranFixes() (out []Call) {
	for i := 1; i <= fixes; i++ {
		out = append(out, Call{Name: "run_command", Arguments: arguments("command", fix(i))}, Call{Name: "run_command", Arguments: arguments("command", runCheck)})
	}
	return out
}
