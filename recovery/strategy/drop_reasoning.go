package strategy

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// DropReasoning takes the reasoning of earlier turns out where a target cannot read
// it, since another account was given it, or misses what belongs to it. What the model
// said and did stays; the account that made the reasoning is remembered for the session.
type DropReasoning struct{}

// Name is the name that plans use.
func (DropReasoning) Name() string { return "drop_reasoning" }

// reasoningRefusals are the words, in lower case, of refusals that reasoning causes:
// it was sealed for another account, is not kept any more, or stands without what it led to.
var reasoningRefusals = []string{
	"encrypted content", "encrypted_content", "not issued to this caller", "items are not persisted", "without its required following item",
	"without its required 'reasoning' item", "reasoning item",
	// of the Messages API: a signature of another provider, blocks that a client changed or left out
	"`signature` in `thinking`", "thinking.signature", "redacted_thinking` blocks in the latest", "expected `thinking`",
}

// Propose implements recovery.Strategy.
func (DropReasoning) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	if !containsAny(strings.ToLower(f.Signal.Message+" "+f.Signal.Code), reasoningRefusals) {
		return recovery.Action{}, false
	}
	// What finished turns thought is not missed; without what it thinks just now the model
	// cannot go on thinking.
	if a, ok := mended(s, f, recovery.Edit{Mend: recovery.MendReasoning, Field: recovery.ReasoningFinished}); ok {
		return a, true
	}
	return mended(s, f, recovery.Edit{Mend: recovery.MendReasoning})
}
