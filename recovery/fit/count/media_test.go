package count

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// user returns a request with one user message of parts.
func user(t testing.TB, model, parts string) *transcript.Body {
	t.Helper()
	return parse(t, fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":[%s]}]}`, model, parts))
}

func TestParts(t *testing.T) {
	data := base64.StdEncoding.EncodeToString(encodedImage(t, "png", 1024, 1024))
	noise := strings.Repeat("QUJDRA", 200_000)
	const frame = 3 + 4 // priming, the message
	tests := map[string]struct {
		model, parts string
		want         int
	}{
		"two texts":           {"gpt-4o", `{"type":"text","text":"hello world"},{"type":"text","text":"hello world"}`, 4},
		"a string":            {"gpt-4o", `"hello world"`, 2},
		"picture":             {"gpt-4o", `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}`, 765},
		"picture, low":        {"gpt-4o", `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `","detail":"low"}}`, 85},
		"picture, URL alone":  {"gpt-4o", `{"type":"image_url","image_url":"data:image/png;base64,` + data + `"}`, 765},
		"picture, input":      {"gpt-4o", `{"type":"input_image","image_url":"data:image/png;base64,` + data + `","detail":"low"}`, 85},
		"picture, source":     {"claude-sonnet-4-5", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}}`, 1369},
		"picture by link":     {"gpt-4o", `{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`, 765},
		"picture, unreadable": {"gpt-4o", `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + noise + `"}}`, 765},
		"sound":               {"gpt-4o-audio-preview", `{"type":"input_audio","input_audio":{"format":"mp3","data":"` + noise + `"}}`, 1130},
		"sound elsewhere":     {"gemini-2.5-pro", `{"type":"input_audio","input_audio":{"format":"mp3","data":"` + noise + `"}}`, 3616},
		"PDF":                 {"gpt-4o", `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + noise + `"}}`, 36_000},
		"file by id":          {"gpt-4o", `{"type":"file","file":{"file_id":"file-1"}}`, 2000},
		"text file":           {"gpt-4o", `{"type":"file","file":{"file_data":"data:text/plain;base64,` + noise + `"}}`, 225_001},
		"result with picture": {"claude-sonnet-4-5", `{"type":"tool_result","content":[{"type":"image","source":{"data":"` + data + `"}}]}`, 1369},
		"thinking":            {"claude-sonnet-4-5", `{"type":"thinking","thinking":"hello world","signature":"` + noise + `"}`, 2},
	}
	for name, tt := range tests {
		b := user(t, tt.model, tt.parts)
		c := meter().Measure(b, tt.model)
		if got := c.Total - frame; got != tt.want {
			t.Errorf("%s: %d tokens, want %d", name, got, tt.want)
		}
		if c.Exact != (tt.model == "gpt-4o" && !strings.Contains(tt.parts, "image") && !strings.Contains(tt.parts, "file")) {
			t.Errorf("%s: exact is %v", name, c.Exact)
		}
	}
}

func TestReasoningThatIsPassedBack(t *testing.T) {
	plain := meter().Measure(parse(t, `{"messages":[{"role":"assistant","content":"a"}]}`), "deepseek-chat").Total
	for _, fields := range []string{`"reasoning_content":"hello world"`, `"reasoning":"hello world"`,
		`"reasoning_details":[{"type":"reasoning.text","text":"hello world","signature":"` + strings.Repeat("x y", 999) + `"}]`,
		`"thinking_blocks":[{"type":"thinking","thinking":"hello world","signature":"abcdef"}]`, `"refusal":"hello world"`} {
		c := meter().Measure(parse(t, `{"messages":[{"role":"assistant","content":"a",`+fields+`}]}`), "deepseek-chat")
		if c.Total != plain+2 || c.Exact {
			t.Errorf("%.60s: %d tokens more, exact %v", fields, c.Total-plain, c.Exact)
		}
	}
}

func TestExact(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"messages":[{"role":"user","content":"a"}]}`:                                                                             true,
		`{"messages":[{"role":"user","content":null},{"role":"assistant","content":[]}]}`:                                          true,
		`{"messages":[{"role":"user","content":"a"}],"tools":[]}`:                                                                  true,
		`{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f"}}]}`:                       false,
		`{"messages":[{"role":"user","content":"a"}],"functions":[{"name":"f"}]}`:                                                  false,
		`{"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_schema","json_schema":{"schema":{}}}}`:        false,
		`{"messages":[{"role":"user","content":"a"}],"response_format":{"type":"text"}}`:                                           true,
		`{"messages":[{"role":"tool","tool_call_id":"1","content":"a"}]}`:                                                          false,
		`{"messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}]}`: false,
		`{"messages":[{"role":"alien","content":"a"}]}`:                                                                            false,
		`{"messages":[{"content":3}]}`:                                                                                             false,
	} {
		if c := meter().Measure(parse(t, raw), "gpt-4o"); c.Exact != want {
			t.Errorf("%s: exact is %v", raw, c.Exact)
		}
		if c := meter().Measure(parse(t, raw), "claude-sonnet-4-5"); c.Exact {
			t.Errorf("%s is exact for a stranger", raw)
		}
	}
}

func TestSchemaOfTheAnswerCounts(t *testing.T) {
	plain := meter().Measure(parse(t, `{"messages":[]}`), "gpt-4o").Total
	schema := `{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"` + strings.Repeat("abc_", 200) + `":{}}}}}`
	if n := meter().Measure(parse(t, `{"messages":[],"response_format":`+schema+`}`), "gpt-4o").Total; n < plain+200 {
		t.Errorf("%d tokens, %d without the schema", n, plain)
	}
}

// Hostile schemas neither take long nor are rendered at great length.
func TestHostileSchemas(t *testing.T) {
	deep := strings.Repeat(`{"type":["object","array","object","array"],"properties":{"a":`, 150)
	deep += `{}` + strings.Repeat(`},"items":{}}`, 150)
	wide, _ := json.Marshal(strings.Split(strings.Repeat("object,", 50_000), ","))
	for name, schema := range map[string]string{
		"deep": deep, "wide": `{"type":"object","properties":{"a":{"type":` + string(wide) + `,"properties":{"b":{"type":"string","description":"` + strings.Repeat("x ", 100_000) + `"}}}}}`,
		"items": `{"type":"object","properties":{"a":` + strings.Repeat(`{"type":"array","items":`, 200) + `{}` + strings.Repeat(`}`, 200) + `}}`,
	} {
		b := parse(t, `{"messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":`+schema+`}}]}`)
		start := time.Now()
		n := meter().Measure(b, "gpt-4o").Total
		if d := time.Since(start); d > 5*time.Second || n > 2*len(b.Raw()) {
			t.Errorf("%s: %d tokens of %d bytes in %v", name, n, len(b.Raw()), d)
		}
	}
}

func FuzzMeasure(f *testing.F) {
	for _, raw := range []string{
		`{"model":"gpt-4o","messages":` + cookbook + `}`,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"}},"a",{"type":"file","file":{}}]}]}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}],"reasoning_content":"x"},{"role":"tool","tool_call_id":"a","content":"b"},{},1]}`,
		`{"messages":[],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"enu` +
			`m":[1,2,3]},"b":{"anyOf":[{"type":["string","null"]},{"type":"array","items":{"type":"object"}}],"default":{}}},"required":["a"]}}}]}`,
		`{"messages":[],"functions":[{"name":"f"}],"response_format":{"type":"json_schema","json_schema":{}}}`,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := transcript.Parse(raw, transcript.Chat, transcript.Limits{})
		if err != nil || len(raw) > 1<<16 {
			return
		}
		for _, model := range []string{b.Model(), "gpt-4o", "claude-sonnet-4-5"} {
			m := meter()
			c := m.Measure(b, model)
			sum := c.Fixed
			for _, n := range c.Messages {
				if n < 0 {
					t.Fatalf("a message of %d tokens", n)
				}
				sum += n
			}
			if sum != c.Total || len(c.Messages) != len(b.Messages()) {
				t.Fatalf("%+v does not add up", c)
			}
			if again := m.Measure(b, model); again.Total != c.Total || again.Exact != c.Exact {
				t.Fatalf("%+v, remembered as %+v", c, again)
			}
			a, _ := m.Observe(b, model, Anchor{}, usage(c.Total, 1))
			if n, ok := m.Anchored(b, model, a); ok && n != c.Total {
				t.Fatalf("anchored at %d, reported %d", n, c.Total)
			}
		}
	})
}
