package transcript

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// commas is n times a value, between commas.
func commas(value string, n int) string { return strings.TrimSuffix(strings.Repeat(value+",", n), ",") }

// What is no message and no call is refused where it begins, and more messages,
// calls, tools or fields than the limits allow where the first is too many.
func TestLimits(t *testing.T) {
	lim := Limits{Messages: 3, Calls: 4, Tools: 2}
	history := func(list string) string { return `{"model":"m","messages":[` + list + `]}` }
	calls := func(list string) string { return `{"role":"assistant","tool_calls":[` + list + `]}` }
	offer := func(list string) string { return `{"tools":[` + list + `],"messages":[]}` }
	for _, c := range []struct {
		name, body string
		code       Code   // "": it is accepted
		at         string // what the error's offset is in front of
	}{
		{"messages at the limit", history(commas(`{"role":"user"}`, 3)), "", ""},
		{"a message too many", history(commas(`{"role":"user"}`, 3) + `,{"role":"last"}`), CodeTooMany, `{"role":"last"}`},
		{"a number", history(`{},1`), CodeWrongType, `1]`},
		{"a text", history(`"hello"`), CodeWrongType, `"hello"`},
		{"null", history(`null`), CodeWrongType, `null`},
		{"a list", history(`[{}]`), CodeWrongType, `[{}]`},
		{"not even JSON", history(`nope`), CodeInvalidJSON, `ope`},
		{"calls at the limit", history(calls(commas(`{}`, 2)) + `,` + calls(commas(`{"id":"c"}`, 2))), "", ""},
		{"a call too many", history(calls(commas(`{}`, 4)) + `,` + calls(`{"id":"last"}`)), CodeTooMany, `{"id":"last"}`},
		{"no call", history(calls(`{},7`)), CodeWrongType, `7]`},
		{"a call of null", history(calls(`null`)), CodeWrongType, `null`},
		{"no list of calls", history(`{"role":"assistant","tool_calls":null}`), "", ""},
		{"tools at the limit", offer(`{},{}`), "", ""},
		{"a tool too many", offer(`{},{},{"type":"last"}`), CodeTooMany, `{"type":"last"}`},
		{"other tools", offer(`"web_search",7`), "", ""}, // an upstream decides on them
		{"many of other things", `{"stop":[` + commas(`1`, 9) + `],"messages":[{"content":[` + commas(`{}`, 9) + `]}]}`, "", ""},
	} {
		for how, parse := range map[string]func([]byte, Format, Limits) (*Body, error){"Parse": Parse, "Parser": NewParser().Parse} {
			_, err := parse([]byte(c.body), Chat, lim)
			if c.code == "" {
				if err != nil {
					t.Errorf("%s, %s: %v", how, c.name, err)
				}
				continue
			}
			if e, ok := err.(*Error); !ok || e.Code != c.code || e.Offset != strings.Index(c.body, c.at) {
				t.Errorf("%s, %s: %+v", how, c.name, err)
			}
		}
	}
}

func TestFieldLimit(t *testing.T) {
	body := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"f%d":1`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	if _, err := Parse([]byte(body(maxFields)), Chat, Limits{}); err != nil {
		t.Error(err)
	}
	if _, err := Parse([]byte(body(maxFields+1)), Chat, Limits{}); err == nil || err.(*Error).Code != CodeTooMany {
		t.Error(err)
	}
}

// What a parser remembers counts, too: a history that grows is refused at the
// same call as one that comes at once.
func TestLimitsOfContinuedHistories(t *testing.T) {
	p, lim := NewParser(), Limits{Calls: 40, Messages: 1000, Tools: 3}
	long := strings.Repeat("x", minParserBody)
	for n := 1; n <= 50; n++ {
		body := `{"tools":[{},{},{}],"messages":[{"role":"user","content":"` + long + `"}` + strings.Repeat(`,{"role":"assistant","tool_calls":[{}]}`, n) + `]}`
		for _, raw := range []string{body, strings.Replace(body, `"messages":`, `"n":1,"messages":`, 1)} {
			_, err := p.Parse([]byte(raw), Chat, lim)
			if _, want := Parse([]byte(raw), Chat, lim); fmt.Sprint(err) != fmt.Sprint(want) || (err != nil) != (n > 40) {
				t.Fatalf("%d calls: %v, want %v", n, err, want)
			}
		}
	}
	for n := range 6 { // behind the history
		raw := `{"messages":[{"role":"user","content":"` + long + `"}],"tools":[` + commas(`{}`, n) + `]}`
		if _, err := p.Parse([]byte(raw), Chat, lim); (err != nil) != (n > 3) {
			t.Errorf("%d tools: %v", n, err)
		}
	}
}

// What a body consists of is bounded in all: the edits for a target work for each
// value. A known beginning counts, whatever comes behind it, and only once.
func TestLimitOfValues(t *testing.T) {
	p, lim := NewParser(), Limits{Values: 100}
	long := strings.Repeat("x", minParserBody)
	for n := 1; n <= 60; n++ {
		history := `{"messages":[{"role":"user","content":"` + long + `"}` + strings.Repeat(`,{"content":[1]}`, n) + `]`
		for extra, rest := range []string{`}`, `,"stop":[]}`, `,"stop":["a","b"],"n":1}`} {
			raw, values := history+rest, 4+3*n+[]int{0, 1, 4}[extra]
			for how, parse := range map[string]func([]byte, Format, Limits) (*Body, error){"Parse": Parse, "Parser": p.Parse} {
				_, err := parse([]byte(raw), Chat, lim)
				if e, ok := err.(*Error); ok != (values > 100) || ok && e.Code != CodeTooMany {
					t.Fatalf("%s, %d values: %v", how, values, err)
				}
			}
		}
	}
}

// TestRoomIsBounded: small messages at the beginning promise more of them than are let in,
// and none that come need no room.
func TestRoomIsBounded(t *testing.T) {
	small := strings.Repeat("{},", 100)
	for name, body := range map[string]string{
		"many":         `{"messages":[` + strings.Repeat("{},", 8<<20/3) + `{}]}`,
		"then a large": `{"messages":[` + small + `{"role":"user","content":"` + strings.Repeat("x", 8<<20) + `"}]}`,
	} {
		raw := []byte(body)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = Parse(raw, Chat, Limits{})
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
			t.Errorf("%s: %d bytes are allocated for %d", name, took, len(raw))
		}
	}
}
