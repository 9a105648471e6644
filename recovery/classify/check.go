package classify

import (
	"strconv"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// Check tries the examples of the first n rules, or of all if n is negative: see [rule.List.Check].
func (t *Table) Check(n int) error {
	list, err := t.rules()
	if err != nil {
		return err
	}
	return list.Check(n, func(_ *rule.Rule, text string) []string {
		name, _ := t.decide(read(example(text), nil))
		return []string{name}
	})
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
