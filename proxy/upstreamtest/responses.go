package upstreamtest

import (
	"encoding/json"
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
	stamps     bool          // deltas begin with their send time
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

// appendItem appends the complete item, or with done false its initial state.
func (b *reply) appendItem(it *Item, done bool) {
	f, text, status := itemForms[it.Kind], "", "in_progress"
	if done {
		text, status = it.text(), "completed"
	}
	b.put(`{"id":"`, it.ID, `","type":"`, it.Kind, `"`)
	switch it.Kind {
	case Reasoning:
		b.put(`,"summary":[`)
		if done && len(it.Text) > 0 {
			b.put(f.open, text, f.close)
		}
		b.put(`]`)
		if sealed := it.Sealed; sealed != "" {
			if !done {
				sealed = sealed[:len(sealed)/2] // complete only in the complete item
			}
			b.put(`,"encrypted_content":"`, sealed, `"`)
		}
	case Message:
		b.put(`,"status":"`, status, `","content":[`)
		if done {
			b.put(f.open, text, f.close)
		}
		b.put(`],"role":"assistant"`)
	default:
		b.put(`,"status":"`, status, `","`, f.field, `":`)
		if it.object && done {
			var args string
			_ = json.Unmarshal([]byte(`"`+text+`"`), &args) // text is escaped
			b.put(args)
		} else {
			b.put(`"`, text, `"`)
		}
		b.put(`,"call_id":"`, it.CallID, `","name":`)
		b.buf = appendString(b.buf, it.Name)
		if it.Namespace != "" {
			b.buf = appendString(append(b.buf, `,"namespace":`...), it.Namespace)
		}
	}
	b.put(`}`)
}

// appendResponse appends the complete response, or with done false its initial state.
func (b *reply) appendResponse(r *Response, status string, done bool) {
	b.put(`{"id":"`, r.ID, `","object":"response","created_at":`, strconv.FormatInt(r.Created, 10), `,"status":"`, status, `","background":`,
		strconv.FormatBool(r.Background))
	if status == "completed" {
		b.put(`,"completed_at":`, strconv.FormatInt(r.Created, 10))
	} else {
		b.put(`,"completed_at":null`)
	}
	if status == "failed" {
		b.buf = appendString(append(b.buf, `,"error":{"code":`...), r.Code)
		b.buf = appendString(append(b.buf, `,"message":`...), r.Message)
		b.put(`}`)
	} else {
		b.put(`,"error":null`)
	}
	if status == "incomplete" {
		b.put(`,"incomplete_details":{"reason":"`, r.Incomplete, `"}`)
	} else {
		b.put(`,"incomplete_details":null`)
	}
	b.put(`,"frequency_penalty":0.0,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"model":`)
	b.buf = appendString(b.buf, r.Model)
	b.put(`,"output":[`)
	if done {
		for i := range r.Items {
			if i > 0 {
				b.put(`,`)
			}
			b.appendItem(&r.Items[i], true)
		}
	}
	b.put(`],"parallel_tool_calls":true,"presence_penalty":0.0,"previous_response_id":`)
	b.buf = appendNullable(b.buf, r.Previous)
	b.put(`,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"service_tier":"default","store":`,
		strconv.FormatBool(r.Stored),
		`,"temperature":1.0,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1.0,`+
			`"truncation":"disabled","usage":`)
	if done && status != "failed" {
		b.put(`{"input_tokens":`, strconv.Itoa(r.In), `,"input_tokens_details":{"cached_tokens":0},"output_tokens":`, strconv.Itoa(r.Out),
			`,"output_tokens_details":{"reasoning_tokens":`, strconv.Itoa(r.Thought), `},"total_tokens":`, strconv.Itoa(r.In+r.Out), `}`)
	} else {
		b.put(`null`)
	}
	b.put(`,"user":null,"metadata":{}}`)
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

// openEvent begins an event, with its index in the stream as sequence number.
func (b *reply) openEvent(typ, suffix string) int {
	from, line := len(b.buf), "\n"
	if b.crlf {
		line = "\r\n"
	}
	b.put(`event: `, typ, suffix, line, `data: {"type":"`, typ, suffix, `","sequence_number":`, strconv.Itoa(len(b.events)))
	return from
}

func (b *reply) closeEvent(from int, pause time.Duration) {
	b.buf = append(b.buf, '}')
	b.add(from, pause)
}

// responseEvent adds an event with the response.
func (b *reply) responseEvent(r *Response, typ, status string, done bool) {
	from := b.openEvent(typ, "")
	b.put(`,"response":`)
	b.appendResponse(r, status, done)
	b.closeEvent(from, 0)
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
		from := b.openEvent("response.output_item", suffix)
		b.put(`,"output_index":`, strconv.Itoa(index), `,"item":`)
		b.appendItem(it, done)
		b.closeEvent(from, 0)
	}
	whole := func(typ, suffix, open, text, shut string) {
		from := b.openEvent(typ, suffix)
		b.put(at, open, text, shut)
		b.closeEvent(from, 0)
	}
	item(".added", false)
	texts := it.pieces()
	if len(texts) > 0 && f.part != "" {
		whole(f.part, ".added", `,"part":`+f.open, "", f.close)
	}
	for i, p := range texts {
		if it.noDeltas {
			break
		}
		from := b.openEvent(f.delta, ".delta")
		b.put(at, `,"delta":"`)
		stamp := 0
		if it.stamps {
			stamp = len(b.buf) + 1
			b.put(`~0000000000000000000~`)
		}
		b.put(p, `"`)
		if it.Kind == Message {
			b.put(`,"logprobs":[]`)
		}
		if b.obfuscate {
			b.put(`,"obfuscation":"`, obfuscation[len(p)%16:], `"`)
		}
		pause := it.pace
		if i == 0 {
			pause = it.firstPause
		}
		b.closeEvent(from, pause)
		b.events[len(b.events)-1].stamp = stamp
		b.markContent(len(b.events) - 1)
	}
	b.end = len(b.events)
	if len(texts) > 0 {
		whole(f.delta, ".done", `,"`+f.doneField()+`":"`, it.text(), `"`+f.doneSuffix())
		if f.part != "" {
			whole(f.part, ".done", `,"part":`+f.open, it.text(), f.close)
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
	var b reply
	b.appendResponse(r, r.finalStatus(), true)
	return b.buf
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
