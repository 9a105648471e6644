package conform_test

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/conform"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Histories that an upstream of the Messages API refuses, by what it says. The edit for that
// refusal makes it take them.
func TestMessages(t *testing.T) {
	user := func(blocks ...string) string {
		return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
	}
	model := func(blocks ...string) string {
		return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
	}
	call := func(id string) string {
		return `{"type":"tool_use","id":"` + id + `","name":"ls","input":{"path":"a"}}`
	}
	result := func(id string) string {
		return `{"type":"tool_result","tool_use_id":"` + id + `","content":"of ` + id + `"}`
	}
	picture := func(id string) string {
		return `{"type":"tool_result","tool_use_id":"` + id + `","is_error":true,"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}`
	}
	text := func(s string) string { return `{"type":"text","text":"` + s + `"}` }
	task := user(text("Do it."))
	pairing := recovery.Edit{Conform: recovery.ConformPairing}
	for name, tt := range map[string]struct {
		messages []string
		refusal  string
		edit     recovery.Edit
		want     string // in what is sent
	}{
		"a call without result":         {[]string{task, model(call("a")), user(text("Go on."))}, "without `tool_result`", pairing, `"tool_use_id":"a","content":"[no result`},
		"one of two without result":     {[]string{task, model(call("a"), call("b")), user(result("a")), model(text("x")), task}, "without `tool_result`", pairing, result("a") + `,{"type":"tool_result","tool_use_id":"b"`},
		"one of two, a reminder behind": {[]string{task, model(call("a"), call("b")), user(result("b"), text("<system-reminder>x"))}, "without `tool_result`", pairing, `"tool_use_id":"a","content":"[no result`},
		"a result behind words":         {[]string{task, model(call("a")), user(text("Well."), result("a"))}, "immediately after", pairing, text("Well.")},
		"a result without call":         {[]string{task, model(text("x")), user(result("a"), text("Go on."))}, "unexpected `tool_use_id`", pairing, text("Go on.")},
		"a result that came late":       {[]string{task, model(call("a")), task, model(text("x")), user(result("a"), text("Go on."))}, "without `tool_result`", pairing, `of a`},
		"a picture behind words":        {[]string{task, model(call("a")), user(text("Well."), picture("a"))}, "immediately after", pairing, picture("a")},
		"two results, one a picture":    {[]string{task, model(call("a")), user(result("a"), picture("a"))}, "single result", pairing, picture("a")},
		"two results of a call":         {[]string{task, model(call("a")), user(result("a"), result("a"))}, "single result", pairing, "of a"},
		"an empty text":                 {[]string{task, model(text(""), call("a")), user(result("a"), text(""))}, "must be non-empty", recovery.Edit{Conform: recovery.ConformEmpty}, model(call("a"))},
		"nothing but an empty text":     {[]string{task, model(text("")), task}, "must be non-empty", recovery.Edit{Conform: recovery.ConformEmpty}, "[empty]"},
		"ids of another provider":       {[]string{task, model(call("call:1")), user(result("call:1"))}, "should match pattern", recovery.Edit{Conform: recovery.ConformCallIDs}, `of call:1`},
		"arguments that are no object":  {[]string{task, model(strings.Replace(call("a"), `{"path":"a"}`, `"{\"path\":"`, 1)), user(result("a"))}, "valid dictionary", recovery.Edit{Conform: recovery.ConformArguments}, `"input":{}`},
	} {
		request := func(messages []string) string {
			return `{"model":"m","max_tokens":9,"messages":[` + strings.Join(messages, ",") + `]}`
		}
		raw := request(tt.messages)
		if problem := upstreamtest.MessagesProblem(raw); !strings.Contains(problem, tt.refusal) {
			t.Errorf("%s: the upstream says %q", name, problem)
		}
		b := recoverytest.Parse(t, raw, transcript.Messages)
		e := b.Edit()
		if !(conform.Conformer{}).Conform(b, e, tt.edit) {
			t.Errorf("%s: nothing changes", name)
		}
		after, err := e.Apply()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if problem := upstreamtest.MessagesProblem(string(after)); problem != "" || !strings.Contains(string(after), tt.want) {
			t.Errorf("%s: %s\n%s", name, problem, after)
		}
	}
	healthy := `{"model":"m","max_tokens":9,"messages":[` + strings.Join([]string{task, model(text("x"), call("a"), call("b")), user(result("b"), result("a"), text("<system-reminder>x"), text("Well."), text("Go on."))}, ",") + `]}`
	b := recoverytest.Parse(t, healthy, transcript.Messages)
	for _, name := range []string{recovery.ConformPairing, recovery.ConformEmpty, recovery.ConformArguments, recovery.ConformReasoning, recovery.ConformOwn, recovery.ConformItemIDs, recovery.ConformMedia, recovery.ConformContent} {
		e := b.Edit()
		if (conform.Conformer{}).Conform(b, e, recovery.Edit{Conform: name}) || e.Changed() {
			t.Errorf("%s changes what is well formed", name)
		}
	}
}

// An image that the user puts beside results is removed like any other, and its cache mark moves to the text.
func TestMediaBesideResults(t *testing.T) {
	const before, image = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"text","text":"[Image #1] see"},`,
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"},"cache_control":{"type":"ephemeral"}}`
	b := recoverytest.Parse(t, before+image+`]}]}`, transcript.Messages)
	e := b.Edit()
	changed := conform.Conformer{}.Conform(b, e, recovery.Edit{Conform: recovery.ConformMedia})
	after, err := e.Apply()
	want := before + `{"type":"text","text":"[image removed: this model does not take it]","cache_control":{"type":"ephemeral"}}]}]}`
	if !changed || err != nil || string(after) != want {
		t.Errorf("changed %v, %v:\n%s", changed, err, after)
	}
}
