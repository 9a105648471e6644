package strategy

import "github.com/rebound-llm/rebound/recovery"

// maxSmaller limits how often one request asks the model for a smaller step.
const maxSmaller = 2

// smallerStep returns the note for a retry after the second timeout or cut of one request: an answer that takes too long
// for its upstream may arrive in smaller steps. It returns "" if no note is needed.
func smallerStep(x *recovery.Exchange, f *recovery.Failure) string {
	if f.Class() != recovery.Timeout && f.Class() != recovery.StreamCut || x.Notes() >= maxSmaller || x.Body.ResponseFormat() {
		return ""
	}
	broken := 0
	for _, a := range x.Attempts {
		if a.Class == recovery.Timeout || a.Class == recovery.StreamCut {
			broken++
		}
	}
	if broken < 2 {
		return ""
	}
	what := "took too long and was given up"
	if f.Class() == recovery.StreamCut {
		what = "broke off before its end"
	}
	return "[gateway note, not from the user] Your last answers to this request did not arrive: the latest " + what + ". " +
		"Take a smaller step this time: a shorter answer, or one tool call with a small argument, and go on with the rest in the next turn. " +
		"Keep using tools as before. Do not mention this note."
}
