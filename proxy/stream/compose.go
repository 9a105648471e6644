package stream

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// IDPrefix begins the ids of answers that the gateway wrote, or had a model
// write in its own name.
const IDPrefix = "chatcmpl-rebound-"

// Composition is an answer that the gateway itself writes. Its usage is zero.
type Composition struct {
	ID      string // behind IDPrefix
	Model   string
	Text    string
	Calls   []recovery.DraftCall
	Created time.Time
	Usage   bool // the stream ends with usage, as asked for
}

// head appends a chunk or an answer up to its choice's own fields.
func (c *Composition) head(b []byte, object string) []byte {
	b = transcript.AppendString(append(b, `{"id":`...), IDPrefix+c.ID)
	b = append(append(append(b, `,"object":"`...), object...), `","created":`...)
	b = strconv.AppendInt(b, c.Created.Unix(), 10)
	return transcript.AppendString(append(b, `,"model":`...), c.Model)
}

func (c *Composition) reason() string {
	if len(c.Calls) > 0 {
		return `"tool_calls"`
	}
	return `"stop"`
}

const noUsage = `"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`

// Stream is the answer as a stream.
func (c *Composition) Stream() []byte {
	var out []byte
	chunk := func(delta []byte, reason string) {
		out = c.head(append(out, "data: "...), "chat.completion.chunk")
		out = append(append(out, `,"choices":[{"index":0,"delta":`...), delta...)
		out = append(append(append(out, `,"logprobs":null,"finish_reason":`...), reason...), "}]"...)
		if c.Usage {
			out = append(out, `,"usage":null`...)
		}
		out = append(out, "}\n\n"...)
	}
	chunk([]byte(`{"role":"assistant","content":""}`), "null")
	if c.Text != "" {
		chunk(append(transcript.AppendString([]byte(`{"content":`), c.Text), '}'), "null")
	}
	for i, d := range (&calls{}).match(c.Calls) {
		delta := strconv.AppendInt([]byte(`{"tool_calls":[{"index":`), int64(i), 10)
		chunk(append(d.appendFields(append(delta, ',')), `}]}`...), "null")
	}
	chunk([]byte(`{}`), c.reason())
	if c.Usage {
		out = c.head(append(out, "data: "...), "chat.completion.chunk")
		out = append(append(append(out, `,"choices":[],`...), noUsage...), "}\n\n"...)
	}
	return append(out, doneEvent...)
}

// Whole is the answer as one object.
func (c *Composition) Whole() []byte {
	out := append(c.head(nil, "chat.completion"), `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	if c.Text == "" && len(c.Calls) > 0 {
		out = append(out, `null`...)
	} else {
		out = transcript.AppendString(out, c.Text)
	}
	out = append(out, `,"refusal":null`...)
	for i, d := range (&calls{}).match(c.Calls) {
		if i == 0 {
			out = append(out, `,"tool_calls":[{`...)
		} else {
			out = append(out, `},{`...)
		}
		out = d.appendFields(out)
	}
	if len(c.Calls) > 0 {
		out = append(out, `}]`...)
	}
	out = append(append(out, `},"logprobs":null,"finish_reason":`...), c.reason()...)
	return append(append(append(out, `}],`...), noUsage...), '}')
}

// Composed is an answer of the gateway's own on its way to the client. Header
// is the response's and may be added to.
type Composed struct {
	Header http.Header
	o      Options
	c      Composition
	whole  bool
	began  time.Duration
	tell   []recovery.Repair
}

// Compose makes an answer in the form that the request asks for. repairs is
// what made it of a model's own, nil if the gateway wrote it.
func Compose(req *transcript.Body, c Composition, repairs []recovery.Repair, o Options) *Composed {
	c.Usage = req.IncludeUsage()
	n := &Composed{Header: http.Header{}, o: o, c: c, whole: !req.Streaming(), tell: repairs, began: max(time.Since(o.Started), 1)}
	if n.whole {
		n.Header["Content-Type"] = []string{"application/json"}
	} else {
		n.Header["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
		n.Header["Cache-Control"] = []string{"no-cache"}
	}
	return n
}

// Tell reports what was mended, once.
func (n *Composed) Tell() {
	if list := n.tell; len(list) > 0 && n.o.Repaired != nil {
		n.tell = nil
		n.o.Repaired(list)
	}
}

// Deliver sends the answer with one write.
func (n *Composed) Deliver(context.Context) *Broken {
	n.Tell()
	var err error
	if n.whole {
		body := n.c.Whole()
		n.Header["Content-Length"] = []string{strconv.Itoa(len(body))}
		err = n.o.Sink.Whole(http.StatusOK, n.Header, body)
	} else {
		n.o.Sink.Begin(http.StatusOK, n.Header)
		err = n.o.Sink.Write(Piece{Bytes: n.c.Stream(), Released: recovery.ReleasedCall})
	}
	if err != nil {
		return &Broken{Err: err, Client: true}
	}
	return nil
}

// Discard drops the answer.
func (n *Composed) Discard() {}

// Usage is zero: whatever the provider used, it did not say.
func (n *Composed) Usage() (recovery.Usage, time.Duration) { return recovery.Usage{}, n.began }

// Rejected is what a model wrote, out of the error of a provider that refused
// it: Groq's failed_generation, also where another provider passes it on.
func Rejected(body []byte) (text string, ok bool) {
	for range 3 {
		if transcript.Valid(body, maxDepth) != nil {
			return "", false
		}
		root := gjson.ParseBytes(body)
		for _, path := range [...]string{"error.failed_generation", "failed_generation", "error.metadata.failed_generation"} {
			if v := root.Get(path); v.Type == gjson.String && v.Str != "" {
				return v.Str, true
			}
		}
		inner := root.Get("error.metadata.raw") // OpenRouter's
		if inner.Type != gjson.String {
			return "", false
		}
		body = []byte(inner.Str)
	}
	return "", false
}

// branded is the change that gives a chunk or an answer the gateway's identity.
func branded(data []byte, id string) splice {
	raw := transcript.String(IDPrefix + id)
	v := gjson.GetBytes(data, "id")
	if v.Exists() && v.Index > 0 {
		return splice{v.Index, v.Index + len(v.Raw), raw}
	}
	at := 0
	for at < len(data) && data[at] != '{' {
		at++
	}
	if at == len(data) {
		return splice{}
	}
	at++
	field := append(append([]byte(`"id":`), raw...), ',')
	if empty(gjson.ParseBytes(data)) {
		field = field[:len(field)-1]
	}
	return splice{at, at, field}
}

// brand gives an event the gateway's identity and leaves all else of it.
func (a *Answer) brand(ev Event) []byte {
	s := branded(ev.Data, a.o.ID)
	data := spliced(ev.Data, []splice{s})
	if i := bytes.Index(ev.Raw, ev.Data); i >= 0 {
		return replaced(ev.Raw, i, len(ev.Data), data)
	}
	return frame(data)
}
