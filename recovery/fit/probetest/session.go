package probetest

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// message is a message of a session, as far as probes need it.
type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ID        string          `json:"tool_call_id"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (m message) text() string {
	var s string
	var parts []struct{ Text string }
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		s += p.Text
	}
	return s
}

// call is a call of the agent with its result.
type call struct {
	at, resultAt int // indices of messages; resultAt is -1 without a result
	tool         string
	args         map[string]any
	command      string // the shell command, "" for other tools
	result       string
}

// commandBlocks matches the commands of text protocols.
var commandBlocks = regexp.MustCompile("(?s)(?:```(?:bash|sh)?|<command>)\n(.*?)\n(?:```|</command>)")

// parseSession returns a session's messages and calls; none if it cannot be parsed. A session
// without tool calls whose assistant writes commands is a text protocol: a user message
// after a command is its result, and is marked in observed.
func parseSession(session []byte) (list []message, calls []call, observed map[int]bool) {
	var body struct {
		Messages []message `json:"messages"`
	}
	if json.Unmarshal(session, &body) != nil {
		return nil, nil, nil
	}
	list, observed = body.Messages, map[int]bool{}
	open, native := map[string]int{}, false
	for i, m := range list {
		for _, c := range m.ToolCalls {
			native = true
			args := map[string]any{}
			_ = json.Unmarshal([]byte(c.Function.Arguments), &args) // a broken call has no arguments to probe
			open[c.ID] = len(calls)
			calls = append(calls, call{at: i, resultAt: -1, tool: c.Function.Name, args: args, command: commandOf(args)})
		}
		if k, ok := open[m.ID]; ok && m.Role == "tool" {
			calls[k].resultAt, calls[k].result = i, m.text()
			delete(open, m.ID)
		}
	}
	for i := 0; i < len(list) && !native; i++ {
		found := commandBlocks.FindAllStringSubmatch(list[i].text(), -1)
		if list[i].Role != "assistant" || found == nil {
			continue
		}
		c := call{at: i, resultAt: -1, tool: "shell", command: found[len(found)-1][1]}
		if i+1 < len(list) && list[i+1].Role == "user" {
			c.resultAt, c.result = i+1, list[i+1].text()
			observed[i+1] = true
		}
		calls = append(calls, c)
	}
	return list, calls, observed
}

func commandOf(args map[string]any) string {
	for _, key := range []string{"command", "cmd"} {
		switch v := args[key].(type) {
		case string:
			return v
		case []any:
			if n := len(v); n > 0 {
				s, _ := v[n-1].(string)
				return s
			}
		}
	}
	return ""
}

// withoutPrompt returns a result without the prompt that a text protocol appends.
func withoutPrompt(text string) string {
	text = strings.ReplaceAll(text, "\r", "")
	from := max(0, len(text)-400)
	if at := prompt.FindStringIndex(text[from:]); at != nil {
		return text[:from+at[0]]
	}
	return text
}

var (
	exitCode  = regexp.MustCompile(`(?i)(?:exited with code|exit code:?|<returncode>|"exit_code":)\s*(-?\d+)`)
	errorHead = regexp.MustCompile(`(?i)^\s*(?:error\b|traceback \(|could not find|enoent|fatal: |command timed out|\{"error")`)
	errorTail = regexp.MustCompile(`(?m)^(?:\w*(?:Error|Exception): .*|bash: .*command not found|.*: No such file or directory)$`)
	prompt    = regexp.MustCompile(`(?s)\n?\((?:Open file|Current directory): .*$`)
)

// failed reports whether a call certainly failed. An exit code decides alone; words of
// errors count at the beginning and, for a shell, in the last lines.
func (c call) failed() bool {
	text := withoutPrompt(c.result)
	ends := text
	if len(text) > 400 {
		ends = text[:100] + "\n" + text[len(text)-300:]
	}
	if found := exitCode.FindStringSubmatch(ends); found != nil && c.command != "" {
		n, err := strconv.Atoi(found[1])
		return err == nil && n != 0
	}
	if c.command == "" {
		return errorHead.MatchString(text)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return errorHead.MatchString(text) || errorTail.MatchString(strings.Join(lines[max(0, len(lines)-3):], "\n"))
}

var (
	commandPrefix = regexp.MustCompile(`^(?:\s*(?:cd\s+\S+\s*(?:&&|;)|sudo\s|\w+=\S*\s))+`)
	commandSuffix = regexp.MustCompile(`\s*(?:\d?>|[|;\n]|&&).*`)
)

// attempt returns a key that is equal for repeated attempts at the same thing: of a command
// the first words except options and numbers, of an edit the file, else the arguments.
func (c call) attempt() string {
	if c.command != "" {
		var words []string
		for _, w := range strings.Fields(commandSuffix.ReplaceAllString(commandPrefix.ReplaceAllString(c.command, ""), "")) {
			if !strings.HasPrefix(w, "-") && strings.Trim(w, "0123456789") != "" && len(words) < 3 {
				words = append(words, w)
			}
		}
		return strings.Join(words, " ")
	}
	for _, key := range pathKeys {
		if p, ok := c.args[key].(string); ok {
			return c.tool + " " + p
		}
	}
	canonical, _ := json.Marshal(c.args) // cannot fail: the arguments were decoded from JSON
	return c.tool + string(canonical)
}
