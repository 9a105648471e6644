package trajectory

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Limits of the arguments that are parsed as JSON, in bytes and in depth, and of the arguments that are searched
// for words.
const (
	maxCanonical  = 256 << 10
	canonicalDeep = 64
	maxSearched   = 4 << 10
)

// Call is a call of a tool. Its methods compute their results once, when first called. It is not safe for
// concurrent use.
type Call struct {
	Tool      string // name; empty if unknown
	Arguments string // as the tool received them

	kind      Kind
	line      string
	command   Command
	canonical string
	key       string

	hasKind, hasLine, hasCommand, hasCanonical, hasKey bool
}

// CommandCall returns a shell call with the command line, for any tool.
func CommandCall(line string) *Call {
	return &Call{Tool: "bash", kind: Shell, line: line, hasKind: true, hasLine: true}
}

// Kind returns the kind of the tool.
func (c *Call) Kind() Kind {
	if !c.hasKind {
		c.hasKind, c.kind = true, KindOf(c.Tool)
	}
	return c.kind
}

// Line returns the command line that the call runs, or "".
func (c *Call) Line() string {
	if !c.hasLine {
		c.hasLine = true
		if k := c.Kind(); k != Code && k != Editor {
			c.line = CommandIn(c.Arguments)
		}
	}
	return c.line
}

// Command returns the parsed command line, or the zero Command if there is none.
func (c *Call) Command() *Command {
	if !c.hasCommand {
		if c.hasCommand = true; c.Line() != "" {
			c.command = ParseCommand(c.Line())
		}
	}
	return &c.command
}

// Reads reports whether the call certainly changes nothing.
func (c *Call) Reads() bool {
	switch c.Kind() {
	case Reader:
		return true
	case Shell:
		return c.Line() != "" && c.Command().OnlyReads
	case Other:
		words := NameWords(c.Tool)
		return len(words) > 0 && traits[words[0]]&lookWord != 0 && traitsOf(words[1:])&strongWord == 0
	}
	return false
}

// Writes reports whether the tool's name or the beginning of the command has a word for writing.
func (c *Call) Writes() bool {
	return (traitsOf(NameWords(c.Tool))|traitsOf(NameWords(c.Line())))&editorAnswer != 0
}

// pauses reports whether a call without a command line waits before it answers.
func (c *Call) pauses() bool {
	if traitsOf(NameWords(c.Tool))&pauseWord != 0 {
		return true
	}
	if c.Kind() == Editor || len(c.Arguments) > maxSearched {
		return false
	}
	t := strings.TrimSpace(c.Arguments)
	switch {
	case c.Kind() == Code:
		low := strings.ToLower(t)
		return strings.Contains(low, "sleep(") || strings.Contains(low, "settimeout(")
	case c.Kind() == Reader || t == "" || t[0] != '{' || !readable(t):
		return false
	}
	return slices.ContainsFunc(members(gjson.Parse(t)), func(m member) bool { return m.value.Type == gjson.Number && m.value.Num > 0 && isWaitTime(m.key) })
}

// Awaits reports whether the call waits and then only reads, or checks the health of a service: the agent cannot
// influence what the next such call returns.
func (c *Call) Awaits() bool {
	if c.Line() == "" {
		return c.pauses()
	}
	if !mayPause(c.line) {
		return false
	}
	m := c.Command()
	return m.OnlyReads && (m.Pauses || slices.ContainsFunc(m.Programs, isRequest) && checksHealth(c.line))
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

// checksHealth reports whether a URL in a command has the path of a health check.
func checksHealth(line string) bool {
	for _, w := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("/ '\"?;|&)", r) }) {
		switch w {
		case "health", "healthz", "healthcheck", "ready", "readyz", "readiness", "live", "livez", "liveness", "status", "ping", "_health", "up":
			return true
		}
	}
	return false
}

// Idles reports whether the call only sleeps in a shell.
func (c *Call) Idles() bool {
	if c.Line() == "" || c.Kind() != Shell {
		return false
	}
	list := c.Command().Programs
	slept := false
	for _, p := range list {
		if pauses[p] && effectless[p] {
			slept = true
		} else if !effectless[p] {
			return false
		}
	}
	return slept
}

// commentary are the names of arguments with the model's own comments on its call, or with information for a
// person or a sandbox.
var commentary = setOf("description, explanation, reason, reasoning, rationale, justification, thought, thoughts, summary, " +
	"toolsummary, toolaction, title, requires_approval, security_risk, risk_level, task_progress, is_background, " +
	"run_in_background")

// Key returns a form of what the call does that is equal for equivalent calls: sorted names, normalised numbers,
// without volatile parts.
func (c *Call) Key() string {
	if c.hasKey {
		return c.key
	}
	c.hasKey = true
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

// appendKey appends the key of arguments that are a JSON object.
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
		case m.value.Type == gjson.Number && (irrelevantNumber(m.key) || isWaitTime(m.key)):
			dst = append(dst, '#')
		default:
			dst = appendCanonical(dst, m.value)
		}
		dst = append(dst, ',')
	}
	return dst
}

// Lists reports whether the call has a list of n elements, or arguments that are unknown.
func (c *Call) Lists(n int) bool {
	t := strings.TrimSpace(c.Arguments)
	return t == "" || t[0] == '{' && readable(t) && slices.ContainsFunc(members(gjson.Parse(t)), func(m member) bool {
		return m.value.IsArray() && int(m.value.Get("#").Int()) == n
	})
}

// isWaitTime reports whether a number with this name is a waiting time.
func isWaitTime(name string) bool {
	for _, w := range NameWords(name) {
		switch w {
		case "timeout", "wait", "delay", "sleep", "pause", "yield", "interval":
			return true
		}
	}
	return false
}

// Canonical returns the arguments in a form that is equal for equivalent JSON. It omits nothing.
func (c *Call) Canonical() string {
	if !c.hasCanonical {
		c.canonical, c.hasCanonical = canonical(strings.TrimSpace(c.Arguments)), true
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

// member is a member of an object.
type member struct {
	key   string
	value gjson.Result
}

// members returns the members of an object, sorted by name; of equal names the last one.
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
