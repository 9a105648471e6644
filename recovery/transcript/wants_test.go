package transcript

import (
	"reflect"
	"testing"
)

func TestToolChoice(t *testing.T) {
	for body, want := range map[string]ToolChoice{
		`{}`:                         {},
		`{"tool_choice":null}`:       {},
		`{"tool_choice":7}`:          {},
		`{"tool_choice":"auto"}`:     {},
		`{"tool_choice":"none"}`:     {Choice: ChoiceNone},
		`{"tool_choice":"required"}`: {Choice: ChoiceRequired},
		`{"tool_choice":"any"}`:      {Choice: ChoiceRequired},
		`{"tool_choice":{"type":"function","function":{"name":"f"}}}`: {Choice: ChoiceNamed, Name: "f"},
		`{"tool_choice":{"type":"custom","custom":{"name":"c"}}}`:     {Choice: ChoiceNamed, Name: "c"},
		`{"tool_choice":{"type":"function","name":"flat"}}`:           {Choice: ChoiceNamed, Name: "flat"},
		`{"tool_choice":{"type":"function"}}`:                         {},
		`{"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"a"}},{"type":"function","name":"b"}]}}}`: {Choice: ChoiceRequired, Allowed: []string{"a", "b"}},
		`{"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]}}`:                                                                                                 {Allowed: []string{}},
	} {
		b, err := Parse([]byte(body), Chat, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.ToolChoice(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
}

func TestAllows(t *testing.T) {
	for _, c := range []struct {
		choice  ToolChoice
		allowed string
	}{
		{ToolChoice{}, "ab"}, {ToolChoice{Choice: ChoiceRequired}, "ab"}, {ToolChoice{Choice: ChoiceNamed, Name: "a"}, "a"},
		{ToolChoice{Allowed: []string{"b"}}, "b"}, {ToolChoice{Allowed: []string{}}, ""},
	} {
		allowed := ""
		for _, name := range []string{"a", "b"} {
			if c.choice.Allows(name) {
				allowed += name
			}
		}
		if allowed != c.allowed {
			t.Errorf("%+v allows %q, want %q", c.choice, allowed, c.allowed)
		}
	}
}

func TestContentForm(t *testing.T) {
	for body, want := range map[string]struct {
		form   ContentForm
		schema string
	}{
		`{}`:                                         {FormText, ""},
		`{"response_format":null}`:                   {FormText, ""},
		`{"response_format":"json"}`:                 {FormText, ""},
		`{"response_format":{"type":"text"}}`:        {FormText, ""},
		`{"response_format":{"type":"json_object"}}`: {FormObject, ""},
		`{"response_format":{"type":"json_object","schema":{"type":"array"}}}`:        {FormSchema, `{"type":"array"}`},
		`{"response_format":{"type":"json_schema","json_schema":{"schema":{"a":1}}}}`: {FormSchema, `{"a":1}`},
		`{"response_format":{"type":"json_schema","json_schema":{"name":"x"}}}`:       {FormSchema, ""},
		`{"response_format":{"type":"json_schema","schema":{"b":2}}}`:                 {FormSchema, `{"b":2}`},
		`{"response_format":{"type":"grammar","grammar":"root ::= x"}}`:               {FormOther, ""},
	} {
		b, err := Parse([]byte(body), Chat, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if form, schema := b.ContentForm(); form != want.form || string(schema) != want.schema {
			t.Errorf("%s: %v %s, want %v %s", body, form, schema, want.form, want.schema)
		}
	}
}

func TestParallelCalls(t *testing.T) {
	for body, want := range map[string]bool{
		`{}`: true, `{"parallel_tool_calls":null}`: true, `{"parallel_tool_calls":true}`: true, `{"parallel_tool_calls":false}`: false,
	} {
		b, err := Parse([]byte(body), Chat, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.ParallelCalls(); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}
