package inspect

import (
	"strings"
	"unicode"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// maxMonologue limits the part of a text that is compared, in bytes.
const maxMonologue = 8 << 10

// monologue finds repeated equal texts without calls, answered only by prompts to go on.
func (h *history) monologue() []recovery.Loop {
	n := len(h.turns) - 1
	if h.textWithoutCalls(n) == "" || !h.onlyPrompted(n) {
		return nil
	}
	said := pairsOf(h.textWithoutCalls(n))
	k := n
	for k > 0 && h.onlyPrompted(k-1) && len(h.load(k-1).steps) == 0 && alike(pairsOf(h.textWithoutCalls(k-1)), said) {
		k--
	}
	if k == n {
		return nil
	}
	l := h.loop(recovery.LoopMonologue, n-k+1, k, n)
	l.New = true
	l.Fingerprint = trajectory.Hash(string(l.Kind), strings.ToLower(strings.Join(strings.Fields(h.textWithoutCalls(k)), " ")))
	return []recovery.Loop{l}
}

// textWithoutCalls returns the text of a turn without calls, or "" for other turns.
func (h *history) textWithoutCalls(k int) string {
	t := &h.turns[k]
	var b []byte
	for _, m := range h.List[t.Start:t.Answered] {
		if len(m.ToolCalls()) > 0 {
			return ""
		}
		b = m.AppendText(b)
	}
	return strings.TrimSpace(string(b[:min(len(b), maxMonologue)]))
}

// maySayGoOn reports whether a message may be a prompt to go on.
func (l *lists) maySayGoOn(text string) bool { return l.says(text, toGoOn) || l.says(text, prompted) }

// maxNudge limits a message that may be a prompt to go on, in bytes.
const maxNudge = 4 << 10

// mayCall reports whether a text may be a call in an unknown form.
func mayCall(text string) bool { return strings.HasPrefix(text, "{") || strings.Contains(text, "```") }

// onlyPrompted reports whether the user messages after turn k, if any, are only prompts to go on: short ones, or
// longer ones that repeat the previous message. Where the text may contain calls, a block of code or an object may be
// one in an unknown form, and the message behind it its result.
func (h *history) onlyPrompted(k int) bool {
	list, t := h.userMessages(), &h.turns[k]
	for n := range list {
		p := &list[n]
		if p.index < t.Answered || p.index >= t.End {
			continue
		}
		text := h.List[p.index].Text()
		if len(text) > maxNudge || strings.HasSuffix(strings.TrimSpace(text), "?") {
			return false
		}
		if h.rules.says(text, toGoOn) {
			continue
		}
		twin := n > 0 && h.words(&list[n-1]) == h.words(p) || n+1 < len(list) && h.words(&list[n+1]) == h.words(p)
		if !twin || !h.rules.says(text, prompted) || h.Textual() && mayCall(h.textWithoutCalls(k)) {
			return false
		}
	}
	return true
}

// pairsOf counts the pairs of adjacent words of a text, or the single words of a very short text.
func pairsOf(text string) map[uint64]int {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	set := make(map[uint64]int, len(words))
	add := func(s string) { set[trajectory.Hash(s)]++ }
	if len(words) < 4 {
		for _, w := range words {
			add(w)
		}
		return set
	}
	for i := range len(words) - 1 {
		add(words[i] + " " + words[i+1])
	}
	return set
}

// alike reports whether two texts are nearly the same: they share nine tenths of the shorter one's pairs, and
// the longer one is at most half as long again, or a few words longer.
func alike(a, b map[uint64]int) bool {
	na, nb, both := 0, 0, 0
	for w, n := range a {
		na += n
		both += min(n, b[w])
	}
	for _, n := range b {
		nb += n
	}
	small, large := min(na, nb), max(na, nb)
	return small > 0 && large <= small+max(6, small/2) && 10*both >= 9*small
}
