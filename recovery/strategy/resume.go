package strategy

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
)

// Resume completes an answer whose beginning the client already has, in the first of the configured ways that suits the
// answer and a target. A replay of a sampled answer comes last, except at a target that is known to repeat its answers.
// Without delivered text Resume is not needed: Resend and Move start the answer again.
func Resume(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	x := s.Exchange
	if f.Released != recovery.ReleasedText || f.Sent == "" || x.Extra() >= s.Config.CutInput() {
		return recovery.Action{}, false
	}
	current := s.Current(f)
	var fresh, tried, last []int // tried: targets that stalled or failed to continue; they come after the others
	for i := range x.Candidates {
		c := &x.Candidates[i]
		if c.Unusable() || i != current && !s.Health.Check(c.Target).Ready {
			continue
		}
		switch last = append(last, i); {
		case c.Silent || c.Resumed || f.Stalled && i == current:
			tried = append(tried, i)
		default:
			fresh = append(fresh, i)
		}
	}
	if f.Stalled {
		last = toEnd(last, current, true)
	}
	for n, list := range [][]int{toEnd(fresh, current, false), toEnd(tried, current, true), last} {
		for _, way := range s.Config.Continue {
			for _, i := range list {
				c := &x.Candidates[i]
				resume := continuation(x, c, f, way, n == 2)
				if resume == nil || slices.Contains(c.FailedWays, way) {
					continue
				}
				a := recovery.Action{Target: i, Resume: resume}
				if i == current && !f.Stalled && way != recovery.WayPrefill {
					a.Wait = s.Backoff(0)
				}
				return a, true
			}
		}
	}
	return recovery.Action{}, false
}

// toEnd returns list with i, if it is in it, moved to its end or, if end is false, to its beginning.
func toEnd(list []int, i int, end bool) []int {
	at := slices.Index(list, i)
	if at < 0 {
		return list
	}
	list = slices.Delete(list, at, at+1)
	if end {
		return append(list, i)
	}
	return slices.Insert(list, 0, i)
}

// continuation describes how to ask a candidate for the rest in one way; nil if the way does not suit the candidate or the
// answer. last allows replays that rarely match.
func continuation(x *recovery.Exchange, c *recovery.Choice, f *recovery.Failure, way recovery.Way, last bool) *recovery.Resume {
	r := &recovery.Resume{Sent: f.Sent, Way: way}
	if way == recovery.WayReplay {
		if c.Model != f.Target.Model || x.Body.Sampled() && !c.Repeats && !last {
			return nil // the replay would be a different answer
		}
		return r
	}
	// A server that enforces a schema starts the answer again, and no model can complete half a character.
	if end, _ := utf8.DecodeLastRuneInString(f.Sent); x.Body.ResponseFormat() || end == utf8.RuneError {
		return nil
	}
	if way == recovery.WayPrefill {
		if c.Prefill == "" || c.Prefill == recovery.PrefillNone || c.Prefill == recovery.PrefillAuto {
			return nil
		}
		return r
	}
	r.Least = uniqueTail(f.Sent)
	if r.Least == 0 || inJSON(f.Sent) {
		return nil
	}
	words := lastWords(f.Sent, r.Least)
	r.Quoted, r.Question = len(words), continuePrompt+words
	return r
}

// continuePrompt asks a model for the rest of its answer. The words that it must repeat are appended.
const continuePrompt = "The connection broke while you wrote the answer above, so that it ends in the middle. Write the rest of it. " +
	"Begin with its last words, repeated exactly as they stand below, and go on from there in the same language and form, " +
	"as if it had never been interrupted: no apology, no remark, nothing else of what you have already written. The last words are:\n\n"

const (
	leastTail = 12   // minimum length of a tail, in bytes; a shorter one may match by coincidence
	mostTail  = 1000 // maximum length of a tail, in bytes, as in proxy/stream
	quoted    = 80   // approximate length of the last words, in bytes
)

// uniqueTail returns the length of the shortest tail of a text that occurs only once in it, so that a repetition of the
// tail means the text's end; 0 if no such tail is short enough to be repeated. It tries growing lengths, so the result is
// the shortest one only approximately.
func uniqueTail(text string) int {
	for n := leastTail; n <= min(len(text), mostTail); n += n/4 + 1 {
		if !strings.Contains(text[:len(text)-1], text[len(text)-n:]) {
			return n
		}
	}
	if len(text) <= mostTail {
		return len(text)
	}
	return 0
}

// lastWords returns the end of a text, from the beginning of a word, with at least least bytes.
func lastWords(text string, least int) string {
	at := max(0, len(text)-max(least, quoted))
	from := max(0, at-quoted)
	if i := strings.LastIndexAny(text[from:at], " \t\r\n"); i >= 0 {
		at = from + i + 1
	}
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return text[at:]
}

// inJSON reports whether a text looks like JSON or ends within a JSON code block.
func inJSON(text string) bool {
	const blanks = " \t\r\n"
	text = strings.TrimLeft(text, blanks)
	if inside, ok := strings.CutPrefix(text, "{"); ok {
		inside = strings.TrimLeft(inside, blanks)
		return inside == "" || inside[0] == '"' || inside[0] == '}'
	}
	if inside, ok := strings.CutPrefix(text, "["); ok {
		inside = strings.TrimLeft(inside, blanks)
		return inside == "" || strings.IndexByte("{[\"-0123456789]", inside[0]) >= 0
	}
	blocks := strings.Split(text, "```")
	return len(blocks)%2 == 0 && strings.HasPrefix(blocks[len(blocks)-1], "json")
}
