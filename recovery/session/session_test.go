package session

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func parse(t testing.TB, raw string) *transcript.Body {
	t.Helper()
	return recoverytest.Parse(t, raw, transcript.Chat)
}

func id(t testing.TB, raw string) ID {
	t.Helper()
	return Identify(Input{Body: parse(t, raw), Credential: []byte("sk-1")})
}

// conversations are the sample bodies, by name.
func conversations(t testing.TB) map[string]*transcript.Body {
	t.Helper()
	files, _ := filepath.Glob("../transcript/testdata/*.json")
	if len(files) == 0 {
		t.Fatal("no samples")
	}
	out := make(map[string]*transcript.Body)
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = parse(t, string(raw))
	}
	return out
}

// upTo is the request that the client sent when the history had n messages.
func upTo(t testing.TB, b *transcript.Body, n int) *transcript.Body {
	t.Helper()
	e := b.Edit()
	for i := n; i < len(b.Messages()); i++ {
		e.RemoveMessage(i)
	}
	out, err := e.Body()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every request of a real conversation has the same identity, from the first answer on.
func TestStableOverConversations(t *testing.T) {
	seen := map[ID]string{}
	for name, b := range conversations(t) {
		in := Input{Body: b, Credential: []byte("sk-1")}
		want, affinity := Identify(in), Affinity(in)
		if want.IsZero() {
			t.Fatalf("%s: no identity", name)
		}
		if other, ok := seen[want]; ok {
			t.Errorf("%s and %s are one", name, other)
		}
		seen[want] = name
		answered, asked := -1, -1
		for i, m := range b.Messages() {
			in.Body = upTo(t, b, i+1)
			switch m.Role {
			case transcript.RoleAssistant:
				if answered < 0 {
					answered = i
				}
				continue // no client ends with the answer
			case transcript.RoleUser:
				asked = max(asked, i)
			}
			switch got := Identify(in); {
			case answered < 0 && !got.IsZero():
				t.Errorf("%s: identity before the first answer", name)
			case answered >= 0 && got != want:
				t.Errorf("%s: another identity with %d messages", name, i+1)
			}
			if asked >= 0 && Affinity(in) != affinity {
				t.Errorf("%s: another affinity with %d messages", name, i+1)
			}
		}
	}
}

const (
	system = `{"role":"system","content":"You are a coding agent."}`
	user   = `{"role":"user","content":"Fix the tests."}`
	call   = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"bash","arguments":"{\"cmd\":\"go test\"}"}}]}`
	result = `{"role":"tool","tool_call_id":"call_1","content":"FAIL"}`
)

func request(messages ...string) string {
	return `{"model":"m","messages":[` + strings.Join(messages, ",") + `]}`
}

// What clients change between requests of one conversation (the quirks of
// known clients) does not change its identity.
func TestSameConversation(t *testing.T) {
	for name, pair := range map[string][2]string{
		"other model and parameters": {request(system, user, call, result),
			`{"stream":true,"tools":[{"type":"function","function":{"name":"bash"}}],"messages":[` + strings.Join([]string{system, user, call, result}, ",") + `],"model":"x","temperature":1}`},
		"string and parts": {request(system, user, call, result),
			request(`{"role":"system","content":[{"type":"text","text":"You are a coding agent."}]}`, `{"role":"user","content":[{"type":"text","text":"Fix the tests."}]}`, call, result)},
		"cache marks": {request(system, user, call, result),
			request(`{"role":"system","content":[{"type":"text","text":"You are a coding agent.","cache_control":{"type":"ephemeral"}}]}`,
				`{"role":"user","cache_control":{"type":"ephemeral"},"content":"Fix the tests."}`, call, result)},
		"cache mark on an image": {request(system, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:1"},"cache_control":{}}]}`, call, result),
			request(system, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:1"}}]}`, call, result)},
		"empty content":             {request(user, call, result), request(user, strings.Replace(call, `null`, `""`, 1), result)},
		"absent content":            {request(user, call, result), request(user, strings.Replace(call, `"content":null,`, ``, 1), result)},
		"empty parts":               {request(user, call, result), request(user, strings.Replace(call, `null`, `[]`, 1), result)},
		"arguments emptied":         {request(user, call, result), request(user, strings.Replace(call, `{\"cmd\":\"go test\"}`, `{}`, 1), result)},
		"index in calls":            {request(user, call, result), request(user, strings.Replace(call, `{"id"`, `{"index":0,"id"`, 1), result)},
		"key order and white space": {request(system, user, call, result), request("{ \"content\" : \"You are a coding agent.\\n\" ,\n \"role\" : \"system\" }", user, call, result)},
		"escapes":                   {request(user, call, result), request(strings.Replace(user, "F", `\u0046`, 1), call, result)},
		"developer for system":      {request(system, user, call, result), request(strings.Replace(system, `system`, `developer`, 1), user, call, result)},
		"reasoning sent back once": {request(user, `{"role":"assistant","content":"<think>\nhm\n</think>\n\nDone."}`, user),
			request(user, `{"role":"assistant","reasoning_content":"hm","content":"Done."}`, user)},
		"reminder moves on": {request(system, `{"role":"user","content":[{"type":"text","text":"Fix the tests."},{"type":"text","text":"<system-reminder>plan mode</system-reminder>"}]}`, call, result),
			request(system, user, call, result)},
		"old results cleared":    {request(user, call, result), request(user, call, strings.Replace(result, `FAIL`, `[Old tool result content cleared]`, 1))},
		"midnight":               {request(strings.Replace(system, `agent.`, `agent. Today's date: Mon Nov 30 2026`, 1), user, call, result), request(strings.Replace(system, `agent.`, `agent. Today's date: Tue Dec 1 2026`, 1), user, call, result)},
		"answer to be continued": {request(user, call, result), request(user, call, result, `{"role":"assistant","content":"The"}`)},
	} {
		a, b := id(t, pair[0]), id(t, pair[1])
		if a.IsZero() || a != b {
			t.Errorf("%s: %s and %s", name, a, b)
		}
	}
}

func TestDifferentConversations(t *testing.T) {
	base := request(system, user, call, result)
	want := id(t, base)
	for name, raw := range map[string]string{
		"other run, other call id":   request(system, user, strings.Replace(call, "call_1", "call_2", 1), result),
		"other run, other text":      request(system, user, strings.Replace(call, "null", `"Let me see."`, 1), result),
		"other tool":                 request(system, user, strings.Replace(call, "bash", "read", 1), result),
		"one call more":              request(system, user, strings.Replace(call, `}]}`, `},{"id":"x","function":{"name":"bash"}}]}`, 1), result),
		"other task":                 request(system, strings.Replace(user, "Fix", "Run", 1), call, result),
		"other system prompt":        request(strings.Replace(system, "coding", "title", 1), user, call, result),
		"other customer in a prompt": request(strings.Replace(system, "agent.", "agent. Customer 1234.", 1), user, call, result),
		"no system prompt":           request(user, call, result),
		"preamble before the task":   request(system, `{"role":"user","content":"cwd: /"}`, user, call, result),
		"after compaction":           request(system, `{"role":"user","content":"Summary of the work so far: …"}`, call, result),
		"second answer in the row":   request(system, user, call, strings.Replace(call, "call_1", "call_9", 1), result),
		"image":                      request(system, `{"role":"user","content":[{"type":"text","text":"Fix the tests."},{"type":"image_url","image_url":{"url":"data:1"}}]}`, call, result),
	} {
		if got := id(t, raw); got.IsZero() || got == want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if a, b := id(t, request(strings.Replace(system, "agent.", "Customer 1234.", 1), user, call, result)), id(t,
		request(strings.Replace(system, "agent.", "Customer 1235.", 1), user, call, result)); a == b {
		t.Error("two customers are one")
	}
	// The border between parts counts, too.
	if id(t, request(`{"role":"user","content":"ab"}`, `{"role":"assistant","content":"c"}`, user)) == id(t, request(`{"role":"user","content":"a"}`, `{"role":"assistant","content":"bc"}`, user)) {
		t.Error("parts run into each other")
	}
}

// Some clients write the first answer themselves, the same in every conversation.
func TestAcknowledgedPreamble(t *testing.T) {
	preamble, ack := `{"role":"user","content":"This is the CLI. We are setting up the context."}`, `{"role":"assistant","content":"Got it. Thanks for the context!"}`
	if got := id(t, request(system, preamble, ack, user)); !got.IsZero() {
		t.Error("the client's own answer became a conversation")
	}
	one := id(t, request(system, preamble, ack, user, call, result))
	if one.IsZero() || one == id(t, request(system, preamble, ack, user, strings.Replace(call, "call_1", "call_2", 1), result)) {
		t.Error("two runs are one")
	}
	// Ids that count from zero and no text: the task itself must tell them apart.
	if one == id(t, request(system, preamble, ack, strings.Replace(user, "Fix", "Run", 1), call, result)) {
		t.Error("two tasks are one")
	}
	// So must it behind a greeting, and the greeting is no answer.
	greeting := `{"role":"assistant","content":"Hello! How can I help you?"}`
	if got := id(t, request(system, greeting, user)); !got.IsZero() {
		t.Error("a greeting became a conversation")
	}
	if got := id(t, request(system, greeting, user, call, result)); got.IsZero() {
		t.Error("a greeting hides the conversation")
	}
}

func TestNoSessionYet(t *testing.T) {
	for _, raw := range []string{
		`{}`, `{"messages":[]}`, `{"messages":null}`, request(system), request(user), request(system, user), request(system, user, user),
		request(system, user, `{"role":"assistant","content":"Sure, here is"}`), // to be continued
		request(`{"role":"assistant","content":"x"}`, result), request(`{}`, `{}`),
	} {
		if got := id(t, raw); !got.IsZero() || got.String() != "" {
			t.Errorf("%s: %s", raw, got)
		}
		if Affinity(Input{Body: parse(t, raw)}) == 0 {
			t.Error("no affinity")
		}
	}
}

func TestCredentialBinds(t *testing.T) {
	b := parse(t, request(system, user, call, result))
	ids := map[ID]bool{}
	for _, in := range []Input{
		{Body: b}, {Body: b, Credential: []byte("a")}, {Body: b, Credential: []byte("b")},
		{Body: b, Explicit: "x"}, {Body: b, Credential: []byte("a"), Explicit: "x"}, {Body: b, Credential: []byte("b"), Explicit: "x"},
	} {
		ids[Identify(in)] = true
	}
	if len(ids) != 6 || ids[ID{}] {
		t.Errorf("%d identities", len(ids))
	}
	long := bytes.Repeat([]byte("k"), 200)
	if Identify(Input{Body: b, Credential: long}) == Identify(Input{Body: b, Credential: long[1:]}) {
		t.Error("long credentials")
	}
}

func TestExplicit(t *testing.T) {
	key := []byte("sk-1")
	first, later := parse(t, request(system, user)), parse(t, request(`{"role":"user","content":"Summary"}`, call, result))
	name := func(b *transcript.Body, s string) ID { return Identify(Input{Body: b, Credential: key, Explicit: s}) }
	want := name(first, "run 7")
	if want.IsZero() || name(later, "run 7") != want || name(later, " run 7\t") != want {
		t.Error("the name does not hold over compaction")
	}
	if name(first, "run 8") == want {
		t.Error("two names are one")
	}
	hinted := Identify(Input{Body: first, Credential: key, Explicit: "run 7", Hints: []string{"h"}})
	if hinted != want {
		t.Error("a hint changed what has a name")
	}
	for _, odd := range []string{strings.Repeat("x", 1<<16), "\x00\n", "é\xff", "s_", "s_" + strings.Repeat("a", 26)} {
		if got := name(first, odd); got.IsZero() || got.String() == odd || len(got.String()) != 28 {
			t.Errorf("%q: %s", odd[:2], got)
		}
	}
	if !name(first, "  ").IsZero() {
		t.Error("an empty name is a name")
	}
	// An ID that was handed out means itself, for the credential it was handed to.
	derived := Identify(Input{Body: parse(t, request(system, user, call, result)), Credential: key})
	if name(later, derived.String()) != derived || name(later, want.String()) != want {
		t.Error("a returned ID is not recognised")
	}
	if got := Identify(Input{Body: later, Credential: []byte("sk-2"), Explicit: derived.String()}); got == derived || got.IsZero() {
		t.Error("another tenant's ID was accepted")
	}
}

// Hints separate conversations and never join them.
func TestHints(t *testing.T) {
	raw := request(system, user, call, result)
	hint := func(raw string, h ...string) ID {
		return Identify(Input{Body: parse(t, raw), Credential: []byte("sk-1"), Hints: h})
	}
	plain := hint(raw)
	if hint(raw, "a") == plain || hint(raw, "a") == hint(raw, "b") || hint(raw, "a", "b") == hint(raw, "ab") {
		t.Error("a hint does not refine")
	}
	if hint(raw, "a", "b", "a", "") != hint(raw, "b", "a") || hint(raw, "") != plain || hint(raw) != plain {
		t.Error("order or repetition matters")
	}
	other := request(system, user, strings.Replace(call, "call_1", "call_2", 1), result)
	if hint(raw, "a") == hint(other, "a") {
		t.Error("a hint joined two conversations")
	}
	if !hint(request(system, user), "a").IsZero() {
		t.Error("a hint made a session")
	}
	keyed := strings.Replace(raw, `"model"`, `"prompt_cache_key":"a","model"`, 1)
	if hint(keyed) != hint(raw, "a") || hint(keyed, "a") != hint(raw, "a") {
		t.Error("the cache key is no hint")
	}
	in := Input{Body: parse(t, raw)}
	one := Affinity(in)
	in.Hints = []string{"a"}
	two := Affinity(in)
	in.Explicit = "x"
	if three := Affinity(in); one == two || two == three || one == three {
		t.Error("affinity")
	}
}

func TestIDText(t *testing.T) {
	want := id(t, request(system, user, call, result))
	s := want.String()
	if len(s) != 28 || !strings.HasPrefix(s, "s_") || strings.Trim(s[2:], "abcdefghijklmnopqrstuvwxyz234567") != "" {
		t.Error(s)
	}
	if got, ok := ParseID(s); !ok || got != want {
		t.Error(got)
	}
	for _, bad := range []string{"", "s_", s[:27], s + "a", "x" + s[1:], strings.ToUpper(s), s[:27] + "b", "s_" + strings.Repeat("a", 26), "s_" + strings.Repeat("é", 13)} {
		if got, ok := ParseID(bad); ok {
			t.Errorf("%q: %s", bad, got)
		}
	}
	// Stored state depends on it: the same on every replica and after every upgrade.
	const pinned = "s_dzvsqisggsxnj3ihw3uxzmadl4"
	if s != pinned {
		t.Errorf("the identity of a known conversation changed: %s", s)
	}
}

// Long texts cost a bounded time, and differences at both ends are seen.
func TestLongTexts(t *testing.T) {
	long := func(head, tail string) string {
		s, _ := json.Marshal(head + strings.Repeat("lorem ipsum ", 100_000) + tail)
		return request(system, `{"role":"user","content":`+string(s)+`}`, call, result)
	}
	a := id(t, long("a", "b"))
	if a != id(t, long("a", "b")) || a == id(t, long("x", "b")) || a == id(t, long("a", "x")) || a == id(t, long("a", "bb")) {
		t.Error("long texts")
	}
}
