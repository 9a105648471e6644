package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// Places, in lines, where errors stand when nothing is known of the outcome.
const (
	headPlaces  = 1
	tailPlaces  = 3
	shortResult = 8 // in a result of so few lines all are
	cluster     = 3 // errors so near to each other are one failure, named by the first
)

// serverAnswered is the rule of a connection that failed behind the network.
const serverAnswered = "server-answered"

// end is behind the last line that says anything itself: what follows it explains.
func (v *view) end() int {
	if v.ends == 0 && len(v.lines) > 0 {
		v.ends = len(v.lines)
		for v.ends > 0 && v.ends > len(v.lines)-60 && v.explains(v.ends-1) {
			v.ends--
		}
		if v.ends == 0 {
			v.ends = len(v.lines)
		}
	}
	return v.ends
}

// explains reports whether line i only explains the error above it.
func (v *view) explains(i int) bool {
	r := v.first(i, follows)
	return r != nil && (r.Sure == certainly || v.quotesSource(i) || v.match(v.lines[i].text, false) == nil)
}

// lineRules looks for the line that says why.
func (v *view) lineRules() finding {
	end := v.end()
	var best *rule.Rule
	at, guessed := -1, false
	for i := end - 1; i >= 0; i-- {
		r, guesses := v.evidence(i, end, best == nil || guessed)
		if r == nil {
			continue
		}
		if best != nil && category(best) == recovery.CommandNotFound && v.exit == 127 && at == end-1 {
			break // the shell itself says so, last
		}
		if best != nil && best.Name == serverAnswered {
			break // at the last address that was tried
		}
		if best == nil || guessed && !guesses || at-i <= cluster {
			best, at, guessed = r, i, guesses
		}
	}
	if best == nil || guessed {
		if line, ok := v.usageError(); ok {
			return finding{true, recovery.InvalidArguments, likely, "try-help", line}
		}
	}
	if best == nil {
		return finding{}
	}
	best, guessed, at, sure := v.resolveConflict(best, guessed, at, end)
	text := v.lines[at].text
	f := finding{true, category(best), certain, best.Name, text}
	switch {
	case !sure || v.is(at, opinion) || f.category == recovery.FileNotFound && programOrFile(text, ""):
		f.confidence = doubtful
	case v.outcome == failed && guessed && at > 0 && at < end-tailPlaces && !v.is(at, errorLine) && (end > 3*shortResult || v.is(at, logged) || v.warned(at)):
		f.confidence = possible // told on the way, not what it ended with
	case v.outcome == failed && guessed && at < end-1 && v.is(at, logged):
		f.confidence = possible
	case v.outcome == failed && guessed:
		f.confidence = worded
	case v.outcome == failed:
	case v.outcome == succeeded:
		f.confidence = worded
	case guessed && !v.stated(at, end):
		f.confidence = possible
	case guessed:
		f.confidence = worded
	default:
		f.confidence = likely
	}
	return v.runsProgram(f)
}

// category is what a rule on failures concludes.
func category(r *rule.Rule) recovery.Category { return recovery.Category(r.Class) }

// evidence is the rule that line i matches where an error may stand, nil if the
// line is none's, and whether it is only a guess there.
func (v *view) evidence(i, end int, withGuesses bool) (r *rule.Rule, guesses bool) {
	words, ok := v.place(i, end)
	if !ok {
		return nil, false
	}
	r = v.failure(&v.lines[i], i, words && withGuesses)
	switch {
	case r == nil:
		return nil, false
	case v.quotesSource(i), r.Sure == guess && v.heads(i),
		strings.HasPrefix(r.Name, "http-") && v.outcome != failed && v.repeated(i),
		v.atLongEnd(i, end) && r.Sure != certainly && !strings.HasPrefix(r.Name, "errno-"),
		v.excused(r),
		v.outcome == unknown && v.wentOnAfter(i),
		v.firstOf(&v.lines[i], i, noError, r.Class) != nil,
		v.outcome != failed && (v.listed(i) || v.quoted(i, r)):
		return nil, false
	case !v.is(i, logged):
		return r, r.Sure == guess
	case v.outcome != failed || !words || !withGuesses:
		return nil, false
	}
	return r, true
}

// heads reports whether line i is a heading of an error: the line below says why.
func (v *view) heads(i int) bool {
	return i+1 < len(v.lines) && strings.HasSuffix(v.lines[i].text, ":") && v.is(i+1, otherFailure) && !v.is(i, otherFailure)
}

// warning begins what a program only warns of.
var warning = recovery.NewPattern(`^\W*(?i:warn(?:ing)?)\b`)

// warned reports whether line i, or one of the two above it, is a warning.
func (v *view) warned(i int) bool {
	return slices.ContainsFunc(v.lines[max(0, i-2):i+1], func(l line) bool { return warning.MatchString(short(l.text)) })
}

// quoted reports whether line i was found or told of by some program: a match with
// file and line number in front, a log's entry. Compilers' messages look the same.
func (v *view) quoted(i int, r *rule.Rule) bool {
	q := v.firstOf(&v.lines[i], i, quotations, r.Class)
	return q != nil && q.Class != classNames[genuine] || v.firstOf(&v.lines[i], i, noError, r.Class) != nil
}

// quotesSource reports whether line i is source that a program quotes. What it
// says is the program's text, and no evidence of how the call went.
func (v *view) quotesSource(i int) bool {
	return v.is(i, source) || i+1 < len(v.lines) && v.is(i+1, carets)
}

// repeated reports whether the line after or before i is the same but for its
// numbers: a table of statuses.
func (v *view) repeated(i int) bool {
	shape := unnumbered(short(v.lines[i].text))
	return i > 0 && unnumbered(short(v.lines[i-1].text)) == shape || i+1 < len(v.lines) && unnumbered(short(v.lines[i+1].text)) == shape
}

// showsUsage is the line with which programs go on that show how they are used, or
// send to their help; the group is the name of one that sends to it as GNU's do.
var showsUsage = recovery.NewPattern("^(?i:\\s{0,4}usage(?::|$)|(?:[\\w.-]+: )?(?:try|see|run|use) ['‘`\"]?([\\w./-]+)(?: [\\w-]+){0,3} (?:-h|--help)\\b)")

// ofArguments are words of messages about a command line.
var ofArguments = recovery.NewPattern(`(?i)\b(?:options?|flags?|switch|arguments?|operands?|parameters?|subcommands?|unrecogni[sz]ed)\b`)

// usageError finds the message of a program that goes on with its usage: whenever the
// command line is wrong programs end so, and hardly ever else.
func (v *view) usageError() (line string, ok bool) {
	if v.outcome == succeeded {
		return "", false
	}
	for i := range min(len(v.lines), shortResult+1) {
		m := showsUsage.FindStringSubmatch(v.lines[i].text)
		if m == nil {
			continue
		}
		for at := range i {
			text := v.lines[at].text
			if (ofArguments.MatchString(text) || at == i-1 && m[1] != "" && strings.HasPrefix(text, m[1]+": ")) && !v.is(at, logged) && !v.is(at, quotations) {
				return text, true
			}
		}
		return "", false
	}
	return "", false
}

// listed reports whether line i is nothing but the system's words for an error, or
// a status with its name, and stands in a list of such.
func (v *view) listed(i int) bool {
	return v.is(i, meaning) && (i > 0 && v.is(i-1, meaning) || i+1 < len(v.lines) && v.is(i+1, meaning))
}

// place says whether line i may be an error's, and whether wording counts there.
func (v *view) place(i, end int) (words, ok bool) {
	if v.stderr >= 0 && i >= v.stderr && v.outcome == failed {
		return true, true
	}
	switch v.outcome {
	case failed:
		return i < 4 || i >= end-12, true
	case succeeded:
		return false, v.onlyErrors || i >= end-2 || i == 0 && end <= shortResult
	}
	ok = end <= shortResult || i < headPlaces || i >= v.report() || i >= end-tailPlaces && (i == end-1 || end < len(v.lines))
	return ok && v.stated(i, end), ok
}

// stated reports whether line i says that it is an error of the call, or stands in a report
// that does.
func (v *view) stated(i, end int) bool {
	return v.statement(i, end) || v.outcome == unknown && v.kind != trajectory.Reader && i > v.report() && !v.foreign(i)
}

// foreign reports whether line i is not said of this call: an entry of a log, source, what
// is no error, or what a program went on after.
func (v *view) foreign(i int) bool {
	return v.is(i, logged) || v.is(i, wentOn) || v.is(i, noError) || v.quotesSource(i)
}

var (
	// saysFailed begins a sentence that says what could not be done, byProgram one that
	// a program puts its name before.
	saysFailed = recovery.NewPattern(`^(?i:failed to|failure|unable to|could not|couldn['’]t|cannot|can['’]t) `)
	byProgram  = recovery.NewPattern(`^[\w./-]{1,40}: (?i:failed to|unable to|could not|couldn['’]t|cannot|can['’]t) `)
	// errorTitle stands alone above an error.
	errorTitle = recovery.NewPattern(`^(?i:error|fatal):$`)
)

// statement reports whether line i itself says that it is an error of the call, where
// nothing else tells how that went: what it says is no guess then.
func (v *view) statement(i, end int) bool {
	if v.outcome != unknown || v.kind == trajectory.Reader || v.foreign(i) {
		return false
	}
	text := v.lines[i].text
	return v.is(i, otherFailure) || v.namesTool(i) || end <= shortResult &&
		(i == end-1 && saysFailed.MatchString(text) || byProgram.MatchString(text) || i > 0 && errorTitle.MatchString(v.lines[i-1].text))
}

// namesTool reports whether a result is one line that names the tool that was called, as
// only what answers in its place does.
func (v *view) namesTool(i int) bool {
	name := v.call.Tool
	return len(v.lines) == 1 && v.kind != trajectory.Shell && strings.Contains(name, "_") && strings.Contains(v.lines[i].text, name)
}

// maxReport is the length of the longest report of a failure at the end of an output, in lines.
const maxReport = 12

// report is the line with which a report of a failure begins that the output ends
// with: "Error: …" with what it says below, as terraform, apt and docker print
// it. Without one it is the number of lines.
func (v *view) report() int {
	if v.reports == 0 {
		v.reports = len(v.lines) + 1
		for i := len(v.lines) - 1; i >= max(0, len(v.lines)-maxReport) && !v.is(i, wentOn); i-- {
			if q := v.first(i, quotations); v.is(i, otherFailure) && !v.is(i, logged) && !v.is(i, noError) && (q == nil || q.Class == classNames[genuine]) && !v.quotesSource(i) {
				v.reports = i + 1
			}
		}
	}
	return v.reports - 1
}

// atLongEnd reports whether line i is the end of a long output of unknown
// outcome that nothing follows: only the form of a shell or a system counts there.
func (v *view) atLongEnd(i, end int) bool {
	return v.outcome == unknown && v.stderr < 0 && i >= headPlaces && end > shortResult && end == len(v.lines) && i < v.report()
}

// endsWell are last lines that say that what was to be done was done, or are its result.
var endsWell = recovery.NewPattern(`(?i)(?:^|[^\w-])(?:done|finished|completed?|succe(?:ss|eded|ssful|ssfully)|ready|(?:re)?connected|ok)[.!]*$|^[{\[]".*[}\]]$`)

// denies are words with which such a line says the contrary.
var denies = recovery.NewPattern(`(?i)\b(?:not|no|never|fail\w*|error\w*|un\w+|cannot|can't|0)\b`)

// wentOnAfter reports whether what wrote line i did not end there: behind it the output
// ends with an entry of a log, or well.
func (v *view) wentOnAfter(i int) bool {
	last := len(v.lines) - 1
	text := short(v.lines[last].text)
	return i < last && (v.is(last, logged) || endsWell.MatchString(text) && !denies.MatchString(text))
}

// excused are rules of which a match is no failure of this call: with exit code 0
// only the forms count that a pipe may hide.
func (v *view) excused(r *rule.Rule) bool {
	return v.outcome == succeeded && r.Sure != certainly && !v.onlyErrors
}

// byOutcome decides without any known wording.
func (v *view) byOutcome() finding {
	f := finding{failed: true, category: recovery.CategoryNone, confidence: other, line: v.lastLine()}
	switch {
	case v.outcome == failed && v.hasExit:
		switch v.exit {
		case 127:
			f.category, f.confidence, f.rule = recovery.CommandNotFound, worded, "exit-127"
			return f
		case 1:
			if f.line == "" || f.line == "0" && len(v.lines) == 1 || v.noMatch() || diffHead.MatchString(v.text) {
				return finding{rule: "exit-one-no-match", confidence: possible}
			}
		case 141:
			return finding{rule: "exit-sigpipe", confidence: possible}
		}
		f.rule = "exit-code"
		return f
	case v.outcome == failed:
		f.rule = v.source
		return f
	case v.outcome == unknown && !v.data():
		if line, ok := v.otherFailure(); ok {
			f.line, f.rule, f.confidence = line, "other-error", possible
			return f
		}
	}
	return finding{}
}

// recordEnd is the last line of PowerShell's record of an error.
const recordEnd = "FullyQualifiedErrorId"

// otherFailure finds a failure of another kind where errors stand.
func (v *view) otherFailure() (line string, ok bool) {
	end := len(v.lines)
	if end > 0 && strings.HasPrefix(v.lines[0].text, "[ERROR]") && consoleList.MatchString(v.text) {
		return "", false
	}
	if end > 1 && strings.HasPrefix(strings.TrimLeft(v.lines[end-1].text, " +"), recordEnd) {
		return v.lines[0].text, true
	}
	for end > 1 && v.is(end-1, follows) {
		end--
	}
	for i := end - 1; i >= 0; i-- {
		if i != 0 && i < end-tailPlaces {
			i = 0
		}
		if v.is(i, otherFailure) && !v.is(i, logged) && !v.wentOnAfter(i) && !(i == 0 && end > 2*shortResult && v.kind == trajectory.Other) {
			return v.lines[i].text, true
		}
	}
	return "", false
}

// maxSummary bounds how far above the end a summary is looked for, in lines.
const maxSummary = 40

// unittestCount stands above unittest's OK, which is too short to tell alone.
const unittestCount = "Ran "

// summary is the line of the last summary of tests, -1 if there is none, and whether
// one of them, as far as the end is read, says that some failed. Where a suite did
// not run at all there is none.
func (v *view) summary() (at int, someFailed bool) {
	at = -1
	for i := len(v.lines) - 1; i >= 0 && i >= len(v.lines)-maxSummary; i-- {
		r := v.first(i, summaries)
		switch {
		case r == nil:
			continue
		case r.Class == classNames[testsNotRun]:
			return -1, false
		case r.Class == classNames[testsFailed]:
			someFailed = true
		case v.lines[i].text == "OK" && (i == 0 || !strings.HasPrefix(v.lines[i-1].text, unittestCount)):
			continue
		}
		at = max(at, i)
	}
	return at, someFailed
}

// tested judges the output of a test runner. What programs print while they are
// tested is the tests' business: only the summary counts, and what stands below it.
// Tests that failed are a failure without category: their author mends them.
func (v *view) tested() (f finding, ok bool) {
	at, someFailed := v.summary()
	switch {
	case at < 0:
		return finding{}, false
	case someFailed:
		f = v.byOutcome()
		if f.failed {
			f.category, f.line = recovery.CategoryNone, v.lines[at].text
		}
		return f, true
	}
	rest := *v
	rest.lines, rest.ends, rest.reports, rest.stderr = v.lines[at+1:], 0, 0, -1
	if v.stderr > at && v.outcome == failed {
		rest.stderr = v.stderr - at - 1
	} else if v.stderr > at {
		rest.lines = v.lines[at+1 : v.stderr] // the stream on which the tests wrote
	}
	if f = rest.errors(); f.failed {
		return f, true
	}
	if v.outcome == failed && v.source != "error-envelope" { // not just a first line that looks like a framework's
		return finding{true, recovery.CategoryNone, other, v.source, v.lines[at].text}, true
	}
	return finding{rule: "tests-passed"}, true
}

// editRefused reads what editors say about an edit that they did not apply.
func (v *view) editRefused() finding {
	if len(v.lines) == 0 || v.outcome == succeeded || v.kind == trajectory.Reader {
		return finding{}
	}
	r := v.first(0, edits)
	if r == nil {
		return finding{}
	}
	f := finding{true, recovery.InvalidArguments, worded, r.Name, v.lines[0].text}
	switch r.Class {
	case classNames[editRefused]:
		if r.Sure == guess {
			f.confidence = doubtful
		}
		return f
	case classNames[editOrder]:
		f.category, f.confidence = recovery.CategoryNone, doubtful
		return f
	}
	f.category, f.confidence = recovery.CategoryNone, doubtful // the new text has another fault, until its code is read
	for _, l := range v.lines[1:min(len(v.lines), 12)] {
		if strings.HasPrefix(l.text, "This is how") {
			break
		}
		if syntaxCodes.MatchString(l.text) {
			return finding{true, recovery.SyntaxError, certain, r.Name, l.text}
		}
	}
	return f
}

// syntaxCodes are the linter's codes for text that does not parse, as SWE-agent prints them.
var syntaxCodes = recovery.NewPattern(`\b(?:E999|E901|E902)\b|\b(?:SyntaxError|IndentationError|TabError)\b`)

// refusal finds a person's or a policy's no in the first lines of a short result.
func (v *view) refusal() (line string, ok bool) {
	if v.outcome == succeeded || len(v.lines) > 6 && v.outcome != failed || v.kind == trajectory.Reader && len(v.text) > 600 || len(v.text) > 4000 {
		return "", false
	}
	for i := range min(len(v.lines), 3) {
		if v.is(i, refusal) {
			return v.lines[i].text, true
		}
	}
	return "", false
}
