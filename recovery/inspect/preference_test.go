package inspect_test

import (
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery/inspect"
)

// TestPreferenceExamples: each sentence of the rules on preferences rules out what it
// says, and what only resembles one does not.
func TestPreferenceExamples(t *testing.T) {
	if err := inspect.NewPreferences(configs.PreferenceRules).Check(); err != nil {
		t.Error(err)
	}
}
