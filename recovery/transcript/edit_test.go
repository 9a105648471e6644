package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func parse(t testing.TB, raw string) *Body {
	t.Helper()
	b, err := Parse([]byte(raw), Chat, Limits{})
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return b
}

func TestEditBytes(t *testing.T) {
	one, obj, two := []byte(`1`), []byte(`{"n":1}`), []byte(`{"n":2}`)
	msg := []byte(`{"role":"user","content":"x"}`)
	for _, c := range []struct {
		name, in string
		edit     func(*Editor)
		want     string
	}{
		{"nothing", ` { "a" : 1 } `, func(e *Editor) {}, ` { "a" : 1 } `},
		{"set in place", ` { "a" : 1.00 , "b":2 } `, func(e *Editor) { e.Set("b", []byte(`"<>"`)) }, ` { "a" : 1.00 , "b":"<>" } `},
		{"set new", `{ "a" : 1.00 }`, func(e *Editor) { e.Set("b", one) }, `{ "a" : 1.00,"b":1 }`},
		{"set new, pretty", "{\n  \"a\": 1\n}\n", func(e *Editor) { e.Set("b", one) }, "{\n  \"a\": 1,\"b\":1\n}\n"},
		{"set in empty", `{ }`, func(e *Editor) { e.Set("b", one).Set("c", one) }, `{"b":1,"c":1 }`},
		{"set empty name", `{"a":1}`, func(e *Editor) { e.Set("", one) }, `{"a":1,"":1}`},
		{"set a name to be escaped", `{"a":1}`, func(e *Editor) { e.Set("a\"\n", one) }, `{"a":1,"a\"\n":1}`},
		{"set an escaped name", `{"\u0061":2}`, func(e *Editor) { e.Set("a", one) }, `{"\u0061":1}`},
		{"delete first", `{ "a": 1 , "b": 2 , "c": 3 }`, func(e *Editor) { e.Delete("a") }, `{ "b": 2 , "c": 3 }`},
		{"delete middle", `{ "a": 1 , "b": 2 , "c": 3 }`, func(e *Editor) { e.Delete("b") }, `{ "a": 1 , "c": 3 }`},
		{"delete last", `{ "a": 1 , "b": 2 , "c": 3 }`, func(e *Editor) { e.Delete("c") }, `{ "a": 1 , "b": 2 }`},
		{"delete first two", `{ "a": 1 , "b": 2 , "c": 3 }`, func(e *Editor) { e.Delete("a").Delete("b") }, `{ "c": 3 }`},
		{"delete last two", `{ "a": 1 , "b": 2 , "c": 3 }`, func(e *Editor) { e.Delete("c").Delete("b") }, `{ "a": 1 }`},
		{"delete ends", `{ "a": 1 , "b": 2 , "c": 3 }`, func(e *Editor) { e.Delete("a").Delete("c") }, `{ "b": 2 }`},
		{"delete all", `{ "a": 1 , "b": 2 }`, func(e *Editor) { e.Delete("a").Delete("b") }, `{  }`},
		{"delete only", `{"a":1}`, func(e *Editor) { e.Delete("a") }, `{}`},
		{"delete none", `{"a":1}`, func(e *Editor) { e.Delete("x").Rename("x", "y") }, `{"a":1}`},
		{"delete all and set", `{ "a": 1 , "b": 2 }`, func(e *Editor) { e.Delete("a").Delete("b").Set("c", one) }, `{ "c":1 }`},
		{"delete last and set", `{"a":0,"b":2}`, func(e *Editor) { e.Delete("b").Set("c", one) }, `{"a":0,"c":1}`},
		{"delete then set the same", `{"a":0,"b":2}`, func(e *Editor) { e.Delete("a").Set("a", one) }, `{"a":1,"b":2}`},
		{"set then delete", `{"a":0}`, func(e *Editor) { e.Set("b", one).Delete("b").Set("a", one) }, `{"a":1}`},
		{"set twice", `{"a":0}`, func(e *Editor) { e.Set("a", []byte(`9`)).Set("a", one).Set("b", []byte(`9`)).Set("b", one) }, `{"a":1,"b":1}`},
		{"rename", `{ "max_tokens" : 5 , "b":2 }`, func(e *Editor) { e.Rename("max_tokens", "max_completion_tokens") }, `{ "max_completion_tokens" : 5 , "b":2 }`},
		{"rename and set", `{"a":0}`, func(e *Editor) { e.Rename("a", "b").Set("b", one).Set("a", []byte(`7`)) }, `{"b":1,"a":7}`},
		{"rename over a deleted one", `{"a":0,"b":2}`, func(e *Editor) { e.Delete("b").Rename("a", "b") }, `{"b":0}`},
		{"swap", `{"a":0,"b":2}`, func(e *Editor) { e.Rename("a", "x").Rename("b", "a").Rename("x", "b") }, `{"b":0,"a":2}`},
		{"model", `{"messages":[], "model" : "gpt" }`, func(e *Editor) { e.SetModel(`a"b`) }, `{"messages":[], "model" : "a\"b" }`},
		{"model, absent", `{"messages":[]}`, func(e *Editor) { e.SetModel(`m`) }, `{"messages":[],"model":"m"}`},
		{"model and more", `{"model":"g","a":1}`, func(e *Editor) { e.SetModel(`m`).Delete("a") }, `{"model":"m"}`},
		{"more and model", `{"model":"g","a":1}`, func(e *Editor) { e.Delete("a").SetModel(`m`).SetModel("o") }, `{"model":"o"}`},

		{"append", `{"messages":[ {"a":1} ]}`, func(e *Editor) { e.AppendMessage(msg) }, `{"messages":[ {"a":1},{"role":"user","content":"x"} ]}`},
		{"append to none", `{"messages": [ ] }`, func(e *Editor) { e.AppendMessage(msg).AppendMessage(obj) }, `{"messages": [{"role":"user","content":"x"},{"n":1} ] }`},
		{"replace", `{"messages":[ {"a":1} , {"b":2} ]}`, func(e *Editor) { e.ReplaceMessage(1, obj) }, `{"messages":[ {"a":1} , {"n":1} ]}`},
		{"remove first", `{"messages":[ {"a":1} , {"b":2} ]}`, func(e *Editor) { e.RemoveMessage(0) }, `{"messages":[ {"b":2} ]}`},
		{"remove last", `{"messages":[ {"a":1} , {"b":2} ]}`, func(e *Editor) { e.RemoveMessage(1) }, `{"messages":[ {"a":1} ]}`},
		{"remove all and append", `{"messages":[ {"a":1} , {"b":2} ]}`, func(e *Editor) { e.RemoveMessage(1).RemoveMessage(0).AppendMessage(obj) }, `{"messages":[ {"n":1} ]}`},
		{"insert first", `{"messages":[ {"a":1} ]}`, func(e *Editor) { e.InsertMessage(0, obj).InsertMessage(0, two) }, `{"messages":[ {"n":1},{"n":2},{"a":1} ]}`},
		{"insert and replace", `{"messages":[{"a":1}]}`, func(e *Editor) { e.InsertMessage(0, obj).ReplaceMessage(0, two) }, `{"messages":[{"n":1},{"n":2}]}`},
		{"insert and remove", `{"messages":[{"a":1},{"n":3}]}`, func(e *Editor) { e.InsertMessage(0, obj).RemoveMessage(0) }, `{"messages":[{"n":1},{"n":3}]}`},
		{"remove before an insert", `{"messages":[{"a":1},{"b":2}]}`, func(e *Editor) { e.InsertMessage(1, obj).RemoveMessage(0) }, `{"messages":[{"n":1},{"b":2}]}`},
		{"remove and replace", `{"messages":[{"a":1}]}`, func(e *Editor) { e.RemoveMessage(0).ReplaceMessage(0, obj) }, `{"messages":[{"n":1}]}`},
		{"message field", `{"messages":[{ "role" : "user", "content" : "x" , "z":1}]}`, func(e *Editor) { e.SetMessageField(0, "content", one) }, `{"messages":[{ "role" : "user", "content" : 1 , "z":1}]}`},
		{"message field new", `{"messages":[{ "role" : "user" }]}`, func(e *Editor) { e.SetMessageField(0, "content", one) }, `{"messages":[{ "role" : "user","content":1 }]}`},
		{"message field gone", `{"messages":[{ "role" : "user" , "x":1}]}`, func(e *Editor) { e.DeleteMessageField(0, "role") }, `{"messages":[{ "x":1}]}`},
		{"message field of a replacement", `{"messages":[{}]}`, func(e *Editor) { e.ReplaceMessage(0, msg).SetMessageField(0, "content", one) }, `{"messages":[{"role":"user","content":1}]}`},
		{"message field twice in the source", `{"messages":[{"a":0,"a":2}]}`, func(e *Editor) { e.SetMessageField(0, "a", one) }, `{"messages":[{"a":0,"a":1}]}`},
		{"roles", `{"messages":[{"role": "developer","content":"developer"},{"content":"a","role":"user"},{"x":{},"role":"d\u0065veloper"}]}`,
			func(e *Editor) { e.SetRole(RoleDeveloper, RoleSystem) }, `{"messages":[{"role": "system","content":"developer"},{"content":"a","role":"user"},{"x":{},"role":"system"}]}`},
		{"roles and removal", `{"messages":[{"role":"system"},{"role":"user"}]}`, func(e *Editor) { e.RemoveMessage(0).SetRole("system", "developer") }, `{"messages":[{"role":"user"}]}`},
		{"fields and messages", `{"a":1,"messages":[{"role":"user"}],"b":2}`, func(e *Editor) { e.Delete("a").AppendMessage(obj).Set("b", one) }, `{"messages":[{"role":"user"},{"n":1}],"b":1}`},
		{"continue", `{"messages":[{"role":"user"}]}`, func(e *Editor) { e.Continue("a\"b", "assistant") }, `{"messages":[{"role":"user"},{"role":"assistant","content":"a\"b"}]}`},
		{"continue, begun", `{"messages":[{"role":"assistant","content":"\u00e9 "}]}`, func(e *Editor) { e.AppendNote("n").Continue("a\"b", "assistant") }, `{"messages":[{"role":"user","content":"n"},{"role":"assistant","content":"\u00e9 a\"b"}]}`},
		{"continue, begun, prefix", `{"messages":[{"role":"assistant","content":"x "}]}`, func(e *Editor) { e.Continue("a", "prefix") }, `{"messages":[{"role":"assistant","content":"x a","prefix":true}]}`},
		{"continue, begun in parts", `{"messages":[{"role":"assistant","content":[]}]}`, func(e *Editor) { e.Continue("a", "assistant") }, `{"messages":[{"role":"assistant","content":[]},{"role":"assistant","content":"a"}]}`},
		{"continue, called", `{"messages":[{"role":"assistant","content":"x","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}]}`, func(e *Editor) { e.Continue("a", "assistant") },
			`{"messages":[{"role":"assistant","content":"x","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"assistant","content":"a"}]}`},
		{"continue, prefix", `{"messages":[{"role":"user"}]}`, func(e *Editor) { e.Continue("a", "prefix") }, `{"messages":[{"role":"user"},{"role":"assistant","content":"a","prefix":true}]}`},
		{"continue, switch", `{"messages":[{"role":"user"}],"add_generation_prompt":true}`, func(e *Editor) { e.Continue("a", "continue_final_message") },
			`{"messages":[{"role":"user"},{"role":"assistant","content":"a"}],"add_generation_prompt":false,"continue_final_message":true}`},
		{"integer", `{"max_tokens": 90000 }`, func(e *Editor) { e.SetInt("max_tokens", 4096) }, `{"max_tokens": 4096 }`},
		{"lower limit", `{"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":31999}}`, func(e *Editor) { e.LowerOutput("max_tokens", 8000) }, `{"max_tokens":8000,"thinking":{"type":"enabled","budget_tokens":4096}}`},
		{"lower limit, OpenRouter", `{"reasoning":{"max_tokens":8000},"max_tokens":9000}`, func(e *Editor) { e.LowerOutput("max_tokens", 8000) }, `{"reasoning":{"max_tokens":4096},"max_tokens":8000}`},
		{"lower limit, little thinking", `{"max_tokens":32000,"thinking":{"budget_tokens":2000}}`, func(e *Editor) { e.LowerOutput("max_tokens", 8000) }, `{"max_tokens":8000,"thinking":{"budget_tokens":2000}}`},
		{"lower limit, no room to think", `{"max_tokens":32000,"thinking":{"budget_tokens":2000}}`, func(e *Editor) { e.LowerOutput("max_tokens", 1024) }, `{"max_tokens":1024,"thinking":{"budget_tokens":2000}}`},
		{"value by place", `{"messages":[{"content": "abc" }]}`, func(e *Editor) {
			at, _ := e.body.Messages()[0].Content()
			e.Replace(at, []byte(`"z"`)).SetModel("m")
		}, `{"messages":[{"content": "z" }],"model":"m"}`},
	} {
		b := parse(t, c.in)
		e := b.Edit()
		c.edit(e)
		got, err := e.Apply()
		if err != nil || string(got) != c.want {
			t.Errorf("%s:\n got %s %v\nwant %s", c.name, got, err, c.want)
		}
		if string(b.Raw()) != c.in {
			t.Errorf("%s: the body was changed to %s", c.name, b.Raw())
		}
		again, err := e.Body()
		if err != nil || string(again.Raw()) != c.want {
			t.Errorf("%s: applied again: %v", c.name, err)
		}
	}
}

func TestEditRefuses(t *testing.T) {
	for name, edit := range map[string]func(*Editor){
		"not a value":           func(e *Editor) { e.Set("a", []byte(`1,"x":2`)) },
		"empty value":           func(e *Editor) { e.Set("a", nil) },
		"escape from an object": func(e *Editor) { e.AppendMessage([]byte(`{}},{`)) },
		"wrong type":            func(e *Editor) { e.Set("model", []byte(`1`)) },
		"too deep":              func(e *Editor) { e.Set("a", []byte(strings.Repeat("[", 512)+strings.Repeat("]", 512))) },
		"taken name":            func(e *Editor) { e.Rename("a", "model") },
		"no such message":       func(e *Editor) { e.RemoveMessage(2) },
		"negative message":      func(e *Editor) { e.SetMessageField(-1, "a", []byte(`1`)) },
		"not an object":         func(e *Editor) { e.ReplaceMessage(1, []byte(`1`)) },
		"not an object either":  func(e *Editor) { e.AppendMessage([]byte(`"x"`)) },
		"field and message":     func(e *Editor) { e.AppendMessage([]byte(`{}`)).Set("messages", []byte(`[]`)) },
		"field gone":            func(e *Editor) { e.AppendMessage([]byte(`{}`)).Delete("messages") },
		"overlap":               func(e *Editor) { e.Replace(Span{1, 9}, []byte(`1`)).Set("a", []byte(`1`)) },
		"overlap in a message": func(e *Editor) {
			m := e.body.Messages()[0]
			e.Replace(Span{m.Start, m.End}, []byte(`1`)).RemoveMessage(0)
		},
		"half a value":     func(e *Editor) { e.Replace(Span{1, 3}, []byte(`1`)) },
		"outside":          func(e *Editor) { e.Replace(Span{1, 300}, []byte(`1`)) },
		"stays remembered": func(e *Editor) { e.Set("a", []byte(`x`)).SetModel("m") },
	} {
		b := parse(t, `{"a":1,"messages":[{"role":"user"},{"role":"tool"}],"model":"x"}`)
		e := b.Edit()
		edit(e)
		if got, err := e.Apply(); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
	if _, err := parse(t, `{"model":"m"}`).Edit().AppendMessage([]byte(`{}`)).Apply(); err == nil {
		t.Error("a message was appended to no history")
	}
}

func TestNoEditReturnsTheSameBytes(t *testing.T) {
	for name, raw := range samples(t) {
		b := parse(t, string(raw))
		got, err := b.Edit().Apply()
		if err != nil || &got[0] != &b.Raw()[0] || len(got) != len(raw) {
			t.Errorf("%s: %v", name, err)
		}
		if b.Edit().Changed() || !b.Edit().SetModel("x").Changed() || !b.Edit().Delete("x").Changed() {
			t.Error("changed")
		}
	}
}

// An edit does to the bytes what the same steps do to decoded values, and
// leaves alone what the steps do not name.
func TestEditProperty(t *testing.T) {
	for seed := range uint64(3000) {
		editProperty(t, seed)
	}
}

func FuzzEdit(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(editProperty)
}

func editProperty(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	ws := func() string { return pick("", "", "", " ", "\n  ", "\t\r\n") }
	value := func() string {
		return pick(`1`, `1.50`, `null`, `"a<b"`, `"\u00e9\n"`, `[ 1, {"x" : [] } ]`, `{"k": "v" ,"k2":-0}`, `""`, `{}`, `[]`, `true`)
	}
	message := func() string {
		var parts []string
		for _, k := range []string{`"role"`, `"content"`, `"x"`, `"r\u006fles"`} {
			if r.IntN(4) == 0 {
				continue
			}
			v := value()
			if k == `"role"` {
				v = `"` + pick("user", "assistant", "system", "developer", "tool") + `"`
			}
			parts = append(parts, ws()+k+ws()+":"+ws()+v+ws())
		}
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		if len(parts) == 0 {
			return "{" + ws() + "}"
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	// A body as text.
	names := []string{"a", "b", "c", "d", "messages"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:r.IntN(len(names)+1)]
	var parts []string
	for _, k := range names {
		v := value()
		if k == "messages" {
			var list []string
			for range r.IntN(5) {
				list = append(list, ws()+message()+ws())
			}
			v = "[" + ws() + strings.Join(list, ",") + "]"
		}
		parts = append(parts, ws()+`"`+k+`"`+ws()+":"+ws()+v+ws())
	}
	raw := ws() + "{" + ws() + strings.Join(parts, ",") + "}" + ws()
	b := parse(t, raw)

	// The same in decoded form: ordered fields and messages.
	type pair struct {
		name string
		raw  string
	}
	var fields []pair
	b.Fields(func(name string, raw []byte) bool { fields = append(fields, pair{name, string(raw)}); return true })
	find := func(name string) int {
		return slices.IndexFunc(fields, func(p pair) bool { return p.name == name })
	}
	type msg struct{ before, own []string }
	history := make([]msg, len(b.Messages()))
	decode := func(s string) (v map[string]any) { _ = json.Unmarshal([]byte(s), &v); return }
	encode := func(v any) string { s, _ := json.Marshal(v); return string(s) }
	touched := make([]bool, len(history))
	for i, m := range b.Messages() {
		history[i].own = []string{string(m.Raw())}
	}
	var tail []string

	e := b.Edit()
	var log []string
	for range r.IntN(6) {
		name, v := pick("a", "b", "c", "d", "e"), value()
		op := r.IntN(9)
		if op >= 4 && find("messages") < 0 || op > 4 && op < 8 && len(history) == 0 {
			continue
		}
		i := 0
		if len(history) > 0 {
			i = r.IntN(len(history))
		}
		gone := len(history) > 0 && len(history[i].own) == 0
		log = append(log, fmt.Sprint(op, name, v, i))
		switch op {
		case 0, 1:
			e.Set(name, []byte(v))
			if k := find(name); k >= 0 {
				fields[k].raw = v
			} else {
				fields = append(fields, pair{name, v})
			}
		case 2:
			e.Delete(name)
			if k := find(name); k >= 0 {
				fields = slices.Delete(fields, k, k+1)
			}
		case 3:
			to := name + "2"
			if find(to) >= 0 {
				continue
			}
			e.Rename(name, to)
			if k := find(name); k >= 0 {
				fields[k].name = to
			}
		case 4:
			m := message()
			e.AppendMessage([]byte(m))
			tail = append(tail, m)
		case 5:
			m := message()
			e.ReplaceMessage(i, []byte(m))
			history[i].own, touched[i] = []string{m}, true
		case 6:
			e.RemoveMessage(i)
			history[i].own, touched[i] = nil, true
		case 7:
			if gone {
				continue
			}
			e.SetMessageField(i, name, []byte(v))
			m := decode(history[i].own[0])
			m[name] = json.RawMessage(v)
			history[i].own[0], touched[i] = encode(m), true
		case 8:
			if len(history) == 0 {
				continue
			}
			m := message()
			e.InsertMessage(i, []byte(m))
			history[i].before = append(history[i].before, m)
		}
	}
	got, err := e.Body()
	if err != nil {
		t.Fatalf("seed %d %v: %s: %v", seed, log, raw, err)
	}
	context := func() string { return fmt.Sprintf("seed %d %v:\n in %s\nout %s", seed, log, raw, got.Raw()) }

	// Same fields with the same values; untouched ones have the same bytes because values are compared as text.
	var have []string
	got.Fields(func(name string, raw []byte) bool {
		have = append(have, name)
		k := find(name)
		if k < 0 {
			t.Fatalf("%s\nextra field %s", context(), name)
		}
		if name != "messages" && fields[k].raw != string(raw) {
			t.Fatalf("%s\n%s = %s, want %s", context(), name, raw, fields[k].raw)
		}
		return true
	})
	if len(have) != len(fields) {
		t.Fatalf("%s\nfields %q", context(), have)
	}
	var want []string
	exact := map[int]bool{}
	for i, m := range history {
		want = append(want, m.before...)
		if !touched[i] {
			exact[len(want)] = true
		}
		want = append(want, m.own...)
	}
	want = append(want, tail...)
	if len(want) != len(got.Messages()) {
		t.Fatalf("%s\nwant %d messages", context(), len(want))
	}
	for i, m := range got.Messages() {
		if exact[i] && string(m.Raw()) != want[i] {
			t.Fatalf("%s\nmessage %d was not touched: %s", context(), i, want[i])
		}
		if !reflect.DeepEqual(decode(string(m.Raw())), decode(want[i])) {
			t.Fatalf("%s\nmessage %d, want %s", context(), i, want[i])
		}
	}
	if len(log) == 0 && string(got.Raw()) != raw {
		t.Fatalf("%s\nno edit changed the bytes", context())
	}
}

// Everything before and after a changed value keeps its bytes, in real bodies.
func TestEditKeepsRealBodies(t *testing.T) {
	for name, raw := range samples(t) {
		b := parse(t, string(raw))
		b.Fields(func(field string, old []byte) bool {
			if field == "messages" || field == "model" || strings.HasPrefix(field, "stream") {
				return true
			}
			got, err := b.Edit().Set(field, []byte(`"new"`)).Apply()
			if want := bytes.Replace(raw, old, []byte(`"new"`), 1); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %s: %v", name, field, err)
			}
			return true
		})
		for i, m := range b.Messages() {
			got, err := b.Edit().ReplaceMessage(i, []byte(`{}`)).Apply()
			want := string(raw[:m.Start]) + `{}` + string(raw[m.End:])
			if err != nil || string(got) != want {
				t.Errorf("%s: message %d: %v", name, i, err)
			}
		}
	}
}
