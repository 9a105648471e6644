package classify

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Check runs the examples of the first n rules, or of all rules if n is negative.
// A rule must decide its examples and none of its lookalikes. The error joins one
// error per mismatch; each starts with its place, as in "rules[2].examples[0]: …".
func (t *Table) Check(n int) error {
	list, err := t.rules()
	if err != nil {
		return err
	}
	var errs []error
	for i := range list.Len() {
		if n >= 0 && i >= n {
			break
		}
		r := list.Rule(i)
		for j, text := range r.Examples {
			if name, spec := t.decide(read(example(text), nil)); name != r.Name {
				errs = append(errs, fmt.Errorf("rules[%d].examples[%d]: is decided by %s (%s), not by %s", i, j, name, spec.Class, r.Name))
			}
		}
		for j, text := range r.Lookalikes {
			if name, _ := t.decide(read(example(text), nil)); name == r.Name {
				errs = append(errs, fmt.Errorf("rules[%d].lookalikes[%d]: is decided by %s, but it should not be", i, j, name))
			}
		}
	}
	return errors.Join(errs...)
}

// example parses a rule's example: a status and the body, as in "429 Rate limit
// reached" or `400 {"error": …}`. Without a status it is an error event of a stream.
func example(s string) recovery.Evidence {
	ev := recovery.Evidence{Phase: recovery.PhaseStatus, Now: time.Unix(1_700_000_000, 0)}
	head, body, _ := strings.Cut(s, " ")
	if status, err := strconv.Atoi(head); err == nil && len(head) == 3 {
		ev.Status, ev.Body = status, []byte(body)
		return ev
	}
	ev.Phase, ev.Status, ev.Stream, ev.Body = recovery.PhaseStream, 200, true, []byte(s)
	return ev
}
