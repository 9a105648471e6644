package upstreamtest

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

var messagesFormat = format{
	stream: (*exchange).streamMessage, whole: (*exchange).wholeMessage, errorEvent: appendMessageError,
	errorBody: func(x *exchange) string { return x.messageError().body(x.q.n) },
	textEvent: "content_block_delta",
	textStart: `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`,
}

// routeMessages is route for /v1/messages and below.
func routeMessages(r *http.Request, rest string, q *request) (plain func() string, bad *apiError) {
	switch {
	case r.Method != http.MethodPost:
		return nil, notAllowed(r)
	case rest == "/count_tokens":
		return func() string { return `{"input_tokens":` + strconv.Itoa(q.promptTokens()) + `}` }, nil
	}
	return nil, refuseMessages(q.body)
}

// messageBlock is a content block of a message.
type messageBlock struct {
	begin  string   // content_block in content_block_start
	delta  string   // a delta up to its piece
	pieces []string // escaped
	last   string   // a delta after the pieces, or ""
	whole  string   // the complete block
	pace   time.Duration
}

// blocks returns the content of a message.
func (x *exchange) blocks(c *content) (list []messageBlock) {
	q, n := x.q, decimal(x.q.n)
	if x.st.roleOnly {
		return nil
	}
	if len(c.reasoning) > 0 {
		sealed := `"signature":"` + Seal(q.credential, "thinking_mock_"+n) + `"}`
		list = append(list, messageBlock{
			begin: `{"type":"thinking","thinking":"","signature":""}`, delta: `{"type":"thinking_delta","thinking":"`, pieces: c.reasoning, pace: c.pace,
			last: `{"type":"signature_delta",` + sealed, whole: `{"type":"thinking","thinking":"` + strings.Join(c.reasoning, "") + `",` + sealed,
		})
	}
	if len(c.pieces) > 0 {
		list = append(list, messageBlock{
			begin: `{"type":"text","text":""}`, delta: `{"type":"text_delta","text":"`, pieces: c.pieces, pace: x.t.gap,
			whole: `{"type":"text","text":"` + strings.Join(c.pieces, "") + `"}`,
		})
	}
	if c.tool != "" {
		head := `{"type":"tool_use","id":"` + ToolCallID(q.n) + `","name":` + quoted(c.tool) + `,"input":`
		list = append(list, messageBlock{
			begin: head + `{}}`, delta: `{"type":"input_json_delta","partial_json":"`, pieces: pieces(c.args, max(1, len(c.args)/5)), pace: x.t.gap, whole: head + c.args + `}`,
		})
	}
	return list
}

// messageHead returns a message up to its content.
func (x *exchange) messageHead() string {
	return `{"id":"msg_mock_` + decimal(x.q.n) + `","type":"message","role":"assistant","model":` + quoted(x.q.name) + `,"content":[`
}

// messageUsage returns a usage object.
func (x *exchange) messageUsage(output int) string {
	return `{"input_tokens":` + strconv.Itoa(x.q.promptTokens()) + `,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":` + strconv.Itoa(output) + `}`
}

// stopReason returns the stop reason for a finish reason.
func stopReason(finish string) string {
	switch finish {
	case "stop":
		return "end_turn"
	case "tool_calls":
		return "tool_use"
	case "length":
		return "max_tokens"
	case "content_filter":
		return "refusal"
	}
	return finish
}

// event adds an event of a message.
func (b *reply) event(typ, rest string, pause time.Duration) {
	from, line := len(b.buf), "\n"
	if b.crlf {
		line = "\r\n"
	}
	b.put(`event: `, typ, line, `data: {"type":"`, typ, `"`, rest, `}`)
	b.add(from, pause)
}

// streamMessage builds the events of a streamed message.
func (x *exchange) streamMessage(b *reply, c *content) {
	st := x.st
	b.crlf = st.crlf
	if st.empty {
		b.first, b.end = 0, 0
		return
	}
	b.event("message_start", `,"message":`+x.messageHead()+`],"stop_reason":null,"stop_sequence":null,"usage":`+x.messageUsage(1)+`}`, 0)
	b.event("ping", "", 0)
	b.first = len(b.events)
	for i, k := range x.blocks(c) {
		at := `,"index":` + strconv.Itoa(i)
		b.event("content_block_start", at+`,"content_block":`+k.begin, 0)
		for n, p := range k.pieces {
			b.markContent(len(b.events))
			pause := k.pace
			if n == 0 && len(c.reasoning) == 0 && c.tool == "" {
				pause = 0
			}
			b.event("content_block_delta", at+`,"delta":`+k.delta+p+`"}`, pause)
		}
		if k.last != "" {
			b.event("content_block_delta", at+`,"delta":`+k.last, 0)
		}
		b.event("content_block_stop", at, 0)
	}
	b.end = len(b.events)
	total, _ := c.completionTokens()
	if !st.roleOnly && !st.noFinish {
		reason := quoted(stopReason(c.finish))
		b.event("message_delta", `,"delta":{"stop_reason":`+reason+`,"stop_sequence":null},"usage":{"output_tokens":`+strconv.Itoa(total)+`}`, 0)
	}
	if !st.noDone {
		b.event("message_stop", "", 0)
	}
}

// wholeMessage builds a message that is not streamed.
func (x *exchange) wholeMessage(b *reply, c *content) {
	b.put(x.messageHead())
	for i, k := range x.blocks(c) {
		if i > 0 {
			b.put(",")
		}
		b.put(k.whole)
	}
	reason := "null"
	if !x.st.noFinish {
		reason = quoted(stopReason(c.finish))
	}
	total, _ := c.completionTokens()
	b.put(`],"stop_reason":`, reason, `,"stop_sequence":null,"usage":`, x.messageUsage(total), `}`)
}

// messageError returns the error inside a 200.
func (x *exchange) messageError() *apiError {
	e := &apiError{message: "Overloaded", typ: "overloaded_error", anthropic: true}
	return e.overridden(x.st)
}

// appendMessageError adds an error event.
func appendMessageError(x *exchange, b *reply) {
	e := x.messageError()
	b.event("error", `,"error":{"type":`+quoted(e.typ)+`,"message":`+quoted(e.message)+`}`, 0)
}

// asAnthropic returns the error with Anthropic's envelope and error type.
func (e *apiError) asAnthropic(st *step) *apiError {
	out := *e
	if out.anthropic = true; e.anthropic || st.typ != nil {
		return &out
	}
	switch e.status {
	case http.StatusUnauthorized:
		out.typ = "authentication_error"
	case http.StatusForbidden:
		out.typ = "permission_error"
	case http.StatusNotFound:
		out.typ = "not_found_error"
	case http.StatusRequestEntityTooLarge:
		out.typ = "request_too_large"
	case http.StatusTooManyRequests:
		out.typ = "rate_limit_error"
	case http.StatusGatewayTimeout:
		out.typ = "timeout_error"
	case 529:
		out.typ = "overloaded_error"
	default:
		if out.typ = "api_error"; e.status < http.StatusInternalServerError {
			out.typ = "invalid_request_error"
		}
	}
	return &out
}
