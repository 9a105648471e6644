package fit

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit/count"
)

func sampleSession() *session {
	return &session{report: report{Anchor: count.Anchor{Messages: 7, Hash: 1 << 63, Reported: 60_000, Raw: 50_000}}, edits: edits{Gen: 3, Written: 1_700_000_000,
		Scale: 1130, Window: 64_000, Target: 99,
		Recipes: []recipe{{1, opMedia, 0}, {1 << 63, opShorten, 600}, {5, opArguments, 160}},
		Sealed:  []*sealed{{Op: opCut, First: 8, Span: 9, Kept: []int{0, 3, 8}, Box: []byte("box")}, {Op: opSealed, First: 9, Span: 1, Box: []byte{}}}}}
}

func TestSessionRoundTrip(t *testing.T) {
	for _, s := range []*session{{}, sampleSession()} {
		got, err := decodeSession(s.edits.encode())
		if err == nil {
			got.report, err = decodeReport(s.report.encode())
		}
		if err != nil || !reflect.DeepEqual(normal(got), normal(s)) {
			t.Errorf("%+v became %+v, %v", s, got, err)
		}
	}
	for name, c := range map[string]struct {
		value  []byte
		decode func([]byte) error
	}{
		"edits":  {sampleSession().edits.encode(), func(b []byte) error { _, err := decodeSession(b); return err }},
		"report": {sampleSession().report.encode(), func(b []byte) error { _, err := decodeReport(b); return err }},
	} {
		for i := range c.value {
			if c.decode(c.value[:i]) == nil {
				t.Errorf("%s: a value cut at %d was not noticed", name, i)
			}
		}
		for _, other := range []string{"", "null", "[]", `{"v":3}`, `{"v":6}`, "\x03\x01\x02\x03\x04\x05\x06\x07"} {
			if c.decode([]byte(other)) == nil {
				t.Errorf("%s: %q was read", name, other)
			}
		}
	}
	for _, wrong := range []string{`{"v":5,"recipes":[{"k":1,"o":5}]}`, `{"v":5,"recipes":[{"k":-1,"o":1}]}`, `{"v":5,"sealed":[null]}`,
		`{"v":5,"sealed":[{"o":6,"k":1,"n":2,"s":[2]}]}`, `{"v":5,"sealed":[{"o":1,"k":1,"n":1}]}`} {
		if _, err := decodeSession([]byte(wrong)); err == nil {
			t.Errorf("%q was read", wrong)
		}
	}
	many := edits{Recipes: make([]recipe, 3*maxRecipes)}
	for i := range many.Recipes {
		many.Recipes[i] = recipe{uint64(i), opShorten, 1}
	}
	if got, err := decodeSession(many.encode()); err != nil || len(got.Recipes) != maxRecipes {
		t.Errorf("too many recipes: %v", err)
	}
}

// Values of the previous format, which numbered the ops differently, are ignored, and the
// session is fitted anew.
func TestValuesOfTheVersionBefore(t *testing.T) {
	made := `{"v":4,"gen":2,"written":1763800000,"scale":1083,"window":9000,"target":1234,"recipes":[{"k":7,"o":1},{"k":8,"o":4,"a":1100},{"k":9,"o":5,"a":550}],` +
		`"sealed":[{"o":7,"k":11,"n":4,"s":[2],"b":"3q2+7w=="}]}`
	told := `{"v":4,"short":true,"anchor":{"m":7,"h":9223372036854775808,"f":5,"r":60000,"t":50000}}`
	if s, err := decodeSession([]byte(made)); err == nil {
		t.Errorf("the edits were read: %+v", s)
	}
	if r, err := decodeReport([]byte(told)); err == nil {
		t.Errorf("the report was read: %+v", r)
	}
	disk := newFakeStore()
	f := newTestFitter(t, Defaults(), disk)
	disk.m[editsKey("s")], disk.m[reportKey("s")] = []byte(made), []byte(told)
	b := talkScript(60).body(t)
	if got := f.Prepared(context.Background(), exchange(b, "s", nil)); got != nil {
		t.Errorf("fitted by old values: %+v", got.Compression)
	}
	x, out := fitOnce(t, f, b, 9000, "s", nil)
	if out == nil {
		t.Fatal("not fitted anew")
	}
	f.Learn(x, &x.Candidates[0], recovery.Usage{Input: out.After})
	f.Flush()
	if s, err := decodeSession(disk.m[editsKey("s")]); err != nil || !s.edited() {
		t.Errorf("the new edits are not stored: %v", err)
	}
}

// normal turns nil slices into empty ones.
func normal(s *session) *session {
	c := *s
	c.Recipes = append([]recipe{}, s.Recipes...)
	c.Sealed = nil
	for _, box := range s.Sealed {
		b := *box
		b.Box, b.Kept = append([]byte{}, b.Box...), append([]int{}, b.Kept...)
		c.Sealed = append(c.Sealed, &b)
	}
	return &c
}

func FuzzSession(f *testing.F) {
	f.Add(sampleSession().edits.encode())
	f.Add(sampleSession().report.encode())
	f.Add([]byte{1, 0, 0})
	f.Add([]byte(`{"v":5,"recipes":[]}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if last, err := decodeReport(value); err == nil {
			if same, err := decodeReport(last.encode()); err != nil || !reflect.DeepEqual(last, same) {
				t.Errorf("the report %+v became %+v", last, same)
			}
		}
		s, err := decodeSession(value)
		if err != nil {
			return
		}
		again, err := decodeSession(s.edits.encode())
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
	a, b := plain.history(t), marked.history(t)
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
	v := twice.history(t)
	if v.items[3].key == v.items[5].key {
		t.Error("two equal messages have one key")
	}
	other := newHistory(plain.body(t), newParseCache(), []byte("another credential"))
	if other.items[3].key == a.items[3].key {
		t.Error("two credentials have one key")
	}
}

func TestSealed(t *testing.T) {
	s := newScript()
	s.call("bash", `{"command":"ls"}`, "x")
	v := s.history(t)
	both := []int{2, 3}
	text := mark("what was said")
	box := v.seal(both, text)
	if bytes.Contains(box, []byte("said")) {
		t.Error("the text can be read")
	}
	if got, ok := v.unseal(both, box); !ok || got != text {
		t.Errorf("opened %q", got)
	}
	for _, other := range [][]int{{2}, {3, 2}} {
		if _, ok := v.unseal(other, box); ok {
			t.Errorf("opened for messages %v", other)
		}
	}
	if _, ok := newHistory(s.body(t), newParseCache(), []byte("b")).unseal(both, box); ok {
		t.Error("opened with another credential")
	}
	plain := v.seal(both, "no mark")
	if _, ok := v.unseal(both, plain); ok {
		t.Error("a text without a mark was accepted")
	}
	if _, ok := v.unseal(both, box[:5]); ok {
		t.Error("a cut box was opened")
	}
}

// If the client rewinds its history, a result that is the newest again is not shortened.
func TestRewound(t *testing.T) {
	s := newScript()
	s.call("read", `{"path":"a.go"}`, lines(20, "old"))
	long := s.call("bash", `{"command":"make"}`, lines(300, "make"))
	early := s.history(t)
	s.call("read", `{"path":"a.go"}`, lines(200, "new"))
	s.call("bash", `{"command":"true"}`, "")
	v := s.history(t)
	k := newRevision(v, newMeter(), "gpt-4o")
	if !k.add(long, recipe{Op: opShorten, Length: 1100}, 1) {
		t.Fatal("no edits")
	}
	var kept session
	k.saveTo(&kept)
	again := newRevision(v, newMeter(), "gpt-4o")
	again.apply(&kept)
	if a, b := built(t, k), built(t, again); a != b {
		t.Error("the same recipes make another request")
	}
	back := newRevision(early, newMeter(), "gpt-4o")
	if back.apply(&kept) {
		t.Errorf("edited although nothing newer follows: %v", strings.Count(built(t, back), "_compressed"))
	}
}

func built(t *testing.T, k *revision) string {
	t.Helper()
	b, err := k.build()
	if err != nil {
		t.Fatal(err)
	}
	return string(b.Raw())
}
