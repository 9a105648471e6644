package classify_test

import (
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
)

// TestNamesAsWords: the words in a code decide if there is no sentence and no rule
// knows the code.
func TestNamesAsWords(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	for _, c := range []struct {
		status int
		body   string
		want   recovery.Class
	}{
		{403, `{"error":{"code":"OperationDenied.ServiceOverdue"}}`, recovery.QuotaExhausted},
		{400, `{"error":{"code":"team_rate_limit_exceeded"}}`, recovery.RateLimit},
		{400, `{"error":{"type":"PromptIsTooLong"}}`, recovery.ContextLengthExceeded},
		{500, `{"error":"gateway-connection-refused"}`, recovery.ServerError},
		{400, `{"error":{"code":"context_too_large","message":"too large"}}`, recovery.ContextLengthExceeded},
		// A sentence wins, and so does a rule that knows the code.
		{400, `{"error":{"code":"prompt_is_too_long","message":"The field has the wrong form."}}`, recovery.InvalidRequest},
		{429, `{"error":{"type":"usage_limit_reached"}}`, recovery.RateLimit},
		{403, `{"error":{"code":"x_y"}}`, recovery.Permission},
		{403, `{"error":{"code":"9f_credit_balance"}}`, recovery.Permission},
	} {
		ev := recovery.Evidence{Phase: recovery.PhaseStatus, Status: c.status, Body: []byte(c.body)}
		if d := tb.Classify(ev); d.Spec.Class != c.want {
			t.Errorf("%d %s: got %s by %s, want %s", c.status, c.body, d.Spec.Class, d.Rule, c.want)
		}
		if matching, _ := tb.Explain(ev); len(matching) == 0 || matching[0].Rule.Class != string(c.want) {
			t.Errorf("%d %s: explained otherwise", c.status, c.body)
		}
	}
}
