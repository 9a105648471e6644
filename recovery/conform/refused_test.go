package conform_test

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// What a target refuses of a history or a tool is edited alone, and only once.
func TestRefusedForms(t *testing.T) {
	body := func(rest string) string { return `{"model":"m","messages":[` + rest + `]}` }
	image := `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:x"}}]}`
	gone := `{"role":"user","content":[{"type":"text","text":"[image_url removed: this model takes no more of them]"}]}`
	call := func(arguments string) string {
		return `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":` + arguments + `}}]}`
	}
	nested := func(inner string) string {
		level := `{"type":"object","properties":{"a":`
		return strings.Repeat(level, 4) + inner + strings.Repeat("}}", 4)
	}
	schema := func(parameters string) string {
		return `{"type":"function","function":{"name":"f","parameters":` + parameters + `}}`
	}
	tools := func(list string) string { return `{"model":"m","messages":[],"tools":[` + list + `]}` }
	for _, c := range []struct {
		ed       recovery.Edit
		in, want string
	}{
		{recovery.Edit{Conform: recovery.ConformOneSystem}, history("s one", "s two", "u hi", "s three"), history("s one\n\ntwo", "u hi", "u three")},
		{recovery.Edit{Conform: recovery.ConformOneSystem}, history("s one", "u hi"), ""},
		{recovery.Edit{Conform: recovery.ConformAnswered, Field: "reasoning_content"}, body(`{"role":"user","content":"u"},{"role":"assistant","content":"a","reasoning_content":"r"},{"role":"assistant","content":"b"}`),
			body(`{"role":"user","content":"u"},{"role":"assistant","content":"a","reasoning_content":"r"},{"role":"assistant","content":"b","reasoning_content":""}`)},
		{recovery.Edit{Conform: recovery.ConformAnswered, Field: "tool_calls"}, history("a b"), ""},
		{recovery.Edit{Conform: recovery.ConformThought}, body(`{"role":"user","content":"u"},{"role":"assistant","content":"a","reasoning_content":"r"},{"role":"assistant","content":"b","reasoning_content":""},{"role":"assistant","content":"c"}`),
			body(`{"role":"user","content":"u"},{"role":"assistant","content":"a","reasoning_content":"r"},{"role":"assistant","content":"b","reasoning_content":" "},{"role":"assistant","content":"c","reasoning_content":" "}`)},
		{recovery.Edit{Conform: recovery.ConformThought}, body(`{"role":"assistant","content":"b","reasoning_content":" "}`), ""},
		{recovery.Edit{Conform: recovery.ConformContent}, body(`{"role":"assistant","tool_calls":[]},{"role":"user","content":"u"}`),
			body(`{"role":"assistant","tool_calls":[],"content":""},{"role":"user","content":"u"}`)},
		{recovery.Edit{Conform: recovery.ConformArguments}, body(call(`"{\"a\": tru"`) + "," + call(`"{\"a\":true}"`)), body(call(`"{}"`) + "," + call(`"{\"a\":true}"`))},
		{recovery.Edit{Conform: recovery.ConformMissing}, tools(`{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b","parameters":{"type":"object"}}}`),
			tools(`{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"b","parameters":{"type":"object"}}}`)},
		{recovery.Edit{Conform: recovery.ConformItems}, tools(`{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{"x":{"type":"string"},"type":"object","any":true}}}}`),
			tools(`{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{"x":{"type":"string"},"any":true}}}}`)},
		{recovery.Edit{Conform: recovery.ConformContent}, body(`{"role":"assistant","content":null,"tool_calls":[]}`), body(`{"role":"assistant","content":"","tool_calls":[]}`)},
		{recovery.Edit{Conform: recovery.ConformNested, Field: "cache_control"},
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"cache_control":1,"type":"text", "text":"\"cache_control\""}],"cache_control":2}],` +
				`"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"cache_control":{}}}},"cache_control":{}}]}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text", "text":"\"cache_control\""}],"cache_control":2}],` +
				`"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"cache_control":{}}}}}]}`},
		{recovery.Edit{Conform: recovery.ConformNested, Field: "content"}, history("u hi"), ""},
		{recovery.Edit{Conform: recovery.ConformNames},
			`{"messages":[{"role":"user","name":"fs.read","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"fs.read","arguments":"{\"name\":\"fs.read\"}"}}]},` +
				`{"role":"tool","tool_call_id":"1","name":"fs.read","content":"x"}],"tools":[{"type":"function","function":{"name":"fs.read"}},{"type":"function","function":{"name":"ok"}}],` +
				`"tool_choice":{"type":"function","function":{"name":"fs.read"}}}`,
			`{"messages":[{"role":"user","name":"fs.read","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"fs_read","arguments":"{\"name\":\"fs.read\"}"}}]},` +
				`{"role":"tool","tool_call_id":"1","name":"fs_read","content":"x"}],"tools":[{"type":"function","function":{"name":"fs_read"}},{"type":"function","function":{"name":"ok"}}],` +
				`"tool_choice":{"type":"function","function":{"name":"fs_read"}}}`},
		{recovery.Edit{Conform: recovery.ConformThinking}, `{"messages":[]}`, `{"messages":[],"enable_thinking":false}`},
		{recovery.Edit{Conform: recovery.ConformThinking}, `{"messages":[],"stream":true}`, ""},
		{recovery.Edit{Conform: recovery.ConformNoTools}, `{"messages":[],"tool_choice":"auto","parallel_tool_calls":true}`, `{"messages":[]}`},
		{recovery.Edit{Conform: recovery.ConformNoTools}, `{"messages":[],"tool_choice":"required","tools":[]}`, ""},
		{recovery.Edit{Conform: recovery.ConformOption, Field: "output_config.effort"}, `{"messages":[],"output_config":{ "effort": "high" }}`, `{"messages":[]}`},
		{recovery.Edit{Conform: recovery.ConformSingle}, history("u go", "c x,y", "r y=b", "r x=a", "u on"), history("u go", "c x", "r x=a", "c y", "r y=b", "u on")},
		{recovery.Edit{Conform: recovery.ConformSingle}, history("u go", "c x,y", "r x=a", "u on"), ""},
		{recovery.Edit{Conform: recovery.ConformNoSystem}, history("s one", "u hi", "a yes", "s two"), history("u one\n\nhi", "a yes", "u two")},
		{recovery.Edit{Conform: recovery.ConformNoSystem}, history("s one", "a yes"), history("u one", "a yes")},
		{recovery.Edit{Conform: recovery.ConformTrimmed}, history("u hi", "a yes "), history("u hi", "a yes")},
		{recovery.Edit{Conform: recovery.ConformTrimmed}, history("u hi", "a yes ", "u on "), ""},
		{recovery.Edit{Conform: recovery.ConformFlat}, tools(schema(nested(`{"type":"object","description":"Where.","properties":{"e":{"type":"string"}}}`))), tools(schema(nested(`{"type":"object","description":"Where. (its parts are not listed)"}`)))},
		{recovery.Edit{Conform: recovery.ConformFlat}, tools(schema(nested(`{"type":"array","items":{"type":"string"}}`))), ""},
		{recovery.Edit{Conform: recovery.ConformFlat}, tools(schema(`{"type":"object","properties":{"a":{"type":"string"}}}`)), ""},
		{recovery.Edit{Conform: recovery.ConformAlone}, tools(schema(`{"type":"object","properties":{"a":{"description":"Which.","anyOf":[{"type":"string"},{"type":"integer"}],"default":1}}}`)),
			tools(schema(`{"type":"object","properties":{"a":{"anyOf":[{"type":"string","description":"Which."},{"type":"integer"}]}}}`))},
		{recovery.Edit{Conform: recovery.ConformEnum}, tools(schema(`{"type":"object","properties":{"enum":{"type":"integer","enum":[1,2]},"b":{"enum":["x"]}}}`)),
			tools(schema(`{"type":"object","properties":{"enum":{"type":"integer"},"b":{"enum":["x"]}}}`))},
		{recovery.Edit{Conform: recovery.ConformTyped}, tools(schema(`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["string","integer"]},"n":{"type":["null"]}},"required":["a","c"]}`)),
			tools(schema(`{"type":"object","properties":{"a":{"type":"string"},"b":{"anyOf":[{"type":"string"},{"type":"integer"}]},"n":{"type":"null"}},"required":["a"]}`))},
		{recovery.Edit{Conform: recovery.ConformUntold}, tools(`{"type":"function","function":{"name":"f","description":"","parameters":{"properties":{"description":""}}}}`),
			tools(`{"type":"function","function":{"name":"f","parameters":{"properties":{"description":""}}}}`)},
		{recovery.Edit{Conform: recovery.ConformPadded}, body(call(`"{}"`)), body(strings.Replace(call(`"{}"`), "null", `" "`, 1))},
		{recovery.Edit{Conform: recovery.ConformArguments}, body(`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"custom","custom":{"name":"apply_patch","input":"*** Begin Patch"}}]}`), ""},
		{recovery.Edit{Conform: recovery.ConformMedia, Field: "2"}, body(image + "," + image + "," + image), body(gone + "," + image + "," + image)},
		{recovery.Edit{Conform: recovery.ConformMedia, Field: "3"}, body(image + "," + image + "," + image), ""},
	} {
		got, changed := after(t, c.in, c.ed)
		if c.want == "" {
			c.want = c.in
		}
		if got != c.want {
			t.Errorf("%v of\n%s\nis\n%s\nwant\n%s", c.ed, c.in, got, c.want)
		}
		if again, more := after(t, got, c.ed); changed && more {
			t.Errorf("%v changes it again: %s", c.ed, again)
		}
		if !c.ed.Known() {
			t.Errorf("%v is none that is remembered", c.ed)
		}
	}
}
