package classify

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// breach is a field of the request that an upstream's schema check names, and
// what it says of it, both folded.
type breach struct {
	path string // steps joined by dots, "" for the whole body
	says string
}

// Where the two schema checks that name fields in this way put the path.
const (
	pointerMark    = "#/"
	constraintMark = " failed to satisfy constraint: "
)

// breaches reads what JSON-schema checks say with a JSON pointer,
// "#/max_gen_len: 8192 is not less or equal to 2048", and what AWS's own say,
// "Value '…' at 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy
// constraint: Member must have length less than or equal to 64". At most 8.
func breaches(text string) []breach {
	var out []breach
	for rest := text; len(out) < 8; {
		_, after, ok := strings.Cut(rest, pointerMark)
		if !ok {
			break
		}
		rest = after
		n := 0
		for n < len(after) && (nameByte(after[n]) || after[n] == '/') {
			n++
		}
		if says, ok := strings.CutPrefix(after[n:], ": "); ok && n > 0 {
			out = append(out, breach{strings.ReplaceAll(after[:n], "/", "."), upTo(says, pointerMark)})
		}
	}
	for rest := text; len(out) < 8; {
		head, after, ok := strings.Cut(rest, constraintMark)
		if !ok {
			break
		}
		rest = after
		if quoted, ok := strings.CutSuffix(head, "'"); ok {
			if path := lastName(quoted); path != "" && strings.HasSuffix(strings.TrimSuffix(quoted, path), " at '") {
				out = append(out, breach{path, upTo(after, "value '")})
			}
		}
	}
	return out
}

// upTo returns s before the next mark and within its layer, at most 160 bytes of it.
func upTo(s, mark string) string {
	s, _, _ = strings.Cut(s[:min(len(s), 160)], mark)
	return layer(s, false)
}

// field is the last step of the path that is a name.
func (b breach) field() string {
	steps := strings.Split(b.path, ".")
	for i := len(steps) - 1; i >= 0; i-- {
		if s := steps[i]; s != "member" && !allDigits(s) {
			return s
		}
	}
	return ""
}

// above reports that a bound from above is what was broken.
func (b breach) above() bool {
	for _, w := range [...]string{"is not less ", "less than or equal to", "less or equal to", "must be at most", "maximum"} {
		if strings.Contains(b.says, w) {
			return true
		}
	}
	return false
}

// ofContent reports that the path leads to what the conversation says, or to
// the body as a whole, so that a bound of its length is one of the request's size.
func (b breach) ofContent() bool {
	switch b.field() {
	case "", "body", "messages", "content", "text", "prompt", "input", "inputs", "inputtext", "system", "bytes", "json", "document":
		return true
	}
	return false
}

// outputBreached reports that a schema check found the requested output too large.
func outputBreached(v *view) bool {
	for _, b := range breaches(v.text) {
		if b.above() && isOutputName(b.field()) {
			return true
		}
	}
	return false
}

// fieldBreached reports that a schema check named a field that holds no content.
func fieldBreached(v *view) bool {
	for _, b := range breaches(v.text) {
		if !b.ofContent() {
			return true
		}
	}
	return false
}

// breachedPath is the path of the first breach that concerns the class.
func breachedPath(text string, class recovery.Class) string {
	for _, b := range breaches(text) {
		if class != recovery.MaxOutputExceeded || isOutputName(b.field()) {
			return b.path
		}
	}
	return ""
}

// withoutEchoes takes the request's own values out of what AWS's check says of
// them: "value '…' at 'path' failed to satisfy constraint".
func withoutEchoes(s string) string {
	const open, shut = "value '", "' at '"
	if !strings.Contains(s, constraintMark) {
		return s
	}
	var b strings.Builder
	for {
		i := strings.Index(s, open)
		if i < 0 {
			break
		}
		j := strings.Index(s[i:], shut)
		if j < 0 {
			break
		}
		b.WriteString(s[:i+len(open)])
		b.WriteString("…")
		s = s[i+j:]
	}
	return b.String() + s
}
