package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// Positions, in lines, where errors usually are if the outcome is unknown.
const (
	tailPlaces  = 3
	shortResult = 8 // a result of at most this many lines is searched completely
	cluster     = 3 // errors at most this many lines apart are one failure, named by the first
)

// end returns the index after the last line that does not only explain an earlier one.
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
	return r != nil && (r.Sure == certainly || v.quotesSource(i) || v.failure(&v.lines[i], -1, false) == nil)
}

// lineRules looks for the line that names the failure.
func (v *view) lineRules() finding {
	end := v.end()
	best, guessed, at := v.namingLine(end)
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
	case guessed && v.duringRun(at, end):
		f.confidence = possible
	case guessed || v.outcome == succeeded:
		f.confidence = worded
	case v.outcome == unknown:
		f.confidence = likely
	}
	return v.runsProgram(f)
}

// duringRun reports whether line at seems to be about an error during the run, and not about its end.
func (v *view) duringRun(at, end int) bool {
	if v.is(at, logged) {
		return at < end-1
	}
	return at > 0 && at < end-tailPlaces && (end > 3*shortResult || v.warned(at))
}

// namingLine returns the rule that names the failure and its line: the last line with evidence, or the first of the lines
// just above it, whose errors it only continues. A guess counts only if nothing else does.
func (v *view) namingLine(end int) (best *rule.Rule, guessed bool, at int) {
	for i := end - 1; i >= 0; i-- {
		r, guesses := v.evidence(i, end, best == nil || guessed)
		if r == nil {
			continue
		}
		if best != nil && v.exit == 127 && at == end-1 {
			break // the shell itself says so, in its last line
		}
		if best != nil && best.Name == "server-answered" {
			break // at the last address that was tried, after the server was reached
		}
		if best == nil || guessed && !guesses || at-i <= cluster {
			best, at, guessed = r, i, guesses
		}
	}
	return best, guessed, at
}

// category returns the category of a rule about failures.
func category(r *rule.Rule) recovery.Category { return recovery.Category(r.Class) }

// evidence returns the failure rule that matches line i if an error may be there, or nil, and whether the match
// is only a guess.
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

// heads reports whether line i is the heading of an error that the next line names.
func (v *view) heads(i int) bool {
	return i+1 < len(v.lines) && strings.HasSuffix(v.lines[i].text, ":") && v.is(i+1, otherFailure) && !v.is(i, otherFailure)
}

// warning matches the beginning of a program's warning.
var warning = recovery.NewPattern(`^\W*(?i:warn(?:ing)?)\b`)

// warned reports whether line i or one of the two lines above it is a warning.
func (v *view) warned(i int) bool {
	return slices.ContainsFunc(v.lines[max(0, i-2):i+1], func(l line) bool { return warning.MatchString(short(l.text)) })
}

// quoted reports whether a program found or logged line i: a match after a file and line number, a log entry.
// Messages of compilers look the same.
func (v *view) quoted(i int, r *rule.Rule) bool {
	q := v.firstOf(&v.lines[i], i, quotations, r.Class)
	return q != nil && q.Class != classNames[genuine] || v.firstOf(&v.lines[i], i, noError, r.Class) != nil
}

// quotation reports whether line i is quoted by its form, or says that the program continued.
func (v *view) quotation(i int) bool {
	q := v.first(i, quotations)
	return q != nil && q.Class != classNames[genuine]
}

// quotesSource reports whether line i is quoted source code. Its words are the program's text, and no evidence
// about the call.
func (v *view) quotesSource(i int) bool {
	return v.is(i, source) || i+1 < len(v.lines) && v.is(i+1, carets)
}

// repeated reports whether a neighbour of line i is the same except for its numbers, as in a table of statuses.
func (v *view) repeated(i int) bool {
	shape := unnumbered(short(v.lines[i].text))
	return i > 0 && unnumbered(short(v.lines[i-1].text)) == shape || i+1 < len(v.lines) && unnumbered(short(v.lines[i+1].text)) == shape
}

// showsUsage matches a line with which a program shows its usage or refers to its help; the group is the
// program's name in GNU's form.
var showsUsage = recovery.NewPattern("^(?i:\\s{0,4}usage(?::|$)|(?:[\\w.-]+: )?(?:try|see|run|use) ['‘`\"]?([\\w./-]+)(?: [\\w-]+){0,3} (?:-h|--help)\\b)")

// ofArguments matches words of messages about a command line.
var ofArguments = recovery.NewPattern(`(?i)\b(?:options?|flags?|switch|arguments?|operands?|parameters?|subcommands?|unrecogni[sz]ed)\b`)

// usageError finds the message before a program's usage: programs end like this if the command line is wrong,
// and rarely otherwise.
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

// listed reports whether line i consists only of the system's words for an error, or of a status with its name,
// and is part of a list of these.
func (v *view) listed(i int) bool {
	return v.is(i, meaning) && (i > 0 && v.is(i-1, meaning) || i+1 < len(v.lines) && v.is(i+1, meaning))
}

// place reports whether line i may be an error's, and whether a guess counts there.
func (v *view) place(i, end int) (words, ok bool) {
	switch v.outcome {
	case failed:
		return i < 4 || i >= end-12, true
	case succeeded:
		return false, v.onlyErrors || i >= end-2 || i == 0 && end <= shortResult
	}
	ok = end <= shortResult || i == 0 || i >= v.report() || i >= end-tailPlaces && (i == end-1 || end < len(v.lines))
	return ok && v.stated(i, end), ok
}

// stated reports whether line i says that it is an error of the call, or belongs to a report that does.
func (v *view) stated(i, end int) bool {
	return v.statement(i, end) || v.outcome == unknown && v.kind != trajectory.Reader && i > v.report() && !v.foreign(i)
}

// foreign reports whether line i is not about this call: a log entry, source code, not an error, or an error
// after which the program went on.
func (v *view) foreign(i int) bool {
	return v.is(i, logged) || v.is(i, wentOn) || v.is(i, noError) || v.quotesSource(i)
}

var (
	// couldNot matches a sentence that says what could not be done, byProgram one after a program's name.
	couldNot  = recovery.NewPattern(`^(?i:failed to|failure|unable to|could not|couldn['’]t|cannot|can['’]t) `)
	byProgram = recovery.NewPattern(`^[\w./-]{1,40}: (?i:failed to|unable to|could not|couldn['’]t|cannot|can['’]t) `)
	// errorTitle matches a title above an error.
	errorTitle = recovery.NewPattern(`^(?i:error|fatal):$`)
)

// statement reports whether line i says that it is an error of the call while the outcome is unknown. Such a
// line is not a guess.
func (v *view) statement(i, end int) bool {
	if v.outcome != unknown || v.kind == trajectory.Reader || v.foreign(i) {
		return false
	}
	text := v.lines[i].text
	return v.is(i, otherFailure) || v.namesTool(i) || end <= shortResult &&
		(i == end-1 && couldNot.MatchString(text) || byProgram.MatchString(text) || i > 0 && errorTitle.MatchString(v.lines[i-1].text))
}

// namesTool reports whether the result is one line that names the called tool, as only an error in place of the
// tool's result does.
func (v *view) namesTool(i int) bool {
	name := v.call.Tool
	return len(v.lines) == 1 && v.kind != trajectory.Shell && strings.Contains(name, "_") && strings.Contains(v.lines[i].text, name)
}

// maxReport limits a failure report at the end of an output, in lines.
const maxReport = 12

// report returns the index of the line that begins a failure report at the end of the output: "Error: …" with
// its explanation below, as terraform, apt and docker print it. Without a report it returns the number of lines.
func (v *view) report() int {
	if v.reports == 0 {
		v.reports = len(v.lines) + 1
		for i := len(v.lines) - 1; i >= max(0, len(v.lines)-maxReport) && !v.is(i, wentOn) && !v.succeeds(i); i-- {
			if v.is(i, otherFailure) && !v.is(i, logged) && !v.is(i, noError) && !v.quotation(i) && !v.quotesSource(i) {
				v.reports = i + 1
			}
		}
	}
	return v.reports - 1
}

// atLongEnd reports whether line i is at the end of a long output of unknown outcome, with no explanation after
// it: only forms of a shell or a system count there.
func (v *view) atLongEnd(i, end int) bool {
	return v.outcome == unknown && v.stderr < 0 && i > 0 && end > shortResult && end == len(v.lines) && i < v.report()
}

// endsWell matches last lines that state success or are a result.
var endsWell = recovery.NewPattern(`(?i)(?:^|[^\w-])(?:done|finished|completed?|succe(?:ss|eded|ssful|ssfully)|ready|(?:re)?connected|ok)[.!]*[ =*-]*$|(?-i:^(?:Switched|Created|Updated|Saved|Installed|Copied|Moved|Added|Applied|Built|Generated|Deployed|Uploaded|Downloaded|Published|Wrote) )|^\W*success: |\bsuccessfully \w+ed\b|^[{\[]".*[}\]]$`)

// denies matches words that negate such a line.
var denies = recovery.NewPattern(`(?i)\b(?:not|no|never|fail\w*|error\w*|un\w+|cannot|can't)\b|(?:^|[^\w.])0(?:[^\w.]|$)`)

// wentOnAfter reports whether the program went on after line i: the output ends with a log entry, or
// successfully.
func (v *view) wentOnAfter(i int) bool {
	last := len(v.lines) - 1
	return i < last && (v.is(last, logged) || v.succeeds(last))
}

// succeeds reports whether line i states success or is a result.
func (v *view) succeeds(i int) bool {
	text := short(v.lines[i].text)
	return endsWell.MatchString(text) && !denies.MatchString(text)
}

// excused reports whether a match of the rule is not a failure of this call: with exit code 0 only forms that
// prove a failure behind a pipe count, and no missing program for which the command line has another one.
func (v *view) excused(r *rule.Rule) bool {
	return v.outcome == succeeded && (r.Sure != certainly && !v.onlyErrors || category(r) == recovery.CommandNotFound && strings.Contains(v.call.Line(), "||"))
}

// byOutcome decides whether a result is a failure if no rule knows its wording: by the outcome of its call.
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
		if line, ok := v.otherFailure(); ok {
			f.line = line
		}
		f.rule = "exit-code"
		return f
	case v.outcome == failed:
		if f.rule = v.source; len(v.lines) > 0 {
			at := v.end() - 1
			for at > 0 && v.is(at, wrapper) {
				at--
			}
			f.line = v.lines[at].text
		}
		return f
	case v.outcome == unknown && !v.data():
		if line, ok := v.otherFailure(); ok {
			f.line, f.rule, f.confidence = line, "other-error", possible
			return f
		}
		if line, ok := v.briefFailure(); ok {
			f.line, f.rule, f.confidence = line, "brief-failure", possible
			return f
		}
	}
	return finding{}
}

// recordEnd is in the last line of PowerShell's error record.
const recordEnd = "FullyQualifiedErrorId"

// ofError matches the last line of pip's explanation of an error, all that tail leaves of it.
var ofError = recovery.NewPattern(`^(?:note: This (?:error|is an issue)\b|hint: See (?:above for details|PEP 668)\b)`)

// otherFailure finds a failure of no known category where errors usually are.
func (v *view) otherFailure() (line string, ok bool) {
	end := len(v.lines)
	if listsMessages(v.text) {
		return "", false
	}
	if end > 1 && strings.HasPrefix(strings.TrimLeft(v.lines[end-1].text, " +"), recordEnd) {
		return v.lines[0].text, true
	}
	if end > 0 && ofError.MatchString(v.lines[end-1].text) {
		return v.lines[end-1].text, true
	}
	for end > 1 && v.is(end-1, follows) {
		end--
	}
	for i := end - 1; i >= 0; i-- {
		if i < end-tailPlaces && i < v.report() {
			i = 0
		}
		if v.is(i, otherFailure) && !v.is(i, logged) && !v.is(i, wentOn) && !v.wentOnAfter(i) {
			return v.lines[i].text, true
		}
	}
	return "", false
}

// Limits of a result that one sentence can explain as a whole.
const (
	briefLines = 4
	briefText  = 800 // bytes
)

// briefFailure finds a sentence that says, as the first or last line of a short result, that the call failed, or a
// program's usage that was not asked for.
func (v *view) briefFailure() (line string, ok bool) {
	if len(v.lines) == 0 || v.kind == trajectory.Code || v.tells() {
		return "", false
	}
	first, brief := v.lines[0].text, len(v.lines) <= briefLines && len(v.text) <= briefText
	if (brief || v.kind == trajectory.Editor) && v.refusedArguments(0) { // below it an editor shows the file
		return first, true
	}
	if !brief {
		return "", false
	}
	if v.unfinished && refuses(first) {
		return first, true
	}
	command := v.call.Line()
	if v.prints(nil) || v.kind == trajectory.Shell && command == "" && !strings.Contains(v.call.Arguments, `":`) || v.inlineCode() {
		return "", false
	}
	if v.lacksResource(first) || v.saysFailed(0) {
		return first, true
	}
	if v.kind == trajectory.Shell { // a program may report its work first and fail at the end; other tools begin with the failure
		last := len(v.lines) - 1
		for last > 0 && v.is(last, follows) {
			last--
		}
		if v.saysFailed(last) {
			return v.lines[last].text, true
		}
	}
	return first, showsUsage.MatchString(first) && !asksUsage.MatchString(v.call.Tool+" "+command)
}

// saysFailed reports whether line i of a short result says that the call failed. Where it is the only line, it is no entry
// among others of a log or of tests.
func (v *view) saysFailed(i int) bool {
	text := v.lines[i].text
	return v.is(i, shortFailure) && !v.is(i, goesOn) && (len(v.lines) == 1 || !v.foreign(i)) && !v.quotation(i) && !v.warned(i) &&
		!v.wentOnAfter(i) && !strings.Contains(v.call.Line(), text)
}

// codeFlag matches a command that passes code to an interpreter, whose output is what the code prints.
var codeFlag = recovery.NewPattern(`\b(?:python[\d.]*|node|perl|ruby|php|deno|bun) (?:-\w+ )*-(?:c|e|r|p|E)\b`)

// inlineCode reports whether the command passes code to an interpreter.
func (v *view) inlineCode() bool { return codeFlag.MatchString(v.call.Line()) }

// tells reports whether the tool passes on what a person or a model says.
func (v *view) tells() bool {
	return slices.ContainsFunc(trajectory.NameWords(v.call.Tool), func(w string) bool { return v.rules.words["talkers"][w] })
}

// asksUsage matches a command line that asks for a program's usage.
var asksUsage = recovery.NewPattern(`(?:^|[\s-])(?:-h|-\?|help|man|usage)\b`)

// maxSummary limits how far above the end a summary is searched, in lines.
const maxSummary = 40

// unittestCount is in the line above unittest's OK, which is too short to be a sign alone.
const unittestCount = "Ran "

// summary returns the index of the last test summary, or -1, and whether one of the summaries near the end
// reports failures. If a suite did not run at all, there is no summary.
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

// tested judges the output of a test runner. Output during the tests does not count, only the summary and the
// lines below it. Failed tests are a failure without category, because the fix is up to their author.
func (v *view) tested() (f finding, ok bool) {
	at, someFailed := v.summary()
	switch {
	case at < 0:
		return finding{}, false
	case someFailed:
		if f = v.byOutcome(); v.outcome == unknown && (v.kind != trajectory.Shell || v.call.Line() != "") {
			f = finding{failed: true, confidence: possible, rule: "tests-failed"}
		}
		if f.failed {
			f.category, f.line = recovery.CategoryNone, v.lines[at].text
		}
		return f, true
	}
	rest := *v
	rest.lines, rest.ends, rest.reports, rest.stderr = v.lines[at+1:], 0, 0, -1
	if v.stderr > at && v.outcome != failed {
		rest.lines = v.lines[at+1 : v.stderr] // the stream that the tests wrote to
	}
	if f = rest.errors(); f.failed {
		return f, true
	}
	if v.outcome == failed && v.source != "error-envelope" { // more than a first line that looks like a framework's error
		return finding{true, recovery.CategoryNone, other, v.source, v.lines[at].text}, true
	}
	return finding{rule: "tests-passed"}, true
}

// editRefused finds an editor's message about an edit that it did not apply.
func (v *view) editRefused() finding {
	if len(v.lines) == 0 || v.outcome == succeeded || v.kind == trajectory.Reader {
		return finding{}
	}
	at := 0
	if v.source == "json-error" && len(v.lines) > 1 && !strings.Contains(v.lines[0].text, " ") { // the error's name
		at = 1
	}
	r := v.first(at, edits)
	if r == nil {
		return finding{}
	}
	f := finding{true, recovery.InvalidArguments, worded, r.Name, v.lines[at].text}
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
	f.category, f.confidence = recovery.CategoryNone, doubtful // the new text has another fault, unless a code says which
	listed := false
	for _, l := range v.lines[1:min(len(v.lines), 12)] {
		if strings.HasPrefix(l.text, "This is how") {
			break
		}
		if !listed && strings.HasPrefix(l.text, "- ") {
			f.line, listed = l.text, true
		}
		if syntaxCodes.MatchString(l.text) {
			return finding{true, recovery.SyntaxError, certain, r.Name, l.text}
		}
	}
	return f
}

// syntaxCodes matches the linter codes for text that does not parse, as SWE-agent prints them.
var syntaxCodes = recovery.NewPattern(`\b(?:E999|E901|E902)\b|\b(?:SyntaxError|IndentationError|TabError)\b`)

// refusal finds a person's or a policy's refusal in the first lines of a short result.
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
