package annotate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// A step is a template: alternatives separated by ||. The first one whose slots all have values is used. {name}
// is a slot, filled from the conversation. In backticks, as in `make -C {parent}`, its value loses its own
// backticks.

var slotForm = recovery.NewPattern(`\{([^{}]*)\}`)

// checkTemplate reports the first problem of a template.
func checkTemplate(text string) error {
	for part := range strings.SplitSeq(text, "||") {
		for _, m := range slotForm.FindAllStringSubmatch(part, -1) {
			if slices.Contains(slotNames(), m[1]) {
				continue
			}
			return fmt.Errorf("has the unknown slot {%s}: %s", short(m[1]), hint(m[1], slotNames(), "there are "+strings.Join(slotNames(), ", ")))
		}
		switch {
		case strings.TrimSpace(part) == "":
			return errors.New("has an empty alternative: something must stand on both sides of ||")
		case strings.Count(part, "`")%2 == 1:
			return errors.New("has a backtick without its partner in an alternative: close the quote")
		case strings.ContainsAny(slotForm.ReplaceAllString(part, ""), "{}"):
			return errors.New("has a brace that belongs to no slot: write {path}")
		}
	}
	return nil
}

// render returns the first alternative of a template whose slots all have values, or "".
func render(text string, fill func(slot string) string) string {
	for part := range strings.SplitSeq(text, "||") {
		if said, known := filled(strings.TrimSpace(part), fill); known {
			return said
		}
	}
	return ""
}

// filled fills the slots of an alternative; known is false if a slot has no value.
func filled(part string, fill func(slot string) string) (said string, known bool) {
	from := 0
	for _, m := range slotForm.FindAllStringSubmatchIndex(part, -1) {
		value := fill(part[m[2]:m[3]])
		if value == "" {
			return "", false
		}
		if strings.Count(part[:m[0]], "`")%2 == 1 {
			value = strings.ReplaceAll(value, "`", "")
		}
		said += part[from:m[0]] + value
		from = m[1]
	}
	return said + part[from:], true
}

// plain returns the first of a template's alternatives without slots.
func plain(text string) string {
	return render(text, func(string) string { return "" })
}
