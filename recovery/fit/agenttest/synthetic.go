package agenttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Facts are what a session must still say after it was shortened.
type Facts struct {
	Constraints []string // sentences of the user that restrict the work
	Unresolved  []string // errors of commands that have not succeeded since
	Paths       []string // files that were read, edited or written
}

// Synthetic generates a chat request of about approxBytes, at least about 20 KB: a coding
// agent with the tools read, edit, write, bash and grep, which reads files repeatedly, edits
// them, runs long tests, and fixes some errors but not others. The user restricts the work
// at the beginning and sometimes later. The request ends with a result. Four bytes are
// about one token.
func Synthetic(seed uint64, approxBytes int) []byte {
	body, _ := WithFacts(seed, approxBytes)
	return body
}

type (
	synMessage struct {
		Role      string    `json:"role"`
		Content   *string   `json:"content"`
		Reasoning string    `json:"reasoning_content,omitempty"`
		ToolCalls []synCall `json:"tool_calls,omitempty"`
		ID        string    `json:"tool_call_id,omitempty"`
	}
	synCall struct {
		ID       string      `json:"id"`
		Type     string      `json:"type"`
		Function synFunction `json:"function"`
	}
	synFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	synBody struct {
		Model    string          `json:"model"`
		Stream   bool            `json:"stream"`
		Tools    json.RawMessage `json:"tools"`
		Messages []synMessage    `json:"messages"`
	}
)

// generator generates a synthetic session.
type generator struct {
	*rand.Rand
	messages []synMessage
	size     int
	// sizePercent is the size of files and outputs, relative to a long session.
	sizePercent int
	names       []string            // of the files, in the order of creation
	files       map[string][]string // lines
	facts       Facts
}

// synTools returns the tools. Their arguments are required strings.
func synTools() json.RawMessage {
	var out []string
	for _, t := range [][]string{{"read", "Read a file.", "path"}, {"edit", "Replace exact text in a file.", "path", "old_text", "new_text"},
		{"write", "Write a file.", "path", "content"}, {"bash", "Run a shell command.", "command"}, {"grep", "Search in files.", "pattern", "path"}} {
		var properties []string
		for _, a := range t[2:] {
			properties = append(properties, fmt.Sprintf(`%q:{"type":"string"}`, a))
		}
		required, _ := json.Marshal(t[2:]) // a list of text
		out = append(out, fmt.Sprintf(`{"type":"function","function":{"name":%q,"description":%q,"parameters":{"type":"object","properties":{%s},"required":%s}}}`,
			t[0], t[1], strings.Join(properties, ","), required))
	}
	return json.RawMessage("[" + strings.Join(out, ",") + "]")
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // plain structs of text
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// WithFacts is Synthetic and the facts of the session.
func WithFacts(seed uint64, approxBytes int) ([]byte, Facts) {
	a := &generator{Rand: rand.New(rand.NewPCG(seed, 0x5e55)), files: map[string][]string{}, sizePercent: max(10, min(100, approxBytes/2000))}
	for range 6 {
		a.newFile(30 + a.IntN(120))
	}
	a.add(synMessage{Role: "system", Content: pointer("You are a coding assistant working in a terminal. Use the tools read, edit, write, bash and grep. " +
		"Answer briefly. Paths are relative to /workspace/shop unless they begin with a slash.")})
	a.add(synMessage{Role: "user", Content: pointer("The nightly job of the shop drops orders. Find out why and fix it.\n" + a.constraint() + "\n" + a.constraint() +
		"\nStart with " + a.names[0] + ".")})
	a.read(a.names[0])
	end := approxBytes - 240*a.sizePercent // leave space for the last steps
	for step := 0; a.size < end || step < 4; step++ {
		switch n := a.IntN(100); {
		case n < 30:
			a.readSome()
		case n < 48:
			a.edit(a.file(), "")
		case n < 54:
			a.write()
		case n < 64:
			a.grep()
		case n < 78:
			a.failThenFix()
		case n < 84:
			a.failAndLeave()
		case n < 92:
			a.longOutput()
		case n < 97 && step > 4:
			a.user()
		default:
			a.newFile(40 + a.IntN(260))
		}
	}
	a.failAndLeave()
	f := a.file()
	a.read(f)
	a.edit(f, "The remaining failure comes from the rounding in "+f+"; I am replacing it with integer cents now.")
	return encode(synBody{"gpt-4o", true, synTools(), a.messages}), a.facts
}

func pointer(s string) *string { return &s }

func (a *generator) add(m synMessage) {
	a.messages = append(a.messages, m)
	a.size += len(encode(m)) + 1
}

// synStep is a call with its result; args are alternating names and values.
type synStep struct {
	tool   string
	args   []string
	result string
}

// step appends an answer with these parallel calls, and their results.
func (a *generator) step(text string, steps ...synStep) {
	m := synMessage{Role: "assistant"}
	if text != "" {
		m.Content = pointer(text)
	}
	if a.IntN(4) == 0 {
		m.Reasoning = a.thoughts(1 + a.IntN(5))
	}
	for _, s := range steps {
		var args strings.Builder
		for i := 0; i < len(s.args); i += 2 {
			fmt.Fprintf(&args, "%s%s:%s", map[bool]string{true: "", false: ","}[i == 0], encode(s.args[i]), encode(s.args[i+1]))
		}
		id := fmt.Sprintf("call_%016x", a.Uint64())
		m.ToolCalls = append(m.ToolCalls, synCall{id, "function", synFunction{s.tool, "{" + args.String() + "}"}})
	}
	a.add(m)
	for i, s := range steps {
		a.add(synMessage{Role: "tool", Content: pointer(s.result), ID: m.ToolCalls[i].ID})
	}
}
