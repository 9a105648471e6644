package route

import "github.com/rebound-llm/rebound/recovery"

// Model maps a client's model name to targets.
type Model struct {
	// Targets are in order of preference. The rank of an entry is its position, unless it has its own.
	Targets []Target `yaml:"targets"`
	// FallbackFor lists the classes that, besides outages and limits, may move to a later target. By default
	// content_policy is not among them: sending refused content elsewhere is the operator's decision.
	FallbackFor []recovery.Class `yaml:"fallback_for"`
	// Mode limits what the gateway may do to requests for the model; if it is empty, recovery.mode applies.
	Mode recovery.Mode `yaml:"mode"`
}

// Target is one place that serves a model.
type Target struct {
	Upstream string  `yaml:"upstream"`
	Model    string  `yaml:"model"`  // the upstream's name; empty: as the client named it
	Rank     *int    `yaml:"rank"`   // default: position in the list
	Weight   float64 `yaml:"weight"` // share within a rank, default 1
	Window   int     `yaml:"window"` // context window in tokens, 0 when unknown
	Prefill  string  `yaml:"prefill"`
}

// DefaultFallbackFor returns the FallbackFor of models without their own list.
func DefaultFallbackFor() []recovery.Class { return []recovery.Class{recovery.ModelNotFound} }

// Validate reports everything that is wrong, as one joined error; each message
// begins with the key. Upstream names are checked by the composer.
func (m Model) Validate() error {
	var problems recovery.Problems
	if _, ok := recovery.ParseMode(string(m.Mode)); m.Mode != "" && !ok {
		problems.Add("mode: %q is none of act, annotate, observe, off", m.Mode)
	}
	problems.Check(len(m.Targets) == 0, "targets: at least one is needed")
	for i, t := range m.Targets {
		problems.Check(t.Upstream == "", "targets[%d].upstream: is needed", i)
		problems.Check(t.Weight < 0, "targets[%d].weight: must not be negative", i)
		problems.Check(t.Window < 0, "targets[%d].window: must not be negative", i)
		problems.Check(t.Rank != nil && *t.Rank < 0, "targets[%d].rank: must not be negative", i)
		switch recovery.Prefill(t.Prefill) {
		case "", recovery.PrefillAuto, recovery.PrefillNone, recovery.PrefillAssistant, recovery.PrefillPrefix, recovery.PrefillContinue:
		default:
			problems.Add("targets[%d].prefill: %q is none of auto, none, assistant, prefix, continue_final_message", i, t.Prefill)
		}
	}
	for i, c := range m.FallbackFor {
		problems.Check(c != recovery.ModelNotFound && c != recovery.ContentPolicy && c != recovery.InvalidRequest, "fallback_for[%d]: %q is none of model_not_found, content_policy, invalid_request", i, c)
	}
	return problems.Err()
}
