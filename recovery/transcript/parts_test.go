package transcript

import (
	"encoding/json"
	"testing"
)

func one(t *testing.T, message string) *Body {
	t.Helper()
	b, err := Parse([]byte(`{"messages":[`+message+`]}`), Chat, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestShape(t *testing.T) {
	for message, want := range map[string]struct {
		Shape
		mark string
	}{
		`{"role":"user","content":"a"}`:       {Shape{Texts: 1}, ""},
		`{"role":"assistant","content":null}`: {Shape{}, ""},
		`{"role":"assistant"}`:                {Shape{}, ""},
		`{"role":"user","content":["a",{"type":"text","text":"b"},{"type":"image_url","image_url":{}}]}`:               {Shape{Parts: true, Texts: 2, Media: 1}, ""},
		`{"role":"user","content":[{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}`:                  {Shape{Parts: true, Texts: 1}, `{"type":"ephemeral"}`},
		`{"role":"user","content":"b","cache_control":{"ttl":"1h"}}`:                                                   {Shape{Texts: 1}, `{"ttl":"1h"}`},
		`{"role":"user","content":"b","cache_control":null}`:                                                           {Shape{Texts: 1}, ""},
		`{"role":"assistant","content":"x","reasoning_content":"hm"}`:                                                  {Shape{Texts: 1, Reasoning: true}, ""},
		`{"role":"assistant","content":"x","reasoning_content":""}`:                                                    {Shape{Texts: 1}, ""},
		`{"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.text","signature":"s"}]}`:           {Shape{Texts: 1, Reasoning: true}, ""},
		`{"role":"assistant","content":"x","reasoning_details":[]}`:                                                    {Shape{Texts: 1}, ""},
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}`:                         {Shape{Parts: true, Reasoning: true}, ""},
		`{"role":"assistant","tool_calls":[{"id":"a","extra_content":{"google":{"thought_signature":"s"}}}]}`:          {Shape{Reasoning: true}, ""},
		`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}],"extra_content":null}`: {Shape{}, ""},
		`{}`: {Shape{}, ""},
	} {
		got := one(t, message).Messages()[0].Shape()
		mark := string(got.Mark)
		got.Mark = nil
		if got.Parts != want.Parts || got.Texts != want.Texts || got.Media != want.Media || got.Reasoning != want.Reasoning || mark != want.mark {
			t.Errorf("%s: %+v with mark %q, want %+v", message, got, mark, want)
		}
	}
}

func TestSetText(t *testing.T) {
	const image, mark = `{"type":"image_url","image_url":{"url":"u"}}`, `"cache_control":{"type":"ephemeral"}`
	for _, c := range []struct {
		content string
		media   bool
		want    string
	}{
		{`"old"`, false, `"n<\"w"`},
		{`null`, false, `"n<\"w"`},
		{`["old","older"]`, false, `["n<\"w"]`},
		{`[{"type":"text","text":"old","x":1}]`, false, `[{"type":"text","text":"n<\"w","x":1}]`},
		{`[{"type":"text","text":"a"},` + image + `,{"type":"text","text":"b"}]`, true, `[{"type":"text","text":"n<\"w"},` + image + `]`},
		{`[` + image + `,{"type":"text","text":"a"},` + image + `]`, true, `[` + image + `,{"type":"text","text":"n<\"w"},` + image + `]`},
		{`[` + image + `,{"type":"text","text":"a"}]`, false, `[{"type":"text","text":"n<\"w"}]`},
		{`[` + image + `]`, true, `[` + image + `,{"type":"text","text":"n<\"w"}]`},
		{`[]`, true, `[{"type":"text","text":"n<\"w"}]`},
		{`[{"type":"text","text":"a"},{"type":"text","text":"b",` + mark + `}]`, false, `[{"type":"text","text":"n<\"w",` + mark + `}]`},
		{`[{"type":"text","text":"a",` + mark + `},{"type":"text","text":"b"}]`, false, `[{"type":"text","text":"n<\"w",` + mark + `}]`},
		{`[{"type":"image_url","image_url":{},` + mark + `}]`, false, `[{"type":"text","text":"n<\"w",` + mark + `}]`},
	} {
		raw, err := one(t, `{"role":"tool","content":`+c.content+`,"tool_call_id":"a"}`).Edit().SetText(0, `n<"w`, c.media).Apply()
		if want := `{"messages":[{"role":"tool","content":` + c.want + `,"tool_call_id":"a"}]}`; err != nil || string(raw) != want {
			t.Errorf("%s: %s, %v, want %s", c.content, raw, err, want)
		}
	}
	b := one(t, `{"role":"tool","content":{"a":1}}`)
	if _, err := b.Edit().SetText(0, "x", false).Apply(); err == nil {
		t.Error("a content that is neither text nor parts was changed")
	}
	if _, err := b.Edit().SetText(1, "x", false).Apply(); err == nil {
		t.Error("a message that does not exist was changed")
	}
	if raw, err := one(t, `{"role":"assistant"}`).Edit().SetText(0, "x", false).Apply(); err != nil || string(raw) != `{"messages":[{"role":"assistant","content":"x"}]}` {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestTextMessage(t *testing.T) {
	b := one(t, `{"role":"user","content":"a"}`)
	for _, mark := range []string{"", `{"type":"ephemeral"}`} {
		raw := b.TextMessage(RoleAssistant, "it's \"so\"\n", []byte(mark))
		if mark == "" {
			raw = b.TextMessage(RoleAssistant, "it's \"so\"\n", nil)
		}
		after, err := b.Edit().AppendMessage(raw).Body()
		if err != nil || !json.Valid(raw) {
			t.Fatalf("%s: %v", raw, err)
		}
		m := after.Messages()[1]
		if m.Role != RoleAssistant || m.Text() != "it's \"so\"\n" || string(m.Shape().Mark) != mark {
			t.Errorf("%s", raw)
		}
	}
}
