package count

import (
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Anchor is what an upstream reported for a prompt that was sent to it: from
// then on only what comes after that prompt has to be estimated. It belongs to
// one session and one model, and is about the bytes that were sent: where a
// fitted copy went upstream, the copy. It is small and can be stored as JSON.
// The zero Anchor knows nothing.
type Anchor struct {
	Messages int    `json:"m"`           // messages of the prompt
	Hash     uint64 `json:"h"`           // of them, of what is fixed, and of the model
	Fixed    uint64 `json:"f"`           // hash of what is fixed, and of the model
	Reported int    `json:"r"`           // tokens of the prompt
	Raw      int    `json:"t"`           // tokens that were counted for it, without media
	Calls    int    `json:"c,omitempty"` // tool calls in it
	Media    int    `json:"d,omitempty"` // tokens of images, sound and files in it
	Answer   int    `json:"a,omitempty"` // tokens of the answer that the history will carry; 0 unknown

	// The prompt without its last message, which a note for this one request may
	// have changed.
	Stem uint64 `json:"s,omitempty"`
	Last [3]int `json:"l,omitzero"` // of the last message: text, media, calls

	// Doubt is a later report that did not grow with its prompt. If the reports go
	// on from there, the prompt was really rewritten; if not, it is being truncated.
	Doubt *Anchor `json:"x,omitempty"`
}

// Basis is what an estimate rests on.
type Basis uint8

// The bases, from the weakest on.
const (
	BasisRaw        Basis = iota // a count of ours and nothing else
	BasisCalibrated              // corrected by the model's reports
	BasisSession                 // and by a report of this session, for another prompt
	BasisAnchored                // the report for a prefix of this very prompt
)

// Prompt is the prompt's tokens in a usage. Some servers leave out what came
// from their cache, which shows when that is more than the rest.
func Prompt(u recovery.Usage) int {
	if u.CacheRead > u.Input {
		return u.Input + u.CacheRead + u.CacheWrite
	}
	return u.Input
}

// frame hashes what is not history, and the model.
func (m *Meter) frame(b *transcript.Body, model string) uint64 {
	d := fixedParts(b)
	h := fingerprint(0, []byte(model))
	for _, t := range d.tools {
		h = fingerprint(h, t.Raw)
	}
	if outside := b.Instructions(); outside != "" {
		h = fingerprint(h, []byte(outside))
	}
	return fingerprint(h, d.schema)
}

// anchor makes the anchor of a body that was sent.
func (m *Meter) anchor(b *transcript.Body, model string, c Counts, u recovery.Usage) Anchor {
	w := c.whole()
	a := Anchor{Messages: len(c.weights), Fixed: m.frame(b, model), Reported: Prompt(u), Raw: w.text, Calls: w.calls, Media: w.media,
		Answer: max(0, u.Output-u.Reasoning)}
	a.Hash = a.Fixed
	for _, msg := range b.Messages() {
		a.Stem = a.Hash
		a.Hash = fingerprint(a.Hash, msg.Raw())
	}
	if n := len(c.weights); n > 0 {
		last := c.weights[n-1]
		a.Last = [3]int{last.text, last.media, last.calls}
	}
	return a
}

// reach says how far an anchor covers a body: the number of messages that the
// two have in common from the beginning, all of the anchor's or all but its
// last; ok is false if it is fewer or the rest of the request differs.
func (a Anchor) reach(b *transcript.Body, frame uint64) (n int, ok bool) {
	messages := b.Messages()
	if a.Reported <= 0 || a.Fixed != frame || a.Messages-1 > len(messages) || a.Messages < 0 {
		return 0, false
	}
	h := frame
	for i := 0; i < a.Messages-1; i++ {
		h = fingerprint(h, messages[i].Raw())
	}
	if a.Messages > 0 && h != a.Stem {
		return 0, false
	}
	if a.Messages > 0 && a.Messages <= len(messages) {
		h = fingerprint(h, messages[a.Messages-1].Raw())
	}
	if h == a.Hash && a.Messages <= len(messages) {
		return a.Messages, true
	}
	return a.Messages - 1, a.Messages > 1
}

// anchored is the tokens of a prompt whose beginning an upstream has reported:
// the report, and a calibrated count of what came after. ok is false if the
// prompt does not begin with the anchor's, or its tools or model are others.
func (m *Meter) anchored(b *transcript.Body, model string, a Anchor, c Counts, frame uint64) (tokens int, ok bool) {
	n, ok := a.reach(b, frame)
	if !ok {
		return 0, false
	}
	k := m.calibration.curve(model)
	tokens = a.Reported + k.tokens(c.from(n))
	if n < a.Messages {
		tokens -= k.tokens(weight{text: a.Last[0], media: a.Last[1], calls: a.Last[2]})
	}
	// The answer's tokens were reported too. They are taken if they can be the
	// message that follows: reasoning that was not told apart would not come back.
	for i := n; a.Answer > 0 && i < min(n+2, len(c.weights)); i++ {
		if b.Messages()[i].Role != transcript.RoleAssistant {
			continue
		}
		guess := k.tokens(c.weights[i])
		if a.Answer > guess/2-32 && a.Answer < guess*7/4+96*(1+c.weights[i].calls) {
			tokens += a.Answer + messageTokens - guess
		}
		break
	}
	return max(tokens, 1), true
}

// Estimate is the best estimate of a prompt's tokens that there is, and what it
// rests on. An estimate below BasisAnchored is no reason to rewrite a request.
func (m *Meter) Estimate(b *transcript.Body, model string, a Anchor) (tokens int, basis Basis) {
	return m.estimate(b, model, a, m.Measure(b, model), m.frame(b, model))
}

func (m *Meter) estimate(b *transcript.Body, model string, a Anchor, c Counts, frame uint64) (int, Basis) {
	if n, ok := m.anchored(b, model, a, c, frame); ok {
		return n, BasisAnchored
	}
	k := m.calibration.curve(model)
	tokens := k.tokens(c.whole())
	switch {
	case a.Reported > 0 && a.Fixed == frame:
		was := k.tokens(weight{text: a.Raw, media: a.Media, calls: a.Calls})
		if k.known() {
			return max(1, tokens+a.Reported-was), BasisSession // what is hidden stays
		}
		return max(1, int(float64(tokens)*float64(a.Reported)/float64(max(1, was)))), BasisSession
	case k.known():
		return tokens, BasisCalibrated
	}
	return tokens, BasisRaw
}

// Observe learns from the usage that an upstream reported for a body that was
// sent to it, and returns the session's new anchor. prev is the session's
// anchor so far. truncated says that the report is far below the count: the
// server dropped a part of the prompt in silence; then nothing is learned.
func (m *Meter) Observe(b *transcript.Body, model string, prev Anchor, u recovery.Usage) (next Anchor, truncated bool) {
	reported := Prompt(u)
	if reported <= 0 {
		return prev, false
	}
	c, frame := m.Measure(b, model), m.frame(b, model)
	calibrated := m.calibration.curve(model).known()
	count, basis := m.estimate(b, model, prev, c, frame)
	if whole := m.calibration.curve(model).tokens(c.whole()); basis > BasisRaw && Truncated(count, reported, true) || Truncated(whole, reported, calibrated) {
		return prev, true
	}
	next = m.anchor(b, model, c, u)
	n, ok := prev.reach(b, frame)
	if !ok {
		if prev.Reported == 0 {
			m.calibration.learn(model, c.whole(), reported, true)
		}
		return next, false
	}
	if !m.grew(prev, c.from(n), model, next) {
		if d := prev.Doubt; d != nil {
			if n, ok := d.reach(b, frame); ok && n == d.Messages && m.grew(*d, c.from(n), model, next) {
				return next, false
			}
		}
		kept := next
		prev.Doubt = &kept
		return prev, false
	}
	if n == prev.Messages {
		m.calibration.learn(model, c.from(n), reported-prev.Reported, false)
	}
	return next, false
}

// grew reports whether a report grew with its prompt, at least by a third of
// what was added. Small additions prove nothing.
func (m *Meter) grew(prev Anchor, added weight, model string, next Anchor) bool {
	want := m.calibration.curve(model).tokens(added)
	return want < 64 || next.Reported-prev.Reported >= want/3
}

// Shares of the count below which a report means that a part of the prompt was
// not read. Vocabularies differ less than that, and estimates of images too.
const (
	truncatedShare    = 0.6 // of a calibrated count
	truncatedShareRaw = 0.4 // of a count that nothing confirmed yet
	TruncatedFrom     = 2000
)

// Truncated reports whether a server read only a part of a prompt without
// saying so, as servers with a small window do (Ollama's num_ctx is 4,096 by
// default, https://github.com/ollama/ollama/blob/main/docs/faq.md): what it
// reports is far below the count. Small prompts prove nothing. calibrated says
// that the count rests on earlier reports. Such a report is no basis for
// anything but a limit on what to send.
func Truncated(count, reported int, calibrated bool) bool {
	share := truncatedShareRaw
	if calibrated {
		share = truncatedShare
	}
	return count > TruncatedFrom && reported > 0 && float64(reported) < share*float64(count)
}
