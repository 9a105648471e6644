package strategy

import "github.com/rebound-llm/rebound/recovery"

// All returns every strategy, by the name that plans use. Their order does not matter, since a class's plan has its own.
func All() []recovery.Strategy {
	return []recovery.Strategy{
		{Name: "resend", Propose: Resend}, {Name: "wait", Propose: Wait}, {Name: "move", Propose: Move}, {Name: "larger_window", Propose: LargerWindow},
		{Name: "clamp_output", Propose: ClampOutput}, {Name: "adapt_parameter", Propose: AdaptParameter}, {Name: "resume", Propose: Resume},
		{Name: "fit", Propose: Fit}, {Name: "reask", Propose: Reask}, {Name: "explain", Propose: Explain},
		{Name: "mend_history", Propose: ConformHistory}, // events and metrics keep its older name
		{Name: "trim_schema", Propose: TrimSchema}, {Name: "drop_media", Propose: DropMedia}, {Name: "drop_reasoning", Propose: DropReasoning},
	}
}
