package stream

import (
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

// responsesFollower writes the events of a second answer so that they complete the
// response whose beginning the client has: its id, its items, its numbers. Text goes on in
// the message that it was cut in; what the client has not seen yet keeps its own ids.
type responsesFollower struct {
	s     script
	lost  bool   // it is not known what the client has
	id    string // of the response
	items []shown
	open  int           // the message whose text goes on, -1 for none
	stage stage         // how far that has ended
	text  []byte        // of it
	place map[int]place // of this answer's items
	joins bool          // a message of this answer goes on with that one
	fresh bool          // an item of this answer is out, so that none before is open but the message
	// Reasoning before a call behind the text: the call's provider demands it back, and
	// refuses it where nothing follows.
	reasoned [][]byte
}

// shown is an item that the client has.
type shown struct {
	raw  []byte // as far as it is known
	done bool
	said [][]byte // text of the parts of reasoning
	raws bool     // it is the reasoning itself
}

// place is where an item of this answer goes.
type place struct {
	index int
	gone  bool
}

func (Responses) follow(a *Answer) follower {
	f := &responsesFollower{open: -1, place: map[int]place{}}
	frame, sent, seq, lost := a.o.Sink.shown()
	f.lost, f.text, f.s.seq = lost, []byte(sent), seq+1
	each(frame, f.saw)
	if f.open >= 0 && sent == "" && !f.items[f.open].done {
		f.text = nil // its beginning is out, but no word of it
	}
	return f
}

// saw notes an event that the client has.
func (f *responsesFollower) saw(ev *Event, d *Delta) {
	it := &d.item
	known := it.index >= 0 && it.index < len(f.items)
	switch {
	case it.event == eventCreated:
		f.id = gjson.GetBytes(ev.Data, "response.id").Raw
	case it.event == eventAdded:
		if f.lost = f.lost || it.index != len(f.items); f.lost {
			return
		}
		if itemKind(it.raw) == "message" {
			f.lost = f.open >= 0 // two messages: which of them the text belongs to, nobody knows
			f.open = it.index
		}
		f.items = append(f.items, shown{raw: []byte(string(it.raw))})
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

// think notes a piece of reasoning.
func (s *shown) think(ev *Event, d *Delta) {
	at := gjson.GetBytes(ev.Data, "summary_index")
	s.raws = !at.Exists()
	i := min(max(0, int(at.Int())), len(s.said))
	if i == len(s.said) {
		s.said = append(s.said, nil)
	}
	s.said[i] = append(s.said[i], textOf(d.reasoning)...)
}

func (f *responsesFollower) calls(ev *Event, d *Delta) []byte {
	it := &d.item
	if it.event == eventAdded && itemKind(it.raw) == "message" {
		f.place[it.index] = place{gone: true}
		return nil
	}
	f.s.out = nil
	if it.event == eventEnd || it.event == eventAdded {
		f.finish()
	}
	before := f.s.out
	out, _ := f.event(ev, d, change{})
	return append(before, out...)
}

func (f *responsesFollower) event(ev *Event, d *Delta, c change) (out []byte, ok bool) {
	if f.lost {
		return nil, false
	}
	f.s.out = nil
	it := &d.item
	ok = true
	switch p, known := f.place[it.index]; {
	case it.event == eventCreated, it.event == eventProgress:
		if f.id == "" { // the client has comments only
			return nil, false
		}
	case it.event == eventEnd:
		if c.before != "" {
			ok = f.write(c.before)
		}
		f.end(ev, c.usage)
	case it.event == eventAdded:
		f.added(ev, it)
	case it.index < 0:
		f.s.put(ev, -1)
	case !known:
	case it.event == eventDone && p.gone && f.open >= 0 && itemKind(it.raw) == "reasoning":
		f.reasoned = append(f.reasoned, []byte(string(it.raw)))
	case p.gone:
	case p.index == f.open:
		ok = f.message(ev, d, c)
	default:
		f.s.put(ev, p.index)
		if it.event == eventDone {
			f.items[p.index].raw, f.items[p.index].done = []byte(string(it.raw)), true
		}
	}
	d.seq = f.s.seq - 1
	return f.s.out, ok
}

// added gives an item of this answer its place.
func (f *responsesFollower) added(ev *Event, it *item) {
	kind := itemKind(it.raw)
	if f.open >= 0 {
		switch {
		case kind == "message" && !f.joins:
			f.joins, f.place[it.index] = true, place{index: f.open}
			return
		case kind == "reasoning":
			f.place[it.index] = place{gone: true}
			return
		}
	}
	f.close()
	for _, raw := range f.reasoned {
		f.s.say("response.output_item.added", "output_index", len(f.items), "item", raw)
		f.s.say("response.output_item.done", "output_index", len(f.items), "item", raw)
		f.items = append(f.items, shown{raw: raw, done: true})
	}
	f.reasoned = nil
	f.place[it.index] = place{index: len(f.items)}
	f.s.put(ev, len(f.items))
	f.items = append(f.items, shown{raw: []byte(string(it.raw))})
}

// write writes text of the message that goes on; false where that has ended.
func (f *responsesFollower) write(text string) bool {
	if text == "" {
		return true
	}
	if f.open < 0 || f.stage > stageOpen {
		return false
	}
	f.text = append(f.text, text...)
	f.s.text(itemID(f.items[f.open].raw), f.open, text)
	return true
}

// message writes an event of the message that goes on.
func (f *responsesFollower) message(ev *Event, d *Delta, c change) bool {
	if !f.write(c.before) {
		return false
	}
	it, id := &d.item, itemID(f.items[f.open].raw)
	kind := gjson.GetBytes(ev.Data, "type").Str
	var next stage
	switch {
	case it.event == eventPiece && d.texts != nil:
		text := textOf(d.texts)
		if c.retext {
			text = c.text
		}
		return f.write(text)
	case kind == "response.content_part.added":
		return true
	case it.event == eventFull:
		next = stageText
	case kind == "response.content_part.done":
		next = stagePart
	case it.event == eventDone:
		next = stageItem
	default: // an annotation
		f.s.put(ev, f.open, changes(ev.Data, "item_id", id)...)
		return true
	}
	if next <= f.stage {
		return true
	}
	f.stage = next
	text := string(f.text)
	list := changes(ev.Data, "item_id", id, "content_index", 0, "text", text, "part.text", text, "item.id", id, "item.content.0.text", text)
	f.s.put(ev, f.open, list...)
	if next == stageItem {
		f.items[f.open].raw, f.items[f.open].done = with(it.raw, "id", id, "content.0.text", text), true
	}
	return true
}

// finish ends the message, as far as this answer did not.
func (f *responsesFollower) finish() {
	if f.open < 0 || f.stage == stageItem {
		return
	}
	f.items[f.open].raw = f.s.ends(itemID(f.items[f.open].raw), f.open, string(f.text), f.stage)
	f.items[f.open].done, f.stage = true, stageItem
}

// close ends what the client saw begin, and nobody can complete.
func (f *responsesFollower) close() {
	if f.fresh {
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
			part := append(appendField([]byte(`{"type":"summary_text"`), "text", text), '}')
			if summary = append(summary, part); k+1 == len(s.said) && !s.raws {
				f.s.say("response.reasoning_summary_text.done", "item_id", id, "output_index", i, "summary_index", k, "text", text)
				f.s.say("response.reasoning_summary_part.done", "item_id", id, "output_index", i, "summary_index", k, "part", part)
			}
		}
		if s.raw, s.done = with(s.raw, "status", "incomplete"), true; !s.raws && len(summary) > 0 {
			s.raw = with(s.raw, "summary", listOf(summary))
		}
		f.s.say("response.output_item.done", "output_index", i, "item", s.raw)
	}
}

// end writes the end of the response: what the client has seen of it is its output.
func (f *responsesFollower) end(ev *Event, usage *recovery.Usage) {
	f.close()
	f.finish()
	items := make([][]byte, len(f.items))
	for i := range items {
		items[i] = f.items[i].raw
	}
	list := changes(ev.Data, "response.id", []byte(f.id), "response.output", listOf(items))
	if u := usage; u != nil {
		list = append(list, changes(ev.Data, "response.usage.input_tokens", u.Input, "response.usage.output_tokens", u.Output, "response.usage.total_tokens", u.Input+u.Output)...)
	}
	f.s.put(ev, -1, list...)
}
