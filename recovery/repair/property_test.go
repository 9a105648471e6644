package repair

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// seeds are valid and damaged arguments, which damage changes further.
var seeds = []string{
	`{"city":"Paris","days":3,"metric":true,"unit":"celsius","tags":["a","b c"],"limit":null,"range":{"from":1.5,"to":2}}`,
	`{"file_path":"C:\\temp\\x.go","start_line":7,"regex":"\\d+\\s"}`,
	`{"city":"S\u00e3o \"Paulo\" \ud83d\ude00 ' , : } ]","days":-1}`,
	"```json\n{'city': 'Paris', 'metric': True,}\n```", `{“city”: “Paris”}`, `{"arguments":"{\"city\":\"x\"}"}`, `{"city":["x"],"days":"3"}`,
	`<parameter=city>x</parameter>`, `get_weather(city='x', days=1)`, `{{"city":"x"}}`, `{"city":"x"}{"city":"x"}`, `{"City":"x","tags":"[1]"}`,
}

// damage makes n random changes to a text.
func damage(r *rand.Rand, s string, n int) string {
	const bits = "{}[]\",:'\\ \nabn01`<>|/“”"
	b := []rune(s)
	marks := []rune(bits)
	for range n {
		if len(b) == 0 {
			break
		}
		i := r.IntN(len(b))
		switch r.IntN(4) {
		case 0:
			b = slices.Delete(b, i, i+1)
		case 1:
			b = slices.Insert(b, i, marks[r.IntN(len(marks))])
		case 2:
			b[i] = marks[r.IntN(len(marks))]
		case 3:
			b = b[:i]
		}
	}
	return string(b)
}

// checkVerdict checks the properties of every verdict: see the rules in doc.go.
func checkVerdict(t *testing.T, m *Mender, req *transcript.Body, d recovery.Draft) {
	t.Helper()
	v := m.Mend(req, d)
	switch v.Judgement {
	case recovery.JudgePass:
		if !reflect.DeepEqual(v, recovery.Verdict{}) {
			t.Fatalf("%+v passes with a verdict that is not empty: %+v", d, v)
		}
		return
	case recovery.JudgeAsk:
		if v.Flaw == nil || v.Flaw.Kind == "" || v.Flaw.Problem == "" || len(v.Flaw.Quote) > maxQuote+4 || len(v.Flaw.Problem) > maxProblem+4 ||
			v.Flaw.Tool != "" && !req.HasTool(v.Flaw.Tool) {
			t.Fatalf("%+v: %+v", d, v.Flaw)
		}
		return
	}
	if len(v.Repairs) == 0 {
		t.Fatalf("%+v was replaced without a repair", d)
	}
	input := d.Text
	for _, c := range d.Calls {
		input += "\n" + c.Arguments + "\n" + c.Name
	}
	for _, c := range v.Calls {
		tool := toolNamed(req, c.Name)
		if tool == nil {
			continue
		}
		var out any
		if err := json.Unmarshal([]byte(c.Arguments), &out); err != nil {
			t.Fatalf("%+v became %q: %v", d, c.Arguments, err)
		}
		a := &argumentMender{schema: m.schema(tool.Parameters, fullBudget()), workLeft: fullBudget()}
		if !a.valid(c.Arguments) {
			t.Fatalf("%+v became %q, which is not valid: %s", d, c.Arguments, a.problem)
		}
		texts(out, func(s string) {
			if !comesFrom(s, input, string(tool.Parameters)) {
				t.Fatalf("%q became %q: %q was invented", input, c.Arguments, s)
			}
		})
	}
	again := recovery.Draft{Calls: v.Calls, Finish: recovery.FinishCalls}
	if len(v.Calls) > 0 {
		if w := m.Mend(req, again); w.Judgement != recovery.JudgePass {
			t.Fatalf("%+v became %+v, whose verdict is %+v %+v", d, v.Calls, w, w.Flaw)
		}
	}
}

func toolNamed(req *transcript.Body, name string) *transcript.Tool {
	for _, t := range req.Tools() {
		if t.Name == name {
			return &t
		}
	}
	return nil
}

// texts calls yield with every string and name in a value.
func texts(v any, yield func(string)) {
	switch v := v.(type) {
	case string:
		yield(v)
	case []any:
		for _, item := range v {
			texts(item, yield)
		}
	case map[string]any:
		for k, item := range v {
			yield(k)
			texts(item, yield)
		}
	}
}

// comesFrom reports whether s is part of the input, under up to four layers of
// escapes, or part of the schema.
func comesFrom(s, input, schema string) bool {
	if strings.Contains(schema, string(transcript.String(s))) {
		return true
	}
	// Remove escapes on both sides: a repair may spell them differently.
	plain := func(s string) string {
		s = strings.ToValidUTF8(s, "\ufffd")
		for range 4 {
			s = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\'`, `'`, `\/`, `/`, `\b`, "\b", `\f`, "\f", `\\`, `\`).Replace(unicodeEscapes(s))
		}
		return strings.Map(func(c rune) rune {
			if c == '\\' || c < 0x20 || c == 0xfffd {
				return -1
			}
			return c
		}, s)
	}
	return strings.Contains(plain(input), plain(s))
}

// unicodeEscapes decodes all \u escapes in a text.
func unicodeEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '\\' && i+6 <= len(s) && s[i+1] == 'u' && isHex(s[i+2:i+6]) {
			n := 6
			if i+12 <= len(s) && s[i+6] == '\\' && s[i+7] == 'u' && isHex(s[i+8:i+12]) {
				n = 12
			}
			if t, ok := transcript.Decode([]byte(`"` + s[i:i+n] + `"`)); ok {
				b.WriteString(t)
				i += n
				continue
			}
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

func TestMendKeepsItsRules(t *testing.T) {
	req, m := withTools(t, ""), mender()
	r := rand.New(rand.NewPCG(7, 7))
	tools := []string{"get_weather", "read_file", "bash", "GetWeather", "get_waether", "functions.read_file", ""}
	finishes := []recovery.Finish{recovery.FinishCalls, recovery.FinishLength, recovery.FinishStop, recovery.FinishNone}
	for range 8_000 {
		d := call(tools[r.IntN(len(tools))], damage(r, seeds[r.IntN(len(seeds))], r.IntN(4)))
		d.Finish = finishes[r.IntN(len(finishes))]
		checkVerdict(t, m, req, d)
	}
}

// Unescaped quotes inside a string never lead to a wrong repair: either the model is asked
// again, or the repair has the original meaning.
func TestUnescapedQuotes(t *testing.T) {
	req, m := withTools(t, ""), mender()
	r := rand.New(rand.NewPCG(9, 9))
	pieces := []string{"Q", "Q", "Q", "say", " ", " ", ",", ":", "}", "{", "]", "days", "Q: 1", "Q, Qdays", "Q: Q", "\n", "x", "Q Qunit", "Q Qdays", ", ", "1"}
	mended := 0
	for i := range 20_000 {
		quote := []string{`"`, `'`, `”`}[i%3]
		var text strings.Builder
		for range 1 + r.IntN(7) {
			text.WriteString(pieces[r.IntN(len(pieces))])
		}
		inner := strings.ReplaceAll(text.String(), "Q", quote)
		begin := strings.Replace(quote, "”", "“", 1)
		args := strings.NewReplacer("<", begin, ">", quote).Replace(`{<city>: <`) + inner + strings.NewReplacer("<", begin, ">", quote).Replace(`>, <days>: 2}`)
		v := m.Mend(req, call("get_weather", args))
		if v.Judgement != recovery.JudgeReplace {
			continue
		}
		mended++
		var got struct {
			City string
			Days int
		}
		if err := json.Unmarshal([]byte(v.Calls[0].Arguments), &got); err != nil {
			t.Fatal(err)
		}
		if got.City != strings.ReplaceAll(inner, `\n`, "\n") || got.Days != 2 {
			t.Errorf("%s became %s", args, v.Calls[0].Arguments)
		}
	}
	t.Logf("%d were repaired", mended)
}

// A valid call is never changed.
func TestValidIsUntouched(t *testing.T) {
	req, m := withTools(t, ""), mender()
	r := rand.New(rand.NewPCG(8, 8))
	found := 0
	for range 20_000 {
		text := damage(r, seeds[r.IntN(3)], r.IntN(3))
		var v struct {
			City *string `json:"city"`
		}
		if json.Unmarshal([]byte(text), &v) != nil || v.City == nil {
			continue
		}
		a := &argumentMender{schema: m.schema(toolNamed(req, "get_weather").Parameters, fullBudget()), workLeft: fullBudget()}
		if !a.valid(text) {
			continue
		}
		found++
		if got := m.Mend(req, call("get_weather", text)); !reflect.DeepEqual(got, recovery.Verdict{}) {
			t.Fatalf("%s: %+v", text, got)
		}
	}
	if found < 1000 {
		t.Errorf("only %d texts were valid", found)
	}
}

// timeLimit is generous, for slow and busy machines; quadratic work still exceeds it.
const timeLimit = 20 * time.Second

func TestHostileAnswers(t *testing.T) {
	req, m := withTools(t, ""), mender()
	const mega = 1 << 20
	for name, text := range map[string]string{
		"brackets":        strings.Repeat("[", 10*mega),
		"brackets 1 MB":   strings.Repeat("[", mega-10),
		"braces":          strings.Repeat("{", mega-10),
		"objects":         strings.Repeat(`{"a":`, mega/5-10),
		"quotes":          strings.Repeat(`{"`, mega/2-10),
		"strings":         strings.Repeat(`"`, mega-10),
		"backslashes":     `{"a":"` + strings.Repeat(`\`, mega-20),
		"fences":          strings.Repeat("```", mega/3-10),
		"comments":        "{" + strings.Repeat("/*", mega/2-10),
		"openers":         strings.Repeat("<tool_call>", mega/11-10),
		"functions":       strings.Repeat("<function=get_weather>", mega/22-10),
		"parameters":      "<function=bash>" + strings.Repeat("<parameter=a>b</parameter>", mega/26-10),
		"pairs":           "<tool_call>bash" + strings.Repeat("<arg_key>a</arg_key><arg_value>b</arg_value>", mega/44-10),
		"keywords":        "[get_weather(" + strings.Repeat("a=1,", mega/4-20),
		"repeated":        strings.Repeat(`{"city":1}`, mega/10-10),
		"members":         `{"city":1` + strings.Repeat(`,"city":1`, mega/9-10) + `}`,
		"tokens":          strings.Repeat("<|x|>", mega/5-10),
		"marks":           strings.Repeat(`{"_compressed":`, mega/15-10),
		"kimi":            strings.Repeat("a", mega-100) + "<|tool_call_argument_begin|>",
		"near name":       strings.Repeat("get_weathe", 20),
		"list of numbers": `{"city":[` + strings.Repeat("1e9,", mega/4-20) + `1]}`,
		"huge number":     `{"city":"x","days":1e1000000}`,
		"encoded":         strings.Repeat(`"\"`, mega/3-10),
		"smart":           strings.Repeat("{“", mega/4-10),
		"many braces":     strings.Repeat("{{", mega/2-10),
	} {
		for _, d := range []recovery.Draft{call("get_weather", text), call("bash", text), call(text, "{}"), {Text: text, Finish: recovery.FinishStop}} {
			began := time.Now()
			m.Mend(req, d)
			if took := time.Since(began); took > timeLimit {
				t.Errorf("%s takes %v", name, took)
			}
		}
		structured := request(t, `,"response_format":{"type":"json_object"}`)
		began := time.Now()
		m.Mend(structured, recovery.Draft{Text: text, Finish: recovery.FinishStop})
		if took := time.Since(began); took > timeLimit {
			t.Errorf("%s as content takes %v", name, took)
		}
	}
}

func TestHostileSchemas(t *testing.T) {
	doubling := func(n int) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
		for i := range n {
			next := "a" + itoa(i+1)
			b.WriteString(`"a` + itoa(i) + `":{"allOf":[{"$ref":"#/$defs/` + next + `"},{"$ref":"#/$defs/` + next + `"}]},`)
		}
		b.WriteString(`"a` + itoa(n) + `":{"type":"object"}}}`)
		return b.String()
	}
	enum := `{"type":"object","properties":{"l":{"type":"array","items":{"enum":[` + strings.TrimSuffix(strings.Repeat(`"abc",`, 20_000), ",") + `]}}}}`
	files := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(files, []byte(`{"required":["secret"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	m := mender()
	for name, c := range map[string]struct{ schema, args string }{
		"self":      {`{"$ref":"#"}`, `{}`},
		"cycle":     {`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `{}`},
		"recursive": {`{"type":"object","properties":{"c":{"$ref":"#"}}}`, `{"c":{"c":{"c":{}}}}`},
		"doubling":  {doubling(60), `{}`},
		"branching": {`{"type":"object","properties":{"c":{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}},"not":{"required":["x"]},"oneOf"` +
			`:[{"$ref":"#/$defs/n"}],"$defs":{"n":{"required":["z"]}}}`, strings.Repeat(`{"c":`, 60) + `{}` + strings.Repeat(`}`, 60)},
		"file":          {`{"$ref":"file://` + files + `"}`, `{}`},
		"remote":        {`{"$ref":"https://example.com/schema.json"}`, `{}`},
		"other dialect": {`{"$schema":"https://example.com/dialect","type":"object"}`, `{}`},
		"deep":          {strings.Repeat(`{"properties":{"a":`, 5000) + `{}` + strings.Repeat(`}}`, 5000), `{}`},
		"large":         {`{"description":"` + strings.Repeat("x", 10<<20) + `"}`, `{}`},
		"huge enum":     {enum, `{"l":[` + strings.TrimSuffix(strings.Repeat(`"x",`, 100_000), ",") + `]}`},
		"pattern": {`{"properties":{"a":{"pattern"` +
			`:"(a+)+$"}},"patternProperties":{"(x+x+)+y":{"type":"string"},"(?!a)":{"type":"string"}}}`, `{"a":"` + strings.Repeat("a", 10_000) + `!","` + strings.Repeat("x", 10_000) + `":1}`},
		"large pattern": {`{"patternProperties":{"` + strings.Repeat("(a|b){1,50}", 1000) + `":{}}}`, `{"aaa":1}`},
		"large numbers": {`{"properties":{"a":{"multipleOf":1e-1000000}}}`, `{"a":1e1000000}`},
		"not a schema":  {`{"type":"objekt"}`, `{}`},
		"draft 3":       {`{"type":"object","properties":{"a":{"required":true}}}`, `{}`},
		"many":          {`{"properties":{` + manyProperties(30_000) + `"z":{}}}`, `{}`},
	} {
		if _, err := transcript.Parse([]byte(`{"tools":[{"type":"function","function":{"name":"f","parameters":`+c.schema+`}}]}`), transcript.Chat, transcript.Limits{Depth: 20_000}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		req, _ := transcript.Parse([]byte(`{"tools":[{"type":"function","function":{"name":"look_up","parameters":`+c.schema+`}}]}`), transcript.Chat, transcript.Limits{Depth: 20_000})
		began := time.Now()
		v := m.Mend(req, call("look_up", c.args))
		if v.Judgement == recovery.JudgeAsk && name != "self" && name != "cycle" && name != "branching" {
			t.Errorf("%s: %+v", name, v.Flaw)
		}
		m.Mend(req, call("look_up", c.args+","))
		m.Mend(req, call("look_up", strings.Replace(c.args, "{", `{"q":"1",`, 1)))
		if took := time.Since(began); took > timeLimit {
			t.Errorf("%s takes %v", name, took)
		}
	}
	if n := m.schemas.Len(); n > maxCachedSchemas {
		t.Errorf("%d schemas are cached", n)
	}
}

func itoa(n int) string {
	raw, _ := json.Marshal(n)
	return string(raw)
}

func manyProperties(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"p` + itoa(i) + `":{},`)
	}
	return b.String()
}

func TestConcurrentMends(t *testing.T) {
	req, m := withTools(t, ""), mender()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for k := range 50 {
				other := request(t, `,"tools":[{"type":"function","function":{"name":"get_x","parameters":{"title":"`+itoa(k%7)+`"}}}]`)
				if v := m.Mend(req, call("get_weather", seeds[0])); v.Judgement != recovery.JudgePass {
					t.Errorf("%d: %+v", i, v)
				}
				if v := m.Mend(other, call("get_x", `{'a':1}`)); v.Judgement != recovery.JudgeReplace {
					t.Errorf("%d: %+v", i, v)
				}
			}
		})
	}
	group.Wait()
}

// The cache stays within its bounds and evicts the least recently used schema.
func TestSchemaCache(t *testing.T) {
	c := mender()
	first := []byte(`{"title":"first"}`)
	kept := c.schema(first, fullBudget())
	for i := range 3 * maxCachedSchemas {
		c.schema([]byte(`{"title":"`+itoa(i)+`"}`), fullBudget())
		if c.schema(first, fullBudget()) != kept {
			t.Fatalf("the schema in use was evicted after %d", i)
		}
	}
	big := strings.Repeat("x", maxSchema-100)
	for i := range 100 {
		c.schema([]byte(`{"title":"`+itoa(i)+`","description":"`+big+`"}`), fullBudget())
	}
	if n := c.schemas.Len(); n > maxCachedBytes/(maxSchema-100) {
		t.Errorf("%d large schemas are cached", n)
	}
}

func FuzzMend(f *testing.F) {
	for _, s := range seeds {
		f.Add("get_weather", s, "", "tool_calls")
	}
	f.Add("", "", `<tool_call>{"name":"get_weather","arguments":{"city":"x"}}</tool_call>`, "stop")
	f.Add("", "", `[get_weather(city='x')]`, "stop")
	req, m := withTools(f, ""), mender()
	f.Fuzz(func(t *testing.T, name, args, text, reason string) {
		d := call(name, args)
		if text != "" {
			d.Calls, d.Text = nil, text
		}
		d.Finish = finish(reason)
		checkVerdict(t, m, req, d)
	})
}

func FuzzReadTolerant(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, text string, close bool) {
		v, rules, err := readTolerant(text, close)
		valid := transcript.Valid([]byte(text), maxDepth) == nil
		if err != nil {
			if valid && err != errAmbiguous {
				t.Fatalf("%q is valid: %v", text, err)
			}
			return
		}
		out := v.render()
		if err := transcript.Valid([]byte(out), 0); err != nil {
			t.Fatalf("%q became %q: %v", text, out, err)
		}
		if !valid && len(rules) == 0 && !strings.HasPrefix(text, "\ufeff") {
			t.Fatalf("%q was mended to %q without a rule", text, out)
		}
		if valid && (len(rules) > 1 || len(rules) == 1 && rules[0] != ruleDuplicateNames) {
			t.Fatalf("%q is valid, but was mended by %v", text, rules)
		}
		if again, rules, err := readTolerant(out, false); err != nil || len(rules) > 0 || !again.equal(v) {
			t.Fatalf("%q became %q, which gives %v %v", text, out, rules, err)
		}
	})
}

func FuzzDialects(f *testing.F) {
	for _, s := range openers {
		f.Add("x " + s + `{"name":"get_weather","arguments":{"city":"x"}}`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := callFinder{offers: func(name string) bool { return name == "get_weather" }}.find(text)
		before, calls := found.before, found.calls
		if len(calls) > maxCalls || !strings.HasPrefix(text, before) {
			t.Fatalf("%q: %q %v", text, before, calls)
		}
		for _, c := range calls {
			if c.args != "" && !c.tagged && len(c.args) > 2*len(text)+16 {
				t.Fatalf("%q: arguments %q", text, c.args)
			}
		}
	})
}

// fullBudget returns the work of a new answer.
func fullBudget() *int {
	n := maxAnswerWork
	return &n
}

// TestWorkOfAnAnswer: all calls of an answer share one budget; when it is used up, further
// calls pass unchanged.
func TestWorkOfAnAnswer(t *testing.T) {
	const properties, calls = 1900, 40
	var tools []string
	var d recovery.Draft
	for i := range calls {
		schema := `{"title":"` + itoa(i) + `","type":"object","required":["n"],"properties":{"n":{"type":"integer"}`
		for k := range properties {
			schema += `,"p` + itoa(k) + `":{}`
		}
		tools = append(tools, `{"type":"function","function":{"name":"read_`+itoa(i)+`","parameters":`+schema+`}}}}`)
		d.Calls = append(d.Calls, recovery.DraftCall{ID: itoa(i), Kind: transcript.KindFunction, Name: "read_" + itoa(i), Arguments: `{"n":"1"}`})
	}
	body := recoverytest.Parse(t, `{"model":"m","messages":[],"tools":[`+strings.Join(tools, ",")+`]}`, transcript.Chat)
	d.Finish = recovery.FinishCalls
	v := mender().Mend(body, d)
	if most := maxAnswerWork/(compileWork*properties) + 1; v.Judgement != recovery.JudgeReplace || len(v.Repairs) == 0 || len(v.Repairs) > most {
		t.Errorf("%v with %d of %d calls mended, at most %d should be", v.Judgement, len(v.Repairs), calls, most)
	}
}
