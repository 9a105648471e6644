package repair

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// textCallCase is a text that contains a call, of get_weather for Paris unless it says otherwise.
type textCallCase struct{ text, before, tool, args string }

// callsInText returns one call in each dialect.
func callsInText() map[string]textCallCase {
	return map[string]textCallCase{
		"hermes":              {"I look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>", "I look.", "", ""},
		"hermes not closed":   {"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}", "", "", ""},
		"hermes brace":        {`<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}</tool_call>`, "", "", ""},
		"hermes two braces":   {`<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}}</tool_call>`, "", "", ""},
		"gemma":               {"```tool_code\nprint(default_api.get_weather(city='Paris'))\n```", "", "", ""},
		"gemma 4":             {`<|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>`, "", "", ""},
		"sentence":            {`[Calling tool: get_weather with arguments: {"city": "Paris"}]`, "", "", ""},
		"kimi headless":       {`get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}<|tool_calls_section_end|>`, "", "", ""},
		"glm json":            {`<tool_call>get_weather {"city": "Paris"}</tool_call>`, "", "", ""},
		"hermes string":       {`<tool_call>{"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}</tool_call><|im_end|>`, "", "", ""},
		"hermes thinking":     {"<think>hm</think>\n<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}</tool_call>", "<think>hm</think>", "", ""},
		"hermes coerced":      {`<tool_call>{"name": "get_weather", "arguments": {"city": "Paris", "days": "2"}}</tool_call>`, "", "", `{"city":"Paris","days":2}`},
		"llama function":      {`<function=get_weather>{"city": "Paris"}</function>`, "", "", ""},
		"llama, only the end": {`get_weather{"city": "Paris"}</function>`, "", "", ""},
		"qwen coder": {"ok\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n3\n" +
			"</parameter>\n</function>\n</tool_call>", "ok", "", `{"city":"Paris","days":3}`},
		"qwen coder bare": {"<function=bash>\n" +
			"<parameter=command>\nif x; then\n  echo \"a < b\"\nfi\n</parameter>\n</function>\n</tool_call>", "", "bash", `{"command":"if x; then\n  echo \"a < b\"\nfi"}`},
		"glm": {"<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>metric</arg_key>\n" +
			"<arg_value>true</arg_value>\n</tool_call>", "", "", `{"city":"Paris","metric":true}`},
		"mistral list":  {`[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}]`, "", "", ""},
		"mistral name":  {`[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}</s>`, "", "", ""},
		"mistral short": {`[TOOL_CALLS]get_weather{"city": "Paris"}`, "", "", ""},
		"deepseek v3":   {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"Paris\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "", "", ""},
		"deepseek v3.1": {"Let me.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Paris\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>", "Let me.", "", ""},
		"deepseek v3.2": {"<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" " +
			"string=\"true\">Paris</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", "", "", `{"city":"Paris","days":2}`},
		"kimi":             {`<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>`, "", "", ""},
		"minimax":          {"<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Paris</parameter>\n</invoke>\n</minimax:tool_call>", "", "", ""},
		"anthropic":        {"<function_calls>\n<invoke name=\"bash\">\n<parameter name=\"command\">ls -la</parameter>\n</invoke>\n</function_calls>", "", "bash", `{"command":"ls -la"}`},
		"harmony":          {`<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>`, "", "", ""},
		"harmony started":  {`<|start|>assistant<|channel|>commentary to=functions.get_weather<|message|>{"city": "Paris"}`, "", "", ""},
		"harmony stripped": {`commentary to=functions.get_weather json{"city": "Paris"}`, "", "", ""},
		"python tag":       {`<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}<|eom_id|>`, "", "", ""},
		"python call":      {`<|python_tag|>get_weather.call(city="Paris")`, "", "", ""},
		"pythonic":         {`<|python_start|>[get_weather(city='Paris', metric=True)]<|python_end|>`, "", "", `{"city":"Paris","metric":true}`},
		"bare":             {`{"name": "get_weather", "parameters": {"city": "Paris"}}`, "", "", ""},
		"lfm":              {`<|tool_call_start|>[get_weather(city="Paris")]<|tool_call_end|>`, "", "", ""},
		"minicpm":          {`<function name="get_weather"><param name="city"><![CDATA[Paris]]></param></function>`, "", "", ""},
		"step": {`<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather"><steptml:parameter ` +
			`name="city">Paris</steptml:parameter></steptml:invoke><｜tool_call_end｜>`, "", "", ""},
		"seed":     {"<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>\n</seed:tool_call>", "", "", ""},
		"hunyuan":  {"<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>\n</tool_calls>", "", "", ""},
		"command":  {`<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}}]<|END_ACTION|>`, "", "", ""},
		"apertus":  {`<|tools_prefix|>[{"get_weather": {"city": "Paris"}}]<|tools_suffix|>`, "", "", ""},
		"phi":      {`functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]`, "", "", ""},
		"nemotron": {`<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</TOOLCALL>`, "", "", ""},
		"longcat":  {`<longcat_tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</longcat_tool_call>`, "", "", ""},
		"kimi k3": {`<|open|>tools<|sep|><|open|>call tool="get_weather" index="0"<|sep|><|open|>argument key="city" type="string"<|sep|>Paris` +
			`<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>`, "", "", ""},
		"solar":               {"I look.<|tool_call:start|>get_weather\n<|tool_arg:start|>city<|tool_arg:value|>Paris<|tool_arg:end|>\n<|tool_call:end|>", "I look.", "", ""},
		"k2 horizon":          {`<ifm|tool_calls><ifm|tool_call>get_weather<ifm|arg_key>city</ifm|arg_key><ifm|arg_value>Paris</ifm|arg_value></ifm|tool_call></ifm|tool_calls>`, "", "", ""},
		"gemma, bare":         {`call:get_weather{city:<|"|>Paris<|"|>}`, "", "", ""},
		"codex":               {"assistant to=functions.get_weather commentary json\n{\"city\": \"Paris\"}", "", "", ""},
		"old hermes":          {`<functioncall>{"name": "get_weather", "arguments": {"city": "Paris"}}</functioncall>`, "", "", ""},
		"olmo":                {"<function_calls>\nget_weather(city=\"Paris\")\n</function_calls>", "", "", ""},
		"gemma, as hermes":    {`<tool_call>get_weather({"city": "Paris"})</tool_call>`, "", "", ""},
		"functionary":         {">>>get_weather\n{\"city\": \"Paris\"}", "", "", ""},
		"react":               {"Action: get_weather\nAction Input: {\"city\": \"Paris\"}", "", "", ""},
		"internlm":            {`<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"city": "Paris"}}<|action_end|>`, "", "", ""},
		"prompted":            {`<tool_use>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_use>`, "", "", ""},
		"mistral, with an id": {`[TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Paris"}`, "", "", ""},
		"ends of turns":       {`<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call></s><eos><end_of_turn>[/INST]`, "", "", ""},
		"a typo in the name":  {`<tool_call>{"name": "get_wether", "arguments": {"city": "Paris"}}</tool_call>`, "", "", ""},
		"openai shape":        {`<tool_call>{"type":"function","function":{"name": "get_weather", "arguments": "{\"city\":\"Paris\"}"}}</tool_call>`, "", "", ""},
	}
}

func (c textCallCase) want() (tool, args string) {
	if tool = c.tool; tool == "" {
		tool = "get_weather"
	}
	if args = c.args; args == "" {
		args = `{"city":"Paris"}`
	}
	return tool, args
}

func TestCallsInTheText(t *testing.T) {
	req, m := withTools(t, ""), mender()
	for name, c := range callsInText() {
		v := m.Mend(req, recovery.Draft{Text: c.text, Finish: recovery.FinishStop})
		c.tool, c.args = c.want()
		if v.Judgement != recovery.JudgeReplace || len(v.Calls) != 1 || v.Text == nil {
			t.Errorf("%s: %+v %+v", name, v, v.Flaw)
			continue
		}
		got := v.Calls[0]
		if got.Name != c.tool || !same(t, got.Arguments, c.args) || *v.Text != c.before || v.Finish != recovery.FinishCalls || !strings.HasPrefix(got.ID, "call_") || got.Kind != "function" {
			t.Errorf("%s: %+v, text %q", name, v, *v.Text)
		}
		if v := m.Mend(req, recovery.Draft{Text: c.text, Finish: recovery.FinishStop, Shown: len(c.text)}); v.Judgement != recovery.JudgePass {
			t.Errorf("%s, which was shown: %+v", name, v)
		}
		if v := m.Mend(withTools(t, `,"tool_choice":"none"`), recovery.Draft{Text: c.text, Finish: recovery.FinishStop}); v.Judgement != recovery.JudgePass {
			t.Errorf("%s, without a tool choice: %+v", name, v)
		}
	}
}

func TestSeveralCallsInTheText(t *testing.T) {
	req, m := withTools(t, ""), mender()
	one := `<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>`
	for _, text := range []string{
		one + "\n" + one,
		`[TOOL_CALLS][{"name":"get_weather","arguments":{"city":"A"}},{"name":"get_weather","arguments":{"city":"B"}}]`,
		`<|python_tag|>{"name":"get_weather","parameters":{"city":"A"}}; {"name":"get_weather","parameters":{"city":"B"}}`,
		`[get_weather(city="A"), get_weather(city="B")]`,
	} {
		v := m.Mend(req, recovery.Draft{Text: text, Finish: recovery.FinishStop})
		if len(v.Calls) != 2 || v.Calls[0].ID == v.Calls[1].ID {
			t.Errorf("%s: %+v %+v", text, v, v.Flaw)
		}
	}
}

// noCalls returns texts about calls, and others that look a little like one.
func noCalls() []string {
	one := `<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>`
	return []string{
		"Hermes writes " + one + " for a call.",
		"Use this:\n```xml\n" + one + "\n```",
		"The tag `<tool_call>` begins one.",
		"<tool_call> is the tag with which Hermes begins a call.",
		"As an example:\n```\n<tool_call>{\"name\": \"other\", \"arguments\": {}}</tool_call>\n```",
		`{"name": "Paris", "parameters": {"population": 2}}`,
		`{"name": "get_weather"}`,
		"Call it as {\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}",
		"<think>I could <tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}</tool_call>",
		"Qwen writes <function=name> and then its parameters.",
		"[1](https://example.com)", "",
		"calls>" + one + "</calls>",
	}
}

func TestTextsThatAreNoCalls(t *testing.T) {
	req, m := withTools(t, ""), mender()
	for _, text := range noCalls() {
		if v := m.Mend(req, recovery.Draft{Text: text, Finish: recovery.FinishStop}); v.Judgement != recovery.JudgePass {
			t.Errorf("%s: %+v %+v", text, v, v.Flaw)
		}
	}
}

// What stands in the text is no call of a function if the request asks for JSON, if the tool takes free text, or if there is
// no such tool and no mark.
func TestTextsOfOtherKinds(t *testing.T) {
	call := `{"name": "get_weather", "parameters": {"city": "Paris"}}`
	for _, c := range []struct{ more, text string }{
		{`,"tools":` + toolsJSON + `,"response_format":{"type":"json_object"}`, call},
		{`,"tools":[{"type":"custom","custom":{"name":"get_weather"}}]`, "<tool_call>" + call + "</tool_call>"},
		{`,"tools":` + toolsJSON, "Action: unknown_tool\nAction Input: {}"},
	} {
		if v := mender().Mend(request(t, c.more), recovery.Draft{Text: c.text, Finish: recovery.FinishStop}); v.Judgement != recovery.JudgePass {
			t.Errorf("%s: %+v %+v", c.text, v, v.Flaw)
		}
	}
}

func TestBrokenCallsInTheText(t *testing.T) {
	req, m := withTools(t, ""), mender()
	for text, kind := range map[string]recovery.FlawKind{
		`<tool_call>{"name": "get_whether_x", "arguments": {}}</tool_call>`:                                                            recovery.FlawName,
		`<tool_call>{"name": "get_weather", "arguments": {"days": 1}}</tool_call>`:                                                     recovery.FlawField,
		`<tool_call>{"name": "get_weather", "arguments": {"city": "Par`:                                                                recovery.FlawArguments,
		`<tool_call>{'name': 'bash', 'arguments': {'command': 'ls'}}</tool_call>`:                                                      recovery.FlawArguments,
		"```json\n{\"name\": \"bash\", \"parameters\": {\"command\": \"ls\"}}\n```":                                                    recovery.FlawArguments,
		"<function=bash>\n<parameter=command>\necho '</parameter> x'\n</parameter>\n</function>":                                       recovery.FlawArguments,
		"<invoke name=\"write_file\"><parameter name=\"path\">a</parameter><parameter name=\"content\">a &amp; b</parameter></invoke>": recovery.FlawArguments,
	} {
		if v := m.Mend(req, recovery.Draft{Text: text, Finish: recovery.FinishStop}); v.Flaw == nil || v.Flaw.Kind != kind {
			t.Errorf("%s: %+v %+v", text, v, v.Flaw)
		}
	}
	thought := "<|channel|>analysis<|message|>I look at it, as the </tag> says.<|end|>"
	if v := m.Mend(req, recovery.Draft{Text: thought + `<tool_call>{"name": "get_weather", "arguments": {"city": </tool_call>`, Finish: recovery.FinishStop}); v.Flaw == nil {
		t.Errorf("a broken call behind a thought: %+v", v)
	}
	if v := m.Mend(req, recovery.Draft{Text: "Let me see.\n<｜DSML｜function_ca", Finish: recovery.FinishStop}); v.Flaw == nil {
		t.Errorf("half of a mark: %+v", v)
	}
	v := m.Mend(req, recovery.Draft{Text: `<tool_call>{"name": "get_weather", "arguments": {"city": "Par`, Finish: recovery.FinishLength})
	if v.Flaw == nil || v.Flaw.Kind != recovery.FlawTruncated {
		t.Errorf("%+v", v)
	}
}

// openers lists the beginnings of calls as models write them.
var openers = []string{
	"<tool_call>", "<tool_calls>", "<|tool_call|>", "<TOOLCALL>", "<function_call>", "<functioncall>", // Hermes, Qwen, GLM, MiniMax-M1, Granite, Nemotron
	"<function=",                                                                                                                                  // Llama, Qwen3-Coder
	"[TOOL_CALLS]",                                                                                                                                // Mistral
	"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<|tool▁calls▁begin|>", "<|tool▁call▁begin|>", "<｜DSML｜function_calls>", "<｜DSML｜invoke name=", // DeepSeek
	"<|tool_calls_section_begin|>", "<|tool_call_begin|>", // Kimi
	"<minimax:tool_call>", "<function_calls>", "<invoke name=", // MiniMax, Anthropic
	"<|python_tag|>", "<|python_start|>", // Llama
	"<|action_start|>",             // InternLM
	"<|tool_call>", "```tool_code", // Gemma
	"<|tool_call_argument_begin|>", "<|open|>", // Kimi
	"<antml:function_calls>", "<antml:invoke name=",
	"<|start|>", "<|channel|>", // harmony
	"<|tool_call_start|>", "<|START_ACTION|>", "<|tools_prefix|>", "<seed:tool_call>", "<longcat_tool_call>", "<tool_use>", // LFM, Command, Apertus, Seed, LongCat, Phi
	"<function name=", "<steptml:invoke name=", "<｜tool_call_begin｜>", "<|tool_call_argument_begin|>", "<tool_sep>", "<arg_key>", // MiniCPM, Step, Hunyuan, GLM
}

// TestMarksAreShown: each mark in roles occurs in an example.
func TestMarksAreShown(t *testing.T) {
	all := ""
	for _, c := range callsInText() {
		all += strings.ReplaceAll(strings.ToLower(c.text), "▁", "_")
	}
	for name := range roles {
		if name = strings.TrimLeft(name, "|["); !strings.Contains(all, name) {
			t.Errorf("no example has %s", name)
		}
	}
}

// TestOpening: nextCandidate finds each opener, and partialMark finds one that is cut.
func TestOpening(t *testing.T) {
	s := callFinder{offers: func(string) bool { return false }}
	for _, o := range openers {
		for _, before := range []string{"", "a < b <td> ", "I look.\n", "```go\n[TOOL_CALL] <t <|"} {
			if got := s.nextCandidate(before+o+"x", 0); got != len(before) {
				t.Errorf("%q behind %q: at %d", o, before, got)
			}
			if len(o) > maxMark {
				t.Errorf("%q is too long", o)
			}
			cut := o[:len(o)-1]
			if got := partialMark(before + cut); got != len(before) && beginsWithMark(o) {
				t.Errorf("%q behind %q is cut: at %d", cut, before, got)
			}
		}
		if f := s.find("Let me see. " + o[:len(o)-1] + "\n"); isToken(o) && len(o) > 12 && o[0] == '<' && !strings.Contains(o, "invoke") && f.at != 12 {
			t.Errorf("an answer that ends in the beginning of %q: %+v", o, f)
		}
	}
	for _, text := range []string{"<", "<td>", "a <b c=d>", "[1]", "[TOOL]", "<open>", "<channel>", "[ARGS]", "<tool_call", "<tool_call >", "functools", "<functional>", "<invoke>"} {
		if got := s.nextCandidate("x "+text, 0); got >= 0 {
			t.Errorf("%q: a call at %d", text, got)
		}
	}
}
