package trajectory

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Bounds of the arguments that are read as JSON, in bytes and in depth, and of
// those that are searched for words.
const (
	maxCanonical  = 256 << 10
	canonicalDeep = 64
	maxSearched   = 4 << 10
)

// Call is a call of a tool. What is said of it is found out once, when somebody
// asks. It is not safe for concurrent use.
type Call struct {
	Tool      string // name, empty when unknown
	Arguments string // as the tool got them

	kind      Kind
	line      string
	command   Command
	canonical string
	key       string

	kinded, lined, parsed, sorted, keyed bool
}

// CommandCall is a call of a shell with a command line, by whatever tool.
func CommandCall(line string) *Call {
	return &Call{Tool: "bash", kind: Shell, line: line, kinded: true, lined: true}
}

// Kind is what the tool is for.
func (c *Call) Kind() Kind {
	if !c.kinded {
		c.kinded, c.kind = true, KindOf(c.Tool)
	}
	return c.kind
}

// Line is the command line that the call runs, "" if there is none.
func (c *Call) Line() string {
	if !c.lined {
		c.lined = true
		if k := c.Kind(); k != Code && k != Editor {
			c.line = CommandIn(c.Arguments)
		}
	}
	return c.line
}

// Command is the command line as a shell reads it, the zero Command without one.
func (c *Call) Command() *Command {
	if !c.parsed {
		if c.parsed = true; c.Line() != "" {
			c.command = ParseCommand(c.Line())
		}
	}
	return &c.command
}

// Reads reports whether the call is known to change nothing.
func (c *Call) Reads() bool {
	switch c.Kind() {
	case Reader:
		return true
	case Shell:
		return c.Line() != "" && c.Command().Looks
	case Other:
		words := NameWords(c.Tool)
		return len(words) > 0 && traits[words[0]]&lookWord != 0 && traitsOf(words[1:])&strongWord == 0
	}
	return false
}

// Writes reports whether the tool's name or the beginning of the command says so.
func (c *Call) Writes() bool {
	return (traitsOf(NameWords(c.Tool))|traitsOf(NameWords(c.Line())))&editorAnswer != 0
}

// Pauses reports whether the call lets time pass before it answers.
func (c *Call) Pauses() bool {
	if traitsOf(NameWords(c.Tool))&pauseWord != 0 {
		return true
	}
	if c.Kind() == Editor || len(c.Arguments) > maxSearched {
		return false
	}
	if c.Line() != "" {
		return mayPause(c.line) && c.Command().Pauses
	}
	t := strings.TrimSpace(c.Arguments)
	switch {
	case c.Kind() == Code:
		low := strings.ToLower(t)
		return strings.Contains(low, "sleep(") || strings.Contains(low, "settimeout(")
	case c.Kind() == Reader || t == "" || t[0] != '{' || !readable(t):
		return false
	}
	return slices.ContainsFunc(members(gjson.Parse(t)), func(m member) bool { return m.value.Type == gjson.Number && m.value.Num > 0 && pausing(m.key) })
}

// Awaits reports whether the call pauses and then only looks, or looks whether a
// service is up: what it answers next time is not for the agent to change.
func (c *Call) Awaits() bool {
	if c.Line() == "" {
		return c.Pauses()
	}
	if !mayPause(c.line) {
		return false
	}
	m := c.Command()
	return m.Looks && (m.Pauses || slices.ContainsFunc(m.Programs, isRequest) && healthy(c.line))
}

// mayPause reports cheaply whether a command line may wait for something.
func mayPause(line string) bool {
	for _, w := range []string{"sleep", "Sleep", "wait", "Wait", "watch", "rollout", "--follow", "curl", "wget", "http"} {
		if strings.Contains(line, w) {
			return true
		}
	}
	return false
}

func isRequest(program string) bool {
	return program == "curl" || program == "wget" || program == "http"
}

// healthy reports whether an address in a command is one that tells how a service does.
func healthy(line string) bool {
	for _, w := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("/ '\"?;|&)", r) }) {
		switch w {
		case "health", "healthz", "healthcheck", "ready", "readyz", "readiness", "live", "livez", "liveness", "status", "ping", "_health", "up":
			return true
		}
	}
	return false
}

// Idles reports whether the call only sleeps in a shell: it looks at nothing.
func (c *Call) Idles() bool {
	if c.Line() == "" || c.Kind() != Shell {
		return false
	}
	list := c.Command().Programs
	slept := false
	for _, p := range list {
		if pauses[p] && silent[p] {
			slept = true
		} else if !silent[p] {
			return false
		}
	}
	return slept
}

// commentary are the names of arguments with the model's own words on its call,
// and of what a person or a sandbox is told about it.
var commentary = map[string]bool{
	"description": true, "explanation": true, "reason": true, "reasoning": true, "rationale": true, "justification": true, "thought": true,
	"thoughts": true, "summary": true, "toolsummary": true, "toolaction": true, "title": true, "requires_approval": true, "security_risk": true,
	"risk_level": true, "task_progress": true, "is_background": true, "run_in_background": true,
}

// Key is what the call does, in a form in which calls that are the same have
// equal bytes: names in order, numbers in one spelling, without what says nothing.
func (c *Call) Key() string {
	if c.keyed {
		return c.key
	}
	c.keyed = true
	t := strings.TrimSpace(c.Arguments)
	switch {
	case t != "" && t[0] == '{' && readable(t):
		c.key = string(c.appendKey(nil, gjson.Parse(t)))
	case c.Line() != "" && len(c.Command().Programs) > 0:
		c.key = c.Command().Key()
	default:
		c.key = canonical(t)
	}
	return c.key
}

// appendKey is the key of arguments that are an object.
func (c *Call) appendKey(dst []byte, v gjson.Result) []byte {
	list, left := members(v), 0
	for _, m := range list {
		if !commentary[strings.ToLower(m.key)] {
			left++
		}
	}
	for _, m := range list {
		low := strings.ToLower(m.key)
		if left > 0 && commentary[low] {
			continue
		}
		dst = append(transcript.AppendString(dst, m.key), ':')
		switch {
		case commandNames[low] && c.Line() != "":
			dst = append(dst, c.Command().Key()...)
		case m.value.Type == gjson.Number && (counts(m.key) || pausing(m.key)):
			dst = append(dst, '#')
		default:
			dst = appendCanonical(dst, m.value)
		}
		dst = append(dst, ',')
	}
	return dst
}

// pausing reports whether a number of this name says how long to wait.
func pausing(name string) bool {
	for _, w := range NameWords(name) {
		switch w {
		case "timeout", "wait", "delay", "sleep", "pause", "yield", "interval":
			return true
		}
	}
	return false
}

// Canonical is the arguments in a form in which those that mean the same have
// equal bytes. Nothing is left out.
func (c *Call) Canonical() string {
	if !c.sorted {
		c.canonical, c.sorted = canonical(strings.TrimSpace(c.Arguments)), true
	}
	return c.canonical
}

func readable(t string) bool {
	return len(t) <= maxCanonical && transcript.Valid([]byte(t), canonicalDeep) == nil
}

func canonical(t string) string {
	if t == "" || t[0] != '{' && t[0] != '[' || !readable(t) {
		return t
	}
	return string(appendCanonical(make([]byte, 0, len(t)), gjson.Parse(t)))
}

// member is one of an object.
type member struct {
	key   string
	value gjson.Result
}

// members are those of an object, by name; of equal names the last.
func members(v gjson.Result) (list []member) {
	v.ForEach(func(key, value gjson.Result) bool {
		list = append(list, member{key.Str, value})
		return true
	})
	slices.SortStableFunc(list, func(a, b member) int { return strings.Compare(a.key, b.key) })
	out := list[:0]
	for i, m := range list {
		if i+1 == len(list) || list[i+1].key != m.key {
			out = append(out, m)
		}
	}
	return out
}

func appendCanonical(dst []byte, v gjson.Result) []byte {
	switch {
	case v.IsObject():
		dst = append(dst, '{')
		for _, m := range members(v) {
			dst = append(transcript.AppendString(dst, m.key), ':')
			dst = append(appendCanonical(dst, m.value), ',')
		}
		return append(dst, '}')
	case v.IsArray():
		dst = append(dst, '[')
		v.ForEach(func(_, value gjson.Result) bool {
			dst = append(appendCanonical(dst, value), ',')
			return true
		})
		return append(dst, ']')
	case v.Type == gjson.String:
		return transcript.AppendString(dst, v.Str)
	case v.Type == gjson.Number && len(v.Raw) <= 15: // no digit is lost
		return strconv.AppendFloat(dst, v.Num, 'g', -1, 64)
	}
	return append(dst, v.Raw...)
}
