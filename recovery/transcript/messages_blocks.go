package transcript

import (
	"bytes"
	"fmt"
	"slices"
)

// split is a user's message whose blocks are elements of their own.
type split struct {
	start, end   int32 // its offsets in the body
	list         int32 // the offset of its list of blocks
	first, count int32 // its elements
}

// indexBlocks examines the message that was indexed last: it counts its calls, and if the
// message has results, replaces its element by one for each of its blocks.
func (b *Body) indexBlocks(s *scanner) bool {
	at := len(b.elements) - 1
	message, content := b.elements[at], b.key(at, keyContent)
	if !isList(content) {
		return true
	}
	switch role := roleOf(b.key(at, keyRole)); {
	case role == RoleAssistant && bytes.Contains(content, []byte("tool_use")):
		for block := range elementsOf(content) {
			if blockType(block) != "tool_use" {
				continue
			}
			b.elements[at].kind = wholeCalling
			if b.called++; b.called > b.limits.Calls {
				s.fail(CodeTooMany, int(message.start), "the messages make more than %d tool calls (limits.calls)", b.limits.Calls)
				return false
			}
		}
	case role == RoleUser && bytes.Contains(content, []byte("tool_result")):
		blocks, some := make([]element, 0, 8), false
		for block := range elementsOf(content) {
			one := b.block(block)
			one.wire, one.split = message.wire, int32(len(b.splits)+1)
			blocks, some = append(blocks, one), some || one.kind == blockResult
		}
		if !some {
			return true
		}
		if at+len(blocks) > b.limits.Messages {
			s.fail(CodeTooMany, int(message.start), "the history has more than %d messages (limits.messages)", b.limits.Messages)
			return false
		}
		b.splits = append(b.splits, split{message.start, message.end, int32(b.span(content).Start), int32(at), int32(len(blocks))})
		b.elements = append(b.elements[:at], blocks...)
	}
	return true
}

// block returns the element for a block.
func (b *Body) block(raw []byte) (e element) {
	at := b.span(raw)
	e.start, e.end, e.kind = int32(at.Start), int32(at.End), blockOther
	var said []byte
	for name, v := range fieldsOf(raw) {
		key := keyCount
		switch string(name) {
		case "type":
			if string(nameOf(v)) == "tool_result" {
				e.kind = blockResult
			}
		case "tool_use_id":
			key = keyCallID
		case "content":
			key = keyContent
		case "text":
			said = v
		}
		if key < keyCount {
			at := b.span(v)
			e.keys[key].start, e.keys[key].end = int32(at.Start), int32(at.End)
		}
	}
	if e.kind == blockOther && isReminder(said) {
		e.kind = blockReminder
	}
	return e
}

// isReminder reports whether a text beside results is one that Claude Code adds by itself: a system reminder, or the
// "Tool loaded." after a search for tools.
func isReminder(text []byte) bool {
	if !isString(text) {
		return false
	}
	end := 1 // behind whole escapes
	for n := min(len(text)-1, 64); end < n; end++ {
		if text[end] == '\\' {
			if end++; text[end] == 'u' {
				end += 4
			}
		}
	}
	head := bytes.TrimLeft(appendDecoded(nil, append(clipped(text[:end]), '"')), " \t\r\n")
	return bytes.HasPrefix(head, []byte("<system-reminder")) || string(head) == "Tool loaded."
}

// Reminder reports whether the message is a text of the client itself: one that it put beside results, or a user's message
// that holds system reminders and nothing else. Old ones are seldom instructions: clients say in them which files have
// changed, and repeat what still holds.
func (m Message) Reminder() bool {
	if e := &m.body.elements[m.first]; e.split > 0 {
		return e.kind == blockReminder
	}
	return m.Role == RoleUser && bytes.Contains(m.Raw(), []byte("system-reminder")) && len(WithoutReminders(m.AppendText(nil))) == 0 && len(m.AppendMedia(nil)) == 0
}

// ReminderTag begins a block that clients add to a user's message by themselves.
const ReminderTag = "<system-reminder>"

// WithoutReminders returns a user's text without the system reminders that clients add to it, and without white space
// around it. It works in place.
func WithoutReminders(text []byte) []byte {
	const shut = "</system-reminder>"
	out, rest := text[:0], text
	for {
		i := bytes.Index(rest, []byte(ReminderTag))
		if i < 0 {
			break
		}
		end := bytes.Index(rest[i:], []byte(shut))
		if end < 0 {
			break
		}
		out = append(out, rest[:i]...)
		rest = rest[i+end+len(shut):]
	}
	return bytes.TrimSpace(append(out, rest...))
}

func blockType(block []byte) string {
	kind, _ := member(block, "type")
	return string(nameOf(kind))
}

// blockSplices is allSplices for the history of a format in which messages may be split into blocks.
func (e *Editor) blockSplices(out []Splice, list *field) ([]Splice, error) {
	b, tail := e.body, e.tail
	var slots []slot
	placed := 0 // how many of the values inserted before element i go into the message before it
	for i := 0; i < len(b.elements); {
		first := i
		m := b.elements[i]
		if m.split == 0 {
			s := slot{key: int(m.start), keyEnd: int(m.start), val: int(m.start), valEnd: int(m.end)}
			if h := e.history[i]; h != nil {
				whole := *h
				whole.before = wrapped(h.before[placed:])
				if h.whole != nil {
					whole.whole = wrapped([][]byte{h.whole})[0]
				}
				out = whole.appendSplices(out, &s, b.raw)
			}
			slots = append(slots, s)
			i, placed = i+1, 0
			continue
		}
		at := b.splits[m.split-1]
		var inside [][]byte // values that are appended to the split message
		if i += int(at.count); i == len(b.elements) {
			inside, tail = leading(tail)
		} else if h := e.history[i]; h != nil && b.elements[i].split == 0 && b.elements[i-1].kind == blockResult { // results go to the others
			for placed < len(h.before) && isBlock(h.before[placed]) {
				placed++
			}
			inside = h.before[:placed:placed]
		}
		s := slot{key: int(at.start), keyEnd: int(at.start), val: int(at.start), valEnd: int(at.end)}
		var err error
		if out, err = e.planSplit(out, at, &s, inside); err != nil {
			return nil, fmt.Errorf("message %d: %w", first, err)
		}
		slots = append(slots, s)
	}
	n := len(slots)
	for _, raw := range wrapped(tail) {
		slots = append(slots, slot{added: true, raw: raw})
	}
	return emit(out, slots, n, int(list.val)+1, false), nil
}

// planSplit plans the changes to one split message; outer is the slot of the whole message.
func (e *Editor) planSplit(out []Splice, at split, outer *slot, appended [][]byte) ([]Splice, error) {
	b := e.body
	slots := make([]slot, at.count)
	left := len(appended)
	for k := range slots {
		n := int(at.first) + k
		m, s := b.elements[n], &slots[k]
		*s = slot{key: int(m.start), keyEnd: int(m.start), val: int(m.start), valEnd: int(m.end)}
		var one elementChanges
		if h := e.history[n]; h != nil {
			one = *h
		}
		if k == 0 { // messages of other roles go before the whole message
			var ahead [][]byte
			ahead, one.before = trailing(one.before)
			outer.before = join(nil, wrapped(ahead))
		}
		if k == len(slots)-1 {
			one.behind = append(slices.Clip(one.behind), appended...)
		}
		var err error
		if one.before, err = blocks(one.before); err != nil {
			return nil, err
		}
		if one.behind, err = blocks(one.behind); err != nil {
			return nil, err
		}
		if one.whole != nil {
			list, err := blocks([][]byte{one.whole})
			if err != nil || len(list) == 0 {
				return nil, fmt.Errorf("a block cannot become a message: %w", err)
			}
			one.whole, one.behind = list[0], append(list[1:], one.behind...)
		}
		if !one.removed || len(one.before)+len(one.behind) > 0 {
			left++
		}
		if one.removed && len(one.before) == 0 && len(one.behind) > 0 { // the first value behind takes its place
			one.removed, one.whole, one.behind, one.fields = false, one.behind[0], one.behind[1:], nil
		}
		out = one.appendSplices(out, s, b.raw)
	}
	if left > 0 {
		return emit(out, slots, len(slots), int(at.list)+1, false), nil
	}
	outer.deleted = true
	if outer.before != nil { // the messages before take its place
		outer.raw, outer.deleted, outer.before = outer.before[:len(outer.before)-1], false, nil
	}
	return out, nil
}

// isBlock reports whether a value is a block rather than a message.
func isBlock(raw []byte) bool {
	_, message := member(raw, "role")
	return !message
}

// userBlocks returns the blocks of a user's message, or a block itself; ok is false for a message of another role.
func userBlocks(raw []byte) (list [][]byte, ok bool) {
	if isBlock(raw) {
		return [][]byte{raw}, true
	}
	if role, _ := member(raw, "role"); roleOf(role) != RoleUser {
		return nil, false
	}
	switch content, _ := member(raw, "content"); {
	case isString(content) && len(content) > 2:
		return [][]byte{Object("type", "text", "text", content)}, true
	case isList(content):
		for block := range elementsOf(content) {
			list = append(list, clipped(block))
		}
	}
	return list, true
}

// blocks returns the blocks of user's messages.
func blocks(raws [][]byte) (list [][]byte, err error) {
	for _, raw := range raws {
		some, ok := userBlocks(raw)
		if !ok {
			return nil, fmt.Errorf("a message of another role cannot stand among results")
		}
		list = append(list, some...)
	}
	return list, nil
}

// leading splits a list behind the user's messages at its beginning; trailing splits it before
// those at its end.
func leading(raws [][]byte) (users, rest [][]byte) {
	for n, raw := range raws {
		if _, ok := userBlocks(raw); !ok {
			return raws[:n:n], raws[n:]
		}
	}
	return raws[:len(raws):len(raws)], nil
}

func trailing(raws [][]byte) (rest, users [][]byte) {
	n := len(raws)
	for n > 0 {
		if _, ok := userBlocks(raws[n-1]); !ok {
			break
		}
		n--
	}
	return raws[:n:n], raws[n:]
}

// wrapped puts single blocks into a user's message, together with a user's message that directly
// follows them, because results must come first in a message.
func wrapped(raws [][]byte) (list [][]byte) {
	var open [][]byte
	shut := func() {
		if len(open) > 0 {
			list, open = append(list, Object("role", RoleUser, "content", List(open))), nil
		}
	}
	for _, raw := range raws {
		if isBlock(raw) {
			open = append(open, raw)
			continue
		}
		if some, ok := userBlocks(raw); ok && len(open) > 0 {
			open = append(open, some...)
			continue
		}
		shut()
		list = append(list, raw)
	}
	shut()
	return list
}
