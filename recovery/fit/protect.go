package fit

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// protectReason says why a message is left as it is. Only some reasons also keep it
// out of a summary.
type protectReason uint8

const (
	protectLead      protectReason = 1 << iota // instructions, and all up to the first answer
	protectUser                                // a person's words
	protectRecent                              // the end of the history
	protectError                               // an error that nothing resolved, and its call
	protectReasoning                           // its reasoning goes back as it came; the whole step may be summarised
	protectSystem                              // instructions in the middle
)

// keepReasons are the reasons for which a message survives a summary.
const keepReasons = protectLead | protectUser | protectRecent | protectError | protectSystem

// protection is what no tier touches.
type protection struct {
	reasons []protectReason
	tokens  []int // of each message
	recent  int   // where the recent turns begin
}

// The shares of the budget that protected messages may have, besides the recent turns.
const (
	userShare  = 0.25
	errorShare = 0.10
)

// protect finds the protected messages. tokens are those of each message,
// recentShare is the share of the budget that the recent turns have.
func protect(v *history, tokens []int, budget int, recentShare float64) *protection {
	p := &protection{reasons: make([]protectReason, len(v.items)), tokens: tokens}
	for i := range v.items {
		it := &v.items[i]
		if i < v.leadEnd {
			p.reasons[i] |= protectLead
		}
		if it.Role == transcript.RoleSystem || it.Role == transcript.RoleDeveloper || it.Role == transcript.RoleOpaque {
			p.reasons[i] |= protectSystem
		}
		if it.shape.Reasoning {
			p.reasons[i] |= protectReasoning
		}
	}
	p.markRecent(v, int(float64(budget)*recentShare))
	p.markUsers(v, int(float64(budget)*userShare))
	p.markErrors(v, int(float64(budget)*errorShare))
	return p
}

// markRecent protects the end: at least the last step, and steps before it
// until they have the share.
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

// markUsers protects a person's words, the newest first, up to the share; the
// newest always and besides. A short answer says nothing without what was asked, which
// is kept with it.
func (p *protection) markUsers(v *history, share int) {
	sum, newest := 0, true
	for i := len(v.items) - 1; i >= v.leadEnd; i-- {
		if it := &v.items[i]; it.Role != transcript.RoleUser || it.result || it.isReplacement() {
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
	for i := len(v.items) - 1; i > v.leadEnd; i-- { // with what is left of the share
		if p.reasons[i]&protectUser != 0 && isShortReply(v.items[i].text) && v.items[i-1].asksQuestion() && sum+p.tokens[i-1] <= share {
			sum += p.tokens[i-1]
			p.reasons[i-1] |= protectUser
		}
	}
}

// isShortReply reports whether a person's words are an answer that only the question explains,
// such as "yes", "3" or "the second one".
func isShortReply(text string) bool { return len(text) < 60 && len(strings.Fields(text)) <= 4 }

// asksQuestion reports whether the model asks a person something.
func (it *item) asksQuestion() bool {
	return it.Role == transcript.RoleAssistant && len(it.calls) == 0 && strings.ContainsAny(it.text, "?？")
}

// markErrors protects the last error of each thing that was tried and has not
// succeeded since, with its call, the newest first, up to the share.
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

// narrowLevels is the last level of narrowed.
const narrowLevels = 3

// narrowed is a protection with fewer reasons, for a history that otherwise has no
// room: first without the user's words and the errors in the middle, then without
// the recent turns but the last, in the end without any word of the user before that.
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
