package classify_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
)

// FuzzClassify: any evidence has a diagnosis, the same every time, without negative facts.
func FuzzClassify(f *testing.F) {
	tb := classify.New(configs.UpstreamRules)
	for _, s := range load(f, "first") {
		ev := s.evidence()
		f.Add(ev.Status, ev.Body, s.Stream, "30", uint8(ev.Phase))
	}
	f.Add(429, []byte(`{"error":"`+strings.Repeat(`\"`, 200)), false, "Wed, 21 Oct 2026 07:28:00 GMT", uint8(3))
	f.Add(374, []byte("0"), false, "0", uint8(2)) // an unknown error under a status below 400
	f.Fuzz(func(t *testing.T, status int, body []byte, stream bool, retry string, phase uint8) {
		ev := recovery.Evidence{Phase: recovery.Phase(phase % 5), Status: status, Body: body, Stream: stream, Now: noon, Header: http.Header{"Retry-After": {retry}, "X-Ratelimit-Reset": {retry}}}
		before := bytes.Clone(body)
		d := tb.Classify(ev)
		if d.Spec == nil || d.Rule == "" || tb.Spec(d.Spec.Class).Class != d.Spec.Class {
			t.Fatalf("no diagnosis: %+v", d)
		}
		if d.Signal.RetryAfter < 0 || d.Facts.LimitTokens < 0 || d.Facts.RequestedTokens < 0 {
			t.Fatalf("negative: %+v", d)
		}
		if again := tb.Classify(ev); again.Spec != d.Spec || again.Rule != d.Rule || again.Signal.RetryAfter != d.Signal.RetryAfter {
			t.Fatalf("not pure: %v then %v", d, again)
		}
		if !bytes.Equal(before, body) {
			t.Fatal("changed the body")
		}
		tb.Stated(ev)
		classify.Read(ev)
	})
}

// TestBoundedTime: large hostile answers take little time.
func TestBoundedTime(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	const mb = 1 << 20
	fill := func(s string) []byte { return []byte(strings.Repeat(s, mb/len(s)+1)) }
	quoted := append(append([]byte(`{"error":{"message":"`), fill("exceeds the context 1 ")...), []byte(`"}}`)...)
	nested := []byte(`{"error":"x"}`)
	for range 40 {
		nested = []byte(`{"message":` + string(nested) + `}`)
	}
	strung := `{"error":{"message":"prompt is too long"}}`
	for range 12 {
		strung = `{"error":{"message":` + quoteJSON(strung) + `}}`
	}
	if _, err := tb.Rules(); err != nil { // reading the rules is not what is measured
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{
		"brackets": fill("["), "braces": fill(`{"a":`), "html": append([]byte("<!DOCTYPE html><html>"),
			fill("<div class='x'>error ")...), "unclosed html": append([]byte("<html><script>"), fill("<script")...),
		"words": fill("rate limit model image tool_use 1,000 "), "numbers": fill("1 "), "one number": fill("9"), "quotes": fill(`"`), "backslashes": fill(`\`), "events": fill("data: {\"error\":{\"message\":\"x\"}}\n\n"),
		"spaces": fill(" "), "chinese": fill("超过模型最大长度"), "message": quoted, "array": append([]byte(`[`), append(fill(`{"error":{"message":"a b"}},`),
			[]byte(`{}]`)...)...), "nested": nested, "strung": []byte(strung),
		"retry": fill("try again in 1h "), "extraneous": fill("extraneous key ["), "open tags": append([]byte("<html>"),
			fill("<")...), "embedded": fill(`{"a":"{`), "invalid utf-8": fill("\xff\xfe"), "property": fill("property 'a' is unsupported "),
	} {
		ev := recovery.Evidence{Phase: recovery.PhaseStatus, Status: 400, Body: body, Now: noon, Request: quoted}
		start := time.Now()
		d := tb.Classify(ev)
		// Generous, for busy machines under the race detector; without it each takes a few milliseconds.
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: %v", name, took)
		}
		if d.Spec == nil {
			t.Errorf("%s: no spec", name)
		}
	}
}

func quoteJSON(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
