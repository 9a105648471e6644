package count

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Counts is the size of a prompt in tokens, uncalibrated.
//
// The text of OpenAI's models is exact, and so is a conversation of plain
// messages with those of them that OpenAI's cookbook describes: then Exact is
// set. Everything else is an approximation: how tools, calls, results, images
// and schemas are written into the prompt is not public, and other providers
// have other vocabularies. Calibration.Tokens corrects by what was reported.
//
// Source: https://github.com/openai/openai-cookbook,
// examples/How_to_count_tokens_with_tiktoken.ipynb.
type Counts struct {
	Messages []int  // each message of the history with its overhead
	Fixed    int    // tool definitions, answer schema, priming
	Total    int    // the prompt; room for the answer is not in it, see Reserve
	Exact    bool   // the upstream will report this very number
	Encoding string // what the text was counted with

	weights []weight
	fixed   weight
}

// weight is the tokens of a part of a prompt, by what calibration tells apart.
type weight struct {
	text  int  // tokens of text, with the framing that belongs to it
	media int  // tokens of images, sound and files
	calls int  // tool calls: what a provider adds to each is learned
	exact bool // text is the model's own, and nothing is approximate
}

func (w weight) total() int { return w.text + w.media }

func (w weight) add(v weight) weight {
	return weight{w.text + v.text, w.media + v.media, w.calls + v.calls, w.exact && v.exact}
}

// from is the weight of the messages from i on.
func (c Counts) from(i int) weight {
	w := weight{exact: true}
	for _, m := range c.weights[min(i, len(c.weights)):] {
		w = w.add(m)
	}
	return w
}

// Answered is the tokens of the prompt that the model answered last, as the history has
// it: what stands before that answer; 0 if there is none.
func (c Counts) Answered(b *transcript.Body) int {
	n := c.Total
	for i, m := range slices.Backward(b.Messages()) {
		if n -= c.Messages[i]; m.Role == transcript.RoleAssistant {
			return n
		}
	}
	return 0
}

// whole is the weight of the prompt.
func (c Counts) whole() weight { return c.from(0).add(c.fixed) }

// Overheads of OpenAI's framing: <|start|>role<|message|>…<|end|>, and the
// beginning of the answer (cookbook). Those of calls and results were measured
// by the authors of github.com/hmarr/openai-chat-tokens.
const (
	messageTokens = 3
	nameTokens    = 1
	callTokens    = 3
	resultTokens  = -2
	primingTokens = 3
)

// scale is how the requests for one model are counted.
type scale struct {
	vocabulary
	vision vision
	row    uint32 // of vision, which tells scales apart
	framed bool   // the framing of plain messages is published
	ids    bool   // call ids are part of the prompt
}

// scale returns how a model's requests are counted.
func (m *Meter) scale(model string) *scale {
	name := bareModel(model)
	s := &scale{vocabulary: m.vocabulary(model)}
	s.vision, s.row = visionOf(name)
	s.ids = strings.Contains(name, "claude") || strings.Contains(name, "mistral")
	for _, family := range []string{"gpt-3.5", "gpt-35", "gpt-4", "chatgpt-4o"} {
		s.framed = s.framed || strings.HasPrefix(name, family)
	}
	return s
}

// signature tells scales of one encoding apart.
func (s *scale) signature() uint32 {
	n := s.row << 2
	if s.ids {
		n |= 1
	}
	if s.Exact {
		n |= 2
	}
	return n
}

// message counts one message.
func (s *scale) message(m transcript.Message) weight {
	if m.Role == "" { // no message; the upstream will say so
		return weight{text: s.Count(string(m.Raw()))}
	}
	w := weight{text: messageTokens + 1, exact: s.Exact} // the role is one token
	switch m.Role {
	case transcript.RoleSystem, transcript.RoleUser, transcript.RoleAssistant, transcript.RoleDeveloper:
	case transcript.RoleTool, transcript.RoleOpaque:
		w.exact = false
	default:
		w.text += s.Count(m.Role)
		w.exact = false
	}
	if name := m.Name(); name != "" {
		w.text += nameTokens + s.Count(name)
		if m.Role == transcript.RoleTool {
			w.text += resultTokens
		}
	}
	w = s.content(w, m)
	for _, c := range m.ToolCalls() {
		w.text += callTokens + s.Count(c.Name) + s.Count(c.Text())
		if s.ids {
			w.text += s.Count(c.ID)
		}
		w.calls++
		w.exact = false
	}
	if s.ids && m.Role == transcript.RoleTool {
		w.text += s.Count(m.ToolCallID())
	}
	for raw := range m.Asides { // signatures and sealed reasoning are left to calibration
		w.text += s.prose(gjson.ParseBytes(raw), 0)
		w.exact = false
	}
	return w
}

// content adds what a message says.
func (s *scale) content(w weight, m transcript.Message) weight {
	for raw := range m.Contents {
		switch raw[0] {
		case '[':
			gjson.ParseBytes(raw).ForEach(func(_, part gjson.Result) bool {
				w = w.add(s.part(part, 0))
				return true
			})
		case '"':
			w.text += s.Count(transcript.Text(raw))
		case '{':
			w = w.add(s.part(gjson.ParseBytes(raw), 0))
		default:
			w.text += s.Count(string(raw))
			w.exact = false
		}
	}
	return w
}

// proseDepth bounds how deep blocks within blocks are followed.
const proseDepth = 8

// prose counts the readable strings of a reasoning block.
func (s *scale) prose(v gjson.Result, depth int) (n int) {
	switch {
	case v.Type == gjson.String:
		return s.Count(v.Str)
	case !v.IsObject() && !v.IsArray() || depth > proseDepth:
		return 0
	}
	object := v.IsObject()
	v.ForEach(func(name, v gjson.Result) bool {
		switch {
		case !object, v.IsObject(), v.IsArray():
			n += s.prose(v, depth+1)
		case name.Str == "text", name.Str == "summary", name.Str == "thinking", name.Str == "content":
			n += s.prose(v, depth+1)
		}
		return true
	})
	return n
}
