package upstreamtest

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// routeResponses is route for /v1/responses and below. Requests that name a response
// work only for the account that made it, and take steps of its model's script.
func (s *Server) routeResponses(r *http.Request, rest string, q *request) (plain func() string, bad *apiError) {
	id, action, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	post := r.Method == http.MethodPost
	switch {
	case rest == "" && post:
		return nil, nil
	case rest == "":
		return nil, notAllowed(r)
	case id == "compact" && post:
		return func() string { return s.compact(q) }, nil
	case id == "input_tokens" && post:
		return func() string {
			return `{"object":"response.input_tokens","input_tokens":` + strconv.Itoa(q.promptTokens()) + `}`
		}, nil
	}
	k := s.ledger.find(q.credential, id)
	if k == nil {
		e := badRequest("", "", "Response with id '%s' not found.", id)
		e.status = http.StatusNotFound
		return nil, e
	}
	q.responseID, q.model, q.name = id, k.model, nameOf(k.model)
	switch r.Method + " " + action {
	case "GET ":
		if q.stream = r.URL.Query().Get("stream") == "true"; q.stream {
			if k.events == nil {
				return nil, badRequest("", "stream", "This response cannot be streamed: it was not created with background=true and stream=true.")
			}
			after := r.URL.Query().Get("starting_after")
			if q.after, bad = -1, nil; after != "" {
				n, err := strconv.Atoi(after)
				if err != nil {
					return nil, badRequest("invalid_type", "starting_after", "Invalid type for 'starting_after': expected an integer.")
				}
				q.after = n
			}
			return nil, nil
		}
		return func() string { return string(k.whole) }, nil
	case "DELETE ":
		return func() string {
			s.ledger.delete(id)
			return `{"id":"` + id + `","object":"response","deleted":true}`
		}, nil
	case "POST cancel":
		return func() string { return string(k.whole) }, nil
	case "GET input_items":
		return func() string { return `{"object":"list","data":[` + k.input + `],"has_more":false}` }, nil
	}
	return nil, notAllowed(r)
}

// compact returns the user's messages and a compaction item in place of the rest.
func (s *Server) compact(q *request) string {
	id := "cmp_mock_" + decimal(q.n)
	out := ""
	gjson.Parse("[" + s.ledger.Input(q.credential, q.body) + "]").ForEach(func(_, it gjson.Result) bool {
		if it.Get("role").Str != "user" {
			return true
		}
		content := it.Get("content").Raw
		if it.Get("content").Type == gjson.String {
			content = `[{"type":"input_text","text":` + content + `}]`
		}
		out += `{"id":"msg_mock_` + decimal(q.n) + "_" + strconv.Itoa(len(out)) + `","type":"message","status":"completed","role":"user",` +
			`"content":` + content + `},`
		return true
	})
	n := strconv.Itoa(q.promptTokens())
	return `{"id":"resp_mock_` + decimal(q.n) + `","object":"response.compaction","created_at":1790000000,"output":[` + out +
		`{"id":"` + id + `","type":"compaction","encrypted_content":"` + Seal(q.credential, id) + `"}],"usage":{"input_tokens":` + n +
		`,"input_tokens_details":{"cached_tokens":0},"output_tokens":100,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":` + n + `}}`
}

// response returns the answer, streamed or not.
func (x *exchange) response(c *content) *Response {
	st, q := x.st, x.q
	n := decimal(q.n)
	r := &Response{ID: "resp_mock_" + n, Model: q.name, Created: x.begun.Unix(), In: q.promptTokens(), Background: q.background, Stored: q.stored}
	r.Previous = q.field("previous_response_id").Str
	r.Out, r.Thought = c.completionTokens()
	switch c.finish {
	case "length":
		r.Incomplete = "max_output_tokens"
	case "content_filter":
		r.Incomplete = c.finish
	}
	if st.noFinish {
		r.Status = "in_progress"
	}
	if st.roleOnly {
		return r
	}
	if len(c.reasoning) > 0 {
		it := Item{Kind: Reasoning, ID: "rs_mock_" + n, Text: c.reasoning, escaped: true, pace: c.pace, firstPause: c.pace}
		if strings.Contains(q.field("include").Raw, "reasoning.encrypted_content") {
			it.Sealed = Seal(q.credential, it.ID)
		}
		r.Items = append(r.Items, it)
	}
	if len(c.pieces) > 0 || c.tool == "" && len(c.reasoning) == 0 {
		r.Items = append(r.Items, Item{Kind: Message, ID: "msg_mock_" + n, Text: c.pieces, escaped: true, pace: x.t.gap})
	}
	if c.tool == "" {
		return r
	}
	tool, calls := q.firstOffered(), 1
	if st.form == formMerged {
		calls = 2
	}
	for i := range calls {
		call := Item{
			Kind: FunctionCall, ID: "fc_mock_" + n, CallID: x.callID(0, i), Name: c.tool, Text: pieces(c.args, max(1, len(c.args)/5)), escaped: true,
			pace: x.t.gap, firstPause: x.t.gap, noDeltas: st.form == formWhole, object: st.form == formObject,
		}
		if i > 0 {
			call.ID += "_c" + strconv.Itoa(i)
		}
		if tool.name == c.tool {
			call.Namespace = tool.namespace
			if tool.custom {
				call.Kind, call.ID = CustomCall, "ctc"+strings.TrimPrefix(call.ID, "fc")
			}
		}
		r.Items = append(r.Items, call)
	}
	return r
}

// keep records the answer before it is sent, so that a fault does not prevent it.
func (x *exchange) keep(r *Response, events *reply) {
	if x.st.unkept {
		return
	}
	q := x.q
	k := &storedResponse{account: q.credential, model: q.model, whole: r.Whole(), tokens: r.In + r.Out}
	if q.stored {
		k.input = x.s.ledger.Input(q.credential, q.body)
	}
	if events != nil && q.background {
		k.events = &reply{
			buf: append([]byte(nil), events.buf...), events: append([]event(nil), events.events...),
			contentEvents: append([]int(nil), events.contentEvents...), end: events.end,
		}
	}
	x.s.ledger.store(r.ID, k, q.stored)
}

// wholeResponse builds an answer that is not streamed.
func (x *exchange) wholeResponse(b *reply, c *content) {
	r := x.response(c)
	x.keep(r, nil)
	if x.q.background {
		b.put(r.body("queued", false))
		return
	}
	b.put(r.body(r.finalStatus(), true))
}

// streamResponse builds the events of a streamed answer.
func (x *exchange) streamResponse(b *reply, c *content) {
	st, r := x.st, x.response(c)
	b.crlf = st.crlf
	b.obfuscate = x.q.field("stream_options.include_obfuscation").Type != gjson.False
	if !st.empty {
		b.begin(r)
		for i := range r.Items {
			b.streamItem(&r.Items[i], i)
		}
		if !st.roleOnly && !st.noFinish {
			b.finish(r)
		}
	}
	if st.done {
		b.line("data: [DONE]", 0)
	}
	x.keep(r, b)
}

// resume adds the events of a recorded stream after starting_after.
func (x *exchange) resume(b *reply) {
	k := x.s.ledger.find(x.q.credential, x.q.responseID)
	if k == nil {
		return // it was deleted meanwhile
	}
	from := min(max(x.q.after+1, 0), len(k.events.events))
	b.buf = append(b.buf, k.events.buf...)
	b.events = append(b.events, k.events.events[from:]...)
	for _, m := range k.events.contentEvents {
		if m >= from {
			b.markContent(m - from)
		}
	}
	b.end = max(k.events.end-from, 0)
}

// appendResponseError adds the event that ends a stream with an error.
func appendResponseError(x *exchange, b *reply) {
	e := x.streamError()
	if !x.st.flat {
		b.responseEvent(x.failedResponse(e), "response.failed", "failed", false)
		return
	}
	b.numbered("error", `,"code":`+nullable(e.code)+`,"message":`+quoted(e.message)+`,"param":`+nullable(e.param), 0)
}

// responseErrorBody returns the error body of a 200.
func responseErrorBody(x *exchange) string {
	e := x.streamError()
	if x.st.flat {
		return e.body(x.q.n)
	}
	return x.failedResponse(e).body("failed", true)
}

func (x *exchange) failedResponse(e *apiError) *Response {
	return &Response{
		ID: "resp_mock_" + decimal(x.q.n), Model: x.q.name, Created: x.begun.Unix(), Stored: x.q.stored,
		Status: "failed", Code: e.code, Message: e.message,
	}
}
