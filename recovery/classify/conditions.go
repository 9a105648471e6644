package classify

import (
	"strings"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// soon separates a rate-limit window from a used-up allowance: subscription plans
// have windows of five hours, and of a day or more.
const soon = 12 * time.Hour

// endsSoon reports whether the answer says that the refusal ends within soon.
func (v *view) endsSoon() bool {
	if says(v.text, "5 hour", "5-hour", "5小时", "rolling", "time window", "hour window") {
		return true
	}
	if d, ok := textWait(v.text, v.hints.now); ok && d < soon {
		return true
	}
	if d, ok := longest(v.hints.body); ok && d < soon {
		return true
	}
	d, ok := v.hints.explicit()
	return ok && d > 0 && d < soon
}

// amountExceedsLimit reports whether the text states a token count and a smaller limit.
func amountExceedsLimit(v *view) bool {
	var s stated
	sizeFacts(v, scanNumbers(v.text), &s)
	return s.facts.LimitTokens > 0 && max(s.facts.RequestedTokens, s.facts.InputTokens) > s.facts.LimitTokens
}

// outputExceedsLimit reports whether the refused field is the output limit and the
// text states a token count and a smaller limit. The field's name need not be in the text.
func outputExceedsLimit(v *view) bool { return isOutputName(v.Param) && amountExceedsLimit(v) }

// exceedsRateWindow reports whether this one request needs more tokens than a
// whole rate-limit window allows.
func exceedsRateWindow(v *view) bool {
	var s stated
	s.readSentences(v.text, recovery.RateLimit)
	if s.facts.LimitTokens == 0 || s.facts.RequestedTokens == 0 {
		return says(v.text, "request too large", "must be reduced")
	}
	return s.facts.RequestedTokens > s.facts.LimitTokens
}

// refersToTool reports whether the error names a path in a tool definition.
func refersToTool(v *view) bool {
	path := v.Param
	if len(v.params) > 0 {
		path = v.params[0]
	}
	return isToolPath(path) || toolPath(v.text) != ""
}

func isToolPath(path string) bool {
	path = strings.TrimPrefix(strings.ToLower(path), "toolconfig.") // Bedrock's
	return strings.HasPrefix(path, "tools[") || strings.HasPrefix(path, "tools.") && strings.ContainsAny(path, "0123456789") ||
		strings.Contains(path, ".function.parameters")
}

var layerPath = recovery.NewPattern(`(?:^|¦)[ ']*(?:invalid )?'?(` + fieldName + `)'?:`)

// toolPath returns the path in a tool definition that a schema check names or that
// a message starts with, as in "tools.3.custom.name: String should …" and
// "Invalid 'tools[0].name': string …", or "".
func toolPath(text string) string {
	for _, b := range violations(text) {
		if isToolPath(b.path) {
			return b.path
		}
	}
	for _, m := range layerPath.FindAllStringSubmatch(text, maxLayers) {
		if isToolPath(m[1]) {
			return m[1]
		}
	}
	return ""
}

// refusesKnownField reports whether the text refuses a request field: the name of
// a known field is next to words of refusal.
func refusesKnownField(v *view) bool {
	text := v.text
	if unsupportedField.MatchString(text) || restrictedField(text) != "" {
		return true
	}
	name := firstKnown(text, knownNames)
	if name == "" || isOutputName(name) || name == "cache_control" || name == "thinking" {
		return false
	}
	i := strings.Index(text, name)
	return says(text[max(0, i-60):min(len(text), i+len(name)+60)],
		"not support", "n't support", "unsupported", "not available", "unavailable", "not allowed", "not permitted", "not enabled", "not accepted",
		"unrecognized", "unexpected", "not recognized", "deprecated", "must be removed", "remove ", "only supported", "only available", "only support",
		"restricted to", "not one of the allowed", "不支持")
}

var (
	unsupportedField = recovery.NewPattern(`not support [ ']*[a-z0-9.$\[\]-]*_`)
	restricted       = recovery.NewPattern(`(` + fieldName + `)'? (?:is only (?:supported|available|allowed|valid)|parameter is restricted to) `)
)

// restrictedField returns the field that a text restricts to some cases, as in
// "previous_response_id is only supported on …", or "".
func restrictedField(text string) string {
	if m := restricted.FindStringSubmatch(text); m != nil && strings.Contains(m[1], "_") && !strings.Contains(m[1], "image") {
		return m[1]
	}
	return ""
}
