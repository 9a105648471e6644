package repair

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// toolsJSON is the list of tools of the tests: three that only read, and three that change something.
const toolsJSON = `[
 {"type":"function","function":{"name":"get_weather","description":"Get the weather","parameters":{"type":"object","properties":{
   "city":{"type":"string"},"days":{"type":"integer"},"metric":{"type":"boolean"},"unit":{"type":"string","enum":["celsius","fahrenheit"]},
   "tags":{"type":"array","items":{"type":"string"}},"limit":{"type":["integer","null"]},"range":{"type":"object","properties":{"from":{"type":"number"},"to":{"type":"number"}},"required":["from"]}},
   "required":["city"],"additionalProperties":false}}},
 {"type":"function","function":{"name":"read_file","description":"Read a file","parameters":{"type":"object","properties":{
   "file_path":{"type":"string"},"start_line":{"type":"integer"},"regex":{"type":"string"}},"required":["file_path"]}}},
 {"type":"function","function":{"name":"list_sessions","parameters":{"type":"object","properties":{"page":{"type":"integer"}}}}},
 {"type":"function","function":{"name":"bash","description":"Run a command","parameters":{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"}},"required":["command"]}}},
 {"type":"function","function":{"name":"write_file","parameters":{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}}},
 {"type":"function","function":{"name":"reset_all","parameters":{"type":"object","properties":{}}}}
]`

func request(t testing.TB, fields string) *transcript.Body {
	t.Helper()
	return recoverytest.Parse(t, `{"model":"m","messages":[]`+fields+`}`, transcript.Chat)
}

func withTools(t testing.TB, more string) *transcript.Body {
	return request(t, `,"tools":`+toolsJSON+more)
}

func mender() *Mender { return New(Defaults()) }

func call(name, args string) recovery.Draft {
	return recovery.Draft{Calls: []recovery.DraftCall{{ID: "call_1", Kind: "function", Name: name, Arguments: args}}, Finish: recovery.FinishCalls}
}

// same compares two JSON texts by meaning.
func same(t testing.TB, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		return false
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return reflect.DeepEqual(x, y)
}

// TestUnsaid: an answer of reasoning only is a flaw, unless the output limit of the request is
// that of a probe.
func TestUnsaid(t *testing.T) {
	m := mender()
	thought := recovery.Draft{Unsaid: true, Finish: recovery.FinishStop}
	for name, c := range map[string]struct {
		extra         string
		change        func(*recovery.Draft)
		flaw, limited bool
	}{
		"stop":                {"", func(*recovery.Draft) {}, true, false},
		"blank":               {"", func(d *recovery.Draft) { d.Text = " \n" }, true, false},
		"length":              {"", func(d *recovery.Draft) { d.Finish = recovery.FinishLength }, true, true},
		"the client's length": {`,"max_tokens":257`, func(d *recovery.Draft) { d.Finish = recovery.FinishLength }, true, true},
		"a probe":             {`,"max_tokens":256`, func(d *recovery.Draft) { d.Finish = recovery.FinishLength }, false, false},
		"filtered":            {"", func(d *recovery.Draft) { d.Finish = recovery.FinishFilter }, false, false},
		"no end":              {"", func(d *recovery.Draft) { d.Finish = recovery.FinishNone }, false, false},
		"text was shown":      {"", func(d *recovery.Draft) { d.Shown = 7 }, false, false},
		"more than reasoning": {"", func(d *recovery.Draft) { d.Unsaid = false }, false, false},
		"a call":              {"", func(d *recovery.Draft) { d.Calls = call("get_weather", `{"city":"Paris"}`).Calls }, false, false},
	} {
		d := thought
		c.change(&d)
		v := m.Mend(withTools(t, c.extra), d)
		if got := v.Judgement == recovery.JudgeAsk && v.Flaw.Kind == recovery.FlawUnsaid; got != c.flaw || c.flaw && v.Flaw.Limited != c.limited {
			t.Errorf("%s: %+v %+v", name, v, v.Flaw)
		}
	}
}

func TestCallsThatAreAskedAgain(t *testing.T) {
	req, m := withTools(t, ""), mender()
	for _, c := range []struct {
		name, args string
		kind       recovery.FlawKind
		problem    string
	}{
		{"get_weather", `{"location":"Paris"}`, recovery.FlawField, `lacks the required "city"; there is no parameter "location"`},
		{"get_weather", `{"days":3}`, recovery.FlawField, `lacks the required "city"`},
		{"get_weather", `{"city":"Paris","days":"three"}`, recovery.FlawArguments, `"days" must be integer, not string`},
		{"get_weather", `{"city":"Paris","days":1.5}`, recovery.FlawArguments, `"days"`},
		{"get_weather", `{"city":"Paris","tags":"a, b"}`, recovery.FlawArguments, `"tags" must be array`},
		{"get_weather", `{"city":"Paris","unit":"kelvin"}`, recovery.FlawArguments, `must be one of "celsius", "fahrenheit"`},
		{"get_weather", `{"city":null}`, recovery.FlawArguments, `"city" must be string`},
		{"get_weather", `{"city":"Par`, recovery.FlawJSON, ""},
		{"get_weather", `{"city":`, recovery.FlawJSON, ""},
		{"get_weather", `{"city":"Paris",`, recovery.FlawJSON, ""},
		{"get_weather", `{"city":"Paris"} or {"city":"Rome"}`, recovery.FlawJSON, ""},
		{"get_weather", `{"city":"say "hi"","days":1}`, recovery.FlawJSON, ""},
		{"get_weather", `{city: Paris}`, recovery.FlawJSON, ""},
		{"read_file", `{"file_path":"see C:\temp\data"}`, recovery.FlawJSON, ""},
		{"get_weather", `["Paris"]`, recovery.FlawArguments, "not a JSON object"},
		{"bash", `{"command":"ls",}`, recovery.FlawJSON, ""},
		{"bash", `{'command':'ls'}`, recovery.FlawJSON, ""},
		{"bash", `{"command":"ls","timeout":"5"}`, recovery.FlawArguments, ""},
		{"bash", `{"command":["ls"]}`, recovery.FlawArguments, ""},
		{"bash", `{"command":"ls"}{"command":"ls"}`, recovery.FlawJSON, ""},
		{"bash", ``, recovery.FlawJSON, ""},
		{"write_file", "{\"path\":\"a\",\"content\":\"x\ny\"}", recovery.FlawJSON, ""},
		{"Bash", `{"command":"ls"}`, recovery.FlawName, `there is no tool "Bash"`},
		{"bsh", `{"command":"ls"}`, recovery.FlawName, ""},
		{"get_wind", `{"city":"Paris"}`, recovery.FlawName, `"get_weather"`},
		{"", `{"city":"Paris"}`, recovery.FlawName, "names no tool"},
	} {
		v := m.Mend(req, call(c.name, c.args))
		if v.Judgement != recovery.JudgeAsk || v.Flaw.Kind != c.kind || !strings.Contains(v.Flaw.Problem, c.problem) {
			t.Errorf("%s %s: %+v %+v", c.name, c.args, v, v.Flaw)
		}
	}
}

// Schemas of clients, and what models write for them. An empty want means that the model is asked again.
func TestForms(t *testing.T) {
	m := mender()
	for name, c := range map[string]struct{ tool, properties, args, want string }{
		"OpenAPI's nullable keeps null":   {"get_x", `"a":{"type":"integer","nullable":true},"n":{"type":"integer"}`, `{"a":null,"n":"3"}`, `{"a":null,"n":3}`},
		"the spelling of a constant":      {"get_x", `"kind":{"const":"file"}`, `{"kind":"File"}`, `{"kind":"file"}`},
		"a number or a list of one":       {"get_x", `"a":{"type":["number","array"]}`, `{"a":"3"}`, ""},
		"names that differ in spelling":   {"get_x", `"fooBar":{"type":"integer"},"foo_bar":{"type":"integer"},"n":{"type":"integer"}`, `{"FooBar":1,"n":"2"}`, `{"FooBar":1,"n":2}`},
		"other members have a schema":     {"get_x", `},"additionalProperties":{"type":"integer"`, `{"b":"2"}`, `{"b":2}`},
		"null as a word":                  {"get_x", `"a":{"type":"integer"}`, `{"a":"null"}`, `{}`},
		"items of a tuple":                {"get_x", `"a":{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}]}`, `{"a":["1","2"]}`, `{"a":[1,"2"]}`},
		"a lost bracket inside":           {"get_x", `"a":{"type":"array"},"b":{"type":"integer"}`, `{"b":1,"a":["x"}`, `{"b":1,"a":["x"]}`},
		"one bracket lost, one too many":  {"get_x", `"a":{"type":"array"}`, `{"a":["x"}}`, ""},
		"an escape of Python":             {"get_x", `"a":{"type":"string"}`, `{'a':'\x41'}`, ""},
		"an object in a string":           {"write_config", `"a":{"type":"object"}`, `{"a":"{\"b\":1}"}`, `{"a":{"b":1}}`},
		"the tool's name around":          {"get_x", `"a":{"type":"integer"}},"required":["a"],"x":{`, `{"get_x":{"a":1}}`, `{"a":1}`},
		"arguments that are empty":        {"get_x", `"a":{"type":"integer"}},"minProperties":0,"not":{"required":["arguments"]},"x":{`, `{"arguments":""}`, `{}`},
		"a list of lists is not narrowed": {"get_x", `"a":{"type":"array","items":{"type":"object"}}`, `{"a":{"b":1}}`, `{"a":[{"b":1}]}`},
	} {
		req := request(t, `,"tools":[{"type":"function","function":{"name":"`+c.tool+`","parameters":{"type":"object","properties":{`+c.properties+`}}}}]`)
		v := m.Mend(req, call(c.tool, c.args))
		switch {
		case c.want == "" && v.Judgement != recovery.JudgeAsk:
			t.Errorf("%s: %+v", name, v)
		case c.want != "" && (v.Judgement != recovery.JudgeReplace || !same(t, v.Calls[0].Arguments, c.want)):
			t.Errorf("%s: %+v %+v", name, v, v.Flaw)
		}
	}
}

func TestTruncatedIsNeverClosed(t *testing.T) {
	req, m := withTools(t, ""), mender()
	for _, args := range []string{`{"city":"Paris"`, `{"city":"Paris","tags":["a"`, `{"city":"Par`, ``, `{"city":"Paris","days":1`} {
		d := call("get_weather", args)
		d.Finish = recovery.FinishLength
		if v := m.Mend(req, d); v.Judgement != recovery.JudgeAsk || v.Flaw.Kind != recovery.FlawTruncated || v.Flaw.Tool != "get_weather" {
			t.Errorf("%s: %+v", args, v)
		}
		d.Finish = recovery.FinishNone
		if v := m.Mend(req, d); v.Judgement != recovery.JudgeAsk {
			t.Errorf("%s without a finish: %+v", args, v)
		}
	}
	d := call("get_weather", `{"city":"Paris"}`)
	d.Finish = recovery.FinishLength
	if v := m.Mend(req, d); v.Judgement != recovery.JudgePass {
		t.Errorf("a whole call at the limit: %+v", v)
	}
}

// TestCutUnsaid: servers such as vLLM call a cut at the output limit "tool_calls". An answer with at least as many bytes
// as the client's limit has tokens may be cut, and its call is not closed.
func TestCutUnsaid(t *testing.T) {
	m := mender()
	long := `{"city":"` + strings.Repeat("Paris ", 50) + `"`
	if v := m.Mend(withTools(t, `,"max_tokens":300`), call("get_weather", long)); v.Judgement != recovery.JudgeAsk || v.Flaw.Kind != recovery.FlawTruncated {
		t.Errorf("as long as the limit: %+v", v)
	}
	for _, extra := range []string{"", `,"max_tokens":400`} {
		if v := m.Mend(withTools(t, extra), call("get_weather", long)); v.Judgement != recovery.JudgeReplace || v.Calls[0].Arguments != long+"}" {
			t.Errorf("%s: %+v", extra, v)
		}
	}
	if v := m.Mend(withTools(t, `,"max_tokens":300`), call("get_weather", long+"}")); v.Judgement != recovery.JudgePass {
		t.Errorf("a whole call: %+v", v)
	}
}

// TestCutProbe: a call that the limit of a probe cut passes as it is, since the next one would be cut, too.
func TestCutProbe(t *testing.T) {
	m := mender()
	for limit, want := range map[int]recovery.Judgement{16: recovery.JudgePass, 256: recovery.JudgePass, 257: recovery.JudgeAsk} {
		req := withTools(t, fmt.Sprintf(`,"max_tokens":%d`, limit))
		for _, d := range []recovery.Draft{call("get_weather", `{"city":"Par`), {Text: `<tool_call>{"name": "get_weather", "arguments": {"city": "Par`}} {
			d.Finish = recovery.FinishLength
			if v := m.Mend(req, d); v.Judgement != want {
				t.Errorf("limit %d: %+v, want %v", limit, v, want)
			}
		}
	}
}

func TestAnswerLevel(t *testing.T) {
	m := mender()
	two := func(a, b string) recovery.Draft {
		return recovery.Draft{Finish: recovery.FinishCalls, Calls: []recovery.DraftCall{
			{ID: a, Kind: "function", Name: "get_weather", Arguments: `{"city":"A"}`}, {ID: b, Kind: "function", Name: "get_weather", Arguments: `{"city":"A"}`}}}
	}
	for _, d := range []recovery.Draft{two("", ""), two("x", "x"), two("x", " ")} {
		v := m.Mend(withTools(t, ""), d)
		if v.Judgement != recovery.JudgeReplace || v.Calls[0].ID == v.Calls[1].ID || v.Calls[0].ID == "" || v.Calls[1].ID == "" || d.Calls[0].ID == "x" && v.Calls[0].ID != "x" {
			t.Errorf("%+v", v)
		}
		if again := m.Mend(withTools(t, ""), d); !reflect.DeepEqual(v, again) {
			t.Errorf("not the same twice: %+v, %+v", v, again)
		}
	}
	d := call("multi_tool_use.parallel", `{"tool_uses":[{"recipient_name":"functions.get_weather","parameters":{"city":"A"}},{"recipient_name":"functions.bash","parameters":{"command":"ls"}}]}`)
	v := m.Mend(withTools(t, ""), d)
	if len(v.Calls) != 2 || v.Calls[0].Name != "get_weather" || v.Calls[1].Arguments != `{"command":"ls"}` || v.Calls[0].ID == v.Calls[1].ID {
		t.Errorf("%+v %+v", v, v.Flaw)
	}
	d = call("get_weather", `{"city":"A"}`)
	d.Finish = recovery.FinishStop
	if v := m.Mend(withTools(t, ""), d); v.Finish != recovery.FinishCalls || len(v.Calls) != 1 {
		t.Errorf("%+v", v)
	}
	if v := m.Mend(withTools(t, `,"tool_choice":{"type":"function","function":{"name":"get_weather"}}`), d); v.Judgement != recovery.JudgePass {
		t.Errorf("a forced call that stops: %+v", v)
	}
	if v := m.Mend(withTools(t, ""), recovery.Draft{Text: "hi", Finish: recovery.FinishCalls}); v.Finish != recovery.FinishStop {
		t.Errorf("%+v", v)
	}
	for _, choice := range []string{`"required"`, `{"type":"function","function":{"name":"bash"}}`} {
		if v := m.Mend(withTools(t, `,"tool_choice":`+choice), recovery.Draft{Text: "hi", Finish: recovery.FinishStop}); v.Flaw == nil || v.Flaw.Kind != recovery.FlawMissing {
			t.Errorf("%s: %+v", choice, v)
		}
	}
	if v := m.Mend(withTools(t, `,"tool_choice":"none"`), call("nothing", `{`)); v.Judgement != recovery.JudgePass {
		t.Errorf("%+v", v)
	}
	for _, more := range []string{`,"n":2`, `,"logprobs":true`, `,"modalities":["text","audio"],"audio":{"voice":"x"}`} {
		req := withTools(t, more)
		if v := m.Mend(req, call("nothing", `{`)); v.Judgement != recovery.JudgePass || m.Holds(req) != (recovery.Hold{}) || m.Watch(req, -1) != nil {
			t.Errorf("%s: %+v", more, v)
		}
	}
	for _, text := range []string{`{"_compressed": true, "summary":"x"}`, "see { \"_compressed\" :true"} {
		if v := m.Mend(withTools(t, ""), recovery.Draft{Text: text, Finish: recovery.FinishStop}); v.Flaw == nil || v.Flaw.Kind != recovery.FlawMark {
			t.Errorf("%s: %+v", text, v)
		}
	}
	if v := m.Mend(withTools(t, ""), call("write_file", `{"path":"a","content":"{\"_compressed\": true}"}`)); v.Flaw == nil || v.Flaw.Kind != recovery.FlawMark {
		t.Errorf("%+v", v)
	}
	cfg := Defaults()
	cfg.EmptyCall = true
	if v := New(cfg).Mend(withTools(t, ""), recovery.Draft{Text: "hi", Finish: recovery.FinishStop}); v.Flaw == nil || v.Flaw.Kind != recovery.FlawMissing {
		t.Errorf("%+v", v)
	}
	for _, choice := range []string{`{"type":"function","function":{"name":"get_weather"}}`, `{"type":"allowed_tools","allowed_tools":{"tools":[{"type":"function","function":{"name":"get_weather"}}]}}`} {
		if v := m.Mend(withTools(t, `,"tool_choice":`+choice), call("", `{"city":"A"}`)); len(v.Calls) != 1 || v.Calls[0].Name != "get_weather" {
			t.Errorf("%s: %+v", choice, v)
		}
		if v := m.Mend(withTools(t, `,"tool_choice":`+choice), call("List-Sessions", `{}`)); v.Judgement != recovery.JudgeAsk {
			t.Errorf("%s: %+v", choice, v)
		}
	}
	one := request(t, `,"tools":[{"type":"function","function":{"name":"get_time","parameters":{"type":"object"}}}]`)
	if v := m.Mend(one, call("", `{}`)); v.Judgement != recovery.JudgeReplace || v.Calls[0].Name != "get_time" {
		t.Errorf("%+v", v)
	}
}

func TestOtherKindsOfTools(t *testing.T) {
	req := request(t, `,"tools":[{"type":"custom","custom":{"name":"apply_patch"}},{"type":"web_search"},{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`)
	m := mender()
	for _, c := range []recovery.DraftCall{
		{ID: "1", Kind: "custom", Name: "apply_patch", Arguments: "*** Begin Patch"},
		{ID: "1", Kind: "web_search_call", Name: "", Arguments: ""},
		{ID: "1", Kind: "function", Name: "server_side", Arguments: "{"},
		{ID: "1", Kind: "function", Name: "drive.f", Arguments: "{}"}, // may be a tool of the server
		{ID: "1", Kind: "function", Name: "apply_patch", Arguments: "*** Begin Patch"},
	} {
		if v := m.Mend(req, recovery.Draft{Calls: []recovery.DraftCall{c}, Finish: recovery.FinishCalls}); v.Judgement != recovery.JudgePass {
			t.Errorf("%+v: %+v", c, v)
		}
	}
}

// In the Responses API, calls of hosted tools are items of their own. So a function call must
// name a listed tool, unless the server adds tools.
func TestHostedTools(t *testing.T) {
	f := `{"type":"function","name":"f","parameters":{"type":"object"}}`
	for tools, want := range map[string]recovery.Judgement{
		f + `,{"type":"web_search"},{"type":"apply_patch"}`: recovery.JudgeAsk,
		f + `,{"type":"mcp","server_label":"x"}`:            recovery.JudgePass,
		f + `,{"type":"tool_search"}`:                       recovery.JudgePass,
	} {
		req := recoverytest.Parse(t, `{"model":"m","input":[],"tools":[`+tools+`]}`, transcript.Responses)
		call := recovery.DraftCall{ID: "1", Kind: "function", Name: "summon_oracle", Arguments: "{}"}
		if v := mender().Mend(req, recovery.Draft{Calls: []recovery.DraftCall{call}, Finish: recovery.FinishCalls}); v.Judgement != want {
			t.Errorf("%s: %+v", tools, v)
		}
	}
}

func TestHolds(t *testing.T) {
	hold := Defaults()
	hold.JSONStream = JSONHold
	for _, c := range []struct {
		cfg  Config
		req  *transcript.Body
		want recovery.Hold
	}{
		{Defaults(), request(t, ""), recovery.Hold{}},
		{Defaults(), withTools(t, ""), recovery.Hold{Calls: true}},
		{Defaults(), request(t, `,"response_format":{"type":"json_object"}`), recovery.Hold{Text: true}},
		{Defaults(), request(t, `,"stream":true,"response_format":{"type":"json_object"}`), recovery.Hold{}},
		{hold, request(t, `,"stream":true,"response_format":{"type":"json_object"}`), recovery.Hold{Text: true}},
		{Config{}, withTools(t, ""), recovery.Hold{}},
	} {
		if got := New(c.cfg).Holds(c.req); got != c.want {
			t.Errorf("%s: %+v", c.req.Raw(), got)
		}
	}
}

func TestContent(t *testing.T) {
	m := mender()
	object := request(t, `,"response_format":{"type":"json_object"}`)
	typed := request(t, `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"a":{"type"`+
		`:"integer"},"b":{"type":"array","items":{"type":"string"}}},"required":["a"]}}}`)
	for _, c := range []struct {
		req        *transcript.Body
		text, want string // want: "" asks again, "=" passes
	}{
		{object, `{"a":1}`, "="},
		{object, " {\"a\" : 1}\n", "="},
		{object, "```json\n{\"a\" : 1}\n```", `{"a" : 1}`},
		{object, "Here you are:\n```json\n{\"a\" : 1}\n```\nEnjoy!", `{"a" : 1}`},
		{object, "Sure! {\"a\" : 1} Enjoy!", `{"a" : 1}`},
		{object, "<think>{hm}</think>\n{\"a\" : 1}", `{"a" : 1}`},
		{object, `{'a': 1,}`, `{"a":1}`},
		{object, `{"a":"1"`, `{"a":"1"}`},
		{object, `{"a":1`, ""},
		{object, `{"a":1} or {"a":2}`, ""},
		{object, `I cannot do that.`, ""},
		{object, `[1]`, ""},
		{typed, `{"a":1}`, "="},
		{typed, `{"a":"1","b":"x"}`, `{"a":1,"b":["x"]}`},
		{typed, `{"b":[]}`, ""},
		{typed, "{\"b\":1} is wrong, {\"a\": 1} is right", `{"a": 1}`},
		{typed, ``, "="},
	} {
		v := m.Mend(c.req, recovery.Draft{Text: c.text, Finish: recovery.FinishStop})
		switch {
		case c.want == "=":
			if v.Judgement != recovery.JudgePass {
				t.Errorf("%s: %+v", c.text, v)
			}
		case c.want == "":
			if v.Flaw == nil || v.Flaw.Kind != recovery.FlawContent {
				t.Errorf("%s: %+v", c.text, v)
			}
		case v.Text == nil || *v.Text != c.want:
			t.Errorf("%s: %+v %+v", c.text, v, v.Flaw)
		}
	}
	limited := request(t, `,"max_tokens":9,"response_format":{"type":"json_object"}`)
	if v := m.Mend(limited, recovery.Draft{Text: `{"a":1`, Finish: recovery.FinishLength}); v.Judgement != recovery.JudgePass {
		t.Errorf("cut by the client's own limit: %+v", v)
	}
	if v := m.Mend(object, recovery.Draft{Text: `{"a":1`, Finish: recovery.FinishLength}); v.Flaw == nil || v.Flaw.Kind != recovery.FlawTruncated || !v.Flaw.Limited {
		t.Errorf("%+v", v)
	}
	if v := m.Mend(object, recovery.Draft{Text: `nothing`, Shown: 7}); v.Judgement != recovery.JudgePass {
		t.Errorf("%+v", v)
	}
}

func TestConfig(t *testing.T) {
	if err := Defaults().Validate(); err != nil {
		t.Error(err)
	}
	bad := Config{Safe: []string{"["}, JSONStream: "x"}
	err := bad.Validate()
	for _, key := range []string{"safe[0]", "json_stream", "repetition.repetitions", "repetition.bytes", "repetition.unit"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v lacks %s", err, key)
		}
	}
}

// TestBoundedAnswer: the work for many large calls in one answer is bounded.
func TestBoundedAnswer(t *testing.T) {
	m, req := mender(), withTools(t, "")
	one := call("read_file", "{'file_path': '"+strings.Repeat("x", 800<<10)+"'}").Calls[0]
	took := func(calls int) uint64 {
		d := recovery.Draft{Calls: slices.Repeat([]recovery.DraftCall{one}, calls), Finish: recovery.FinishCalls}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v := m.Mend(req, d)
		runtime.ReadMemStats(&after)
		if (v.Flaw == nil) != (calls < 6) {
			t.Errorf("%d calls: %+v", calls, v.Repairs)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	took(1)
	if some, many := took(4), took(40); many > 2*some {
		t.Errorf("4 calls allocate %d bytes, 40 calls %d", some, many)
	}
}

// A safe name that was sent to the target instead of the tool's own name leads back to the
// tool, also for guarded tools; a similar name does not.
func TestSafeNames(t *testing.T) {
	long := "mcp__" + strings.Repeat("long_", 14) + "run_command"
	req := request(t, `,"tools":[{"type":"function","function":{"name":"files.delete","parameters":{"type":"object"}}},
 {"type":"function","function":{"name":"`+long+`","parameters":{"type":"object"}}},{"type":"function","function":{"name":"9lives"}}]`)
	safe := recovery.SafeNames([]string{"files.delete", long, "9lives"})
	m := New(Defaults())
	for own, name := range safe {
		if len(name) > 64 || strings.Contains(name, ".") {
			t.Errorf("%s is no safe name", name)
		}
		v := m.Mend(req, call(name, `{}`))
		if v.Judgement != recovery.JudgeReplace || v.Calls[0].Name != own || len(v.Repairs) != 1 || v.Repairs[0].Rule != ruleNameSafe {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := m.Mend(req, call("files_deleted", `{}`)); v.Judgement == recovery.JudgeReplace {
		t.Errorf("a guess: %+v", v)
	}
	for _, two := range [][]string{{"a.b", "a_b"}, {"a_b", "a.b"}, {"读取文件", "删除文件"}, {"files.list", "files/list"}} {
		got := recovery.SafeNames(two)
		if got[two[0]] == got[two[1]] || strings.HasPrefix(two[0], "a") && got["a_b"] != "a_b" {
			t.Errorf("two tools have one name: %v", got)
		}
	}
}
