package fit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/store/memory"
)

// A turn of many results that are too large only together is fitted after one refusal, or
// after two if the refusals do not state the window.
func TestManyResults(t *testing.T) {
	var calls, results strings.Builder
	for i := range 8 {
		if i > 0 {
			calls.WriteString(",")
		}
		fmt.Fprintf(&calls, `{"id":"call_%d","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"f%d\"}"}}`, i, i)
		var text strings.Builder
		for k := range 600 {
			fmt.Fprintf(&text, "line %d of file %d says %x\n", k, i, k*7919*(i+3))
		}
		raw, err := json.Marshal(text.String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&results, `,{"role":"tool","tool_call_id":"call_%d","content":%s}`, i, raw)
	}
	chat := newConversation(t, "results", []byte(`{"messages":[{"role":"user","content":"Read all the files."},{"role":"assistant","content":null,"tool_calls":[`+
		calls.String()+`]}`+results.String()+`],"tools":[{"type":"function","function":{"name":"read_file","parameters":{"type":"object"}}}]}`))
	for _, c := range []*conversation{chat, chat.converted()} {
		for _, silent := range []bool{false, true} {
			f := fit.New(fit.Defaults(), fit.Parts{Meter: count.NewMeter(), Store: fit.Replica(t, memory.New(memory.Config{})), Windows: fit.NewWindows()})
			r := &replayer{provider: newProvider(32_000), session: "s", ledger: c.ledger, fitter: f}
			r.provider.silent = silent
			r.send(t, c.body(t, len(c.Messages)))
			most := 1
			if silent {
				most = 2
			}
			if r.failed > 0 || r.provider.overflow == 0 || r.provider.overflow > most {
				t.Errorf("%s, silent %t: %d failed, %d overflows", c.name, silent, r.failed, r.provider.overflow)
			}
			if err := f.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
}
