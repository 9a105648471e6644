package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// fewLines limits the lines of a reading tool's own error.
const fewLines = 6

// hintLines limits how many lines at the beginning may be hints.
const hintLines = 3

// judgeData looks for an error of the reading tool or command itself. Everything else that the result says is content.
func (v *view) judgeData() finding {
	data := finding{rule: "data"}
	switch {
	case len(v.lines) == 0:
		return finding{}
	case v.structured && schemaProblems.MatchString(v.text):
		return finding{true, recovery.InvalidArguments, worded, "schema-problems", firstLine(v.text)}
	case v.structured:
		return finding{rule: "json-data"}
	case v.outcome == succeeded && v.kind == trajectory.Reader, listsMessages(v.text):
		return data
	}
	if f := v.programsError(); f.failed {
		return f
	}
	r, first := v.failure(&v.lines[0], 0, false), v.lines[0].text
	switch {
	case v.kind == trajectory.Reader && strings.HasPrefix(first, tracebackSign) && v.namesFile(v.lastLine()): // the reader's own
		return v.traceback()
	case v.kind == trajectory.Reader && len(v.lines) > 1 && v.is(0, logged):
		return data
	case r != nil && (v.refusesCall(r) || len(v.lines) <= fewLines/2 && v.namesFile(first)):
		return v.findingOf(r, &v.lines[0], likely)
	case v.kind != trajectory.Reader:
		return data
	}
	if f := v.readersError(r); f.failed {
		return f
	}
	return data
}

// programsError finds an error that a program of the command line prints under its name, as the first or the last line.
func (v *view) programsError() finding {
	last := len(v.lines) - 1
	for _, i := range []int{0, last} {
		text := v.lines[i].text
		own, git := v.speaks(text)
		if !own || i == 0 && last > 0 && strings.Contains(v.call.Line(), "||") { // the alternative printed more
			continue
		}
		if r := v.failure(&v.lines[i], i, git && v.namesFile(text)); r != nil && !v.excused(r) {
			return v.runsProgram(v.findingOf(r, &v.lines[i], likely))
		}
		if v.outcome == unknown && !git && v.is(i, otherFailure) && !v.is(i, logged) {
			return finding{true, recovery.CategoryNone, possible, "other-error", text}
		}
	}
	return finding{}
}

// speaks reports whether a line begins with the name of a program of the command line or of its shell, or comes from a
// script that changes the directory for the command. git's errors have no name before them.
func (v *view) speaks(line string) (own, git bool) {
	name, _, ok := strings.Cut(line, ": ")
	programs := v.call.Command().Programs
	if !ok || len(programs) == 0 {
		return false, false
	}
	name = strings.ToLower(strings.TrimRight(name, " ")) // PowerShell puts a space before the colon
	if (name == "fatal" || name == "error") && !slices.ContainsFunc(programs, notGit) {
		return true, true
	}
	if shellName.MatchString(name) || slices.Contains(programs, name) {
		return true, false
	}
	_, about, changes := strings.Cut(line, ": cd: ")
	dir, _, _ := strings.Cut(about, ": ")
	return changes && strings.Contains(v.call.Line(), "cd "+dir), false
}

// refusesCall reports whether the rule that matches the first line of a short result is about the call itself: its
// arguments, or a tool that does not exist.
func (v *view) refusesCall(r *rule.Rule) bool {
	aboutCall := category(r) == recovery.InvalidArguments || category(r) == recovery.ToolNotFound
	return aboutCall && len(v.lines[0].text) < 300 && len(v.text) < 4000 && (len(v.lines) <= 2 || v.is(0, callError)) && !v.quoted(0, r)
}

// readersError finds a reading tool's error at the beginning of a short result. r is the rule that matches the first line,
// or nil.
func (v *view) readersError(r *rule.Rule) finding {
	first, own := v.lines[0].text, v.is(0, readerError)
	if r == nil && !own {
		return finding{}
	}
	for i := 1; i < min(len(v.lines), hintLines); i++ {
		if v.is(i, hint) { // of the reading tool, below its error
			v.lines = v.lines[:i]
		}
	}
	switch {
	case len(v.lines) > fewLines, len(v.text) > 1500, v.is(0, numbered):
		return finding{}
	case r != nil && (len(v.lines) <= 2 || own) && !v.quoted(0, r):
		return v.findingOf(r, &v.lines[0], likely)
	case !own || len(v.lines) > 3:
		return finding{}
	}
	if r := v.failure(&v.lines[0], 0, true); r != nil && len(v.lines) <= 2 {
		return v.findingOf(r, &v.lines[0], worded)
	}
	return finding{true, recovery.CategoryNone, other, "reader-error", first}
}

// readerRefused reports whether a reading tool returned one sentence that says that it failed: about its arguments, or
// any if it was given no file or names the file.
func (v *view) readerRefused() bool {
	if v.outcome != unknown || len(v.lines) != 1 || len(v.text) > briefText/4 || v.structured {
		return false
	}
	if v.kind == trajectory.Reader {
		return v.refusedArguments(0) || (len(v.call.Files()) == 0 || v.namesFile(v.text)) && v.is(0, shortFailure) && !v.quotation(0)
	}
	programs := v.call.Command().Programs // a listing has names, and no sentences
	return len(programs) == 1 && (programs[0] == "ls" || programs[0] == "find") && strings.Count(v.text, " ") > 2 && v.is(0, shortFailure) && !v.quotation(0)
}

// notGit reports whether a program is not git, whose errors have no program name before them.
func notGit(program string) bool { return !strings.HasPrefix(program, "git ") }

// namesFile reports whether a line names a file of the call: such an error is the call's own and not a file's
// content.
func (v *view) namesFile(line string) bool {
	return slices.ContainsFunc(v.call.Files(), func(f trajectory.File) bool { return len(f.Path) > 3 && strings.Contains(line, f.Path) })
}

var (
	// schemaProblems matches a result that is only a list of problems from zod or pydantic.
	schemaProblems = recovery.NewPattern(`^\[\s*\{[^{}]*"(?:code|type)":\s*"(?:invalid_(?:type|union|enum_value)|unrecognized_keys|missing|extra_forbidden|\w+_type|\w+_parsing|literal_error)"`)
	shellName      = recovery.NewPattern(`^(?:\S*/)?(?:ba|z|da|k|a|fi)?sh$`)
)

// maxPage limits a server's page that only says that there were too many requests, in bytes.
const maxPage = 3000

// limitPage matches such a page by its title, which no other page has.
var limitPage = recovery.NewPattern(`(?is)^(?:<!doctype html[^>]{0,200}>\s*)?<html\b[^>]{0,200}>.{0,600}?<title>\s*(?:HTTP )?(?:Error )?(?:4` +
	`29\b[^<]{0,80}|Too many requests|Rate limit(?:ed| exceeded))\s*</title>.*</html>\s*$`)

// tooManyRequests finds such a page if a page was requested and it is the whole result, whatever the exit code:
// by default a client prints it like any other page.
func (v *view) tooManyRequests(tool string) finding {
	if len(v.text) > maxPage || v.text == "" || !strings.Contains(v.text[:min(len(v.text), 100)], "<") {
		return finding{}
	}
	switch v.kind {
	case trajectory.Shell:
		if p := v.call.Command().Programs; p != nil && !slices.Contains(p, "curl") && !slices.Contains(p, "wget") && !slices.Contains(p, "http") {
			return finding{}
		}
	case trajectory.Reader:
		if !slices.ContainsFunc(trajectory.NameWords(tool), func(w string) bool { return v.rules.words["fetchers"][w] }) {
			return finding{}
		}
	default:
		return finding{}
	}
	if !limitPage.MatchString(strings.TrimSpace(v.text)) {
		return finding{}
	}
	return finding{true, recovery.ToolRateLimited, worded, "limit-page", "429 Too Many Requests"}
}
