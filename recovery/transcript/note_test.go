package transcript

import (
	"strings"
	"testing"
)

func TestAppendNote(t *testing.T) {
	user := func(content string) string { return `{"messages":[{"role":"user","content":` + content + `}]}` }
	tool := `{"messages":[{"role":"tool","tool_call_id":"1","content":"x"}` // an answer to a call ends it
	said := `,{"role":"assistant","content":"The answer is"`                // which the model is to continue
	called := `,{"role":"assistant","content":null,"tool_calls":[{"id":"2","type":"function","function":{"name":"ls","arguments":"{}"}}]}`
	begun := func(content string) string {
		return strings.TrimSuffix(user(content), "]}") + said + `,"prefix":true}]}`
	}
	for name, tt := range map[string]struct {
		body string
		note string
		want string
	}{
		"text":                       {user(`"hi"`), "a", user(`"hi\n\na"`)},
		"a quote":                    {user(`"hi"`), "b\"", user(`"hi\n\nb\""`)},
		"parts":                      {user(`[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]`), "a\n\nb", user(`[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}},{"type":"text","text":"a\n\nb"}]`)},
		"no parts":                   {user(`[ ]`), "a", user(`[ {"type":"text","text":"a"}]`)},
		"null":                       {user(`null`), "a", `{"messages":[{"role":"user","content":null},{"role":"user","content":"a"}]}`},
		"after a result":             {tool + `]}`, "a", tool + `,{"role":"user","content":"a"}]}`},
		"after one, lines":           {tool + `]}`, "a\n\nb", tool + `,{"role":"user","content":"a\n\nb"}]}`},
		"an empty history":           {`{"messages":[]}`, "a", `{"messages":[{"role":"user","content":"a"}]}`},
		"odd content":                {user(`7`), "a", `{"messages":[{"role":"user","content":7},{"role":"user","content":"a"}]}`},
		"before a beginning":         {begun(`"hi"`), "a\n\nb", begun(`"hi\n\na\n\nb"`)},
		"before one, parts":          {begun(`[{"type":"text","text":"hi"}]`), "a", begun(`[{"type":"text","text":"hi"},{"type":"text","text":"a"}]`)},
		"before one, odd":            {begun(`7`), "a", strings.Replace(begun(`7`), said, `,{"role":"user","content":"a"}`+said, 1)},
		"after a result, before one": {tool + said + `}]}`, "a\n\nb", tool + `,{"role":"user","content":"a\n\nb"}` + said + `}]}`},
		"nothing but one":            {`{"messages":[` + said[1:] + `}]}`, "a", `{"messages":[{"role":"user","content":"a"}` + said + `}]}`},
		"after a call":               {tool + called + `]}`, "a", tool + called + `,{"role":"user","content":"a"}]}`},
		"nothing to append":          {user(`"hi"`), "", user(`"hi"`)},
	} {
		b, err := Parse([]byte(tt.body), Chat, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		e := b.Edit()
		if tt.note != "" {
			e.AppendNote(tt.note)
		}
		if e.Changed() != (tt.note != "") {
			t.Errorf("%s: changed is %t", name, e.Changed())
		}
		if got, err := e.Apply(); err != nil || string(got) != tt.want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, tt.want)
		}
		if string(b.Raw()) != tt.body {
			t.Errorf("%s: the body itself has changed", name)
		}
	}
}
