package stream

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

// TestFieldsBounded: of a call's unknown fields so many are kept as any server
// sends, those that came first, each with its last value; a call that is not
// rewritten keeps all of them.
func TestFieldsBounded(t *testing.T) {
	field := func(i, value int) string { return fmt.Sprintf(`"x%d":%d`, i, value) }
	var many strings.Builder
	for i := range 3 * maxExtra {
		many.WriteString("," + field(i, i))
	}
	for name, c := range map[string]struct{ stream, inside string }{
		"of a call":     {one.calls(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{"}` + many.String() + `}`), ""},
		"of a function": {one.calls(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{"` + many.String() + `}}`), ".function"},
		"over many events": {func() string {
			var b strings.Builder
			b.WriteString(one.calls(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{"}}`))
			for i := range 3 * maxExtra {
				b.WriteString(one.calls(`{"index":0,` + field(i, i) + `}`))
			}
			return b.String()
		}(), ""},
	} {
		again := `{"index":0,` + field(0, 7000) + `,"function":{` + field(0, 7000) + `}}`
		body := one.role() + c.stream + one.calls(again) + one.finish("tool_calls") + end
		x := newExchange()
		if broken := x.serve(strings.NewReader(body), mended(t, replacing(nil, "", fn("a", "ls", "{}")))); broken != nil {
			t.Fatalf("%s: %+v", name, broken)
		}
		var data string
		for line := range strings.Lines(x.got()) {
			if strings.Contains(line, `"tool_calls":[`) {
				data = strings.TrimPrefix(line, "data: ")
			}
		}
		call := gjson.Get(data, "choices.0.delta.tool_calls.0"+c.inside)
		kept := 0
		call.ForEach(func(k, _ gjson.Result) bool {
			if strings.HasPrefix(k.Str, "x") {
				kept++
			}
			return true
		})
		if kept != maxExtra || call.Get("x0").Int() != 7000 || call.Get(fmt.Sprint("x", maxExtra-1)).Int() != int64(maxExtra-1) {
			t.Errorf("%s: kept %d fields: %.300s", name, kept, call.Raw)
		}
		x = newExchange()
		if broken := x.serve(strings.NewReader(body), mended(t, judging(nil))); broken != nil || x.got() != body {
			t.Errorf("%s: what is not mended changed: %+v %.300s", name, broken, x.got())
		}
	}
}

// TestCallsBounded: an answer with more calls than anybody makes is not judged,
// and goes on as it came.
func TestCallsBounded(t *testing.T) {
	const flood = 3 * maxCalls
	list := make([]string, flood)
	for i := range list {
		list[i] = fmt.Sprintf(`{"index":%d,"id":"c%d","type":"function","function":{"name":"ls","arguments":"{"}}`, i, i)
	}
	apart := one.calls(strings.Join(list[:maxCalls], ","))
	for _, c := range list[maxCalls:] {
		apart += one.calls(c)
	}
	for name, events := range map[string]string{"in one event": one.calls(strings.Join(list, ",")), "one after the other": apart} {
		x, m := newExchange(), asking(recovery.FlawArguments)
		body := one.role() + events + one.finish("tool_calls") + end
		if broken := x.serve(strings.NewReader(body), mended(t, m)); broken != nil || x.got() != body || len(m.drafts) > 0 {
			t.Errorf("%s: %+v, %d judged, %d bytes of %d", name, broken, len(m.drafts), len(x.got()), len(body))
		}
	}
	x, m := newExchange(), asking(recovery.FlawArguments)
	body := wholeOf(`{"content":null,"tool_calls":[`+strings.Join(list, ",")+`]}`, "tool_calls")
	if broken := x.whole(body, mended(t, m)); broken != nil || x.got() != body || len(m.drafts) > 0 {
		t.Errorf("one message: %+v, %d judged, %d bytes of %d", broken, len(m.drafts), len(x.got()), len(body))
	}
	x = newExchange() // so many as are judged at all
	if broken := x.serve(strings.NewReader(one.role()+one.calls(strings.Join(list[:maxCalls], ","))+one.finish("tool_calls")+end), mended(t, m)); broken == nil ||
		len(m.drafts) != 1 || len(m.drafts[0].Calls) != maxCalls {
		t.Errorf("at the bound: %+v, %d judged", broken, len(m.drafts))
	}
}

// TestLean: where one event becomes several, the client gets its large fields
// once, with the first; its small ones are on each.
func TestLean(t *testing.T) {
	large := `"citations":["` + strings.Repeat("http://example.test/ ", 50) + `"]`
	body := one.role() + strings.Replace(one.calls(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{"}}`), `"model":"m"`, `"model":"m","service_tier":"flex",`+large, 1) +
		one.finish("tool_calls") + end
	x := newExchange()
	calls := []recovery.DraftCall{fn("a", "ls", "{}"), fn("b", "f", "{}"), fn("c", "get_weather", `{"city":"Paris"}`)}
	if broken := x.serve(strings.NewReader(body), mended(t, replacing(nil, "", calls...))); broken != nil {
		t.Fatalf("%+v", broken)
	}
	if _, list, _ := merged(t, x.got()); fmt.Sprint(list) != fmt.Sprint(calls) {
		t.Errorf("the calls became %v", list)
	}
	n := 0
	for line := range strings.Lines(x.got()) {
		if !strings.Contains(line, `"tool_calls":[`) {
			continue
		}
		n++
		data := strings.TrimPrefix(line, "data: ")
		if gjson.Get(data, "citations").Exists() != (n == 1) {
			t.Errorf("event %d: %.200s", n, data)
		}
		for path, want := range map[string]string{"id": "one", "object": "chat.completion.chunk", "model": "m", "service_tier": "flex", "choices.0.index": "0", "choices.#": "1"} {
			if got := gjson.Get(data, path).String(); got != want {
				t.Errorf("event %d: %s is %q, want %q", n, path, got, want)
			}
		}
	}
	if n != len(calls) {
		t.Errorf("%d events for %d calls\n%s", n, len(calls), x.got())
	}
}

// TestReadWork: the memory that reading an event takes grows with the event and
// no faster, whatever is repeated in it.
func TestReadWork(t *testing.T) {
	taken := func(event string) uint64 {
		ev := Event{Data: []byte(event), HasData: true}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Chat{}.Decode(&ev, new(Known))
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for name, event := range map[string]func(n int) string{
		"choices": func(n int) string {
			return `{"choices":[` + strings.Repeat(`{"index":0,"delta":{"content":"some words"}},`, n) + `{}]}`
		},
		"texts of one choice": func(n int) string {
			return `{"choices":[{"delta":{` + strings.Repeat(`"content":"some words",`, n) + `"a":1}}]}`
		},
		"legacy texts": func(n int) string { return `{"choices":[{` + strings.Repeat(`"text":"some words",`, n) + `"a":1}]}` },
	} {
		few, many := taken(event(1000)), taken(event(16_000))
		if many > 20*max(few, 64<<10) {
			t.Errorf("%s: %d bytes for 1,000, %d for 16,000", name, few, many)
		}
	}
}

// TestNameWork: a name that comes in endless pieces is not put together for ever.
func TestNameWork(t *testing.T) {
	s := calls{}
	for i := range 100_000 {
		d := Delta{calls: fmt.Appendf(nil, `[{"index":0,"function":{"name":"%d"}}]`, i)}
		Chat{}.calls([]byte(`{}`), &d, &s)
	}
	if len(s.list) != 1 || len(s.list[0].Name) > maxName+5 || !s.over {
		t.Errorf("%d calls, %d bytes of a name", len(s.list), len(s.list[0].Name))
	}
}

// A complete answer that never ends takes little more memory than one may have.
func TestEndlessWholeAnswer(t *testing.T) {
	cfg := Defaults()
	cfg.MaxAnswer = 8 << 20
	for size, want := range map[int64]error{cfg.MaxAnswer: ErrInvalid, cfg.MaxAnswer + 1: ErrAnswerTooLong, 64 << 20: ErrAnswerTooLong} {
		res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(io.LimitReader(endless{}, size)), ContentLength: -1}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, broken := ReadWhole(res, Options{Config: cfg, Format: Chat{}, Choices: 1, Ending: new(Ending)})
		runtime.ReadMemStats(&after)
		if broken == nil || broken.Err != want {
			t.Errorf("%d bytes: %+v, want %v", size, broken, want)
		}
		if took := int64(after.TotalAlloc - before.TotalAlloc); want == ErrAnswerTooLong && took > 7*cfg.MaxAnswer/2 {
			t.Errorf("%d bytes: %d are allocated", size, took)
		}
	}
}

// TestDecodeAllocatesNothing: the events of which streams consist are read without an allocation.
func TestDecodeAllocatesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		format Format
		event  string
	}{
		"chat":      {Chat{}, one.text("a b")},
		"responses": {Responses{}, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":\"a\"}\n\n"},
		"messages":  {Messages{}, msgText(0, "a")},
	} {
		ev, err := NewReader(strings.NewReader(c.event), 1<<20).Next()
		if err != nil {
			t.Fatal(err)
		}
		known := new(Known)
		if n := testing.AllocsPerRun(100, func() { c.format.Decode(&ev, known) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
