package strategy_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/strategy"
)

// TestPlans lists the plan of each class, and which of its strategies help against one typical failure of that class when a
// second target is ready. A strategy that helps in no row is not tested: add a row.
func TestPlans(t *testing.T) {
	const (
		plain = `{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":9000,"seed":1}`
		agent = `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"z"}],` +
			`"tools":[{"type":"function","function":{"name":"f"}}]}`
	)
	byName, helped := map[string]recovery.Strategy{}, map[string]bool{}
	for _, s := range strategy.All() {
		byName[s.Name] = s
	}
	rows := []struct {
		class      recovery.Class
		body       string
		message    string
		status     int           // if it is not the class's
		asked      time.Duration // wait that the upstream asks for
		facts      recovery.Facts
		shown      string // text that the client has
		plan, want string
	}{
		{class: recovery.ContextLengthExceeded, plan: "fit larger_window", want: "fit larger_window"},
		{class: recovery.MaxOutputExceeded, facts: recovery.Facts{MaxOutputLimit: 4096}, plan: "clamp_output", want: "clamp_output"},
		{class: recovery.RateLimit, plan: "wait move", want: "wait move"},
		{class: recovery.QuotaExhausted, plan: "move", want: "move"},
		{class: recovery.Overloaded, plan: "wait resend move", want: "resend move"},
		{class: recovery.ServerError, asked: time.Second, plan: "wait resend move", want: "wait move"},
		{class: recovery.Timeout, plan: "wait resend move", want: "resend move"},
		{class: recovery.StreamCut, shown: "The quick brown fox", plan: "resume resend move", want: "resume resend move"},
		{class: recovery.StreamCut, plan: "resume resend move", want: "resend move"},
		{class: recovery.EmptyResponse, plan: "move resend", want: "move resend"},
		{class: recovery.UnsupportedParameter, facts: recovery.Facts{Param: "seed"}, plan: "adapt_parameter move", want: "adapt_parameter move"},
		{class: recovery.InvalidToolSchema, message: "Unsupported keyword: pattern", plan: "trim_schema move", want: "trim_schema move"},
		{class: recovery.ToolPairing, body: agent, plan: "drop_reasoning mend_history explain", want: "mend_history explain"},
		{class: recovery.InvalidJSONBody, message: "content cannot be null", plan: "mend_history", want: "mend_history"},
		{class: recovery.InvalidRequest, body: agent, message: "The encrypted content could not be verified", plan: "drop_reasoning mend_history move explain",
			want: "drop_reasoning explain"},
		{class: recovery.ContentPolicy, plan: "move"},
		{class: recovery.Auth, plan: "move", want: "move"},
		{class: recovery.Permission, plan: "move", want: "move"},
		{class: recovery.ModelNotFound, plan: "move"},
		{class: recovery.PayloadTooLarge, plan: "fit", want: "fit"},
		{class: recovery.ModelOutputInvalid, plan: "reask move", want: "reask move"},
		{class: recovery.ImageOrMediaError, body: agent, message: "at most 5 images", plan: "drop_media", want: "drop_media"},
		{class: recovery.Unknown, body: agent, status: 418, asked: time.Second, plan: "wait explain", want: "wait explain"},
	}
	planned := map[recovery.Class]bool{}
	for _, row := range rows {
		planned[row.class] = true
		list := []recovery.Choice{choice("a", window(8192)), choice("b", window(128_000))}
		if row.body == "" {
			row.body = plain
		}
		s, f := situation(t, row.body, 0, nil, list...), failure(row.class, list[0])
		f.Facts, f.Signal.Message, f.Signal.Status = row.facts, row.message, cmp.Or(row.status, f.Spec.Status)
		f.Signal.RetryAfter, f.Signal.HasRetryAfter = row.asked, row.asked > 0
		if row.shown != "" {
			f.Sent, f.Released = row.shown, recovery.ReleasedText
		}
		if got := strings.Join(f.Spec.Plan, " "); got != row.plan {
			t.Errorf("%s: the plan is %q, want %q", row.class, got, row.plan)
		}
		var got []string
		for _, name := range f.Spec.Plan {
			if byName[name].Propose == nil {
				t.Errorf("%s plans %s, which is no strategy", row.class, name)
			} else if _, ok := byName[name].Propose(s, f); ok {
				got, helped[name] = append(got, name), true
			}
		}
		if got := strings.Join(got, " "); got != row.want {
			t.Errorf("%s: %q help, want %q", row.class, got, row.want)
		}
	}
	for _, spec := range classify.Specs() {
		if !planned[spec.Class] {
			t.Errorf("%s has no row", spec.Class)
		}
	}
	for name := range byName {
		if !helped[name] {
			t.Errorf("%s helps in no row", name)
		}
	}
}
