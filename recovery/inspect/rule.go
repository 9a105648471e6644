package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// rule is one row of a table: a form of line, and what it says.
type rule struct {
	name     string
	category recovery.Category
	// need are texts in lower case of which every matching line has one. They
	// keep the expression from being tried on other lines.
	need []string
	re   *recovery.Pattern
	form form
}

// form is how much a matching line says.
type form uint8

const (
	// strict is a form that only a failing program prints.
	strict form = iota
	// piped is strict, and failure stays a failure behind a pipe that hides the
	// exit code.
	piped
	// loose is a wording; it counts only where the call is known to have failed.
	loose
)

// tables are all rules on lines, in order of preference on one line.
var tables = [][]rule{callRules, powershellRules, shellRules, diskRules, rateRules, permissionRules, timeoutRules, networkRules, syntaxRules, argumentRules, fileRules}

// maxRuleLine bounds the part of a line that rules look at, in bytes.
const maxRuleLine = 600

// match is the first rule that matches a line; loose ones only if asked for, and
// only where no other does.
func match(line string, withLoose bool) *rule {
	if len(line) > maxRuleLine {
		line = line[:maxRuleLine]
	}
	var second *rule
	may := needs.find(line)
	for n := may.next(0); n >= 0; n = may.next(n + 1) {
		r := needs.rules[n]
		if r.form == loose && (!withLoose || second != nil) || !r.re.MatchString(line) {
			continue
		}
		if r.form != loose {
			return r
		}
		second = r
	}
	return second
}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
