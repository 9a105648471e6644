package annotate

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
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

// failureContext is a failure with the conversation around it, which it reads lazily. Only one
// goroutine may use it.
type failureContext struct {
	body    *transcript.Body
	list    []transcript.Message
	f       *recovery.ToolFailure
	made    trajectory.Call         // the failing call
	parts   []trajectory.Invocation // programs of its command line
	args    gjson.Result            // its arguments, if they are a JSON object
	content string
	risky   bool
	barred  recovery.Deeds // that a person or the instructions rule out
	turn    int            // index of the failing turn's first message
	decoded int            // bytes that were decoded so far
	checked int

	// What was found out, nil or absent before.
	stage   *Stage
	known   []trajectory.Tool // that the request offers, or the history shows
	can     trajectory.Use    // of all of them
	text    bool              // a text protocol: calls stand in the assistant's text
	asked   bool              // known, can and text are there
	memo    map[string]string
	cd      *string
	earlier []*call
	answers map[int]*call
}

// newContext reads what is needed of a failure. Without one it only knows what the agent has.
func (st *Stage) newContext(x *recovery.Exchange, f *recovery.ToolFailure) *failureContext {
	b := x.Body
	s := &failureContext{stage: st, barred: x.Barred, risky: st.cfg.Risky, body: b, list: b.Messages(), f: f, memo: map[string]string{}}
	if f == nil {
		return s
	}
	t, _ := trajectory.TurnBefore(s.list, min(max(f.Index, 0), len(s.list)))
	s.turn = t.Start
	if f.Index >= 0 && f.Index < len(s.list) && s.list[f.Index].End-s.list[f.Index].Start <= 4*maxMessage {
		s.content = trajectory.Ends(output(s.list[f.Index].Text()), maxContent/2, maxContent/2)
	}
	s.made = trajectory.Call{Tool: f.Tool, Arguments: f.Arguments}
	s.parts = trajectory.Invocations(s.made.Line())
	s.args = object(f.Arguments)
	return s
}

// tools are those that the model may call, without what a person rules out.
func (s *failureContext) tools() []trajectory.Tool {
	if !s.asked && s.stage != nil {
		s.asked = true
		s.known, s.text = s.stage.offered(s.body, s.list)
		s.bar()
		for _, t := range s.known {
			s.can |= t.Uses
		}
		if s.text {
			s.can |= trajectory.UseShell
		}
	}
	return s.known
}

// uses are those of all tools.
func (s *failureContext) uses() trajectory.Use {
	s.tools()
	return s.can
}

// offered is the tools that the model may call: those that the request offers,
// or, where a history with calls comes without definitions, those that it
// called. text reports a text protocol: no tools, and a shell behind the text.
func (st *Stage) offered(b *transcript.Body, list []transcript.Message) (tools []trajectory.Tool, text bool) {
	defer func() { trajectory.Observe(tools, list) }()
	if defined := b.Tools(); len(defined) > 0 {
		allowed := b.ToolChoice().Allowed
		for i, a := range st.abilities(b) {
			if allowed == nil || slices.Contains(allowed, defined[i].Name) {
				tools = append(tools, trajectory.Tool{Tool: defined[i], Ability: a})
			}
		}
		return tools, false
	}
	native := false
	for i := len(list) - 1; i >= 0 && len(tools) < 32 && i >= len(list)-maxCalls; i-- {
		native = native || list[i].Role == transcript.RoleTool
		if list[i].Role != transcript.RoleAssistant {
			continue
		}
		for _, c := range list[i].ToolCalls() {
			native = true
			if c.Name != "" && !slices.ContainsFunc(tools, func(t trajectory.Tool) bool { return t.Name == c.Name }) {
				tools = append(tools, onlyNamed(c.Name))
			}
		}
	}
	return tools, !native
}

// abilities are those of the tools that the request defines. Most requests define what
// the one before did.
func (st *Stage) abilities(b *transcript.Body) []trajectory.Ability {
	raw := b.ToolList()
	key := maphash.Bytes(st.seed, raw)
	list, ok := st.known.Get(key)
	if !ok || raw == nil || len(list) != len(b.Tools()) {
		if list = trajectory.Abilities(b.Tools()); raw != nil {
			st.known.Put(key, list, len(raw))
		}
	}
	return list
}

// onlyNamed is a tool of which only the name is known.
func onlyNamed(name string) trajectory.Tool {
	t := transcript.Tool{Name: name}
	return trajectory.Tool{Tool: t, Ability: trajectory.AbilityOf(t)}
}

// bar takes from the tools what a person rules out.
func (s *failureContext) bar() {
	for deed, uses := range map[recovery.Deeds]trajectory.Use{recovery.Runs: trajectory.UseShell | trajectory.UseCode, recovery.Reaches: trajectory.UseFetch, recovery.Writes: trajectory.UseWrite} {
		for i := range s.known {
			if s.barred&deed != 0 {
				s.known[i].Uses &^= uses
			}
		}
		s.text = s.text && s.barred&recovery.Runs == 0
	}
}

// working are the uses of tools that work on a computer, shells those that run what
// they are given.
const (
	working = trajectory.UseShell | trajectory.UseCode | trajectory.UseRead | trajectory.UseList | trajectory.UseSearch | trajectory.UseWrite
	shells  = trajectory.UseShell
)

// definition is the tool of that name; one that only the history shows has nothing else.
func (s *failureContext) definition(name string) (trajectory.Tool, bool) {
	if i := slices.IndexFunc(s.tools(), func(t trajectory.Tool) bool { return t.Name == name }); i >= 0 {
		return s.tools()[i], true
	}
	return onlyNamed(name), false
}

// usedFor reports whether a tool of that name is for one of the uses.
func (s *failureContext) usedFor(name string, uses trajectory.Use) bool {
	t, _ := s.definition(name)
	return t.Uses&uses != 0
}

// toolFor is the first offered tool of the first use that has one, but for those
// whose names have one of the words.
func (s *failureContext) toolFor(uses []trajectory.Use, but ...string) string {
	for _, u := range uses {
		for _, t := range s.tools() {
			if t.Name != "" && t.Uses&u != 0 && !trajectory.AnyOf(trajectory.NameWords(t.Name), but) {
				return quoted(t.Name)
			}
		}
	}
	return ""
}

// finder is an offered tool that finds files by name: one that searches text does not.
func (s *failureContext) finder() string {
	return s.toolFor([]trajectory.Use{trajectory.UseSearch, trajectory.UseShell, trajectory.UseList}, "grep", "rg", "ripgrep", "ack", "text", "content", "semantic", "codebase", "regex", "symbol")
}

// writer is an offered tool that makes files where a shell can run them: none of a service
// that keeps documents.
func (s *failureContext) writer() string {
	return s.toolFor([]trajectory.Use{trajectory.UseWrite, trajectory.UseShell, trajectory.UseCode}, "edit", "replace", "insert", "append", "multiedit", "mcp", "doc", "note", "page")
}

// object reads arguments that are a JSON object, bounded.
func object(arguments string) gjson.Result {
	arguments = strings.TrimSpace(arguments)
	if len(arguments) > maxArguments || !strings.HasPrefix(arguments, "{") || transcript.Valid([]byte(arguments), 32) != nil {
		return gjson.Result{}
	}
	return gjson.Parse(arguments)
}

// text is the first text among the named members of an object.
func text(o gjson.Result, names ...string) string {
	for _, name := range names {
		if v := o.Get(name); v.Type == gjson.String {
			return v.Str
		}
	}
	return ""
}

// output is what a tool printed, without the object that some put it in.
func output(content string) string {
	e, _ := trajectory.ReadEnvelope(content)
	return cmp.Or(e.Output, e.Errors, content)
}

// results calls yield with the text of messages in which tools and people
// speak, the newest first, until it returns false. With a needle only those
// whose bytes have it.
func (s *failureContext) results(needle string, yield func(i int, text string) bool) {
	find := []byte(needle)
	for i := len(s.list) - 1; i >= 0 && s.decoded < maxDecoded; i-- {
		m := s.list[i]
		size := m.End - m.Start
		if i == s.f.Index || m.Role == transcript.RoleAssistant || size > maxMessage || !bytes.Contains(m.Raw(), find) {
			continue
		}
		s.decoded += size
		if !yield(i, output(m.Text())) {
			return
		}
	}
}

// call is an earlier call of the agent that was answered.
type call struct {
	trajectory.Call
	at, answer int // messages
}

// steps are the answered calls before the failing turn, the newest turn first, bounded.
func (s *failureContext) steps() []*call {
	if s.answers != nil {
		return s.earlier
	}
	s.answers = map[int]*call{}
	s.tools() // says whether calls stand in the text
	h, read := trajectory.NewHistory(s.body), 0
	t, ok := trajectory.TurnBefore(s.list, s.turn)
	for ; ok && len(s.earlier) < maxCalls && read < maxDecoded; t, ok = trajectory.TurnBefore(s.list, t.Start) {
		size := s.list[t.Answered-1].End - s.list[t.Start].Start
		if s.text && t.Answered < t.End {
			size = s.list[t.Answered].End - s.list[t.Start].Start
		}
		if size > maxMessage {
			continue
		}
		read += size
		for _, r := range h.AppendResults(nil, t) {
			if r.Caller >= 0 {
				c := &call{trajectory.Call{Tool: r.Tool, Arguments: r.Arguments}, r.Caller, r.Index}
				s.earlier, s.answers[r.Index] = append(s.earlier, c), c
			}
		}
	}
	return s.earlier
}

// trouble is what a result of a failed call has, roughly: it only keeps a
// command from being called one that worked.
var trouble = recovery.NewPattern(`(?i)error|fail|denied|not found|no such|cannot|can't|traceback|timed out|refused|not permitted|` +
	`unknown|invalid|unable|exit(?:ed)?(?: with)? code:? *[1-9]|returncode>[1-9]|(?:exit_code|returncode)": *[1-9]`)

// worked reports whether a call was answered without any sign of trouble.
func (s *failureContext) worked(c *call) bool {
	if s.checked >= maxChecked {
		return false
	}
	s.checked++
	m := s.list[c.answer]
	return m.End-m.Start <= maxMessage && !trouble.MatchString(trajectory.Ends(m.Text(), 400, 600))
}

// permitted reports whether a command may be named as a step: none that runs as
// another user or shows a secret, and a risky one only where that is allowed.
func (s *failureContext) permitted(command string) bool {
	return s.barred&trajectory.DeedsOfLine(command) == 0 && !elevated.MatchString(command) && !secret.MatchString(command) && (s.risky || !dangerous.MatchString(command))
}

var secret = recovery.NewPattern(`(?i)authorization|token|passw(?:or)?d|secret|api[-_]?key|bearer|credential|x-auth|:@`)

// hasWord reports whether a text has a word, with something else on both sides.
func hasWord(text, word string) bool { return trajectory.HasWord(text, word, isWord) }

func isWord(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}
