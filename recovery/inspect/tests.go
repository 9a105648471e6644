package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// What programs print while they are tested is the tests' business: of a runner's
// output only its summary counts, and what stands below it.

// maxSummary bounds how far above the end a summary is looked for, in lines.
const maxSummary = 40

// testReport is the summary of tests of which some failed, allPassed that of tests
// of which none did: pytest, Jest, Vitest, Mocha, go test, cargo test, unittest, RSpec, PHPUnit,
// JUnit, CTest, TAP and node --test, dotnet test, Minitest and ExUnit, prove, Deno, Bun, Playwright, XCTest.
var (
	testReport = recovery.NewPattern(`^(?:Test Suites:\s+[1-9]\d* failed|Tests?:\s+(?:\d+ \w+, )*[1-9]\d* failed|FAILED \((?:failures|errors)|=+ .*\d+ (?:failed|error).* =+$|--- FAIL: |FAIL\s+\S+\s+[\d.]+s|test result: FAILED|\d+ (?:examples?|tests?|specs?), .*[1-9]\d* failures?|\d+ failed\b.* in [\d.]+s|(?:#|ℹ) fail [1-9]|\s*[1-9]\d* failing$|Failed tests?:|\s*Test(?: Files|s)\s+\d+ failed|(?:\[\w+\] +)?Tests run: \d+, Failures: (?:[1-9]|0, Errors: [1-9])|\d+% tests passed, [1-9]\d* tests? failed|Failed! +- Failed:|\d+ (?:runs|tests), \d+ assertions, (?:[1-9]\d* failures|0 failures, [1-9]\d* errors)|Result: FAIL$|FAILED \| \d+ passed|Tests: \d+, Assertions: \d+, (?:Failures|Errors): [1-9]|\s+[1-9]\d* fail$|Executed \d+ tests?, with [1-9])`)
	allPassed  = recovery.NewPattern(`^(?:=*\s*(?:\d+ (?:skipped|deselected|xfailed|xpassed|warnings?), )*[1-9]\d* passed\b(?:, \d+ (?:skipped|deselected|xfailed|xpassed|warnings?|rerun|subtests passed))* in [\d.]+s(?: \([\d:]+\))?\s*=*$|Tests:\s+(?:\d+ (?:skipped|todo), )*\d+ passed, \d+ total|\s*Tests\s+\d+ passed(?: \| \d+ \w+)* \(\d+\)|\s*\d+ passing(?: \([\d.]+\w+\))?$|ok\s+\S+\s+(?:[\d.]+s|\(cached\))|PASS$|test result: ok\. \d+ passed; 0 failed|OK(?: \((?:skipped|expected failures)=.*\))?$|OK \(\d+ tests?, \d+ assertions?\)|\d+ (?:examples?|tests?|specs?), 0 failures|(?:\[\w+\] +)?Tests run: \d+, Failures: 0, Errors: 0|100% tests passed, 0 tests failed|(?:#|ℹ) fail 0$|Passed! +- Failed: +0,|\d+ (?:runs|tests), \d+ assertions, 0 failures, 0 errors|All tests successful\.|Result: PASS$|ok \| \d+ passed .*\| 0 failed|\s+0 fail$|\s+\d+ passed \([\d.]+m?s\)$|Executed \d+ tests?, with 0 failures)`)
	// notRun is a suite that could not be built or read: what the compiler says counts.
	notRun = recovery.NewPattern(`^FAIL\s+\S+ \[(?:build|setup) failed\]$|\d+ errors? during collection|Test suite failed to run$`)
	// unittestCount stands above unittest's OK, which is too short to tell alone.
	unittestCount = recovery.NewPattern(`^Ran [1-9]\d* tests? in [\d.]+s$`)
)

// summary is the line of the last summary of tests, -1 if there is none, and whether
// one of them, as far as the end is read, says that some failed. Where a suite did
// not run at all there is none.
func (v *view) summary() (at int, someFailed bool) {
	at = -1
	for i := len(v.lines) - 1; i >= 0 && i >= len(v.lines)-maxSummary; i-- {
		line := short(v.lines[i])
		switch {
		case !mayReport(line):
			continue
		case notRun.MatchString(line):
			return -1, false
		case testReport.MatchString(line):
			someFailed = true
		case !allPassed.MatchString(line):
			continue
		case line == "OK" && (i == 0 || !unittestCount.MatchString(v.lines[i-1])):
			continue
		}
		at = max(at, i)
	}
	return at, someFailed
}

// mayReport reports cheaply whether a line may be one that notRun, testReport or
// allPassed matches: that has one of these words, and those who count errors or
// what was executed have a number.
func mayReport(line string) bool {
	for i := range len(line) {
		rest := line[i:]
		switch line[i] | 0x20 {
		case 'o':
			if i == 0 && beginsFold(rest, "ok") {
				return true
			}
		case 'f':
			if beginsFold(rest, "fail") {
				return true
			}
		case 'p':
			if beginsFold(rest, "pass") {
				return true
			}
		case 's':
			if beginsFold(rest, "successful") {
				return true
			}
		case 'e':
			if beginsFold(rest, "error") || beginsFold(rest, "executed") {
				if strings.ContainsAny(line, "0123456789") {
					return true
				}
			}
		}
	}
	return false
}

// beginsFold reports whether s begins with a word of small letters, however its
// letters are spelled.
func beginsFold(s, word string) bool {
	if len(s) < len(word) {
		return false
	}
	for i := range len(word) {
		if s[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}

// tested judges the output of a test runner. Tests that failed are a failure
// without category: their author mends them.
func (v *view) tested() (f finding, ok bool) {
	at, someFailed := v.summary()
	switch {
	case at < 0:
		return finding{}, false
	case someFailed:
		f = v.byOutcome()
		if f.failed {
			f.category, f.line = recovery.CategoryNone, v.lines[at]
		}
		return f, true
	}
	rest := *v
	rest.lines, rest.stderr = v.lines[at+1:], -1
	if v.stderr > at && v.outcome == failed {
		rest.stderr = v.stderr - at - 1
	} else if v.stderr > at {
		rest.lines = v.lines[at+1 : v.stderr] // the stream on which the tests wrote
	}
	if f = rest.errors(); f.failed {
		return f, true
	}
	if v.outcome == failed && v.source != "error-envelope" { // not just a first line that looks like a framework's
		return finding{true, recovery.CategoryNone, other, v.source, v.lines[at]}, true
	}
	return finding{rule: "tests-passed"}, true
}
