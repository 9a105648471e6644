package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// errorField is a field of an error that Node.js prints below its message.
var errorField = recovery.NewPattern(`^\s+(?:errno|code|syscall|address|port|path|hostname): `)

// Places, in lines, where errors stand when nothing is known of the outcome.
const (
	headPlaces  = 1
	tailPlaces  = 3
	shortResult = 8 // in a result of so few lines all are
	cluster     = 3 // errors so near to each other are one failure, named by the first
)

// lineRules looks for the line that says why.
func (v *view) lineRules() finding {
	end := len(v.lines)
	for end > 0 && end > len(v.lines)-60 && follows(v.lines[end-1]) && (v.quotesSource(end-1) || !v.says(v.lines[end-1])) {
		end--
	}
	if end == 0 {
		end = len(v.lines)
	}
	var best *rule
	at, how := -1, strict
	for i := end - 1; i >= 0; i-- {
		r, form := v.evidence(i, end, best == nil || how == loose)
		if r == nil {
			continue
		}
		if best != nil && best.category == recovery.CommandNotFound && v.exit == 127 && at == end-1 {
			break // the shell itself says so, last
		}
		if best != nil && best.name == serverAnswered {
			break // at the last address that was tried
		}
		if best == nil || how == loose && form != loose || at-i <= cluster {
			best, at, how = r, i, form
		}
	}
	if v.hasExit && v.exit == 127 && best != nil && scriptArgument.MatchString(v.lines[at]) {
		return finding{true, recovery.FileNotFound, certain, best.name, v.lines[at]}
	}
	if v.hasExit && v.exit == 127 && best != nil && best.category == recovery.FileNotFound {
		f := finding{true, recovery.CommandNotFound, certain, "exit-127", v.lines[at]}
		if scriptRun.MatchString(v.lines[at]) {
			f.confidence = doubtful // a file of the project as much as a program
		}
		return f
	}
	if best == nil || how == loose {
		if line, ok := v.usageError(end); ok {
			return finding{true, recovery.InvalidArguments, likely, "try-help", line}
		}
	}
	if best == nil {
		return finding{}
	}
	best, how, at, sure := v.settle(best, how, at, end)
	f := finding{true, best.category, certain, best.name, v.lines[at]}
	switch {
	case !sure || opinion.MatchString(f.line) || best.category == recovery.FileNotFound && programOrFile(f.line, "") || v.outcome == unknown && pathRun.MatchString(f.line):
		f.confidence = doubtful
	case v.outcome == failed && how == loose && at > 0 && at < end-tailPlaces && !errorLine.MatchString(f.line):
		f.confidence = possible // told on the way, not what it ended with
	case v.outcome == failed && how == loose && at < end-1 && logged(f.line):
		f.confidence = possible
	case v.outcome == failed && how == loose:
		f.confidence = worded
	case v.outcome == failed:
	case v.outcome == succeeded:
		f.confidence = worded
	case how == loose:
		f.confidence = possible
	default:
		f.confidence = likely
	}
	return v.runsProgram(f)
}

// evidence is the rule that line i matches where an error may stand, nil if the
// line is none's, and how much it says there.
func (v *view) evidence(i, end int, withLoose bool) (*rule, form) {
	words, ok := v.place(i, end)
	if !ok {
		return nil, strict
	}
	line := v.lines[i]
	r := match(line, words && withLoose)
	switch {
	case r == nil:
		return nil, strict
	case v.quotesSource(i),
		strings.HasPrefix(r.name, "http-") && (counted.MatchString(line) || v.outcome != failed && v.repeated(i)),
		v.atLongEnd(i, end) && r.form != piped && !strings.HasPrefix(r.name, "errno-"),
		r.name == "wget-connect" && i < end-1,
		v.excused(r), failedTest.MatchString(line), asserted.MatchString(line),
		v.outcome != failed && (v.listed(i) || quoted(r, line)),
		r.category == recovery.FileNotFound && library.MatchString(line):
		return nil, strict
	case !logged(line):
		return r, r.form
	case v.outcome != failed || !words || !withLoose:
		return nil, strict
	}
	return r, loose
}

// allErrors reports whether nothing was printed but errors: what follows in a pipe
// hid the exit code.
func (v *view) allErrors() bool { return v.ownErrors() || v.briefErrors() || v.statedErrors() }

// ownErrors reports whether npm, or programs that only read or copy, printed nothing
// but their own errors.
func (v *view) ownErrors() bool {
	for _, line := range v.lines {
		if bareCount.MatchString(line) {
			continue // wc behind the pipe
		}
		if npmLine.MatchString(line) {
			continue
		}
		program, _, _ := strings.Cut(line, ": ")
		if !readers[program] && !copiers[program] || match(line, false) == nil {
			return false
		}
	}
	return len(v.lines) > 0 && (len(v.lines) <= shortResult || npmLine.MatchString(v.lines[0]))
}

// repeated reports whether the line after or before i is the same but for its
// numbers: a table of statuses.
func (v *view) repeated(i int) bool {
	shape := numbers.ReplaceAllString(short(v.lines[i]), "0")
	return i > 0 && numbers.ReplaceAllString(short(v.lines[i-1]), "0") == shape ||
		i+1 < len(v.lines) && numbers.ReplaceAllString(short(v.lines[i+1]), "0") == shape
}

// npmLine is npm's: it prints such lines only where it fails.
var npmLine = recovery.NewPattern(`^npm (?:error|ERR!)(?: |$)`)

// bareCount is what wc prints.
var bareCount = recovery.NewPattern(`^\s*\d+$`)

var numbers = recovery.NewPattern(`\d+`)

// usageError finds the message of a program that goes on with "Try 'x --help'":
// GNU programs end so whenever the command line is wrong, and only then.
func (v *view) usageError(end int) (line string, ok bool) {
	if v.outcome == succeeded || end < 1 || end > shortResult || end >= len(v.lines) {
		return "", false
	}
	if !strings.Contains(v.lines[end], " --help") {
		return "", false
	}
	m := tryHelp.FindStringSubmatch(v.lines[end])
	return v.lines[end-1], m != nil && strings.HasPrefix(v.lines[end-1], m[1]+": ")
}

// listed reports whether line i is nothing but the system's words for an error, or
// a status with its name, and stands in a list of such.
func (v *view) listed(i int) bool {
	return meaning.MatchString(v.lines[i]) &&
		(i > 0 && meaning.MatchString(v.lines[i-1]) || i+1 < len(v.lines) && meaning.MatchString(v.lines[i+1]))
}

func short(line string) string { return line[:min(len(line), maxRuleLine)] }

// says reports whether a line that looks like a hint is itself a known error.
func (v *view) says(line string) bool {
	return !errorField.MatchString(line) && match(line, false) != nil
}

// place says whether line i may be an error's, and whether wording counts there.
func (v *view) place(i, end int) (words, ok bool) {
	if v.stderr >= 0 && i >= v.stderr && v.outcome == failed {
		return true, true
	}
	short := end <= shortResult
	switch v.outcome {
	case failed:
		if i < 4 || i >= end-12 {
			return true, true
		}
		return false, true
	case succeeded:
		if v.onlyErrors {
			return false, true
		}
		return false, i >= end-2 || i == 0 && end <= shortResult
	}
	return false, short || i < headPlaces || i >= end-tailPlaces && (i == end-1 || end < len(v.lines))
}

// atLongEnd reports whether line i is the end of a long output of unknown
// outcome that nothing follows: only the form of a shell or a system counts there.
func (v *view) atLongEnd(i, end int) bool {
	return v.outcome == unknown && v.stderr < 0 && i >= headPlaces && end > shortResult && end == len(v.lines)
}

// excused are lines that match a rule and are no failure of this call.
func (v *view) excused(r *rule) bool {
	// With exit code 0 only the forms count that a pipe may hide.
	return v.outcome == succeeded && r.form != piped && !v.onlyErrors
}

// quoted reports a line that some program found or logged: a match with file and
// line number in front, a log entry with its time. Compilers' messages look the same.
func quoted(r *rule, line string) bool {
	switch {
	case passed.MatchString(line) || codeLine.MatchString(line) || asserted.MatchString(line):
		return true
	case compiler.MatchString(line):
		return false
	case len(errorCode.FindAllString(line, 3)) == 3 && r.category != recovery.InvalidArguments:
		return true // a list of codes
	case tableRow.MatchString(line) || codeRow.MatchString(line):
		return true
	case wgetStatus.MatchString(line):
		return false
	case commit.MatchString(line), r.category != recovery.CommandNotFound && foundIn.MatchString(line):
		return true
	case blamed.MatchString(line) || explained.MatchString(line):
		return true
	case remark.MatchString(line) && !failing.MatchString(line):
		return true
	case systemWords.MatchString(line) && (!systemError.MatchString(line) || inBrackets.MatchString(line)):
		return true
	case mended.MatchString(line) && r.category != recovery.InvalidArguments && r.category != recovery.ToolNotFound:
		return true
	case grepLine.MatchString(line):
		return true
	case r.category == recovery.SyntaxError || r.category == recovery.CommandNotFound:
		return codeTail.MatchString(line) // compilers and shells put a file and a line in front, too
	}
	return foundLine.MatchString(line) || codeEnd.MatchString(line)
}

const systemPhrase = `(?i:permission denied|operation not permitted|read-only file system|no such file|no space left|connection refused|no route to host|network is unreachable)`

var (
	// mended are lines that say themselves that the program went on.
	mended = recovery.NewPattern(`(?i)\bretrying\b|\bcontinuing\b|^(?:\S+ )?warn(?:ing)?\b[:\s]|^(?:re-?)?(?:try|attempt)\b.{0,3}\d|^(?:caught|rescued|trapped|swallowed|intercepted|got (?:the |an )?expected)\b|^(?:\w+ ){0,3}as expected\b|^expected (?:error|exception|failure)\b|\b(?:handled|ignoring|ignored|skipping|skipped|falling back|fallback|recovered|non-fatal|using (?:the )?defaults?|connected after)\b|, so `)
	// systemWords are the system's words for an error; behind a program's name they stand
	// after a colon or in brackets (systemError), elsewhere they are counted or told of.
	systemWords = recovery.NewPattern(systemPhrase)
	systemError = recovery.NewPattern(`(?:^|^Got |[:(\]>] {0,2}|- |\. |\b(?:reading|writing), |\berror |[’']\s|\bfailed )(?:[A-Z]+: |\[?Errno -?\d+\]? )?` + systemPhrase)
	inBrackets  = recovery.NewPattern(`\([^()]*: ` + systemPhrase + `[^()]*\)$`)
	// remark has several words before the system's: a program's own sentence about an
	// error that it got; failing are the words of one that gave up.
	remark  = recovery.NewPattern(`^[A-Za-z][\w'-]*(?: [\w'()-]+){1,5}: (?:\[Errno -?\d+\] )?` + systemPhrase)
	failing = recovery.NewPattern(`(?i)\b(?:error|fail(?:ed|ure)?|cannot|can't|could not|couldn't|unable|fatal|child|connect|denied|refused)\b[^:]*:`)
	// library are the words for a library that is not installed: no file of the project is missing.
	library = recovery.NewPattern(`@INC\b|\bModuleNotFoundError\b|No module named|cannot load such file -- [^/.]|Cannot find (?:module|package) '[^./]|ClassNotFoundException|^lua\S*: .*module '[^']+' not found|there is no package called|cannot find package "|can't find crate`)
	// opinion are messages whose kind is a matter of opinion: a branch or a file, a program or a file.
	opinion = recovery.NewPattern(`pathspec '[\w/-]+' did not match|go\.mod file not found|^\w+ failed: No such file or directory at |(?i:run|exec|execute|spawn|start|launch) ['"]?\S*/\S*['"]?: No such file or directory$`)
	// pathRun is a shell that has nothing at a path that was run, or read from; scriptRun one that was a script.
	pathRun   = recovery.NewPattern(`^(?:\S*/)?(?:ba|z|da|k)?sh: line \d+: \.{0,2}/[^\s.]+: No such file or directory$`)
	scriptRun = recovery.NewPattern(`: \S+\.(?:sh|bash|zsh|py|pl|rb|js): No such file or directory$`)
	errorLine = recovery.NewPattern(`(?i)^(?:\[?(?:error|fatal)\b|[\w.-]{1,40}: (?:fatal: |error: )|\S+Error: )`)
	// counted is a number of things, no status.
	counted = recovery.NewPattern(`\b[1-5]\d\d (?:more |other |total )?(?:lines?|files?|bytes|rows?|items?|tests?|matches|results?|words?|entries|changes|packages|pages|ms|seconds|users|requests|tokens|characters)\b`)
	// meaning is a line of a list of errors and their names; blamed is one of git blame.
	meaning = recovery.NewPattern(`^(?:(?:E[A-Z]{2,14}|\d{1,3})[ :=|]\s*[A-Za-z][A-Za-z -]{2,40}|(?:Permission denied|Operation not permitted|Read-only file system|No such file or directory|No space left on device|Connection (?:refused|timed out|reset by peer)|No route to host|Network is unreachable))$`)
	blamed  = recovery.NewPattern(`^\^?[0-9a-f]{7,40} .{0,80}?\d+\) `)
	// commit is a line of git log --oneline; foundIn one of grep, without a number: programs
	// set a space behind the name of a file.
	commit  = recovery.NewPattern(`^[*|/\\ ]*[0-9a-f]{7,40} (?:\([^)]{1,100}\) )?[A-Za-z"'\[]`)
	foundIn = recovery.NewPattern(`^(?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z]\w{0,9}:[^\s:\d]`)
	// explained is a sentence on what an error means.
	explained = recovery.NewPattern(`(?i)\b(?:means|stands for|indicates|refers to)\b`)
	// failedTest is the name of a test that failed.
	failedTest = recovery.NewPattern(`^\s*(?:FAIL(?:ED)?:?\s|--- FAIL:|not ok\s|[✗✕×●]\s)`)
	// grepLine begins with a line's number and no file; codeTail ends like a statement of a program.
	grepLine = recovery.NewPattern(`^\d{1,7}[:-]\S`)
	codeTail = recovery.NewPattern(`(?:\\n["'].*;|\$')$`)
	// codeRow is a line of a table of codes.
	codeRow    = recovery.NewPattern(`^\s*E(?:[A-QS-Z0-9][A-Z0-9]|R[A-QS-Z0-9])[A-Z0-9]{1,12}(?:\s{2,}|\s*$|\s+\d)`)
	wgetStatus = recovery.NewPattern(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ERROR \d{3}: `)
	// scriptArgument is a shell that was called with a script that is not there.
	scriptArgument = recovery.NewPattern(`^(?:\S*/)?(?:ba|z|da|k)?sh: [^:]{1,200}\.(?:sh|bash|zsh): No such file or directory$`)
	tryHelp        = recovery.NewPattern("^(?:[\\w.-]+: )?[Tt]ry ['‘`]([\\w.-]+)(?: [\\w-]+)* --help['’`]")
	tableRow       = recovery.NewPattern(`^"?[\w.-]*"?,[^\s,]*,\S`)
	asserted       = recovery.NewPattern(`^(?:\w+\.)*AssertionError\b|^E\s+(?:Assertion|assert)`)
	compiler       = recovery.NewPattern(`^[^\s:]{1,200}:\d+(?::\d+)?: (?:fatal )?error: `)
	errorCode      = recovery.NewPattern(`\bE[A-Z0-9]{3,14}\b`)
	passed         = recovery.NewPattern(`(?:\.\.\.\s?(?:ok|passed|skipped)|\bPASS(?:ED)?|\b(?:ok|OK))\s*(?:\[.*%\]|\(.*s\))?$|^\s*(?:✓|✔|√|ok \d|PASS\b|--- PASS)`)
	codeLine       = recovery.NewPattern(`^\s*(?:(?:export|import|return|case|const|var|let|if|else|throw|raise|typedef)\s|[}{"]|[\w"]+:\s+["'].*,$|#\s*(?:define|include|if)|//|/\*|\*|<\w|[a-z][\w.]*\(.*["'].*\)+[;,]?$)`)
	codeEnd        = recovery.NewPattern(`(?:[{;]|\$')$|^\s*['"].*,$|^\s*\S+ += `)
	foundLine      = recovery.NewPattern(`^(?:\S{1,300}:)?\d+[:-]|^\[?\d{4}-\d\d-\d\d|^\[?\d\d:\d\d:\d\d|^[IWEF]\d{4} \d\d:\d\d:\d\d|^[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d|^[\w.-]{1,40} +\| |^(?:time|level|ts)=|^\s*(?:[#<>*|•●-]+|//)\s`)
	// schemaProblems is a list of zod's or pydantic's problems and nothing else.
	schemaProblems = recovery.NewPattern(`^\[\s*\{[^{}]*"(?:code|type)":\s*"(?:invalid_type|unrecognized_keys|invalid_union|invalid_enum_value|missing|extra_forbidden|\w+_type|\w+_parsing|literal_error)"`)
	shellName      = recovery.NewPattern(`^(?:\S*/)?(?:ba|z|da|k|a|fi)?sh$`)
	numbered       = recovery.NewPattern(`^\s*(?:L?\d+[:|→\t]|\S+:\d+[:\s])`)
	errorCall      = recovery.NewPattern(`(?i)^(?:error|action|invalid (?:input|arguments?|params)|mcp error|tool|input ?validation|validation)\b`)
	readerError    = recovery.NewPattern(`(?i)^(?:error\b|E[A-Z]{3,12}: |\[error\]|failed to |could not |cannot |can't |unable to |\S+Error: |request failed|fetch failed|http error|an error occurred)`)
)
