package upstreamtest

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// Converted returns a chat completion request as the /v1/responses request of a
// stateless client. Each assistant message becomes a response that the ledger records
// as made for account, with encrypted reasoning. name is part of the ids, to keep
// those of several sessions apart.
func (l *Ledger) Converted(account, name, chat string) []byte {
	var items []string
	text := func(content gjson.Result) string {
		if !content.IsArray() {
			return content.String()
		}
		var parts []string
		content.ForEach(func(_, p gjson.Result) bool {
			parts = append(parts, p.Get("text").String())
			return true
		})
		return strings.Join(parts, "\n")
	}
	message := func(role, text string) {
		items = append(items, `{"type":"message","role":"`+role+`","content":[{"type":"input_text","text":`+quoted(text)+`}]}`)
	}
	n := 0
	gjson.Get(chat, "messages").ForEach(func(_, m gjson.Result) bool {
		switch role := m.Get("role").Str; role {
		case "assistant":
			id := name + "_" + strconv.Itoa(n)
			n++
			r := &Response{ID: "resp_" + id, Items: []Item{{Kind: Reasoning, ID: "rs_" + id, Sealed: Seal(account, "rs_"+id)}}}
			calls := m.Get("tool_calls").Array()
			if said := text(m.Get("content")); said != "" || len(calls) == 0 {
				r.Items = append(r.Items, Item{Kind: Message, ID: "msg_" + id, Text: []string{said}})
			}
			for i, c := range calls {
				r.Items = append(r.Items, Item{Kind: FunctionCall, ID: "fc_" + id + "_" + strconv.Itoa(i), CallID: c.Get("id").Str,
					Name: c.Get("function.name").Str, Text: []string{c.Get("function.arguments").String()}})
			}
			l.Keep(account, `{"store":false}`, r)
			gjson.GetBytes(r.Whole(), "output").ForEach(func(_, it gjson.Result) bool {
				items = append(items, it.Raw)
				return true
			})
		case "tool":
			items = append(items, `{"type":"function_call_output","call_id":"`+m.Get("tool_call_id").Str+`","output":`+
				quoted(text(m.Get("content")))+`}`)
		default:
			message(role, text(m.Get("content")))
		}
		return true
	})
	var tools []string
	gjson.Get(chat, "tools").ForEach(func(_, t gjson.Result) bool {
		if f := t.Get("function"); f.IsObject() {
			tools = append(tools, `{"type":"function",`+strings.TrimPrefix(strings.TrimSpace(f.Raw), "{"))
		}
		return true
	})
	return []byte(`{"model":` + quoted(gjson.Get(chat, "model").String()) + `,` +
		`"stream":` + strconv.FormatBool(gjson.Get(chat, "stream").Bool()) +
		`,"store":false,"include":["reasoning.encrypted_content"],"tools":[` + strings.Join(tools, ",") + `],"input":[` + strings.Join(items, ",") + `]}`)
}
