package transcript

import "bytes"

// chat reads Chat Completions, as OpenAI and its compatible providers define
// it: https://platform.openai.com/docs/api-reference/chat/create
type chat struct{}

var _ reader = chat{}

var chatLayout = layout{
	name: "chat", api: OpenAI,
	list: "messages", offer: "tools", prefills: true,
	limits:  []string{"max_completion_tokens", "max_tokens"},
	budgets: [][2]string{{"thinking", "budget_tokens"}, {"reasoning", "max_tokens"}}, // Anthropic behind other gateways; OpenRouter
	indexed: []indexed{
		{"role", keyRole}, {"content", keyContent}, {"tool_calls", keyCalls}, {"function_call", keyCall}, {"tool_call_id", keyCallID},
	},
}

func (chat) check(b *Body) *Error {
	if err := b.checkModel(); err != nil {
		return err
	}
	if f := b.find("messages"); f != nil && b.raw[f.val] != '[' && b.raw[f.val] != 'n' {
		return b.wrong(f, "an array")
	}
	if err := b.checkStream(); err != nil {
		return err
	}
	if f := b.find("stream_options"); f != nil {
		raw := b.raw[f.val:f.valEnd]
		if raw[0] != '{' && !isNull(raw) {
			return b.wrong(f, "an object")
		}
		v, _ := member(raw, "include_usage")
		b.usage = isTrue(v)
	}
	if f := b.find("n"); f != nil && b.raw[f.val] != 'n' {
		var ok bool
		if b.n, ok = integer(b.raw[f.val:f.valEnd]); !ok {
			return b.wrong(f, "an integer")
		}
	}
	return nil
}

func (chat) entry(b *Body, i int) entry {
	role := roleOf(b.key(i, keyRole))
	if role == "function" { // the deprecated form of a result
		role = RoleTool
	}
	return entry{
		role: role, content: b.key(i, keyContent), contentField: "content", answers: b.key(i, keyCallID), answersField: "tool_call_id",
		calls: b.key(i, keyCalls) != nil || b.key(i, keyCall) != nil,
	}
}

func (chat) part(raw []byte) (p part) {
	if isString(raw) {
		return part{kind: partText, wire: []byte("text"), plain: true, texts: [2][]byte{raw}}
	}
	switch p = typedPart(raw); string(p.wire) {
	case "text":
		return p
	case "thinking", "redacted_thinking", "reasoning":
		p.kind = partReasoning
	case "refusal", "":
	default:
		p.kind = partMedia
	}
	p.payload, _ = member(raw, string(p.wire)) // the field is named like the type
	return p
}

// asides yields reasoning that the client sends back, as DeepSeek, OpenRouter and LiteLLM
// spell it, a refusal, signatures that Gemini puts on calls, and cache marks of Anthropic
// and OpenRouter. Signatures and sealed reasoning do not count as words: they are opaque.
func (chat) asides(b *Body, i int, yield func(aside) bool) bool {
	for name, v := range fieldsOf(b.element(i)) {
		a := aside{raw: v}
		switch string(name) {
		case "cache_control":
			a.mark = true
		case "refusal":
			a.words = true
		case "extra_content", "signature":
			a.seal = true
		case "tool_calls":
			for call := range elementsOf(v) {
				extra, _ := member(call, "extra_content")
				signature, _ := member(call, "thought_signature")
				if filled(extra) || filled(signature) {
					a = aside{raw: call, seal: true}
				}
			}
		default:
			a.words = bytes.HasPrefix(name, []byte("reasoning")) || bytes.HasPrefix(name, []byte("thinking"))
			a.seal = ReasoningField(name)
		}
		if (a.words || a.seal || a.mark) && !yield(a) {
			return false
		}
	}
	return true
}

// ReasoningField reports whether a field of a chat message holds reasoning, in the spelling of any provider.
func ReasoningField[S ~string | ~[]byte](name S) bool {
	switch string(name) {
	case "reasoning_content", "reasoning_details", "reasoning", "reasoning_opaque", "thinking", "thinking_blocks":
		return true
	}
	return false
}

func (c chat) message(role, text string, mark []byte) []byte {
	if mark == nil {
		return Object("role", role, "content", text)
	}
	return Object("role", role, "content", List([][]byte{c.textPart(text, mark)}))
}

func (chat) textPart(text string, mark []byte) []byte {
	if mark == nil {
		return Object("type", "text", "text", text)
	}
	return Object("type", "text", "text", text, "cache_control", mark)
}

func (chat) result(c ToolCall, text string) []byte {
	return Object("role", RoleTool, "tool_call_id", c.ID, "content", text)
}

func (chat) tool(name string) []byte {
	return Object("type", KindFunction, "function", Object("name", name, "parameters", anyObject))
}

func (chat) choice(t *Tool) []byte {
	if t == nil {
		return []byte(`"none"`)
	}
	return Object("type", KindFunction, "function", Object("name", t.Name))
}

func (chat) appendCalls(calls []ToolCall, b *Body, i int) []ToolCall {
	list := b.key(i, keyCalls)
	if call := b.key(i, keyCall); !isList(list) && isObject(call) { // the deprecated form: one call without an id
		return append(calls, b.callOf(callIn(call, "", "arguments")))
	}
	for call := range elementsOf(list) {
		var id, function, custom []byte
		for name, v := range fieldsOf(call) {
			switch string(name) {
			case "id":
				id = v
			case "function":
				function = v
			case "custom":
				custom = v
			}
		}
		f := callIn(function, "", "arguments")
		if function == nil {
			f = callIn(custom, "", "input")
		}
		f.id = id
		c := b.callOf(f)
		if custom != nil {
			c.kind = "custom"
		}
		calls = append(calls, c)
	}
	return calls
}

// rawCall is the raw parts of a call.
type rawCall struct{ kind, id, namespace, name, arguments []byte }

// callIn reads a call, whose id and arguments are in the fields with these names.
func callIn(raw []byte, id, arguments string) (c rawCall) {
	for name, v := range fieldsOf(raw) {
		switch string(name) {
		case id:
			c.id = v
		case arguments:
			c.arguments = v
		case "type":
			c.kind = v
		case "namespace":
			c.namespace = v
		case "name":
			c.name = v
		}
	}
	return c
}

// shortTexts limits the size of a call's texts that callOf decodes into one string, in bytes.
const shortTexts = 512

// callOf returns the call of f. Short texts share one string, which saves allocations.
func (b *Body) callOf(f rawCall) (c ToolCall) {
	if f.arguments != nil {
		c.Arguments, c.Span = clipped(f.arguments), b.span(f.arguments)
	}
	if f.id != nil {
		c.IDSpan = b.span(f.id)
	}
	if len(f.name)+len(f.id)+len(f.arguments) > shortTexts {
		c.Name, c.ID = text(f.name), text(f.id)
		return c
	}
	var room [shortTexts]byte
	name := len(appendText(room[:0], f.name))
	behind := len(appendText(room[:name], f.id))
	all := string(appendText(room[:behind], f.arguments))
	c.Name, c.ID, c.said = all[:name], all[name:behind], all[behind:]
	return c
}

func (c chat) settings(b *Body) (s settings) {
	logprobs, _ := b.Field("logprobs")
	modalities, _ := b.Field("modalities")
	s.logprobs, s.reasoning = isTrue(logprobs), c.reasons(b)
	deferred, _ := b.Field("deferred")
	s.state.Single = isTrue(deferred) // xAI answers with an id
	s.audio = b.has("audio") || bytes.Contains(modalities, []byte(`"audio"`))
	s.form, _ = b.Field("response_format")
	return s
}

// reasons reports whether the request asks for reasoning.
func (chat) reasons(b *Body) bool {
	idle := func(effort []byte) bool {
		switch text(effort) {
		case "", "none", "minimal":
			return true
		}
		return false
	}
	if raw, _ := b.Field("reasoning_effort"); !idle(raw) {
		return true // OpenAI and most others
	}
	if raw, _ := b.Field("reasoning"); isObject(raw) { // OpenRouter
		effort, named := member(raw, "effort")
		enabled, set := member(raw, "enabled")
		if set && isBool(enabled) && !isTrue(enabled) {
			return false
		}
		return !named || isNull(effort) || !idle(effort)
	}
	if raw, _ := b.Field("thinking"); isObject(raw) { // Anthropic, GLM, DeepSeek
		kind := stringField(raw, "type")
		return kind == "enabled" || kind == "adaptive"
	}
	if raw, _ := b.Field("enable_thinking"); isTrue(raw) { // Qwen
		return true
	}
	if raw, _ := b.Field("chat_template_kwargs"); len(raw) > 0 { // vLLM and SGLang
		qwen, _ := member(raw, "enable_thinking")
		deepseek, _ := member(raw, "thinking")
		return isTrue(qwen) || isTrue(deepseek)
	}
	return false
}

// choiceIn reads a tool_choice. Its details are in an object named like its type, or
// beside the type.
func choiceIn(raw []byte) ToolChoice {
	switch text(raw) {
	case "none":
		return ToolChoice{Choice: ChoiceNone}
	case "required", "any": // "any" is Mistral's spelling
		return ToolChoice{Choice: ChoiceRequired}
	}
	if !isObject(raw) {
		return ToolChoice{}
	}
	kind := stringField(raw, "type")
	switch kind {
	case "none":
		return ToolChoice{Choice: ChoiceNone}
	case "any":
		return ToolChoice{Choice: ChoiceRequired}
	}
	inner := raw
	if v, _ := member(raw, kind); isObject(v) {
		inner = v // {"type":"function","function":{"name":…}}, {"type":"allowed_tools","allowed_tools":{…}}
	}
	if kind != "allowed_tools" {
		if name := stringField(inner, "name"); name != "" {
			return ToolChoice{Choice: ChoiceNamed, Name: name}
		}
		return ToolChoice{}
	}
	c := ToolChoice{Allowed: []string{}}
	if stringField(inner, "mode") == "required" {
		c.Choice = ChoiceRequired
	}
	list, _ := member(inner, "tools")
	for tool := range elementsOf(list) {
		if v, _ := member(tool, stringField(tool, "type")); isObject(v) {
			tool = v
		}
		if name := stringField(tool, "name"); name != "" {
			c.Allowed = append(c.Allowed, name)
		}
	}
	return c
}
