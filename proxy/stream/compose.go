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

// Composition is an answer that the gateway itself writes. Its usage is zero.
type Composition struct {
	ID      string // of the request; the answer's id contains it
	Model   string
	Text    string
	Calls   []recovery.DraftCall
	Created time.Time
	Usage   bool // the stream ends with usage, as the client asked
}

// Composed is a Deliverable for a Composition. The caller may add to Header.
type Composed struct {
	unread
	Header http.Header
	o      Options
	c      Composition
	whole  bool
	began  time.Duration
	tell   []recovery.Repair
}

// Compose builds an answer in the form that the request asks for. repairs are the changes to a model's
// answer that led to it, or nil if the gateway wrote it.
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

// Deliver sends the answer in one write.
func (n *Composed) Deliver(context.Context) *Broken {
	n.ReportRepairs()
	var err error
	if n.whole {
		body := n.c.encode(n.o.Format, false)
		n.Header["Content-Length"] = []string{strconv.Itoa(len(body))}
		err = n.o.Sink.Whole(http.StatusOK, n.Header, body)
	} else {
		n.o.Sink.Begin(http.StatusOK, n.Header)
		err = n.o.Sink.Write(Piece{Bytes: n.c.encode(n.o.Format, true), Released: recovery.ReleasedCall})
	}
	if err != nil {
		return &Broken{Err: err, Client: true}
	}
	return nil
}

// Discard drops the answer.
func (n *Composed) Discard() {}

// Drain implements Deliverable: there is nothing to read.
func (n *Composed) Drain() {}

// Usage returns zero, because the provider reported none.
func (n *Composed) Usage() (recovery.Usage, time.Duration) { return recovery.Usage{}, n.began }

// Rejected returns the model output in the error of a provider that refused it: Groq's
// failed_generation, also if another provider wraps it.
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

// encode returns the answer as a stream, or whole.
func (c *Composition) encode(f Format, streamed bool) []byte {
	e, enc := edit{recall: true, calls: (&calls{}).match(c.Calls)}, f.encoder(nil)
	if len(c.Calls) > 0 {
		e.finish = recovery.FinishCalls
	}
	if c.Text != "" || len(c.Calls) == 0 {
		e.text = &c.Text
	}
	blank := enc.blank(c, streamed)
	if streamed {
		out, _ := encode(f, blank, &e)
		return out
	}
	return spliced(blank, enc.whole(blank, &e))
}

// brand replaces the identity in an event with the gateway's.
func (a *Answer) brand(ev *Event, d *Delta) []byte {
	list, id := a.o.Format.encoder(nil).identify(ev.Data, a.o.ID)
	d.ID.ID = id
	if len(list) == 0 {
		return ev.Raw
	}
	data := spliced(ev.Data, list)
	if i := bytes.Index(ev.Raw, ev.Data); i >= 0 {
		return spliced(ev.Raw, []transcript.Splice{{Start: i, End: i + len(ev.Data), Raw: data}})
	}
	return appendFrame(nil, string(ev.Name), data)
}
