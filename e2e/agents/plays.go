package agents

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// patience is after how many requests a model gives up: no run is endless.
const patience = 14

const gaveUp = "I give up."

// bounded is a play whose model gives up at last.
func bounded(p Play) Play {
	return func(r *Request) Reply {
		if r.N >= patience {
			return done(gaveUp)
		}
		return p(r)
	}
}

const (
	planFile = "notes/plan.txt"
	planText = "Plan for the launch\n\nlaunch code: heron-4711\n"
)

var (
	launchCode = regexp.MustCompile(`launch code: ([a-z]+-\d+)`)
	rainCode   = regexp.MustCompile(`Reference (RAIN-\S+)`)
)

// readsPlan answers from the plan once it was read; ok says that it was.
func readsPlan(r *Request) (Reply, bool) {
	if m := r.find(launchCode); m != nil {
		return done("The launch code is %s.", m[1]), true
	}
	return Reply{}, false
}

const saidCode = "The launch code is heron-4711."

const (
	settingsPath = "archive/2024/regional/app-settings.toml"
	settingsText = "# regional settings\nport = 8123\n"
)

var (
	portLine     = regexp.MustCompile(`port = (\d+)`)
	notedPath    = regexp.MustCompile("[^\\s`'\"]*" + regexp.QuoteMeta(settingsPath))
	foundPath    = regexp.MustCompile(regexp.QuoteMeta(settingsPath))
	notedPython  = regexp.MustCompile(`\bpython3\b`)
	totalLine    = regexp.MustCompile(`total: (\d+)`)
	scriptText   = "print('total:', 6 * 7)\n"
	findSettings = "find . -name app-settings.toml"
)

// looksInTheWrongPlace searched the file, and reads it by its bare name until a
// note says the path that the search printed.
var looksInTheWrongPlace = bounded(func(r *Request) Reply {
	if m := r.find(portLine); m != nil {
		return done("The port is %s.", m[1])
	}
	if r.find(foundPath) == nil {
		return calls("", r.run(findSettings))
	}
	if path := notedPath.FindString(r.Note()); path != "" {
		return calls("", r.read(path))
	}
	return calls("", r.read("app-settings.toml"))
})

// hasNoPython runs a program that is not there until a note names another.
var hasNoPython = bounded(func(r *Request) Reply {
	if m := r.find(totalLine); m != nil {
		return done("The total is %s.", m[1])
	}
	if notedPython.MatchString(r.Note()) {
		return calls("", r.run("python3 total.py"))
	}
	return calls("", r.run("python total.py"))
})

const secondPrompt = "Then read notes/plan.txt and tell me the launch code."

// neverLearns repeats one failing call, whatever it is told, until the user
// wants something else.
var neverLearns = bounded(func(r *Request) Reply {
	if !strings.Contains(r.Prompt(), secondPrompt) {
		return calls("", r.read("missing/report.txt"))
	}
	if last, ok := readsPlan(r); ok {
		return last
	}
	return calls("", plan(r))
})

// elsewhere are wrong places for a plan.
var elsewhere = []string{"plan.txt", "docs/plan.txt", "launch/plan.txt", "notes/launch.txt", "notes/plan.md", "plans/launch.txt"}

// keepsTrying looks in one place after another. Only the last is right.
var keepsTrying = bounded(func(r *Request) Reply {
	if last, ok := readsPlan(r); ok {
		return last
	}
	if n := r.Turns(); n < len(elsewhere) {
		return calls("", r.read(elsewhere[n]))
	}
	return calls("", plan(r))
})

// asksCities asks for the forecast of one city after another. Only for the last
// there is one, and the tool's errors all are the same.
var asksCities = bounded(func(r *Request) Reply {
	if m := r.find(rainCode); m != nil {
		return done("Reference %s", m[1])
	}
	cities := []string{"Bergen", "Stavanger", "Trondheim", "Drammen", "Kristiansand", "Tromso"}
	if n := r.Turns(); n < len(cities) {
		return calls("", Call{Name: "get_forecast", Arguments: fmt.Sprintf(`{"city":%q,"days":3}`, cities[n])})
	}
	return calls("", forecast(r))
})

// polls is how often a task looks whether something is done.
const polls = 9

const poll = "echo tick >> ticks; wc -l ticks"

// waits asks the same until the answer is there; the answers differ.
var waits = bounded(func(r *Request) Reply {
	if r.Turns() < polls {
		return calls("", r.run(poll))
	}
	return done("It took %d looks.", polls)
})

// planned is how often the model is asked for a plan while its agent is stuck: once, at
// the third failure. The breaker stops the session before a second plan.
const planned = 1

// fromZero counts the ids of calls up from zero, as some models do, and fails
// five times in its first run, twice in its second one.
func fromZero(r *Request) Reply {
	const first = 5 + planned // the breaker answers the next
	if last, ok := readsPlan(r); ok {
		return last
	}
	c := r.read("missing/report.txt")
	if r.N >= first && r.Turns() >= 2 {
		c = plan(r)
	}
	if r.N > 3*patience {
		return done(gaveUp)
	}
	c.ID = fmt.Sprintf("call_%d", r.Turns())
	return calls("", c)
}

const cannotGoOn = "I cannot go on: the provider refused this conversation."

// refusesToGoOn is a provider that refuses the second step, whatever is sent, but
// not a question without calls.
var refusesToGoOn = bounded(func(r *Request) Reply {
	switch {
	case r.NoCalls || len(r.Tools) == 0:
		return done(cannotGoOn)
	case r.Turns() == 0:
		return calls("", plan(r))
	}
	return Reply{Status: http.StatusBadRequest, Error: string(marshal(object{"error": object{
		"message": "The conversation is in a state that this model does not process.", "type": "invalid_request_error", "param": nil, "code": nil,
	}}))}
})

// saysNothing answers once with nothing at all.
var saysNothing = bounded(func(r *Request) Reply {
	if last, ok := readsPlan(r); ok {
		if r.N == 1 {
			return Reply{}
		}
		return last
	}
	return calls("", plan(r))
})

// sameIDs is a play whose calls all have the same id.
func sameIDs(p Play) Play {
	return func(r *Request) Reply {
		reply := p(r)
		for i := range reply.Calls {
			reply.Calls[i].ID = fmt.Sprintf("call_%d", i)
		}
		return reply
	}
}

// fixes is how often a slow worker changes something until its check is content.
const fixes = 7

const (
	checkText = "n=$(cat fixes | wc -l)\nif [ $n -lt 7 ]; then echo 'FAILED (errors=1): test_launch expects code 4711'; exit 1; fi\necho all tests pass\n"
	runCheck  = "sh check.sh"
)

func fix(n int) string { return fmt.Sprintf("echo fix %d >> fixes", n) }

// fixesSlowly changes something and looks whether its check still fails, which
// it does with the same words, until it does not.
var fixesSlowly = func(r *Request) Reply {
	switch n := r.Turns(); {
	case r.N > 3*patience:
		return done(gaveUp)
	case n >= 2*fixes:
		return done("It works after %d changes.", fixes)
	case n%2 == 0:
		return calls("", r.run(fix(n/2+1)))
	}
	return calls("", r.run(runCheck))
}

// findsNothing searches for what is not there: no match is an answer.
var findsNothing = bounded(func(r *Request) Reply {
	words := []string{"rollback", "abort", "delay"}
	if n := r.Turns(); n < len(words) {
		return calls("", r.run("grep -c "+words[n]+" "+planFile))
	}
	return done("The plan has none of these words.")
})

// logText is what a healthy task reads: errors that are none of its own.
const logText = "10:01 ERROR open /srv/a: no such file or directory\n10:02 bash: frobnicate: command not found\n10:03 FATAL context_length_exceeded\n10:04 all well again\n"

// worksWell is a task without faults: a listing, a log, the plan, two calls at once.
var worksWell = bounded(func(r *Request) Reply {
	switch r.Turns() {
	case 0:
		return calls("I look around first.", r.run("ls notes"))
	case 1:
		return calls("", r.read("notes/log.txt"), r.run("wc -l notes/log.txt"))
	case 2:
		return calls("Now the plan.", plan(r))
	}
	last, _ := readsPlan(r)
	return last
})
