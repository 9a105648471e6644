package hostiletest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Family is one kind of input.
type Family struct {
	Name string
	Make func(n int) string // returns about n bytes
}

// filled joins head, as many pieces as fit into about n bytes, and tail.
func filled(n int, head, tail string, piece func(i int) string) string {
	var b strings.Builder
	b.Grow(n + 1024)
	b.WriteString(head)
	for i := 0; b.Len()+len(tail) < n; i++ {
		b.WriteString(piece(i))
	}
	b.WriteString(tail)
	return b.String()
}

// rows repeats a piece; %d in it is the piece's number.
func rows(head, piece, tail string) func(int) string {
	numbered := strings.Contains(piece, "%d")
	return func(n int) string {
		return filled(n, head, tail, func(i int) string {
			if numbered {
				return strings.ReplaceAll(piece, "%d", strconv.Itoa(i))
			}
			return piece
		})
	}
}

// list is rows with commas between the pieces.
func list(head, piece, tail string) func(int) string {
	return rows(head+strings.ReplaceAll(piece, "%d", "0"), ","+piece, tail)
}

// nested repeats an opening text, then as many closing texts.
func nested(open, inner, close string) func(int) string {
	return func(n int) string {
		k := max(1, n/(len(open)+len(close)))
		return strings.Repeat(open, k) + inner + strings.Repeat(close, k)
	}
}

// Texts returns texts of a tool or a model.
func Texts() []Family {
	return []Family{
		{"one letter", rows("", "a", "")},
		{"one line of words", rows("", "word ", "")},
		{"newlines", rows("", "\n", "")},
		{"returns", rows("", "\r", "")},
		{"returns and newlines", rows("", "\r\n", "")},
		{"blanks", rows("", " ", "")},
		{"blanks before a word", rows("", " ", "x")},
		{"blank lines", rows("", " \t\n", "")},
		{"short lines", rows("", "x\n", "")},
		{"numbered lines", rows("", "%d: value of line %d\n", "")},
		{"progress bars", rows("", "\r[=====>    ] %d %", "\n")},
		{"quotes", rows("", `"`, "")},
		{"backslashes", rows("", `\`, "")},
		{"escaped quotes", rows(`"`, `\"`, `"`)},
		{"escapes of Unicode", rows(`"`, `\u00e9`, `"`)},
		{"half surrogates", rows(`"`, `\ud800`, `"`)},
		{"no UTF-8", rows("", "\xff\xfe", "")},
		{"wide characters", rows("", "漢字", "")},
		{"combining marks", rows("a", "\u0301", "")},
		{"zero bytes", rows("", "\x00", "")},
		{"terminal escapes", rows("", "\x1b[31mx\x1b[0m", "")},
		{"unended terminal escapes", rows("", "\x1b[", "")},
		{"unended terminal titles", rows("", "\x1b]0;", "")},
		{"boxes", rows("", "│ ", "")},
		{"opened lists", rows("", "[", "")},
		{"opened objects", rows("", `{"a":`, "")},
		{"nested lists", nested("[", "1", "]")},
		{"nested objects", nested(`{"a":`, "1", "}")},
		{"nested results", nested(`{"result":`, `"x"`, "}")},
		{"list of ones", list("[", "1", "]")},
		{"list of empty objects", list("[", "{}", "]")},
		{"list of strings", list("[", `"x"`, "]")},
		{"object of many fields", list("{", `"k%d":1`, "}")},
		{"object of one field again and again", list("{", `"output":"x"`, "}")},
		{"errors again and again", list("{", `"errors":[{"message":"x"}]`, "}")},
		{"messages again and again", list("{", `"message":"it failed"`, "}")},
		{"text parts", list("[", `{"type":"text","text":"x"}`, "]")},
		{"calls in a list", list("[", `{"name":"f","arguments":{}}`, "]")},
		{"JSON by lines", rows("", `{"error":"x","n":%d}`+"\n", "")},
		{"long number", rows("", "9", "")},
		{"fraction", rows("0.", "0", "1")},
		{"paths", rows("", "/usr/lib/a%d/b.py ", "")},
		{"one path", rows("", "/a", "")},
		{"dots", rows("", ".", "")},
		{"words with dashes", rows("", "a-", "")},
		{"colons", rows("", "a:", "")},
		{"errors", rows("", "Error: no such file or directory: /tmp/f%d\n", "")},
		{"errors in one line", rows("", "error: ", "")},
		{"tracebacks", rows("", "Traceback (most recent call last):\n  File \"/a.py\", line %d, in f\nValueError: x\n", "")},
		{"frames", rows("Traceback (most recent call last):\n", "  File \"/a.py\", line %d, in f\n    g()\n", "ValueError: x\n")},
		{"stack", rows("Exception in thread \"main\" E: x\n", "\tat a.b.C.d(E.java:%d)\n", "")},
		{"exit codes", rows("", "exit code: 1\n", "")},
		{"compilers", rows("", "a.c:%d:1: error: expected ';'\n", "")},
		{"tests", rows("", "--- FAIL: TestA%d (0.00s)\n", "FAIL\n")},
		{"logs", rows("", "2025-01-01T00:00:00Z ERROR a%d failed\n", "")},
		{"tags", rows("", "<a>", "")},
		{"closed tags", rows("", "<a></a>", "")},
		{"tags of calls", rows("", "<tool_call>", "")},
		{"calls between tags", rows("", "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n", "")},
		{"function tags", rows("", "<function=f>", "")},
		{"parameter tags", rows("<function=f>", "<parameter=a>", "")},
		{"special tokens", rows("", "<|tool_calls_section_begin|>", "")},
		{"bars", rows("", "<|", "")},
		{"fences", rows("", "```\n", "")},
		{"fenced blocks", rows("", "```sh\nls\n```\n", "")},
		{"opened fences of JSON", rows("", "```json\n{", "")},
		{"actions", rows("", "Action: f\nAction Input: {}\n", "")},
		{"thoughts", rows("", "<think>", "")},
		{"data URLs", rows("data:image/png;base64,", "iVBORw0KGgo=", "")},
		{"dates", rows("", "2025-01-01 ", "")},
		{"hashes", rows("", "0123456789abcdef", "")},
		{"limits", rows("", "maximum context length is %d tokens ", "")},
		{"retry hints", rows("", "try again in %ds ", "")},
		{"HTML", rows("<html>", "<div><p>x</p></div>", "</html>")},
		{"events", rows("", "data: {}\n\n", "")},
		{"commas", rows("", ",", "")},
		{"parentheses", rows("", "(", "")},
		{"dollars", rows("", "$(", "")},
		{"pipes", rows("", "a | ", "b")},
		{"semicolons", rows("", "a; ", "b")},
		{"quoted words", rows("", "'a' ", "")},
		{"single quotes", rows("", "'", "")},
		{"here documents", rows("", "cat <<E\n", "")},
		{"diff", rows("--- a/f\n+++ b/f\n", "@@ -%d,1 +%d,1 @@\n-a\n+b\n", "")},
	}
}

// quote encodes a JSON string.
func quote(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/8 + 2)
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

const (
	begin = `{"model":"m","tools":[{"type":"function","function":{"name":"bash","description":"Run a command.","parameters":{"type":"object",` +
		`"properties":{"command":{"type":"string"}},"required":["command"]}}}],"messages":[`
	task = `{"role":"user","content":"Mend the build."}`
	call = `,{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"bash","arguments":"{\"command\":\"make\"}"}}]}`
	end  = `]}`
)

// Result returns a request whose last message is a tool result with the text.
func Result(text string) string {
	return begin + task + call + `,{"role":"tool","tool_call_id":"c","content":` + quote(text) + `}` + end
}

// Arguments returns a request with an answered call with these arguments.
func Arguments(text string) string {
	return begin + task + `,{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"bash","arguments":` +
		quote(text) + `}}]},{"role":"tool","tool_call_id":"c","content":"make: *** [all] Error 2"}` + end
}

// Said returns a request of a text protocol with the text as the assistant's message.
func Said(text string) string {
	return `{"model":"m","messages":[{"role":"system","content":"Give one command in a code block."},` + task +
		`,{"role":"assistant","content":` + quote(text) + `},{"role":"user","content":"Observation: bash: x: command not found"}` + end
}

// Typed returns a request with the text as the user's message.
func Typed(text string) string {
	return begin + `{"role":"user","content":` + quote(text) + `}` + end
}

// Bodies returns requests with many of one element.
func Bodies() []Family {
	turn := call + `,{"role":"tool","tool_call_id":"c","content":"make: *** [all] Error 2"}`
	return []Family{
		{"fields", list(`{"model":"m","messages":[`+task+`],`, `"f%d":1`, `}`)},
		{"messages of ones", list(`{"model":"m","messages":[`, `1`, end)},
		{"messages of empty objects", list(`{"model":"m","messages":[`, `{}`, end)},
		{"messages of lists", list(`{"model":"m","messages":[`, `[]`, end)},
		{"messages of users", list(`{"model":"m","messages":[`, `{"role":"user","content":""}`, end)},
		{"messages of tools", rows(begin+task+call, `,{"role":"tool","content":""}`, end)},
		{"assistants", list(begin+task+`,`, `{"role":"assistant"}`, end)},
		{"calls of ones", list(begin+task+`,{"role":"assistant","tool_calls":[`, `1`, `]},{"role":"tool","content":"x"}`+end)},
		{"calls of empty objects", list(begin+task+`,{"role":"assistant","tool_calls":[`, `{}`, `]},{"role":"tool","content":"x"}`+end)},
		{"calls without a name", list(begin+task+`,{"role":"assistant","tool_calls":[`, `{"function":{}}`, `]},{"role":"tool","content":"x"}`+end)},
		{"tools of ones", list(`{"model":"m","tools":[`, `1`, `],"messages":[`+task+end)},
		{"tools of empty objects", list(`{"model":"m","tools":[`, `{}`, `],"messages":[`+task+end)},
		{"tools", list(`{"model":"m","tools":[`, `{"type":"function","function":{"name":"f%d"}}`, `],"messages":[`+task+end)},
		{"allowed tools", list(`{"model":"m","tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[`, `{"name":"f"}`, `]}},"messages":[`+task+end)},
		{"parts of ones", list(begin+`{"role":"user","content":[`, `1`, `]}`+end)},
		{"parts of empty objects", list(begin+`{"role":"user","content":[`, `{}`, `]}`+end)},
		{"parts", list(begin+`{"role":"user","content":[`, `{"type":"text","text":"x"}`, `]}`+end)},
		{"images", list(begin+`{"role":"user","content":[`, `{"type":"image_url","image_url":{"url":"data:,"}}`, `]}`+end)},
		{"fields of a message", list(begin+`{"role":"user","content":"x",`, `"f%d":1`, `}`+end)},
		{"roles of a message", list(begin+`{`, `"role":"user"`, `}`+end)},
		{"roles", list(begin, `{"role":"r%d"}`, end)},
		{"turns", rows(begin+task, turn, end)},
		{"turns of users", rows(begin+task, turn+`,{"role":"user","content":"Go on."}`, end)},
		{"turns of talk", rows(begin+task, `,{"role":"assistant","content":"I go on."},{"role":"user","content":"Go on."}`, end)},
		{"turns of a text protocol", rows(`{"model":"m","messages":[{"role":"system","content":"Give one command in a code block."},`+task,
			`,{"role":"assistant","content":"`+"```"+`\nls %d\n`+"```"+`"},{"role":"user","content":"Observation: bash: x: command not found"}`, end)},
		{"unanswered calls", rows(begin+task, call, end)},
		{"answers to one call", rows(begin+task+call, `,{"role":"tool","tool_call_id":"c","content":"Error: no"}`, end)},
		{"answers to no call", rows(begin+task+call, `,{"role":"tool","tool_call_id":"n%d","content":"Error: no"}`, end)},
		{"answers to many calls", answered(func(i, _ int) int { return i }, `"id":"c%d",`, `"tool_call_id":"c%d",`)},
		{"answers in reverse", answered(func(i, k int) int { return k - 1 - i }, `"id":"c%d",`, `"tool_call_id":"c%d",`)},
		{"answers without an id", answered(func(i, _ int) int { return i }, ``, ``)},
		{"calls of one id", answered(func(i, _ int) int { return i }, `"id":"c",`, `"tool_call_id":"c",`)},
		{"large answers to many calls", largeAnswers},
		{"reasoning", rows(begin+task+`,{"role":"assistant","reasoning_content":"`, `Hm. `, `"}`+end)},
		{"schema", rows(`{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":`, `{"properties":{"a":`, ``)},
		{"cache marks", list(begin+`{"role":"user","content":[`, `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`, `]}`+end)},
	}
}

// answered makes a turn of many calls, with their answers in the given order; %d in the ids is a number.
func answered(order func(i, k int) int, callID, answerID string) func(int) string {
	return func(n int) string {
		k := max(1, n/160)
		numbered := func(s string, i int) string { return strings.ReplaceAll(s, "%d", strconv.Itoa(i)) }
		calls, answers := make([]string, k), make([]string, k)
		for i := range k {
			calls[i] = `{` + numbered(callID, i) + `"function":{"name":"bash","arguments":"{\"command\":\"make\"}"}}`
			answers[i] = `{"role":"tool",` + numbered(answerID, order(i, k)) + `"content":"make: *** Error ` + strconv.Itoa(i) + `"}`
		}
		return begin + task + `,{"role":"assistant","tool_calls":[` + strings.Join(calls, ",") + `]},` + strings.Join(answers, ",") + end
	}
}

// largeAnswers makes a turn of a hundred calls with large answers.
func largeAnswers(n int) string {
	const k = 100
	calls, answers := make([]string, k), make([]string, k)
	for i := range k {
		calls[i] = `{"id":"c` + strconv.Itoa(i) + `","function":{"name":"bash","arguments":"{\"command\":\"make\"}"}}`
		answers[i] = `{"role":"tool","tool_call_id":"c` + strconv.Itoa(i) + `","content":` + quote(filled(n/k, "", "", func(j int) string {
			return "line " + strconv.Itoa(j) + " of " + strconv.Itoa(i) + ": error: it failed\n"
		})) + `}`
	}
	return begin + task + `,{"role":"assistant","tool_calls":[` + strings.Join(calls, ",") + `]},` + strings.Join(answers, ",") + end
}

// Requests returns Bodies, and requests with each of Texts in each position.
func Requests() []Family {
	out := slices.Clone(Bodies())
	for _, place := range []struct {
		name string
		in   func(string) string
	}{{"result", Result}, {"arguments", Arguments}, {"said", Said}, {"typed", Typed}} {
		for _, f := range Texts() {
			out = append(out, Family{place.name + ": " + f.Name, func(n int) string { return place.in(f.Make(n)) }})
		}
	}
	return out
}

// Answers returns an upstream's responses: each of Texts as it is, and as an error message.
func Answers() []Family {
	out := slices.Clone(Texts())
	for _, f := range Texts() {
		out = append(out, Family{"error: " + f.Name, func(n int) string {
			return `{"error":{"message":` + quote(f.Make(n)) + `,"type":"invalid_request_error","code":null}}`
		}})
	}
	return out
}

// Histories returns requests of the Responses API with many of one element.
func Histories() []Family {
	const open = `{"model":"m","input":[{"role":"user","content":"Mend the build."},{"type":"function_call","call_id":"c","name":"bash","arguments":"{}"}`
	return []Family{
		{"results", rows(open, `,{"type":"function_call_output","call_id":"c%d","output":""}`, `]}`)},
		{"calls", rows(open, `,{"type":"function_call","call_id":"c%d","name":"bash","arguments":"{}"}`, `]}`)},
		{"calls and results", rows(open, `,{"type":"function_call","call_id":"c%d","name":"bash","arguments":"{}"},{"type":"function_call_output",`+
			`"call_id":"c%d","output":""}`, `]}`)},
		{"reasoning", rows(open, `,{"type":"reasoning","id":"r%d","summary":[]}`, `]}`)},
	}
}

// Judged returns growing tool schemas, each with growing arguments that nearly match it; a zero byte separates
// the two.
func Judged() (families []Family) {
	add := func(name, schema, piece, item string) {
		head, tail, _ := strings.Cut(schema, "…")
		grown := list(`{"type":"object","properties":{"list":{"type":"array","items":`+head, piece, tail+`}}}`)
		args := list(`{"list":[`, item, `],}`)
		families = append(families, Family{name, func(n int) string { return grown(n/2) + "\x00" + args(n/2) }})
	}
	add("values of an enumeration", `{"enum":[…]}`, `%d`, `"1"`)
	add("types", `{"type":[…]}`, `"integer"`, `"1"`)
	add("properties in another spelling", `{"type":"object","required":["p0"],"properties":{…}}`, `"p%d":{}`, `{"P1":1}`)
	add("constants of alternatives", `{"anyOf":[{"required":["q"]},{"required":["p0"],"properties":{…}}]}`, `"p%d":{"const":1}`, `{"P1":1}`)
	add("required", `{"type":"object","required":[…]}`, `"p%d"`, `{"P1":1}`)
	add("alternatives", `{"anyOf":[…]}`, `{"type":"object","required":["p%d"]}`, `{"P1":1}`)
	add("all of", `{"allOf":[…]}`, `{"properties":{"p%d":{"type":"integer"}}}`, `{"p1":"1"}`)
	return families
}

// Items returns what may be in a stream of the Responses API between its first and last event.
func Items() []Family {
	event := func(kind, rest string) string { return `data: {"type":"response.` + kind + `",` + rest + "}\n\n" }
	item := func(kind, rest string) string {
		return event("output_item.added", `"output_index":%d,"item":{"id":"i%d","type":"`+kind+`"`+rest+`}`)
	}
	const args = `,"call_id":"c%d","name":"bash","arguments":""`
	thought := event("output_item.added", `"output_index":0,"item":{"id":"r","type":"reasoning","summary":[]}`)
	return []Family{
		{"messages", rows("", item("message", `,"role":"assistant","content":[]`), "")},
		{"reasoning", rows("", item("reasoning", `,"summary":[]`), "")},
		{"calls", rows("", item("function_call", args), "")},
		{"calls with arguments", rows("", item("function_call", args)+event("function_call_arguments.delta", `"output_index":%d,"delta":"{}"`), "")},
		{"odd items", rows("", item("x", ""), "")},
		{"pieces of reasoning", rows(thought, event("reasoning_summary_text.delta", `"output_index":0,"summary_index":0,"delta":"x"`), "")},
		{"parts of reasoning", rows(thought, event("reasoning_summary_text.delta", `"output_index":0,"summary_index":%d,"delta":"x"`), "")},
		{"pieces of far items", rows("", event("output_text.delta", `"output_index":%d0000,"content_index":0,"delta":"x"`), "")},
	}
}
