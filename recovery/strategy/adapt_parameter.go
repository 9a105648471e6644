package strategy

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// AdaptParameter renames or drops a field that a target refuses. It drops only fields that do not change what the client
// asked for, such as sampling parameters and reasoning effort; see recovery.Droppable.
func AdaptParameter(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	if a, ok := first(s, f, dropEmptyEnd, dropThinking, moveSystem, dropBetas, dropImplied, dropToolOptions, adaptNamed); ok {
		return a, true
	}
	if a, ok := byWords(s, f, refusalText(f), historyEdits); ok { // some servers call what they do not take in a history a parameter
		return a, true
	}
	if name := f.Facts.Param; name != "" && !inHistoryOrTools(name) {
		if _, has := s.Exchange.Body.Field(ownName(s.Exchange.Body, name)); has {
			return recovery.Action{}, false // it is about this field
		}
	}
	if len(f.Facts.Params) > 0 {
		return recovery.Action{}, false
	}
	return bySubject(s, f)
}

// adaptNamed renames or drops the fields that the refusal names. It returns false if one of them has to stay.
func adaptNamed(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	x := s.Exchange
	i := s.Current(f)
	c := &x.Candidates[i]
	names := f.Facts.Params
	if f.Facts.Param != "" {
		names = append([]string{f.Facts.Param}, names...)
	}
	var edits []recovery.Edit
	for _, name := range names {
		if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, name+".") || strings.HasPrefix(n, name+"[") }) {
			continue // another name says where in this field
		}
		e, ok := adapt(s, name, f)
		if !ok {
			return recovery.Action{}, false // the target would still refuse this field
		}
		if c.Had(e.Replaces) {
			continue // this edit was made before and did not help
		}
		edits = append(edits, e)
	}
	if len(edits) == 0 {
		return recovery.Action{}, false
	}
	return recovery.Action{Target: i, Edits: edits, Account: containsAny(strings.ToLower(f.Signal.Message), accountWords)}, true
}

// betaRefused matches the refusal of values of the header anthropic-beta, in lower case.
var betaRefused = recovery.NewPattern(`\b(?:unexpected|invalid|unsupported|unknown|unrecogni[sz]ed)\b[^.]{0,900}\b(?:anthropic[-_]beta|beta (?:flag|header))|` +
	`\b(?:anthropic[-_]beta|beta (?:flag|header))[^.]{0,300}\bnot (?:supported|allowed|valid|recogni[sz]ed)\b`)

// betaName matches the names in such a refusal.
var betaName = recovery.NewPattern(`[\w-]+(?:\.[\w-]+)*`)

// dropBetas leaves out the client's betas that a refusal names, or all if it names none and calls them flags, as Bedrock does.
// Which betas may be used depends on the account as well.
func dropBetas(s *recovery.Situation, f *recovery.Failure) (a recovery.Action, ok bool) {
	text, betas := strings.ToLower(f.Signal.Message), s.Exchange.Betas
	if len(betas) == 0 || !betaRefused.MatchString(text) || strings.Contains(text, "require") { // which demands a beta
		return a, false
	}
	names, named := betaName.FindAllString(f.Signal.Message, -1), false
	var edits []recovery.Edit
	for _, beta := range betas {
		if slices.Contains(names, beta) {
			named = true
			one, _ := withEdit(s, f, recovery.Edit{Conform: recovery.ConformBetas, Field: beta})
			edits = append(edits, one.Edits...)
		}
	}
	if !named && strings.Contains(text, "beta flag") {
		all, _ := withEdit(s, f, recovery.Edit{Conform: recovery.ConformBetas})
		edits = all.Edits
	}
	return recovery.Action{Target: s.Current(f), Edits: edits, Account: true}, len(edits) > 0
}

// dropImplied removes a refused field that says what the request says without it. Some servers name it by the path of another API.
func dropImplied(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	for _, name := range [...]string{f.Facts.Param, lastStep(f.Facts.Param)} {
		v, _ := s.Exchange.Body.Field(name)
		if recovery.Implied(name, string(v)) && !refusesDefault(s, f, name) {
			return withEdit(s, f, recovery.Edit{Field: name, Drop: true, Value: string(v)})
		}
	}
	return recovery.Action{}, false
}

// refusesDefault reports whether the target refuses the request without the field, too: it was started without what tool_choice
// needs, or "Store must be set to false" in the Responses API, where it is true without the field.
func refusesDefault(s *recovery.Situation, f *recovery.Failure, name string) bool {
	return strings.Contains(f.Signal.Message, "requires --") ||
		name == "store" && s.Exchange.Body.Format() == transcript.Responses && strings.Contains(strings.ToLower(f.Signal.Message), "false")
}

// accountWords are words, in lower case, of refusals whose cause is the account and not the model.
var accountWords = []string{
	"organization", "your account", "your project", "your workspace", "your team", "your plan", "your tier", "access tier", "usage tier", "subscription", "verified", "data retention",
}

// thinkingFields are the fields that ask a model to think, in the spellings of providers.
var thinkingFields = []string{"thinking", "enable_thinking", "thinking_budget", "thinking_config", "reasoning", "reasoning_effort"}

// dropThinking turns thinking off if the refusal says that it conflicts with another option of the request, which then
// takes precedence. The edit concerns this request only.
func dropThinking(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	text := strings.ToLower(f.Signal.Message)
	if containsAny(text, []string{"enable_thinking must be set to false", "enable_thinking only support stream", "enable_thinking must be false"}) {
		if a, ok := withEdit(s, f, recovery.Edit{Conform: recovery.ConformThinking}); ok {
			return a, true
		}
	}
	if !strings.Contains(text, "thinking") || !containsAny(text, []string{"tool_choice", "tool choice", "budget_tokens", "thinking budget", "thinking_budget", "must start with a thinking block", "prefill"}) {
		return recovery.Action{}, false
	}
	if strings.Contains(text, "prefill") && strings.Contains(text, "enable_thinking") {
		a, ok := withEdit(s, f, recovery.Edit{Conform: recovery.ConformThinking, Field: "chat_template_kwargs"})
		a.Once = true
		return a, ok
	}
	c := &s.Exchange.Candidates[s.Current(f)]
	if s.Exchange.Body.Format().SignsReasoning() { // the thinking of the current turn has to go, too
		a, ok := withEdit(s, f, recovery.Edit{Conform: recovery.ConformThinking})
		a.Once = true
		return a, ok
	}
	for _, field := range thinkingFields {
		_, has := s.Exchange.Body.Field(field)
		if ed := (recovery.Edit{Field: field, Drop: true}); has && !c.Had(func(o recovery.Edit) bool { return o == ed }) {
			return recovery.Action{Target: s.Current(f), Edits: []recovery.Edit{ed}, Once: true}, true
		}
	}
	if !strings.Contains(text, "thinking mode") {
		return recovery.Action{}, false
	}
	a, ok := withEdit(s, f, recovery.Edit{Conform: recovery.ConformThinking, Field: "thinking"}) // it thinks unless it is told not to
	a.Once = true
	return a, ok
}

// dropToolOptions removes options for tools that the refusal names, if no tools are offered.
func dropToolOptions(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	if s.Exchange.Body.HasTools() || !containsAny(refusalText(f)+" "+strings.ToLower(f.Facts.Param), []string{"tool_choice", "tool choice", "toolchoice", "parallel_tool_calls", "parallel tool calls"}) {
		return recovery.Action{}, false
	}
	return withEdit(s, f, recovery.Edit{Conform: recovery.ConformNoTools})
}

// adapt returns the edit for one refused field; ok is false if there is none.
func adapt(s *recovery.Situation, name string, f *recovery.Failure) (recovery.Edit, bool) {
	x := s.Exchange
	if name == "user_id" { // some servers name it without its path
		name = "metadata.user_id"
	}
	if name == "store" && refusesDefault(s, f, name) {
		return recovery.Edit{}, false
	}
	if v, _ := x.Body.Field(name); recovery.Implied(name, string(v)) && !refusesDefault(s, f, name) {
		return recovery.Edit{Field: name, Drop: true, Value: string(v)}, true
	}
	if other := recovery.OtherLimit(name); other != "" {
		_, has := x.Body.Field(name)
		return recovery.Edit{Field: name, Rename: other}, has
	}
	if ed := (recovery.Edit{Conform: recovery.ConformNoTools}); (name == "parallel_tool_calls" || name == "tool_choice") && !x.Body.HasTools() {
		return ed, s.Changes(s.Current(f), ed)
	}
	_, offers := x.Body.Field("tools")
	if ed := (recovery.Edit{Conform: recovery.ConformStubTools}); name == "tools" && !offers && s.Changes(s.Current(f), ed) {
		return ed, true // it offers none: the calls of its history are what is refused
	}
	if ed, ok := refusedRole(x, name, f); ok {
		return ed, true
	}
	name = ownName(x.Body, name)
	if _, has := x.Body.Field(name); !has && strings.Contains(name, "effort") && x.Body.Format().SystemOutside() {
		name = "effort" // by the name of another API
	}
	if v, has := x.Body.Field(name); has && recovery.Droppable(name) {
		ed := recovery.Edit{Field: name, Drop: true}
		if f.Facts.OfValue && len(v) <= recovery.MaxValue {
			ed.Value = string(v) // the target may accept other values
		}
		return ed, true
	}
	if ed, ok := refusedOption(name, f); ok && s.Changes(s.Current(f), ed) {
		return ed, true
	}
	field := lastStep(name)
	if strings.Contains(name, ".cache_control.") {
		field = "cache_control." + field
	}
	if recovery.NestedLabel(field) && (field == name || inHistoryOrTools(name)) {
		ed := recovery.Edit{Conform: recovery.ConformNested, Field: field}
		if s.Changes(s.Current(f), ed) {
			return ed, true
		}
	}
	if field, _, within := strings.Cut(name, "."); within && recovery.Droppable(field) {
		v, has := x.Body.Field(field)
		if field == "metadata" { // agents send labels of one form
			return recovery.Edit{Field: field, Drop: true}, has
		}
		// The target refuses a part of this value and may accept another value.
		return recovery.Edit{Field: field, Drop: true, Value: string(v)}, has && len(v) <= recovery.MaxValue
	}
	if ed, ok := refusedContent(s, name, f); ok {
		return ed, true
	}
	field, ok := messageField(name)
	if _, has := x.Body.Field(name); !has && recovery.MessageLabel(name) {
		field, ok = name, true // some servers name the field without its path
	}
	if ok {
		ed := recovery.Edit{Conform: recovery.ConformField, Field: field}
		if s.Changes(s.Current(f), ed) {
			return ed, true
		}
	}
	if transcript.ReasoningField(name) {
		for _, field := range [...]string{"reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"} {
			if ed := (recovery.Edit{Conform: recovery.ConformField, Field: field}); s.Changes(s.Current(f), ed) {
				return ed, true
			}
		}
	}
	return recovery.Edit{}, false
}

// refusedContent returns the edit for the content of a message, if the request has one that not every server takes.
func refusedContent(s *recovery.Situation, name string, f *recovery.Failure) (ed recovery.Edit, ok bool) {
	if !strings.HasPrefix(name, "messages") || lastStep(name) != "content" {
		return ed, false
	}
	for _, conform := range [...]string{recovery.ConformTextOnly, recovery.ConformContent, recovery.ConformEmpty} {
		ed.Conform = conform
		if s.Changes(s.Current(f), ed) {
			return ed, true
		}
	}
	return ed, false
}

// ownName returns the request's name for a field that a refusal names in another way: by another provider's word for thinking,
// or by a member without the field that has it.
func ownName(b *transcript.Body, name string) string {
	if _, has := b.Field("stream_options"); has && name == "stream" && !b.Streaming() {
		return "stream_options"
	}
	if _, has := b.Field(name); has || strings.ContainsAny(name, ".[/") {
		return name
	}
	if _, has := b.Field(recovery.Snake(name)); has {
		return recovery.Snake(name)
	}
	for _, field := range thinkingFields {
		if sameName(field, name) {
			for _, field := range append([]string{field}, thinkingFields...) {
				if _, has := b.Field(field); has {
					return field
				}
			}
		}
	}
	for _, field := range [...]string{"stream_options", "reasoning", "thinking", "chat_template_kwargs", "prompt_cache_options"} {
		if v, has := b.Field(field); has && gjson.GetBytes(v, gjson.Escape(name)).Exists() {
			return field + "." + name
		}
	}
	return name
}

// sameName reports whether two names differ at most in their case and in underscores.
func sameName(a, b string) bool {
	return strings.EqualFold(strings.ReplaceAll(a, "_", ""), strings.ReplaceAll(b, "_", ""))
}

// refusedOption returns the edit that removes a refused level of effort or verbosity.
func refusedOption(name string, f *recovery.Failure) (ed recovery.Edit, ok bool) {
	ed.Conform = recovery.ConformOption
	switch name {
	case "effort", "output_config", "output_config.effort":
		ed.Field = "output_config.effort"
	case "text.verbosity":
		ed.Field = name
	default:
		return ed, false
	}
	if m := refusedLevel.FindStringSubmatch(f.Signal.Message); m != nil {
		ed.Field += "=" + m[1] // the target may accept others
	}
	return ed, true
}

// refusedLevel matches the refusal of one level.
var refusedLevel = recovery.NewPattern(`(?:level|value:) ['"]([a-z]{1,16})['"]`)

// inHistoryOrTools reports whether a path leads into the messages or tools of a request rather than into its options.
func inHistoryOrTools(path string) bool {
	first := path[:min(len(path), strings.IndexAny(path+".", ".[/"))]
	return first == "messages" || first == "input" || first == "tools" || first == "system"
}

// lastStep returns the last name of a path.
func lastStep(path string) string { return path[strings.LastIndexAny(path, ".]/")+1:] }

// messageField returns the field of a message that a parameter names, as in
// messages[2].name, messages.2.reasoning_content or input[3].phase.
func messageField(name string) (field string, ok bool) {
	rest, ok := strings.CutPrefix(name, "messages")
	if !ok {
		if rest, ok = strings.CutPrefix(name, "input"); !ok || !strings.HasPrefix(rest, "[") && !strings.HasPrefix(rest, ".") {
			return "", false
		}
	}
	field = strings.TrimLeft(rest[strings.LastIndexAny(rest, ".]")+1:], ".")
	return field, field != "" && field != "role" && field != "content" && strings.Count(rest, ".")+strings.Count(rest, "[") <= 2
}

// refusedRole recognises the refusal of the developer or system role, and returns the edit that replaces it.
func refusedRole(x *recovery.Exchange, name string, f *recovery.Failure) (ed recovery.Edit, ok bool) {
	if !strings.HasPrefix(name, "messages") && !strings.Contains(name, "role") {
		return ed, false
	}
	msg := strings.ToLower(f.Signal.Message)
	switch {
	case x.Body.HasRole("developer") && (strings.Contains(msg, "developer") || !strings.Contains(msg, "'system'") && strings.Contains(msg, "role")):
		return recovery.Edit{Role: "developer", Rename: "system"}, true
	case !strings.Contains(msg, "'system'") || !x.Body.HasRole("system") || x.Body.Format().SystemOutside():
		return ed, false
	}
	return recovery.Edit{Role: "system", Rename: "developer"}, true
}
