package transcript

import (
	"slices"
	"strings"
	"testing"
)

// turn is a request as an agent sends it in its second turn.
const turn = `{"model":"gpt-5","instructions":"Be brief.","input":[
{"type":"message","role":"developer","content":[{"type":"input_text","text":"Rules."}]},
{"role":"user","content":"List them."},
{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I look."}],"encrypted_content":"abc"},
{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[]}]},
{"type":"function_call","id":"fc_1","call_id":"call_1","name":"ls","arguments":"{\"path\":\"/\"}"},
{"type":"custom_tool_call","id":"ctc_1","call_id":"call_2","name":"apply","input":"*** Begin"},
{"type":"new_thing","id":"nt_1","payload":{"a":1}},
{"type":"function_call_output","call_id":"call_1","output":"a\nb"},
{"type":"custom_tool_call_output","call_id":"call_2","output":[{"type":"input_text","text":"done"},{"type":"input_image","image_url":"data:image/png;base64,AA"}]}
],"tools":[{"type":"function","name":"ls","parameters":{"type":"object"},"strict":true},{"type":"custom","name":"apply"},{"type":"web_search"},
{"type":"namespace","name":"crm","tools":[{"type":"function","name":"find","parameters":{"type":"object"}}]}],
"tool_choice":{"type":"function","name":"ls"},"max_output_tokens":900,"parallel_tool_calls":false,"reasoning":{"effort":"low"},
"text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object"}}},"store":false,"stream":true,"prompt_cache_key":"k","include":["reasoning.encrypted_content"]}`

func parseResponses(t testing.TB, raw string) *Body {
	t.Helper()
	b, err := Parse([]byte(raw), Responses, Limits{})
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return b
}

func TestResponsesRead(t *testing.T) {
	b := parseResponses(t, turn)
	var roles, texts []string
	for i, m := range b.Messages() {
		roles, texts = append(roles, m.Role), append(texts, m.Text())
		if m.Index != i || b.Raw()[m.Start] != '{' || b.Raw()[m.End-1] != '}' {
			t.Errorf("message %d: index %d, bytes %s", i, m.Index, m.Raw())
		}
	}
	if want := []string{RoleDeveloper, RoleUser, RoleAssistant, RoleTool, RoleTool}; !slices.Equal(roles, want) {
		t.Fatalf("roles %q", roles)
	}
	if want := []string{"Rules.", "List them.", "I look.", "a\nb", "done"}; !slices.Equal(texts, want) {
		t.Errorf("texts %q", texts)
	}
	list := b.Messages()
	calls := list[2].ToolCalls()
	if len(calls) != 2 || calls[0].ID != "call_1" || calls[0].Name != "ls" || calls[0].Text() != `{"path":"/"}` || calls[1].Name != "apply" || calls[1].Text() != "*** Begin" {
		t.Errorf("calls %+v", calls)
	}
	if at := calls[0].Span; string(b.Raw()[at.Start:at.End]) != `"{\"path\":\"/\"}"` {
		t.Errorf("the arguments stand at %v", at)
	}
	if list[3].ToolCallID() != "call_1" || list[4].ToolCallID() != "call_2" {
		t.Error("results answer other calls")
	}
	if s := list[2].Shape(); !s.Reasoning || s.Texts != 1 || s.Media != 0 {
		t.Errorf("shape of the turn %+v", s)
	}
	if s := list[4].Shape(); s.Media != 1 || s.Texts != 1 || !s.Parts {
		t.Errorf("shape of the result %+v", s)
	}
	if got := string(b.System()); got != "Be brief.\nRules." {
		t.Errorf("instructions %q", got)
	}
	var names []string
	for _, tool := range b.Tools() {
		names = append(names, tool.Name)
		if tool.Name == "ls" && (!tool.Callable() || string(b.Raw()[tool.Strict.Start:tool.Strict.End]) != "true" || string(b.Raw()[tool.Span.Start:tool.Span.End]) != `{"type":"object"}`) {
			t.Errorf("tool %+v", tool)
		}
		if tool.Name == "apply" && tool.Callable() {
			t.Error("free text is no object")
		}
	}
	if want := []string{"ls", "apply", "", "crm.find"}; !slices.Equal(names, want) {
		t.Errorf("tools %q", names)
	}
	form, schema := b.ContentForm()
	field, limit, _ := b.OutputLimit()
	if c := b.ToolChoice(); c.Choice != ChoiceNamed || c.Name != "ls" || b.ParallelCalls() || form != FormSchema || string(schema) != `{"type":"object"}` ||
		!b.ResponseFormat() || !b.Reasoning() || !b.Streaming() || b.CacheKey() != "k" || field != "max_output_tokens" || limit != 900 || b.N() != 1 || b.Model() != "gpt-5" {
		t.Errorf("options: %+v %v %s %s %d", c, form, schema, field, limit)
	}
	if s := b.State(); s != (State{}) || !s.MayMove() || !s.MayContinue(false) {
		t.Errorf("state %+v", s)
	}
}

func TestResponsesInput(t *testing.T) {
	for raw, want := range map[string]string{
		`{"input":"hi"}`:            `{"input":"hi\n\nnote"}`,
		`{"model":"m"}`:             "no history",
		`{"input":null}`:            "no history",
		`{"input":[]}`:              `{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"note"}]}]}`,
		`{"input":7}`:               "invalid",
		`{"input":[7]}`:             "invalid",
		`{"input":[],"model":7}`:    "invalid",
		`{"input":[],"stream":"x"}`: "invalid",
		`{"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}]}`: `{"input":[{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_text","text":"note"}]}]}`,
		`{"input":[{"type":"function_call_output","call_id":"1","output":"x"}]}`:    `{"input":[{"type":"function_call_output","call_id":"1","output":"x"},{"type":"message","role":"user","content":[{"type":"input_text","text":"note"}]}]}`,
		`{"input":[{"role":"assistant","content":"x"}]}`:                            `{"input":[{"role":"assistant","content":"x"},{"type":"message","role":"user","content":[{"type":"input_text","text":"note"}]}]}`,
	} {
		b, err := Parse([]byte(raw), Responses, Limits{})
		if err != nil {
			if want != "invalid" {
				t.Errorf("%s: %v", raw, err)
			}
			continue
		}
		b.Messages()
		got, err := b.Edit().AppendNote("note").Apply()
		if err != nil && strings.Contains(err.Error(), "no history") {
			got = []byte("no history")
		}
		if string(got) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", raw, err, got, want)
		}
	}
	b := parseResponses(t, `{"input":"hi"}`)
	if list := b.Messages(); len(list) != 1 || list[0].Role != RoleUser || list[0].Text() != "hi" {
		t.Errorf("%+v", list)
	}
	got, err := b.Edit().Interrupt("I was", "go on").Apply()
	if want := `{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I was"}]},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"go on"}]}]}`; err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	if got, err := b.Edit().SetText(0, "ho", true).Apply(); err != nil || string(got) != `{"input":"ho"}` {
		t.Errorf("%v: %s", err, got)
	}
}

func TestResponsesState(t *testing.T) {
	for raw, want := range map[string]State{
		`{"input":"x"}`:                                                             {Stored: true},
		`{"input":"x","store":false}`:                                               {},
		`{"input":"x","store":null}`:                                                {Stored: true},
		`{"input":"x","previous_response_id":"resp_1"}`:                             {Kind: Chained, Stored: true},
		`{"input":"x","previous_response_id":null}`:                                 {Stored: true},
		`{"input":"x","conversation":{"id":"conv_1"}}`:                              {Kind: Chained, Stored: true, Single: true},
		`{"input":"x","background":true}`:                                           {Stored: true, Single: true, Job: true},
		`{"input":"x","prompt":{"id":"pmpt_1"}}`:                                    {Stored: true, Bound: true},
		`{"input":[{"type":"item_reference","id":"msg_1"}]}`:                        {Kind: Referencing, Stored: true},
		`{"input":[{"id":"msg_1"}]}`:                                                {Kind: Referencing, Stored: true},
		`{"input":[{"type":null,"id":"msg_1"}],"store":false}`:                      {Kind: Referencing},
		`{"input":[{"type":"compaction","encrypted_content":"x"}],"store":false}`:   {Bound: true},
		`{"input":[{"role":"user","content":"x"},{"type":"compaction_trigger"}]}`:   {Stored: true, Closed: true},
		`{"input":[{"type":"reasoning","id":"rs_1","encrypted_content":"x"}]}`:      {Stored: true, Resends: true},
		`{"input":[{"role":"assistant","id":"msg_1","content":"x"}]}`:               {Stored: true, Resends: true},
		`{"input":[{"role":"assistant","id":"msg_1","content":"x"}],"store":false}`: {},
		`{"input":[{"role":"assistant","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`: {Stored: true, Resends: true},
		`{"input":[{"role":"user","content":"x"},{"role":"assistant","content":"x"},{"role":"user","content":"x"}]}`:        {Stored: true},
		`{"input":[{"role":"user","id":"msg_1","content":"x"},{"role":"assistant","id":"msg_rebound_1","content":"x"}]}`:    {Stored: true},
		`{"input":[{"type":"item_reference","id":"x"}],"previous_response_id":"resp_1"}`:                                    {Kind: Chained, Stored: true},
	} {
		if got := parseResponses(t, raw).State(); got != want {
			t.Errorf("%s: %+v, want %+v", raw, got, want)
		}
	}
}

func TestResponsesEdit(t *testing.T) {
	b := parseResponses(t, turn)
	for name, tt := range map[string]struct {
		edit    func(e *Editor)
		lost    []string // none of these
		present []string
	}{
		"a turn goes whole": {func(e *Editor) { e.RemoveMessage(2) }, []string{"rs_1", "msg_1", "fc_1", "ctc_1", "nt_1"}, []string{`"call_1","output"`}},
		"reasoning goes":    {func(e *Editor) { e.DropReasoning(nil) }, []string{"rs_1", "msg_1", "fc_1", "ctc_1", "nt_1", "encrypted_content\":"}, []string{`"phase":"commentary"`, `"name":"ls"`}},
		"ids go":            {func(e *Editor) { e.DropIDs() }, []string{`"rs_1"`, `"fc_1"`}, []string{`"encrypted_content":"abc"`, `"call_1"`}},
		"a summary in its place": {func(e *Editor) {
			e.RemoveMessage(2).RemoveMessage(3).RemoveMessage(4).AppendMessage(b.TextMessage(RoleUser, "S", nil))
		}, []string{"fc_1", "call_1"}, []string{`"text":"S"`}},
		"words of a turn":          {func(e *Editor) { e.SetText(2, "NEW", true) }, []string{`"text":"I look.","ann`}, []string{`"text":"NEW","annotations":[]`, "rs_1", "fc_1"}},
		"a result":                 {func(e *Editor) { e.SetText(3, "NEW", false) }, []string{`a\nb`}, []string{`"call_id":"call_1","output":"NEW"`}},
		"a result with a picture":  {func(e *Editor) { e.SetText(4, "NEW", false) }, []string{"input_image"}, []string{`"output":[{"type":"input_text","text":"NEW"}]`}},
		"without pictures":         {func(e *Editor) { e.DropMedia(4, "why") }, []string{`"input_image"`}, []string{`[input_image removed: why]`}},
		"another id":               {func(e *Editor) { e.SetResultID(3, "call_9") }, []string{`"call_id":"call_1","output"`}, []string{`"call_id":"call_9","output"`}},
		"a forced call":            {func(e *Editor) { e.ForceCall("apply") }, []string{`"name":"ls"},"max`}, []string{`"tool_choice":{"type":"custom","name":"apply"}`}},
		"a forced call in a space": {func(e *Editor) { e.ForceCall("crm.find") }, nil, []string{`"tool_choice":"required"`}},
		"no calls":                 {func(e *Editor) { e.ForbidCalls() }, nil, []string{`"tool_choice":"none"`}},
	} {
		e := b.Edit()
		tt.edit(e)
		got, err := e.Body()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, s := range tt.lost {
			if strings.Contains(string(got.Raw()), s) {
				t.Errorf("%s: %s is still in %s", name, s, got.Raw())
			}
		}
		for _, s := range tt.present {
			if !strings.Contains(string(got.Raw()), s) {
				t.Errorf("%s: %s is not in %s", name, s, got.Raw())
			}
		}
	}
}

// A response whose calls were answered one by one is two turns: the second loses what
// ties it to the reasoning before the first.
func TestResponsesSettle(t *testing.T) {
	const interleaved = `{"input":[{"role":"user","content":"x"},{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","id":"fc_1","call_id":"1","name":"a","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"1","output":"x"},{"type":"function_call","id":"fc_2","call_id":"2","name":"a","arguments":"{}"},{"type":"function_call_output","call_id":"2","output":"x"}]}`
	b := parseResponses(t, interleaved)
	got, err := b.Edit().RemoveMessage(1).RemoveMessage(2).Apply()
	if want := `{"input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"2","name":"a","arguments":"{}"},{"type":"function_call_output","call_id":"2","output":"x"}]}`; err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	// The later words of a turn go into the first, and so does the reasoning before them.
	b = parseResponses(t, `{"input":[{"type":"reasoning","id":"rs_1"},{"role":"assistant","content":"a"},{"type":"reasoning","id":"rs_2"},{"role":"assistant","content":"b"}]}`)
	if m := b.Messages(); len(m) != 1 || m[0].Text() != "a\nb" {
		t.Errorf("%+v", m)
	}
	got, err = b.Edit().SetText(0, "c", true).Apply()
	if want := `{"input":[{"type":"reasoning","id":"rs_1"},{"role":"assistant","content":"c"}]}`; err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

// What the gateway answered itself has ids that no server knows.
func TestResponsesOwn(t *testing.T) {
	b := parseResponses(t, `{"input":[{"role":"user","content":"x"},{"type":"message","id":"msg_rebound_1","role":"assistant","content":"stopped"},{"role":"user","content":"y"},`+
		`{"type":"item_reference","id":"msg_rebound_2"},{"role":"user","content":"_rebound"}]}`)
	if b.State().Kind != Stateless {
		t.Errorf("%+v", b.State())
	}
	e := b.Edit()
	if !e.DropOwnIDs() {
		t.Error("nothing was ours")
	}
	got, err := e.Apply()
	if want := `{"input":[{"role":"user","content":"x"},{"type":"message","role":"assistant","content":"stopped"},{"role":"user","content":"y"},{"role":"user","content":"_rebound"}]}`; err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	if b = parseResponses(t, string(got)); b.Edit().DropOwnIDs() {
		t.Error("ours twice")
	}
}
