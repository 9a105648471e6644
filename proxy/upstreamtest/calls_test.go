package upstreamtest

import (
	"io"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestCallForms: each form of a call is sent as documented, streamed or not.
func TestCallForms(t *testing.T) {
	up := start(t)
	for _, c := range []struct {
		step, stream, whole string // what the answers contain; with - in front: do not contain
	}{
		{"tool,call=whole", `"arguments":"{\"city\":\"Paris\"}"`, `"tool_calls":[{"id":"call_mock_`},
		{"tool,call=merged", `_c1","type":"function","function":{"name":"get_weather"`, `_c1","type":"function"`},
		{"tool,call=no-index", `-"tool_calls":[{"index"`, `"name":"get_weather"`},
		{"tool,call=names", `{"tool_calls":[{"index":0,"function":{"name":"get_weather","arguments":"`, `"name":"get_weather"`},
		{"tool,call=object", `"arguments":{"city":"Paris"}`, `"arguments":{"city":"Paris"}`},
		{"tool,call=message", `"message":{"role":"assistant","tool_calls":[{"id"`, `"name":"get_weather"`},
		{"leak", `-tool_calls`, `<tool_call>{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Paris\"}}</tool_call>`},
		{"text-tool,leak,args={}", `-tool_calls`, `.<tool_call>{\"name\":\"get_weather\",\"arguments\":{}}</tool_call>`},
		{"leak=Let+me%2C+look%21,chunks=1", `"content":"Let me, look!"`, `"content":"Let me, look!"`},
		{"rejected", `"failed_generation":"<tool_call>`, `"code":"tool_use_failed"`},
	} {
		for extra, want := range map[string]string{`"stream":true,`: c.stream, "": c.whole} {
			got := read(t, up, body("svc@"+c.step, extra))
			want, not := strings.CutPrefix(want, "-")
			if strings.Contains(got, want) == not {
				t.Errorf("%s %s: %s", c.step, extra, got)
			}
			for line := range strings.Lines(got) {
				if data, ok := strings.CutPrefix(line, "data: {"); ok && !gjson.Valid("{"+data) {
					t.Errorf("%s: %s", c.step, line)
				}
			}
		}
	}
}

// read returns a whole answer.
func read(t *testing.T, up *Running, payload string) string {
	t.Helper()
	res, err := post(t, up, payload)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}
