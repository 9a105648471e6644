package annotate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// template is a step as it is said: alternatives, of which the first is said whose
// slots are all known.
type template []alternative

// alternative is text with slots: texts[0] slots[0] texts[1] … A slot may stand
// inside of backticks, as in `make -C {parent}`; its value then has none of its own.
type alternative struct {
	texts  []string
	slots  []string
	inside []bool
}

var slotForm = recovery.NewPattern(`\{([^{}]*)\}`)

// parseTemplate reads a template. "||" stands between alternatives. {name} is a
// slot, filled from the conversation; an alternative with a slot that is not
// known is passed over, and a step without any other is left out.
func parseTemplate(text string) (template, error) {
	var out template
	for part := range strings.SplitSeq(text, "||") {
		part = strings.TrimSpace(part)
		if part == "" {
			return nil, fmt.Errorf("has an empty alternative: something must stand on both sides of ||")
		}
		var a alternative
		from := 0
		for _, m := range slotForm.FindAllStringSubmatchIndex(part, -1) {
			name := part[m[2]:m[3]]
			if !slices.Contains(slotNames(), name) {
				if near := trajectory.Nearest(name, slotNames()); near != "" {
					return nil, fmt.Errorf("has the unknown slot {%s}: did you mean {%s}?", short(name), near)
				}
				return nil, fmt.Errorf("has the unknown slot {%s}: there are %s", short(name), strings.Join(slotNames(), ", "))
			}
			a.texts = append(a.texts, part[from:m[0]])
			a.slots = append(a.slots, name)
			a.inside = append(a.inside, strings.Count(part[:m[0]], "`")%2 == 1)
			from = m[1]
		}
		if strings.Count(part, "`")%2 == 1 {
			return nil, fmt.Errorf("has a backtick without its partner in an alternative: close the quote")
		}
		a.texts = append(a.texts, part[from:])
		if strings.ContainsAny(strings.Join(a.texts, ""), "{}") {
			return nil, fmt.Errorf("has a brace that belongs to no slot: write {path}")
		}
		out = append(out, a)
	}
	return out, nil
}

// render says the first alternative that is known, "" if there is none.
func (t template) render(fill func(string) string) string {
next:
	for _, a := range t {
		var b strings.Builder
		for i, text := range a.texts {
			b.WriteString(text)
			if i == len(a.slots) {
				break
			}
			value := fill(a.slots[i])
			if value == "" {
				continue next
			}
			if a.inside[i] {
				value = strings.ReplaceAll(value, "`", "")
			}
			b.WriteString(value)
		}
		return b.String()
	}
	return ""
}

// plain is the first alternative without slots.
func (t template) plain() string {
	return t.render(func(string) string { return "" })
}
