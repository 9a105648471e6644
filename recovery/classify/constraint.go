package classify

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// violation is a request field that an upstream's schema check refuses, and the
// complaint, both folded.
type violation struct {
	path string // steps joined by dots
	says string
}

// JSON-schema checks name the field by a JSON pointer: "#/max_gen_len: 8192 is not
// less or equal to 2048". AWS's own checks write "Value '…' at
// 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint: Member
// must have length less than or equal to 64".
var (
	schemaViolation = recovery.NewPattern(`(?:#/([a-z0-9_.$/\[\]-]+): | at '([a-z0-9_.$\[\]-]+)' failed to satisfy constraint: )([^#¦]{0,160})`)
	echoedValue     = recovery.NewPattern(`value '.*?' at '`)
)

// violations returns the violations that either kind of schema check reports, at most 16.
func violations(text string) []violation {
	if !says(text, "#/", "failed to satisfy constraint") { // nearly always
		return nil
	}
	var out []violation
	for _, m := range schemaViolation.FindAllStringSubmatch(text, 16) {
		says, _, _ := strings.Cut(m[3], "; value '")
		out = append(out, violation{strings.ReplaceAll(m[1], "/", ".") + m[2], says})
	}
	return out
}

// withoutEchoes removes the request's values from the complaints of AWS's check:
// "value '…' at 'path' failed to satisfy constraint".
func withoutEchoes(s string) string {
	if !strings.Contains(s, " failed to satisfy constraint: ") {
		return s
	}
	return echoedValue.ReplaceAllString(s, "value '…' at '")
}

// field returns the last name in the path.
func (b violation) field() string {
	steps := strings.Split(b.path, ".")
	for i := len(steps) - 1; i >= 0; i-- {
		if s := steps[i]; s != "member" && !allDigits(s) {
			return s
		}
	}
	return ""
}

// isContent reports whether the path leads to content of the conversation or to
// the whole body, so that a limit of its length limits the request's size.
func (b violation) isContent() bool {
	switch b.field() {
	case "", "body", "messages", "content", "text", "prompt", "input", "inputs", "inputtext", "system", "bytes", "json", "document":
		return true
	}
	return false
}

// violatesOutputLimit reports whether a schema check found the requested output too large.
func (v *view) violatesOutputLimit() bool {
	return slices.ContainsFunc(violations(v.text), func(b violation) bool {
		return isOutputName(b.field()) && says(b.says, "is not less ", "less than or equal to", "less or equal to", "must be at most", "maximum")
	})
}

// violatesField reports whether a schema check refuses a field that holds no content.
func (v *view) violatesField() bool {
	return slices.ContainsFunc(violations(v.text), func(b violation) bool { return !b.isContent() })
}

// violatedPath returns the path of the first violation that concerns the class, or "".
func violatedPath(text string, class recovery.Class) string {
	for _, b := range violations(text) {
		if class != recovery.MaxOutputExceeded || isOutputName(b.field()) {
			return b.path
		}
	}
	return ""
}
