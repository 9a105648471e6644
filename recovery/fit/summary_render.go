package fit

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// How much of each message the summariser reads, in bytes.
const (
	readUser      = 8000
	readAssistant = 3000
	readArguments = 600
	readResult    = 2000
)

// pieces renders messages for the summariser, in pieces of at most room tokens.
// A piece ends between messages.
func (k *work) pieces(removed []int, w Weigher, model string, room int) (list []string) {
	var b strings.Builder
	used := 0
	add := func(text string) {
		n := w.Text(model, text) + 1
		if n > room {
			text = cutBefore(text, room*2) // two bytes to a token are few
			n = w.Text(model, text) + 1
		}
		if used+n > room && b.Len() > 0 {
			list = append(list, b.String())
			b.Reset()
			used = 0
		}
		b.WriteString(text)
		used += n
	}
	told := map[int]bool{}
	for _, i := range removed {
		for _, c := range k.cuts { // an earlier summary stands for its messages
			if i >= c.start && i < c.end && k.removed(i) {
				if !told[c.start] {
					told[c.start] = true
					add("[earlier summary]\n" + c.text + "\n\n")
				}
			}
		}
		if !k.removed(i) {
			add(k.v.narrate(i))
		}
	}
	if b.Len() > 0 {
		list = append(list, b.String())
	}
	return list
}

// narrate renders one message for the summariser.
func (v *view) narrate(i int) string {
	it := &v.items[i]
	var b strings.Builder
	switch {
	case it.result:
		b.WriteString("[result of " + it.call.label())
		if it.failed() {
			b.WriteString(", failed")
		}
		b.WriteString("]\n" + excerpt(it.text, readResult))
	case it.Role == transcript.RoleAssistant:
		b.WriteString("[assistant]\n" + excerpt(it.text, readAssistant))
	case it.Role == transcript.RoleUser:
		b.WriteString("[user]\n" + excerpt(it.text, readUser))
	default:
		b.WriteString("[" + it.Role + "]\n" + excerpt(it.text, readAssistant))
	}
	for _, c := range it.calls {
		b.WriteString("\n[calls " + oneLine(c.Name, 80) + "] " + excerpt(c.text, readArguments))
	}
	b.WriteString("\n\n")
	return b.String()
}
