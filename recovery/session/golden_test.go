package session

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file anew")

// agent is the body of a coding agent's request of about that size.
func agent(size int) string {
	var b strings.Builder
	b.WriteString(`{"model":"m","messages":[{"role":"system","content":"You are a careful coding agent. Read, edit and test with the tools; answer briefly."},` +
		`{"role":"user","content":"Session 000001: the build says \"undefined: RoundTripper\". Fix it and run the tests."}`)
	for i := 0; i == 0 || b.Len() < size; i++ {
		fmt.Fprintf(&b, `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"file_%d.go\"}"}}]}`, i, i)
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"call_%d","content":"%s"}`, i, strings.Repeat(`package proxy\n\n`, max(1, min(60, size/100))))
	}
	b.WriteString(`],"tools":[{"type":"function","function":{"name":"read_file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]}`)
	return b.String()
}

// goldens are requests of every kind that an identity is made of.
func goldens(t *testing.T) map[string]Input {
	out := map[string]Input{}
	for name, b := range conversations(t) {
		out[name] = Input{Body: b, Credential: []byte("sk-1")}
	}
	says := func(role, content string) string { return `{"role":"` + role + `","content":` + content + `}` }
	long := strings.Repeat(`Line of a very long prompt, at 10:05 on 2026-11-24.\n`, 2000)
	plain := strings.Repeat("no dates and no escapes here. ", 4000)
	image := `[{"type":"text","text":"Look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},"bare",{"type":"text","text":""}]`
	for name, raw := range map[string]string{
		"agent 1KB":       agent(1 << 10),
		"agent 100KB":     agent(100 << 10),
		"dates":           request(says("system", `" Today is Mon Nov 24 2026, 10:05:30 PM. Id 1234\n"`), user, call, result),
		"escapes":         request(says("developer", `"a\"b\\c\/d\u00e9\ud83d\ude00\n"`), says("user", `"\t <system-reminder>now</system-reminder> do\u0020it "`), says("assistant", `"\n<think>x</think>done\\"`), user),
		"two systems":     request(system, says("system", `""`), says("developer", `"more of 24.11.2026"`), user, says("assistant", `"x"`), user),
		"long system":     request(says("system", `"`+long+`"`), user, call, result),
		"long plain":      request(says("system", `"`+plain+`"`), says("user", `"`+plain+`"`), says("assistant", `"`+plain+`"`), user),
		"long escaped":    request(says("system", `"x"`), says("user", `"`+long+`"`), says("assistant", `"`+long+`"`), user),
		"parts":           request(system, says("user", image), says("assistant", `[{"type":"text","text":"<thinking>a</thinking> b"}]`), user),
		"acknowledged":    request(system, user, says("assistant", `"Got it. Thanks for the context!"`), says("user", `"now this"`), says("assistant", `"yes"`), user),
		"acknowledged 2":  request(user, says("assistant", `" OK. "`), says("user", `"now this"`), says("assistant", `"I see"`), user),
		"greeted":         request(system, says("assistant", `"Hello!"`), user, says("assistant", `"Well."`), user),
		"answers in rows": request(user, call, says("assistant", `"and"`), call, result, user),
		"no user":         request(system, says("assistant", `"a"`), result),
		"old calls":       request(user, `{"role":"assistant","content":"","function_call":{"name":"f","arguments":"{}"}}`, says("function", `"x"`)),
		"twice content":   request(user, `{"role":"assistant","content":"a","content":"b"}`, user),
		"no content":      request(`{"role":"user"}`, `{"role":"assistant","tool_calls":[]}`, user),
		"odd content":     request(`{"role":"user","content":5}`, `{"role":"assistant","content":{"text":"x"}}`, user),
		"cache key":       strings.Replace(request(user, call, result), `"model"`, `"prompt_cache_key":"k\u0031","model"`, 1),
		"no answer":       request(system, user),
		"to be continued": request(system, user, says("assistant", `"half"`)),
		"nothing":         `{}`,
	} {
		out[name] = Input{Body: parse(t, raw), Credential: []byte("sk-golden")}
	}
	with := func(of, name string, change func(*Input)) {
		in := out[of]
		change(&in)
		out[of+", "+name] = in
	}
	with("agent 1KB", "hints", func(in *Input) { in.Hints = []string{"b", "a", "", "b"} })
	with("cache key", "hints", func(in *Input) { in.Hints = []string{"z", "k1"} })
	with("agent 1KB", "named", func(in *Input) { in.Explicit = " my run\t" })
	with("nothing", "named", func(in *Input) { in.Explicit = "s_aaaaaaaaaaaaaaaaaaaaaaaaaa" })
	with("agent 1KB", "no credential", func(in *Input) { in.Credential = nil })
	with("agent 1KB", "returned", func(in *Input) { in.Explicit = Identify(*in).String() })
	return out
}

// TestGolden: identities are keys of what is remembered, so no version gives a
// conversation another one.
func TestGolden(t *testing.T) {
	type identity struct {
		ID                 string
		Affinity, LastUser uint64
	}
	const file = "testdata/identities.json"
	got := map[string]identity{}
	for name, in := range goldens(t) {
		got[name] = identity{Identify(in).String(), Affinity(in), UserTurnOf(in).Last}
	}
	if *update {
		raw, err := json.MarshalIndent(got, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(raw, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]identity
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("%d identities, want %d", len(got), len(want))
	}
	for name, id := range got {
		if id != want[name] {
			t.Errorf("%s: %+v, want %+v", name, id, want[name])
		}
	}
}
