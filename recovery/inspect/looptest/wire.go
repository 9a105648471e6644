package looptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// style is how one agent formats its requests; it is fixed for a session.
type style struct {
	tools            toolset
	text             bool // commands in the assistant's text, observations from the user
	fence, observe   int  // variants of the text protocol
	ids, shellForm   int
	parts, spaced    bool // content as a list of parts; spaces after colons and commas
	escape, think    bool // HTML escapes; reasoning_content
	toolName, noNull bool // tool name in results; content "" instead of null
	system           string
	agent            *agent // the agent whose result format is used; nil uses shellForm
	calls            int    // calls so far, for ids
}

func (g *gen) newStyle(f form) style {
	st := style{tools: toolsets[g.IntN(len(toolsets))], text: f == anyForm && g.chance(0.25), fence: g.IntN(3), observe: g.IntN(3),
		ids: g.IntN(5), shellForm: g.IntN(6), parts: g.chance(0.25), spaced: g.chance(0.3), escape: g.chance(0.2),
		think: g.chance(0.15), toolName: g.chance(0.4), noNull: g.chance(0.3)}
	if st.text {
		st.tools = toolset{tools: map[verb]string{shell: "bash command"}}
	}
	st.system = g.pick("", "You are a coding assistant working in a terminal.", "You are an autonomous programmer. Work in small steps; never ask for confirmation.",
		"You are Kit, an agent.\n\nRules:\n- Use the tools.\n- If a command fails, think before you try again.\n- Error messages such as \"command not found\" are shown to you as they are.")
	if st.text {
		st.system += "\nAnswer with a short discussion and exactly one command in a block. The output comes back to you."
	}
	return st
}

// object is JSON with its keys in order.
type object []arg

func (o object) encode(b *bytes.Buffer, spaced, escape bool) {
	b.WriteByte('{')
	for i, kv := range o {
		comma(b, i, spaced)
		value(b, kv.key, spaced, escape)
		b.WriteByte(':')
		if spaced {
			b.WriteByte(' ')
		}
		value(b, kv.val, spaced, escape)
	}
	b.WriteByte('}')
}

func comma(b *bytes.Buffer, i int, spaced bool) {
	if i > 0 {
		b.WriteByte(',')
		if spaced {
			b.WriteByte(' ')
		}
	}
}

func value(b *bytes.Buffer, v any, spaced, escape bool) {
	switch v := v.(type) {
	case object:
		v.encode(b, spaced, escape)
	case []object:
		b.WriteByte('[')
		for i, o := range v {
			comma(b, i, spaced)
			o.encode(b, spaced, escape)
		}
		b.WriteByte(']')
	default: // strings, numbers, lists of strings: these always encode
		e := json.NewEncoder(b)
		e.SetEscapeHTML(escape)
		_ = e.Encode(v)
		b.Truncate(b.Len() - 1)
	}
}

func (st *style) content(text string) any {
	if st.parts {
		return []object{{{"type", "text"}, {"text", text}}}
	}
	return text
}

// arguments encodes a call's arguments: the order of keys and the white space vary from call to call, as with
// real models; the meaning does not.
func (s *session) arguments(args []arg) string {
	o := append(object(nil), args...)
	if s.chance(0.3) {
		s.Shuffle(len(o), func(i, j int) { o[i], o[j] = o[j], o[i] })
	}
	var b bytes.Buffer
	o.encode(&b, s.chance(0.4), false)
	if s.chance(0.15) {
		var in bytes.Buffer
		_ = json.Indent(&in, b.Bytes(), "", "  ") // it was just encoded
		return in.String()
	}
	return b.String()
}

func (s *session) id(inTurn int) string {
	const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	s.style.calls++
	switch s.style.ids {
	case 0:
		return fmt.Sprintf("call_%d", s.style.calls-1)
	case 1: // starts again in each turn
		return fmt.Sprintf("call_%d", inTurn)
	case 2:
		return "toolu_01" + s.chars(22, alnum)
	case 3:
		return fmt.Sprintf("functions.run:%d", s.style.calls-1)
	}
	return "call_" + s.chars(24, alnum)
}

// show formats a result as the agent sends it to the model. Two of the forms contain the duration of the
// command, which is noise.
func (s *session) show(o op, r result) string {
	st := &s.style
	switch {
	case st.agent != nil:
		return st.agent.show(s, o, r)
	case st.text && st.observe == 0:
		return r.out + "\n(Open file: n/a)\n(Current directory: /repo)\nbash-$"
	case st.text && st.observe == 1:
		return fmt.Sprintf("<returncode>%d</returncode>\n<output>\n%s\n</output>", r.code, r.out)
	case st.text:
		return "Observation: " + r.out
	case !st.tools.shelled(o):
		return r.out
	case st.shellForm == 0:
		return fmt.Sprintf("Exit code: %d\nWall time: %.4f seconds\nOutput:\n%s", r.code, s.Float64(), r.out)
	case st.shellForm == 1:
		var b bytes.Buffer
		object{{"output", r.out}, {"metadata", object{{"exit_code", r.code}, {"duration_seconds", json.Number(fmt.Sprintf("%.1f", s.Float64()))}}}}.encode(&b, false, false)
		return b.String()
	case r.code != 0:
		return fmt.Sprintf("%s\n\nCommand exited with code %d", r.out, r.code)
	case r.out == "":
		return "(no output)"
	}
	return r.out
}

// messages encodes a turn.
func (s *session) messages(t turn) (out []object) {
	st := &s.style
	switch {
	case st.text && len(t.calls) > 0:
		cmd := t.calls[0].command()
		block := [...]string{"```\n" + cmd + "\n```", "```bash\n" + cmd + "\n```", "<command>\n" + cmd + "\n</command>"}[st.fence]
		out = append(out, object{{"role", "assistant"}, {"content", st.content(strings.TrimSpace(t.text + "\n" + block))}},
			object{{"role", "user"}, {"content", st.content(s.show(t.calls[0], t.res[0]))}})
	default:
		m := object{{"role", "assistant"}}
		switch {
		case t.text != "":
			m = append(m, arg{"content", st.content(t.text)})
		case st.noNull:
			m = append(m, arg{"content", ""})
		default:
			m = append(m, arg{"content", nil})
		}
		if st.think {
			m = append(m, arg{"reasoning_content", s.say()})
		}
		var calls, results []object
		for i, o := range t.calls {
			name, args := st.tools.call(o)
			if st.agent != nil && st.agent.extra != nil && st.tools.shelled(o) {
				args = append(args, st.agent.extra(s)...)
			}
			id := s.id(i)
			calls = append(calls, object{{"id", id}, {"type", "function"}, {"function", object{{"name", name}, {"arguments", s.arguments(args)}}}})
			r := object{{"role", "tool"}, {"tool_call_id", id}, {"content", st.content(s.show(o, t.res[i]))}}
			if st.toolName {
				r = append(r, arg{"name", name})
			}
			results = append(results, r)
		}
		if calls != nil {
			m = append(m, arg{"tool_calls", calls})
		}
		out = append(append(out, m), results...)
	}
	if t.reply != "" {
		out = append(out, object{{"role", "user"}, {"content", st.content(t.reply)}})
	}
	return out
}

// definitions lists the tools that the session calls, in the order of their first use.
func (s *session) definitions() (out []object) {
	known := map[string]bool{}
	for _, t := range s.turns {
		for _, o := range t.calls {
			name, args := s.style.tools.call(o)
			if known[name] {
				continue
			}
			known[name] = true
			properties := object{}
			for _, a := range args {
				kind := map[string]object{"int": {{"type", "integer"}}, "string": {{"type", "string"}}, "[]string": {{"type", "array"}, {"items", object{{"type", "string"}}}}}[fmt.Sprintf("%T", a.val)]
				properties = append(properties, arg{a.key, kind})
			}
			out = append(out, object{{"type", "function"}, {"function", object{{"name", name}, {"description", "The tool " + name + "."},
				{"parameters", object{{"type", "object"}, {"properties", properties}}}}}})
		}
	}
	return out
}

// bodies encodes one request before the first turn and one after each. It encodes each message once, so its
// bytes are the same in all requests.
func (s *session) bodies() (out [][]byte) {
	st := &s.style
	var head, tail, history bytes.Buffer
	settings := object{{"model", s.pick("gpt-4o", "qwen3-coder", "claude-sonnet-4", "local/coder")}}
	if s.chance(0.5) {
		settings = append(settings, arg{"stream", s.chance(0.7)})
	}
	if s.chance(0.3) {
		settings = append(settings, arg{"max_tokens", 4096})
	}
	if defs := s.definitions(); !st.text && defs != nil {
		settings = append(settings, arg{"tools", defs})
	}
	settings.encode(&head, st.spaced, st.escape)
	if s.chance(0.5) { // the settings come first
		head.Truncate(head.Len() - 1)
		head.WriteString(`,"messages":[`)
		tail.WriteString("]}")
	} else {
		tail.WriteString("]," + head.String()[1:])
		head.Reset()
		head.WriteString(map[bool]string{true: `{"messages": [`, false: `{"messages":[`}[st.spaced])
	}
	first := true
	emit := func(list ...object) {
		for _, m := range list {
			if !first {
				comma(&history, 1, st.spaced)
			}
			first = false
			m.encode(&history, st.spaced, st.escape)
		}
	}
	if st.system != "" {
		emit(object{{"role", s.pick("system", "system", "developer")}, {"content", st.system}})
	}
	emit(object{{"role", "user"}, {"content", st.content(s.task)}})
	for i := 0; ; i++ {
		out = append(out, bytes.Join([][]byte{head.Bytes(), history.Bytes(), tail.Bytes()}, nil))
		if i == len(s.turns) {
			return out
		}
		emit(s.messages(s.turns[i])...)
	}
}
