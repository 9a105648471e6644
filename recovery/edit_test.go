package recovery_test

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Edits are told to operators, and taken from a store only where a strategy could
// have made them.
func TestEdits(t *testing.T) {
	long := strings.Repeat("f", 64)
	for _, c := range []struct {
		edit  recovery.Edit
		says  string
		known bool
	}{
		{recovery.Edit{Conform: recovery.ConformPairing}, "needs pairing", true},
		{recovery.Edit{Conform: recovery.ConformStrict}, "needs schema_strict", true},
		{recovery.Edit{Conform: recovery.ConformField, Field: long}, "needs message_field " + long, true},
		{recovery.Edit{Conform: recovery.ConformField, Field: long + "f"}, "needs message_field " + long + "f", false},
		{recovery.Edit{Conform: "all"}, "needs all", false},
		{recovery.Edit{Conform: recovery.ConformPairing, Rename: "x"}, "needs pairing", false},
		{recovery.Edit{Conform: recovery.ConformPairing, Role: "x"}, "needs pairing", false},
		{recovery.Edit{Conform: recovery.ConformPairing, Drop: true}, "needs pairing", false},
		{recovery.Edit{Role: "developer", Rename: "system"}, "takes developer as system", true},
		{recovery.Edit{Role: "system", Rename: "developer"}, "takes system as developer", true},
		{recovery.Edit{Role: "system", Rename: "developer", Field: "x"}, "takes system as developer", false},
		{recovery.Edit{Role: "system", Rename: "system"}, "takes system as system", false},
		{recovery.Edit{Role: "developer", Rename: "developer"}, "takes developer as developer", false},
		{recovery.Edit{Role: "user", Rename: "system"}, "takes user as system", false},
		{recovery.Edit{Role: "system", Rename: "user"}, "takes system as user", false},
		{recovery.Edit{Role: "user", Rename: "developer"}, "takes user as developer", false},
		{recovery.Edit{Field: "seed", Drop: true}, "refuses seed", true},
		{recovery.Edit{Field: "seed", Drop: true, Value: "9"}, "refuses 9 as seed", true},
		{recovery.Edit{Field: "tools", Drop: true}, "refuses tools", false},
		{recovery.Edit{Field: "signal", Drop: true, Value: "{}"}, "refuses {} as signal", true},
		{recovery.Edit{Field: "web_search_options", Drop: true, Value: "{}"}, "refuses {} as web_search_options", false}, // it turns the search on
		{recovery.Edit{Field: "max_tokens", Rename: "max_completion_tokens"}, "takes max_tokens as max_completion_tokens", true},
		{recovery.Edit{Field: "max_completion_tokens", Rename: "max_tokens"}, "takes max_completion_tokens as max_tokens", true},
		{recovery.Edit{Field: "max_tokens", Rename: "x"}, "takes max_tokens as x", false},
		{recovery.Edit{Field: "x", Rename: "max_tokens"}, "takes x as max_tokens", false},
		{recovery.Edit{Field: "max_tokens", Clamp: 16}, "max_tokens at most 16", true},
		{recovery.Edit{Field: "max_tokens", Clamp: 15}, "max_tokens at most 15", false},
		{recovery.Edit{Field: "max_output_tokens", Clamp: 4096}, "max_output_tokens at most 4096", true},
		{recovery.Edit{Field: "n", Clamp: 16}, "n at most 16", false},
	} {
		if got := c.edit.String(); got != c.says {
			t.Errorf("%+v is told as %q", c.edit, got)
		}
		if got := c.edit.Known(); got != c.known {
			t.Errorf("%s is known: %t", c.says, got)
		}
	}
}

// Only what tunes or labels may be left out.
func TestDroppable(t *testing.T) {
	for field, want := range map[string]bool{
		"temperature": true, "topP": true, "reasoningEffort": true, "promptCacheKey": true, "topA": true, "Temperature": true, "stream_options": true,
		"tools": false, "response_format": false, "responseFormat": false, "stop": false, "n": false, "serviceTier": false, "topZ": false, "": false,
	} {
		if got := recovery.Droppable(field); got != want {
			t.Errorf("%q: %t", field, got)
		}
	}
	if !recovery.MessageLabel("reasoning_content") || recovery.MessageLabel("content") {
		t.Error("a message can do without its content, or not without its reasoning")
	}
}

// breakingEdit is a Conformer whose edit cannot be carried out.
type breakingEdit struct{}

func (breakingEdit) Conform(_ *transcript.Body, e *transcript.Editor, _ recovery.Edit) bool {
	e.RemoveMessage(99)
	return true
}

// TestEdited is one request after the edits of a target.
func TestEdited(t *testing.T) {
	const rest = `"messages":[{"role":"developer","content":"x"}]}`
	rename := recovery.Edit{Field: "max_tokens", Rename: "max_completion_tokens"}
	clamp := recovery.Edit{Field: "max_tokens", Clamp: 100}
	for _, c := range []struct {
		name, body string
		edits      []recovery.Edit
		want       string // empty for the same bytes
	}{
		{"nothing", `{"model":"m",` + rest, nil, ""},
		{"a field that is not there", `{"model":"m",` + rest, []recovery.Edit{{Field: "seed", Drop: true}, rename, clamp}, ""},
		{"a field less", `{"model":"m","seed":1,` + rest, []recovery.Edit{{Field: "seed", Drop: true}}, `{"model":"m",` + rest},
		{"another name", `{"max_tokens":200,"model":"m",` + rest, []recovery.Edit{rename}, `{"max_completion_tokens":200,"model":"m",` + rest},
		{"both names", `{"max_tokens":200,"max_completion_tokens":3,"model":"m",` + rest, []recovery.Edit{rename}, `{"max_completion_tokens":3,"model":"m",` + rest},
		{"a limit", `{"max_tokens":200,"model":"m",` + rest, []recovery.Edit{clamp}, `{"max_tokens":100,"model":"m",` + rest},
		{"just within a limit", `{"max_tokens":100,"model":"m",` + rest, []recovery.Edit{clamp}, ""},
		{"well within a limit", `{"max_tokens":50,"model":"m",` + rest, []recovery.Edit{clamp}, ""},
		{"a limit for the name that is left", `{"max_tokens":200,"max_completion_tokens":300,"model":"m",` + rest, []recovery.Edit{clamp, rename},
			`{"max_completion_tokens":100,"model":"m",` + rest},
		{"a limit of one", `{"max_tokens":2,"model":"m",` + rest, []recovery.Edit{{Field: "max_tokens", Clamp: 1}}, `{"max_tokens":1,"model":"m",` + rest},
		{"a limit, then another name", `{"max_tokens":200,"model":"m",` + rest, []recovery.Edit{clamp, rename}, `{"max_completion_tokens":100,"model":"m",` + rest},
		{"a role", `{"model":"m",` + rest, []recovery.Edit{{Role: "developer", Rename: "system"}}, `{"model":"m","messages":[{"role":"system","content":"x"}]}`},
		{"an edit that says nothing", `{"model":"m","seed":1,` + rest, []recovery.Edit{{Field: "seed"}}, ""},
		{"an edit that nobody carries out", `{"model":"m",` + rest, []recovery.Edit{{Conform: recovery.ConformPairing, Field: "model", Drop: true}}, ""},
	} {
		if c.want == "" {
			c.want = c.body
		}
		got, err := (&recovery.Engine{}).Edited(parsed(t, c.body), c.edits)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
}

// An edit that cannot be carried out is told, and changes nothing.
func TestEditedBroken(t *testing.T) {
	e := &recovery.Engine{Conformer: breakingEdit{}}
	if got, err := e.Edited(parsed(t, plainBody), []recovery.Edit{{Conform: recovery.ConformPairing}}); err == nil || got != nil {
		t.Errorf("%s, %v", got, err)
	}
}
