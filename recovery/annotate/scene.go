package annotate

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Bounds of what is searched for one note.
const (
	maxContent   = 16 << 10  // of the failing result, head and tail, in bytes
	maxMessage   = 256 << 10 // larger messages are passed over
	maxDecoded   = 768 << 10 // of all messages together, in bytes
	maxCalls     = 400       // calls that are looked at
	maxChecked   = 40        // results that are looked at for trouble
	maxArguments = 64 << 10  // of one call, in bytes
)

// scene is one failure in its conversation. It reads the history lazily, and
// belongs to one goroutine.
type scene struct {
	list    []transcript.Message
	f       *recovery.ToolFailure
	tools   []transcript.Tool // that the request offers, or the history shows
	kinds   Set               // of all of them
	text    bool              // a text protocol: calls stand in the assistant's text
	risky   bool
	turn    int // index of the failing turn's first message
	content string
	args    gjson.Result // of the failing call, if it is a JSON object
	command string       // command line of the failing call
	decoded int          // bytes that were decoded so far
	checked int

	memo map[slot]string
	cd   *string // memo of cwd
	seen *sights // memo of locate

	compared *difference // memo of differs
}

// newScene reads what is needed of a failure. The failure must not be nil.
func newScene(b *transcript.Body, f *recovery.ToolFailure, risky bool) *scene {
	s := &scene{list: b.Messages(), f: f, risky: risky, memo: map[slot]string{}}
	s.turn = min(max(f.Index, 0), len(s.list))
	for s.turn > 0 && s.list[s.turn-1].Role != transcript.RoleAssistant {
		s.turn--
	}
	for s.turn > 0 && s.list[s.turn-1].Role == transcript.RoleAssistant {
		s.turn--
	}
	s.tools, s.text = offered(b, s.list)
	s.kinds = kindsOf(s.tools, s.text)
	if f.Index >= 0 && f.Index < len(s.list) && s.list[f.Index].End-s.list[f.Index].Start <= 4*maxMessage {
		s.content = ends(s.list[f.Index].Text(), maxContent/2, maxContent/2)
	}
	s.args = object(f.Arguments)
	s.command = commandOf(f.Tool, f.Arguments)
	return s
}

// offered is the tools that the model may call: those that the request offers,
// or, where a history with calls comes without definitions, those that it
// called. text reports a text protocol: no tools, and a shell behind the text.
func offered(b *transcript.Body, list []transcript.Message) (tools []transcript.Tool, text bool) {
	if tools = b.Tools(); len(tools) > 0 {
		choice := b.ToolChoice()
		if choice.Allowed == nil {
			return tools, false
		}
		var allowed []transcript.Tool
		for _, t := range tools {
			for _, name := range choice.Allowed {
				if t.Name == name {
					allowed = append(allowed, t)
					break
				}
			}
		}
		return allowed, false
	}
	native := false
	known := map[string]bool{}
	for i := len(list) - 1; i >= 0 && len(known) < 32 && i >= len(list)-maxCalls; i-- {
		switch list[i].Role {
		case transcript.RoleTool:
			native = true
		case transcript.RoleAssistant:
			for _, c := range list[i].ToolCalls() {
				native = true
				if c.Name != "" && !known[c.Name] {
					known[c.Name] = true
					tools = append(tools, transcript.Tool{Name: c.Name})
				}
			}
		}
	}
	return tools, !native
}

func kindsOf(tools []transcript.Tool, text bool) (out Set) {
	for _, t := range tools {
		out |= Kinds(t)
	}
	if text {
		out |= Shell
	}
	return out
}

// definition is the tool of that name.
func (s *scene) definition(name string) (transcript.Tool, bool) {
	for _, t := range s.tools {
		if t.Name == name {
			return t, true
		}
	}
	return transcript.Tool{Name: name}, false
}

// toolFor is the first offered tool of the first kind that has one.
func (s *scene) toolFor(kinds ...Set) string {
	for _, k := range kinds {
		for _, t := range s.tools {
			if t.Name != "" && Kinds(t)&k != 0 {
				return quoted(t.Name)
			}
		}
	}
	return ""
}

// finder is an offered tool that finds files by name: one that searches text
// does not.
func (s *scene) finder() string {
	for _, t := range s.tools {
		if Kinds(t)&Search != 0 && !anyOf(trajectory.NameWords(t.Name), "grep", "rg", "ripgrep", "ack", "text", "content", "semantic", "codebase") {
			return quoted(t.Name)
		}
	}
	return s.toolFor(Shell, List)
}

// writer is an offered tool that makes files, rather than one that only changes them.
func (s *scene) writer() string {
	for _, t := range s.tools {
		if Kinds(t)&Write != 0 && anyOf(trajectory.NameWords(t.Name), "write", "create", "save", "patch", "editor") {
			return quoted(t.Name)
		}
	}
	return s.toolFor(Write, Shell, Code)
}

// object reads arguments that are a JSON object, bounded.
func object(arguments string) gjson.Result {
	arguments = strings.TrimSpace(arguments)
	if len(arguments) > maxArguments || !strings.HasPrefix(arguments, "{") || transcript.Valid([]byte(arguments), 32) != nil {
		return gjson.Result{}
	}
	return gjson.Parse(arguments)
}

// ends is the head and the tail of a large text.
func ends(s string, head, tail int) string {
	if len(s) <= head+tail {
		return s
	}
	return s[:head] + "\n" + s[len(s)-tail:]
}

// results calls yield with the text of messages in which tools and people
// speak, the newest first, until it returns false. With a needle only those
// whose bytes have it.
func (s *scene) results(needle string, yield func(i int, text string) bool) {
	find := []byte(needle)
	for i := len(s.list) - 1; i >= 0 && s.decoded < maxDecoded; i-- {
		m := s.list[i]
		size := m.End - m.Start
		if i == s.f.Index || m.Role == transcript.RoleAssistant || size > maxMessage || !bytes.Contains(m.Raw(), find) {
			continue
		}
		s.decoded += size
		if !yield(i, m.Text()) {
			return
		}
	}
}

// call is an earlier call of the agent.
type call struct {
	tool, args, command string
	at, answer          int // messages; answer is -1 where there is none
}

// calls calls yield with the calls before the failing turn, the newest first,
// until it returns false. With a needle only those of messages that have it.
func (s *scene) calls(needle string, yield func(c call) bool) {
	find := []byte(needle)
	n := 0
	for i := s.turn - 1; i >= 0 && n < maxCalls && s.decoded < maxDecoded; i-- {
		m := s.list[i]
		size := m.End - m.Start
		if m.Role != transcript.RoleAssistant || size > maxMessage || !bytes.Contains(m.Raw(), find) {
			continue
		}
		s.decoded += size
		for k, c := range s.callsOf(i) {
			n++
			c.answer = s.answerOf(i, k, c.id)
			if !yield(c.call) {
				return
			}
		}
	}
}

type identified struct {
	call
	id string
}

// callsOf reads the calls of an assistant message.
func (s *scene) callsOf(i int) (out []identified) {
	m := s.list[i]
	for _, c := range m.ToolCalls() {
		args := c.Text()
		out = append(out, identified{call{c.Name, args, commandOf(c.Name, args), i, -1}, c.ID})
	}
	if len(out) == 0 && s.text {
		if command := action(m.Text()); command != "" {
			out = append(out, identified{call{"", command, command, i, -1}, ""})
		}
	}
	return out
}

// answerOf is the message that answers the k-th call of message i, or -1.
func (s *scene) answerOf(i, k int, id string) int {
	nth := 0
	for j := i + 1; j < len(s.list) && j <= i+64; j++ {
		switch m := s.list[j]; m.Role {
		case transcript.RoleTool:
			if own := m.ToolCallID(); own == id && id != "" || own == "" && nth == k {
				return j
			}
			nth++
		case transcript.RoleUser:
			if s.text {
				return j
			}
			return -1
		case transcript.RoleAssistant:
			if nth > 0 {
				return -1
			}
		}
	}
	return -1
}

// callFor is the call that message i answers.
func (s *scene) callFor(i int) (call, bool) {
	id := s.list[i].ToolCallID()
	for j := i - 1; j >= 0 && j >= i-64; j-- {
		if s.list[j].Role != transcript.RoleAssistant {
			continue
		}
		if s.list[j].End-s.list[j].Start > maxMessage {
			return call{}, false
		}
		calls := s.callsOf(j)
		for _, c := range calls {
			if c.id == id {
				return c.call, true
			}
		}
		if len(calls) > 0 || !s.text {
			return call{}, false
		}
	}
	return call{}, false
}

// trouble is what a result of a failed call has, roughly: it only keeps a
// command from being called one that worked.
var trouble = recovery.NewPattern(`(?i)error|fail|denied|not found|no such|cannot|can't|traceback|timed out|refused|not permitted|unknown|invalid|unable|exit(?:ed)?(?: with)? code:? *[1-9]|returncode>[1-9]|(?:exit_code|returncode)": *[1-9]`)

// worked reports whether a call was answered without any sign of trouble.
func (s *scene) worked(c call) bool {
	if c.answer < 0 || c.answer >= s.turn || s.checked >= maxChecked {
		return false
	}
	s.checked++
	m := s.list[c.answer]
	if m.End-m.Start > maxMessage {
		return false
	}
	return !trouble.MatchString(ends(m.Text(), 400, 600))
}

// fences are the marks between which text protocols put a command.
var fences = [...][2]string{{"<command>", "</command>"}, {"<execute_bash>", "</execute_bash>"}, {"<bash>", "</bash>"}, {"<parameter=command>", "</parameter>"}, {"```", "```"}}

// action is the last command in an assistant's text, "" if there is none.
func action(text string) string {
	text = text[max(0, len(text)-maxArguments):]
	for _, f := range fences {
		end := strings.LastIndex(text, f[1])
		if end < 0 {
			continue
		}
		start := strings.LastIndex(text[:end], f[0])
		if start < 0 {
			continue
		}
		body := text[start+len(f[0]) : end]
		if f[0] == "```" { // the language
			if i := strings.IndexByte(body, '\n'); i >= 0 && !strings.Contains(strings.TrimSpace(body[:i]), " ") {
				body = body[i:]
			}
		}
		return strings.TrimSpace(body)
	}
	return ""
}

// repeated counts the turns, the failing one included, in which a tool printed
// the line of the failure.
func (s *scene) repeated() int {
	line := []rune(s.f.Line)
	line = line[:min(len(line), 80)]
	if len(line) < 12 {
		return 1
	}
	raw := transcript.String(string(line))
	find := raw[1 : len(raw)-1]
	n, searched, hit := 1, 0, false
	for i := s.turn - 1; i >= 0 && searched < 4<<20; i-- {
		m := s.list[i]
		if m.Role == transcript.RoleAssistant {
			hit = false // a turn more
			continue
		}
		searched += m.End - m.Start
		if !hit && (m.Role == transcript.RoleTool || s.text) && bytes.Contains(m.Raw(), find) {
			hit = true
			n++
		}
	}
	return n
}
