package repair

import (
	"runtime"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// TestToolLists: each request is judged by its own tools, whatever other requests offered
// before, and cached lists do not refer to a request's bytes, which are reused.
func TestToolLists(t *testing.T) {
	m := mender()
	judge := func(parameter string) recovery.Judgement {
		raw := []byte(`{"messages":[],"tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object","properties":{"` +
			parameter + `":{"type":"string"}},"required":["` + parameter + `"],"additionalProperties":false}}}]}`)
		req := recoverytest.Parse(t, raw, transcript.Chat)
		got := m.Mend(req, call("look", `{"path":"a"}`)).Judgement
		for i := range raw {
			raw[i] = 'x'
		}
		return got
	}
	for range 3 {
		if got := judge("path"); got != recovery.JudgePass {
			t.Errorf("a valid call: %v", got)
		}
		if got := judge("file"); got == recovery.JudgePass {
			t.Errorf("an invalid call: %v", got)
		}
	}
	if n := m.toolLists.Len(); n != 2 {
		t.Errorf("%d lists of tools are cached, want 2", n)
	}
}

// TestToolListsOfFormats: the same list means other tools in another format.
func TestToolListsOfFormats(t *testing.T) {
	m := mender()
	for format, body := range map[transcript.Format]string{transcript.Chat: `"messages":[]`, transcript.Responses: `"input":[]`} {
		req := recoverytest.Parse(t, []byte(`{`+body+`,"tools":[{"type":"web_search"}]}`), format)
		tools := m.offeredTools(req)
		if got := tools.list(); len(got) != 1 || got[0].Own != (format == transcript.Responses) {
			t.Errorf("format %v: %+v", format, got)
		}
	}
}

// TestToolListsBounded: neither many lists nor long ones fill the memory, and a list
// that is too long for the cache works too.
func TestToolListsBounded(t *testing.T) {
	m := mender()
	offering := func(name string, size int) *transcript.Body {
		return request(t, `,"tools":[{"type":"function","function":{"name":"`+name+`","description":"`+strings.Repeat("x", size)+`"}}]`)
	}
	for i := range maxCachedToolLists + 50 {
		name := "tool_" + itoa(i)
		for _, size := range []int{10, maxToolList / 2, maxToolList + 1} {
			if got := m.Mend(offering(name, size), call(name, `{}`)); got.Judgement != recovery.JudgePass {
				t.Fatalf("%s of %d bytes: %+v", name, size, got)
			}
		}
	}
	if n := m.toolLists.Len(); n > maxCachedToolLists || n < maxCachedTools/(maxToolList/2+maxCachedTools/maxCachedToolLists)/2 {
		t.Errorf("%d lists are cached", n)
	}
}

// TestToolsThatComeLaterCostNoCopy: a name that the request does not list is looked for in it without a copy of it.
func TestToolsThatComeLaterCostNoCopy(t *testing.T) {
	text := strings.Repeat("list ", 1<<20)
	req := recoverytest.Parse(t, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"`+text+`\nlist_issues"}],"tools":[{"name":"DeferredToolPlaceholder","input_schema":{}}]}`, transcript.Messages)
	m := mender()
	var before, after runtime.MemStats
	for name, want := range map[string]recovery.Judgement{"list_issues": recovery.JudgePass, "list_repos": recovery.JudgeAsk, "issues": recovery.JudgeAsk} {
		runtime.ReadMemStats(&before)
		v := m.Mend(req, call(name, "{}"))
		runtime.ReadMemStats(&after)
		if size := after.TotalAlloc - before.TotalAlloc; v.Judgement != want || size > uint64(len(text)/2) {
			t.Errorf("%s: %+v, %d bytes", name, v, size)
		}
	}
}
