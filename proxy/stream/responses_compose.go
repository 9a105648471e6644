package stream

import (
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

func (Responses) compose(c *Composition, streamed bool) []byte {
	id := "_" + transcript.OwnMark + "_" + c.ID
	text := c.Text
	if !streamed {
		var items [][]byte
		if text != "" || len(c.Calls) == 0 {
			items = append(items, message("msg"+id, "completed", &text))
		}
		for _, call := range (&calls{}).match(c.Calls) {
			items = append(items, call.itemFor())
		}
		return c.response("completed", items)
	}
	var s script
	s.say("response.created", "response", c.response("in_progress", nil))
	s.say("response.in_progress", "response", c.response("in_progress", nil))
	var items [][]byte
	if text != "" || len(c.Calls) == 0 {
		items = append(items, s.message("msg"+id, 0, text))
	}
	for _, call := range (&calls{}).match(c.Calls) {
		item := call.itemFor()
		s.call(item, len(items))
		items = append(items, item)
	}
	s.say("response.completed", "response", c.response("completed", items))
	return s.out
}

// response is the whole response.
func (c *Composition) response(status string, items [][]byte) []byte {
	b := head("resp_"+transcript.OwnMark+"_"+c.ID, status, c.Created, c.Model)
	b = append(b, `,"error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"metadata":{},"parallel_tool_calls":true,`+
		`"previous_response_id":null,"reasoning":{"effort":null,"summary":null},"store":false,"temperature":null,"text":{"format":{"type":"text"}},`+
		`"tool_choice":"auto","tools":[],"top_p":null,"truncation":"disabled","user":null`...)
	b = appendField(b, "output", listOf(items))
	usage := []byte("null")
	if status == "completed" {
		usage = []byte(`{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}`)
	}
	return append(appendField(b, "usage", usage), '}')
}

// head is the beginning of a response.
func head(id, status string, created time.Time, model string) []byte {
	b := appendField(appendField([]byte{'{'}, "id", id), "object", "response")
	return appendField(appendField(appendField(b, "created_at", int(created.Unix())), "status", status), "model", model)
}

// ErrorEnds is true: codex, opencode, Agents, LangChain, the AI SDK and OpenAI's SDKs report
// one. Behind a broken connection some of them report that in its place.
func (Responses) ErrorEnds() bool { return true }

// Ending is nothing where nothing went wrong: most servers send no end mark. A failure
// is told twice: as the end of the response, which agents act on by its code, and as an
// error, which SDKs raise.
func (Responses) Ending(failure []byte, sink *Sink) []byte {
	if failure == nil {
		return nil
	}
	frame, _, seq, _ := sink.shown()
	failure = oneLine(failure)
	message, code := gjson.GetBytes(failure, "error.message").Str, gjson.GetBytes(failure, "error.code")
	if message == "" {
		message = string(failure)
	}
	known := code.Str
	if known == "" {
		known = "server_error"
	}
	id, model := "resp_"+transcript.OwnMark+"_failed", ""
	s := script{seq: seq + 1}
	if len(frame) == 0 {
		s.seq = 0
	}
	each(frame, func(ev *Event, d *Delta) {
		if d.item.event == eventCreated {
			r := gjson.GetBytes(ev.Data, "response")
			id, model = strings.Clone(r.Get("id").Str), strings.Clone(r.Get("model").Str)
		}
	})
	if len(frame) == 0 { // SDKs take no other event for the first
		b := append(appendField(head(id, "in_progress", time.Now(), model), "output", []byte("[]")), '}')
		s.say("response.created", "response", b)
	}
	b := appendField(head(id, "failed", time.Now(), model), "error", append(appendField(appendField([]byte{'{'}, "code", known), "message", message), '}'))
	b = append(appendField(appendField(b, "output", []byte("[]")), "usage", []byte("null")), '}')
	s.say("response.failed", "response", b)
	param := []byte("null")
	if v := gjson.GetBytes(failure, "error.param"); v.Exists() {
		param = []byte(v.Raw)
	}
	s.say("error", "code", known, "message", message, "param", param)
	return s.out
}
