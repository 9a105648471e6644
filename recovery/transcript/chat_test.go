package transcript

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestChatSettings(t *testing.T) {
	type want struct {
		model, tier, key                                           string
		stream, usage, format, logprobs, audio, reasoning, limited bool
		n, limit                                                   int
		field                                                      string
	}
	for in, w := range map[string]want{
		`{}`: {n: 1},
		`{"model":"m","stream":true,"stream_options":{"include_usage":true},"n":3,"service_tier":"flex","prompt_cache_key":"k"}`: {
			model: "m", stream: true, usage: true, n: 3, tier: "flex", key: "k"},
		`{"model":null,"stream":null,"stream_options":null,"n":null,"messages":null,"tools":null,"response_format":null,"audio":null,"max_tokens":null}`: {n: 1},
		`{"model":"a\"\u00e9","stream":false,"stream_options":{"include_usage":1},"n":2.0}`:                                                              {model: "a\"é", n: 2},
		`{"n":99999999999999999999}`: {n: 1<<31 - 1},
		`{"n":1e400}`:                {n: 1<<31 - 1},
		`{"n":0}`:                    {n: 0},
		`{"max_tokens":10}`:          {n: 1, limited: true, limit: 10, field: "max_tokens"},
		`{"max_tokens":10,"max_completion_tokens":20}`:            {n: 1, limited: true, limit: 20, field: "max_completion_tokens"},
		`{"max_tokens":10,"max_completion_tokens":null}`:          {n: 1, limited: true, limit: 10, field: "max_tokens"},
		`{"max_tokens":"10"}`:                                     {n: 1},
		`{"response_format":{"type":"json_object"}}`:              {n: 1, format: true},
		`{"response_format":{"type":"text"}}`:                     {n: 1},
		`{"logprobs":true}`:                                       {n: 1, logprobs: true},
		`{"logprobs":false}`:                                      {n: 1},
		`{"modalities":["text","audio"]}`:                         {n: 1, audio: true},
		`{"audio":{"voice":"x"}}`:                                 {n: 1, audio: true},
		`{"reasoning_effort":"low"}`:                              {n: 1, reasoning: true},
		`{"reasoning_effort":"none"}`:                             {n: 1},
		`{"reasoning_effort":"minimal"}`:                          {n: 1},
		`{"reasoning":{"effort":"high"}}`:                         {n: 1, reasoning: true},
		`{"reasoning":{"effort":"none"}}`:                         {n: 1},
		`{"reasoning":{"max_tokens":2000}}`:                       {n: 1, reasoning: true},
		`{"reasoning":{"enabled":false,"effort":"high"}}`:         {n: 1},
		`{"thinking":{"type":"enabled","budget_tokens":1}}`:       {n: 1, reasoning: true},
		`{"thinking":{"type":"disabled"}}`:                        {n: 1},
		`{"enable_thinking":true}`:                                {n: 1, reasoning: true},
		`{"enable_thinking":false}`:                               {n: 1},
		`{"chat_template_kwargs":{"enable_thinking":true}}`:       {n: 1, reasoning: true},
		`{"chat_template_kwargs":{"thinking":true}}`:              {n: 1, reasoning: true},
		`{"messages":[{"content":"{\"type\":\"image_url\"}"}]}`:   {n: 1},
		`{"tools":[{"function":{"parameters":{"image_url":1}}}]}`: {n: 1},
	} {
		b := parse(t, in)
		var g want
		g.model, g.tier, g.key, g.stream, g.usage, g.n = b.Model(), b.ServiceTier(), b.CacheKey(), b.Streaming(), b.IncludeUsage(), b.N()
		g.format, g.logprobs, g.audio, g.reasoning = b.ResponseFormat(), b.Logprobs(), b.Audio(), b.Reasoning()
		g.field, g.limit, g.limited = b.OutputLimit()
		if g != w {
			t.Errorf("%s:\n got %+v\nwant %+v", in, g, w)
		}
		if b.EstimateTokens() != (len(in)+3)/4 || string(b.Raw()) != in || b.Format() != Chat || b.Format().String() != "chat" {
			t.Error(in)
		}
	}
}

func TestMessages(t *testing.T) {
	b := parse(t, `{"messages":[
		{"role":"system","content":"Be brief."},
		{"content":[{"type":"text","text":"Caf\u00e9"},{"type":"text","text":""},{"type":"text","text":"2"}],"role":"developer"},
		{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:x"},"cache_control":{}},"and"]},
		{"role":"assistant","content":null,"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"p\":\"a\\nb\"}"}},
			{"id":"c2","type":"custom","custom":{"name":"patch","input":"x"},"index":1},
			{"id":"c3","type":"function","function":{"name":"obj","arguments":{"k":1}}},
			{"id":"c4"}]},
		{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"out"}]},
		{"role":"assistant","function_call":{"name":"old","arguments":"{}"}},
		{"role":"function","name":"old","content":"r"},
		{"role":"user"},
		{"role":"us\u0065r","content":""},
		{"role":"critic","content":{"odd":1}},
		{"role":7,"content":5},
		{}, {"role":"user","role":"assistant"}
	]}`)
	want := []struct {
		role, text, id string
	}{
		{RoleSystem, "Be brief.", ""}, {RoleDeveloper, "Café\n2", ""}, {RoleUser, "see\nand", ""}, {RoleAssistant, "", ""}, {RoleTool, "out", "c1"},
		{RoleAssistant, "", ""}, {RoleTool, "r", ""}, {RoleUser, "", ""}, {RoleUser, "", ""}, {"critic", "", ""}, {"", "", ""}, {"", "", ""}, {RoleAssistant, "", ""},
	}
	list := b.Messages()
	if len(list) != len(want) {
		t.Fatal(len(list))
	}
	for i, w := range want {
		m := list[i]
		if m.Role != w.role || m.Text() != w.text || string(m.AppendText([]byte("a"))) != "a"+w.text || m.ToolCallID() != w.id || m.Index != i {
			t.Errorf("%d: %q %q %q", i, m.Role, m.Text(), m.ToolCallID())
		}
	}
	if got := string(b.System()); got != "Be brief.\nCafé\n2" {
		t.Errorf("system %q", got)
	}
	if b.UserTurns() != 3 {
		t.Error(b.UserTurns())
	}
	if m, ok := b.LastUser(); !ok || m.Index != 8 {
		t.Error(m.Index)
	}
	var calls []string
	for _, c := range append(list[3].ToolCalls(), list[5].ToolCalls()...) {
		calls = append(calls, fmt.Sprintf("%s|%s|%s", c.ID, c.Name, c.Text()))
		if string(b.Raw()[c.Span.Start:c.Span.End]) != string(c.Arguments) {
			t.Errorf("%s: span %v", c.ID, c.Span)
		}
	}
	if want := []string{"c1|read|{\"p\":\"a\\nb\"}", "c2|patch|x", `c3|obj|{"k":1}`, "c4||", "|old|{}"}; !reflect.DeepEqual(calls, want) {
		t.Errorf("%q", calls)
	}
	at, ok := list[0].Content()
	if !ok || string(b.Raw()[at.Start:at.End]) != `"Be brief."` {
		t.Error(at)
	}
	for _, i := range []int{3, 7, 11} {
		if _, ok := list[i].Content(); ok {
			t.Errorf("%d has content", i)
		}
	}
	if raw, ok := list[2].Field("content"); !ok || raw[0] != '[' {
		t.Errorf("%s", raw)
	}
	media := string(list[2].AppendMedia(nil))
	if !strings.HasPrefix(media, "image_url 16") || strings.Contains(media, "cache") {
		t.Errorf("%q", media)
	}
	if list[0].AppendMedia(nil) != nil {
		t.Error("media in text")
	}
	// Appending to what was handed out must not write into the body.
	before := string(b.Raw())
	_ = append(list[3].ToolCalls()[0].Arguments, "XXXX"...)
	_ = append(list[0].Raw(), "XXXX"...)
	raw, _ := b.Field("messages")
	_ = append(raw, "XXXX"...)
	if string(b.Raw()) != before {
		t.Error("the body was written to")
	}
}

func TestTools(t *testing.T) {
	b := parse(t, `{"tools":[
		{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object"}}},
		{"function":{"name":"untyped","parameters":null}},
		{"type":"custom","custom":{"name":"patch"}},
		{"type":"function","name":"flat","parameters":{}},
		{"type":"web_search"}, 3]}`)
	var got []string
	for _, tool := range b.Tools() {
		got = append(got, fmt.Sprintf("%s|%s|%s|%s", tool.Type, tool.Name, tool.Description, tool.Parameters))
	}
	want := []string{`function|read|Reads.|{"type":"object"}`, "|untyped||", "custom|patch||", "function|flat||{}", "web_search|||", "|||"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if !b.HasTool("patch") || b.HasTool("bash") {
		t.Error("HasTool")
	}
	if _, n, ok := parse(t, `{"max_tokens":7}`).OutputLimit(); !ok || n != 7 {
		t.Error(n)
	}
	if _, _, ok := parse(t, `{"max_tokens":"7"}`).OutputLimit(); ok {
		t.Error("a string is an integer")
	}
	if b := parse(t, `{"messages":[{"role":"developer"}]}`); !b.HasRole(RoleDeveloper) || b.HasRole(RoleSystem) {
		t.Error("HasRole")
	}
	if _, ok := parse(t, `{"messages":[{"role":"developer"}]}`).LastUser(); ok {
		t.Error("LastUser of nobody")
	}
	if parse(t, `{"tools":{}}`).Tools() != nil || len(parse(t, `{"tools":[]}`).Tools()) != 0 {
		t.Error("no tools")
	}
}

// TestOddTools: what stands where, in which order and how often, is up to clients.
func TestOddTools(t *testing.T) {
	for raw, want := range map[string]string{
		`{"function":{"name":"late","parameters":{"a":1},"strict":true},"type":"function"}`:        `function|late||{"a":1}|true`,
		`{"type":"function","function":{"name":"a"},"function":{"description":"b"}}`:               `function||b||`,
		`{"type":"function","function":{"name":"a","name":"b","parameters":{},"parameters":null}}`: `function|b|||`,
		`{"type":"custom","type":"function","custom":{"name":"c"},"name":"own"}`:                   `function|own|||`,
		`{"type":"function","function":3,"name":"own"}`:                                            `function||||`,
		`{"type":"custom","function":{"name":"f"},"custom":{"name":"c","description":"d"}}`:        `custom|c|d||`,
		`{"type":"custom","function":{"name":"f"},"custom":4}`:                                     `custom|f|||`,
		`{"type":"name","name":{"name":"inner"}}`:                                                  `name|inner|||`,
		`{"type":"func\u0074ion","function":{"name":"\u0061"},"strict":true}`:                      `function|a|||`,
		`{"type":7,"name":"n","strict":true,"description":"","parameters":[]}`:                     `|n||[]|true`,
	} {
		b := parse(t, `{"tools":[ `+raw+` ]}`)
		got := b.Tools()[0]
		text := strings.Join([]string{got.Type, got.Name, got.Description, string(got.Parameters), string(b.Raw()[got.Strict.Start:got.Strict.End])}, "|")
		if text != want || string(got.Raw) != raw || string(b.Raw()[got.Span.Start:got.Span.End]) != string(got.Parameters) {
			t.Errorf("%s: %s, want %s", raw, text, want)
		}
		list := b.ToolList()
		alone := Chat.Tools(list)[0]
		if alone.Name != got.Name || string(alone.Parameters) != string(got.Parameters) || string(list[alone.Span.Start:alone.Span.End]) != string(got.Parameters) {
			t.Errorf("%s: %+v, in the body %+v", raw, alone, got)
		}
	}
}

func TestHasTools(t *testing.T) {
	for raw, want := range map[string]bool{`{}`: false, `{"tools":null}`: false, `{"tools":{}}`: false, `{"tools":[ ]}`: false, `{"tools":[3]}`: true, `{"tools": [ {}] }`: true} {
		if b := parse(t, raw); b.HasTools() != want || want != (len(b.Tools()) > 0) {
			t.Errorf("%s: %v", raw, !want)
		}
	}
}

// Everything may be read from several goroutines at once.
func TestConcurrentReads(t *testing.T) {
	raw := samples(t)["pi.json"]
	b := parse(t, string(raw))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			exercise(t, b)
			if _, err := b.Edit().SetModel("x").AppendMessage([]byte(`{}`)).Apply(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// The view agrees with a full decode of real conversations.
func TestMessagesOfSamples(t *testing.T) {
	for name, raw := range samples(t) {
		var want struct {
			Messages []struct {
				Role       string
				Content    any
				ToolCallID string `json:"tool_call_id"`
				ToolCalls  []struct {
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			Tools []struct{ Function struct{ Name string } }
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		b := parse(t, string(raw))
		for i, m := range b.Messages() {
			w := want.Messages[i]
			content, _ := w.Content.(string)
			if s, isText := w.Content.(string); m.Role != w.Role || isText && m.Text() != s || m.ToolCallID() != w.ToolCallID {
				t.Errorf("%s: message %d: %q %q, want %q", name, i, m.Role, m.Text(), content)
			}
			for k, c := range m.ToolCalls() {
				if w := w.ToolCalls[k]; c.ID != w.ID || c.Name != w.Function.Name || c.Text() != w.Function.Arguments {
					t.Errorf("%s: message %d: call %d", name, i, k)
				}
			}
			if len(m.ToolCalls()) != len(w.ToolCalls) {
				t.Errorf("%s: message %d: %d calls", name, i, len(m.ToolCalls()))
			}
		}
		for i, tool := range b.Tools() {
			if tool.Name != want.Tools[i].Function.Name {
				t.Errorf("%s: tool %d: %s", name, i, tool.Name)
			}
		}
	}
}
