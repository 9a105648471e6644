package rule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Check tries the examples of the first n rules, or of all if n is negative. decide returns the names of the rules that
// decide an example of a rule. A rule must decide its examples and none of its lookalikes. The error joins one error per
// mismatch; each starts with its place, as in "rules[2].examples[0]: …".
func (l *List) Check(n int, decide func(r *Rule, example string) []string) error {
	var errs []error
	for i := range l.Len() {
		if n >= 0 && i >= n {
			break
		}
		r := l.Rule(i)
		for j, text := range r.Examples {
			if by := decide(r, text); !slices.Contains(by, r.Name) {
				errs = append(errs, fmt.Errorf("rules[%d].examples[%d]: is decided by %s, not by %s", i, j, cmp.Or(strings.Join(by, ", "), "no rule"), r.Name))
			}
		}
		for j, text := range r.Lookalikes {
			if slices.Contains(decide(r, text), r.Name) {
				errs = append(errs, fmt.Errorf("rules[%d].lookalikes[%d]: is decided by %s, but it should not be", i, j, r.Name))
			}
		}
	}
	return errors.Join(errs...)
}
