package classify

import (
	"strings"
	"time"

	"github.com/rebound-llm/rebound/recovery/rule"
)

// soon is the longest wait that is still a window and not an allowance that is
// gone: plans have windows of five hours, and of a day and more.
const soon = 12 * time.Hour

// endsSoon reports that the answer promises an early end of the refusal.
func (v *view) endsSoon() bool {
	for _, w := range [...]string{"5 hour", "5-hour", "5小时", "rolling", "time window", "hour window"} {
		if strings.Contains(v.text, w) {
			return true
		}
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
	s := &stated{numbers: make(map[string]int)}
	sizeFacts(v, scanNumbers(v.text), s)
	limit := s.numbers[limitTokens]
	return limit > 0 && max(s.numbers[requestedTokens], s.numbers[inputTokens]) > limit
}

// oversizedForWindow reports that one request asks for more tokens than a
// whole window allows.
func oversizedForWindow(v *view) bool {
	limit, requested := tokenAfter(v.text, "limit"), tokenAfter(v.text, "requested")
	if limit > 0 && requested > 0 {
		return requested > limit
	}
	return strings.Contains(v.text, "request too large") || strings.Contains(v.text, "must be reduced")
}

// tokenAfter reads the number after a word, as in "Limit 30000, Requested 61337".
func tokenAfter(text, word string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return 0
		}
		from += i + len(word)
		rest := strings.TrimLeft(text[from:], ": ")
		n, digits := 0, 0
		for _, c := range rest {
			if c == ',' && digits > 0 {
				continue
			}
			if c < '0' || c > '9' || digits > 12 {
				break
			}
			n = n*10 + int(c-'0')
			digits++
		}
		if digits > 0 {
			return n
		}
	}
}

// negativeOutput reports that the output limit that a text refuses is below
// zero: nothing is exceeded, and no smaller one helps.
func negativeOutput(v *view) bool {
	text := v.text
	for _, lead := range [...]string{"value of -", "got -", "given -", "given: -", "received -", "received: -", "passed -", "provided -",
		"provided: -", "(-"} {
		if _, rest, ok := strings.Cut(text, lead); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return true
		}
	}
	return false
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

// toolPath returns the path of a tool that a schema check names, or that a layer
// of the text begins with, as in
// "tools.3.custom.name: String should …" and "Invalid 'tools[0].name': string …".
func toolPath(text string) string {
	for _, b := range breaches(text) {
		if isToolPath(b.path) {
			return b.path
		}
	}
	for layer := range strings.SplitSeq(text, string(rule.Border)) {
		layer = strings.TrimPrefix(strings.TrimPrefix(strings.TrimLeft(layer, " '"), "invalid "), "'")
		n := nameLen(layer)
		if rest := strings.TrimPrefix(layer[n:], "'"); strings.HasPrefix(rest, ":") && isToolPath(layer[:n]) {
			return layer[:n]
		}
	}
	return ""
}

// refusesKnown reports that a request field with a known name and a refusal
// stand close together.
func refusesKnown(v *view) bool {
	text := v.text
	if _, rest, ok := strings.Cut(text, "not support "); ok && strings.Contains(firstName(rest), "_") {
		return true
	}
	if limitedField(text) != "" {
		return true
	}
	name := firstKnown(text, knownNames[:])
	if name == "" || name == "max_tokens" || name == "max_completion_tokens" || name == "max_output_tokens" || name == "cache_control" || name == "thinking" {
		return false
	}
	i := strings.Index(text, name)
	near := text[max(0, i-60):min(len(text), i+len(name)+60)]
	for _, refusal := range [...]string{"not support", "n't support", "unsupported", "not available", "unavailable", "not allowed", "not permitted",
		"not enabled", "not accepted", "unrecognized", "unexpected", "not recognized", "deprecated", "must be removed", "remove ", "only supported",
		"only available", "only support", "restricted to", "not one of the allowed", "不支持"} {
		if strings.Contains(near, refusal) {
			return true
		}
	}
	return false
}

// limitedField returns the field of which a text says that it is only for
// some: "previous_response_id is only supported on …".
func limitedField(text string) string {
	for _, verb := range [...]string{" is only supported ", " is only available ", " is only allowed ", " is only valid ", " parameter is restricted to "} {
		if head, _, ok := strings.Cut(text, verb); ok {
			if name := lastName(head); strings.Contains(name, "_") && isParam(name) && !strings.Contains(name, "image") {
				return name
			}
		}
	}
	return ""
}

// modelNamed reports that what a text calls unsupported is a model, by name:
// "model 'command-r' is not supported by the generate API".
func modelNamed(v *view) bool {
	text := v.text
	for rest, tries := text, 0; tries < 8; tries++ {
		_, after, ok := strings.Cut(rest, "model ")
		if !ok {
			break
		}
		rest = after
		id := strings.TrimLeft(after, "'")
		n := 0
		for n < len(id) && (nameByte(id[n]) || id[n] == '/' || id[n] == ':' || id[n] == '@') {
			n++
		}
		if tail := strings.TrimLeft(id[n:], "'"); n > 1 && (strings.HasPrefix(tail, " is not supported") || strings.HasPrefix(tail, " not supported")) {
			return true
		}
	}
	return false
}
