package repair

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// The names of unwrapping steps. None of them loses or adds anything.
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

// Marks that stand at the ends of a value and are not part of it: special
// tokens of chat templates, and the tags of dialects.
var (
	tokenFirst = regexp.MustCompile(`^(?:<[|｜][^<>|｜\s]{1,60}[|｜]>|</?s>|<eos>|<bos>|<(?:start|end)_of_turn>|\[/?TOOL_CALLS\]|\[ARGS\]|\[/?INST\])`)
	tokenLast  = regexp.MustCompile(`(?:<[|｜][^<>|｜\s]{1,60}[|｜]>|</?s>|<eos>|<bos>|<(?:start|end)_of_turn>|\[/?TOOL_CALLS\]|\[/?INST\])$`)
	tagFirst   = regexp.MustCompile(`^<(?:tool_call|tool_calls|function_call|function_calls|functioncall|arguments|args|parameters|params|input|tool_input|json|` +
		`invoke name="?[\w.:-]{1,128}"?|function(?:=|\s+name=)"?[\w.:-]{1,128}"?)>`)
	tagLast = regexp.MustCompile(`</(?:tool_call|tool_calls|function_call|function_calls|functioncall|arguments|args|parameters|params|input|tool_input|` +
		`json|invoke|function|minimax:tool_call)>$`)
	languages = regexp.MustCompile(`^(?i:json|jsonc|json5|javascript|js|python|py|tool_call|tool_code|xml)?[ \t]*(?:\r?\n|$)`)
)

// peel takes one layer off a value. rule is empty where there is none.
func peel(text string) (inner, rule string) {
	if inner, ok := strings.CutPrefix(text, "\ufeff"); ok {
		return inner, ruleTokens
	}
	text = strings.TrimSpace(text)
	if inner, ok := unfence(text); ok {
		return inner, ruleFence
	}
	if inner, ok := cutEnds(text, tokenFirst, tokenLast); ok {
		return inner, ruleTokens
	}
	if inner, ok := cutEnds(text, tagFirst, tagLast); ok {
		return inner, ruleTags
	}
	if inner, ok := strings.CutPrefix(text, "json"); ok && (strings.HasPrefix(strings.TrimSpace(inner), "{") || strings.HasPrefix(inner, "<|")) {
		return inner, ruleLanguageTag
	}
	if inner, ok := unquote(text); ok {
		return inner, ruleEncoded
	}
	if inner := pathsEscaped(text); inner != text {
		return inner, rulePaths
	}
	return "", ""
}

// windowsPath is a string that is nothing but a path of Windows, its backslashes
// escaped or not. Space is part of it only where the parameter's name says that it
// is a path: the \n in C:\a is wrong\nSo may end a line.
var windowsPath = regexp.MustCompile(`(?i)("\w*(?:path|file|dir|directory|folder|cwd)"\s*:\s*)?` +
	`"((?:[a-z]:|\\\\(?:\\\\)?[\w.$-]+)(?:\\\\?[\w.$~@+()-][\w.$~@+() -]*)+)"`)

// pathsEscaped escapes the paths in a text that are not JSON: no path has a line break
// or a tab, so where one backslash escapes nothing, none does.
func pathsEscaped(text string) string {
	if !strings.Contains(text, `:\`) && !strings.Contains(text, `"\\`) {
		return text // as nearly all
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
			path = `\\` + path // of a share
		}
		return name + string(transcript.String(path))
	})
}

// unfence takes off a markdown fence around the whole text.
func unfence(text string) (inner string, ok bool) {
	for _, fence := range []string{"```", "~~~"} {
		if body, ok := strings.CutPrefix(text, fence); ok {
			body, _ = strings.CutSuffix(body, fence)
			if strings.Contains(body, "\n"+fence) {
				return "", false // several blocks
			}
			if m := languages.FindString(body); m != "" {
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

func cutEnds(text string, first, last *regexp.Regexp) (inner string, ok bool) {
	if m := first.FindString(text); m != "" {
		text, ok = text[len(m):], true
	}
	// The end is short: a pattern that is anchored there need not see the rest.
	if m := last.FindString(text[max(0, len(text)-200):]); m != "" {
		text, ok = text[:len(text)-len(m)], true
	}
	return text, ok && text != ""
}

// unquote decodes a value that was encoded twice: a JSON string that holds
// JSON, or the inside of one.
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

// looksEscaped reports whether the first name in an object has its quotes escaped.
func looksEscaped(text string) bool {
	rest, ok := strings.CutPrefix(text, "{")
	rest = strings.TrimLeft(strings.ReplaceAll(rest[:min(len(rest), 64)], `\n`, " "), " \t\r\n")
	return ok && strings.HasPrefix(rest, `\"`)
}

// inWrapper are the names under which wrapper objects keep the arguments.
var inWrapper = []string{"arguments", "parameters", "args", "params", "input", "tool_input", "kwargs"}

// unwrapObject takes the arguments out of an object around them: {"arguments":
// {…}}, {"name": "read_file", "parameters": {…}}, {"function": {…}}, or
// {"read_file": {…}}. The object's members must be of no other kind, and none
// of them may be a property of the tool. The name, if there is one, must be the tool's.
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
		case slices.Contains(inWrapper, m.name) && inner == nil:
			inner = m.val
		case m.name == "function" && m.val.kind == kindObject && inner == nil:
			if inner = unwrapObject(m.val, tool, doc); inner == nil {
				return nil
			}
		case m.name == "name" || m.name == "function" || m.name == "tool" || m.name == "tool_name" || m.name == "function_name" || m.name == "recipient_name":
			if m.val.kind != kindString || bare(m.val.str()) != tool {
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

// propertiesOf are the properties of an object schema at its top.
func propertiesOf(doc any) map[string]any {
	return propertiesOfForm((&coercer{root: doc}).resolve(doc))
}

// repeated reads a value that stands several times in a row, each time the
// same, or behind an empty one.
func repeated(text string) *value {
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
			n++ // an empty object that a server put in front
			continue
		}
		first = v
	}
}

// inProse finds the one JSON object in a text that has no other brackets or
// quotes: words around a value, not a text about one.
func inProse(text string) (inner string, ok bool) {
	from := strings.IndexByte(text, '{')
	if from < 0 {
		return "", false
	}
	_, rules, end, err := readPrefix(text[from:])
	if err != nil || len(rules) > 0 {
		return "", false
	}
	if strings.ContainsAny(text[:from], "{}[]\"<>") || strings.ContainsAny(text[from+end:], "{}[]\"<>") {
		return "", false
	}
	return text[from : from+end], true
}
