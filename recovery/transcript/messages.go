package transcript

import (
	"bytes"
	"strings"
)

// messages reads Anthropic's Messages API: https://docs.anthropic.com/en/api/messages
// A user's message may contain results of calls as blocks of its content: each block
// of such a message is an element of its own.
type messages struct{}

var _ reader = messages{}

var messagesLayout = layout{
	name: "messages", api: Anthropic,
	list: "messages", offer: "tools", blocks: true, prefills: true, signs: true, outside: true,
	limits:  []string{"max_tokens"},
	budgets: [][2]string{{"thinking", "budget_tokens"}},
	indexed: []indexed{{"role", keyRole}, {"content", keyContent}},
}

// The values of element.kind in this format.
const (
	wholeMessage  uint8 = iota
	wholeCalling        // a message with calls in it
	blockResult         // a result of a call
	blockReminder       // a text that the client itself adds; see isReminder
	blockOther
)

func (messages) check(b *Body) *Error {
	b.usage = true // it is part of every answer
	if err := b.checkModel(); err != nil {
		return err
	}
	if f := b.find("messages"); f != nil && b.raw[f.val] != '[' && b.raw[f.val] != 'n' {
		return b.wrong(f, "an array")
	}
	return b.checkStream()
}

func (messages) entry(b *Body, i int) entry {
	switch kind := b.elements[i].kind; kind {
	case blockResult:
		return entry{role: RoleTool, content: b.key(i, keyContent), contentField: "content", answers: b.key(i, keyCallID), answersField: "tool_use_id"}
	case blockReminder:
		return entry{role: RoleSystem, content: b.element(i)}
	case blockOther:
		return entry{role: RoleUser, content: b.element(i)}
	default:
		return entry{role: roleOf(b.key(i, keyRole)), content: b.key(i, keyContent), contentField: "content", calls: kind == wholeCalling}
	}
}

// part classifies unknown blocks as partKept.
func (messages) part(raw []byte) (p part) {
	switch p = typedPart(raw); string(p.wire) {
	case "text":
		return p
	case "thinking", "redacted_thinking":
		p.kind = partReasoning
	case "image", "document", "search_result":
		p.kind, p.payload = partMedia, raw
	default:
		p.kind = partKept
	}
	p.texts[0] = nil
	return p
}

func (messages) asides(b *Body, i int, yield func(aside) bool) bool {
	if b.elements[i].kind != blockResult {
		return true
	}
	mark, ok := member(b.element(i), "cache_control")
	return !ok || yield(aside{raw: mark, mark: true})
}

func (messages) appendCalls(calls []ToolCall, b *Body, i int) []ToolCall {
	if b.elements[i].kind != wholeCalling {
		return calls
	}
	for block := range elementsOf(b.key(i, keyContent)) {
		if f := callIn(block, "id", "input"); string(nameOf(f.kind)) == "tool_use" {
			calls = append(calls, b.callOf(f))
		}
	}
	return calls
}

// serverTools lists prefixes of the types of tools whose calls the provider itself answers.
var serverTools = [...]string{"web_search", "web_fetch", "code_execution", "tool_search", "mcp"}

func (messages) tools(whole, list []byte) (tools []Tool) {
	for raw := range elementsOf(list) {
		var d definition
		t := Tool{Type: KindFunction, Raw: clipped(raw)}
		for name, v := range fieldsOf(raw) {
			switch string(name) {
			case "type":
				if kind := text(v); kind != "" && kind != "custom" {
					t.Type = kind
				}
			case "input_schema":
				d.parameters = v
			case "parameters":
			default:
				d.set(name, v)
			}
		}
		for _, begin := range serverTools {
			t.Own = t.Own || t.Type != KindFunction && strings.HasPrefix(t.Type, begin)
		}
		d.fill(&t, whole)
		tools = append(tools, t)
	}
	return tools
}

func (messages) settings(b *Body) (s settings) {
	s.instructions, _ = b.Field("system")
	thinking, _ := b.Field("thinking")
	switch stringField(thinking, "type") {
	case "enabled", "adaptive":
		s.reasoning = true
	}
	history, _ := b.Field("messages")
	offer, _ := b.Field("tools")
	s.adds = mentions(history, "tool_addition") || mentions(offer, deferred)
	output, _ := b.Field("output_config")
	s.form, _ = member(output, "format")
	if s.form == nil {
		s.form, _ = b.Field("output_format")
	}
	s.form = clipped(s.form)
	return s
}

func (m messages) message(role, text string, mark []byte) []byte {
	return Object("role", role, "content", List([][]byte{m.textPart(text, mark)}))
}

func (messages) textPart(text string, mark []byte) []byte { return chat{}.textPart(text, mark) }

func (messages) result(c ToolCall, text string) []byte {
	return Object("type", "tool_result", "tool_use_id", c.ID, "content", text)
}

func (messages) tool(name string) []byte {
	return Object("name", name, "input_schema", anyObject)
}

func (messages) choice(t *Tool) []byte {
	if t == nil {
		return []byte(`{"type":"none"}`)
	}
	return Object("type", "tool", "name", t.Name)
}

// defaultOutput is the limit of output tokens for a question without one, because the format requires it.
const defaultOutput = 4096

func (messages) ask(out []byte, q Question) []byte {
	if q.Limit == "" || q.MaxOutput <= 0 {
		out = AppendField(out, "max_tokens", defaultOutput)
	}
	config := []byte{'{'}
	if q.Effort != "" {
		config = AppendField(config, "effort", q.Effort)
	}
	if q.Schema != nil {
		config = AppendField(config, "format", Object("type", "json_schema", "schema", q.Schema))
	}
	if len(config) > 1 {
		out = AppendField(out, "output_config", append(config, '}'))
	}
	if q.System != "" {
		out = AppendField(out, "system", q.System)
	}
	return AppendField(out, "messages", List([][]byte{Object("role", RoleUser, "content", q.User)}))
}

// deferred is the name of a placeholder tool of Claude Code for tools that it adds later in a conversation.
const deferred = "DeferredToolPlaceholder"

// billing is the prefix of an instruction block with the client's version for the provider. It
// changes with each request and is not meant for the model.
const billing = "x-anthropic-billing-header"

// appendInstructions appends the text of the instructions outside the history, one
// string or several blocks, without the billing block.
func (b *Body) appendInstructions(dst []byte) []byte {
	raw := b.settings().instructions
	if !isList(raw) {
		return appendText(dst, raw)
	}
	from := len(dst)
	for block := range elementsOf(raw) {
		at := len(dst)
		if at > from {
			dst = append(dst, '\n')
		}
		before := len(dst)
		if dst = appendPart(dst, before, b.format.reader().part(block)); len(dst) == before || bytes.HasPrefix(dst[before:], []byte(billing)) {
			dst = dst[:at]
		}
	}
	return dst
}

// Failed reports whether the message is a result that the client marked as an error. Only
// the Messages API has such a mark.
func (m Message) Failed() bool {
	if m.body.elements[m.first].kind != blockResult || !m.body.format.layout().blocks {
		return false
	}
	raw, _ := m.Field("is_error")
	return isTrue(raw)
}
