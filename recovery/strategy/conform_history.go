package strategy

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// wordedEdit is the edit for refusals with one of some words, in lower case.
type wordedEdit struct {
	words []string
	edit  recovery.Edit
}

// historyEdits are the edits by words of a refusal, in the order in which they are tried.
var historyEdits = []wordedEdit{
	{[]string{"missing a thought_signature", "missing thought signature", "thought_signature is missing"}, recovery.Edit{Conform: recovery.ConformSignatures}},
	{[]string{
		"corrupted thought signature", "thought signature is not valid", "invalid thought",
	}, recovery.Edit{Conform: recovery.ConformSignatures, Field: "all"}},
	{[]string{"expected an id that begins with", "duplicate item found with id", ".id': string too long"}, recovery.Edit{Conform: recovery.ConformItemIDs}},
	{[]string{
		"toolconfig field must be defined", "tools must be defined", "tools= param", "tools parameter is required", "requires tools",
	}, recovery.Edit{Conform: recovery.ConformStubTools}},
	{[]string{
		"with a length of 9", "length of 9", "maximum length 40", "tool_calls[0].id", "].id': string", "tool_use.id: string should match",
		"invalid tool call id", "invalid tool_call_id", ".call_id': string too long",
	}, recovery.Edit{Conform: recovery.ConformCallIDs}},
	{[]string{
		"must alternate", "roles must alternate", "alternating", "consecutive messages", "expected last role", "unexpected role 'user' after role 'user'",
	}, recovery.Edit{Conform: recovery.ConformAlternate}},
	{[]string{"unexpected role 'user' after role 'tool'"}, recovery.Edit{Conform: recovery.ConformBetween}},
	{[]string{
		"unexpected role \"system\"", "system message must be at the beginning", "system messages must", "system message at the beginning", "unexpected role 'system'",
		"system role is only", "input should be 'user' or 'assistant'", "role 'system' must precede",
	}, recovery.Edit{Conform: recovery.ConformSystem}},
	{[]string{
		"invalid chat setting", "one system message", "multiple system messages", "system message must be the first", "single system message",
	}, recovery.Edit{Conform: recovery.ConformOneSystem}},
	{reasoningDemanded, recovery.Edit{Conform: recovery.ConformAnswered, Field: recovery.ThoughtField}},
	{reasoningDemanded, recovery.Edit{Conform: recovery.ConformThought}}, // an empty reasoning is refused in the same words
	{[]string{
		"unterminated string starting at", "expecting value: line", "expecting property name enclosed", "function arguments json", "function.arguments", "invalid function arguments",
		"arguments must be valid json", "tool_use.input: field required", "not a valid json string", "arguments is not valid json", "arguments are not valid json",
		"arguments must be in json", "invalid tool call arguments", "arguments must be a json", "tool_use.input: input should be a valid dictionary",
	}, recovery.Edit{Conform: recovery.ConformArguments}},
	{[]string{
		"but got null instead", "expected a string, got null", "content cannot be null", "content must not be null", "none is not an allowed value", "got nonetype",
		"missing field `content`", "missing field 'content'", "missing field \"content\"", "'content' is a required property", "content: field required", "missing required field: content",
	}, recovery.Edit{Conform: recovery.ConformContent}},
	{[]string{
		"non-empty content", "must be non-empty", "cannot be empty", "content is empty", "expected a string, got null", "content is required",
		"must have non-empty", "content should not be empty", "empty content", "must not be empty", "may not be empty", "at least one parts field",
		"contents.parts must not be empty", "empty text blocks", "content field is empty", "without content", "content blocks must be non-empty", "text` is not set", "text` is not present",
	}, recovery.Edit{Conform: recovery.ConformEmpty}},
	{[]string{"text` is not set", "text` is not present"}, recovery.Edit{Conform: recovery.ConformPadded}},
	{[]string{
		"invalid type: sequence, expected a string", "content must be a string", "content should be a string", "expected a string, got array",
		"expected a string but got an array", "input should be a valid string",
	}, recovery.Edit{Conform: recovery.ConformTextOnly}},
	{[]string{"strategy requires `thinking`"}, recovery.Edit{Conform: recovery.ConformUnthinking}},
	{toolNameRefused, recovery.Edit{Conform: recovery.ConformNames}},
	{[]string{"].name': string does not match"}, recovery.Edit{Conform: recovery.ConformField, Field: "name"}},
	{[]string{"].tool_calls': empty array"}, recovery.Edit{Conform: recovery.ConformField, Field: "tool_calls"}},
}

// reasoningDemanded are words, in lower case, of refusals of a history without reasoning.
var reasoningDemanded = []string{
	"reasoning_content` in the thinking mode must be passed back", "reasoning_content in the thinking mode must be passed back", "reasoning_content must be passed back",
	"missing reasoning_content", "reasoning_content is missing", "reasoning_content is required", "missing field `reasoning_content`", "missing `reasoning_content`",
	"`reasoning_content` is missing", "'reasoning_content' is missing", "reasoning_content is missing in assistant", "reasoning content must be passed back",
	"reasoning content in the thinking mode must be passed back",
}

// toolNameRefused are words, in lower case, of refusals of a tool's name.
var toolNameRefused = []string{
	"function.name'", "function.name:", "function.name ", ".function.name", "].name': string", "invalid function name", "function name must", "tool name must", "invalid tool name",
	"toolspec.name", "tooluse.name", "custom.name:", "function name is invalid", "tool names must", "name of the function",
}

// ConformHistory edits the parts of the conversation that a target refuses: calls and results that do not match, ids, the
// order of turns, empty messages. The words of the refusal select the edit. An edit that changes nothing, or that did not
// help before, is skipped.
func ConformHistory(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	if a, ok := first(s, f, dropEmptyEnd, dropThinking, dropImplied, moveSystem, dropMarks, dropToolOptions); ok {
		return a, true
	}
	if a, ok := byWords(s, f, refusalText(f), historyEdits); ok {
		return a, true
	}
	if f.Class() == recovery.ToolPairing { // the refusal only says that calls and results do not match
		if a, ok := withEdit(s, f, recovery.Edit{Conform: recovery.ConformPairing}); ok {
			return a, true
		}
	}
	if a, ok := bySubject(s, f); ok {
		return a, true
	}
	if option, _, _ := strings.Cut(f.Facts.Param, "."); f.Class() == recovery.InvalidRequest && recovery.Droppable(option) {
		if a, ok := adaptNamed(s, f); ok {
			return a, true
		}
	}
	return mendDefects(s, f)
}

// subjectEdit is the edit for refusals that are about something, in lower case.
type subjectEdit struct {
	about *recovery.Pattern
	edit  recovery.Edit
}

// bySubject returns the attempt with an edit of what the refusal is about, if the request has it in a form that some server
// refuses.
func bySubject(s *recovery.Situation, f *recovery.Failure) (a recovery.Action, ok bool) {
	text := refusalText(f)
	for _, m := range subjectEdits {
		at := m.about.FindAllStringIndex(text, 1)
		if at == nil {
			continue
		}
		if a, ok = withEdit(s, f, m.edit); ok {
			a.Once = echoed(s.Exchange.Body.Raw(), text, at[0][0], at[0][1])
			return a, true
		}
	}
	if _, formatted := s.Exchange.Body.Field("response_format"); schemaMeant.MatchString(text) && !formatted && f.Class() != recovery.InvalidToolSchema {
		return TrimSchema(s, f)
	}
	return a, false
}

// defects are the edits of what hardly any server takes: they change only a history that is broken.
var defects = []recovery.Edit{{Conform: recovery.ConformPairing}, {Conform: recovery.ConformArguments}, {Conform: recovery.ConformEmpty}}

// mendDefects returns the attempt without the defects of the history, if the refusal names nothing else that the request has. Which of
// them was refused is not known, so nothing is learnt. If there are none, and the refusal is about messages, their lists of texts become
// strings; a target that then answers takes only these.
func mendDefects(s *recovery.Situation, f *recovery.Failure) (a recovery.Action, ok bool) {
	if !unnamed.MatchString(refusalText(f)) {
		return a, false
	}
	for _, ed := range defects {
		if one, ok := withEdit(s, f, ed); ok {
			a.Target, a.Edits, a.Once = one.Target, append(a.Edits, one.Edits...), true
		}
	}
	if len(a.Edits) == 0 && strings.Contains(refusalText(f), "message") {
		return withEdit(s, f, recovery.Edit{Conform: recovery.ConformTextOnly})
	}
	return a, len(a.Edits) > 0
}

// unnamed matches refusals of the whole request, or of its messages as a whole.
var unnamed = recovery.NewPattern(`\b(?:invalid|illegal|incorrect|improperly|malformed|wrong|not valid)\b.{0,40}\b(?:request|param(?:eter)?s?|messages?|body|argument|input|format)\b|` +
	`\b(?:request|param(?:eter)?s?|messages?|body|argument|input)\b.{0,40}\b(?:invalid|illegal|incorrect|malformed|wrong|not valid|error)\b|参数有误|参数错误`)

// echoed reports whether a passage of a refusal stands in the request with the words before or behind it. Then the client may
// have written it, and nothing is learnt from it for others.
func echoed(request []byte, text string, from, to int) bool {
	const around = 12 // bytes
	request = bytes.ToLower(request)
	return from >= around && bytes.Contains(request, []byte(text[from-around:to])) ||
		to+around <= len(text) && bytes.Contains(request, []byte(text[from:to+around]))
}

// schemaMeant matches refusals of a schema that are not known as such.
var schemaMeant = recovery.NewPattern(`\bschemas?\b|\$defs|\$ref\b|'strict'|\bstrict=|nesting depth|function format`)

// subjectEdits are the edits by what a refusal is about, in the order in which they are tried. Each changes only requests
// that have what it is about.
var subjectEdits = []subjectEdit{
	{recovery.NewPattern(`\bmessages?\b[^.]{0,60}\bname\b|\bname\b[^.]{0,60}\bmessages?\b`), recovery.Edit{Conform: recovery.ConformField, Field: "name"}},
	{recovery.NewPattern(`\bsingle tool[- ]calls?\b|\bone tool[- ]call\b|parallel tool[- ]calls?`), recovery.Edit{Conform: recovery.ConformSingle}},
	{recovery.NewPattern(`\b(?:array|list|sequence)\b.{0,80}\bstring|string\b.{0,80}\b(?:array|list|sequence)\b|content.{0,30}\bstr(?:ing)?\b|instance of content\b|untagged enum|single .?text.? element`), recovery.Edit{Conform: recovery.ConformTextOnly}},
	{recovery.NewPattern(`content[^.]{0,40}\b(?:nil|null|none|nonetype|missing|required|undefined)\b|either 'content' or 'tool_calls'|invalid 'content' field`), recovery.Edit{Conform: recovery.ConformContent}},
	{recovery.NewPattern(`\b(?:content|text|message)s?\b.{0,80}\b(?:blank|empty|whitespace|nothing|at least one|length must)\b|\b(?:blank|empty|non-?whitespace)\b[^.]{0,40}\b(?:content|text|message)|content[^.]{0,20}\b(?:or|and)\b[^.]{0,4}tool_calls|last role|must end with`), recovery.Edit{Conform: recovery.ConformEmpty}},
	{recovery.NewPattern(`trailing (?:whitespace|blank|space)`), recovery.Edit{Conform: recovery.ConformTrimmed}},
	{recovery.NewPattern(`\b(?:assistant|user) messages\b|\broles?\b|\bturns?\b|\balternat(?:e|es|ing)\b|交替`), recovery.Edit{Conform: recovery.ConformAlternate}},
	{recovery.NewPattern(`\bttl\b`), recovery.Edit{Conform: recovery.ConformNested, Field: "cache_control.ttl"}},
	{recovery.NewPattern(`cache_control`), recovery.Edit{Conform: recovery.ConformNested, Field: "cache_control"}},
	{recovery.NewPattern(`names? must be unique|duplicate (?:tool|function)`), recovery.Edit{Conform: recovery.ConformUnique}},
	{recovery.NewPattern(`(?:start|begin)s? with an? '?user|first message|first (?:turn|role)|'user' role|no user|role of user|after a user turn`), recovery.Edit{Conform: recovery.ConformUserFirst}},
	{recovery.NewPattern(`function_?response\.name|(?:tool (?:message|response)|result)s?\b[^.]{0,40}\bname\b`), recovery.Edit{Conform: recovery.ConformResults}},
	{recovery.NewPattern(`\brole\b|developer`), recovery.Edit{Role: "developer", Rename: "system"}},
	{recovery.NewPattern(`\bsystem\b`), recovery.Edit{Conform: recovery.ConformOneSystem}},
	{recovery.NewPattern(`\bsystem (?:role|messages?|prompts?|instructions?)\b.{0,20}\b(?:not (?:be )?(?:supported|enabled)|unsupported)\b`), recovery.Edit{Conform: recovery.ConformNoSystem}},
	{recovery.NewPattern(`untagged enum|\breasoning\b|\bthinking\b`), recovery.Edit{Conform: recovery.ConformReasoning}},
	{recovery.NewPattern(`both content and (?:thinking|reasoning)`), recovery.Edit{Conform: recovery.ConformField, Field: recovery.ThoughtField}},
	{recovery.NewPattern(`\btools?\b|toolconfig`), recovery.Edit{Conform: recovery.ConformStubTools}},
}

// dropEmptyEnd removes a message of the model at the end that says nothing, if the target does not continue messages.
func dropEmptyEnd(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	if !strings.Contains(strings.ToLower(f.Signal.Message), "prefill") {
		return recovery.Action{}, false
	}
	return withEdit(s, f, recovery.Edit{Conform: recovery.ConformEmpty})
}

// refusalText returns the words of a refusal in lower case. Some providers put the cause into param.
func refusalText(f *recovery.Failure) string {
	return strings.ToLower(f.Signal.Message + " " + f.Signal.Param)
}

// byWords returns the attempt with the first edit of a list whose words stand in the text and that can help.
func byWords(s *recovery.Situation, f *recovery.Failure, text string, list []wordedEdit) (a recovery.Action, ok bool) {
	for _, m := range list {
		if containsAny(text, m.words) {
			if a, ok = withEdit(s, f, m.edit); ok {
				return a, true
			}
		}
	}
	return a, false
}

// systemRefused matches the refusal of a message with the role system, in any wording.
var systemRefused = recovery.NewPattern(`(?i)['"` + "`" + `]system['"` + "`" + `][^.]{0,40}['"` + "`" + `]user['"` + "`" + `]|\brole\b[^.]{0,80}\bsystem\b|\bsystem\b[^.]{0,40}\brole\b`)

// moveSystem changes system messages among those of a Messages request, as Claude Code sends them, for a server that takes them only as the
// system prompt.
func moveSystem(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	if !s.Exchange.Body.Format().SystemOutside() || !s.Exchange.Body.HasRole("system") || !systemRefused.MatchString(f.Signal.Message) {
		return recovery.Action{}, false
	}
	return withEdit(s, f, recovery.Edit{Conform: recovery.ConformSystem})
}

// tooManyMarks matches the refusal of more marks of the prompt cache than a provider takes. It counts those that a
// server between adds, too.
var tooManyMarks = recovery.NewPattern(`(?i)maximum of (\d{1,2}) blocks with cache_control may be provided\. found (\d{1,4})`)

// dropMarks removes as many marks as are too many. The edit concerns this request only.
func dropMarks(s *recovery.Situation, f *recovery.Failure) (a recovery.Action, ok bool) {
	m := tooManyMarks.FindStringSubmatch(f.Signal.Message + " " + f.Signal.Param)
	if m == nil {
		return a, false
	}
	most, _ := strconv.Atoi(m[1])
	found, _ := strconv.Atoi(m[2])
	a, ok = withEdit(s, f, recovery.Edit{Conform: recovery.ConformMarks, Field: strconv.Itoa(found - most)})
	a.Once = true
	return a, ok && found > most
}

// first returns the attempt of the first of some ways that can help.
func first(s *recovery.Situation, f *recovery.Failure, ways ...func(*recovery.Situation, *recovery.Failure) (recovery.Action, bool)) (a recovery.Action, ok bool) {
	for _, way := range ways {
		if a, ok = way(s, f); ok {
			return a, true
		}
	}
	return a, false
}

// withEdit returns the attempt with one more edit; ok is false if the edit changes nothing or was made before.
func withEdit(s *recovery.Situation, f *recovery.Failure, ed recovery.Edit) (recovery.Action, bool) {
	i := s.Current(f)
	c := &s.Exchange.Candidates[i]
	if c.Had(func(done recovery.Edit) bool { return done == ed }) || c.Unusable() || !s.Changes(i, ed) {
		return recovery.Action{}, false
	}
	return recovery.Action{Target: i, Edits: []recovery.Edit{ed}}, true
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
