package conform

import (
	"crypto/sha256"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// noResult answers a call whose result is not in the history.
const noResult = "[no result: the call was interrupted before it answered]"

// emptyResult stands for a tool that said nothing.
const emptyResult = "[no output]"

// pair gives every call of an assistant's message exactly one result, right
// behind that message. Results that are elsewhere move there, missing ones are
// stubbed, several of one call become one, and results without a call go.
func pair(b *transcript.Body, e *transcript.Edit) bool {
	if b.PairsAnywhere() {
		return pairAnywhere(b, e)
	}
	list := b.Messages()
	changed := false
	claimed := make([]bool, len(list))
	for i, m := range list {
		if m.Role != transcript.RoleAssistant {
			continue
		}
		if calls := m.ToolCalls(); len(calls) > 0 {
			changed = answer(b, e, i, calls, claimed) || changed
		}
	}
	for i, m := range list {
		if m.Role == transcript.RoleTool && !claimed[i] {
			e.RemoveMessage(i)
			changed = true
		}
	}
	return changed
}

// pairAnywhere gives every call one result, where results may stand anywhere behind
// their calls: missing ones are stubbed, all but the first of a call go, and so do those
// without a call, unless that may be in what the server remembers.
func pairAnywhere(b *transcript.Body, e *transcript.Edit) bool {
	list, whole := b.Messages(), b.State().MayEdit()
	changed := false
	results := make(map[string]int, len(list)) // 1 for a call without, 2 with
	for i, m := range list {
		for _, c := range m.ToolCalls() {
			results[c.ID] = max(results[c.ID], 1)
		}
		if m.Role != transcript.RoleTool {
			continue
		}
		switch id := m.ToolCallID(); results[id] {
		case 1:
			results[id] = 2
		case 2:
			e.RemoveMessage(i)
			changed = true
		default:
			if whole {
				e.RemoveMessage(i)
				changed = true
			}
		}
	}
	for i, m := range list {
		if m.Role == transcript.RoleTool {
			continue
		}
		behind := i + 1
		for behind < len(list) && list[behind].Role == transcript.RoleTool {
			behind++
		}
		for _, c := range m.ToolCalls() {
			if results[c.ID] != 1 {
				continue
			}
			if raw := b.ResultMessage(c, noResult); raw != nil {
				results[c.ID] = 2
				insert(e, behind, len(list), raw)
				changed = true
			}
		}
	}
	return changed
}

// answer mends the results of the calls of message i.
func answer(b *transcript.Body, e *transcript.Edit, i int, calls []transcript.ToolCall, claimed []bool) (changed bool) {
	list := b.Messages()
	ids := unique(i, calls)
	for k, c := range calls {
		if ids[k] != c.ID {
			if c.IDSpan.End == c.IDSpan.Start {
				return changed // a call without any id, as the oldest format has it: paired by its place
			}
			e.Replace(c.IDSpan, transcript.String(ids[k]))
			changed = true
		}
	}
	behind := i + 1 // the first message behind the results that are in place
	for behind < len(list) && list[behind].Role == transcript.RoleTool {
		behind++
	}
	found := results(list, i, calls, claimed)
	for k, c := range calls {
		c.ID = ids[k]
		mine := found[k]
		if len(mine) == 0 {
			if raw := b.ResultMessage(c, noResult); raw != nil {
				insert(e, behind, len(list), raw)
				changed = true
			}
			continue
		}
		first := mine[0]
		said := []string{list[first].Text()}
		for _, j := range mine[1:] {
			if more := list[j].Text(); more != "" && more != said[len(said)-1] {
				said = append(said, more)
			}
			e.RemoveMessage(j)
			changed = true
		}
		text := strings.TrimPrefix(strings.Join(said, "\n"), "\n") // the first may have said nothing
		switch {
		case first >= behind: // it stands behind something else
			e.RemoveMessage(first)
			insert(e, behind, len(list), b.ResultMessage(c, or(text, emptyResult)))
			changed = true
		case len(mine) > 1:
			e.ReplaceMessage(first, b.ResultMessage(c, or(text, emptyResult)))
		case list[first].ToolCallID() != ids[k]:
			e.SetResultID(first, ids[k])
			changed = true
		}
	}
	return changed
}

// results finds, for each call of message i, the messages that answer it: up
// to the next message of the model that calls tools. Where ids do not tell
// (none, or the same one twice), the order does.
func results(list []transcript.Message, i int, calls []transcript.ToolCall, claimed []bool) [][]int {
	found := make([][]int, len(calls))
	byID := make(map[string][]int, len(calls))
	for n, c := range calls {
		byID[c.ID] = append(byID[c.ID], n)
	}
	open := 0                                  // no call before it waits for a result
	waiting := make(map[string]int, len(byID)) // the same for the calls of an id
	for j := i + 1; j < len(list); j++ {
		m := list[j]
		if m.Role == transcript.RoleAssistant && len(m.ToolCalls()) > 0 {
			break
		}
		if m.Role != transcript.RoleTool || claimed[j] {
			continue
		}
		id, k := m.ToolCallID(), -1
		if mine := byID[id]; len(mine) > 0 {
			n := waiting[id]
			for n < len(mine) && len(found[mine[n]]) > 0 {
				n++
			}
			if waiting[id] = n; n == len(mine) {
				n = 0 // one more of the first call
			}
			k = mine[n]
		} else if id == "" {
			for open < len(calls) && len(found[open]) > 0 {
				open++
			}
			if open < len(calls) {
				k = open
			}
		}
		if k >= 0 {
			found[k] = append(found[k], j)
			claimed[j] = true
		}
	}
	return found
}

// unique are the ids of a message's calls, each different and none empty.
func unique(i int, calls []transcript.ToolCall) []string {
	ids := make([]string, len(calls))
	seen := make(map[string]bool, len(calls))
	n := 0
	for k, c := range calls {
		id := c.ID
		for n = max(n, k); id == "" || seen[id]; n++ {
			id = "call_" + strconv.Itoa(i) + "_" + strconv.Itoa(n)
		}
		seen[id] = true
		ids[k] = id
	}
	return ids
}

// insert puts a message before message i, or at the end.
func insert(e *transcript.Edit, i, n int, raw []byte) {
	if i < n {
		e.InsertMessage(i, raw)
		return
	}
	e.AppendMessage(raw)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// shortIDs gives every call and result an id of nine letters and digits: what
// Mistral's servers demand, and every other takes.
func shortIDs(b *transcript.Body, e *transcript.Edit) bool {
	changed := false
	for _, m := range b.Messages() {
		for _, c := range m.ToolCalls() {
			if id := short(c.ID); id != c.ID && c.IDSpan.End > c.IDSpan.Start {
				e.Replace(c.IDSpan, transcript.String(id))
				changed = true
			}
		}
		if m.Role == transcript.RoleTool {
			if id := short(m.ToolCallID()); id != m.ToolCallID() {
				e.SetResultID(m.Index, id)
				changed = true
			}
		}
	}
	return changed
}

// short is an id of nine letters and digits for another one; equal for equal ids.
func short(id string) string {
	const digits = "abcdefghijklmnopqrstuvwxyz0123456789"
	if id == "" {
		return id
	}
	if len(id) == 9 {
		plain := true
		for _, c := range []byte(id) {
			plain = plain && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
		}
		if plain {
			return id
		}
	}
	sum := sha256.Sum256([]byte(id))
	var out [9]byte
	for i := range out {
		out[i] = digits[int(sum[i])%len(digits)]
	}
	return string(out[:])
}
