package classify

import (
	"strings"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// soon is the longest wait that is still a window and not an allowance that is
// gone: plans have windows of five hours, and of a day and more.
const soon = 12 * time.Hour

// endsSoon reports that the answer promises an early end of the refusal.
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

// outgrown reports that the text states an amount of tokens and a smaller limit.
func outgrown(v *view) bool {
	var s stated
	sizeFacts(v, scanNumbers(v.text), &s)
	return s.facts.LimitTokens > 0 && max(s.facts.RequestedTokens, s.facts.InputTokens) > s.facts.LimitTokens
}

// outgrownOutput reports that the field that is refused is the output limit, and
// that the text states a number and a smaller one. The field may be named beside
// the text.
func outgrownOutput(v *view) bool { return isOutputName(v.Param) && outgrown(v) }

// oversizedForWindow reports that one request asks for more tokens than a
// whole window allows.
func oversizedForWindow(v *view) bool {
	var s stated
	s.read(v.text, recovery.RateLimit)
	if s.facts.LimitTokens == 0 || s.facts.RequestedTokens == 0 {
		return says(v.text, "request too large", "must be reduced")
	}
	return s.facts.RequestedTokens > s.facts.LimitTokens
}

// refersToTool reports that the structure points at the definition of a tool.
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

// toolPath returns the path of a tool that a schema check names, or that a layer
// of the text begins with, as in
// "tools.3.custom.name: String should …" and "Invalid 'tools[0].name': string …".
func toolPath(text string) string {
	for _, b := range breaches(text) {
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

// refusesKnown reports that a request field with a known name and a refusal
// stand close together.
func refusesKnown(v *view) bool {
	text := v.text
	if unsupportedField.MatchString(text) || limitedField(text) != "" {
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
	limited          = recovery.NewPattern(`(` + fieldName + `)'? (?:is only (?:supported|available|allowed|valid)|parameter is restricted to) `)
)

// limitedField returns the field of which a text says that it is only for
// some: "previous_response_id is only supported on …".
func limitedField(text string) string {
	if m := limited.FindStringSubmatch(text); m != nil && strings.Contains(m[1], "_") && !strings.Contains(m[1], "image") {
		return m[1]
	}
	return ""
}
