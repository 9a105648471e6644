package classify

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// breach is a field of the request that an upstream's schema check names, and
// what it says of it, both folded.
type breach struct {
	path string // steps joined by dots
	says string
}

// What JSON-schema checks say with a JSON pointer, "#/max_gen_len: 8192 is not
// less or equal to 2048", and what AWS's own say, "Value '…' at
// 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint: Member
// must have length less than or equal to 64".
var (
	schemaBreach = recovery.NewPattern(`(?:#/([a-z0-9_.$/\[\]-]+): | at '([a-z0-9_.$\[\]-]+)' failed to satisfy constraint: )([^#¦]{0,160})`)
	memberEcho   = recovery.NewPattern(`value '.*?' at '`)
)

// breaches reads what schema checks of the two kinds say, at most 16.
func breaches(text string) []breach {
	if !says(text, "#/", "failed to satisfy constraint") { // nearly always
		return nil
	}
	var out []breach
	for _, m := range schemaBreach.FindAllStringSubmatch(text, 16) {
		says, _, _ := strings.Cut(m[3], "; value '")
		out = append(out, breach{strings.ReplaceAll(m[1], "/", ".") + m[2], says})
	}
	return out
}

// withoutEchoes takes the request's own values out of what AWS's check says of
// them: "value '…' at 'path' failed to satisfy constraint".
func withoutEchoes(s string) string {
	if !strings.Contains(s, " failed to satisfy constraint: ") {
		return s
	}
	return memberEcho.ReplaceAllString(s, "value '…' at '")
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
func (v *view) outputBreached() bool {
	return slices.ContainsFunc(breaches(v.text), func(b breach) bool {
		return isOutputName(b.field()) && says(b.says, "is not less ", "less than or equal to", "less or equal to", "must be at most", "maximum")
	})
}

// fieldBreached reports that a schema check named a field that holds no content.
func (v *view) fieldBreached() bool {
	return slices.ContainsFunc(breaches(v.text), func(b breach) bool { return !b.ofContent() })
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
