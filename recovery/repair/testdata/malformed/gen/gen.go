//go:build ignore

// Command gen damages valid calls in the ways that models and servers do, and
// puts the results behind the collected cases in ../cases.jsonl. Lines of an
// earlier run (ids that begin with "gen-") are replaced; all others keep their
// bytes. The same seed gives the same lines.
//
//	go run gen.go [-seed N] [-cases ../cases.jsonl]
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strings"
)

// member is one parameter of a call; order matters for the text, not for the meaning.
type member struct {
	key string
	val any // string, int, bool, []string, []member
}

type call struct {
	set, tool string
	args      []member
}

// style is a way to spell an object that is not JSON, or not quite.
type style struct {
	quote    [2]string // around strings; empty is the plain double quote
	python   bool      // True, False
	bare     bool      // keys without quotes
	trailing bool      // a comma before a closing bracket
	comment  bool      // a comment behind the first member
	noComma  bool      // the comma behind the first member is missing, a newline stands there
	raw      bool      // control characters as they are
	spaces   bool      // much white space
	escapes  bool      // every letter outside of ASCII, and the slash, as an escape
}

// line is a case as it is written.
type line struct {
	ID      string          `json:"id"`
	Form    string          `json:"form"`
	Toolset string          `json:"toolset"`
	Finish  string          `json:"finish_reason"`
	Content *string         `json:"content"`
	Call    *wire           `json:"call,omitempty"`
	Expect  string          `json:"expect"`
	Name    string          `json:"name,omitempty"`
	Args    json.RawMessage `json:"arguments,omitempty"`
	Why     string          `json:"why"`
	Source  string          `json:"source"`
}

type wire struct {
	Name      string `json:"name"`
	Arguments any    `json:"arguments"`
}

var (
	paths  = []string{"go.mod", "cmd/main.go", "docs/naïve notes.md", "src/it's.ts", "a/b/c.yaml", "internal/日本.txt"}
	words  = []string{"rate limit", "what's new", "Łódź weather", "retry after 429", "TODO(nina): fix", "a – b", "x == y && z"}
	cities = []string{"Oslo", "São Paulo", "Saint-Denis", "Köln", "Xi'an", "北京"}
)

func pick[T any](r *rand.Rand, v []T) T { return v[r.IntN(len(v))] }

// reader makes a valid call of a tool that only reads. It has at least two
// members; the last one is always a string.
func reader(r *rand.Rand) call {
	switch r.IntN(5) {
	case 0:
		return call{"reading", "read_file", []member{{"offset", r.IntN(900)}, {"limit", 1 + r.IntN(500)}, {"path", pick(r, paths)}}}
	case 1:
		return call{"reading", "search_code", []member{{"case_sensitive", r.IntN(2) == 0}, {"include", []string{"*.go", "*.md"}}, {"pattern", pick(r, words)}}}
	case 2:
		return call{"travel", "get_weather", []member{{"days", 1 + r.IntN(14)}, {"city", pick(r, cities)}}}
	case 3:
		return call{"web", "web_search", []member{{"num_results", 1 + r.IntN(50)}, {"recency", pick(r, []string{"day", "week", "month"})}, {"query", pick(r, words)}}}
	}
	return call{"tracker", "list_issues", []member{{"limit", 1 + r.IntN(100)}, {"labels", []string{"bug", pick(r, words)}},
		{"filter", []member{{"field", "author"}, {"value", pick(r, cities)}}}, {"state", pick(r, []string{"open", "closed", "all"})}}}
}

// writer makes a valid call of a tool that runs commands or writes.
func writer(r *rand.Rand) call {
	switch r.IntN(3) {
	case 0:
		return call{"coding", "bash", []member{{"timeout", 1 + r.IntN(600)}, {"command", "ls -la " + pick(r, []string{"docs", "cmd", "."})}}}
	case 1:
		return call{"coding", "write_file", []member{{"file_path", pick(r, paths)}, {"content", "line one\n\tline \"two\"\n" + pick(r, words)}}}
	}
	return call{"data", "run_sql", []member{{"params", []string{"a"}}, {"query", "select '" + pick(r, []string{"x", "y"}) + "' from t"}}}
}

func (s style) str(v string) string {
	b, _ := marshal(v)
	body := string(b[1 : len(b)-1])
	if s.raw {
		body = strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(body)
	}
	if s.escapes {
		body = ascii(strings.ReplaceAll(body, "/", `\/`))
	}
	switch s.quote[0] {
	case "":
		return `"` + body + `"`
	case "'":
		body = strings.NewReplacer(`\"`, `"`, `'`, `\'`).Replace(body)
	}
	return s.quote[0] + body + s.quote[1]
}

// ascii escapes all that is not ASCII.
func ascii(v string) string {
	var b strings.Builder
	for _, c := range v {
		switch {
		case c < 0x80:
			b.WriteRune(c)
		case c > 0xffff:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

func (s style) value(v any) string {
	switch v := v.(type) {
	case string:
		return s.str(v)
	case bool:
		t := fmt.Sprint(v)
		if s.python {
			t = strings.ToUpper(t[:1]) + t[1:]
		}
		return t
	case []string:
		var p []string
		for _, e := range v {
			p = append(p, s.str(e))
		}
		return "[" + strings.Join(p, ", ") + s.tail() + "]"
	case []member:
		inner := s
		inner.comment, inner.noComma = false, false
		return inner.object(v)
	}
	return fmt.Sprint(v)
}

func (s style) tail() string {
	if s.trailing {
		return ","
	}
	return ""
}

func (s style) object(m []member) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, e := range m {
		key := e.key
		if !s.bare {
			key = s.str(key)
		}
		colon := ": "
		if s.spaces {
			b.WriteString("\r\n\t ")
			colon = "  :\n"
		}
		b.WriteString(key + colon + s.value(e.val))
		last := i == len(m)-1
		switch {
		case last:
			b.WriteString(s.tail())
		case i == 0 && s.noComma:
			b.WriteString("\n")
		case i == 0 && s.comment:
			b.WriteString(", // as asked\n")
		default:
			b.WriteString(", ")
		}
	}
	b.WriteByte('}')
	return b.String()
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

func quoted(s string) string { b, _ := marshal(s); return string(b) }

// damage makes a line out of a valid call.
type damage struct {
	form   string
	n      int
	writes bool // of a tool that runs commands or writes
	expect string
	why    string
	do     func(r *rand.Rand, c call) (name, args, finish string, content *string)
}

func inArgs(f func(r *rand.Rand, c call) string) func(*rand.Rand, call) (string, string, string, *string) {
	return func(r *rand.Rand, c call) (string, string, string, *string) {
		return c.tool, f(r, c), "tool_calls", nil
	}
}

func spelled(s style) func(*rand.Rand, call) (string, string, string, *string) {
	return inArgs(func(_ *rand.Rand, c call) string { return s.object(c.args) })
}

func asText(f func(c call) string) func(*rand.Rand, call) (string, string, string, *string) {
	return func(_ *rand.Rand, c call) (string, string, string, *string) {
		t := f(c)
		return "", "", "stop", &t
	}
}

func renamed(f func(r *rand.Rand, name string) string) func(*rand.Rand, call) (string, string, string, *string) {
	return func(r *rand.Rand, c call) (string, string, string, *string) {
		return f(r, c.tool), style{}.object(c.args), "tool_calls", nil
	}
}

// oneEdit changes a letter in the second half of a name; no other tool is as near.
func oneEdit(r *rand.Rand, n string) string {
	i := len(n)/2 + r.IntN(len(n)-len(n)/2-1)
	switch r.IntN(3) {
	case 0:
		return n[:i] + n[i+1:]
	case 1:
		return n[:i] + "x" + n[i:]
	}
	return n[:i] + "q" + n[i+1:]
}

func xml(open, inner, end string) func(*rand.Rand, call) (string, string, string, *string) {
	return asText(func(c call) string {
		var b strings.Builder
		fmt.Fprintf(&b, open, c.tool)
		for _, m := range c.args {
			v := style{}.value(m.val)
			if s, ok := m.val.(string); ok {
				v = s
			}
			fmt.Fprintf(&b, inner, m.key, v)
		}
		return b.String() + end
	})
}

func damages() []damage {
	ob := func(c call) string { return style{}.object(c.args) }
	cut := func(fin string) func(*rand.Rand, call) (string, string, string, *string) {
		return func(r *rand.Rand, c call) (string, string, string, *string) {
			t := ob(c)
			return c.tool, strings.ToValidUTF8(t[:len(t)-2-r.IntN(3)], ""), fin, nil // the last value is a string
		}
	}
	single, smart := style{quote: [2]string{"'", "'"}, python: true}, style{quote: [2]string{"“", "”"}}
	return []damage{
		{"trailing-comma", 3, false, "mend", "commas before closing brackets", spelled(style{trailing: true})},
		{"single-quotes", 4, false, "mend", "printed as Python does", spelled(single)},
		{"unquoted-key", 3, false, "mend", "keys without quotes", spelled(style{bare: true})},
		{"comment", 2, false, "mend", "a comment behind the first member", spelled(style{comment: true})},
		{"missing-comma", 2, false, "mend", "a newline instead of the first comma", spelled(style{noComma: true})},
		{"smart-quotes", 2, false, "mend", "typographic quotes as delimiters", spelled(smart)},
		{"fence", 2, false, "mend", "a fence", inArgs(func(_ *rand.Rand, c call) string { return "```json\n" + ob(c) + "\n```" })},
		{"fence", 2, true, "mend", "a fence is lossless", inArgs(func(_ *rand.Rand, c call) string { return "```\n" + ob(c) + "\n```\n" })},
		{"combined", 2, false, "mend", "a fence and a comma", inArgs(func(_ *rand.Rand, c call) string { return "```json\n" + style{trailing: true}.object(c.args) + "\n```" })},
		{"combined", 2, false, "mend", "single quotes, keys without quotes, an end token", inArgs(func(_ *rand.Rand, c call) string {
			return style{quote: single.quote, bare: true}.object(c.args) + "<|im_end|>"
		})},
		{"double-encoded", 3, false, "mend", "encoded once more", inArgs(func(_ *rand.Rand, c call) string { return quoted(ob(c)) })},
		{"double-encoded", 3, true, "mend", "encoded twice more, which is lossless", inArgs(func(_ *rand.Rand, c call) string { return quoted(quoted(ob(c))) })},
		{"wrapper", 2, false, "mend", "a single key around the object", inArgs(func(_ *rand.Rand, c call) string { return `{"arguments": ` + ob(c) + `}` })},
		{"special-token", 2, true, "mend", "an end token is lossless", inArgs(func(_ *rand.Rand, c call) string { return ob(c) + "<|eot_id|>" })},
		{"bracket", 2, false, "mend", "a closing brace too many", inArgs(func(_ *rand.Rand, c call) string { return ob(c) + "}" })},
		{"bracket", 2, false, "mend", "the last brace is missing", inArgs(func(_ *rand.Rand, c call) string { return strings.TrimSuffix(ob(c), "}") })},
		{"name-form", 3, false, "mend", "another spelling of the name", renamed(func(r *rand.Rand, n string) string {
			return pick(r, []string{strings.ToUpper(n), strings.ReplaceAll(n, "_", "-"), strings.ReplaceAll(n, "_", "")})
		})},
		{"name-near", 3, false, "mend", "one edit away from one tool", renamed(oneEdit)},
		{"name-dialect", 2, true, "mend", "a namespace before the name", renamed(func(_ *rand.Rand, n string) string { return "functions." + n })},
		{"leak-hermes", 2, false, "mend", "a Hermes block", asText(func(c call) string {
			return "<tool_call>\n{\"name\": " + quoted(c.tool) + ", \"arguments\": " + ob(c) + "}\n</tool_call>"
		})},
		{"leak-qwen-xml", 3, false, "mend", "Qwen's XML; text is typed by the schema", xml("<tool_call>\n<function=%s>\n", "<parameter=%s>\n%s\n</parameter>\n", "</function>\n</tool_call>")},
		{"leak-invoke", 3, false, "mend", "an invoke block; text is typed by the schema", xml("<minimax:tool_call>\n<invoke name=\"%s\">\n",
			"<parameter name=\"%s\">%s</parameter>\n", "</invoke>\n</minimax:tool_call>")},
		{"leak-glm", 2, false, "mend", "GLM's pairs; text is typed by the schema", xml("<tool_call>%s\n", "<arg_key>%s</arg_key>\n<arg_value>%s</arg_value>\n", "</tool_call>")},
		{"leak-kimi", 2, true, "mend", "Kimi's tokens are lossless", asText(func(c call) string {
			return "<|tool_calls_section_begin|><|tool_call_begin|>functions." + c.tool + ":0<|tool_call_argument_begin|>" + ob(c) + "<|tool_call_end|><|tool_calls_section_end|>"
		})},
		{"truncated", 2, false, "ask", "cut inside the last string", cut("length")},
		{"truncated", 2, false, "ask", "cut inside the last string, though the reason says otherwise", cut("tool_calls")},
		{"truncated", 2, true, "ask", "cut inside the last string", cut("length")},
		{"single-quotes", 2, true, "ask", "tolerant parse for a tool that runs commands or writes", spelled(style{quote: single.quote, bare: true})},
		{"name-near", 2, true, "ask", "a near miss of a tool that runs commands or writes", renamed(oneEdit)},
		{"valid-odd", 12, false, "pass", "much white space", spelled(style{spaces: true})},
		{"valid-odd", 12, false, "pass", "escapes where none are needed", spelled(style{escapes: true})},
		{"valid-odd", 8, true, "pass", "quotes, tabs and newlines, all escaped", spelled(style{spaces: true, escapes: true})},
	}
}

func main() {
	log.SetFlags(0)
	seed := flag.Uint64("seed", 20261121, "seed")
	file := flag.String("cases", "../cases.jsonl", "file to update")
	flag.Parse()
	r := rand.New(rand.NewPCG(*seed, *seed))
	var out bytes.Buffer
	old, err := os.ReadFile(*file)
	if err != nil {
		log.Fatal(err)
	}
	in := bufio.NewScanner(bytes.NewReader(old))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if !bytes.HasPrefix(in.Bytes(), []byte(`{"id":"gen-`)) {
			out.Write(append(in.Bytes(), '\n'))
		}
	}
	if err := in.Err(); err != nil {
		log.Fatal(err)
	}
	count := map[string]int{}
	seen := map[string]bool{}
	for _, d := range damages() {
		for made := 0; made < d.n; {
			c := reader(r)
			if d.writes {
				c = writer(r)
			}
			name, args, finish, content := d.do(r, c)
			l := line{Form: d.form, Toolset: c.set, Finish: finish, Content: content, Expect: d.expect, Why: d.why, Source: fmt.Sprintf("generated: seed %d", *seed)}
			if content == nil {
				l.Call = &wire{name, args}
			}
			if d.expect == "mend" {
				l.Name, l.Args = c.tool, json.RawMessage(style{}.object(c.args))
			}
			key, _ := marshal(l)
			if seen[string(key)] {
				continue
			}
			seen[string(key)] = true
			made++
			count[d.form]++
			l.ID = fmt.Sprintf("gen-%s-%02d", d.form, count[d.form])
			b, err := marshal(l)
			if err != nil {
				log.Fatal(err)
			}
			out.Write(append(b, '\n'))
		}
	}
	if err := os.WriteFile(*file, out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
