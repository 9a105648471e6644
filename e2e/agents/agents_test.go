package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A mistake in the table would make a scenario pass or fail for the wrong reason.
func TestScenarios(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Scenarios() {
		if !regexp.MustCompile(`^[a-z0-9-]+$`).MatchString(s.Name) || names[s.Name] {
			t.Errorf("%s: the name is not unique and simple", s.Name)
		}
		names[s.Name] = true
		if s.Want == "" || len(s.Prompts) == 0 || s.Play == nil || len(s.Through) == 0 {
			t.Errorf("%s: want, prompts, play or checks are missing", s.Name)
		}
		for name := range s.Files {
			if !filepath.IsLocal(name) {
				t.Errorf("%s: the file %s is not in the task's folder", s.Name, name)
			}
		}
		of := slices.Clone(s.Clients)
		for c := range s.StraightOf {
			of = append(of, c)
		}
		for _, c := range of {
			if !slices.Contains(Clients(), c) {
				t.Errorf("%s: no client is called %s", s.Name, c)
			}
		}
		if got := len(s.Checks(LoopPython, true)); got <= len(Always()) {
			t.Errorf("%s: only %d checks through the gateway", s.Name, got)
		}
	}
}

// The long tasks must outgrow the window, and nothing else may.
func TestSizes(t *testing.T) {
	for _, s := range Scenarios() {
		size := 0
		for _, text := range s.Files {
			size += len(text)
		}
		if over := size/4 > window; over != strings.HasPrefix(s.Name, "overflow") {
			t.Errorf("%s: the files have %d tokens, the window %d", s.Name, size/4, window)
		}
	}
}

// answers asks a model that plays p, and returns what a client reads.
func answers(t *testing.T, p Play, base func(*Model) string, request string) (*Model, int, []byte, error) {
	t.Helper()
	m, err := NewModel()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	m.Add("m", p)
	res, err := http.Post(base(m)+"/chat/completions", "application/json", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return m, res.StatusCode, body, err
}

const (
	streamRequest = `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"read_file"}}]}`
	wholeRequest  = `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"tools":[{"type":"function","function":{"name":"read"}}]}`
)

func TestModel(t *testing.T) {
	reply := func(r Reply) Play {
		return func(q *Request) Reply { r.Calls = append(r.Calls[:0:0], plan(q)); return r }
	}
	for name, tt := range map[string]struct {
		play    Play
		request string
		status  int
		has     []string
		lacks   []string
		broken  bool
	}{
		"stream":        {reply(Reply{Text: "Hello"}), streamRequest, 200, []string{`"content":"Hello"`, `"name":"read_file"`, `"finish_reason":"tool_calls"`, "data: [DONE]\n\n"}, []string{`"usage"`}, false},
		"usage":         {reply(Reply{}), strings.Replace(streamRequest, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1), 200, []string{`"usage":null`, `"total_tokens"`}, nil, false},
		"whole":         {reply(Reply{}), wholeRequest, 200, []string{`"name":"read"`, `{\"path\":\"notes/plan.txt\"}`, `"usage":{`}, nil, false},
		"cut stream":    {reply(Reply{Cut: 0.6}), streamRequest, 200, []string{`"tool_calls"`}, []string{`"finish_reason":"tool_calls"`, "[DONE]"}, true},
		"ended stream":  {reply(Reply{Cut: 0.6, Clean: true}), streamRequest, 200, []string{`"tool_calls"`}, []string{`"finish_reason":"tool_calls"`, "[DONE]"}, false},
		"cut answer":    {reply(Reply{Cut: 0.6}), wholeRequest, 200, nil, []string{`"usage"`}, true},
		"refusal":       {overflow, streamRequest, 400, []string{"maximum context length is 32000 tokens", "context_length_exceeded"}, nil, false},
		"length":        {reply(Reply{Finish: "length"}), wholeRequest, 200, []string{`"finish_reason":"length"`}, nil, false},
		"without words": {func(*Request) Reply { return Reply{} }, streamRequest, 200, []string{`"finish_reason":"stop"`}, []string{`"tool_calls"`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, status, body, err := answers(t, tt.play, (*Model).URL, tt.request)
			if status != tt.status || (err != nil) != tt.broken {
				t.Errorf("status %d, error %v", status, err)
			}
			for _, h := range tt.has {
				if !bytes.Contains(body, []byte(h)) {
					t.Errorf("no %q in %s", h, body)
				}
			}
			for _, l := range tt.lacks {
				if bytes.Contains(body, []byte(l)) {
					t.Errorf("%q in %s", l, body)
				}
			}
			rec := m.Records("m")
			if len(rec) != 1 || string(rec[0].Request.Raw) != tt.request || !bytes.Equal(rec[0].Sent, body) {
				t.Errorf("recorded %+v", rec)
			}
		})
	}
}

// post sends a request, and returns the answer.
func post(t *testing.T, url, body string) string {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// A response is made from the same replies, and its items are held to the rules.
func TestResponsesModel(t *testing.T) {
	m, err := NewModel()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	m.Add("m", func(q *Request) Reply {
		if q.Turns() > 0 {
			return done("%d turns, %q", q.Turns(), q.Messages[len(q.Messages)-1].Text)
		}
		return Reply{Text: "Now.", Calls: []Call{plan(q), q.run("ls")}, Cut: 0.5 * float64(min(q.N, 1)), Clean: true}
	})
	ask := func(request string) string {
		t.Helper()
		return post(t, m.URL()+"/responses", `{"model":"m","tools":[{"type":"function","name":"exec_command"}],`+request+`}`)
	}
	var made struct {
		Output []json.RawMessage
	}
	if err := json.Unmarshal([]byte(ask(`"input":"go"`)), &made); err != nil || len(made.Output) != 4 {
		t.Fatalf("%v, %d items", err, len(made.Output))
	}
	if cut := ask(`"input":"go","stream":true`); strings.Contains(cut, "response.completed") || !strings.Contains(cut, "reasoning_summary_text.delta") {
		t.Errorf("not cut: %s", cut)
	}
	var input []string
	for _, raw := range made.Output {
		input = append(input, string(raw))
	}
	reference := `{"type":"item_reference","id":"` + strings.Split(input[0], `"`)[3] + `"}`
	outputs := func(n int) (out []string) {
		for _, c := range m.Records("m")[0].Reply.Calls[:n] {
			out = append(out, `{"type":"function_call_output","call_id":"`+c.ID+`","output":"well"}`)
		}
		return out
	}
	list := func(items ...string) string {
		return `"input":[{"role":"user","content":"go"},` + strings.Join(items, ",") + `]`
	}
	for name, tt := range map[string]struct{ request, want string }{
		"next turn":      {list(append(input, outputs(2)...)...), `1 turns, \"well\"`},
		"by a reference": {list(append(append([]string{reference}, input[1:]...), outputs(2)...)...), `1 turns, \"well\"`},
		"no output":      {list(append(input, outputs(1)...)...), "No tool output found"},
		"no reasoning":   {list(append(input[1:len(input):len(input)], outputs(2)...)...), "without its required 'reasoning' item"},
	} {
		if got := ask(tt.request); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	broken := 0
	for _, r := range m.Records("m") {
		if r.Broken {
			broken++
		}
	}
	if broken != 2 || ruled(&Evidence{Model: m.Records("m")}) == nil {
		t.Errorf("%d requests are recorded as broken", broken)
	}
}

// The tap must see what the client sends and gets, also when it breaks.
func TestTap(t *testing.T) {
	for name, tt := range map[string]struct {
		reply  Reply
		broken bool
	}{"well": {done("Hello"), false}, "broken": {Reply{Text: strings.Repeat("Hello", 100), Cut: 0.5}, true}} {
		t.Run(name, func(t *testing.T) {
			var tap *Tap
			_, status, body, err := answers(t, func(*Request) Reply { return tt.reply }, func(m *Model) string {
				var err error
				if tap, err = NewTap("http://" + m.listen.Addr().String()); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = tap.Close() })
				return tap.URL()
			}, streamRequest)
			x := tap.Exchanges("m")
			if len(x) != 1 || status != 200 || x[0].Status != 200 || string(x[0].Request) != streamRequest || !bytes.Equal(x[0].Response, body) {
				t.Fatalf("status %d, body %q, seen %+v", status, body, x)
			}
			if (err != nil) != tt.broken || (x[0].Broken != nil) != tt.broken {
				t.Errorf("client: %v, tap: %v", err, x[0].Broken)
			}
		})
	}
}

// conversation is a request whose messages are these.
func conversation(t *testing.T, messages string) *Request {
	t.Helper()
	r, err := ParseRequest([]byte(`{"model":"m","tools":[{"function":{"name":"read_file"}}],"messages":[` + messages + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	asks   = `{"role":"user","content":"go"}`
	calls1 = `,{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"read_file","arguments":"{}"}}]}`
	result = `,{"role":"tool","tool_call_id":"a","content":"well"}`
	noted  = `,{"role":"user","content":"[gateway note, not from the user] Do it."}`
	again  = `,{"role":"user","content":"[gateway note, not from the user] Your last answer was discarded."}`
	marked = `,{"role":"tool","tool_call_id":"a","content":"{\"_compressed\": true}"}`
)

// Every check must fail where what it looks for is wrong.
func TestChecks(t *testing.T) {
	record := func(messages string, status int) Record {
		return Record{Request: conversation(t, messages), Status: status}
	}
	run := func(o Outcome) *Evidence { return &Evidence{Mode: Streamed, Outcomes: []Outcome{o}} }
	model := func(r ...Record) *Evidence { return &Evidence{Model: r, Outcomes: []Outcome{{}}} }
	client := func(x ...Exchange) *Evidence { return &Evidence{Sent: x, Outcomes: []Outcome{{}}} }
	own := func(status int, did, body string) *Evidence {
		return client(Exchange{Status: status, Header: http.Header{"X-Rebound-Recovery": {did}}, Response: []byte(body)})
	}
	passed := func(request, response, attempts, did string) *Evidence {
		e := model(Record{Request: &Request{Raw: []byte("{}")}, Sent: []byte("answer")})
		h := http.Header{"X-Rebound-Attempts": {attempts}}
		if did != "" {
			h.Set("X-Rebound-Recovery", did)
		}
		e.Sent = []Exchange{{Request: []byte(request), Response: []byte(response), Header: h}}
		return e
	}
	stream := []byte(`{"content":"hello"}{"tool_calls":[]}`)
	reads := func(gap time.Duration) *Evidence {
		zero := time.Unix(0, 0)
		return client(Exchange{Response: stream, Reads: []Read{{zero, 19}, {zero.Add(gap), len(stream)}}})
	}
	first := asks + calls1 + result
	stop := `"chatcmpl-rebound-1" "finish_reason":"stop"`
	for name, tt := range map[string]struct {
		check Check
		e     *Evidence
		good  bool
	}{
		"says it":             {says("a", "b"), run(Outcome{OK: true, Texts: []string{"x", "b a"}}), true},
		"says it too early":   {says("a"), run(Outcome{OK: true, Texts: []string{"a", "b"}}), false},
		"fails all the same":  {says("a"), run(Outcome{Texts: []string{"a"}}), false},
		"fails so":            {fails("KeyError"), run(Outcome{ErrorType: "KeyError"}), true},
		"fails otherwise":     {fails("KeyError"), run(Outcome{ErrorType: "ValueError"}), false},
		"does not fail":       {fails(""), run(Outcome{OK: true}), false},
		"executed":            {executed(readPlan), run(Outcome{Executed: []Call{{Name: "read", Arguments: `{ "path": "notes/plan.txt" }`}}}), true},
		"executed twice":      {executed(readPlan), run(Outcome{Executed: []Call{readPlan, readPlan}}), false},
		"executed a part":     {executed(readPlan), run(Outcome{Executed: []Call{{Name: "read_file", Arguments: `{"path":"notes"}`}}}), false},
		"another tool":        {noneElse(readPlan), run(Outcome{Executed: []Call{{Name: "run_command", Arguments: readPlan.Arguments}}}), false},
		"nothing ran":         {noneElse(readPlan), run(Outcome{}), true},
		"a part ran":          {ranPart, run(Outcome{Executed: []Call{{Name: "read_file", Arguments: `{"path":"notes"}`}}}), true},
		"no part ran":         {ranPart, run(Outcome{Executed: []Call{readPlan}}), false},
		"honest error":        {wholeOrHonest([]string{"a"}, readPlan), run(Outcome{}), true},
		"dishonest end":       {wholeOrHonest([]string{"a"}, readPlan), run(Outcome{OK: true, Texts: []string{"a"}}), false},
		"repeated":            {repeated(readPlan, 2), run(Outcome{Executed: []Call{readPlan, ranCat, readPlan}}), true},
		"not repeated":        {repeated(readPlan, 2), run(Outcome{Executed: []Call{readPlan}}), false},
		"asked":               {asked(1, 1), model(record(asks, 200)), true},
		"asked too often":     {asked(1, 1), model(record(asks, 200), record(asks, 200)), false},
		"refused":             {refused(1, 1), model(record(asks, 400), record(asks, 200)), true},
		"refused twice":       {refused(0, 9), model(record(asks, 400), record(asks, 400)), false},
		"never refused":       {refused(1, 1), model(record(asks, 200)), false},
		"rewritten onwards":   {compressedOnwards, model(record(asks, 200), record(first, 400), record(asks+calls1+marked, 200)), true},
		"not rewritten later": {compressedOnwards, model(record(first, 400), record(first, 200)), false},
		"rewritten too soon":  {compressedOnwards, model(record(asks+calls1+marked, 200)), false},
		"guided":              {guided("Do it"), model(record(asks, 200), record(first+noted, 200)), true},
		"not guided":          {guided("Do it"), model(record(asks, 200)), false},
		"steady":              {steady(0), model(record(asks, 200), record(first, 200)), true},
		"not steady":          {steady(0), model(record(asks+calls1+marked, 200), record(first, 200)), false},
		"paired":              {paired, model(record(first, 200)), true},
		"orphan":              {paired, model(record(asks+result, 200)), false},
		"no result":           {paired, model(record(asks+calls1+noted, 200)), false},
		"no result at last":   {paired, model(record(asks+calls1, 200)), false},
		"one note":            {oneNote, model(record(first+noted, 200)), true},
		"two notes":           {oneNote, model(record(first+noted+noted, 200)), false},
		"a note of each kind": {oneNote, model(record(first+noted+again, 200)), true},
		"asked again twice":   {oneNote, model(record(first+again+again, 200)), false},
		"no trace":            {noTrace, client(Exchange{Request: []byte("{}")}), true},
		"trace in a request":  {noTrace, client(Exchange{Request: []byte("[gateway note")}), false},
		"trace in a history":  {noTrace, run(Outcome{OK: true, History: "_compressed"}), false},
		"no history":          {noTrace, run(Outcome{OK: true}), false},
		"nothing seen":        {fromTheClient, client(), false},
		"stopped":             {stopped, own(200, "session_stopped", stop), true},
		"stopped in silence":  {stopped, own(200, "", stop), false},
		"stopped with 500":    {stopped, own(500, "session_stopped", stop), false},
		"not stopped":         {stopped, own(200, "", `"chatcmpl-1"`), false},
		"no proper end":       {stopped, own(200, "session_stopped", `"chatcmpl-rebound-1"`), false},
		"untouched":           {untouched, passed("{}", "answer", "1", ""), true},
		"request changed":     {untouched, passed("{ }", "answer", "1", ""), false},
		"answer changed":      {untouched, passed("{}", "answer2", "1", ""), false},
		"attempts":            {untouched, passed("{}", "answer", "2", ""), false},
		"something was done":  {untouched, passed("{}", "answer", "1", "resend"), false},
		"said once":           {saidOnce("go"), model(record(first, 200)), true},
		"said twice":          {saidOnce("go"), model(record(asks+","+asks, 200)), false},
		"leak":                {noLeak, client(Exchange{Response: []byte("<tool_call>")}), false},
		"flows":               {flows, reads(thoughtPause), true},
		"is held":             {flows, reads(time.Millisecond), false},
		"outgrew":             {outgrew(1), client(Exchange{Request: make([]byte, 4*window)}), true},
		"did not outgrow":     {outgrew(1), client(Exchange{Request: make([]byte, 4*window-4)}), false},
		"first says":          {firstSays("a"), run(Outcome{Texts: []string{"a", "b"}}), true},
		"first does not say":  {firstSays("b"), run(Outcome{Texts: []string{"a", "b"}}), false},
		"degraded":            {degraded("a", readPlan), run(Outcome{OK: true, Texts: []string{"b"}}), true},
	} {
		if err := tt.check(tt.e); (err == nil) != tt.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	fine := model(record(asks, 200), record(first, 200))
	fine.Outcomes = []Outcome{{OK: true, Texts: []string{"a"}, Executed: []Call{readPlan}}}
	if degraded("a", readPlan)(fine) == nil {
		t.Error("what is as good as it can be counts as degraded")
	}
	if err := errors.Join(streamed(ranPart)(&Evidence{Mode: Whole, Outcomes: []Outcome{{}}})); err != nil {
		t.Errorf("a check of streams looks at a whole answer: %v", err)
	}
}

// A note is the gateway's, wherever it stands, and never the user's prompt.
func TestNotes(t *testing.T) {
	r := conversation(t, asks+calls1+`,{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"bad\n[gateway note, not from the user] It failed."}]}`+noted)
	if r.Note() != "[gateway note, not from the user] Do it." || r.Notes() != 2 || r.Prompt() != "go" || r.Reasked() {
		t.Errorf("note %q, %d notes, prompt %q, asked again: %v", r.Note(), r.Notes(), r.Prompt(), r.Reasked())
	}
}
