//go:build linux

package soak_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// TestJudge: what is lost, crossed or corrupted is seen, and what is right is not.
func TestJudge(t *testing.T) {
	const me, other = "nonce-00000000aa", "nonce-00000000bb"
	fault := func(name string) *fault {
		for i := range faults {
			if faults[i].name == name {
				return &faults[i]
			}
		}
		t.Fatal(name)
		return nil
	}
	said := upstreamtest.TextOf(me+".7", me, 60)
	whole := func(text, finish string) string {
		return fmt.Sprintf(`{"id":"x","choices":[{"message":{"content":%q},"finish_reason":%q}]}`, text, finish)
	}
	call := func(args string) string {
		return fmt.Sprintf(`{"id":"x","choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"look","arguments":%q}}]},"finish_reason":"tool_calls"}]}`, args)
	}
	const refusal = `{"error":{"message":"no","code":"x"}}`
	for _, tt := range []struct {
		fault, tool string
		status      int
		body        string
		want        verdict
	}{
		{"429", "", 200, whole(said, "stop"), good},
		{"429", "", 200, whole(said[:20], "stop"), corrupted},
		{"429", "", 200, whole(said, "length"), corrupted},
		{"429", "", 200, whole(said+" of "+other, "stop"), crossed},
		{"429", "", 500, refusal, lost},
		{"429", "", 200, `{"id":"chatcmpl-rebound-1","choices":[]}`, lost},
		{"429", "", 200, "<html>", lost},
		{"refused", "", 400, refusal, honest},
		{"refused", "", 400, `{}`, lost},
		{"refused", "", 200, whole(said, "stop"), corrupted},
		{"quota", "", 429, refusal, honest},
		{"leaked call", "look", 200, call(`{ "city": "` + me + `.7"}`), good},
		{"leaked call", "look", 200, call(`{"city":"elsewhere"}`), corrupted},
		{"leaked call", "look", 200, whole(`<tool_call>`, "stop"), corrupted},
	} {
		p := newPlan(me+".7", me, fault(tt.fault), tt.tool, 60)
		a := answer{}
		a.read(&http.Response{StatusCode: tt.status, Header: http.Header{}, Body: readCloser{strings.NewReader(tt.body)}}, false)
		if got, why := p.judge(&a); got != tt.want {
			t.Errorf("%s, %s: %s (%s), want %s", tt.fault, tt.body, got, why, tt.want)
		}
	}
	// A stream without its end is no answer.
	a := answer{}
	a.read(&http.Response{StatusCode: 200, Header: http.Header{}, Body: readCloser{strings.NewReader("data: " + whole(said, "stop") + "\n\n")}}, true)
	if got, _ := newPlan(me+".7", me, fault("429"), "", 60).judge(&a); got != lost {
		t.Errorf("a stream without an end: %s", got)
	}
	// A request with what belongs to another client is seen by the upstream.
	u := &upstreams{plans: map[string]*plan{}}
	u.rename("m", "sk-"+me, `{"messages":[{"content":"`+me+`.7"}]}`)
	if u.mixed.Load() != 0 {
		t.Error("a client's own request is taken for a mixed one")
	}
	u.rename("m", "sk-"+other, `{"messages":[{"content":"`+me+`.7"}]}`)
	if u.mixed.Load() != 1 {
		t.Error("another client's credential is not seen")
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }
