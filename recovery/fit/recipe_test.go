package fit

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func sampleSession() *session {
	return &session{Gen: 3, Written: 1_700_000_000, Scale: 1130, Window: 64_000, Target: 99, Anchor: Anchor{Messages: 7, Hash: 1 << 63, Reported: 60_000, Raw: 50_000},
		Recipes: []recipe{{1, opRepeated, 0}, {1 << 63, opShorten, 600}, {5, opArguments, 160}},
		Sealed:  []*sealed{{Op: opCut, First: 8, Span: 9, Kept: []int{0, 3, 8}, Box: []byte("box")}, {Op: opSealed, First: 9, Span: 1, Box: []byte{}}}}
}

func TestSessionRoundTrip(t *testing.T) {
	for _, s := range []*session{{}, sampleSession()} {
		got, err := decodeSession(s.encode())
		if err == nil {
			err = got.decodeReport(s.encodeReport())
		}
		if err != nil || !reflect.DeepEqual(normal(got), normal(s)) {
			t.Errorf("%+v became %+v, %v", s, got, err)
		}
	}
	for name, c := range map[string]struct {
		value  []byte
		decode func([]byte) error
	}{
		"edits":  {sampleSession().encode(), func(b []byte) error { _, err := decodeSession(b); return err }},
		"report": {sampleSession().encodeReport(), new(session).decodeReport},
	} {
		for i := range c.value {
			if c.decode(c.value[:i]) == nil {
				t.Errorf("%s: a value cut at %d was not noticed", name, i)
			}
		}
		for _, other := range []string{"", "null", "[]", `{"v":3}`, `{"v":5}`, "\x03\x01\x02\x03\x04\x05\x06\x07", `{"v":4,"recipes":[{"k":1,"o":10}]}`,
			`{"v":4,"recipes":[{"k":-1,"o":1}]}`, `{"v":4,"sealed":[null]}`, `{"v":4,"sealed":[{"o":7,"k":1,"n":2,"s":[2]}]}`, `{"v":4,"anchor":7}`} {
			if c.decode([]byte(other)) == nil && (name == "edits") != strings.Contains(other, "anchor") && !strings.Contains(other, `"v":4`) {
				t.Errorf("%s: %q was read", name, other)
			}
			if name == "edits" && strings.Contains(other, `":[`) && c.decode([]byte(other)) == nil {
				t.Errorf("%q was read", other)
			}
		}
	}
	many := &session{Recipes: make([]recipe, 3*maxRecipes)}
	for i := range many.Recipes {
		many.Recipes[i] = recipe{uint64(i), opOutdated, 1}
	}
	if got, err := decodeSession(many.encode()); err != nil || len(got.Recipes) != maxRecipes {
		t.Errorf("too many recipes: %v", err)
	}
}

// normal makes nil and empty the same.
func normal(s *session) *session {
	c := *s
	c.Sealed = nil
	for _, box := range s.Sealed {
		b := *box
		b.Box, b.Kept = append([]byte{}, b.Box...), append([]int{}, b.Kept...)
		c.Sealed = append(c.Sealed, &b)
	}
	return &c
}

func FuzzSession(f *testing.F) {
	f.Add(sampleSession().encode())
	f.Add(sampleSession().encodeReport())
	f.Add([]byte{1, 0, 0})
	f.Fuzz(func(t *testing.T, value []byte) {
		var last, same session
		if last.decodeReport(value) == nil && (same.decodeReport(last.encodeReport()) != nil || !reflect.DeepEqual(last, same)) {
			t.Errorf("the report %+v became %+v", last, same)
		}
		s, err := decodeSession(value)
		if err != nil {
			return
		}
		again, err := decodeSession(s.encode())
		if err != nil || !reflect.DeepEqual(normal(s), normal(again)) {
			t.Errorf("%+v became %+v, %v", s, again, err)
		}
	})
}

func TestKeys(t *testing.T) {
	plain := newScript()
	plain.call("bash", `{"command":"ls"}`, "x")
	plain.call("bash", `{"command":"ls"}`, "x")
	marked := newScript()
	marked.raw(`{"role":"assistant","reasoning_content":"hm","tool_calls":[{"type":"function","id":"call_2","function":{"arguments":"{\"command\":\"ls\"}","name":"bash"}}]}`)
	marked.raw(`{"tool_call_id":"call_2","role":"tool","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}`)
	a, b := plain.view(t), marked.view(t)
	for i := range b.items {
		if a.items[i].key != b.items[i].key {
			t.Errorf("message %d has another key for its spelling", i)
		}
	}
	twice := newScript()
	for range 2 {
		twice.raw(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function","function":{"name":"bash","arguments":"{}"}}]}`)
		twice.raw(`{"role":"tool","tool_call_id":"call_0","content":"the same"}`)
	}
	v := twice.view(t)
	if v.items[3].key == v.items[5].key {
		t.Error("two equal messages have one key")
	}
	other := newView(plain.body(t), nil)
	other.keyed(newKeys([]byte("another credential")))
	if other.items[3].key == a.items[3].key {
		t.Error("two credentials have one key")
	}
}

func TestSealed(t *testing.T) {
	s := newScript()
	s.call("bash", `{"command":"ls"}`, "x")
	v := s.view(t)
	key, err := v.sealKey(newKeys([]byte("a")), []int{2, 3})
	if err != nil {
		t.Fatal(err)
	}
	text := mark("what was said")
	box := seal(key, text)
	if bytes.Contains(box, []byte("said")) {
		t.Error("the text can be read")
	}
	if got, ok := unsealed(key, box); !ok || got != text {
		t.Errorf("opened %q", got)
	}
	for _, other := range [][]int{{2}, {3, 2}} {
		wrong, _ := v.sealKey(newKeys([]byte("a")), other)
		if _, ok := unsealed(wrong, box); ok {
			t.Errorf("opened for messages %v", other)
		}
	}
	wrong, _ := v.sealKey(newKeys([]byte("b")), []int{2, 3})
	if _, ok := unsealed(wrong, box); ok {
		t.Error("opened with another credential")
	}
	if _, ok := unsealed(key, seal(key, "no mark")); ok {
		t.Error("a text without a mark was accepted")
	}
	if _, ok := unsealed(key, box[:5]); ok {
		t.Error("a cut box was opened")
	}
}

// After the client went back, what newer content had replaced is whole again.
func TestRewound(t *testing.T) {
	s := newScript()
	old := s.call("read", `{"path":"a.go"}`, lines(200, "old"))
	long := s.call("bash", `{"command":"make"}`, lines(300, "make"))
	early := s.view(t)
	s.call("read", `{"path":"a.go"}`, lines(200, "new"))
	s.call("bash", `{"command":"true"}`, "")
	v := s.view(t)
	k := newWork(v, offline(), "gpt-4o")
	if !k.add(old, recipe{Op: opOutdated}, 1) || !k.add(long, recipe{Op: opShorten, A: 1100}, 1) {
		t.Fatal("no edits")
	}
	var kept session
	k.keep(&kept)
	again := newWork(v, offline(), "gpt-4o")
	again.apply(&kept, newKeys([]byte("k")))
	if a, b := built(t, k), built(t, again); a != b {
		t.Error("the same recipes make another request")
	}
	back := newWork(early, offline(), "gpt-4o")
	if back.apply(&kept, newKeys([]byte("k"))) {
		t.Errorf("edited although nothing newer follows: %v", strings.Count(built(t, back), "_compressed"))
	}
}

func built(t *testing.T, k *work) string {
	t.Helper()
	b, err := k.build()
	if err != nil {
		t.Fatal(err)
	}
	return string(b.Raw())
}
