package inspect_test

import (
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// TestPreferenceExamples: each sentence of the rules on preferences rules out what it
// says, and what only resembles one does not.
func TestPreferenceExamples(t *testing.T) {
	if err := inspect.NewPreferences(configs.PreferenceRules).Check(); err != nil {
		t.Error(err)
	}
}

// Two texts of which somebody found out that they share a hash that is the same in
// every process: what one client's says is not taken for what another's does.
func TestPreferencesOfOthers(t *testing.T) {
	p := inspect.NewPreferences(configs.PreferenceRules)
	for text, want := range map[string]recovery.Deeds{"never ask twice. ref dmdoncpchgafpcph": 0, "never use sudo. ref  bheniaaofeljlhbb": recovery.Elevates} {
		b := recoverytest.Parse(t, `{"model":"m","messages":[{"role":"system","content":"`+text+`"},{"role":"user","content":"Hi"}]}`, transcript.Chat)
		if got := p.Barred(b); got != want {
			t.Errorf("%q rules out %v, want %v", text, got, want)
		}
	}
}
