package repair

import (
	"github.com/rebound-llm/rebound/recovery"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// The unwrapping steps, as named in events. None of them loses or adds content.
const (
	ruleFence       = "code_fence"
	ruleTokens      = "special_tokens"
	ruleTags        = "tags"
	ruleEncoded     = "double_encoding"
	ruleWrapper     = "wrapper_object"
	ruleRepeated    = "repeated_value"
	ruleProse       = "prose_around"
	ruleListOfOne   = "list_of_one"
	ruleEmpty       = "empty_arguments"
	ruleParameters  = "tagged_parameters"
	ruleLanguageTag = "language_tag"
	rulePaths       = "windows_paths"
)

// Marks at the ends of a value that are not part of it: special tokens of chat
// templates, and tags of dialects.
var (
	leadingToken = recovery.NewPattern(`^(?:<[|｜][^<>|｜\s]{1,60}[|｜]>|</?s>|<eos>|<bos>|<(?:start|end)_of_turn>|` +
		`\[/?TOOL_CALLS\]|\[ARGS\]|\[/?INST\])`)
	trailingToken = recovery.NewPattern(`(?:<[|｜][^<>|｜\s]{1,60}[|｜]>|</?s>|<eos>|<bos>|<(?:start|end)_of_turn>|\[/?TOOL_CALLS\]|\[/?INST\])$`)
	leadingTag    = recovery.NewPattern(`^<(?:tool_call|tool_calls|function_call|function_calls|functioncall|arguments|args|parameters|params|input|tool_input|json|` +
		`invoke name="?[\w.:-]{1,128}"?|function(?:=|\s+name=)"?[\w.:-]{1,128}"?)>`)
	trailingTag = recovery.NewPattern(`</(?:tool_call|tool_calls|function_call|function_calls|functioncall|arguments|args|parameters|params|input|tool_input|` +
		`json|invoke|function|minimax:tool_call)>$`)
	fenceLanguage = recovery.NewPattern(`^(?i:json|jsonc|json5|javascript|js|python|py|tool_call|tool_code|xml)?[ \t]*(?:\r?\n|$)`)
)

// peelLayer removes one layer around a value. rule is empty if there is none.
func peelLayer(text string) (inner, rule string) {
	if inner, ok := strings.CutPrefix(text, "\ufeff"); ok {
		return inner, ruleTokens
	}
	text = strings.TrimSpace(text)
	if inner, ok := unfence(text); ok {
		return inner, ruleFence
	}
	if inner, ok := cutEnds(text, leadingToken, trailingToken); ok {
		return inner, ruleTokens
	}
	if inner, ok := cutEnds(text, leadingTag, trailingTag); ok {
		return inner, ruleTags
	}
	if inner, ok := strings.CutPrefix(text, "json"); ok && (strings.HasPrefix(strings.TrimSpace(inner), "{") || strings.HasPrefix(inner, "<|")) {
		return inner, ruleLanguageTag
	}
	if inner, ok := unquote(text); ok {
		return inner, ruleEncoded
	}
	if inner := escapePaths(text); inner != text {
		return inner, rulePaths
	}
	return "", ""
}

// windowsPath matches a string that is a Windows path and nothing else, with or without
// escaped backslashes. It may contain spaces only if the parameter's name says that it is
// a path: in "C:\a is wrong\nSo" the \n may be a line break.
var windowsPath = recovery.NewPattern(`(?i)("\w*(?:path|file|dir|directory|folder|cwd)"\s*:\s*)?` +
	`"((?:[a-z]:|\\\\(?:\\\\)?[\w.$-]+)(?:\\\\?[\w.$~@+()-][\w.$~@+() -]*)+)"`)

// escapePaths escapes the backslashes of paths that are not valid JSON strings. No path
// contains a line break or a tab, so if one backslash is no escape, none is.
func escapePaths(text string) string {
	if !strings.Contains(text, `:\`) && !strings.Contains(text, `"\\`) {
		return text // the usual case
	}
	return windowsPath.ReplaceAllStringFunc(text, func(match string) string {
		m := windowsPath.FindStringSubmatch(match)
		name, raw := m[1], m[2]
		if complete(`"`+raw+`"`) || name == "" && strings.Contains(raw, " ") {
			return match
		}
		body := strings.TrimLeft(raw, `\`)
		path := strings.ReplaceAll(body, `\\`, `\`)
		if body != raw {
			path = `\\` + path // a network share
		}
		return name + string(transcript.String(path))
	})
}

// unfence removes a Markdown fence around the whole text.
func unfence(text string) (inner string, ok bool) {
	for _, fence := range []string{"```", "~~~"} {
		if body, ok := strings.CutPrefix(text, fence); ok {
			body, _ = strings.CutSuffix(body, fence)
			if strings.Contains(body, "\n"+fence) {
				return "", false // several blocks
			}
			if m := fenceLanguage.FindString(body); m != "" {
				return body[len(m):], true
			}
			for _, name := range []string{"json", ""} { // all in one line
				if rest, ok := strings.CutPrefix(body, name); ok && strings.HasPrefix(strings.TrimSpace(rest), "{") {
					return rest, true
				}
			}
			return "", false
		}
		if body, ok := strings.CutSuffix(text, fence); ok && (strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[")) {
			return body, true
		}
	}
	if len(text) > 2 && text[0] == '`' && text[len(text)-1] == '`' && strings.Count(text, "`") == 2 {
		return text[1 : len(text)-1], true
	}
	return "", false
}

func cutEnds(text string, first, last *recovery.Pattern) (inner string, ok bool) {
	if m := first.FindString(text); m != "" {
		text, ok = text[len(m):], true
	}
	// The trailing marks are short, so the pattern is applied only to the end.
	if m := last.FindString(text[max(0, len(text)-200):]); m != "" {
		text, ok = text[:len(text)-len(m)], true
	}
	return text, ok && text != ""
}

// unquote decodes a value that was encoded twice: a JSON string that contains
// JSON, with or without its quotes.
func unquote(text string) (inner string, ok bool) {
	if strings.HasPrefix(text, `"`) {
		inner, ok = transcript.Decode([]byte(text))
	} else if looksEscaped(text) {
		inner, ok = transcript.Decode([]byte(`"` + text + `"`))
	}
	if ok {
		t := strings.TrimSpace(inner)
		ok = strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") || strings.HasPrefix(t, `"`) || strings.HasPrefix(t, "```")
	}
	return inner, ok
}

// looksEscaped reports whether the first name in an object has escaped quotes.
func looksEscaped(text string) bool {
	rest, ok := strings.CutPrefix(text, "{")
	rest = strings.TrimLeft(strings.ReplaceAll(rest[:min(len(rest), 64)], `\n`, " "), " \t\r\n")
	return ok && strings.HasPrefix(rest, `\"`)
}

// argumentKeys are the members of wrapper objects that hold the arguments.
var argumentKeys = []string{"arguments", "parameters", "args", "params", "input", "tool_input", "kwargs"}

// unwrapObject returns the arguments inside a wrapper object: {"arguments":
// {…}}, {"name": "read_file", "parameters": {…}}, {"function": {…}}, or
// {"read_file": {…}}. It returns nil if the object has any other member, if a member is
// a property of the tool, or if it names another tool.
func unwrapObject(v *value, tool string, doc any) *value {
	if v.kind != kindObject || len(v.members) == 0 || len(v.members) > 5 {
		return nil
	}
	properties := propertiesOf(doc)
	var inner *value
	for _, m := range v.members {
		if _, ok := properties[m.name]; ok {
			return nil
		}
		switch {
		case slices.Contains(argumentKeys, m.name) && inner == nil:
			inner = m.val
		case m.name == "function" && m.val.kind == kindObject && inner == nil:
			if inner = unwrapObject(m.val, tool, doc); inner == nil {
				return nil
			}
		case m.name == "name" || m.name == "function" || m.name == "tool" || m.name == "tool_name" || m.name == "function_name" || m.name == "recipient_name":
			if m.val.kind != kindString || stripName(m.val.str()) != tool {
				return nil
			}
		case m.name == tool && len(v.members) == 1:
			inner = m.val
		case m.name == "type" || m.name == "id" || m.name == "call_id" || m.name == "index":
		default:
			return nil
		}
	}
	if inner == nil {
		return nil
	}
	if inner.kind == kindString {
		text := inner.str()
		if strings.TrimSpace(text) == "" {
			return &value{kind: kindObject}
		}
		if transcript.Valid([]byte(text), maxDepth) != nil {
			return nil
		}
		inner, _, _ = readTolerant(text, false)
	}
	if inner == nil || inner.kind != kindObject {
		return nil
	}
	return inner
}

// propertiesOf returns the top-level properties of a schema.
func propertiesOf(doc any) map[string]any {
	return propertiesIn((&coercer{root: doc}).resolve(doc))
}

// repeatedValue reads an object that is repeated, or that follows an empty object.
func repeatedValue(text string) *value {
	var first *value
	for n := 0; ; n++ {
		text = strings.TrimLeft(text, " \t\r\n,;")
		if text == "" {
			if n < 2 {
				return nil
			}
			return first
		}
		v, rules, end, err := readPrefix(text)
		if err != nil || len(rules) > 0 || v.kind != kindObject || n > 16 || first != nil && !first.equal(v) {
			return nil
		}
		text = text[end:]
		if n == 0 && len(v.members) == 0 && strings.TrimSpace(text) != "" {
			n++ // some servers put an empty object in front
			continue
		}
		first = v
	}
}

// objectInProse returns the only JSON object in a text whose rest has no brackets or
// quotes: then the words surround a value and are not about one. It returns nil if there is none.
func objectInProse(text string) *value {
	from := strings.IndexByte(text, '{')
	if from < 0 {
		return nil
	}
	v, rules, end, err := readPrefix(text[from:])
	if err != nil || len(rules) > 0 || strings.ContainsAny(text[:from]+text[from+end:], "{}[]\"<>") {
		return nil
	}
	return v
}
