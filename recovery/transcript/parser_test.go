package transcript

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// same fails unless both ways to parse agree on everything.
func same(t *testing.T, p *Parser, raw []byte) {
	t.Helper()
	sameAs(t, p, raw, Chat)
}

func sameAs(t *testing.T, p *Parser, raw []byte, f Format) {
	t.Helper()
	want, wantErr := Parse(raw, f, Limits{})
	got, err := p.Parse(raw, f, Limits{})
	if fmt.Sprint(wantErr) != fmt.Sprint(err) || (want == nil) != (got == nil) {
		t.Fatalf("error %v, without a memory %v", err, wantErr)
	}
	if want == nil {
		return
	}
	if !bytes.Equal(views(want), views(got)) || !reflect.DeepEqual(want.elements, got.elements) || !slices.Equal(want.splits, got.splits) || want.Parts() != got.Parts() {
		t.Fatal("the histories differ")
	}
	if want.model != got.model || want.streaming != got.streaming || want.n != got.n || want.usage != got.usage {
		t.Fatal("what the gateway reads differs")
	}
	if !slices.Equal(want.fields, got.fields) {
		t.Fatalf("fields %v, without a memory %v", got.fields, want.fields)
	}
	if !reflect.DeepEqual(want.Tools(), got.Tools()) {
		t.Fatal("the tools differ")
	}
}

// views is what the messages' views give.
func views(b *Body) (out []byte) {
	for _, m := range b.Messages() {
		out = fmt.Append(out, m.Role, m.Start, m.End, m.Text(), m.ToolCallID(), len(m.ToolCalls()))
	}
	return out
}

// grown is a request with the first n messages of a session.
func grown(messages []string, n int, head, rest string) []byte {
	return []byte(`{` + head + `"messages" : [` + strings.Join(messages[:n], " ,\n") + ` ]` + rest + `}`)
}

func sessionOf(seed int) (messages []string) {
	messages = append(messages, `{"role":"system","content":"`+strings.Repeat("Be careful. ", 200)+`"}`, fmt.Sprintf(`{"role":"user","content":"Task %d"}`, seed))
	for i := range 40 {
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"read","arguments":"{\"path\":\"%d.go\"}"}}]}`, i, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"%s"}`, i, strings.Repeat(fmt.Sprintf(`line %d\n\t\"quoted\" `, i), 30)))
	}
	return messages
}

const someTools = `,"model":"m","tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object"}}}],"stream":true,"n":1`

// A session that grows is read as it would be without a memory, whatever stands
// around its history, and so is one that departs from what was known.
func TestParserGrows(t *testing.T) {
	for name, c := range map[string]struct{ head, rest string }{
		"history first": {"", someTools},
		"history last":  {`"model":"m","stream":false,`, ""},
		"in the middle": {`"model":"m", `, ` , "user":"é\u0041" , "max_tokens":5 `},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := NewParser(), sessionOf(1)
			other := append(append([]string{}, s[:40]...), sessionOf(2)[20:]...)
			for n := 20; n <= len(s); n += 2 {
				same(t, p, grown(s, n, c.head, c.rest))
				same(t, p, grown(s, n, c.head, c.rest)) // asked again
				same(t, p, grown(other, min(n, len(other)), c.head, c.rest))
				same(t, p, grown(s, n, c.head, strings.Replace(c.rest, "true", "false", 1)))
				same(t, p, grown(s, n-3, c.head, c.rest)) // shorter
			}
			// Each session's longest, and what the shorter requests left behind.
			if n := p.recent.Len(); n == 0 || n > 2+len(s)/2 || p.size <= 0 {
				t.Errorf("%d beginnings are remembered", n)
			}
		})
	}
}

// Clients of the Messages API mark the last message for the prompt cache, and send it
// without the mark, as a string, a turn later. All but the last turns is known.
func TestParserMarks(t *testing.T) {
	request := func(turns int) []byte {
		list := []string{`{"role":"user","content":"` + strings.Repeat("Task. ", 500) + `"}`}
		for i := range turns {
			mark := ""
			if i == turns-1 {
				mark = `,"cache_control":{"type":"ephemeral"}`
			}
			list = append(list, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"a","input":{}},{"type":"tool_use","id":"u%d","name":"a","input":{}}]}`, i, i),
				fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%s"},{"type":"tool_result","tool_use_id":"u%d","content":"ok"%s}]}`, i, strings.Repeat("text ", 300), i, mark))
			if i%5 == 3 && mark != "" {
				list = append(list, `{"role":"user","content":[{"type":"text","text":"Go on."`+mark+`}]}`)
			} else if i%5 == 3 {
				list = append(list, `{"role":"user","content":"Go on."}`)
			}
		}
		return []byte(`{"model":"m","max_tokens":9,"messages":[` + strings.Join(list, ",") + `],"stream":true}`)
	}
	p := NewParser()
	for turns := 5; turns < 60; turns++ {
		raw := request(turns)
		if turns > 5 {
			list, _ := p.shared(p.find(p.sum(0, raw[:keyLength]), raw, Messages, Limits{}.checked()), raw)
			if len(list) == 0 || list[len(list)-1].end < len(request(turns-3)) {
				t.Fatalf("turn %d goes on from %v", turns, list)
			}
		}
		sameAs(t, p, raw, Messages)
	}
	if n := p.recent.Len(); n != 1 {
		t.Errorf("%d beginnings are remembered", n)
	}
}

// What is no list of messages is read each time.
func TestParserWithoutMessages(t *testing.T) {
	long := strings.Repeat("word ", 3000)
	for f, list := range map[Format][]string{
		Chat:      {`"messages":[],"user":"%s"`},
		Responses: {`"input":"%s"`, `"input":[],"user":"%s"`, `"previous_response_id":"r","input":[{"type":"function_call_output","call_id":"c","output":"%s"}]`, `"user":"%s"`},
		Messages:  {`"messages":[],"max_tokens":1,"user":"%s"`, `"max_tokens":1,"messages":[{"role":"user","content":"%s"}]`},
	} {
		p := NewParser()
		for _, body := range list {
			for range 2 {
				sameAs(t, p, []byte(`{"model":"m",`+fmt.Sprintf(body, long)+`}`), f)
			}
		}
	}
}

// Histories whose messages are changed, removed and added anywhere are read as they
// would be without a memory, in every format.
func TestParserEdits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	text := func() string { return strings.Repeat("text ", r.IntN(200)) }
	messages := map[Format][]func(i int) string{
		Chat: {
			func(int) string { return `{"role":"user","content":"` + text() + `"}` },
			func(i int) string {
				return fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"%s"}`, i, text())
			},
			func(i int) string {
				return fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":"c%d","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"d%[1]d","type":"function","function":{"name":"a","arguments":"{}"}}]}`, i)
			},
		},
		Responses: {
			func(int) string { return `{"role":"user","content":"` + text() + `"}` },
			func(i int) string {
				return fmt.Sprintf(`{"type":"function_call","call_id":"c%d","name":"a","arguments":"{}"}`, i)
			},
			func(i int) string {
				return fmt.Sprintf(`{"type":"function_call_output","call_id":"c%d","output":"%s"}`, i, text())
			},
			func(i int) string { return fmt.Sprintf(`{"type":"reasoning","id":"r%d","summary":[]}`, i) },
		},
		Messages: {
			func(int) string { return `{"role":"user","content":"` + text() + `"}` },
			func(i int) string {
				return fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"a","input":{"x":[1,{"y":3}]}}]}`, i)
			},
			func(i int) string {
				return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%s"},{"type":"text","text":"x"}]}`, i, text())
			},
		},
	}
	rests := []string{`,"max_tokens":5}`, `,"max_tokens":5,"tools":[{"name":"a","input_schema":{}}]}`, `}`}
	for f, kinds := range messages {
		message := func(i int) string { return kinds[r.IntN(len(kinds))](i) }
		for range 100 {
			p, list := NewParser(), []string{`{"role":"user","content":"` + strings.Repeat("Task. ", 1500) + `"}`}
			for step := range 30 {
				switch at := r.IntN(len(list)); r.IntN(8) {
				case 0:
					list = append(list[:at+1], list[min(at+2, len(list)):]...)
				case 1:
					list = append(list[:at+1], append([]string{message(step)}, list[min(at+2, len(list)):]...)...)
				case 2:
					list = list[:at+1]
				default:
					for range 1 + r.IntN(4) {
						list = append(list, message(len(list)))
					}
				}
				raw := []byte(`{"model":"m","` + f.layout().list + `":[` + strings.Join(list, ",") + `]` + rests[max(0, r.IntN(6)-3)])
				if r.IntN(30) == 0 {
					raw[r.IntN(len(raw))] ^= 4
				}
				sameAs(t, p, raw, f)
			}
		}
	}
}

// What is wrong behind a known beginning is found, and what would have been
// wrong in it is not missed when one byte of it is another.
func TestParserErrors(t *testing.T) {
	p, s := NewParser(), sessionOf(1)
	good := grown(s, 60, "", someTools)
	same(t, p, good)
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		raw := grown(s, 60+2*r.IntN(6), "", someTools)
		switch at := r.IntN(len(raw)); r.IntN(4) {
		case 0:
			raw[at] = byte(r.IntN(256))
		case 1:
			raw = raw[:at]
		case 2:
			raw = append(raw[:at:at], raw[min(len(raw), at+1+r.IntN(4)):]...)
		case 3:
			raw = append(append(raw[:at:at], `"stream":1,`...), raw[at:]...)
		}
		same(t, p, raw)
	}
	for _, rest := range []string{`,"messages":[]`, `,"model":1`, `,"x":{`, `,"n":"a"`, `]`, `,`} {
		same(t, p, grown(s, 62, "", rest))
	}
	deep := strings.Repeat("[", 600)
	same(t, p, grown(append(s[:60:60], `{"role":"user","content":`+deep+`}`), 61, "", someTools))
}

// What is remembered is bounded, also where everything begins the same way.
func TestParserIsBounded(t *testing.T) {
	p := NewParser()
	for i := range 3 * maxSame {
		s := sessionOf(i)
		same(t, p, grown(s, 30, "", someTools))
	}
	if n := p.recent.Len(); n > maxSame {
		t.Errorf("%d beginnings that begin alike", n)
	}
	for i := range 40 {
		many := make([]string, 20_000)
		for k := range many {
			many[k] = fmt.Sprintf(`{"role":"user","content":"%d %d"}`, i, k)
		}
		many[0] = fmt.Sprintf(`{"role":"system","content":"%d%s"}`, i, strings.Repeat(" ", keyLength))
		if _, err := p.Parse(grown(many, len(many), "", someTools), Chat, Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for e := p.recent.Front(); e != nil; e = e.Next() {
		total += e.Value.(*beginning).weight()
	}
	if p.size != total || p.size > maxParserSize {
		t.Errorf("%d bytes are counted of %d", p.size, total)
	}
}

// Bodies outlive what is remembered of them, and their bytes what was parsed.
func TestParserKeepsNoText(t *testing.T) {
	p, s := NewParser(), sessionOf(1)
	raw := grown(s, 40, `"user":"u",`, someTools)
	if _, err := p.Parse(raw, Chat, Limits{}); err != nil {
		t.Fatal(err)
	}
	clear(raw)
	same(t, p, grown(s, 42, `"user":"u",`, someTools))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := 20; n <= len(s); n += 2 {
				raw := grown(sessionOf(i/2), n, `"user":"u",`, someTools)
				b, err := p.Parse(raw, Chat, Limits{})
				if err != nil || len(b.Messages()) != n || len(b.Tools()) != 1 {
					t.Errorf("%d messages: %v", n, err)
				}
				clear(raw)
			}
		})
	}
	wg.Wait()
}

// Whatever two requests have in common, the second is read as if it were alone.
func FuzzParser(f *testing.F) {
	s := sessionOf(1)
	f.Add(string(grown(s, 40, "", someTools)), 3000, ` ,{"role":"user"}], "x":1}`)
	f.Add(string(grown(s, 40, `"model":"m",`, "")), 9000, `"}]}`)
	f.Add(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a"},{"type":"text","text":"b"}]},{"role":"user","content":"c"}]}`, 70, `,{"role":"user","content":"d"}]}`)
	f.Add(`{"model":"m","input":[{"type":"function_call","call_id":"c","name":"a","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"}]}`, 60, `"}]}`)
	f.Add(`{"model":"m","input":"x"}`, 20, `"}`)
	f.Fuzz(func(t *testing.T, first string, at int, end string) {
		pad := `{"pad":"` + strings.Repeat("x", minParserBody) + `",`
		one := []byte(strings.Replace(first, "{", pad, 1))
		at = min(max(at, 0)+len(pad), len(one))
		for _, format := range []Format{Chat, Responses, Messages} {
			p := NewParser()
			sameAs(t, p, one, format)
			sameAs(t, p, append(one[:at:at], end...), format)
			sameAs(t, p, one, format)
		}
	})
}

// A beginning has one hash, however it was come by, and any other byte another.
func TestSumming(t *testing.T) {
	p, raw := NewParser(), body(t, 3*chunk)
	for _, ends := range [][]int{{1, 2, 3}, {chunk - 1, chunk, chunk + 1}, {keyLength, 2*chunk + 7}, {chunk, chunk, 2 * chunk}, {2*chunk - 1, 3*chunk - 5}} {
		var s prefixHash
		for _, end := range ends {
			got := s.upTo(p, raw, end)
			if want := new(prefixHash).upTo(p, raw, end); got != want {
				t.Errorf("%v: another hash up to %d", ends, end)
			}
			for _, at := range []int{0, end / 2, end - 1} {
				raw[at] ^= 1
				if new(prefixHash).upTo(p, raw, end) == got {
					t.Errorf("byte %d does not count up to %d", at, end)
				}
				raw[at] ^= 1
			}
		}
	}
}
