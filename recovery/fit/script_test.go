package fit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// script builds a chat request for tests.
type script struct {
	b     strings.Builder
	n     int
	tools string
}

func newScript() *script {
	s := &script{}
	s.say("system", "You are an agent.")
	s.say("user", "Mend the build. Never touch vendor.")
	return s
}

func (s *script) raw(message string) *script {
	if s.n > 0 {
		s.b.WriteByte(',')
	}
	s.n++
	s.b.WriteString(message)
	return s
}

func (s *script) say(role, text string) *script {
	return s.raw(fmt.Sprintf(`{"role":%q,"content":%s}`, role, transcript.String(text)))
}

// call adds a call and its result; it returns the index of the result.
func (s *script) call(name, arguments, result string) int {
	id := fmt.Sprintf("call_%d", s.n)
	s.raw(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]}`,
		id, name, transcript.String(arguments)))
	s.raw(fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, id, transcript.String(result)))
	return s.n - 1
}

func (s *script) body(t testing.TB) *transcript.Body {
	t.Helper()
	tools := ""
	if s.tools != "" {
		tools = `"tools":` + s.tools + `,`
	}
	return recoverytest.Parse(t, `{"model":"gpt-4o",`+tools+`"messages":[`+s.b.String()+`]}`, transcript.Chat)
}

func (s *script) history(t testing.TB) *history {
	t.Helper()
	return newHistory(s.body(t), newParseCache(), []byte("k"))
}

// lines returns a text of n different lines.
func lines(n int, what string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s line %d\n", what, i)
	}
	return b.String()
}

func newMeter() *count.Meter { return count.NewMeter() }
