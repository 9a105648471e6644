package upstreamtest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kinds of items that a Response may have.
const (
	Reasoning    = "reasoning"
	Message      = "message"
	FunctionCall = "function_call"
	CustomCall   = "custom_tool_call"
)

// Item is one item of a Response.
type Item struct {
	Kind string
	ID   string
	// Text is the summary, text, arguments or input, in the pieces of a stream's
	// deltas. Without pieces a stream sends only the item.
	Text []string
	// CallID, Name and Namespace are for calls only.
	CallID, Name, Namespace string
	// Sealed is the encrypted_content of reasoning.
	Sealed string

	escaped    bool          // Text is escaped for JSON
	object     bool          // arguments are an object instead of a string
	noDeltas   bool          // send no deltas
	pace       time.Duration // between deltas
	firstPause time.Duration // before the first delta
}

// Response is an answer of a model in the format of /v1/responses.
type Response struct {
	ID, Model string
	Created   int64
	Items     []Item
	// Status overrides the status. Without it a response with Incomplete, the reason,
	// is incomplete, one with Code and Message has failed, and others are completed.
	Status, Incomplete, Code, Message string
	Background, Stored                bool
	Previous                          string
	In, Out, Thought                  int // tokens; Out includes Thought
}

// itemForm is the wire format of one kind of item.
type itemForm struct {
	field string // the item's field with the text
	delta string // event type of deltas, without .delta or .done
	index string // an event's field with the index of the part
	part  string // event type of the part, without .added or .done
	open  string // the part up to its text
	close string // the part after its text
}

var itemForms = map[string]itemForm{
	Reasoning: {
		field: "summary", delta: "response.reasoning_summary_text", index: `,"summary_index":0`,
		part: "response.reasoning_summary_part", open: `{"type":"summary_text","text":"`, close: `"}`,
	},
	Message: {
		field: "content", delta: "response.output_text", index: `,"content_index":0`,
		part: "response.content_part", open: `{"type":"output_text","annotations":[],"logprobs":[],"text":"`, close: `"}`,
	},
	FunctionCall: {field: "arguments", delta: "response.function_call_arguments"},
	CustomCall:   {field: "input", delta: "response.custom_tool_call_input"},
}

// text returns the whole text of an item, escaped.
func (it *Item) text() string { return strings.Join(it.pieces(), "") }

func (it *Item) pieces() []string {
	if it.escaped {
		return it.Text
	}
	out := make([]string, len(it.Text))
	for i, p := range it.Text {
		out[i] = escape(p)
	}
	it.Text, it.escaped = out, true
	return out
}

// body returns the complete item, or with done false its initial state.
func (it *Item) body(done bool) string {
	f, text, status := itemForms[it.Kind], "", "in_progress"
	if done {
		text, status = it.text(), "completed"
	}
	head := `{"id":"` + it.ID + `","type":"` + it.Kind + `"`
	switch it.Kind {
	case Reasoning:
		summary, sealed := "", ""
		if done && len(it.Text) > 0 {
			summary = f.open + text + f.close
		}
		if n := len(it.Sealed); n > 0 {
			if !done {
				n /= 2 // complete only in the complete item
			}
			sealed = `,"encrypted_content":"` + it.Sealed[:n] + `"`
		}
		return head + `,"summary":[` + summary + `]` + sealed + `}`
	case Message:
		if done {
			text = f.open + text + f.close
		}
		return head + `,"status":"` + status + `","content":[` + text + `],"role":"assistant"}`
	}
	args, namespace := `"`+text+`"`, ""
	if it.object && done {
		_ = json.Unmarshal([]byte(args), &args) // text is escaped
	}
	if it.Namespace != "" {
		namespace = `,"namespace":` + quoted(it.Namespace)
	}
	return head + `,"status":"` + status + `","` + f.field + `":` + args + `,"call_id":"` + it.CallID + `","name":` + quoted(it.Name) + namespace + `}`
}

// body returns the complete response, or with done false its initial state.
func (r *Response) body(status string, done bool) string {
	completed, problem, incomplete, usage := "null", "null", "null", "null"
	switch status {
	case "completed":
		completed = decimal(r.Created)
	case "failed":
		problem = `{"code":` + quoted(r.Code) + `,"message":` + quoted(r.Message) + `}`
	case "incomplete":
		incomplete = `{"reason":"` + r.Incomplete + `"}`
	}
	if done && status != "failed" {
		usage = fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
			r.In, r.Out, r.Thought, r.In+r.Out)
	}
	var output []string
	for i := range r.Items {
		if done {
			output = append(output, r.Items[i].body(true))
		}
	}
	return `{"id":"` + r.ID + `","object":"response","created_at":` + decimal(r.Created) + `,"status":"` + status + `","background":` + strconv.FormatBool(r.Background) +
		`,"completed_at":` + completed + `,"error":` + problem + `,"incomplete_details":` + incomplete +
		`,"frequency_penalty":0.0,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"model":` + quoted(r.Model) +
		`,"output":[` + strings.Join(output, ",") + `],"parallel_tool_calls":true,"presence_penalty":0.0,"previous_response_id":` + nullable(r.Previous) +
		`,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"service_tier":"default","store":` + strconv.FormatBool(r.Stored) +
		`,"temperature":1.0,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1.0,` +
		`"truncation":"disabled","usage":` + usage + `,"user":null,"metadata":{}}`
}

// put appends strings as they are.
func (b *reply) put(parts ...string) {
	for _, p := range parts {
		b.buf = append(b.buf, p...)
	}
}

// finalStatus returns the status of the complete response.
func (r *Response) finalStatus() string {
	switch {
	case r.Status != "":
		return r.Status
	case r.Incomplete != "":
		return "incomplete"
	case r.Code != "":
		return "failed"
	}
	return "completed"
}

// numbered adds an event with its index in the stream as sequence number.
func (b *reply) numbered(typ, rest string, pause time.Duration) {
	b.event(typ, `,"sequence_number":`+strconv.Itoa(len(b.events))+rest, pause)
}

// responseEvent adds an event with the response.
func (b *reply) responseEvent(r *Response, typ, status string, done bool) {
	b.numbered(typ, `,"response":`+r.body(status, done), 0)
}

// begin adds the events before the content.
func (b *reply) begin(r *Response) {
	b.responseEvent(r, "response.created", "in_progress", false)
	b.responseEvent(r, "response.in_progress", "in_progress", false)
	b.first, b.end = len(b.events), len(b.events)
}

// finish adds the event that ends a stream.
func (b *reply) finish(r *Response) {
	status := r.finalStatus()
	b.responseEvent(r, "response."+status, status, true)
}

// streamItem adds the events of one item.
func (b *reply) streamItem(it *Item, index int) {
	f := itemForms[it.Kind]
	at := `,"item_id":"` + it.ID + `","output_index":` + strconv.Itoa(index) + f.index
	item := func(suffix string, done bool) {
		b.numbered("response.output_item"+suffix, `,"output_index":`+strconv.Itoa(index)+`,"item":`+it.body(done), 0)
	}
	whole := func(typ, open, text, shut string) { b.numbered(typ, at+open+text+shut, 0) }
	item(".added", false)
	texts := it.pieces()
	if len(texts) > 0 && f.part != "" {
		whole(f.part+".added", `,"part":`+f.open, "", f.close)
	}
	for i, p := range texts {
		if it.noDeltas {
			break
		}
		rest := at + `,"delta":"` + p + `"`
		if it.Kind == Message {
			rest += `,"logprobs":[]`
		}
		if b.obfuscate {
			rest += `,"obfuscation":"` + obfuscation[len(p)%16:] + `"`
		}
		pause := it.pace
		if i == 0 {
			pause = it.firstPause
		}
		b.numbered(f.delta+".delta", rest, pause)
		b.markContent(len(b.events) - 1)
	}
	b.end = len(b.events)
	if len(texts) > 0 {
		whole(f.delta+".done", `,"`+f.doneField()+`":"`, it.text(), `"`+f.doneSuffix())
		if f.part != "" {
			whole(f.part+".done", `,"part":`+f.open, it.text(), f.close)
		}
	}
	item(".done", true)
	if len(texts) == 0 || it.noDeltas { // the item itself is the content event
		b.markContent(len(b.events) - 1)
		b.end = len(b.events)
	}
}

func (f *itemForm) doneField() string {
	if f.part != "" {
		return "text"
	}
	return f.field
}

func (f *itemForm) doneSuffix() string {
	if f.field == "content" {
		return `,"logprobs":[]`
	}
	return ""
}

// obfuscation pads deltas, so that packet sizes do not reveal their lengths.
const obfuscation = "q8Zt3LxV0mRw5YbKpD7n"

// Whole returns the response as JSON.
func (r *Response) Whole() []byte {
	return []byte(r.body(r.finalStatus(), true))
}

// Events returns the framed events of a streamed response and the indexes of the
// content events.
func (r *Response) Events() (events [][]byte, content []int) {
	var b reply
	b.begin(r)
	for i := range r.Items {
		b.streamItem(&r.Items[i], i)
	}
	b.finish(r)
	for _, e := range b.events {
		events = append(events, b.buf[e.from:e.to])
	}
	return events, b.contentEvents
}
