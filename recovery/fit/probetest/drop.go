package probetest

import (
	"bytes"
	"encoding/json"
)

// DropOldest is a simple compression to compare with. It removes the oldest messages, calls
// together with their results, until the body has at most budget bytes. System and developer
// messages, the last step and all other fields stay, even if they exceed the budget. A body
// that is small enough, or that cannot be parsed, is returned unchanged.
func DropOldest(session []byte, budget int) []byte {
	var body map[string]json.RawMessage
	var list []json.RawMessage
	if len(session) <= budget || json.Unmarshal(session, &body) != nil || json.Unmarshal(body["messages"], &list) != nil {
		return session
	}
	var kept, group [][]byte // group: a message and the results that belong to it
	var groups [][][]byte
	for _, raw := range list {
		var m message
		if json.Unmarshal(raw, &m) != nil {
			return session
		}
		switch {
		case m.Role == "system" || m.Role == "developer":
			kept = append(kept, raw)
			continue
		case m.Role != "tool" && group != nil:
			groups, group = append(groups, group), nil
		}
		group = append(group, raw)
	}
	if group != nil {
		groups = append(groups, group)
	}
	size := len(session)
	for len(groups) > 1 && size > budget {
		for _, raw := range groups[0] {
			size -= len(raw) + 1
		}
		groups = groups[1:]
	}
	for _, g := range groups {
		kept = append(kept, g...)
	}
	body["messages"] = append(append([]byte("["), bytes.Join(kept, []byte(","))...), ']')
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(body) != nil {
		return session
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
