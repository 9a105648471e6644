package stream

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// responsesEncoder writes the events of a response. It tracks the output items that the client has:
// text continues in the message in which it was cut, a new item gets the next index, and the end lists
// all of them.
type responsesEncoder struct {
	s       script
	follows bool // the client has the beginning of another attempt's answer
	began   bool // numbering has begun
	lost    bool // the client's content is unknown, or the output is too large

	id    string // of the response that the client has, as JSON
	model string
	items []clientItem
	ids   map[string]bool // of items[:known], see has
	known int
	place map[int]place // of this answer's items
	gone  int           // number of omitted items

	open   int    // the message whose text continues or changes; -1 for none
	openID string // its id
	stage  stage  // how much of its end was sent
	text   []byte // its text that the client has
	joins  bool   // a message of this answer continues it
	fresh  bool   // an item of this answer was sent, so no earlier one is open except the message
	// Reasoning before a call that follows the text: the provider requires it with the call, and
	// refuses it without one.
	reasoned [][]byte
}

// clientItem is an item that the client has.
type clientItem struct {
	raw  []byte // as far as it is known; nil for an item that began before the changed stretch
	done bool
	said [][]byte // text of the parts of its reasoning
	raws bool     // it is full reasoning text, not a summary
}

// place is the position of an item of this answer at the client.
type place struct {
	index int
	gone  bool
	made  bool // another item was written in its place
}

// maxGap limits how far an item's index may exceed the number of known items.
const maxGap = 1024

func (Responses) encoder(s *Sink) encoder {
	f := &responsesEncoder{open: -1, place: map[int]place{}}
	if s == nil {
		return f
	}
	frames, sent, seq, lost := s.shown()
	f.follows, f.lost, f.text, f.s.seq = true, lost, []byte(sent), seq+1
	known := new(Known)
	eachEvent(frames, func(ev *Event) { f.record(ev, Responses{}.Decode(ev, known)) })
	if f.open >= 0 && sent == "" && !f.items[f.open].done {
		f.text = nil // the message has begun, but has no text yet
	}
	return f
}

// record records an event that the client has.
func (f *responsesEncoder) record(ev *Event, d *Delta) {
	it := &d.item
	known := it.index >= 0 && it.index < len(f.items)
	switch {
	case it.event == eventCreated:
		r := gjson.GetBytes(ev.Data, "response")
		f.id, f.model = strings.Clone(r.Get("id").Raw), strings.Clone(r.Get("model").Str)
	case it.event == eventAdded:
		if f.lost = f.lost || it.index != len(f.items); f.lost {
			return
		}
		if itemKind(it.raw) == "message" {
			f.lost = f.open >= 0 // two messages: it is unknown which one the text belongs to
			f.open, f.openID = it.index, itemID(it.raw)
		}
		f.items = append(f.items, clientItem{raw: []byte(string(it.raw))})
	case !known:
	case it.event == eventDone:
		f.items[it.index].raw, f.items[it.index].done = []byte(string(it.raw)), true
		if it.index == f.open {
			f.stage = stageItem
		}
	case it.index == f.open && it.event == eventFull:
		f.stage = max(f.stage, stageText)
	case it.index == f.open && gjson.GetBytes(ev.Data, "type").Str == "response.content_part.done":
		f.stage = max(f.stage, stagePart)
	case d.Kind == KindReasoning:
		f.items[it.index].think(ev, d)
	}
}

// think records a piece of reasoning.
func (s *clientItem) think(ev *Event, d *Delta) {
	at := gjson.GetBytes(ev.Data, "summary_index")
	s.raws = !at.Exists()
	i := min(max(0, int(at.Int())), len(s.said))
	if i == len(s.said) {
		s.said = append(s.said, nil)
	}
	s.said[i] = append(s.said[i], textOf(d.reasoning)...)
}

func (f *responsesEncoder) event(out []byte, ev *Event, d *Delta, e *edit) (_ []byte, ok bool) {
	it := &d.item
	f.s.out, ok = out, true
	if !f.follows && !f.began && d.Kind != KindDone {
		f.began, f.s.seq, f.text = ev.HasData, d.seq, []byte(e.shown)
	}
	if !ev.HasData || d.Kind == KindDone {
		return append(out, ev.Raw...), true
	}
	if e.only {
		if it.event == eventAdded && itemKind(it.raw) == "message" {
			f.place[it.index] = place{gone: true}
			return out, true
		}
		if it.event == eventEnd || it.event == eventAdded {
			f.complete(nil)
		}
	}
	p, known := f.where(it)
	if f.lost {
		return out, false
	}
	switch {
	case f.follows && (it.event == eventCreated || it.event == eventProgress):
		ok = f.id != "" // otherwise the client has only comments
	case it.event == eventEnd:
		if e.before != "" {
			ok = f.write(e.before)
		}
		f.last(ev, e)
	case it.event == eventAdded:
		f.added(ev, it, e)
	case it.index < 0:
		f.s.put(ev, -1)
	case !known:
	case p.gone && it.event == eventDone && f.open >= 0 && itemKind(it.raw) == "reasoning" && !f.has(itemID(it.raw)):
		f.reasoned = append(f.reasoned, []byte(string(it.raw)))
	case p.gone:
	case f.edits(p.index, ev, d, e):
		ok = f.message(ev, d, e)
	default:
		f.s.put(ev, p.index)
		if it.event == eventDone {
			f.items[p.index].raw, f.items[p.index].done = []byte(string(it.raw)), true
		}
	}
	d.seq = f.s.seq - 1
	return f.s.out, ok
}

// where returns the place of an event's item. Items that began before the changed stretch keep their
// index.
func (f *responsesEncoder) where(it *item) (p place, known bool) {
	p, known = f.place[it.index]
	if f.follows || known || it.index < 0 || it.event == eventAdded {
		return p, known
	}
	p = place{index: it.index}
	f.place[it.index] = p
	return p, f.reach(p.index + 1)
}

// reach makes room for n items; it returns false if they are too many.
func (f *responsesEncoder) reach(n int) bool {
	if f.lost = f.lost || n > len(f.items)+maxGap; f.lost {
		return false
	}
	for len(f.items) < n {
		f.items = append(f.items, clientItem{})
	}
	return true
}

// edits reports whether an event belongs to the message whose text continues or changes.
func (f *responsesEncoder) edits(index int, ev *Event, d *Delta, e *edit) bool {
	if !f.follows && f.open < 0 && e.text != nil && (d.Kind == KindText || d.item.event == eventFull && !d.item.call) {
		f.open, f.openID = index, strings.Clone(gjson.GetBytes(ev.Data, "item_id").Str)
	}
	return index == f.open
}

// added assigns a place to an item of this answer.
func (f *responsesEncoder) added(ev *Event, it *item, e *edit) {
	kind := itemKind(it.raw)
	switch {
	case f.follows && f.open >= 0 && kind == "message" && !f.joins:
		f.joins, f.place[it.index] = true, place{index: f.open}
		return
	case f.follows && (f.open >= 0 && kind == "reasoning" || kind != "message" && f.has(itemID(it.raw))):
		f.place[it.index] = place{gone: true}
		return
	case !f.follows && !f.reach(it.index-f.gone):
		return
	case !f.follows && kind == "message" && e.text != nil && f.open < 0:
		if e.shown+*e.text == "" {
			f.omit(it.index)
			return
		}
		f.open, f.openID = len(f.items), itemID(it.raw)
	case isCall(kind) && e.recall:
		if c := e.replacement(); c == nil || !c.same() {
			if f.omit(it.index); c != nil {
				f.put(c.asItem())
				f.place[it.index], f.gone = place{gone: true, made: true}, f.gone-1
			}
			return
		}
	}
	f.close()
	for _, raw := range f.reasoned {
		f.s.say("response.output_item.added", "output_index", len(f.items), "item", raw)
		f.s.say("response.output_item.done", "output_index", len(f.items), "item", raw)
		f.items = append(f.items, clientItem{raw: raw, done: true})
	}
	f.reasoned = nil
	f.place[it.index] = place{index: len(f.items)}
	f.s.put(ev, len(f.items))
	f.items = append(f.items, clientItem{raw: []byte(string(it.raw))})
}

// has reports whether the client has an item with this id. It indexes each item once.
func (f *responsesEncoder) has(id string) bool {
	if f.ids == nil {
		f.ids = map[string]bool{}
	}
	for ; f.known < len(f.items); f.known++ {
		f.ids[itemID(f.items[f.known].raw)] = true
	}
	return id != "" && f.ids[id]
}

// omit omits an item.
func (f *responsesEncoder) omit(index int) {
	f.place[index] = place{gone: true}
	f.gone++
}

// put writes the events of a complete call.
func (f *responsesEncoder) put(item []byte) {
	f.s.call(item, len(f.items))
	f.items = append(f.items, clientItem{raw: item, done: true})
}

// write writes text of the open message; it returns false if that has ended.
func (f *responsesEncoder) write(text string) bool {
	if text == "" {
		return true
	}
	if f.open < 0 || f.stage > stageOpen {
		return false
	}
	f.text = append(f.text, text...)
	f.s.text(f.openID, f.open, text)
	return true
}

// message writes an event of the message whose text continues or changes. Its end is rewritten with
// the whole text.
func (f *responsesEncoder) message(ev *Event, d *Delta, e *edit) bool {
	if !f.write(e.before) {
		return false
	}
	it := &d.item
	switch {
	case it.event == eventPiece && d.texts != nil:
		text := textOf(d.texts)
		if e.text != nil {
			text = *e.text
			e.said()
		}
		return f.write(text)
	case it.event == eventDone:
		f.addUnsentText(e)
		f.complete(it.raw)
	case it.event == eventOther: // such as an annotation
		list := changes(ev.Data, "item_id", f.openID)
		if f.follows {
			list = append(list, changes(ev.Data, "content_index", 0)...)
		}
		f.s.put(ev, f.open, list...)
	case it.event == eventPart && !f.follows && strings.HasSuffix(itemKind(ev.Data), ".added"):
		f.s.put(ev, f.open)
	}
	return true
}

// addUnsentText adds the new text of a message without pieces.
func (f *responsesEncoder) addUnsentText(e *edit) {
	if !f.follows && e.text != nil && f.open >= 0 {
		f.text = append(f.text, *e.text...)
		e.said()
	}
}

// complete writes the rest of the message's end that the client does not have: with the fields of
// like, or with new ones.
func (f *responsesEncoder) complete(like []byte) {
	if f.open < 0 || f.stage == stageItem {
		return
	}
	item := message(f.openID, string(f.text))
	if like != nil {
		item = with(like, "id", f.openID, "content.0.text", string(f.text))
	}
	f.s.ends(item, f.open, f.stage)
	f.items[f.open].raw, f.items[f.open].done, f.stage = item, true, stageItem
}

// close ends items that the client saw begin and that this answer does not complete.
func (f *responsesEncoder) close() {
	if f.fresh || !f.follows {
		return
	}
	f.fresh = true
	for i := range f.items {
		s := &f.items[i]
		if s.done || i == f.open {
			continue
		}
		id := itemID(s.raw)
		summary := [][]byte{}
		for k := range s.said {
			text := string(s.said[k])
			part := transcript.Object("type", "summary_text", "text", text)
			if summary = append(summary, part); k+1 == len(s.said) && !s.raws {
				f.s.say("response.reasoning_summary_text.done", "item_id", id, "output_index", i, "summary_index", k, "text", text)
				f.s.say("response.reasoning_summary_part.done", "item_id", id, "output_index", i, "summary_index", k, "part", part)
			}
		}
		if s.raw, s.done = with(s.raw, "status", "incomplete"), true; !s.raws && len(summary) > 0 {
			s.raw = with(s.raw, "summary", transcript.List(summary))
		}
		f.s.say("response.output_item.done", "output_index", i, "item", s.raw)
	}
}

// last writes the remaining text and calls, and the end of the response with its output.
func (f *responsesEncoder) last(ev *Event, e *edit) {
	f.close()
	f.addUnsentText(e)
	f.complete(nil)
	var list []transcript.Splice
	if f.follows {
		list = changes(ev.Data, "response.id", []byte(f.id), "response.output", transcript.List(f.output()))
	} else {
		list = f.rest(ev.Data, e)
	}
	if u := e.usage; u != nil {
		list = append(list, changes(ev.Data, "response.usage.input_tokens", u.Input, "response.usage.output_tokens", u.Output, "response.usage.total_tokens", u.Input+u.Output)...)
	}
	f.s.put(ev, -1, list...)
}

// rest writes new text and calls that replace no item, and returns the changes of the output. Calls
// that occur only in the output are changed there.
func (f *responsesEncoder) rest(data []byte, e *edit) []transcript.Splice {
	n, output := 0, gjson.GetBytes(data, "response.output").Array()
	for i, v := range output {
		p, came := f.place[i]
		item := []byte(v.Raw)
		if !came && e.recall && isCall(v.Get("type").Str) {
			c := e.replacement()
			if c == nil {
				continue
			}
			if !c.same() {
				item = c.asItem()
			}
		}
		switch {
		case p.gone && !p.made:
			continue
		case n == len(f.items):
			f.items = append(f.items, clientItem{raw: item})
		case f.items[n].raw == nil:
			f.items[n].raw = item
		}
		n++
	}
	if len(output) == 0 && slices.ContainsFunc(f.items, func(s clientItem) bool { return s.raw == nil }) {
		return nil // the server sends no output, and not all items are known
	}
	if e.text != nil && *e.text != "" && f.open < 0 {
		item := message(messageID(gjson.GetBytes(data, "response.id").Str), *e.text)
		f.s.message(item, len(f.items))
		f.items = append(f.items, clientItem{raw: item, done: true})
		e.said()
	}
	for _, c := range e.calls {
		if c.original == nil || c.original.raw == "" {
			f.put(c.asItem())
		}
	}
	return changes(data, "response.output", transcript.List(f.output()))
}

// messageID returns the id of a message that the gateway adds to a response.
func messageID(response string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(response, "resp_"), transcript.OwnMark+"_")
	return "msg_" + transcript.OwnMark + "_" + rest
}

// output returns the items that the client has.
func (f *responsesEncoder) output() (items [][]byte) {
	for i := range f.items {
		if f.items[i].raw != nil {
			items = append(items, f.items[i].raw)
		}
	}
	return items
}

func (*responsesEncoder) whole(body []byte, e *edit) []transcript.Splice {
	f := &responsesEncoder{}
	said := e.text == nil
	gjson.GetBytes(body, "output").ForEach(func(_, v gjson.Result) bool {
		item, kind := []byte(v.Raw), v.Get("type").Str
		switch {
		case isCall(kind):
			c := e.replacement()
			if c == nil {
				return true
			}
			if !c.same() {
				item = c.asItem()
			}
		case kind == "message" && !said && v.Get("content.0.text").Exists():
			if said = true; *e.text == "" {
				return true
			}
			item = with(item, "content.0.text", *e.text)
		}
		f.items = append(f.items, clientItem{raw: item})
		return true
	})
	if !said && *e.text != "" {
		f.items = append(f.items, clientItem{raw: message(messageID(gjson.GetBytes(body, "id").Str), *e.text)})
	}
	for _, c := range e.calls {
		if c.original == nil {
			f.items = append(f.items, clientItem{raw: c.asItem()})
		}
	}
	return changes(body, "output", transcript.List(f.output()))
}

func (*responsesEncoder) blank(c *Composition, streamed bool) []byte {
	if !streamed {
		return c.response("completed")
	}
	var s script
	s.say("response.created", "response", c.response("in_progress"))
	s.say("response.in_progress", "response", c.response("in_progress"))
	s.say("response.completed", "response", c.response("completed"))
	return s.out
}

// response returns a response without output.
func (c *Composition) response(status string) []byte {
	usage := []byte("null")
	if status == "completed" {
		usage = []byte(`{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}`)
	}
	const rest = `,"error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"metadata":{},"parallel_tool_calls":true,` +
		`"previous_response_id":null,"reasoning":{"effort":null,"summary":null},"store":false,"temperature":null,"text":{"format":{"type":"text"}},` +
		`"tool_choice":"auto","tools":[],"top_p":null,"truncation":"disabled","user":null,"output":[]`
	b := beginning(transcript.String("resp_"+transcript.OwnMark+"_"+c.ID), status, c.Created, c.Model)
	return append(transcript.AppendField(append(b, rest...), "usage", usage), '}')
}

// beginning returns the first fields of a response; id is JSON.
func beginning(id []byte, status string, created time.Time, model string) []byte {
	b := transcript.Object("id", id, "object", "response", "created_at", int(created.Unix()), "status", status, "model", model)
	return b[:len(b)-1]
}

// identify changes the ids of the response and its messages, which clients send back.
func (*responsesEncoder) identify(data []byte, request string) (list []transcript.Splice, id string) {
	raw := transcript.String("resp_" + transcript.OwnMark + "_" + request)
	list = changes(data, "response.id", raw, "response_id", raw)
	if gjson.GetBytes(data, "object").Str == "response" {
		list = append(list, changes(data, "id", raw)...)
	}
	paths := []string{"item_id", "item.id"}
	for _, at := range [...]string{"response.output", "output"} {
		for i := range gjson.GetBytes(data, at).Array() {
			paths = append(paths, at+"."+strconv.Itoa(i)+".id")
		}
	}
	for _, path := range paths {
		if rest, ok := strings.CutPrefix(gjson.GetBytes(data, path).Str, "msg_"); ok && !strings.HasPrefix(rest, transcript.OwnMark) {
			list = append(list, changes(data, path, "msg_"+transcript.OwnMark+"_"+rest)...)
		}
	}
	return list, string(raw)
}

// finish returns nil: the end of a response has its own status.
func (*responsesEncoder) finish(Identity, []byte, int, recovery.Finish) []byte { return nil }

// end returns nil for a complete answer: most servers send no end mark. It writes a failure twice: as
// the end of the response, because agents read its code, and as an error, which SDKs raise.
func (f *responsesEncoder) end(failure []byte) []byte {
	if failure == nil {
		return nil
	}
	failure = oneLine(failure)
	message, code, param := gjson.GetBytes(failure, "error.message").Str, gjson.GetBytes(failure, "error.code").Str, []byte(gjson.GetBytes(failure, "error.param").Raw)
	if message == "" {
		message = string(failure)
	}
	if code == "" {
		code = "server_error"
	}
	if len(param) == 0 {
		param = []byte("null")
	}
	id, empty := []byte(f.id), []byte("[]")
	s := script{seq: f.s.seq}
	if len(id) == 0 { // SDKs accept no other first event
		s.seq, id = 0, transcript.String("resp_"+transcript.OwnMark+"_failed")
		s.say("response.created", "response", append(transcript.AppendField(beginning(id, "in_progress", time.Now(), f.model), "output", empty), '}'))
	}
	b := transcript.AppendField(beginning(id, "failed", time.Now(), f.model), "error", transcript.Object("code", code, "message", message))
	s.say("response.failed", "response", append(transcript.AppendField(transcript.AppendField(b, "output", empty), "usage", nil), '}'))
	s.say("error", "code", code, "message", message, "param", param)
	return s.out
}

// ErrorEnds returns true: codex, opencode, Agents, LangChain, the AI SDK and OpenAI's SDKs report an
// error event. After a broken connection some of them report that instead.
func (Responses) ErrorEnds() bool { return true }

// isCall reports whether items of this type are calls that are judged.
func isCall(kind string) bool { return kind == "function_call" || kind == "custom_tool_call" }

// same reports whether a call of a verdict is unchanged.
func (c *call) same() bool {
	return c.original != nil && c.DraftCall == c.original.DraftCall && !c.original.value
}

// asItem returns a call as an item: a changed copy of the original item, or a new one.
func (c *call) asItem() []byte {
	field, kind := "arguments", "function_call"
	if c.Kind == "custom" {
		field, kind = "input", "custom_tool_call"
	}
	if from := c.original; from != nil && from.raw != "" {
		raw := []byte(from.raw)
		list := changes(raw, "call_id", c.ID, field, c.Arguments)
		if c.Name != from.Name {
			name, space := c.Name, gjson.Get(from.raw, "namespace").Str
			if rest, ok := strings.CutPrefix(c.Name, space+"."); space != "" && ok {
				name = rest
			} else if before, ok := strings.CutSuffix(c.Name, "."+from.Name); ok && space == "" {
				name = from.Name
				list = append(list, transcript.Splice{Start: 1, End: 1, Raw: append(transcript.AppendField([]byte{'{'}, "namespace", before)[1:], ',')})
			}
			list = append(list, changes(raw, "name", name)...)
		}
		return spliced(raw, list)
	}
	id := c.ID
	if id == "" {
		id = "call_rebound"
	}
	return transcript.Object("id", "fc_rebound_"+strings.TrimPrefix(id, "call_"), "type", kind, "status", "completed", "call_id", id, "name", c.Name, field, c.Arguments)
}
