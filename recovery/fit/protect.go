package fit

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// protectReason is a set of reasons not to edit a message. Only keepReasons also keep it
// from being replaced by a summary.
type protectReason uint8

const (
	protectLead      protectReason = 1 << iota // everything before the first answer
	protectUser                                // the user's own message
	protectRecent                              // the end of the history
	protectError                               // an unresolved error, or its call
	protectReasoning                           // has reasoning, which must go back unchanged; the whole step may be summarised
	protectSystem                              // later instructions
)

// keepReasons are the reasons that keep a message out of a summary.
const keepReasons = protectLead | protectUser | protectRecent | protectError | protectSystem

// protection holds the reasons of all messages.
type protection struct {
	reasons []protectReason
	tokens  []int // of each message
	recent  int   // start of the recent turns
}

// The shares of the budget for protected messages, besides the recent turns.
const (
	userShare     = 0.25
	errorShare    = 0.10
	reminderShare = 0.10
)

// protect finds the protected messages. tokens are the sizes of all messages; recentShare is
// the recent turns' share of the budget.
func protect(v *history, tokens []int, budget int, recentShare float64) *protection {
	p := &protection{reasons: make([]protectReason, len(v.items)), tokens: tokens}
	for i := range v.items {
		it := &v.items[i]
		if i < v.leadEnd {
			p.reasons[i] |= protectLead
		}
		if !it.Reminder() && (it.Role == transcript.RoleSystem || it.Role == transcript.RoleDeveloper || it.Role == transcript.RoleOpaque) {
			p.reasons[i] |= protectSystem
		}
		if it.shape.Reasoning {
			p.reasons[i] |= protectReasoning
		}
	}
	p.markRecent(v, int(float64(budget)*recentShare))
	p.markUsers(v, int(float64(budget)*userShare))
	p.markErrors(v, int(float64(budget)*errorShare))
	p.markReminders(v, int(float64(budget)*reminderShare))
	return p
}

// markRecent protects the last step, and steps before it until their tokens reach share.
func (p *protection) markRecent(v *history, share int) {
	p.recent = len(v.items)
	last := v.lastStep()
	for sum := 0; p.recent > v.leadEnd; {
		if answered := last < len(v.items) && p.recent <= last; answered && sum >= share {
			break
		}
		start := v.stepStart(p.recent - 1)
		for i := start; i < p.recent; i++ {
			sum += p.tokens[i]
		}
		p.recent = start
	}
	for i := p.recent; i < len(v.items); i++ {
		p.reasons[i] |= protectRecent
	}
}

// markUsers protects the user's messages, the newest first, up to share tokens. The newest
// is always protected and does not count. If share allows, the question before a short
// reply is protected too.
func (p *protection) markUsers(v *history, share int) {
	sum, newest := 0, true
	for i := len(v.items) - 1; i >= v.leadEnd; i-- {
		if !v.items[i].ofUser() {
			continue
		}
		switch {
		case newest:
			newest = false
		case sum+p.tokens[i] > share:
			continue // a smaller one may still have room
		default:
			sum += p.tokens[i]
		}
		p.reasons[i] |= protectUser
	}
	for i := len(v.items) - 1; i > v.leadEnd; i-- { // questions, from the rest of the share
		if p.reasons[i]&protectUser != 0 && isShortReply(v.items[i].text) && v.items[i-1].asksQuestion() && sum+p.tokens[i-1] <= share {
			sum += p.tokens[i-1]
			p.reasons[i-1] |= protectUser
		}
	}
}

// ofUser reports whether the message holds what a user wrote or attached, and not only what the client or an earlier fitting did.
func (it *item) ofUser() bool {
	return it.Role == transcript.RoleUser && !it.result && !it.isReplacement() && !it.Reminder()
}

// isShortReply reports whether a text only makes sense as the reply to a question, such as
// "yes", "3" or "the second one".
func isShortReply(text string) bool { return len(text) < 60 && len(strings.Fields(text)) <= 4 }

// asksQuestion reports whether the message is a question of the model to the user.
func (it *item) asksQuestion() bool {
	return it.Role == transcript.RoleAssistant && len(it.calls) == 0 && strings.ContainsAny(it.text, "?？")
}

// markErrors protects unresolved errors with their calls, the newest first, up to share
// tokens. An error is unresolved if it is the last result of its kind of attempt.
func (p *protection) markErrors(v *history, share int) {
	tried := map[string]bool{}
	sum := 0
	for i := len(v.items) - 1; i >= v.leadEnd; i-- {
		it := &v.items[i]
		if !it.result || it.caller < 0 {
			continue
		}
		attempt := it.call.attempt
		if tried[attempt] {
			continue
		}
		tried[attempt] = true
		if !it.failed() || p.reasons[i]&protectRecent != 0 {
			continue
		}
		end := v.stepEnd(it.caller)
		step := 0
		for k := it.caller; k < end; k++ {
			step += p.tokens[k]
		}
		if sum+step > share {
			continue
		}
		sum += step
		for k := it.caller; k < max(end, i+1); k++ {
			p.reasons[k] |= protectError
		}
	}
}

// markReminders protects the client's reminders before the recent turns, the newest first, up to share tokens.
func (p *protection) markReminders(v *history, share int) {
	for i := p.recent - 1; i >= v.leadEnd; i-- {
		if v.items[i].Reminder() && p.tokens[i] <= share {
			share -= p.tokens[i]
			p.reasons[i] |= protectSystem
		}
	}
}

// narrowLevels is the highest level of narrowed: a higher one protects the same.
const narrowLevels = 3

// narrowed returns a weaker protection, for a history that otherwise does not fit. Level 1
// protects no errors and only the newest of the user's messages, level 2 of the recent
// turns only the last step, level 3 no user message before that step.
func (p *protection) narrowed(v *history, level int) *protection {
	n := *p
	n.reasons = slices.Clone(p.reasons)
	last, newest := v.lastStep(), true
	if level > 1 {
		n.recent = max(last, v.leadEnd)
	}
	for i := len(n.reasons) - 1; i >= 0; i-- {
		n.reasons[i] &^= protectError
		if n.reasons[i]&protectUser != 0 {
			if !newest || level > 2 && i < last {
				n.reasons[i] &^= protectUser
			}
			newest = false
		}
		if i < n.recent {
			n.reasons[i] &^= protectRecent
		}
	}
	return &n
}
