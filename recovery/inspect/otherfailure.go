package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// otherErrors are forms of failures that belong to none of the ten kinds.
var otherErrors = recovery.NewPattern(`^(?:[A-Z]\w*(?:Error|Exception)\(["'].*["']\)|\S+\(\d+,\d+\): error TS\d+: .*|npm (?:error|ERR!) .*|g?make(?:\[\d+\])?: \*\*\* .*|Error \[\w+\]: .*|Can't locate \S+ in @INC.*|.* failed--compilation aborted.*|Command aborted.*|.{0,40}script failed \(code \d+\)|error(?:\[E\d+\])?: .*|(?:fatal|ERROR|Error|FATAL|Fatal|FAILED|panic|Unhandled \w+|Exception): ?.*|E: .*|[\w.$]+(?:Error|Exception)(?: \[\w+\])?: .*|Exception in thread .*|\S+:\d+:(?:\d+:)? (?:fatal )?error: .*|\S+:\d+:in .*\(\w+\)|thread '.*' panicked at .*|FAIL(?:ED)?\b.*|\[?ERROR\]? .*|.*\bSegmentation fault\b.*|Killed|Aborted.*|Your proposed edit has introduced .*|.*: error: .*|curl: \(\d+\) .*|(?i:failed|error|could not|unable)\b.*\b(?:GET|POST|PUT|PATCH|DELETE) https?://\S+: [45]\d\d\b.*|[\w.+-]{1,40}: .{0,200}: (?:Is a directory|File exists|Directory not empty|Text file busy|Device or resource busy|Input/output error|Exec format error)|Your changes have NOT been applied.*|No replacement was performed.*)$`)

// otherSigns are in lower case what every line has one of that otherErrors matches.
var otherSigns = []string{"error", "err!", "fail", "fatal", "exception", "panic", "abort", "unhandled", "***", "can't locate", "e: ", ":in ", "segmentation fault",
	"killed", "proposed edit", "curl: (", "could not", "unable", "is a directory", "file exists", "not empty", " busy", "not been applied", "no replacement"}

func otherError(line string) bool {
	return containsAny(strings.ToLower(line), otherSigns) && otherErrors.MatchString(line)
}

// noError is a setting or a field that is empty.
var noError = recovery.NewPattern(`(?i)^errors?: *(?:null|none|nil|false|0|undefined|""|\[\]|\{\})?,?$`)

// otherFailure finds a failure of another kind where errors stand.
func (v *view) otherFailure() (line string, ok bool) {
	end := len(v.lines)
	if end > 0 && strings.HasPrefix(v.lines[0], "[ERROR]") && consoleList.MatchString(v.text) {
		return "", false
	}
	if end > 1 && recordEnd.MatchString(v.lines[end-1]) {
		return v.lines[0], true
	}
	for end > 1 && follows(v.lines[end-1]) {
		end--
	}
	for i := end - 1; i >= 0; i-- {
		if i != 0 && i < end-tailPlaces {
			i = 0
		}
		if otherError(short(v.lines[i])) && !logged(v.lines[i]) && !noError.MatchString(v.lines[i]) && !(i == 0 && end > 2*shortResult && v.kind == trajectory.Other) {
			return v.lines[i], true
		}
	}
	return "", false
}
