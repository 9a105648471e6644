package demo

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// responseFailed is a response that fails before it says anything.
func responseFailed(x *exchange) {
	x.begin()
	x.typed("created", `"response":`+x.response("in_progress", ""))
	x.typed("failed", `"response":`+strings.Replace(x.response("failed", ""), `"error":null`,
		`"error":{"code":"server_error","message":"The server had an error while processing your request. Sorry about that!"}`, 1))
}

// respond sends a share of a text as the events of a response, then calls end; a nil
// end is the right one.
func (x *exchange) respond(text string, share float64, end step) {
	const at = `"item_id":"msg_demo","output_index":0,"content_index":0`
	item := func(status, content string) string {
		return `{"id":"msg_demo","type":"message","status":"` + status + `","role":"assistant","content":[` + content + `]}`
	}
	part := func(text string) string {
		return `{"type":"output_text","annotations":[],"logprobs":[],"text":` + quote(text) + `}`
	}
	x.begin()
	x.typed("created", `"response":`+x.response("in_progress", ""))
	x.typed("output_item.added", `"output_index":0,"item":`+item("in_progress", ""))
	x.typed("content_part.added", at+`,"part":`+part(""))
	list := pieces(text, chunks)
	for _, p := range list[:int(share*chunks)] {
		if !pause(x.r.Context(), 10*time.Millisecond) {
			return
		}
		x.typed("output_text.delta", at+`,"logprobs":[],"delta":`+quote(p))
	}
	if end != nil {
		end(x)
		return
	}
	x.typed("output_text.done", at+`,"logprobs":[],"text":`+quote(text))
	x.typed("content_part.done", at+`,"part":`+part(text))
	x.typed("output_item.done", `"output_index":0,"item":`+item("completed", part(text)))
	x.typed("completed", `"response":`+x.response("completed", item("completed", part(text))))
}

// response is the object itself.
func (x *exchange) response(status, output string) string {
	return `{"id":"resp_demo","object":"response","created_at":1,"status":"` + status + `","error":null,"model":` + quote(x.model) + `,"output":[` + output + `]}`
}

// typed sends an event of the response.
func (x *exchange) typed(kind, fields string) {
	fmt.Fprintf(x.w, "event: response.%s\ndata: {\"type\":\"response.%s\",\"sequence_number\":%d,%s}\n\n", kind, kind, x.events, fields)
	x.events++
	_ = http.NewResponseController(x.w).Flush()
}

// readResponse reads the events of a response as SDKs do.
func readResponse(body io.Reader) (r reply) {
	var text strings.Builder
	s := bufio.NewScanner(body)
	s.Buffer(nil, maxEvent)
	for s.Scan() && r.err == nil && !r.done {
		data, ok := strings.CutPrefix(s.Text(), "data: ")
		if !ok {
			continue
		}
		switch e := gjson.Parse(data); e.Get("type").Str {
		case "response.created":
			r.id = e.Get("response.id").Str
		case "response.output_text.delta":
			text.WriteString(e.Get("delta").Str)
		case "response.completed":
			r.done = true
		case "response.failed", "error":
			r.err = errEvent
		}
	}
	if r.text = text.String(); r.err == nil && !r.done {
		r.err = s.Err()
	}
	return r
}
