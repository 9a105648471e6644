package upstreamtest

import (
	"strconv"
	"strings"
	"sync"
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
	stamp    int // where in buf the send time is written; 0: nowhere
	act      action
}

// reply builds an answer. Replies are pooled.
type reply struct {
	buf    []byte
	events []event
	head   []byte
	usage  bool // the stream carries usage
	crlf   bool

	// contentEvents are the indexes of the content events, which the places of faults count;
	// first is the first content event, end the one after the last.
	contentEvents []int
	first, end    int
	obfuscate     bool
}

// reset empties a used reply.
func (b *reply) reset() {
	b.buf, b.events, b.contentEvents, b.obfuscate = b.buf[:0], b.events[:0], b.contentEvents[:0], false
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

var replies = sync.Pool{New: func() any { return new(reply) }}

const stampDigits = 19

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
		ans := x.s.answers.get(answerKey{q.name, st.text, x.t.bytes, x.t.chunks})
		c.pieces, c.text = ans.pieces, len(ans.text)
		if rest := continuation(ans.text, q.prefix, st.prefill); len(rest) != len(ans.text) || q.prefix != "" {
			n := max(1, min(x.t.chunks, len(rest)*x.t.chunks/max(1, len(ans.text))))
			c.pieces, c.text = pieces(rest, n), len(rest)
		}
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
	b.head = append(b.head[:0], `data: {"id":"chatcmpl-mock-`...)
	b.head = strconv.AppendInt(b.head, q.n, 10)
	b.head = append(b.head, `","object":"chat.completion.chunk","created":`...)
	b.head = strconv.AppendInt(b.head, x.begun.Unix(), 10)
	b.head = append(b.head, `,"model":`...)
	b.head = appendString(b.head, q.name)
	b.head = append(b.head, `,"service_tier":"default","system_fingerprint":"fp_mock000001","choices":[`...)

	gap := x.t.gap
	if !st.empty {
		for i := range c.choices {
			from := b.open(i)
			b.buf = append(b.buf, `{"role":"assistant","content":`...)
			if st.nullContent || len(c.pieces) == 0 && c.tool != "" {
				b.buf = append(b.buf, `null,"refusal":null}`...)
			} else {
				b.buf = append(b.buf, `"","refusal":null}`...)
			}
			b.close(from, 0, "", "")
		}
	}
	b.first = len(b.events)
	if !st.empty && !st.roleOnly {
		for i := range c.choices {
			x.streamChoice(b, c, i, gap)
		}
	}
	b.end = len(b.events)
	for i := b.first; i < b.end; i++ {
		b.markContent(i)
	}
	if !st.empty && !st.roleOnly && !st.noFinish {
		for i := range c.choices {
			from := b.open(i)
			b.buf = append(b.buf, `{}`...)
			if st.form == formMessage && c.tool != "" {
				x.callMessage(b, c, i)
			}
			b.close(from, 0, "", c.finish)
		}
	}
	if b.usage && !st.empty && !st.roleOnly {
		from := len(b.buf)
		b.buf = append(b.buf, b.head...)
		b.buf = append(b.buf, `],"usage":`...)
		b.appendUsage(q.promptTokens(), c)
		b.buf = append(b.buf, '}')
		b.add(from, 0)
	}
	if !st.noDone {
		from := len(b.buf)
		b.buf = append(b.buf, "data: [DONE]"...)
		b.add(from, 0)
	}
}

// streamChoice adds the content events of one choice.
func (x *exchange) streamChoice(b *reply, c *content, index int, gap time.Duration) {
	for _, p := range c.reasoning {
		from := b.open(index)
		b.buf = append(b.buf, `{"reasoning_content":"`...)
		b.buf = append(b.buf, p...)
		b.buf = append(b.buf, `"}`...)
		b.close(from, c.pace, "", "")
	}
	logprobs := x.st.logprobs || x.q.logprobs
	for i, p := range c.pieces {
		from := b.open(index)
		b.buf = append(b.buf, `{"content":"`...)
		stamp := 0
		if x.t.stamps {
			stamp = len(b.buf) + 1
			b.buf = append(b.buf, `~0000000000000000000~`...)
		}
		b.buf = append(b.buf, p...)
		b.buf = append(b.buf, `"}`...)
		pause := gap
		if i == 0 {
			pause = 0
		}
		token := ""
		if logprobs {
			token = p
		}
		b.close(from, pause, token, "")
		b.events[len(b.events)-1].stamp = stamp
	}
	switch {
	case c.tool == "":
		return
	case x.st.form != formFragments:
		x.streamCalls(b, c, index, gap)
		return
	}
	from := b.open(index)
	b.buf = append(b.buf, `{"tool_calls":[{"index":0,"id":"`...)
	b.appendCallID(x.q.n, index)
	b.buf = append(b.buf, `","type":"function","function":{"name":`...)
	b.buf = appendString(b.buf, c.tool)
	b.buf = append(b.buf, `,"arguments":""}}]}`...)
	b.close(from, gap, "", "")
	for _, p := range pieces(c.args, max(1, len(c.args)/5)) {
		from := b.open(index)
		b.buf = append(b.buf, `{"tool_calls":[{"index":0,"function":{"arguments":"`...)
		b.buf = append(b.buf, p...)
		b.buf = append(b.buf, `"}}]}`...)
		b.close(from, gap, "", "")
	}
}

// open begins a chunk with one choice, up to its delta.
func (b *reply) open(index int) int {
	from := len(b.buf)
	b.buf = append(b.buf, b.head...)
	b.buf = append(b.buf, `{"index":`...)
	b.buf = strconv.AppendInt(b.buf, int64(index), 10)
	b.buf = append(b.buf, `,"delta":`...)
	return from
}

// close ends a chunk that open began. token is the text of its log
// probability, finish its finish reason; either may be empty.
func (b *reply) close(from int, pause time.Duration, token, finish string) {
	b.buf = append(b.buf, `,"logprobs":`...)
	b.appendLogprobs(token)
	b.buf = append(b.buf, `,"finish_reason":`...)
	b.buf = appendNullable(b.buf, finish)
	b.buf = append(b.buf, `}]`...)
	if b.usage {
		b.buf = append(b.buf, `,"usage":null`...)
	}
	b.buf = append(b.buf, '}')
	b.add(from, pause)
}

// add ends the event that starts at from, and adds it to the list.
func (b *reply) add(from int, pause time.Duration) {
	if b.crlf {
		b.buf = append(b.buf, "\r\n\r\n"...)
	} else {
		b.buf = append(b.buf, "\n\n"...)
	}
	b.events = append(b.events, event{from: from, to: len(b.buf), pause: pause})
}

func (b *reply) appendCallID(n int64, index int) {
	b.buf = append(b.buf, "call_mock_"...)
	b.buf = strconv.AppendInt(b.buf, n, 10)
	if index > 0 {
		b.buf = append(b.buf, '_')
		b.buf = strconv.AppendInt(b.buf, int64(index), 10)
	}
}

// appendLogprobs appends log probabilities, with the escaped text as one token.
func (b *reply) appendLogprobs(token string) {
	if token == "" {
		b.buf = append(b.buf, "null"...)
		return
	}
	b.buf = append(b.buf, `{"content":[{"token":"`...)
	b.buf = append(b.buf, token...)
	b.buf = append(b.buf, `","logprob":-0.25,"bytes":null,"top_logprobs":[]}],"refusal":null}`...)
}

func (b *reply) appendUsage(prompt int, c *content) {
	total, reasoning := c.completionTokens()
	b.buf = append(b.buf, `{"prompt_tokens":`...)
	b.buf = strconv.AppendInt(b.buf, int64(prompt), 10)
	b.buf = append(b.buf, `,"completion_tokens":`...)
	b.buf = strconv.AppendInt(b.buf, int64(total), 10)
	b.buf = append(b.buf, `,"total_tokens":`...)
	b.buf = strconv.AppendInt(b.buf, int64(prompt+total), 10)
	b.buf = append(b.buf, `,"prompt_tokens_details":{"cached_tokens":`...)
	b.buf = strconv.AppendInt(b.buf, int64(c.cached.of(prompt)), 10)
	b.buf = append(b.buf, `,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":`...)
	b.buf = strconv.AppendInt(b.buf, int64(reasoning), 10)
	b.buf = append(b.buf, `,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`...)
}

// whole builds a chat completion that is not streamed.
func (x *exchange) whole(b *reply, c *content) {
	st, q := x.st, x.q
	b.buf = append(b.buf, `{"id":"chatcmpl-mock-`...)
	b.buf = strconv.AppendInt(b.buf, q.n, 10)
	b.buf = append(b.buf, `","object":"chat.completion","created":`...)
	b.buf = strconv.AppendInt(b.buf, x.begun.Unix(), 10)
	b.buf = append(b.buf, `,"model":`...)
	b.buf = appendString(b.buf, q.name)
	b.buf = append(b.buf, `,"choices":[`...)
	if !st.roleOnly {
		for i := range c.choices {
			if i > 0 {
				b.buf = append(b.buf, ',')
			}
			x.wholeChoice(b, c, i)
		}
	}
	b.buf = append(b.buf, `],"usage":`...)
	b.appendUsage(q.promptTokens(), c)
	b.buf = append(b.buf, `,"service_tier":"default","system_fingerprint":"fp_mock000001"}`...)
}

func (x *exchange) wholeChoice(b *reply, c *content, index int) {
	b.buf = append(b.buf, `{"index":`...)
	b.buf = strconv.AppendInt(b.buf, int64(index), 10)
	b.buf = append(b.buf, `,"message":{"role":"assistant","content":`...)
	if c.tool != "" && len(c.pieces) == 0 {
		b.buf = append(b.buf, `null`...)
	} else {
		b.buf = append(b.buf, '"')
		for _, p := range c.pieces {
			b.buf = append(b.buf, p...)
		}
		b.buf = append(b.buf, '"')
	}
	if len(c.reasoning) > 0 {
		b.buf = append(b.buf, `,"reasoning_content":"`...)
		for _, p := range c.reasoning {
			b.buf = append(b.buf, p...)
		}
		b.buf = append(b.buf, '"')
	}
	if c.tool != "" {
		b.buf = append(b.buf, `,"tool_calls":`...)
		x.callList(b, c, index)
	}
	b.buf = append(b.buf, `,"refusal":null,"annotations":[]},"logprobs":`...)
	token := ""
	if x.st.logprobs || x.q.logprobs {
		token = strings.Join(c.pieces, "")
	}
	b.appendLogprobs(token)
	b.buf = append(b.buf, `,"finish_reason":`...)
	if x.st.noFinish {
		b.buf = append(b.buf, `null}`...)
		return
	}
	b.buf = appendNullable(b.buf, c.finish)
	b.buf = append(b.buf, '}')
}
