package inspect_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/hostiletest"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func TestHostileHistories(t *testing.T) {
	stage := inspect.NewStage(inspect.Defaults(), inspect.RulesForTests(), unheard{})
	hostiletest.Linear(t, hostiletest.Requests(), func(input string) func() {
		b, err := transcript.Parse([]byte(input), transcript.Chat, transcript.Limits{})
		if err != nil {
			return nil
		}
		return func() {
			_ = stage.Prepare(context.Background(), &recovery.Exchange{Request: recovery.Request{Body: b, Mode: recovery.ModeAct}})
		}
	})
}

// Results find the same calls, however many there are.
func TestAnswersToManyCalls(t *testing.T) {
	for _, extra := range []int{0, 100} { // beyond so many, calls are looked up
		var calls, answers strings.Builder
		call := func(id, name string) { fmt.Fprintf(&calls, `{%s"function":{"name":%q,"arguments":"{}"}},`, id, name) }
		for i := range extra {
			call(fmt.Sprintf(`"id":"x%d",`, i), "other")
		}
		call(`"id":"a",`, "first")
		call(`"id":"b",`, "second")
		call(`"id":"a",`, "third")
		call(``, "fourth")
		ids := []string{`"a"`, `"b"`, `"a"`, `"a"`, `"none"`}
		for i := range extra {
			ids = append(ids, fmt.Sprintf(`"x%d"`, extra-1-i))
		}
		ids = append(ids, `""`, `""`)
		for _, id := range ids {
			answers.WriteString(`,{"role":"tool","tool_call_id":` + id + `,"name":"own","content":"x"}`)
		}
		raw := `{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[` + strings.TrimSuffix(calls.String(), ",") + `]}` + answers.String() + `]}`
		b := recoverytest.Parse(t, raw, transcript.Chat)
		var got []string
		for _, r := range trajectory.Results(b) {
			if r.Tool != "other" {
				got = append(got, r.CallID+":"+r.Tool)
			}
		}
		if want := "a:first b:second a:third a:first none:own :fourth :own"; strings.Join(got, " ") != want {
			t.Errorf("%d more: %s, want %s", extra, strings.Join(got, " "), want)
		}
	}
}
