package upstreamtest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// action is what happens at an event.
type action int

const (
	actSend  action = iota // send the event's bytes
	actStall               // wait for the event's pause
	actBreak               // break the connection
)

// event is one piece of a stream: the bytes buf[from:to] after a pause.
type event struct {
	from, to int
	pause    time.Duration
	act      action
}

// reply builds an answer.
type reply struct {
	buf    []byte
	events []event
	head   string // of each chunk
	usage  bool   // the stream carries usage
	crlf   bool

	// contentEvents are the indexes of the content events, which the places of faults count;
	// first is the first content event, end the one after the last.
	contentEvents []int
	first, end    int
	obfuscate     bool
}

// markContent records that an event has a part of the answer.
func (b *reply) markContent(event int) { b.contentEvents = append(b.contentEvents, event) }

// eventAt returns the event before which a fault at this share of the answer goes.
func (b *reply) eventAt(s share) int {
	if i := s.of(len(b.contentEvents)); i < len(b.contentEvents) {
		return b.contentEvents[i]
	}
	return b.end
}

// content is the content of an answer, independent of its format.
type content struct {
	pieces    []string // text, escaped
	text      int      // its size before escaping
	reasoning []string
	pace      time.Duration // between pieces of reasoning
	tool      string        // name of the called tool; empty: none
	args      string
	finish    string
	cached    share // of the prompt
	choices   int
}

// completionTokens estimates the answer's size at four bytes per token.
func (c *content) completionTokens() (total, reasoning int) {
	if len(c.reasoning) > 0 {
		reasoning = len(ReasoningText)/4 + 1
	}
	n := c.text + len(c.tool) + len(c.args)
	return (n/4+1)*c.choices + reasoning, reasoning
}

func (x *exchange) content() content {
	st, q := x.st, x.q
	c := content{finish: "stop", choices: q.choices, cached: st.cached}
	if st.choices > 0 {
		c.choices = st.choices
	}
	if st.reason {
		c.reasoning = pieces(ReasoningText, reasonChunks)
		c.pace = st.reasonFor / reasonChunks
	}
	if (!st.tool || st.textTool) && !st.emptyAnswer {
		whole := generate(q.name, st.text, x.t.bytes)
		rest := continuation(whole, q.prefix, st.prefill)
		n := max(1, min(x.t.chunks, len(rest)*x.t.chunks/max(1, len(whole))))
		c.pieces, c.text = pieces(rest, n), len(rest)
		if st.prefill == prefillEcho && q.prefix != "" && len(c.pieces) > 0 {
			c.pieces[0], c.text = escape(q.prefix)+c.pieces[0], c.text+len(q.prefix)
		}
	}
	if st.tool {
		c.tool, c.args, c.finish = st.toolName, ToolArguments, "tool_calls"
		if c.tool == "" {
			c.tool = q.firstTool()
		}
		if st.args != nil {
			c.args = *st.args
		}
	}
	if st.leak {
		x.leak(&c)
	}
	if st.finish != "" {
		c.finish = st.finish
	}
	return c
}

// stream builds the events of a streamed chat completion.
func (x *exchange) stream(b *reply, c *content) {
	st, q := x.st, x.q
	b.usage, b.crlf = q.usage || st.usageAlways, st.crlf
	b.head = `data: {"id":"chatcmpl-mock-` + decimal(q.n) + `","object":"chat.completion.chunk","created":` + decimal(x.begun.Unix()) + `,"model":` + quoted(q.name) +
		`,"service_tier":"default","system_fingerprint":"fp_mock000001","choices":[`
	if !st.empty {
		role := `{"role":"assistant","content":"","refusal":null}`
		if len(c.pieces) == 0 && c.tool != "" {
			role = `{"role":"assistant","content":null,"refusal":null}`
		}
		for i := range c.choices {
			b.chunk(i, role, 0, "", "")
		}
	}
	answered := !st.empty && !st.roleOnly
	b.first = len(b.events)
	for i := range c.choices {
		if answered {
			x.streamChoice(b, c, i)
		}
	}
	b.end = len(b.events)
	for i := b.first; i < b.end; i++ {
		b.markContent(i)
	}
	for i := range c.choices {
		if answered && !st.noFinish {
			delta := `{}`
			if st.form == formMessage && c.tool != "" { // next to the delta, where clients do not look
				delta += `,"message":{"role":"assistant","tool_calls":` + x.callList(c, i) + `}`
			}
			b.chunk(i, delta, 0, "", c.finish)
		}
	}
	if b.usage && answered {
		b.line(b.head+`],"usage":`+c.usage(q.promptTokens())+`}`, 0)
	}
	if !st.noDone {
		b.line("data: [DONE]", 0)
	}
}

// streamChoice adds the content events of one choice.
func (x *exchange) streamChoice(b *reply, c *content, index int) {
	for _, p := range c.reasoning {
		b.chunk(index, `{"reasoning_content":"`+p+`"}`, c.pace, "", "")
	}
	for i, p := range c.pieces {
		pause, token := x.t.gap, ""
		if i == 0 {
			pause = 0
		}
		if x.st.logprobs || x.q.logprobs {
			token = p
		}
		b.chunk(index, `{"content":"`+p+`"}`, pause, token, "")
	}
	if c.tool != "" {
		x.streamCalls(b, c, index)
	}
}

// chunk adds a chunk with one choice. token is the text of its log probability, finish its finish reason; either may be
// empty.
func (b *reply) chunk(index int, delta string, pause time.Duration, token, finish string) {
	usage := ""
	if b.usage {
		usage = `,"usage":null`
	}
	b.line(b.head+`{"index":`+strconv.Itoa(index)+`,"delta":`+delta+`,"logprobs":`+logprobs(token)+`,"finish_reason":`+nullable(finish)+`}]`+usage+`}`, pause)
}

// line adds an event of one line.
func (b *reply) line(text string, pause time.Duration) {
	from := len(b.buf)
	b.put(text)
	b.add(from, pause)
}

// add ends the event that starts at from, and adds it to the list.
func (b *reply) add(from int, pause time.Duration) {
	if b.crlf {
		b.put("\r\n\r\n")
	} else {
		b.put("\n\n")
	}
	b.events = append(b.events, event{from: from, to: len(b.buf), pause: pause})
}

// logprobs returns log probabilities, with the escaped text as one token.
func logprobs(token string) string {
	if token == "" {
		return "null"
	}
	return `{"content":[{"token":"` + token + `","logprob":-0.25,"bytes":null,"top_logprobs":[]}],"refusal":null}`
}

// usage returns the usage object of a chat completion.
func (c *content) usage(prompt int) string {
	total, reasoning := c.completionTokens()
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":%d,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		prompt, total, prompt+total, c.cached.of(prompt), reasoning)
}

// whole builds a chat completion that is not streamed.
func (x *exchange) whole(b *reply, c *content) {
	q := x.q
	b.put(`{"id":"chatcmpl-mock-`, decimal(q.n), `","object":"chat.completion","created":`, decimal(x.begun.Unix()), `,"model":`, quoted(q.name), `,"choices":[`)
	for i := range c.choices {
		if x.st.roleOnly {
			break
		}
		if i > 0 {
			b.put(`,`)
		}
		x.wholeChoice(b, c, i)
	}
	b.put(`],"usage":`, c.usage(q.promptTokens()), `,"service_tier":"default","system_fingerprint":"fp_mock000001"}`)
}

func (x *exchange) wholeChoice(b *reply, c *content, index int) {
	text, token, finish := `"`+strings.Join(c.pieces, "")+`"`, "", c.finish
	if c.tool != "" && len(c.pieces) == 0 {
		text = `null`
	}
	b.put(`{"index":`, strconv.Itoa(index), `,"message":{"role":"assistant","content":`, text)
	if len(c.reasoning) > 0 {
		b.put(`,"reasoning_content":"`, strings.Join(c.reasoning, ""), `"`)
	}
	if c.tool != "" {
		b.put(`,"tool_calls":`, x.callList(c, index))
	}
	if x.st.logprobs || x.q.logprobs {
		token = strings.Join(c.pieces, "")
	}
	if x.st.noFinish {
		finish = ""
	}
	b.put(`,"refusal":null,"annotations":[]},"logprobs":`, logprobs(token), `,"finish_reason":`, nullable(finish), `}`)
}
