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

// Histories that an upstream of the Responses API refuses, by what it says. The edit
// for that refusal makes it take them.
func TestResponses(t *testing.T) {
	const (
		user   = `{"role":"user","content":"Go on."}`
		call   = `{"type":"function_call","call_id":"c1","name":"ls","arguments":"{}"}`
		second = `{"type":"function_call","call_id":"c2","name":"ls","arguments":"{}"}`
		custom = `{"type":"custom_tool_call","call_id":"c3","name":"apply","input":"x"}`
		output = `{"type":"function_call_output","call_id":"c1","output":"a"}`
		late   = `{"type":"function_call_output","call_id":"c2","output":"b"}`
	)
	ledger := new(upstreamtest.Ledger)
	made := func(account, id string) (reasoning, call string) {
		r := &upstreamtest.Response{ID: "resp_" + id, Items: []upstreamtest.Item{
			{Kind: upstreamtest.Reasoning, ID: "rs_" + id, Sealed: upstreamtest.Seal(account, "rs_"+id)},
			{Kind: upstreamtest.FunctionCall, ID: "fc_" + id, CallID: "c_" + id, Name: "ls", Text: []string{"{}"}},
		}}
		ledger.Keep(account, `{"store":false}`, r)
		item := `{"type":"reasoning","id":"rs_` + id + `","summary":[],"encrypted_content":"` + r.Items[0].Sealed + `"}`
		return item, `{"type":"function_call","id":"fc_` + id + `","call_id":"c_` + id + `","name":"ls","arguments":"{}"}`
	}
	answer := func(id string) string {
		return `{"type":"function_call_output","call_id":"c_` + id + `","output":"x"}`
	}
	mine, mineCalls := made("me", "a")
	theirs, theirsCalls := made("them", "b")
	for name, tt := range map[string]struct {
		items   []string
		refusal string
		edit    recovery.Edit
		want    string // in what is sent
	}{
		"a call without output":        {[]string{user, call, user}, "No tool output found", recovery.Edit{Conform: recovery.ConformPairing}, "interrupted"},
		"a free call without output":   {[]string{user, custom}, "No tool output found", recovery.Edit{Conform: recovery.ConformPairing}, `"custom_tool_call_output"`},
		"one of two without output":    {[]string{user, call, second, output}, "No tool output found", recovery.Edit{Conform: recovery.ConformPairing}, `"call_id":"c2","output"`},
		"an output without call":       {[]string{user, output, user}, "No tool call found", recovery.Edit{Conform: recovery.ConformPairing}, user},
		"an output before its call":    {[]string{user, output, call}, "No tool call found", recovery.Edit{Conform: recovery.ConformPairing}, "interrupted"},
		"a late output stays":          {[]string{user, second, user, call, output, late, custom}, "No tool output found", recovery.Edit{Conform: recovery.ConformPairing}, late},
		"reasoning of others":          {[]string{user, theirs, theirsCalls, answer("b")}, "could not be verified", recovery.Edit{Conform: recovery.ConformReasoning}, `"call_id":"c_b","name"`},
		"reasoning of others, some":    {[]string{user, theirs, theirsCalls, answer("b"), mine, mineCalls, answer("a")}, "could not be verified", recovery.Edit{Conform: recovery.ConformReasoning, Field: "0-1"}, mine},
		"reasoning without its call":   {[]string{user, mine, user}, "required following item", recovery.Edit{Conform: recovery.ConformReasoning}, user},
		"a call without its reasoning": {[]string{user, mineCalls, answer("a")}, "required 'reasoning' item", recovery.Edit{Conform: recovery.ConformReasoning}, `"call_id":"c_a","name"`},
		"the same id twice":            {[]string{user, mine, mineCalls, mine, answer("a")}, "Duplicate item", recovery.Edit{Conform: recovery.ConformItemIDs}, `"encrypted_content"`},
		"an id of another kind":        {[]string{user, strings.Replace(call, `{`, `{"id":"item_1",`, 1), output}, "begins with 'fc'", recovery.Edit{Conform: recovery.ConformItemIDs}, output},
		"an id that is too long":       {[]string{user, strings.Replace(call, `{`, `{"id":"fc_`+strings.Repeat("x", 80)+`",`, 1), output}, "string too long", recovery.Edit{Conform: recovery.ConformItemIDs}, output},
	} {
		request := func(items []string) string { return `{"input":[` + strings.Join(items, ",") + `],"store":false}` }
		raw := request(tt.items)
		if _, why := ledger.Refuse("me", raw); !strings.Contains(string(why), tt.refusal) {
			t.Errorf("%s: the upstream says %s", name, why)
			continue
		}
		b := recoverytest.Parse(t, raw, transcript.Responses)
		e := b.Edit()
		if !(conform.Conformer{}).Conform(b, e, tt.edit) {
			t.Errorf("%s: nothing was edited", name)
			continue
		}
		after, err := e.Apply()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if status, why := ledger.Refuse("me", string(after)); status != 0 || !strings.Contains(string(after), tt.want) {
			t.Errorf("%s: edited to %s\nwhich lacks %s, or: %s", name, after, tt.want, why)
		}
		again := recoverytest.Parse(t, after, transcript.Responses)
		if e := again.Edit(); tt.edit.Field == "" && (conform.Conformer{}).Conform(again, e, tt.edit) {
			t.Errorf("%s: edited twice", name)
		}
	}
}

// What the server remembers may have the call: such an output stays.
func TestResponsesChained(t *testing.T) {
	for _, raw := range []string{
		`{"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"c1","output":"a"}]}`,
		`{"input":[{"type":"item_reference","id":"fc_1"},{"type":"function_call_output","call_id":"c1","output":"a"}]}`,
	} {
		b := recoverytest.Parse(t, raw, transcript.Responses)
		if (conform.Conformer{}).Conform(b, b.Edit(), recovery.Edit{Conform: recovery.ConformPairing}) {
			t.Errorf("changed: %s", raw)
		}
	}
}

// Items that are no messages have no text, and the input of a custom tool is any text.
func TestResponsesItemsStay(t *testing.T) {
	const user = `{"type":"message","role":"user","content":"go"}`
	for _, item := range []string{
		`{"type":"compaction","encrypted_content":"x"}`,
		`{"type":"item_reference","id":"msg_1"}`,
		`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"a"}}`,
		`{"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** Begin Patch"}`,
	} {
		for _, raw := range []string{`{"input":[` + user + `,` + item + `]}`, `{"input":[` + item + `,` + user + `]}`} {
			for _, name := range []string{recovery.ConformArguments, recovery.ConformEmpty} {
				b := recoverytest.Parse(t, raw, transcript.Responses)
				if e := b.Edit(); (conform.Conformer{}).Conform(b, e, recovery.Edit{Conform: name}) {
					out, _ := e.Apply()
					t.Errorf("%s of\n%s\nis\n%s", name, raw, out)
				}
			}
		}
	}
}

// Fields of items that a server does not know go, but ids that are all there is stay.
func TestResponsesFields(t *testing.T) {
	const raw = `{"input":[{"type":"reasoning","id":"rs_1","status":"completed"},{"type":"function_call","id":"fc_1","call_id":"c","name":"n","arguments":"{}","status":"completed"},` +
		`{"type":"function_call_output","call_id":"c","output":"x"},{"type":"item_reference","id":"msg_1"}]}`
	for field, want := range map[string]string{"status": strings.ReplaceAll(raw, `,"status":"completed"`, ""), "id": strings.ReplaceAll(strings.ReplaceAll(raw, `"id":"rs_1",`, ""), `"id":"fc_1",`, "")} {
		b := recoverytest.Parse(t, raw, transcript.Responses)
		e := b.Edit()
		if !(conform.Conformer{}).Conform(b, e, recovery.Edit{Conform: recovery.ConformField, Field: field}) {
			t.Errorf("%s: nothing was taken out", field)
		}
		if got, err := e.Apply(); err != nil || string(got) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", field, err, got, want)
		}
	}
}
