package transcript

import (
	"bytes"
	"math"
)

// chat reads Chat Completions, as OpenAI and its compatible providers define
// it: https://platform.openai.com/docs/api-reference/chat/create
type chat struct{}

var _ reader = chat{}

func (chat) indexed() []indexed { return chatFields[:] }

var chatFields = [...]indexed{
	{"role", keyRole}, {"content", keyContent}, {"tool_calls", keyCalls}, {"function_call", keyCall}, {"tool_call_id", keyCallID},
}

func (chat) list() string           { return "messages" }
func (chat) offer() string          { return "tools" }
func (chat) imageMark() string      { return `"image_url"` }
func (chat) outputLimits() []string { return []string{"max_completion_tokens", "max_tokens"} }

func (chat) continues(*Body) string         { return "" }
func (chat) state(*Body) State              { return State{} }
func (chat) grouped() bool                  { return false }
func (chat) content(b *Body, i int) []byte  { return b.key(i, keyContent) }
func (chat) answered(b *Body, i int) []byte { return b.key(i, keyCallID) }
func (chat) conversation(*Body) string      { return "" }
func (chat) pairsAnywhere() bool            { return false }
func (chat) instructions(*Body) []byte      { return nil }
func (chat) moreTools(*Body) [][]byte       { return nil }

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

func (chat) speaker(b *Body, i int) string {
	role := roleOf(b.key(i, keyRole))
	if role == "function" { // the older way to answer a call
		return RoleTool
	}
	return role
}

func (chat) appendText(dst, raw []byte) []byte {
	if isString(raw) {
		return appendDecoded(dst, raw)
	}
	from := len(dst)
	for part := range elementsOf(raw) {
		if isObject(part) {
			part, _ = member(part, "text")
		}
		if !isString(part) || len(part) == 2 {
			continue
		}
		if len(dst) > from {
			dst = append(dst, '\n')
		}
		dst = appendDecoded(dst, part)
	}
	return dst
}

func (chat) appendMedia(dst, raw []byte) []byte {
	const ends = 256
	for part := range elementsOf(raw) {
		// A part has its payload under the name of its type.
		kind := stringField(part, "type")
		raw, ok := member(part, kind)
		if !ok || kind == "text" {
			continue
		}
		dst = append(append(dst, kind...), ' ')
		dst = appendInt(dst, len(raw))
		dst = append(dst, raw[:min(ends, len(raw))]...)
		dst = append(dst, raw[max(0, len(raw)-ends):]...)
	}
	return dst
}

func (chat) note(text string) []byte {
	return append(append([]byte(`{"role":"user","content":`), String(text)...), '}')
}

func (chat) appendPart(parts []byte, text string) []byte {
	out := append([]byte(nil), parts[:len(parts)-1]...)
	if len(bytes.TrimRight(out, " \t\r\n")) > 1 {
		out = append(out, ',')
	}
	out = append(append(out, `{"type":"text","text":`...), String(text)...)
	return append(out, '}', ']')
}

// Reasoning that is passed back, a refusal. Signatures and sealed reasoning are no
// text: what they stand for is not known here.
func (chat) asides(b *Body, i int, yield func(raw []byte) bool) bool {
	for name, v := range fieldsOf(b.element(i)) {
		if aside := string(name) == "refusal" || bytes.HasPrefix(name, []byte("reasoning")) || bytes.HasPrefix(name, []byte("thinking")); aside &&
			!isNull(v) && !yield(clipped(v)) {
			return false
		}
	}
	return true
}

func (chat) calling(m Message) bool { return m.key(keyCalls) != nil || m.key(keyCall) != nil }

func (chat) appendCalls(calls []ToolCall, m Message) []ToolCall {
	var s scanner
	w, ok := opened(&s, m.key(keyCalls), '[')
	if !ok {
		if call := m.key(keyCall); isObject(call) {
			s = scanner{data: call, limit: math.MaxInt, known: true}
			var f callee // the older way: one call without id
			f.read(walker{s: &s}, "arguments")
			calls = append(calls, m.callOf(f, nil))
		}
		return calls
	}
	for w.next() {
		var c ToolCall
		w.to(m.call(&c, s.walk(w.val, w.depth)))
		calls = append(calls, c)
	}
	return calls
}

// call reads a call, and returns the offset behind it. Where it is of a function,
// nothing else counts.
func (m Message) call(c *ToolCall, w walker) int {
	var function, custom callee
	var id []byte
	for w.next() {
		switch string(w.name) {
		case "id":
			w.skip()
			id = w.value()
		case "function":
			w.to(function.read(w, "arguments"))
		case "custom":
			w.to(custom.read(w, "input"))
		default:
			w.skip()
		}
	}
	if !function.there {
		function = custom
	}
	*c = m.callOf(function, id)
	return w.i
}

// callee is what is called, and with what, as it stands in the body.
type callee struct {
	there           bool
	name, arguments []byte
}

// read reads the current value of w, with the arguments in the field of that
// name, and returns the offset behind it.
func (f *callee) read(w walker, arguments string) int {
	*f = callee{there: true}
	if w.s.data[w.val] != '{' {
		w.skip()
		return w.i
	}
	in := w.s.walk(w.val, w.depth)
	for in.step() {
		switch string(in.name) {
		case "name":
			f.name = in.value()
		case arguments:
			f.arguments = in.value()
		}
	}
	return in.i
}

// shortTexts is up to how many bytes the texts of a call are read together.
const shortTexts = 512

// callOf is the call of f with an id (nil: without). Its texts are one string,
// unless they are long.
func (m Message) callOf(f callee, id []byte) (c ToolCall) {
	if f.arguments != nil {
		c.Arguments, c.Span = clipped(f.arguments), m.body.span(f.arguments)
	}
	if id != nil {
		c.IDSpan = m.body.span(id)
	}
	if len(f.name)+len(id)+len(f.arguments) > shortTexts {
		c.Name, c.ID = text(f.name), text(id)
		return c
	}
	var room [shortTexts]byte
	name := len(appendText(room[:0], f.name))
	behind := len(appendText(room[:name], id))
	all := string(appendText(room[:behind], f.arguments))
	c.Name, c.ID, c.said = all[:name], all[name:behind], all[behind:]
	return c
}

func (chat) logprobs(b *Body) bool {
	raw, _ := b.Field("logprobs")
	return isTrue(raw)
}

func (chat) audio(b *Body) bool {
	raw, ok := b.Field("audio")
	if ok && !isNull(raw) {
		return true
	}
	raw, _ = b.Field("modalities")
	return bytes.Contains(raw, []byte(`"audio"`))
}

func (chat) reasoning(b *Body) bool {
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

// choiceIn reads a choice of tools, whose details stand in an object named like the
// choice's type, or beside the type.
func choiceIn(raw []byte) ToolChoice {
	switch text(raw) {
	case "none":
		return ToolChoice{Choice: ChoiceNone}
	case "required", "any": // "any" is Mistral's word
		return ToolChoice{Choice: ChoiceRequired}
	}
	if !isObject(raw) {
		return ToolChoice{}
	}
	kind := stringField(raw, "type")
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

func (chat) form(b *Body) []byte {
	raw, _ := b.Field("response_format")
	return raw
}

func (c chat) contentForm(b *Body) (ContentForm, []byte) {
	raw := c.form(b)
	if !isObject(raw) {
		return FormText, nil
	}
	switch stringField(raw, "type") {
	case "text":
		return FormText, nil
	case "json_object":
		if schema, _ := member(raw, "schema"); isObject(schema) { // llama.cpp, Together, Fireworks
			return FormSchema, clipped(schema)
		}
		return FormObject, nil
	case "json_schema":
		inner, _ := member(raw, "json_schema")
		schema, ok := member(inner, "schema")
		if !ok {
			schema, _ = member(raw, "schema")
		}
		if !isObject(schema) {
			schema = nil
		}
		return FormSchema, clipped(schema)
	}
	return FormOther, nil
}
